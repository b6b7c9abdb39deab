"""Rows that the data choose are kept: all of them are computed, and those that were not chosen leave nothing behind. Losses, weights and which
parameters a step leaves alone are those of PyTorch's own training, for loops over the experts that were hit and for x[mask]; what may mix
such rows, or computes with their number, is refused by line.

usage: rows.py SOURCE BUILD
"""
import copy

from exports import Net, batches, check, nn, path, refused, told
from replay import trained
import numpy as np
import torch
import torch.nn.functional as F
import dsopt
from dsopt._weights import read_weights

STEPS, MICRO_BATCHES, EXPERTS = 4, 2, 5


def same(name, model, inputs, idle, exporter, **options):
    """As PyTorch's own training, by AdamW, whose decay shows what was left alone; `options` are of a second layout."""
    file, made = path(f"{name}.onnx"), lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1)
    report, lines = told(lambda: dsopt.export(model, {one: value[0] for one, value in inputs.items()}, file, exporter=exporter))
    check(report.checked.startswith("compared") and not lines, f"{name}: {report}, {lines}")
    runs = [dsopt.train(file, inputs, steps=STEPS, micro_batches=MICRO_BATCHES // more.get("dp", 1), lr=1e-2, weight_decay=0.1, reduction_shards=2,
                        accumulate="sharded", save_weights=path(f"{name}.safetensors"), **more) for more in ({}, options)[:1 + bool(options)]]
    check(len({run.weights_hash for run in runs}) == 1, f"{name}: two layouts differ")
    twin = copy.deepcopy(model)
    want, found = trained(twin, inputs, STEPS, MICRO_BATCHES, made(twin.parameters()))
    check(bool(found) == idle, f"{name}: PyTorch leaves {found} alone")
    check(np.allclose(runs[0].losses, want, rtol=1e-5), f"{name}: losses {runs[0].losses}, PyTorch's {want}")
    got, start = read_weights(path(f"{name}.safetensors")), dict(model.named_parameters())
    for parameter, value in twin.named_parameters():
        moved = float((value - start[parameter]).detach().abs().max())
        off = float(np.abs(got[parameter] - value.detach().numpy()).max())
        check(off <= 2e-3 * moved + 1e-7, f"{name}: '{parameter}' is off by {off}, it moved by {moved}")
    print(name, flush=True)


def loss(m, h, y):
    return F.cross_entropy(m.o(h), y)


def hit(mask):
    return torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()


def switching(m, x, y):
    """Experts by name, of which a step may reach none, as Switch and NLLB-MoE have them; with dropout."""
    weights, chosen = F.softmax(m.gate(x), -1).topk(1, -1)
    mask = F.one_hot(chosen, EXPERTS).permute(2, 1, 0)
    out = torch.zeros_like(x)
    for expert in hit(mask):
        place, row = torch.where(mask[expert].squeeze(0))
        state = x[None, row].reshape(-1, x.shape[-1])
        state = m.experts[f"expert_{expert[0]}"](state) * weights[row, place, None]
        out.index_add_(0, row, state.to(x.dtype))
    return loss(m, x + out, y)


def stacked(m, x, y):
    """Experts of one parameter, two of a row, as Mixtral and DBRX have them."""
    weights, chosen = F.softmax(m.gate(x), -1).topk(2, -1)
    out = torch.zeros_like(x)
    with torch.no_grad():
        mask = F.one_hot(chosen, EXPERTS + 1).permute(2, 1, 0)
        found = hit(mask)
    for expert in found:
        expert = expert[0]
        if expert == EXPERTS:
            continue
        place, row = torch.where(mask[expert])
        gate, up = F.linear(x[row], m.up[expert]).chunk(2, dim=-1)
        state = F.linear(F.silu(gate) * up, m.down[expert])
        state = state * weights[row, place, None]
        out.index_add_(0, row, state.to(out.dtype))
    return loss(m, x + out, y)


