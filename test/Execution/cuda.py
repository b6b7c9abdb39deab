"""Programs for CUDA devices, on a device in software: PyTorch's recorded losses, one hash over all layouts under any order of streams,
checkpoints that go both ways between targets, and what is said where something is missing.

usage: cuda.py DSOPT FOLDER reference MODEL... | layouts | nccl | checkpoints | convolutions | precision | errors
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import MODELS, check, execute, model, relative, train

dsopt, folder, what = sys.argv[1:4]
CUDA = ["-target=cuda", "-arch=sm_80"]


def device(**options):
    """The environment in which a program finds the device in software."""
    return {"LD_LIBRARY_PATH": folder, "SOFT_DEVICE": ",".join(f"{name}={value}" for name, value in options.items())}


def reference(name):
    """Within 1e-5 of PyTorch's losses in step 0, and of the host's program after some steps."""
    recorded = np.load(os.path.join(MODELS, name, "reference.npz"))
    more = {"bert-tiny": ["-padding-index=*word_embeddings.weight=0"]}.get(name, [])
    options = ["-micro-batches=2", "-steps=4", "-lr=1e-3", "-weight-decay=0.01", "-log-norms", *more]
    whole = ["-micro-batches=4", "-steps=2", "-lr=1e-3", "-weight-decay=0.01", "-log-norms", *more]
    os.environ.update(device(seed=1))
    run = train(dsopt, name, *CUDA, *whole)
    error = relative(run.losses, recorded["adamw/loss"][:2])
    check(error < 1e-5, f"{name} losses {run.losses}, expected {list(recorded['adamw/loss'][:2])}")
    total = float(recorded["step0/grad_norm_total"])
    for parameter, got in run.steps[0]["grad_norms"].items():
        expected = float(recorded["step0/grad_norm/" + parameter])
        check(abs(got - expected) <= max(1e-5 * expected, 1e-6 * total), f"{name} gradient norm of {parameter} is {got}, expected {expected}")
    host, other = train(dsopt, name, *options), train(dsopt, name, *CUDA, *options)
    check(relative(other.losses, host.losses) < 1e-5, f"{name} losses {other.losses}, on the host {host.losses}")
    print(f"{name}: losses within {error:.1e} of PyTorch's, {len(run.steps[0]['grad_norms'])} gradient norms")


def layouts():
    """K = V = 4 and K = 8, V = 2 on the device: one hash and one text of losses, whatever order streams go in."""
    name, seed = "gpt2-tiny", 0
    base = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1"]
    grids = [(1, 1, 0, []), (2, 1, 0, []), (2, 1, 1, []), (2, 1, 2, []), (2, 1, 3, []), (4, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []),
             (1, 2, 0, ["-schedule=gpipe"]), (1, 1, 0, ["-recompute=full"]), (2, 2, 3, ["-recompute=full"]), (2, 1, 3, ["-gather-window=2"])]
    first = None
    for dp, pp, zero, more in grids:
        seed += 1
        os.environ.update(device(seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", "-reduction-shards=4", *more]
        run = train(dsopt, name, *base, *layout)
        first = first or run
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
    print(f"{len(grids)} layouts, one hash {first.hash[:16]}")


def nccl():
    """Ranks with a device each are joined by NCCL: one hash with one rank's, whatever order streams go in, and one message where one fails."""
    name, seed = "gpt2-tiny", 0
    base = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1", "-reduction-shards=4"]
    os.environ.update(device(seed=1))
    first = train(dsopt, name, *base, "-micro-batches=4")
    grids = [(2, 1, 0, []), (2, 1, 1, []), (4, 1, 2, []), (2, 1, 3, []), (4, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []), (1, 4, 1, []),
             (1, 2, 0, ["-schedule=gpipe"]), (2, 2, 3, ["-recompute=full"]), (2, 1, 3, ["-gather-window=2"])]
    for dp, pp, zero, more in grids:
        seed += 1
        os.environ.update(device(devices=4, seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", *more]
        run = train(dsopt, name, *base, *layout)
        check(run.head["engine"] == "NCCL", f"{' '.join(layout)}: joined by {run.head['engine']}")
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
        sent = train(dsopt, name, *base, *layout, "-engine=host")
        check(sent.head["engine"] != "NCCL" and sent.hash == first.hash, f"{' '.join(layout)} -engine=host: {sent.head['engine']} {sent.hash}")
        check([step["sent_bytes"] for step in sent.steps] == [step["sent_bytes"] for step in run.steps], f"{' '.join(layout)}: other bytes were counted than by hosts")

    path, data = model("mlp")

    def ends(status, text, environment, *options):
        command = [dsopt, path, "-run", f"-data={data}", "-steps=3", *CUDA, "-dp=2", "-micro-batches=1", *options]
        done = execute(command, status, timeout=60, environment={**device(devices=2, seed=1), **environment})
        check(text in (done.stderr if status else done.stdout), f"expected '{text}', got: {done.stdout}{done.stderr}")
        check(done.stderr.count("error:") == bool(status), f"expected one message, got: {done.stderr}")

    one = {"SOFT_DEVICE": "devices=1"}
    ends(0, "GPUs are joined by their hosts, not by NCCL: ranks 0 and 1 share a GPU", one)
    ends(0, "not by NCCL: libnccl.so.2 is version 2.17.0, expected 2.18.0 or newer", {"SOFT_NCCL": "version=21700"})
    ends(2, "-engine=nccl: ranks 0 and 1 share a GPU", one, "-engine=nccl")
    ends(2, "-engine=nccl: libnccl.so.2 is version 2.17.0", {"SOFT_NCCL": "version=21700"}, "-engine=nccl")
    ends(2, "rank 1 was killed by signal 9 (Killed) in step 1", {"DSOPT_FAULT": "action,rank=1,step=1,nth=5:kill"})
    ends(2, "rank 0 waits for rank 1 (in step 1, in 'reduce ", {"DSOPT_FAULT": "step,rank=1,step=1:stop=0"}, "-stall-timeout=2")
    ends(0, "step 2/3", {"DSOPT_FAULT": "step,rank=1,step=1:delay=1000"})
    print(f"{len(grids)} layouts, one hash {first.hash[:16]}")


def checkpoints():
    """A checkpoint of one target goes on under the other; resumed on the device a run has the bits of one that went through."""
    path, data = model("gpt2-tiny")
    os.environ.update(device(seed=3))
    with tempfile.TemporaryDirectory() as place:
        def run(*options):
            execute([dsopt, path, "-run", f"-data={data}", "-quiet", "-micro-batches=1", f"-log={place}/log", *options])
            return [json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"]

        whole = run(*CUDA, "-steps=4")
        run(*CUDA, "-steps=2", "-lr-decay-steps=4", f"-save={place}/c")
        check(run(*CUDA, "-steps=4", f"-resume={place}/c") == whole, "a resumed run has other bits")
        run("-steps=3", f"-resume={place}/c", f"-save={place}/h")
        run(*CUDA, "-steps=4", f"-resume={place}/h")
    print("checkpoints go both ways")


def odd_convolutions(place):
    """A model of a convolution with groups and dilations, padded more on one side, and a transposed one: the host's losses
    and norms, which makes products of all."""
    numbers = np.random.default_rng(5)
    shapes = {"w0": (4, 3, 2, 3), "w1": (6, 2, 3, 2), "w2": (6, 2, 2, 2), "w3": (5, 2)}
    weights = [numpy_helper.from_array((numbers.standard_normal(shape) * 0.4).astype("f"), name) for name, shape in shapes.items()]
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], pads=[0, 1, 1, 2], strides=[1, 2]), helper.make_node("Tanh", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w1"], ["c"], group=2, dilations=[2, 1], pads=[2, 0, 1, 1]), helper.make_node("Tanh", ["c"], ["d"]),
             helper.make_node("ConvTranspose", ["d", "w2"], ["e"], strides=[2, 1], pads=[1, 0, 0, 0]), helper.make_node("Tanh", ["e"], ["f"]),
             helper.make_node("GlobalAveragePool", ["f"], ["g"]), helper.make_node("Flatten", ["g"], ["h"]),
             helper.make_node("Gemm", ["h", "w3"], ["z"], transB=1), helper.make_node("SoftmaxCrossEntropyLoss", ["z", "labels"], ["loss"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 7, 9]), helper.make_tensor_value_info("labels", TensorProto.INT64, [2])]
    graph = helper.make_graph(nodes, "odd", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], weights)
    path, data = os.path.join(place, "odd.onnx"), os.path.join(place, "odd.npz")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(data, x=numbers.standard_normal((8, 3, 7, 9)).astype("f"), labels=numbers.integers(0, 5, 8))
    runs = []
    for target in ([], CUDA):
        execute([dsopt, path, "-run", f"-data={data}", "-quiet", f"-log={place}/log", "-log-norms", "-steps=2", "-micro-batches=2", *target], environment=device(seed=1))
        runs.append([json.loads(line) for line in open(f"{place}/log")])
    host, other = ([line for line in run if "grad_norms" in line] for run in runs)
    for one, two in zip(host, other, strict=True):
        check(relative(two["loss"], one["loss"]) < 1e-5, f"odd convolutions: loss {two['loss']}, on the host {one['loss']}")
        for name, norm in one["grad_norms"].items():
            check(relative(two["grad_norms"][name], norm) < 1e-4, f"odd convolutions: gradient norm of {name} is {two['grad_norms'][name]}, on the host {norm}")
    text = execute([dsopt, path, f"-data={data}", "-emit=exec", "-micro-batches=2", *CUDA]).stdout
    kinds = [text.count(f"exec.convolution {kind} ") > 0 for kind in ("forward", "data", "weight")]
    check(all(kinds), f"odd convolutions: of forward, data and weight there are {kinds}")


