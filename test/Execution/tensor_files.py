"""Files of tensor-parallel runs: weights are read, drawn and saved as one rank has them, a checkpoint of one grid is gone on from by others with
its bits and refused by programs of other shards, and ranks along tp give losses, norms and outputs once.

usage: tensor_files.py DSOPT
"""
import filecmp
import os
import socket
import subprocess
import sys
import tempfile

import numpy as np

from runs import Run, check, execute
from small import TensorProto, initializer, node, value, write

dsopt = sys.argv[1]
ROWS, WIDTH = 3, 24  # a hidden layer of 8 * 24: shards of it are odd in everything else
BATCH = ["-reduction-shards=2", "-accumulate=local"]
ONE = ["-tensor-shards=4", "-micro-batches=4"]
GRIDS = [["-tp=2", "-tensor-shards=4", "-micro-batches=4"], ["-tp=4", "-micro-batches=4"], ["-tp=2", "-dp=2", "-zero=1", "-tensor-shards=4", "-micro-batches=2"],
         ["-tp=2", "-dp=2", "-zero=3", "-tensor-shards=4", "-micro-batches=2"], ["-tp=4", "-pp=2", "-micro-batches=4"]]
random = np.random.default_rng(5)


def build(folder, loss):
    weights = {"w0": (7, WIDTH), "up": (WIDTH, 8 * WIDTH), "bias": (8 * WIDTH,), "down": (8 * WIDTH, WIDTH), "w1": (WIDTH, 5)}
    nodes = [node("MatMul", "x w0", "a"), node("Tanh", "a", "h"), node("MatMul", "h up", "b"), node("Add", "b bias", "c"), node("Tanh", "c", "d"),
             node("MatMul", "d down", "e"), node("Add", "e h", "f"), node("MatMul", "f w1", "logits")]
    if loss:
        nodes.append(node("SoftmaxCrossEntropyLoss", "logits labels", "loss"))
    inputs = [value("x", (ROWS, 7)), value("labels", (ROWS,), TensorProto.INT64)]
    outputs = None if loss else [value("logits", (ROWS, 5))]
    draws = np.random.default_rng(1)
    return write(os.path.join(folder, "loss.onnx" if loss else "logits.onnx"), nodes, inputs[: 1 + loss],
                 [initializer(name, draws.normal(0, 0.3, shape).astype(np.float32)) for name, shape in weights.items()], outputs)


with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    model, logits, data = build(folder, True), build(folder, False), at("data.npz")
    np.savez(data, x=random.normal(0, 1, (32 * ROWS, 7)).astype(np.float32), labels=random.integers(0, 5, 32 * ROWS))

    def train(name, *options, steps=3, status=0):
        command = [dsopt, model, "-run", "-quiet", f"-data={data}", f"-log={at(name)}", f"-save-weights={at(name)}.w", "-lr=0.02", f"-steps={steps}", *BATCH, *options]
        if os.path.exists(at(name)):
            os.remove(at(name))
        done = execute(command, status)
        return done.stderr if status else Run(at(name))

    def equal(name, one, other, skipped=0):
        norms = [[step.get(key) for step in run.steps] for run in (one, other) for key in ("grad_norm", "grad_norms")]
        check(one.loss_text == other.loss_text[skipped:] and one.hash == other.hash and norms[0] == norms[2][skipped:] and norms[1] == norms[3][skipped:],
              f"{name}: {one.loss_text} {norms[:2]} {one.hash}, expected {other.loss_text} {norms[2:]} {other.hash}")

    # Weights from files and from a distribution; norms of each parameter; files of trained ones.
    for options, grids in ((["-grad-clip=0.2", "-log-norms"], GRIDS), (["-init=normal:0.2", "-seed=4"], GRIDS[1:4:2]), (["-freeze=up", "-precision=bf16"], GRIDS[:4:3])):
        first = train("one", *ONE, *options)
        check(len(set(first.loss_text)) == 3, f"losses {first.loss_text}")
        for number, grid in enumerate(grids):
            equal(f"{options} {grid}", train(f"grid{number}", *grid, *options), first)
            check(filecmp.cmp(at("one.w"), at(f"grid{number}.w"), shallow=False), f"{options} {grid}: other weights were saved")
    for grid in (GRIDS[1], GRIDS[3]):
        equal(f"weights to {grid}", train("read", *grid, f"-weights={at('one.w')}"), train("one", *ONE, f"-weights={at('one.w')}"))

    # Checkpoints, the states of the optimizer among them, from each grid to the next one; in the background; gradients that wait.
    circle = list(zip([ONE, *GRIDS], [*GRIDS, ONE]))
    for options, how, pairs in ((["-grad-clip=0.2"], [], circle), ([], ["-save-async"], circle[2:4]), (["-delayed-update=1"], [], circle[1:4:2]),
                                (["-optimizer=sgd", "-momentum=0.9", "-precision=bf16"], [], circle[3:5])):
        first = train("one", *ONE, *options, steps=4)
        for number, (grid, other) in enumerate(pairs):
            saved = at(f"saved{number}{''.join(options)}")
            train("save", *grid, *options, *how, f"-save={saved}", "-save-every=2", steps=2)
            execute([dsopt, f"-check={saved}/step-00000002"])
            equal(f"{options} from {grid} to {other}", train("resumed", *other, *options, f"-resume={saved}", steps=4), first, skipped=2)
    saved = f"-resume={at('saved0-grad-clip=0.2')}"
    # -tensor-shards is the checkpoint's where it is not given.
    equal("the checkpoint's shards", train("resumed", "-tp=2", "-micro-batches=4", "-grad-clip=0.2", saved, steps=4), train("one", *ONE, "-grad-clip=0.2", steps=4), skipped=2)
    said = train("other", "-tp=2", "-tensor-shards=2", "-micro-batches=4", saved, status=1)
    check("was written with T 4 tensor shards; the program has T 2. It goes on with the same bits under -tensor-shards=4 and -tp of 1, 2, 4;" in said, said)
    said = train("other", "-tp=3", "-micro-batches=4", saved, status=1)
    check("-tensor-shards=4, as the checkpoint of -resume has them, over -tp=3: expected -tp times a power of two" in said, said)
    train("other", "-tp=2", "-tensor-shards=2", "-micro-batches=4", saved, "-resume-new-batch", steps=4)

    # Evaluations and outputs: of each row once.
    for number, grid in enumerate([ONE, *GRIDS]):
        execute([dsopt, "predict", logits, f"-data={data}", f"-save-outputs={at(f'{number}.npz')}", "-quiet", *grid])
        outputs = np.load(at(f"{number}.npz"))["logits"]
        check(outputs.shape[0] == 32 * ROWS and np.array_equal(outputs, np.load(at("0.npz"))["logits"]), f"outputs of {grid}")

    # Ranks on two hosts: each writes and reads its own over TCP.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    execute([dsopt, model, *GRIDS[3], *BATCH, "-grad-clip=0.2", "-o", at("program")])
    saved = at("hosts")
    ranks = [subprocess.Popen([at("program"), "-quiet", f"-data={data}", "-lr=0.02", "-steps=2", f"-save={saved}"], stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "DSOPT_HOST": host})
             for rank, host in enumerate("abab")]
    for rank in ranks:
        said = rank.communicate(timeout=120)[1]
        check(rank.returncode == 0, f"ranks on two hosts: {said}")
    equal("of two hosts", train("resumed", *ONE, "-grad-clip=0.2", f"-resume={saved}", steps=4), train("one", *ONE, "-grad-clip=0.2", steps=4), skipped=2)
    print(f"files of {len(GRIDS) + 1} grids of 4 tensor shards are each other's")
