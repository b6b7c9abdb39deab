"""Loaders: their lengths, their shorter last batch, what is left out and said, and where they go on.

usage: loaders.py SOURCE BUILD
"""
import importlib.util
import itertools
import os
import random
import subprocess
import sys
import tempfile
import warnings

from start import source

import numpy as np
import onnx

import dsopt
from dsopt._data import Loader, Steps

folder = tempfile.mkdtemp()
fixed = os.path.join(source, "test", "Models", "mlp", "model.onnx")
arrays = np.load(os.path.join(source, "test", "Models", "mlp", "batches.npz"))
x, labels = arrays["x"].reshape(-1, 32), arrays["labels"].reshape(-1)
common = {"lr": 1e-2, "accumulate": "local"}


def path(name):
    return os.path.join(folder, name)


def check(truth, what):
    if not truth:
        sys.exit(f"wrong: {what}")


def open_model():
    """The model with an open first dimension."""
    proto = onnx.load(fixed)
    del proto.graph.value_info[:]
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim[:1]:
            dim.dim_param = "batch"
    onnx.save(proto, path("open.onnx"))
    return path("open.onnx")


class Batches:
    """What PyTorch's DataLoader says of itself, over the first `rows` rows."""

    def __init__(self, rows, batch_size=8, drop_last=False):
        self.batch_size, self.drop_last, self.sampler = batch_size, drop_last, range(rows)
        self.passes = 0

    def __len__(self):
        rows = len(self.sampler)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def __iter__(self):
        self.passes += 1
        for at in range(len(self)):
            rows = slice(at * self.batch_size, min((at + 1) * self.batch_size, len(self.sampler)))
            yield {"x": x[rows], "labels": labels[rows], "extra": np.array(["text"])}


def rows_of(first, last, *shape):
    return {"x": x[first:last].reshape(*shape, 32), "labels": labels[first:last].reshape(*shape)}


