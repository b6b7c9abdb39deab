"""A GPT learns the bytes of a text, and goes on with it.

usage: gpt_torch.py TEXT
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F

width, heads, layers, length = 64, 4, 4, 48


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        rows, tokens, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(rows, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, tokens, width))
        return x + self.net(self.second(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, ids, labels=None):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        logits = self.head(self.norm(self.blocks(x)))
        return logits if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())


torch.manual_seed(0)
text = torch.tensor(list(open(sys.argv[1], "rb").read()))
starts = torch.randperm(len(text) - length)[:16 * 160]
data = [{"ids": text[at:at + length], "labels": text[at + 1:at + length + 1]} for at in starts]
loader = torch.utils.data.DataLoader(data, batch_size=16)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for step, batch in enumerate(loader):
    loss = model(**batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss:.6f}")

prompt = text[2000:2000 + length // 2]
ids = prompt[None]
for _ in range(length // 2):
    ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
answer = ids[0, length // 2:]
print("goes on:", repr(bytes(answer.tolist()).decode(errors="replace")))
