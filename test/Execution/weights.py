"""-weights=FILE and -init: the same start in every layout, PyTorch's names and orientation,
and a message for every file that does not fit.

usage: weights.py DSOPT
"""
import json
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from runs import MPIRUN, check, execute, model, train, varied
from saved_weights import safetensors

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")
folder = tempfile.mkdtemp()
TYPES = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint16): "BF16", np.dtype(np.float64): "F64", np.dtype(np.int64): "I64"}


def write(name, tensors, header=None, cut=0):
    """A safetensors file; uint16 stands for bf16."""
    entries, offset = {"__metadata__": {"format": "pt"}}, 0
    for key, value in tensors.items():
        entries[key] = {"dtype": TYPES[value.dtype], "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    entries.update(header or {})
    text = json.dumps(entries).encode()
    content = struct.pack("<Q", len(text)) + text + b"".join(value.tobytes() for value in tensors.values())
    with open(f"{folder}/{name}", "wb") as file:
        file.write(content[: len(content) - cut])
    return f"{folder}/{name}"


layouts = [["-dp=1", "-micro-batches=4"], ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"], ["-dp=4", "-zero=1", "-micro-batches=1"],
           ["-dp=4", "-zero=2", "-micro-batches=1", "-threads=2"], ["-pp=4", "-micro-batches=4"]]


def same(title, *options, name="gpt2-tiny", more=(), **keywords):
    runs = [train(dsopt, name, *layout, "-reduction-shards=4", *options, **keywords) for layout in [*layouts, *more]]
    check(len({(run.hash, str(run.loss_text)) for run in runs}) == 1, f"{title}: layouts differ: {[run.hash for run in runs]}")
    print(f"{title}: {len(runs)} layouts, {runs[0].hash[:16]}, losses {', '.join(runs[0].loss_text)}", flush=True)
    return runs[0]


# What a run saved is where another starts.
trained = f"{folder}/trained.safetensors"
first = train(dsopt, "gpt2-tiny", *layouts[1], "-steps=3", "-lr=3e-3", f"-save-weights={trained}")
still = train(dsopt, "gpt2-tiny", "-steps=1", "-lr=0", "-weight-decay=0", f"-weights={trained}")
check(still.hash == first.hash, "a run from a file has other weights than the file")
went_on = same("from a file", "-steps=2", f"-weights={trained}")
check(went_on.losses[0] < first.losses[0], "a run from a file starts elsewhere")
same("from a file, bf16", "-steps=2", f"-weights={trained}", "-precision=bf16")
check(train(dsopt, "gpt2-tiny", *layouts[1], "-reduction-shards=4", "-steps=2", f"-weights={trained}", prefix=[*MPIRUN, "4"]).hash == went_on.hash,
      "mpirun starts elsewhere")

# Narrow types are widened.
values = {key: np.array(value) for key, value in safetensors(trained).items()}
halves = {key: value.astype(np.float16) if value.dtype == np.float32 else value for key, value in values.items()}
wide = {key: value.astype(np.float32) if value.dtype == np.float16 else value for key, value in halves.items()}
brains = {key: (value.view(np.uint32) >> 16).astype(np.uint16) if value.dtype == np.float32 else value for key, value in values.items()}
broad = {key: (value.astype(np.uint32) << 16).view(np.float32) if value.dtype == np.uint16 else value for key, value in brains.items()}
for name, narrow, full in (("F16", halves, wide), ("BF16", brains, broad)):
    got, expected = (train(dsopt, "gpt2-tiny", *layouts[1], "-steps=1", f"-weights={write('types', tensors)}") for tensors in (narrow, full))
    check(got.hash == expected.hash, f"{name} is not widened")

# PyTorch's names, with matrices the other way round.
mlp, mlp_data = model("mlp")
graph = onnx.load(mlp)
names = [entry.name for entry in graph.graph.initializer]
shapes = {entry.name: list(entry.dims) for entry in graph.graph.initializer}
turned = [name for name in names if len(shapes[name]) == 2]
check(turned, "the model has no matrix")
entry = graph.metadata_props.add()
entry.key, entry.value = "dsopt.parameters", json.dumps([{"onnx": name, "torch": f"net.{name}", "transposed": name in turned} for name in names])
onnx.save(graph, f"{folder}/mapped.onnx")
mapped, plain = f"{folder}/mapped.safetensors", f"{folder}/plain.safetensors"


def mlp_run(*options, which=f"{folder}/mapped.onnx"):
    log = f"{folder}/log.jsonl"
    execute([dsopt, which, "-run", f"-data={mlp_data}", f"-log={log}", "-quiet", *options])
    return json.loads(open(log).read().splitlines()[-1])["end"]["weights_hash"]


target = mlp_run("-steps=2", f"-save-weights={mapped}")
check(all(list(value.shape) == (shapes[key[4:]][::-1] if key[4:] in turned else shapes[key[4:]]) for key, value in safetensors(mapped).items()),
      "PyTorch's orientation is not written")
check(mlp_run("-steps=2", f"-save-weights={plain}", which=mlp) == target, "the map of names changes training")
for layout in ([], ["-dp=2", "-zero=3"], ["-dp=3", "-zero=1"], ["-dp=7", "-zero=3", "-micro-batches=1"], ["-pp=2", "-threads=3"]):
    for file in (mapped, plain):
        check(mlp_run("-steps=1", "-lr=0", "-weight-decay=0", f"-weights={file}", *layout) == target, f"{file} {layout}: other weights than the file's")
print(f"PyTorch's names and orientation: {target[:16]}", flush=True)


def refused(title, command, *words):
    done = subprocess.run(varied(command), capture_output=True, text=True, timeout=60)
    text = done.stdout + done.stderr
    check(done.returncode == 1, f"{title}: status {done.returncode}, expected 1\n{text}")
    check(text.count("error: ") == 1 and all(word in text for word in words), f"{title}: expected {words}, got\n{text}")


def start(file, *options):
    return [dsopt, path, "-run", f"-data={data}", "-steps=1", f"-weights={file}", *options]


key = next(name for name, value in values.items() if value.ndim == 2 and value.dtype == np.float32)
size = "x".join(map(str, values[key].shape))
lacks = {name: value for name, value in values.items() if name != key}
for layout in ([], ["-dp=2", "-pp=2", "-zero=3"]):
    refused("missing", start(write("missing", lacks), *layout), "lacks", key)
    refused("left over", start(write("more", {**values, "attn.mask": np.zeros(3, np.float32)}), *layout), "attn.mask", "does not have")
    refused("renamed", start(write("renamed", {**lacks, "other": values[key]}), *layout), "lacks", key, "the model has no 'other'")
    refused("shape", start(write("shape", {**values, key: values[key][:-1]}), *layout), key, size)
    refused("type", start(write("type", {**values, key: values[key].astype(np.float64)}), *layout), key, "F64", "F32")
    refused("cut", start(write("cut", values, cut=5), *layout), "does not fit the file")
refused("no file", start(f"{folder}/absent"), "no file or folder")
refused("no safetensors", start(path), "is no safetensors file")
refused("empty", start("/dev/null"), "is no safetensors file")
for bad in ({"dtype": "F32"}, {"dtype": "F32", "shape": [2 ** 62, 4], "data_offsets": [0, 16]}, {"dtype": "F32", "shape": [1], "data_offsets": [-8, -4]},
            {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}, {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}, 7):
    refused(f"an entry {bad}", start(write("entry", values, header={key: bad})), "the entry of", key)

# Drawn weights.
drawn = f"{folder}/drawn.safetensors"
init = same("-init=normal:0.02", "-init=normal:0.02", "-steps=2", f"-save-weights={drawn}")
same("-init=normal:0.5, bf16", "-init=normal:0.5", "-steps=2", "-precision=bf16")
train(dsopt, "gpt2-tiny", "-init=normal:0.02", "-steps=1", "-lr=0", "-weight-decay=0", f"-save-weights={drawn}")
other = train(dsopt, "gpt2-tiny", "-init=normal:0.02", "-seed=1", "-steps=2", *layouts[1], "-reduction-shards=4")
check(other.hash != init.hash, "another seed draws the same")
originals = {entry.name: onnx.numpy_helper.to_array(entry) for entry in onnx.load(path).graph.initializer}
matrices = []
for name, value in safetensors(drawn).items():
    value = np.array(value)
    if value.ndim >= 2 and value.dtype == np.float32:
        check(abs(value.std() / 0.02 - 1) < 0.1 and abs(value.mean()) < 0.002 and len(np.unique(value)) > 0.9 * value.size,
              f"{name}: mean {value.mean()}, deviation {value.std()}")
        matrices.append(value.ravel())
    elif name in originals:
        check(np.array_equal(value, originals[name]), f"{name} does not keep the model's values")
everything = np.concatenate(matrices) / 0.02
quantiles = np.quantile(everything, [0.0228, 0.1587, 0.5, 0.8413, 0.9772])
check(np.allclose(quantiles, [-2, -1, 0, 1, 2], atol=0.05), f"not normal: {quantiles}")
check(max(abs(np.corrcoef(everything[:-lag], everything[lag:])[0, 1]) for lag in (1, 2, 64)) < 0.02, "neighbours are correlated")
for value in ("normal:0", "normal:-1", "normal:x", "normal:nan", "uniform", "normal:", "normal:1,2"):
    refused(f"-init={value}", [dsopt, path, f"-init={value}", "-o", f"{folder}/none"], f"-init={value}", "normal:X")
program = f"{folder}/train"
execute([dsopt, path, *layouts[1], "-reduction-shards=4", "-init=normal:0.02", "-steps=2", "-o", program])
check(train(dsopt, "gpt2-tiny", program=program).hash == init.hash, "an executable draws other weights")
check(train(dsopt, "gpt2-tiny", f"-weights={trained}", program=program).hash == went_on.hash, "an executable starts elsewhere than from the file")
refused("-init of an executable", [program, f"-data={data}", "-init=model"], "-init is compiled in", "dsopt ")
print("drawn weights are normal; wrong files and values are refused")
