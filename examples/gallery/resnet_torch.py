"""A ResNet tells shapes in noisy pictures apart; the loader shifts, mirrors and dims each picture.

It has GELU: with ReLU, whose gradient jumps, rounding alone takes two runs apart.
"""
import torch
from torch import nn
from torch.nn import functional as F

size, kinds = 24, 4


def picture(kind, random):
    """A disc, a square, a cross or a ring, in some colour, somewhere."""
    at, radius = torch.rand(2, generator=random) * (size - 14) + 7, 3 + 3 * torch.rand((), generator=random)
    y, x = torch.meshgrid(torch.arange(size) - at[0], torch.arange(size) - at[1], indexing="ij")
    far, wide = (x ** 2 + y ** 2).sqrt(), torch.maximum(x.abs(), y.abs())
    shape = [far < radius, wide < radius, (torch.minimum(x.abs(), y.abs()) < 1.5) & (wide < radius), (far - radius).abs() < 1.2][kind]
    return shape * (0.4 + 0.6 * torch.rand(3, 1, 1, generator=random)) + 0.25 * torch.randn(3, size, size, generator=random)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count, seed, augment):
        random = torch.Generator().manual_seed(seed)
        self.rows = [(picture(at % kinds, random), at % kinds) for at in range(count)]
        self.augment = augment

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        picture, kind = self.rows[at]
        if self.augment:
            random = torch.Generator().manual_seed(at)
            dy, dx, mirror = torch.randint(-2, 3, (3,), generator=random).tolist()
            picture = torch.roll(picture, (dy, dx), (1, 2)) * (0.8 + 0.4 * torch.rand((), generator=random))
            picture = picture.flip(2) if mirror > 0 else picture
        return {"x": picture, "labels": kind}


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first, self.one = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.second, self.two = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.gelu(self.short(x) + self.two(self.second(F.gelu(self.one(self.first(x))))))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.head = nn.Linear(64, kinds)

    def forward(self, x, labels=None):
        logits = self.head(self.blocks(F.gelu(self.norm(self.stem(x)))).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels, label_smoothing=0.05)


torch.manual_seed(0)
loader = torch.utils.data.DataLoader(Pictures(1440, 1, augment=True), batch_size=8, num_workers=1)
model = ResNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

total = 0
for at, batch in enumerate(loader):
    loss = model(**batch) / 2  # two batches make a step
    loss.backward()
    total += loss.item()
    if at % 2:
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {at // 2} loss {total:.6f}")
        total = 0

model.eval()
held_out = torch.utils.data.default_collate([*Pictures(200, 2, augment=False)])
print(f"held out accuracy {(model(held_out['x']).argmax(-1) == held_out['labels']).float().mean():.3f}")
