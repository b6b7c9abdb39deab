"""torch.autograd.Function: the backward that is given is the one that trains.

usage: functions.py SOURCE BUILD
"""
from exports import Net, batches, check, layers, path, refused, same
from sampled import sampled
import onnx
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

x, y = batches()


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, scale):
        ctx.scale = scale
        return h.view_as(h)

    @staticmethod
    def backward(ctx, g):
        return -ctx.scale * g, None


class Clip(torch.autograd.Function):
    """Not linear: two calls with one input have two gradients."""

    @staticmethod
    def forward(h, limit):
        return h.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.limit = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-ctx.limit, ctx.limit), None


class Scaled(torch.autograd.Function):
    """Two inputs that are saved, one of them smaller than the result; two results and a place."""

    @staticmethod
    def forward(ctx, h, scale):
        ctx.save_for_backward(h, scale)
        place = h.argmax(1)
        ctx.mark_non_differentiable(place)
        return h * scale, torch.tanh(h), place

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, first, second, none):
        h, scale = ctx.saved_tensors
        return 2 * first * scale + second, (first * h) * 0.5


class Square(torch.autograd.Function):
    """With constants of shapes inside, and a part of the gradient that is computed from the weights."""

    @staticmethod
    def forward(ctx, h, weight):
        ctx.save_for_backward(h, weight)
        return F.linear(h, weight).square()

    @staticmethod
    def backward(ctx, g):
        h, weight = ctx.saved_tensors
        inner = 2 * g * F.linear(h, weight)
        whole = torch.cat([inner, torch.zeros_like(inner)], 1)[:, :inner.size(1)].reshape(h.size(0), -1)
        return whole @ weight, whole.t() @ h


class Sign(torch.autograd.Function):
    """Of a weight itself."""

    @staticmethod
    def forward(ctx, w):
        return torch.sign(w) * 0.1

    @staticmethod
    def backward(ctx, g):
        return g


def reverse(m, x, y):
    h = m.a(x)
    return F.cross_entropy(m.o(h), y) + F.cross_entropy(m.o(Reverse.apply(h, 0.5)), y.flip(0))


def clip(m, x, y):
    h = m.a(x)
    return F.cross_entropy(m.o(Clip.apply(h, 0.005)) * 3, y) + F.cross_entropy(m.o(Clip.apply(h, 0.005)), y)


def scaled(m, x, y):
    first, second, place = Scaled.apply(m.a(x), m.s)
    return F.cross_entropy(m.o(first + second), y) + 0 * place.float().sum()


def unread(m, x, y):
    return F.cross_entropy(m.o(Scaled.apply(m.a(x), m.s)[0]), y)


def square(m, x, y):
    return F.cross_entropy(m.o(Square.apply(m.a(x), m.w)), y)


def binary(m, x, y):
    w = Sign.apply(m.b.weight)
    return F.cross_entropy(m.o(F.linear(torch.relu(F.linear(torch.relu(m.a(x)), w)), w)), y)


def frozen(m, x, y):
    return F.cross_entropy(m.o(m.a(x)), y) + F.cross_entropy(m.o(Reverse.apply(x.repeat(1, 2)[:, :8], 1.0)), y)


scale = {"s": nn.Parameter(torch.rand(1, 8) + 0.5)}
for body, parts, name, layouts in sampled((
        (reverse, {}, "reversal", ({}, {"pp": 2, "micro_batches": 1})),
        (clip, {}, "a backward that is not linear, twice", ({},)),
        (scaled, scale, "two inputs, three results", ({},)),
        (unread, scale, "a result that nothing reads", ({},)),
        (square, {"w": nn.Parameter(torch.randn(8, 8))}, "a backward of products", ({},)),
        (binary, {"b": nn.Linear(8, 8)}, "of a weight with two uses", ({},)),
        (frozen, {}, "of what has no gradient", ({},))), 4):
    same(Net(body, **layers(), **parts), x, y, name, layouts=layouts)

# The file holds the backward as a subgraph; the placeholders are gone.
dsopt.export(Net(reverse, **layers()), {"x": x[0], "y": y[0]}, path("model.onnx"))
names = [node.op_type for node in onnx.load(path("model.onnx")).graph.node if node.domain == "dsopt"]
check(names == ["CustomGradient"], names)


class ByValue(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        return h * 2

    @staticmethod
    def backward(ctx, g):
        return g if float(ctx.saved_tensors[0].sum()) > 0 else -g


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        ctx.mark_dirty(h)
        return h.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def export(body):
    return lambda: dsopt.export(Net(body, **layers()), {"x": x[0], "y": y[0]}, path("refused.onnx"))


refused(export(lambda m, x, y: F.cross_entropy(m.o(ByValue.apply(m.a(x))), y)),
        "the torch.autograd.Function 'ByValue' at functions.py:", "has a backward that cannot be exported",
        "write it with tensors alone")
refused(export(lambda m, x, y: F.cross_entropy(m.o(Dirty.apply(m.a(x) * 1)), y)),
        "the torch.autograd.Function 'Dirty' at functions.py:", "changes an input in place (mark_dirty): return a new tensor")
print("passed")
