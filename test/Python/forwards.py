"""Random forwards in Python (forward_grammar.py): the program's losses are those that PyTorch computes of the program's draws, step by
step, or the forward is refused. By default a few; more of them: ./dev fuzz-python -seed=N -cases=N.

usage: forwards.py SOURCE BUILD [-seed=N] [-cases=N]
"""
import importlib.util
import math
import sys
import time
import warnings

from exports import NIGHTLY, check, path
import forks
from forward_grammar import source
from replay import decided, draws_of, program_of
import torch
import dsopt
from dsopt._export._check import Reference
from dsopt._export._state import State

if sys.argv[3:]:  # by itself: what does not differ by model is made once
    forks.prepare([])
options = dict(one.lstrip("-").split("=") for one in sys.argv[3:])
first, count = int(options.get("seed", 1)), int(options.get("cases", 40 if NIGHTLY else 5))
STEPS, RATE = 4, 0.05
x, y = torch.randn(STEPS, 8, 6), torch.randint(0, 4, (STEPS, 8))
example = {"x": x[0], "y": y[0]}


def load(seed):
    """The module of a seed, as a file that messages name."""
    text, lost = source(seed)
    name = f"forward{seed}"
    with open(path(name + ".py"), "w") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(name, path(name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    torch.manual_seed(seed)
    return module.Model(), lost, text


def trained(model, draws):
    """PyTorch's losses of descent with the program's draws; what Python keeps goes on from step to step."""
    job = decided(model, example)
    programs = [program_of(job, (x[step], y[step]), step, 0) for step in range(STEPS)]
    state, losses = State(model, job.code), []
    for step in range(STEPS):
        program = programs[step]
        loss = job.module(Reference(model, program))(x[step], y[step])
        if not job.branches.any() and program.count != draws:
            print(f"forward draws {program.count} times, the file {draws} times")
            return [math.inf] * STEPS
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= RATE * parameter.grad
        losses.append(float(loss.detach()))
    state.close()
    return losses


warnings.simplefilter("ignore")
refused, wrong, missed = [], [], []
for seed in range(first, first + count):
    begin = time.time()
    model, lost, text = load(seed)
    try:
        dsopt.export(model, example, path("forward.onnx"), check=False)
        got = dsopt.train(path("forward.onnx"), {"x": x, "y": y}, optimizer="sgd", momentum=0.0, weight_decay=0.0, lr=RATE, dropout="off",
                          micro_batches=1).losses
    except Exception as error:
        refused.append(seed)
        print(f"{seed}: refused{'' if lost else ', which a file could have'}: {str(error)[:300]}", flush=True)
        continue
    want = trained(model, draws_of(path("forward.onnx")))
    off = max(0.0 if a == b or a != a and b != b else abs(a - b) / max(abs(b), 1e-2) for a, b in zip(got, want))
    if not off <= 1e-5:
        wrong.append(seed)
        print(f"{seed}: wrong: {got}, PyTorch {want}\n{text[text.index('    def forward'):]}", flush=True)
    elif lost:
        missed.append(seed)
        print(f"{seed}: right, though it has {text[text.index('    def forward'):]}", flush=True)
    else:
        print(f"{seed}: right by {off:.1e} after {time.time() - begin:.1f} s", flush=True)
print(f"{count} forwards, {len(refused)} refused, {len(wrong)} wrong")
check(not wrong and len(refused) <= max(1, count // 10), f"wrong: {wrong}, refused: {refused}")
print("passed")
