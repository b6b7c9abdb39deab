"""Several sizes of a dimension in one program: each step takes the smallest that its micro-batches fit.

usage: sizes.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute, model, relative

dsopt = sys.argv[1]
random = np.random.default_rng(7)
VOCABULARY, WIDTH, ROWS = 50, 16, 2


def save_model(path):
    """Attention over a sentence, masked, and a loss at each token; names the dimension anew in each input."""

    def f(name, *shape):
        return numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)

    def c(name, value):
        return numpy_helper.from_array(np.array(value, np.float32), name)

    nodes = [
        helper.make_node("Gather", ["embedding", "input_ids"], ["x"]),
        helper.make_node("MatMul", ["x", "query"], ["q"]),
        helper.make_node("Transpose", ["x"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Cast", ["attention_mask"], ["shown"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "shown"], ["hidden"]),
        helper.make_node("Mul", ["hidden", "low"], ["bias"]),
        helper.make_node("Unsqueeze", ["bias", "axis"], ["rowwise"]),
        helper.make_node("Add", ["scores", "rowwise"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["y"]),
        helper.make_node("MatMul", ["y", "head"], ["logits"]),
        helper.make_node("Transpose", ["logits"], ["by_class"], perm=[0, 2, 1]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["by_class", "labels"], ["loss"], ignore_index=-100),
    ]

    def tokens(name, dim):
        return helper.make_tensor_value_info(name, TensorProto.INT64, [ROWS, dim])

    graph = helper.make_graph(
        nodes, "attention", [tokens("input_ids", "seq"), tokens("attention_mask", "keys"), tokens("labels", "seq")],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
        [f("embedding", VOCABULARY, WIDTH), f("query", WIDTH, WIDTH), f("head", WIDTH, VOCABULARY),
         c("one", 1), c("low", -1e9), numpy_helper.from_array(np.array([1], np.int64), "axis")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def sentences(lengths, width):
    """One micro-batch for each length, padded to `width`."""
    ids = random.integers(1, VOCABULARY, (len(lengths), ROWS, width))
    mask = np.zeros_like(ids)
    for at, length in enumerate(lengths):
        mask[at, 0, :length] = 1
        mask[at, 1, :max(1, length - 3)] = 1
    return {"input_ids": ids * mask, "attention_mask": mask, "labels": np.where(mask, ids, -100)}


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.onnx")
    save_model(path)
    run_number = 0

    def train(data, *options, status=0, dims="8,16,32", program=None):
        global run_number
        run_number += 1
        npz, log = os.path.join(folder, "data.npz"), os.path.join(folder, f"{run_number}.jsonl")
        np.savez(npz, **data)
        command = [program] if program else [dsopt, path, "-run", f"-dim=seq={dims}", f"-dim=keys={dims}"]
        done = execute([*command, f"-data={npz}", "-lr=0.01", f"-log={log}", *options], status)
        return Run(log) if status == 0 else done

    # Steps of one micro-batch: sizes 8, 32, 16, 8, 16 are taken; losses are those of one size.
    mixed = sentences([5, 30, 9, 8, 16], 32)
    one, several = train(mixed, dims="32"), train(mixed, "-report=kernels")
    check(relative(several.losses, one.losses) < 1e-5, f"sizes change losses: {several.losses} against {one.losses}")
    # A step is the same as in a program of that size alone.
    for length, size in ((5, 8), (12, 16), (30, 32)):
        short = {name: array[..., :size] for name, array in sentences([length] * 3, 32).items()}
        alone, within = train(short, dims=str(size)), train(short)
        check(alone.loss_text == within.loss_text and alone.hash == within.hash,
              f"length {length}: {within.loss_text} with sizes 8, 16, 32, {alone.loss_text} with {size}")

    # The same bits in all layouts: a step takes the size of its longest micro-batch.
    steps = sentences([5, 7, 3, 8, 5, 30, 2, 9, 12, 16, 4, 10], 32)
    layouts = [["-dp=1", "-micro-batches=4"], ["-dp=2", "-zero=3", "-micro-batches=2"], ["-dp=4", "-zero=1", "-micro-batches=1", "-recompute=full"],
               ["-dp=2", "-pp=2", "-zero=2", "-micro-batches=2", "-grad-clip=1"], ["-pp=2", "-micro-batches=4", "-grad-clip=1"]]
    runs = [train(steps, *layout, "-reduction-shards=4", f"-eval-data={os.path.join(folder, 'data.npz')}") for layout in layouts]
    for group in (runs[:3], runs[3:]):
        check(len({(tuple(run.loss_text), run.hash) for run in group}) == 1, f"layouts differ: {[r.loss_text for r in group]}")
    check(relative(runs[0].losses, train(steps, *layouts[0], "-reduction-shards=4", dims="32").losses) < 1e-5, "sizes change losses of layouts")
    # Updates lag at each size.
    late = [train(steps, *layout, "-reduction-shards=4", "-delayed-update=1", "-offload-optimizer=cpu") for layout in layouts[:3]]
    check(len({(tuple(run.loss_text), run.hash) for run in late}) == 1 and late[0].loss_text[:2] == runs[0].loss_text[:2]
          and late[0].loss_text[2] != runs[0].loss_text[2], f"updates that lag: {[run.loss_text for run in late]}")
    # Sequence shards of each size.
    cut = [train(steps, "-micro-batches=4", "-sequence-shards=4", *words.split()) for words in ("-sp=1", "-sp=2 -zero=3", "-sp=4")]
    check(len({(tuple(run.loss_text), run.hash) for run in cut}) == 1 and relative(cut[0].losses, runs[0].losses) < 1e-5, f"sequence shards: {[run.loss_text for run in cut]}")
    sizes = [step["sent_bytes"] for step in runs[4].steps]
    check(sizes[0][0] < sizes[2][0] < sizes[1][0], f"steps of 8, 32, 16 send {sizes}")

    # Data of another size is filled up where that is asked for, and refused where it is not or cannot be.
    odd = {name: array[..., :20] for name, array in sentences([20, 18], 32).items()}
    padded = {name: np.pad(array, [(0, 0), (0, 0), (0, 12)], constant_values=-100 if name == "labels" else 0) for name, array in odd.items()}
    check(train(odd, "-pad").loss_text == train(padded).loss_text, "-pad is not padding by hand")
    check("-pad fills them up" in train(odd, status=1).stderr, "micro-batches of 20 are taken without -pad")
    long = {name: np.pad(array, [(0, 0), (0, 0), (0, 20)]) for name, array in odd.items()}
    check("expected at most 32" in train(long, status=1).stderr, "micro-batches of 40 are taken")
    uneven = dict(padded, labels=padded["labels"][..., :16])
    check("as other arrays have" in train(uneven, status=1).stderr, "arrays of different sizes are taken")

    # Ahead of time; sizes that are no list together; the first dimension.
    program = os.path.join(folder, "train")
    execute([dsopt, path, "-dim=seq=8,16,32", "-dim=keys=32,16,8", "-o", program])
    check(train(mixed, program=program).loss_text == several.loss_text, "the executable differs")
    done = execute([dsopt, path, "-dim=seq=8,16", "-dim=keys=8,32", "-plan"], 1)
    check("they change together" in done.stderr, done.stderr)
    done = execute([dsopt, path, "-dim=seq=8,0", "-dim=keys=8", "-plan"], 1)
    check("whole numbers of 1 or more" in done.stderr, done.stderr)
    done = execute([dsopt, path, "-dim=seq=3,8", "-dim=keys=3,8", "-sp=4", "-plan"], 1)
    check("has 3 positions, fewer than the 4 sequence shards" in done.stderr, done.stderr)
    print("sizes 8, 16, 32:", " ".join(several.loss_text))

    # Predictions: all micro-batches at the size of the data's arrays, which outputs have.
    def predict(data, *options, dims="8,16,32", status=0, outputs=("logits", "p", "masked")):
        npz, file = os.path.join(folder, "data.npz"), os.path.join(folder, "outputs.npz")
        np.savez(npz, **data)
        done = execute([dsopt, scored, "-predict", f"-dim=seq={dims}", f"-dim=keys={dims}", f"-data={npz}", f"-save-outputs={file}",
                        *[f"-outputs={name}" for name in outputs], "-quiet", *options], status)
        return done if status else (dict(np.load(file)), open(file, "rb").read())

    scored = os.path.join(folder, "scored.onnx")
    graph = onnx.load(path)
    graph.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("logits", "p", "masked"))
    onnx.save(graph, scored)
    for size in (8, 16):
        short = {name: array[..., :size] for name, array in sentences([5, 7, size, 2, size - 1], 32).items() if name != "labels"}
        alone, _ = predict(short, dims=str(size))
        files = [predict(short, *layout) for layout in ([], ["-dp=2", "-pp=2", "-zero=3"])]
        check(len({file for _, file in files}) == 1, f"layouts predict others at {size}")
        check(files[0][0]["logits"].shape == (5, ROWS, size, VOCABULARY) and files[0][0]["p"].shape == (5, ROWS, size, size), f"{files[0][0]['p'].shape}")
        check(all(np.array_equal(files[0][0][name], alone[name]) for name in alone), f"predictions at {size} are not those of a program of that size")
        # Lists of rows, the last micro-batch of which is not full.
        rows = {name: array.reshape(-1, size)[:7] for name, array in short.items()}
        listed, _ = predict(rows, "-dp=2")
        check(listed["logits"].shape == (7, size, VOCABULARY) and np.array_equal(listed["logits"], alone["logits"].reshape(-1, size, VOCABULARY)[:7]), f"rows at {size}")
    masked = {name: value for name, value in odd.items() if name != "labels"}
    filled = {name: np.pad(value, [(0, 0), (0, 0), (0, 12)]) for name, value in masked.items()}
    check("-pad fills them up" in predict(masked, status=1).stderr, "arrays of 20 are predicted without -pad")
    check(predict(masked, "-pad")[1] == predict(filled)[1], "-pad is not padding by hand")
    program = os.path.join(folder, "predictor")
    execute([dsopt, scored, "-predict", "-outputs=logits", "-dim=seq=8,16", "-dim=keys=8,16", "-dp=2", "-o", program])
    np.savez(os.path.join(folder, "data.npz"), **{name: array[..., :8] for name, array in filled.items()})
    execute([program, f"-data={folder}/data.npz", f"-save-outputs={folder}/by.npz", "-quiet"])
    check(np.load(os.path.join(folder, "by.npz"))["logits"].shape == (2, ROWS, 8, VOCABULARY), "an executable")

    # The first dimension: the rows of a micro-batch. Lists of rows are cut by the largest.
    mlp = onnx.load(model("mlp")[0])
    del mlp.graph.value_info[:]
    for value in (*mlp.graph.input, *mlp.graph.output):
        for dim in value.type.tensor_type.shape.dim[:1]:
            dim.dim_param = "batch"
    onnx.save(mlp, os.path.join(folder, "rows.onnx"))
    data = np.load(model("mlp")[1])
    rows = {name: data[name].reshape(-1, *data[name].shape[3:]) for name in data.files}

    def train_rows(shape, *options, status=0):
        npz, log = os.path.join(folder, "rows.npz"), os.path.join(folder, "rows.jsonl")
        count = int(np.prod(shape))
        np.savez(npz, **{name: value[:count].reshape(*shape, *value.shape[1:]) for name, value in rows.items()})
        done = execute([dsopt, os.path.join(folder, "rows.onnx"), "-run", f"-data={npz}", f"-log={log}", "-quiet", *options], status)
        return Run(log) if status == 0 else done

    for few in (1, 5):
        alone, within = train_rows((12, few)), train_rows((12, few), f"-dim=batch=8,{few}")
        check(alone.hash == within.hash and alone.loss_text == within.loss_text, f"{few} rows: {alone.losses} against {within.losses}")
        check(relative(within.steps[3]["samples_per_s"] * within.steps[3]["step_ms"], few * 1e3) < 1e-3, f"samples of {few} rows: {within.steps[3]}")
    check(train_rows((62,), "-dim=batch=8,6").loss_text == train_rows((7, 8)).loss_text, "a list of rows is not cut by the largest")
    check("is not filled up" in train_rows((12, 4), "-dim=batch=8,6", "-pad", status=1).stderr, "rows are filled up")

    # A model that PyTorch exported with names of its own for each input's dimensions.
    gpt, batches = model("gpt2-tiny-opset23-dynamic")
    data = np.load(batches)
    short = os.path.join(folder, "short.npz")
    np.savez(short, **{name: data[name][..., :16] for name in data.files})
    texts = set()
    for values in ("16", "16,24,32"):
        log = os.path.join(folder, f"gpt{values}.jsonl")
        execute([dsopt, gpt, "-run", f"-dim=s70={values}", f"-dim=s38={values}", f"-data={short}", "-steps=3", "-pp=2", f"-log={log}"])
        texts.add((tuple(Run(log).loss_text), Run(log).hash))
    check(len(texts) == 1, f"GPT at 16: {texts}")
