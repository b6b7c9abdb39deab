"""Complex numbers in a model: Fourier layers with complex weights, which are pairs in the file and come home.

usage: complex.py SOURCE BUILD
"""
import copy

from exports import check, path, pytorch, same
import torch
import torch.nn.functional as F
from torch import nn
import dsopt


class Spectral(nn.Module):
    """The lowest frequencies, each times a matrix."""

    def __init__(self, channels, modes):
        super().__init__()
        self.low, self.high = (nn.Parameter(0.1 * torch.randn(channels, channels, modes, modes, dtype=torch.cfloat)) for _ in range(2))
        self.modes = modes

    def forward(self, x):
        k, whole = self.modes, torch.fft.rfft2(x)
        out = torch.zeros(*whole.shape, dtype=torch.cfloat)
        out[:, :, :k, :k] = torch.einsum("bixy,ioxy->boxy", whole[:, :, :k, :k], self.low)
        out[..., -k:, :k] = torch.einsum("bixy,ioxy->boxy", whole[:, :, -k:, :k], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Operator(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.down = nn.Conv2d(1, 6, 1), nn.Conv2d(6, 1, 1)
        self.layers = nn.ModuleList(Spectral(6, 3) for _ in range(2))
        self.skips = nn.ModuleList(nn.Conv2d(6, 6, 1) for _ in range(2))

    def forward(self, x, y):
        h = self.lift(x)
        for layer, skip in zip(self.layers, self.skips):
            h = F.gelu(layer(h) + skip(h))
        return F.mse_loss(self.down(h), y)


model = Operator()
x, y = torch.randn(4, 2, 1, 8, 9), torch.randn(4, 2, 1, 8, 9)
_, twin = pytorch(model, x, y)
same(model, x, y, "a Fourier operator", exporters=("dynamo",), layouts=({}, {"pp": 2, "micro_batches": 1}))
home = copy.deepcopy(model)
check(not dsopt.load_weights(home, path("weights")), "weights that the file lacks")
for name, value in twin.named_parameters():
    before, after = dict(model.named_parameters())[name], dict(home.named_parameters())[name]
    check(value.dtype == after.dtype and float((value - after).detach().abs().max()) <= 1e-3 * float((value - before).detach().abs().max()) + 1e-6, name)
print("passed")
