"""The oracle in PyTorch and the one of the reference, on the same graphs.

usage: oracles.py [FIRST COUNT]
"""
import os
import sys
import warnings

import numpy as np

from compare import Oracle
from generate import generate
from gradients import Gradients
from in_torch import TorchGradients, make_update
from reference import trace
from training import Update

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from sampled import NIGHTLY

warnings.simplefilter("ignore")
first, count = map(int, sys.argv[1:] or (1, 150 if NIGHTLY else 40))
for seed in range(first, first + count):
    case = generate(seed)
    graph, names, oracle = case.graph, list(case.graph.parameters), Oracle(case)
    made, values = trace(graph, case.micro_batch(0), [graph.loss]), oracle.weights() | oracle.values(0, 0)
    (loss, gradients), (other, others) = (kind(made, graph.loss, names)(values) for kind in (Gradients, TorchGradients))
    off = [abs(loss - other) / max(abs(loss), 1e-3)]
    # Differences of the reference leave a relative 1e-6 or less.
    off += [float(np.linalg.norm(gradients[name] - others[name]) / (np.linalg.norm(gradients[name]) + 1e-4)) for name in gradients]
    weights = [{name: values[name] for name in gradients} for _ in range(2)]
    updates = [kind(case.options, weights[0]) for kind in (Update, make_update)]
    for _ in range(3):
        weights = [update(old, gradients) for update, old in zip(updates, weights)]
    off += [float(np.max(np.abs(weights[0][name] - weights[1][name]), initial=0)) for name in gradients]
    if not max(off) < 1e-5:
        sys.exit(f"seed {seed}: the oracles differ by {max(off):.2g}")
print(f"{count} graphs, equal losses, gradients and updates")