def convolutions():
    """Convolutions by cuDNN: one hash over layouts and orders of streams, in bf16 within 2e-2 of fp32; what is said where the library is
    missing, too old, or takes more scratch than is planned; a program without convolutions never opens it."""
    name, seed = "resnet-tiny", 0
    base = [*CUDA, "-steps=2", "-lr=3e-3", "-threads=1", "-reduction-shards=2"]
    first = None
    for dp, pp, zero, more in [(1, 1, 0, []), (2, 1, 0, []), (2, 1, 2, []), (2, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []), (1, 1, 0, ["-recompute=full"])]:
        seed += 1
        os.environ.update(device(seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={2 // dp}", *more]
        run = train(dsopt, name, *base, *layout)
        first = first or run
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
    narrow = train(dsopt, name, *base, "-micro-batches=2", "-precision=bf16")
    check(relative(narrow.losses, first.losses) < 2e-2, f"losses {narrow.losses} in bf16, {first.losses} in fp32")
    again = train(dsopt, name, *base, "-dp=2", "-zero=3", "-micro-batches=1", "-precision=bf16")
    check(again.hash == narrow.hash, "other bits in bf16 under -dp=2 -zero=3")

    with tempfile.TemporaryDirectory() as place:
        odd_convolutions(place)
        for library in os.listdir(folder):
            if ".so" in library and "cudnn" not in library:
                os.symlink(os.path.join(os.path.abspath(folder), library), os.path.join(place, library))
        # Whatever this machine has is not found behind a file that is no library.
        open(os.path.join(place, "libcudnn.so.9"), "w").close()
        without = {**device(seed=1), "LD_LIBRARY_PATH": place}

        def run(status, name, environment, text=""):
            path, data = model(name)
            done = execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-quiet", *CUDA], status, environment=environment)
            check(text in done.stderr and done.stderr.count("error:") == bool(status), f"expected '{text}', got: {done.stderr}")

        run(0, "mlp", without)
        run(2, name, without, "libcudnn.so.9: file too short; the program's convolutions need version 9.0.0 or newer")
        run(2, name, {**device(seed=1), "SOFT_CUDNN": "version=8907"}, "cuDNN is version 8.9.7, expected 9.0.0 or newer")
        run(2, name, {**device(seed=1), "SOFT_CUDNN": "scratch=99999999"}, "bytes of scratch with CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM")
    print(f"convolutions, one hash {first.hash[:16]}")


def precision():
    """bf16 within 2e-2 of fp32, one hash and text of losses over layouts, with gradients of either type."""
    for name in ("mlp", "gpt2-tiny", "bert-tiny"):
        options = ["-micro-batches=2", "-steps=3", "-lr=1e-3"]
        os.environ.update(device(seed=1))
        full = train(dsopt, name, *options).losses
        for gradients in ("fp32", "param"):
            half = [*CUDA, *options[1:], "-precision=bf16", f"-gradient-type={gradients}", "-reduction-shards=2"]
            one = train(dsopt, name, *half, "-micro-batches=2")
            check(relative(one.losses, full) < 2e-2, f"{name}, gradients {gradients}: losses {one.losses}, in fp32 {full}")
            os.environ.update(device(seed=2))
            two = train(dsopt, name, *half, "-dp=2", "-zero=3", "-micro-batches=1")
            check(two.hash == one.hash and two.loss_text == one.loss_text, f"{name}, gradients {gradients}: other bits under -dp=2 -zero=3")
    print("bf16")


def errors():
    path, data = model("mlp")

    def fails(status, text, environment, *options):
        done = execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-quiet", *CUDA, *options], status, environment=environment)
        check(text in done.stderr, f"expected '{text}', got: {done.stderr}")
        check(done.stderr.count("error:") == 1, f"expected one message, got: {done.stderr}")

    fails(2, "no CUDA driver", {"LD_LIBRARY_PATH": ""})
    fails(2, "the CUDA driver is version 11.0, expected 12.0 or newer", device(driver=11000))
    fails(2, "finds no device", device(devices=0))
    fails(1, "compiled for sm_80, but this machine's", device(arch=75))
    fails(2, "'s memory, which has", device(memory=65536))
    print("errors")


if what == "reference":
    for name in sys.argv[4:]:
        reference(name)
else:
    {"layouts": layouts, "nccl": nccl, "checkpoints": checkpoints, "convolutions": convolutions, "precision": precision, "errors": errors}[what]()
