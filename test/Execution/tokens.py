"""Token files of every format give the bits of the same windows in an .npz file;
-shuffle takes each window once an epoch, in one order for all layouts; what is
wrong is refused with its place.

usage: tokens.py DSOPT
"""
import os
import struct
import sys
import tempfile

import numpy as np

from runs import check, execute, model, train

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="tokens-")
path, batches = model("gpt2-tiny")
shape = np.load(batches)["input_ids"].shape[-2:]
ROWS, LENGTH = shape
WINDOWS = 6 * ROWS
generator = np.random.default_rng(7)
tokens = generator.integers(0, 200, WINDOWS * LENGTH + 1)


def place(name):
    return os.path.join(folder, name)


def write(name, *parts):
    os.makedirs(os.path.dirname(place(name)), exist_ok=True)
    with open(place(name), "wb") as file:
        for part in parts:
            file.write(part)
    return place(name)


def llm_c(name, magic, kind, values, count=None):
    head = np.zeros(256, np.int32)
    head[:3] = magic, 1 if kind == np.uint16 else 7, len(values) if count is None else count
    return write(name, head.tobytes(), values.astype(kind).tobytes())


def megatron(name, values, documents=3):
    lengths = [len(part) for part in np.array_split(values, documents)]
    starts = np.cumsum([0, *lengths[:-1]]) * 2
    write(name.replace(".bin", ".idx"), b"MMIDIDX\0\0", struct.pack("<QBQQ", 1, 8, documents, documents + 1),
          np.array(lengths, np.int32).tobytes(), np.array(starts, np.int64).tobytes(),
          np.arange(documents + 1, dtype=np.int64).tobytes())
    return write(name, values.astype(np.uint16).tobytes())


def arrays(shift):
    inputs = tokens[: WINDOWS * LENGTH].reshape(-1, ROWS, LENGTH)
    labels = tokens[shift : WINDOWS * LENGTH + shift].reshape(-1, ROWS, LENGTH)
    np.savez(place(f"same{shift}.npz"), input_ids=inputs, labels=labels)
    return place(f"same{shift}.npz")


def losses(data, *options):
    return train(dsopt, "gpt2-tiny", *options, data=data).loss_text


raw = write("raw.bin", tokens.astype(np.uint16).tobytes())
wide = write("wide.bin", tokens.astype(np.uint32).tobytes())
cut = 2 * ROWS * LENGTH
write("shards/train_000.bin", tokens[:cut].astype(np.uint16).tobytes())
write("shards/train_001.bin", tokens[cut:].astype(np.uint16).tobytes())
for shift, options in ((0, ()), (1, ("-labels=shifted",))):
    expected = losses(arrays(shift))
    check(len(expected) == 6, f"{len(expected)} steps, expected 6")
    for data, more in ((raw, ()), (wide, ("-token-bytes=4",)), (llm_c("gpt2.bin", 20240520, np.uint16, tokens), ()),
                       (llm_c("llama.bin", 20240801, np.uint32, tokens), ()), (megatron("mega.bin", tokens), ())):
        got = losses(data, *options, *more)
        check(got == expected, f"{data} {options}: {got}, expected {expected}")
for data in (place("shards"), place("shards/*.bin"), f"{place('shards/train_000.bin')},{place('shards/train_001.bin')}"):
    check(losses(data) == losses(arrays(0)), f"{data} gives other losses")
os.makedirs(place("npy"))
np.save(place("npy/a.npy"), tokens[:cut])
np.save(place("npy/b.npy"), tokens[cut:].astype(np.uint16))
np.save(place("wide.npy"), tokens.astype(np.int32))
for data in (place("npy"), place("wide.npy")):
    check(losses(data) == losses(arrays(0)), f"{data} gives other losses")
print("raw, llm.c, Megatron, NumPy; a folder, a glob and a list: the bits of the same arrays", flush=True)

# With a learning rate of 0 the loss of a step is that of its windows: an epoch's losses are a permutation.
order = losses(arrays(0), "-lr=0", "-weight-decay=0")
shuffled = losses(arrays(0), "-lr=0", "-weight-decay=0", "-shuffle", "-epochs=2")
check(sorted(shuffled[:6]) == sorted(order) and sorted(shuffled[6:]) == sorted(order), f"{shuffled} is no permutation of {order}")
check(shuffled[:6] != order and shuffled[:6] != shuffled[6:], f"two epochs in the order {shuffled}")
one = train(dsopt, "gpt2-tiny", "-shuffle", "-seed=5", "-micro-batches=2", "-epochs=2", data=raw)
two = train(dsopt, "gpt2-tiny", "-shuffle", "-seed=5", "-dp=2", "-zero=2", "-accumulate=local", "-reduction-shards=2", "-epochs=2",
            data=raw)
