"""One hash over grids at the extents of real models: 1024 positions, a vocabulary of 50,257, contractions over 4,096."""
import argparse
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from runs import SOURCE, Run, check, execute

sys.path.append(os.path.join(SOURCE, "examples"))
import make_gpt


def one_hash(dsopt, title, base, grids, width, heads):
    """Each grid's options behind those of all. Gradients are subtracted as they are: a rule that divides by their size hides it at first."""
    sizes = argparse.Namespace(layers=2, width=width, heads=heads, tokens=1024, rows=1, vocabulary=50257)
    random = np.random.default_rng(0)

    def draw(name, shape, std, fill):
        value = np.full(shape, fill, np.float32) if fill is not None else random.standard_normal(shape, np.float32) * np.float32(std)
        return numpy_helper.from_array(value, name)

    with tempfile.TemporaryDirectory() as folder:
        path, data, log = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "log.jsonl"))
        onnx.save(make_gpt.build(sizes, draw), path)
        ids = random.integers(0, sizes.vocabulary, (2, sizes.tokens))
        np.savez(data, input_ids=ids, labels=np.roll(ids, -1, 1))
        first = None
        for grid in grids:
            execute([dsopt, path, "-run", f"-data={data}", "-quiet", "-optimizer=sgd", f"-log={log}", *base, *grid.split()], timeout=1200)
            run = Run(log)
            first = first or run
            print(f"{grid}: {run.hash[:16]}, losses {', '.join(run.loss_text)}", flush=True)
            check(run.hash == first.hash and run.loss_text == first.loss_text, f"{grid} differs from {grids[0]}")
    print(f"{title}: {len(grids)} grids, one hash", flush=True)
