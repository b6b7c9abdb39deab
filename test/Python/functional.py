"""torch.nn.functional's losses, EmbeddingBag, Fourier transforms and samplers, as PyTorch's exporters write
them: the loss and every gradient are PyTorch's in double precision.

usage: functional.py SOURCE BUILD   with a Python that has torch and onnxscript
"""
import copy
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

source = sys.argv[1]
dsopt = os.path.join(sys.argv[2], "bin", "dsopt")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import numpy as np
import torch
import torch.nn.functional as F

sys.path += [os.path.join(source, "test", "Execution"), os.path.join(source, "test")]
from saved_weights import safetensors
from sampled import sampled

torch.manual_seed(0)
ROWS, CLASSES = 6, 5


class Terms(torch.nn.Module):
    """A sum of functions, each of a parameter of its own and of inputs."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases
        self.p = torch.nn.ParameterList(torch.randn(*shape) for _, shape, _ in cases.values())

    def forward(self, *inputs):
        inputs, total = list(inputs), 0
        for k, (function, _, arguments) in enumerate(self.cases.values()):
            own = [inputs.pop(0) for _ in arguments]
            total = total + (1 + k % 3) * function(self.p[k], *own)
        return total


def check(name, cases, exporter, opset=20):
    cases = dict(sampled(cases.items(), 8))
    model = Terms(cases)
    arguments = [a for _, _, own in cases.values() for a in own]
    with tempfile.TemporaryDirectory() as folder:
        path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "data.npz")
        names = [f"input{k}" for k in range(len(arguments))]
        if exporter == "dynamo":
            torch.onnx.export(copy.deepcopy(model), tuple(arguments), path, dynamo=True, optimize=False, verbose=False, opset_version=opset, input_names=names)
        else:
            torch.onnx.export(copy.deepcopy(model), tuple(arguments), path, dynamo=False, do_constant_folding=False, opset_version=opset, input_names=names,
                              training=torch.onnx.TrainingMode.PRESERVE)
        np.savez(data, **{name: a.numpy()[None] for name, a in zip(names, arguments)})
        log, weights = os.path.join(folder, "log"), os.path.join(folder, "weights")
        done = subprocess.run([dsopt, path, "-run", "-quiet", f"-data={data}", "-steps=1", "-micro-batches=1", "-optimizer=sgd", "-lr=1", f"-log={log}",
                               f"-save-weights={weights}"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} by {exporter}: {done.stderr}")
        loss = next(line["loss"] for line in map(json.loads, open(log)) if "loss" in line)
        after = safetensors(weights)
    exact = copy.deepcopy(model).double()
    want = exact(*(a.double() if a.is_floating_point() else a for a in arguments))
    want.backward()
    wrong = [] if abs(loss - want.item()) < 1e-6 * abs(want.item()) else [f"the loss is {loss}, PyTorch's {want.item()}"]
    worst = 0
    for k, case in enumerate(cases):
        before, gradient = model.p[k].detach().numpy(), exact.p[k].grad.numpy()
        got = before.astype(np.float64) - after[f"p.{k}"].astype(np.float64)
        # A weight of 1 rounds what is taken from it.
        error = max(0, np.abs(got - gradient).max() - 1.2e-7 * np.abs(before).max()) / max(np.abs(gradient).max(), 1e-3)
        worst = max(worst, error)
        if not error < 2e-6:
            wrong.append(f"the gradient of '{case}' is off by {error:.1e}")
    if wrong:
        sys.exit(f"FAILED: {name} by {exporter}: " + "; ".join(wrong))
    print(f"{name} by {exporter}: {len(cases)} gradients as PyTorch's, at worst {worst:.1e} off", flush=True)


labels = torch.randint(0, CLASSES, (ROWS,))
ignored = labels.clone()
ignored[2] = -100
shares, others = torch.softmax(torch.randn(ROWS, CLASSES), -1), torch.randn(ROWS, CLASSES)
signs = torch.randint(0, 2, (ROWS, CLASSES)) * 2 - 1
weight = torch.rand(CLASSES) + 0.5
square = (ROWS, CLASSES)
# What both exporters can write; then what the newer one alone can.
both = {
    "cross_entropy": (lambda x, y: F.cross_entropy(x, y), square, (ignored,)),
    "cross_entropy of a weight tensor": (lambda x, y: F.cross_entropy(x, y, weight=weight.to(x.dtype)), square, (labels,)),
    "cross_entropy of weights": (lambda x, y, w: F.cross_entropy(x, y, weight=w), square, (ignored, weight)),
    "cross_entropy, sum": (lambda x, y: F.cross_entropy(x, y, reduction="sum"), square, (labels,)),
    "cross_entropy of images": (lambda x, y, w: F.cross_entropy(x, y, weight=w), (2, CLASSES, 3, 4), (torch.randint(0, CLASSES, (2, 3, 4)), weight)),
    "cross_entropy of shares": (lambda x, y: F.cross_entropy(x, y), square, (shares,)),
    "cross_entropy of shares and weights": (lambda x, y, w: F.cross_entropy(x, y, weight=w), square, (shares, weight)),
    "cross_entropy of shares of images": (lambda x, y: F.cross_entropy(x, y, reduction="sum"), (2, CLASSES, 3), (torch.softmax(torch.randn(2, CLASSES, 3), 1),)),
    "nll_loss": (lambda x, y, w: F.nll_loss(F.log_softmax(x, -1), y, weight=w), square, (ignored, weight)),
    "bce with logits": (lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=p), square, (shares, weight, weight + 1)),
    "mse_loss": (lambda x, y: F.mse_loss(x, y), square, (others,)),
    "kl_div": (lambda x, y: F.kl_div(F.log_softmax(x, -1), y, reduction="batchmean"), square, (shares,)),
    "kl_div of logarithms": (lambda x, y: F.kl_div(F.log_softmax(x, -1), y, log_target=True), square, (shares.log(),)),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y).mean(), square, (others,)),
    "pairwise_distance": (lambda x, y: F.pairwise_distance(x, y).mean(), square, (others,)),
    "multilabel_soft_margin_loss": (lambda x, y: F.multilabel_soft_margin_loss(x, (y > 0.2).to(x.dtype)), square, (shares,)),
    "hinge": (lambda x, y: torch.clamp(1 - x * y, min=0).mean(), square, (signs,)),
}
newer = {
    "binary_cross_entropy": (lambda x, y, w: F.binary_cross_entropy(torch.sigmoid(x), y, weight=w), square, (shares, weight)),
    "l1_loss": (lambda x, y: F.l1_loss(x, y), square, (others,)),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, delta=0.7), square, (others,)),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), square, (others,)),
    "cosine_embedding_loss": (lambda x, y, t: F.cosine_embedding_loss(x, y, t, margin=0.1), square, (others, signs[:, 0].clone())),
    "triplet_margin_loss": (lambda x, y, z: F.triplet_margin_loss(x, y, z, margin=2.0, swap=True), square, (others, torch.randn(square))),
    "poisson_nll_loss": (lambda x, y: F.poisson_nll_loss(x, y, full=True), square, (shares * 4,)),
    "hinge_embedding_loss": (lambda x, y: F.hinge_embedding_loss(x, y), square, (signs,)),
    "margin_ranking_loss": (lambda x, y, t: F.margin_ranking_loss(x, y, t, margin=0.2), square, (others, signs)),
    "soft_margin_loss": (lambda x, t: F.soft_margin_loss(x, t.to(x.dtype)), square, (signs,)),
    "multi_margin_loss": (lambda x, y: F.multi_margin_loss(x, y), square, (labels,)),
    "multilabel_margin_loss": (lambda x, y: F.multilabel_margin_loss(x, y), square, (torch.tensor([[0, 2, -1, 1, 3]] * ROWS),)),
}
older = {"gaussian_nll_loss": (lambda x, y, v: F.gaussian_nll_loss(x, y, v, full=True), square, (others, torch.rand(square) + 0.3))}

ids, bounds, factors = torch.randint(0, 10, (7,)), torch.tensor([0, 2, 2, 5]), torch.rand(7)
bags = {f"embedding_bag, {mode}": (lambda w, i, o, mode=mode: (F.embedding_bag(i, w, o, mode=mode) ** 2).sum(), (10, 4), (ids, bounds)) for mode in ("sum", "mean", "max")}
bags |= {f"embedding_bag of a matrix, {mode}": (lambda w, i, mode=mode: (F.embedding_bag(i, w, mode=mode) ** 2).sum(), (10, 4), (ids[:6].reshape(2, 3),))
         for mode in ("sum", "mean", "max")}
bags["embedding_bag of factors"] = (lambda w, i, o, f: (F.embedding_bag(i, w, o, mode="sum", per_sample_weights=f) ** 2).sum(), (10, 4), (ids, bounds, factors))
bags["embedding_bag, last offset"] = (lambda w, i, o: (F.embedding_bag(i, w, o, mode="mean", include_last_offset=True) ** 2).sum(), (10, 4), (ids, torch.tensor([0, 3, 7])))


def spectral(w, x):
    """A Fourier layer: the lowest frequencies, each times a matrix of complex numbers that are pairs."""
    spectrum = torch.view_as_real(torch.fft.rfft2(x))[:, :, :3, :3]
    real, imaginary = (spectrum[..., k] for k in (0, 1))

    def product(a, k):
        return torch.einsum("bixy,ioxy->boxy", a, w[..., k])

    low = torch.stack([product(real, 0) - product(imaginary, 1), product(real, 1) + product(imaginary, 0)], -1)
    whole = F.pad(low, (0, 0, 0, 2, 0, 4))
    return (torch.fft.irfft2(torch.complex(whole[..., 0], whole[..., 1]), s=x.shape[-2:]) ** 2).sum()


window = torch.hann_window(16)
fourier = {
    "fft": (lambda x: (torch.view_as_real(torch.fft.fft(x, norm="ortho")) ** 3).sum(), (2, 12), ()),
    "irfft of rfft": (lambda x: (torch.fft.irfft(torch.fft.rfft(x)[..., :5], n=9) ** 3).sum(), (2, 12), ()),
    "abs of rfft2": (lambda x: torch.fft.rfft2(x).abs().sum(), (2, 7, 10), ()),
    "large fft": (lambda x, y: (torch.view_as_real(torch.fft.fft(x))[..., 0] * y).mean(), (1, 270), (torch.randn(1, 270),)),
    "stft": (lambda x: torch.stft(x, 16, 5, window=window.to(x.dtype), return_complex=True).abs().mean(), (2, 64), ()),
    "spectral layer": (spectral, (2, 3, 3, 3, 2), (torch.randn(2, 2, 7, 8),)),
}
grid = torch.rand(2, 4, 3, 2) * 2.4 - 1.2
sampling = {f"grid_sample, {mode}, {padding}": (lambda x, g, m=mode, p=padding: (F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=m == "bicubic") ** 2).sum(),
                                                (2, 3, 5, 6), (grid,)) for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")}
sampling["places of grid_sample"] = (lambda t, x: (F.grid_sample(x, F.affine_grid(t, (2, 3, 4, 5), align_corners=False), align_corners=False) ** 2).sum(), (2, 2, 3), (torch.randn(2, 3, 5, 6),))
sampling["fold"] = (lambda x: (F.fold(x, (4, 5), (2, 3), padding=1) ** 2).sum(), (2, 12, 25), ())
sampling["unfold"] = (lambda x: (F.unfold(x, (2, 3), stride=2) ** 2).sum(), (2, 3, 5, 6), ())
sampling["max_unpool"] = (lambda x: (F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2) ** 2).sum(), (2, 3, 8), ())
functions = {name: (lambda x, f=getattr(torch, name): f(x * 0.2 + (1.5 if name == "acosh" else 0)).sum(), square, ())
             for name in ("acos", "asin", "atan", "sinh", "cosh", "asinh", "atanh")}



def check_ctc(reduction, zero_infinity, blank, concatenated):
    """CTC has no operator in ONNX: a file as the package writes it."""
    from onnx import TensorProto, helper, numpy_helper, save

    frames, batch, classes, most = 50, 6, 20, 12
    logits = torch.randn(frames, batch, classes)
    targets, lengths = torch.randint(0, classes - 1, (batch, most)), torch.tensor([12, 0, 1, 7, 5, 3])
    targets = targets + (targets >= blank).long()
    targets[3] = targets[3, 0]  # repeats take a blank each
    inputs = torch.tensor([50, 4, 30, 13, 50, 2 if zero_infinity else 20])
    given = torch.cat([row[:n] for row, n in zip(targets, lengths)]) if concatenated else targets
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["logits", "x"], ["sum"]), helper.make_node("LogSoftmax", ["sum"], ["logs"], axis=-1),
             helper.make_node("CTCLoss", ["logs", "targets", "inputs", "lengths"], ["loss"], domain="dsopt", blank=blank, reduction=reduction, zero_infinity=zero_infinity)]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, list(logits.shape)), info("targets", TensorProto.INT64, list(given.shape)),
                                           *(info(name, TensorProto.INT64, [batch]) for name in ("inputs", "lengths"))],
                              [info("loss", TensorProto.FLOAT, [])], [numpy_helper.from_array(logits.numpy(), "logits")])
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)

        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("dsopt", 1)], ir_version=10), path("model.onnx"))
        np.savez(path("data.npz"), x=np.zeros((1, *logits.shape), np.float32), targets=given[None].numpy(), inputs=inputs[None].numpy(), lengths=lengths[None].numpy())
        done = subprocess.run([dsopt, path("model.onnx"), "-run", "-quiet", f"-data={path('data.npz')}", "-steps=1", "-micro-batches=1", "-optimizer=sgd", "-lr=1",
                               f"-log={path('log')}", f"-save-weights={path('weights')}"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"ctc_loss: {done.stderr}")
        loss = next(line["loss"] for line in map(json.loads, open(path("log"))) if "loss" in line)
        after = safetensors(path("weights"))["logits"]
    exact = logits.double().requires_grad_()
    want = F.ctc_loss(exact.log_softmax(-1), given, inputs, lengths, blank=blank, reduction=reduction, zero_infinity=bool(zero_infinity))
    want.backward()
    error = np.abs(logits.double().numpy() - after - exact.grad.numpy()).max()
    if not (abs(loss - want.item()) < 1e-6 * abs(want.item()) and error < 1e-6):
        sys.exit(f"FAILED: ctc_loss, {reduction}: the loss is {loss}, PyTorch's {want.item()}; the gradient is off by {error:.1e}")
    print(f"ctc_loss, {reduction}: as PyTorch's, the gradient at worst {error:.1e} off", flush=True)


check_ctc("mean", 0, 0, False)
check_ctc("sum", 1, 3, True)
check("losses", both | newer, "dynamo")
check("losses", both | older, "torchscript")
check("bags", bags, "dynamo")
check("bags", bags, "torchscript", opset=18)
check("transforms", fourier, "dynamo")
check("samplers and functions", sampling | functions, "dynamo")
print("passed")