single = train(dsopt, "gpt2-tiny", "-shuffle", "-seed=5", "-micro-batches=2", "-reduction-shards=2", "-epochs=2", data=raw)
check(two.loss_text == single.loss_text and two.hash == single.hash, "layouts shuffle differently")
other = train(dsopt, "gpt2-tiny", "-shuffle", "-seed=6", "-micro-batches=2", "-epochs=2", data=raw)
check(other.loss_text != one.loss_text, "seeds shuffle equally")
print("shuffled: each micro-batch once an epoch, the same in all layouts", flush=True)


def refused(expected, data, *options):
    done = execute([dsopt, path, "-run", f"-data={data}", "-quiet", *options], status=1)
    check(expected in done.stderr and done.stderr.count("error:") == 1, f"{data}: {done.stderr}\nexpected: {expected}")


bad = tokens.astype(np.uint16)
bad[LENGTH + 3] = 60000
write("bad.bin", bad.tobytes())
refused(f"bad.bin, token {LENGTH + 3} at byte {2 * LENGTH + 6}: is 60000, expected 0 or more and less than 512", place("bad.bin"))
refused(f"step 0, micro-batch {1 // ROWS}: {place('bad.bin')}, token {LENGTH + 3} at byte {2 * LENGTH + 6}: input_ids",
        place("bad.bin"), "-token-bytes=2")
np.save(place("negative.npy"), np.where(bad == 60000, -1, tokens))
refused(f"negative.npy, token {LENGTH + 3} at byte", place("negative.npy"))

# What is no file of tokens is said to be what it seems.
text = b'{"text": "hello world, this is a line of JSON"}\n' * 200
as_is = "-token-bytes=2 reads it as it is"
for name, content, what in (("c.jsonl", text, "seems to be JSON, not tokens"), ("c.txt", "Größe und Maß\n".encode() * 99, "seems to be text"),
                            ("c.bin", text, "seems to be JSON"), ("c.gz", b"\x1f\x8b\x08" + text, "compressed by gzip: unpack it"),
                            ("c.zst", b"\x28\xb5\x2f\xfd" + text, "compressed by zstd"), ("c.parquet", b"PAR1" + text, "a Parquet file"),
                            ("c.pt", open(arrays(0), "rb").read(), "a zip archive: an .npz file has to be named so"),
                            ("wide2.bin", tokens.astype(np.uint32).tobytes(), "integers of 4 bytes"),
                            ("wide4.bin", tokens.astype(np.int64).tobytes(), "integers of 8 bytes")):
    refused(what, write(name, content))
    refused(as_is, place(name))
check(losses(place("wide2.bin"), "-token-bytes=4") == losses(arrays(0)), "-token-bytes=4 reads other tokens")
check(len(losses(write("zeros.bin", np.zeros(WINDOWS * LENGTH, np.uint16).tobytes()))) == 6, "tokens that are all 0 are taken for wider ones")
np.save(place("rows.npy"), tokens[:-1].reshape(-1, LENGTH))
refused("expected one axis of integers", place("rows.npy"))
np.save(place("floats.npy"), tokens.astype(np.float32))
refused("is a .npy file of f32", place("floats.npy"))
open(place("cut.npy"), "wb").write(open(place("wide.npy"), "rb").read()[:-2])
refused("is shorter than its shape", place("cut.npy"))
refused("holds 1 windows of", write("short.bin", tokens[:LENGTH].astype(np.uint16).tobytes()))
refused("expected a multiple of 2", write("odd.bin", b"123"))
refused("holds no tokens", write("empty.bin"))
refused(f"its header says {len(tokens) - 1} tokens", llm_c("long.bin", 20240520, np.uint16, tokens, len(tokens) - 1))
megatron("more.bin", tokens)
open(place("more.bin"), "ab").write(b"12")
refused(f"says {len(tokens)} tokens of 2 bytes, but the file has", place("more.bin"))
refused("its header says 100000 tokens", write("cut.bin", np.array([20240520, 1, 100000] + [0] * 253, np.int32).tobytes()))
refused("cannot be read: No such file", place("none.bin"))
refused("no file matches", place("none*.bin"))
refused("holds no .bin and no .npy files", tempfile.mkdtemp(dir=folder))
refused("-token-input=NAME names it", raw, "-token-input=words")
refused("-label-input=labels takes labels", raw, "-label-input=targets")
print("what is wrong with token files is refused with its place")
