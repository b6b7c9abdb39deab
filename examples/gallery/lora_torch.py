"""A LLaMA that counts by threes learns to count by fives: its weights stay, low-rank matrices beside them are trained."""
import torch
import transformers
from torch import nn

length, vocabulary = 24, 61


class LoRA(nn.Module):
    """A frozen linear layer, and what is added to it."""

    def __init__(self, layer, rank=8):
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


def counting(by, count):
    starts = torch.randint(vocabulary, (count, 1))
    return [{"input_ids": row, "labels": row} for row in (starts + by * torch.arange(length)) % vocabulary]


torch.manual_seed(0)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=vocabulary, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=length, use_cache=False))
before = torch.optim.AdamW(model.parameters(), lr=3e-3)
for batch in torch.utils.data.DataLoader(counting(3, 16 * 100), batch_size=16):
    model(**batch).loss.backward()
    before.step()
    before.zero_grad()

model.requires_grad_(False)
for block in model.model.layers:
    for part, names in ((block.self_attn, ("q_proj", "k_proj", "v_proj", "o_proj")), (block.mlp, ("up_proj", "down_proj"))):
        for name in names:
            setattr(part, name, LoRA(getattr(part, name)))
trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
print(f"trains {trained} of {sum(one.numel() for one in model.parameters())} numbers")

args = transformers.TrainingArguments(
    "lora", use_cpu=True, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=60, learning_rate=1e-2,
    lr_scheduler_type="cosine", warmup_steps=5, logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True)
trainer = transformers.Trainer(model=model, args=args, train_dataset=counting(5, 960))
trainer.train()
for line in trainer.state.log_history[:-1]:
    print(f"step {line['step'] - 1} loss {line['loss']:.6f}")
model.eval()
ids = torch.arange(0, 30, 5)[None]
for _ in range(6):
    ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
print("goes on:", ids[0, 6:].tolist())
