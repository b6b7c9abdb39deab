"""A BERT learns whether short reviews praise. Its loop is for Hugging Face's accelerate.

Nothing is downloaded: weights begin at random. With from_pretrained(...) in that line the same is fine-tuning.
"""
import torch
import transformers
from accelerate import Accelerator

good = ["a fine film", "warm and clever", "the cast is superb", "moving to the end", "it never drags", "worth every minute"]
bad = ["a dull film", "cold and clumsy", "the cast is wasted", "tiresome to the end", "it always drags", "a waste of minutes"]
links = ["and", "but", "because", "while", "yet", "so"]
words = ["[PAD]", "[CLS]", *sorted({word for line in [*good, *bad, *links] for word in line.split()})]
length = 16


def review(random):
    """Two opinions; the second counts where "but" or "yet" links them, else the first."""

    def pick(few):
        return few[torch.randint(len(few), (), generator=random)]

    first, second, link = pick([good, bad]), pick([good, bad]), pick(links)
    ids = [words.index(word) for word in ["[CLS]", *pick(first).split(), link, *pick(second).split()]]
    praises = (second if link in ("but", "yet") else first) is good
    return {"input_ids": torch.tensor(ids + [0] * (length - len(ids))),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * (length - len(ids))), "labels": torch.tensor(int(praises))}


torch.manual_seed(0)
random = torch.Generator().manual_seed(1)
train, held_out = [review(random) for _ in range(960)], [review(random) for _ in range(200)]
model = transformers.BertForSequenceClassification(transformers.BertConfig(
    vocab_size=len(words), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=length, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
loader = torch.utils.data.DataLoader(train, batch_size=8)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

losses = []
for epoch in range(3):
    model.train()
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    model.eval()
    right = 0
    for batch in torch.utils.data.DataLoader(held_out, batch_size=50):
        with torch.no_grad():
            right += (model(**batch).logits.argmax(-1) == batch["labels"]).sum().item()
    print(f"epoch {epoch} held out accuracy {right / len(held_out):.3f}")
for step in range(len(losses) // 2):
    print(f"step {step} loss {(losses[2 * step] + losses[2 * step + 1]) / 2:.6f}")
accelerator.end_training()
