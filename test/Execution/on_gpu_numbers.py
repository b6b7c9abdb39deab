"""Parts of on_gpu.py about numbers: convolutions, precisions, loss scales and odd sizes on a device beside the host's."""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from on_device import CUDA, device, dsopt, folder
from own_models import wide_layers
from runs import SOURCE, Run, check, execute, model, relative, train
from sampled import sampled


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
    for dp, pp, zero, more in sampled([(1, 1, 0, []), (2, 1, 0, []), (2, 1, 2, []), (2, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []), (1, 1, 0, ["-recompute=full"])], 2):
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
    """bf16 and fp16 within 2e-2 of fp32, TF32 within 1e-3, one hash and text of losses over layouts, with gradients of either type."""
    for name in sampled(("gpt2-toy", "mlp", "bert-tiny"), 1):
        options = ["-micro-batches=2", "-steps=3", "-lr=1e-3"]
        os.environ.update(device(seed=1))
        full = train(dsopt, name, *options).losses
        for precision, gradients in sampled((("bf16", "param"), ("bf16", "fp32"), ("fp16", "param" if name == "gpt2-toy" else "fp32")), 2):
            what = f"{name} in {precision}, gradients {gradients}"
            half = [*CUDA, *options[1:], f"-precision={precision}", f"-gradient-type={gradients}", "-reduction-shards=2"]
            half += ["-initial-scale-power=10"] if precision == "fp16" else []
            one = train(dsopt, name, *half, "-micro-batches=2")
            check(relative(one.losses, full) < 2e-2, f"{what}: losses {one.losses}, in fp32 {full}")
            os.environ.update(device(seed=2))
            two = train(dsopt, name, *half, "-dp=2", "-zero=3", "-micro-batches=1", "-recompute=full")
            check(two.hash == one.hash and two.loss_text == one.loss_text, f"{what}: other bits under -dp=2 -zero=3 -recompute=full")
    # fp32 products by TF32: other numbers, close to those of fp32, the same in every layout.
    options = [*CUDA, "-steps=3", "-lr=1e-3", "-reduction-shards=2"]
    os.environ.update(device(seed=1))
    full, one = train(dsopt, "gpt2-toy", *options, "-micro-batches=2"), train(dsopt, "gpt2-toy", *options, "-micro-batches=2", "-matmul-precision=high")
    check(0 < relative(one.losses, full.losses) < 1e-3, f"losses by TF32 {one.losses}, in full {full.losses}")
    two = train(dsopt, "gpt2-toy", *options, "-dp=2", "-zero=3", "-micro-batches=1", "-matmul-precision=high")
    check(two.hash == one.hash and two.loss_text == one.loss_text, "TF32: other bits under -dp=2 -zero=3")
    print("bf16, fp16 and TF32")


