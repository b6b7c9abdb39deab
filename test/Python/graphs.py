"""Graphs that PyTorch's exporter has written are kept by all that they are made of: the same graph is written from there, with
the weights of now; an edited method, another size, another line, another constant or another operator is written anew.

usage: graphs.py SOURCE BUILD
"""
import os

from exports import batches, check, folder, path
import onnx
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

os.environ["DSOPT_CACHE"] = os.path.join(folder, "cache")
x, y = batches()
SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.o = nn.Linear(6, 8), nn.Linear(8, 4)
        self.register_buffer("scale", torch.ones(8), persistent=False)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x, y):
        return F.cross_entropy(self.o(F.gelu(self.a(x)) * self.scale + self.mean), y)
"""
written = 0
write = torch.onnx.export


def counted(*arguments, **keywords):
    global written
    written += 1
    return write(*arguments, **keywords)


torch.onnx.export = counted


def made(source=SOURCE, change=None, example=None, name="net.py"):
    """A model of a source file, as an edited script has it."""
    space = {"nn": nn, "torch": torch, "F": F}
    exec(compile(source, path(name), "exec"), space)
    model = space["Net"]()
    if change:
        change(model)
    return model, example or {"x": x[0], "y": y[0]}


def export(hits, what, check_=False, outputs=(), **parts):
    """The file's bytes; whether it was kept is as expected."""
    before = written
    model, example = made(**parts)
    report = dsopt.export(model, example, path("model.onnx"), exporter="dynamo", check=check_, outputs=outputs)
    check((written == before) == hits, f"{what}: {'written anew' if hits else 'taken from what was kept'}")
    for tensor in onnx.load(path("model.onnx")).graph.initializer:
        if tensor.name in dict(model.named_parameters()):
            want = dict(model.named_parameters())[tensor.name].detach().numpy()
            check((onnx.numpy_helper.to_array(tensor) == want).all(), f"{what}: {tensor.name} has another value")
    check(not check_ or report.checked.startswith("compared"), report)
    with open(path("model.onnx"), "rb") as file:
        return file.read()


def same_weights(model):
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape))


first = export(False, "the first", change=same_weights)
check(export(True, "the same", change=same_weights) == first, "what was kept is another file")
export(True, "other weights", check_=True)
export(True, "another mean", change=lambda model: model.mean.fill_(0.3), check_=True)
export(False, "a constant", change=lambda model: model.scale.fill_(2.0), check_=True)
export(False, "an edited method", source=SOURCE.replace("gelu", "silu"), check_=True)
export(False, "an edited number", source=SOURCE.replace("* self.scale", "* self.scale * 1.5"), check_=True)
export(False, "another line", source="\n" + SOURCE)
export(False, "another number of rows", example={"x": x[0, :4], "y": y[0, :4]})
export(False, "frozen", change=lambda model: model.a.requires_grad_(False))
export(False, "one tensor", source=SOURCE.replace("nn.Linear(8, 4)", "nn.Linear(8, 6)"),
       change=lambda model: setattr(model.o, "weight", nn.Parameter(model.a.weight.detach().T.contiguous())))
export(True, "the same again", change=same_weights)
kept = os.path.join(folder, "cache", "graphs")
for name in os.listdir(kept):
    with open(os.path.join(kept, name), "r+b") as file:
        file.seek(100)
        file.write(b"damaged")
check(export(False, "damaged", change=same_weights) == first, "a damaged one is taken")

# An operator of one's own may mean something else tomorrow.
library = torch.library.Library("graphs_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
for _ in range(2):
    export(False, "an operator of one's own", source=SOURCE.replace("self.a(x)", "torch.ops.graphs_test.twice(self.a(x))"))
os.environ["DSOPT_CACHE"] = "off"
export(False, "nothing is kept", change=same_weights)
print("passed")
