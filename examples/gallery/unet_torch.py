"""A U-Net learns to take noise out of pictures of discs (DDPM), and makes pictures of noise."""
import torch
from torch import nn
from torch.nn import functional as F

size, width, steps = 16, 24, 200
betas = torch.linspace(1e-4, 0.04, steps)
kept = torch.cumprod(1 - betas, 0)  # of the picture, behind each step of noise


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.norm, self.first = nn.GroupNorm(4, inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.time, self.again, self.second = nn.Linear(width, outside), nn.GroupNorm(4, outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.short = nn.Conv2d(inside, outside, 1)

    def forward(self, x, time):
        h = self.first(F.silu(self.norm(x))) + self.time(time)[:, :, None, None]
        return self.short(x) + self.second(F.silu(self.again(h)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.begin = nn.Conv2d(1, width, 3, padding=1)
        self.down, self.smaller = Block(width, width), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.middle, self.larger = Block(2 * width, 2 * width), nn.Conv2d(2 * width, width, 1)
        self.up, self.end = Block(2 * width, width), nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t, noise=None):
        """The noise in `x`; where that is given, how far off it is."""
        angle = t[:, None].float() * torch.exp(-torch.arange(width // 2) / 2)
        time = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        whole = self.down(self.begin(x), time)
        half = self.middle(self.smaller(whole), time)
        found = self.end(self.up(torch.cat([whole, F.interpolate(self.larger(half), scale_factor=2.0)], 1), time))
        return found if noise is None else F.mse_loss(found, noise)


def batch(rows, random):
    """Discs in noise: a picture, how many steps of noise it has, and the noise."""
    at, radius = torch.rand(rows, 2, 1, 1, generator=random) * 6 + 5, torch.rand(rows, 1, 1, generator=random) * 2 + 2
    y, x = torch.arange(size)[:, None] - at[:, 0], torch.arange(size) - at[:, 1]
    discs = 2 * torch.sigmoid(3 * (radius - (x ** 2 + y ** 2).sqrt()))[:, None] - 1
    t, noise = torch.randint(steps, (rows,), generator=random), torch.randn(rows, 1, size, size, generator=random)
    share = kept[t][:, None, None, None]
    return {"x": share.sqrt() * discs + (1 - share).sqrt() * noise, "t": t, "noise": noise}


torch.manual_seed(0)
random = torch.Generator().manual_seed(1)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for step in range(80):
    loss = model(**batch(16, random))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss:.6f}")

with torch.no_grad():
    x = torch.randn(4, 1, size, size, generator=random)
    for t in reversed(range(steps)):
        x = (x - betas[t] / (1 - kept[t]).sqrt() * model(x, torch.full((4,), t))) / (1 - betas[t]).sqrt()
        x = x + betas[t].sqrt() * torch.randn(x.shape, generator=random) if t else x
for row in x[0, 0]:
    print("picture:", "".join(" .:+#"[int(((value.clamp(-1, 1) + 1) * 2.4).item())] for value in row))