def assigning(m, x, y):
    """Assignments by a mask, of all experts in turn: those without a row have a gradient of zero, and decay."""
    weight, chosen = F.softmax(m.gate(x), -1).max(-1)
    out, more = torch.zeros_like(x), torch.zeros_like(x)
    for at, expert in enumerate(m.experts.values()):
        mine = chosen == at
        out[mine] = expert(x[mine]) * weight[mine].unsqueeze(-1)
        row = torch.where(mine)[0]
        more[row] += torch.tanh(out[row])
    return loss(m, out + more, y)


def measuring(m, x, y):
    """Sums, means and losses of chosen rows, whose values are no numbers where they are not chosen."""
    chosen = y > 0
    high = x[:, 0] > 0
    h = m.experts["expert_0"](x)
    logarithms = torch.log(x[high][:, 0]) * h[high].sum(-1)
    return (loss(m, h[y > 0], y[chosen]) + F.mse_loss(h[chosen], x[chosen]) + (h[chosen] * 2).mean() + logarithms.sum() * 0.1
            + h.masked_select(h > 0).mean() + x.masked_scatter(high[:, None].expand_as(x), h * 0.1).square().mean())


def moe(forward):
    torch.manual_seed(3)
    experts = {f"expert_{at}": nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 6)) for at in range(EXPERTS)}
    return Net(forward, gate=nn.Linear(6, EXPERTS), experts=nn.ModuleDict(experts), o=nn.Linear(6, 4))


def stack():
    torch.manual_seed(3)
    up, down = (nn.Parameter(torch.randn(EXPERTS, *shape) / 3) for shape in ((16, 6), (6, 8)))
    return Net(stacked, gate=nn.Linear(6, EXPERTS), up=up, down=down, o=nn.Linear(6, 4))


torch.manual_seed(0)
x, y = batches(STEPS * MICRO_BATCHES, rows=3)
data = {"x": x, "y": y}
same("switching", moe(switching), data, True, "dynamo", dp=2, zero=3)
same("stacked", stack(), data, False, "torchscript")
same("assigning", moe(assigning), data, False, "torchscript", dp=2, zero=1)
torch.manual_seed(3)
same("measuring", Net(measuring, experts=nn.ModuleDict({"expert_0": nn.Linear(6, 6)}), o=nn.Linear(6, 4)), {"x": torch.rand_like(x) - 0.3, "y": y}, False, "torchscript")


def mixing(m, x, y):
    return loss(m, x, y) + F.softmax(m.o(x[y > 0]), 0).sum()


def counting(m, x, y):
    h = m.o(x[y > 0])
    return loss(m, x, y) + h.sum() / h.shape[0]


def apart(m, x, y):
    return loss(m, x, y) + (m.o(x)[y > 0] * x[x[:, 0] > 0][:, :4]).sum()


def against_all(m, x, y):
    h = m.o(x)
    return loss(m, x, y) + (h[y > 0] + torch.arange(3.0)[:, None]).sum()


def first(m, x, y):
    return loss(m, x, y) + m.o(x[y > 0])[0].sum()


def drawing(m, x, y):
    h = m.o(x[y > 0])
    return loss(m, x, y) + (h * torch.rand_like(h)).sum()


def listing(m, x, y):
    for expert in hit(F.one_hot(m.gate(x).topk(1, -1)[1], EXPERTS).permute(2, 1, 0)):
        y = y if expert.tolist() else y
    seen = [m.o(x) for _ in torch.nonzero(y)]
    return loss(m, x, y) + sum(seen).sum()


for forward, *words in ((mixing, "to softmax, through which"), (counting, "computes with their number"), (apart, "to mul, through"), (against_all, "to add, through"),
                        (first, "to __getitem__, through"), (drawing, "to rand_like"), (listing, "as the data decide")):
    refused(lambda forward=forward: dsopt.export(moe(forward), {"x": x[0], "y": y[0]}, path("refused.onnx"), exporter="torchscript"),
            "rows.py:", "torch.where(mask, x, 0)", *words)
print("passed")
