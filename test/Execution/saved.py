"""What a run saves: weights as safetensors, and a model whose loss is the one the
next step would print.

usage: saved.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from runs import check, model, relative, train
from saved_weights import safetensors

dsopt = sys.argv[1]


for name in ("mlp", "mlp-mse", "gpt2-tiny", "gpt2-tiny-opset23-dynamic"):
    batches = np.load(model(name)[1])
    with tempfile.TemporaryDirectory() as folder:
        trained, weights = os.path.join(folder, "trained.onnx"), os.path.join(folder, "weights.safetensors")
        layout = ["-micro-batches=2", "-dp=2", "-pp=2", "-zero=3"]
        train(dsopt, name, "-steps=8", *layout, f"-save-onnx={trained}", f"-save-weights={weights}")
        ninth = train(dsopt, name, "-steps=9", *layout).losses[-1]
        saved = onnx.load(trained)
        values = {t.name: onnx.numpy_helper.to_array(t) for t in saved.graph.initializer}
        for key, value in safetensors(weights).items():
            check(np.array_equal(values[key], value), f"{name}: {key} differs between the two files")
        evaluator = ReferenceEvaluator(saved)
        inputs = [i.name for i in saved.graph.input]
        losses = [float(evaluator.run(["loss"], {key: batches[key][0, j] for key in inputs})[0]) for j in range(4)]
        error = relative(np.mean(losses), ninth)
        print(f"{name}: saved model's loss {np.mean(losses):.7f}, the ninth step's {ninth:.7f}")
        check(error < 1e-5, f"{name}: loss of the saved model {np.mean(losses)}, expected {ninth}")