def scale():
    """fp16 whose first scales overflow: the same steps are skipped, with the same bits, in all layouts, with graphs and without, offloaded, by NCCL
    and by hosts; the steps in between change the scale that graphs read. A checkpoint goes on under either target."""
    seed, text = 0, []

    def scales(run):
        return [(step["loss_scale"], step["skipped"]) for step in run.steps]

    def same(name, layouts, *options):
        nonlocal seed
        first = None
        for devices, *layout in sampled(layouts, 2):
            seed += 1
            os.environ.update(device(seed=seed, devices=devices))
            half = [*CUDA, "-precision=fp16", "-threads=1", "-reduction-shards=2", *options, *layout]
            run = train(dsopt, name, *half, *([] if "-dp=2" in layout else ["-micro-batches=2"]))
            first = first or run
            check((run.hash, run.loss_text, scales(run)) == (first.hash, first.loss_text, scales(first)),
                  f"{name} {' '.join(layout)} seed {seed}: {run.loss_text} {scales(run)} {run.hash}, expected {first.loss_text} {scales(first)} {first.hash}")
            check((run.head["cuda_graphs"] > 1) == ("-cuda-graph=off" not in layout), f"{name} {layout}: {run.head['cuda_graphs']} graphs")
        check({True, False} == {skipped for _, skipped in scales(first)}, f"{name}: expected steps of both kinds: {scales(first)}")
        text.append(f"{name} {first.hash[:8]} with {first.end['skipped']} of {len(first.steps)} skipped")
        return first

    two = ["-dp=2", "-micro-batches=1"]
    offloaded = ["-offload-optimizer=cpu", "-offload-params=cpu", "-offload-activations=cpu"]
    options = ["-steps=6", "-lr=3e-3", "-grad-clip=1", "-initial-scale-power=22", "-loss-scale-window=1"]
    run = same("gpt2-toy", [(1,), (1, "-cuda-graph=off"), (2, *two, "-zero=3"), (1, "-pp=2"), (1, *two, "-zero=3", *offloaded)], *options)
    # Running statistics stay where a step is skipped, also behind the first one that applies, from which on graphs are replayed.
    odd = same("resnet-tiny", sampled([(1,), (1, "-cuda-graph=off")], 1), "-steps=5", "-initial-scale-power=19", "-loss-scale-hysteresis=1", "-loss-scale-window=1")
    check([skipped for _, skipped in scales(odd)][1:] == [False, False, True, False], f"resnet-tiny: {scales(odd)}")
    same("mlp", [(1,), (2, *two, "-zero=1", "-accumulate=sharded")], "-steps=6", "-optimizer=sgd", "-momentum=0.9", "-gradient-type=param",
         "-initial-scale-power=21", "-loss-scale-window=1")
    # Updates that lag: a step that overflows leaves nothing to the next one.
    same("gpt2-toy", [(1,), (2, *two, "-zero=3", "-offload-optimizer=cpu")], "-steps=7", "-delayed-update=2", "-initial-scale-power=22", "-loss-scale-window=1")

    os.environ.update(device(seed=seed))
    half = ["-precision=fp16", "-threads=1", "-reduction-shards=2", "-micro-batches=2", *options]
    with tempfile.TemporaryDirectory() as folder:
        train(dsopt, "gpt2-toy", *CUDA, *half, "-steps=3", f"-save={folder}/save")
        rest = train(dsopt, "gpt2-toy", *CUDA, *half, f"-resume={folder}/save/step-00000003")
        check((rest.hash, scales(rest)) == (run.hash, scales(run)[3:]), f"resumed: {scales(rest)} {rest.hash}")
        host = train(dsopt, "gpt2-toy", *half, f"-resume={folder}/save/step-00000003")
        one, two = run.steps[3], host.steps[0]
        check(scales(host)[0] == scales(run)[3] == (2.0**20, False) and all(relative(two[what], one[what]) < 2e-2 for what in ("loss", "grad_norm")),
              f"on the host: {two}, expected {one}")
    print("; ".join(text))


def odd_sizes(folder, rows, activation):
    """A model whose sizes are odd, with a line left over where products are cut at multiples of 2048; with GELU lines are as long as a product takes that has an epilogue."""
    width, depth = (4104, 16) if activation == "Gelu" else (4097, 9)
    return wide_layers(folder, rows, 11, depth, width, opset=20, batches=8, activation=activation)


def wide_heads(place):
    """Attention whose heads are too large for matrix instructions, whose kernels have images of their own: close to the host's in 16 bits."""
    path, data = os.path.join(place, "wide.onnx"), os.path.join(place, "wide.npz")
    execute([sys.executable, os.path.join(SOURCE, "examples", "make_gpt.py"), path, "--layers=1", "--width=136", "--heads=1", "--tokens=16", "--rows=1"])
    random = np.random.default_rng(0)
    np.savez(data, input_ids=random.integers(0, 256, (2, 1, 16)), labels=random.integers(0, 256, (2, 1, 16)))
    for precision in ("bf16", "fp16"):
        losses = []
        for target in ([], CUDA):
            execute([dsopt, path, "-run", "-quiet", f"-data={data}", f"-precision={precision}", "-steps=2", f"-log={place}/log", *target])
            losses.append(Run(f"{place}/log").losses)
        check(relative(losses[1], losses[0]) < 1e-3, f"heads of 136 in {precision}: losses {losses[1]}, on the host {losses[0]}")


def odd():
    """Products of odd sizes and single lines take one algorithm in every layout, whole or in parts, with what they take in or without."""
    os.environ.update(device(devices=2, seed=1))
    with tempfile.TemporaryDirectory() as place:
        wide_heads(place)
        for rows, activation in sampled(((3, "Gelu"), (1, "Relu"), (3, "Relu")), 1):
            path, data = odd_sizes(place, rows, activation)
            for numbers in ([], ["-precision=bf16", "-gradient-type=param"]):
                first = None
                for layout in sampled((["-micro-batches=2"], ["-micro-batches=2", "-tile-products=20k"], ["-micro-batches=2", "-recompute=full"],
                                       ["-micro-batches=1", "-dp=2", "-zero=3"], ["-micro-batches=1", "-dp=2", "-zero=3", "-tile-products=20k"],
                                       ["-micro-batches=2", "-pp=2"]), 3):
                    execute([dsopt, path, "-run", "-quiet", f"-data={data}", *CUDA, *numbers, *layout, "-steps=2", "-reduction-shards=2",
                             "-accumulate=local", "-threads=1", f"-log={place}/log"])
                    end = [json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"]
                    first = first or end
                    check(end == first, f"{rows} rows, {activation}, {numbers}, {layout}: {end}, expected {first}")
    print("odd sizes have one hash over layouts")