def said(call, *expected):
    """What a call returns, whose warnings are the expected ones and no others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    texts = [str(warning.message) for warning in caught]
    check(len(texts) == len(expected) and all(part in text for part, text in zip(expected, texts)),
          f"said {texts}, expected {expected}")
    check(all(warning.filename == __file__ for warning in caught), "a warning does not point here")
    return result


def fails(call, *words):
    try:
        call()
    except (dsopt.DsoptError, ValueError) as error:
        check(all(word in str(error) for word in words), f"'{error}' lacks one of {words}")
        return
    sys.exit(f"wrong: no error with {words}")


# A model that takes no other number of rows: the last batch is left out, and that is said before a step runs.
seven = dsopt.train(fixed, rows_of(0, 56, 7, 8), **common)
run = said(lambda: dsopt.start(fixed, Batches(62), save=path("ck"), save_weights=path("w"), **common),
           "the last micro-batch has 6 rows instead of 8, and the model takes no other number")
result = said(run.result)
check(result.steps == 7 and result.weights_hash == seven.weights_hash, result)
check(result.weights and os.path.exists(path("ck/step-00000007/manifest.json")), "nothing was written")
check(said(lambda: dsopt.train(fixed, Batches(62, drop_last=True), **common)).weights_hash == seven.weights_hash, "drop_last")
# Nothing says so beforehand: it is said when it comes.
result = said(lambda: dsopt.train(fixed, (item for item in Batches(62)), **common), "the last micro-batch has 6 rows instead of 8")
check(result.weights_hash == seven.weights_hash, result)
# In the middle it is an error, and what was trained is saved.
fails(lambda: dsopt.train(fixed, (item for _ in range(2) for item in Batches(62)), save_weights=path("middle"), **common),
      "micro-batch 7 of the data has 6 rows, the first has 8: only the last one of a pass may have fewer", "epochs=")
check(len(dsopt.read_weights(path("middle"))) == 6, "what was trained is lost")
print("fixed: left out and said", flush=True)

# An open first dimension: a step of its own, with the bits of a program of that size alone.
model = open_model()
result = said(lambda: dsopt.train(model, Batches(62), save=path("open"), **common))
check(result.steps == 8 and result.losses[:7] == seven.losses, result)
said(lambda: dsopt.train(model, rows_of(0, 56, 7, 8), save=path("seven"), **common))
alone = said(lambda: dsopt.train(model, rows_of(56, 62, 1, 6), steps=8, resume=path("seven"), **common), "go 8.0 times through")
check(alone.losses == result.losses[7:] and alone.weights_hash == result.weights_hash, f"{result} against {alone}")
# What is left for a step of 4 is 3 micro-batches and 6 rows: 4 micro-batches of 7, and 2 rows.
layouts = [{"micro_batches": 4}, {"dp": 2, "zero": 2, "micro_batches": 2}, {"dp": 2, "pp": 2, "zero": 3, "micro_batches": 2}]
runs = [said(lambda: dsopt.train(model, Batches(62), reduction_shards=2, save=path(f"k4-{at}"), **layout, **common),
             "the last 2 rows do not fill the 4 micro-batches of 7 rows of its last step") for at, layout in enumerate(layouts)]
check({run.steps for run in runs} == {2} and len({run.weights_hash for run in runs}) == 1, runs)
said(lambda: dsopt.train(model, rows_of(0, 32, 4, 8), reduction_shards=2, micro_batches=4, save=path("four"), **common))
alone = said(lambda: dsopt.train(model, rows_of(32, 60, 4, 7), steps=2, resume=path("four"), **common), "go 2.0 times through")
check(alone.weights_hash == runs[0].weights_hash, f"{runs[0]} against {alone}")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    rows = [dsopt.evaluate(model, rows_of(at, at + 1, 1, 1), resume=path("four"), resume_new_batch=True) for at in range(32, 60)]
check(abs(np.mean(rows) - runs[0].losses[1]) < 1e-5, f"the loss is not the mean over 28 rows: {np.mean(rows)}, {runs[0].losses}")
# Sizes of one's own; each pass ends with such a step.
result = said(lambda: dsopt.train(model, (item for item in Batches(62)), dim={"batch": "8,4"}, **common),
              "the last 2 rows do not fill the 1 micro-batches of 4 rows")
check(result.steps == 8, result)
twice = said(lambda: dsopt.train(model, Batches(62), epochs=2, lr_schedule="cosine", **common))
check(twice.steps == 16 and twice.metrics[0]["run"]["steps"] == 16, twice)
again = said(lambda: dsopt.train(model, Batches(62), steps=16, **common), "16 steps of 1 micro-batches go 2.0 times")
once = said(lambda: dsopt.train(model, Batches(62), **common))
check(again.losses[:8] == once.losses and again.losses[8:] != once.losses, "steps do not go on pass by pass")
print("open: a step of its own", flush=True)

# Lengths: passes, steps beyond the data, schedules.
items = [rows_of(8 * at, 8 * at + 8, 8) for at in range(11)]
result = said(lambda: dsopt.train(fixed, items, epochs=2, micro_batches=4, lr_schedule="linear", **common),
              "the last 3 full micro-batches do not fill a step of 4")
check(result.steps == 4 and result.losses[0] != result.losses[2], result)
gapless = said(lambda: dsopt.train(fixed, items, steps=5, micro_batches=4, **common), "go 1.8 times through the data's 11")
same = said(lambda: dsopt.train(fixed, rows_of(0, 88, 11, 8), steps=5, micro_batches=4, **common),
            "go 1.8 times through the data's 11")
check(gapless.weights_hash == same.weights_hash, "a list and arrays go on differently")
result = said(lambda: dsopt.train(fixed, iter(items), steps=20, micro_batches=4, **common),
              "the data ended: its last 3 micro-batches", "the data ended after 2 of 20 steps")
check(result.steps == 2 and result.status == "ok", result)
fails(lambda: dsopt.train(fixed, iter(items), epochs=2), "epochs=2: an iterator is read once")
fails(lambda: dsopt.train(fixed, items, epochs=2, steps=3), "exclude each other")
fails(lambda: dsopt.train(fixed, items[:2], micro_batches=4), "the data ended after 2 micro-batches, before a step of 4 was full")
fails(lambda: dsopt.train(fixed, items[:2], micro_batches=4, steps=2), "before a step of 4 was full")
fails(lambda: dsopt.train(fixed, []), "it yields not one micro-batch")
check(len(said(lambda: dsopt.train(fixed, items, log_every=5, **common)).losses) == 3, "steps that are not logged")
print("lengths", flush=True)

# Going on: the same bits as without a stop, in the gapless order of steps and pass by pass.
for name, data, options, step in (("steps", items, {"steps": 9, "micro_batches": 2}, 6), ("epochs", items, {"epochs": 3}, 17),
                                  ("open", Batches(62), {"epochs": 2}, 11)):
    which = model if name == "open" else fixed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = dsopt.train(which, data, **options, **common)
        stopped = {**options, "save_every": step, "save": path("go-" + name)}
        dsopt.train(which, data, **stopped, **common)
    part = said(lambda: dsopt.train(which, data, resume=path(f"go-{name}/step-{step:08d}"), **options, **common),
                *(["go 1.6 times"] if name == "steps" else []), "over the data are skipped")
    check(part.weights_hash == whole.weights_hash, f"{name}: {part} against {whole}")
result = said(lambda: dsopt.train(fixed, iter(items), steps=20, resume=path("go-epochs/step-00000017"), **common),
              "whose length is not known, is read from its beginning")
check(result.steps == 20 and len(result.losses) == 3, result)
result = said(lambda: dsopt.train(fixed, items, resume=path("go-epochs/step-00000017"), save_weights=path("done"), **common),
              "17 steps behind it, of 11 in all: nothing is trained")
check(result.status == "ok" and result.losses == [] and result.weights, result)
print("going on", flush=True)

# Orders that generators, counters and the process decide: those of the run that never stopped, at each step and whatever the
# seeds are now; other data is refused.


class Shuffled:
    """Micro-batches in an order that is drawn in each pass; some draw more as they are read, one counts, one is told the pass."""

    def __init__(self, kind, length=5, offset=0):
        self.kind, self.length, self.offset = kind, length, offset
        self.generator = {"random": random.Random(3), "numpy": np.random.default_rng(3), "old": np.random.RandomState(3)}.get(kind)
        self.passes = self.epoch = 0
        if kind == "set_epoch":
            self.set_epoch = lambda epoch: setattr(self, "epoch", epoch)
        if kind == "no length":
            self.generator = random.Random(3)

    def __len__(self):
        if self.kind == "no length":
            raise TypeError("no length")
        return self.length

    def __iter__(self):
        self.passes += 1
        order = list(range(self.length))
        if self.generator is not None:
            self.generator.shuffle(order)
        elif self.kind == "process":
            random.shuffle(order)
            np.random.shuffle(order)
        else:
            turn = self.epoch if self.kind == "set_epoch" else self.passes
            order = order[turn:] + order[:turn]
        for at in order:
            noise = np.float32(0 if self.kind != "process" else random.random() + np.random.rand())
            yield {"x": x[8 * at:8 * at + 8] + noise, "labels": labels[8 * at:8 * at + 8] * 0 + self.offset}
        if self.generator is not None:
            self.generator.shuffle(order)  # at the end of a pass, as PyTorch's RandomSampler


def seed(number):
    random.seed(number)
    np.random.seed(number)


def read(kind, place="", step=0, count=13, micro_batches=2, **other):
    """The steps of a run, each with the place that a checkpoint after it keeps."""
    loader = Loader(Shuffled(kind, **other), "")
    loader.order.begin(place, "run")
    loader.open()
    cut = Steps(loader, micro_batches, steps=count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut.skip(step, step * micro_batches, "run")
    return [([one["x"].tobytes() for one in items], cut.place()) for items in itertools.islice(cut, count - step)]


for kind in ("random", "numpy", "old", "process", "counter", "set_epoch", "no length"):
    seed(1)
    whole = read(kind)
    check(len(whole) == 13 and len({str(step) for step, _ in whole}) > 5, f"{kind}: the same steps again and again")
    for at in range(1, 13):
        seed(at + 2)
        rest = read(kind, whole[at - 1][1], at)
        check([step for step, _ in rest] == [step for step, _ in whole[at:]], f"{kind}: another order after step {at}")
        check(rest[-1][1] == whole[-1][1], f"{kind}: a run that goes on says another place")
        # Both passes that were read and the one that is read in part show it.
        fails(lambda: read(kind, whole[at - 1][1], at, offset=1), f"after {(2 * at - 1) % 5 + 1} micro-batches of pass",
              "the loader now yields others", "iter(loader)")
for kind in ("process", "random"):
    data = path(f"shuffled-{kind}")
    options = {"steps": 12, **common}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed(1)
        whole = dsopt.train(fixed, Shuffled(kind), save=data, save_every=1, save_keep=99, **options)
        for at in (3, 5, 8, 11):
            part = dsopt.train(fixed, Shuffled(kind), resume=f"{data}/step-{at:08d}", save=data + "-on", save_existing="aside", **options)
            check(part.weights_hash == whole.weights_hash, f"{kind}: {part} against {whole}")
        again = dsopt.train(fixed, Shuffled(kind), resume=data + "-on", steps=13, lr=1e-2, accumulate="local")
        longer = dsopt.train(fixed, Shuffled(kind), resume=data, steps=13, lr=1e-2, accumulate="local")
        check(again.weights_hash == longer.weights_hash, "a run that was resumed twice")
        fails(lambda: dsopt.train(fixed, Shuffled(kind, offset=1), resume=data, steps=13, **common), "the loader now yields others")
        dsopt.train(fixed, iter(Shuffled(kind, offset=1)), resume=data, steps=13, **common)
print("orders", flush=True)

# Evaluation: of arrays, of loaders with batches of any size.
short = "data: the last 6 of 62 rows do not fill a micro-batch of 8"
whole = said(lambda: dsopt.evaluate(fixed, rows_of(0, 56, 7, 8)))
for data in (rows_of(0, 62, 62), Batches(62), Batches(62, batch_size=20)):
    check(said(lambda: dsopt.evaluate(fixed, data), short) == whole, data)
check(said(lambda: dsopt.evaluate(model, Batches(64))) == dsopt.evaluate(fixed, rows_of(0, 64, 8, 8)), "an open model's evaluation")
seen = []
result = said(lambda: dsopt.train(fixed, Batches(32), eval_data=Batches(62, batch_size=20), eval_every=2, on_step=seen.append,
                                  lr=0, weight_decay=0), "eval_" + short)
check(result.eval_losses == [whole, whole], result)
check(dsopt.train(fixed, Batches(32), eval_data=rows_of(0, 56, 7, 8), lr=0, weight_decay=0).eval_losses == [whole], "eval_data=dict")
fails(lambda: dsopt.evaluate(fixed, [items[0], {"x": x[:8]}]), "micro-batch 1 of the data has nothing for 'labels'")
print("evaluation", flush=True)

# Inputs bound to values: what is yielded leaves them out, by name and by place.
proto = onnx.load(fixed)
float_type, label = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
logits = next(node for node in proto.graph.node if node.op_type == "SoftmaxCrossEntropyLoss")
proto.graph.node.insert(list(proto.graph.node).index(logits), onnx.helper.make_node("Div", [logits.input[0], "temperature"], ["warm"]))
proto.graph.node.insert(0, onnx.helper.make_node("Reshape", ["x", "sizes"], ["shaped"]))
proto.graph.node[1].input[0] = "shaped"
logits.input[0] = "warm"
proto.graph.input.insert(0, label("temperature", float_type, []))
proto.graph.input.extend([label("sizes", onnx.TensorProto.INT64, [2])])
onnx.save(proto, path("settings.onnx"))
bound = {"temperature": 1.0, "sizes": np.array([8, 32])}
plain = dsopt.train(fixed, items[:4], **common)
for given in (bound, {"temperature": np.float32(1), "sizes": [8, 32]}):
    check(dsopt.train(path("settings.onnx"), items[:4], input=given, **common).weights_hash == plain.weights_hash, given)
pairs = [(one["x"], one["labels"]) for one in items[:4]]
check(dsopt.train(path("settings.onnx"), pairs, input=bound, **common).weights_hash == plain.weights_hash, "by place")
arrays = {name: np.stack([one[name] for one in items[:4]]) for name in items[0]}
check(dsopt.evaluate(path("settings.onnx"), arrays, input=bound) == dsopt.evaluate(fixed, items[:4]), "an evaluation with bound inputs")
check(dsopt.plan(path("settings.onnx"), data=arrays, input=bound)["bound_inputs"] == {"sizes": "8,32", "temperature": "1.0"}, "a plan with bound inputs")
fails(lambda: dsopt.train(path("settings.onnx"), [{**items[0], "temperature": np.float32(1)}], input=bound),
      "input 'temperature' is bound to a value (input=), and the data has it as well")
fails(lambda: dsopt.train(path("settings.onnx"), {**arrays, "temperature": np.ones(4, np.float32)}, input=bound),
      "-input=temperature=1.0 binds an input of which the data has an array as well")
print("bound inputs", flush=True)

# A disk that is full, for which a limit of files stands: the file is named, and what chooses its folder.
limited = """import resource, signal, sys
import numpy as np, dsopt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
data = {"x": np.zeros((4, 64, 32), np.float32), "labels": np.zeros((4, 64), np.int64)}
for given in (data, [{name: value[0] for name, value in data.items()}]):
    try:
        dsopt.train(sys.argv[1], given)
        print("none")
    except OSError as error:
        print(error)
"""
os.mkdir(path("full"))
done = subprocess.run([sys.executable, "-c", limited, open_model()], capture_output=True, text=True, env={**os.environ, "TMPDIR": path("full")})
said_of_it = done.stdout.splitlines()
check(len(said_of_it) == 2 and all("temporary files are in " + path("full") in line and "TMPDIR" in line for line in said_of_it),
      done.stdout + done.stderr)

# What exporting needs is said.
if importlib.util.find_spec("torch") is None:
    try:
        dsopt.export(None, {}, path("none.onnx"))
    except ImportError as error:
        check("pip install 'dsopt[export]'" in str(error), error)
print("passed")
