"""Predictions: numpy's values, one file in all layouts, whatever rows there are.

usage: predict.py DSOPT FOLDER. FOLDER has the device in software.
"""
import hashlib
import os
import sys
import tempfile

import numpy as np

from runs import check, execute
from small import TensorProto, initializer, node, value, write

dsopt = sys.argv[1]
random = np.random.default_rng(5)
ROWS = 4
LAYOUTS = [[], ["-dp=2", "-micro-batches=2"], ["-dp=2", "-pp=2", "-zero=3"], ["-pp=3", "-micro-batches=4", "-threads=2"],
           ["-dp=4", "-zero=1", "-reduction-shards=4"], ["-dp=2", "-micro-batches=4", "-reduction-shards=4", "-accumulate=sharded"]]

with tempfile.TemporaryDirectory() as folder:
    def place(name):
        return os.path.join(folder, name)

    w = [random.standard_normal(shape).astype(np.float32) for shape in ((5, 8), (8, 8), (8, 6))]
    nodes = [node("MatMul", "x w0", "first"), node("Tanh", "first", "t0"), node("MatMul", "t0 w1", "second"), node("Tanh", "second", "t1"),
             node("MatMul", "t1 w2", "logits"), node("ReduceMean", "second", "mean", keepdims=0), node("ArgMax", "logits", "choice", axis=1, keepdims=0),
             node("Transpose", "logits", "turned", perm=[1, 0]), node("Reshape", "second shape", "folded"),
             node("Greater", "logits zero", "positive"), node("SoftmaxCrossEntropyLoss", "logits labels", "loss"), node("Not", "yes", "no")]
    outputs = [value("loss"), value("logits", (ROWS, 6)), value("first", (ROWS, 8)), value("mean"), value("choice", (ROWS,), TensorProto.INT64),
               value("turned", (6, ROWS)), value("folded", (ROWS, 2, 4)), value("positive", (ROWS, 6), TensorProto.BOOL), value("x", (ROWS, 5)),
               value("w0", (5, 8)), value("shape", (3,), TensorProto.INT64), value("no", (), TensorProto.BOOL)]
    write(place("m.onnx"), nodes, [value("x", (ROWS, 5)), value("labels", (ROWS,), TensorProto.INT64)],
          [*(initializer(f"w{i}", one) for i, one in enumerate(w)), initializer("shape", np.array([ROWS, 2, 4])), initializer("zero", 0.0),
           initializer("yes", np.array(True))], outputs)
    # The last four are an input, a parameter and constants themselves.
    names = ["logits", "first", "mean", "choice", "turned", "folded", "positive", "x", "w0", "shape", "no"]
    apart = ("mean", "turned", "w0", "shape", "no")  # no rows of the data
    chosen = [f"-outputs={name}" for name in names]

    def predict(data, *options, status=0):
        file = place("outputs.npz")
        if os.path.exists(file):
            os.remove(file)
        done = execute([dsopt, "predict", place("m.onnx"), f"-data={place(data)}", f"-save-outputs={file}", "-quiet", *options], status)
        check(os.path.exists(file) == (status == 0), f"{options}: the file is {'' if os.path.exists(file) else 'not '}there")
        return done if status else (dict(np.load(file)), hashlib.sha256(open(file, "rb").read()).hexdigest())

    def expected(x):
        """Of micro-batches."""
        first = x.astype(np.float64) @ w[0]
        second = np.tanh(first) @ w[1]
        logits = np.tanh(second) @ w[2]
        return {"first": first, "logits": logits, "mean": second.mean((1, 2)), "choice": logits.argmax(-1), "turned": logits.transpose(0, 2, 1),
                "folded": second.reshape(-1, ROWS, 2, 4), "positive": logits > 0, "x": x, "w0": np.stack([w[0]] * len(x)),
                "shape": np.stack([np.array([ROWS, 2, 4])] * len(x)), "no": np.zeros(len(x), bool)}

    def same(got, want, what):
        check(list(got) == names, f"{what}: {list(got)}")
        for name, array in want.items():
            check(got[name].shape == array.shape and got[name].dtype == (array.dtype if array.dtype != np.float64 else np.float32),
                  f"{what}: {name} is {got[name].dtype} {got[name].shape}, expected {array.dtype} {array.shape}")
            check(np.allclose(got[name], array, atol=1e-5), f"{what}: {name} is {got[name]}, expected {array}")

    # Micro-batches, so many that no layout's groups fit.
    x = random.standard_normal((7, ROWS, 5)).astype(np.float32)
    np.savez(place("micro.npz"), x=x)
    # Rows, so many that no micro-batch fits.
    np.savez(place("rows.npz"), x=x.reshape(-1, 5)[:23])
    files = {"micro.npz": set(), "rows.npz": set()}
    for layout in LAYOUTS:
        got, file = predict("micro.npz", *chosen, *layout)
        same(got, expected(x), f"micro-batches {layout}")
        files["micro.npz"].add(file)
        got, file = predict("rows.npz", *chosen, *layout)
        last = np.concatenate([x.reshape(-1, 5)[:23], x.reshape(-1, 5)[22:23]]).reshape(6, ROWS, 5)
        want = {name: array if name in apart else array.reshape(24, *array.shape[2:])[:23] for name, array in expected(last).items()}
        same(got, want, f"rows {layout}")
        files["rows.npz"].add(file)
    check(all(len(one) == 1 for one in files.values()), f"layouts write different files: {files}")
    print(f"{len(LAYOUTS)} layouts: {files}")

    # A GPU's.
    os.environ.update(LD_LIBRARY_PATH=sys.argv[2], SOFT_DEVICE="seed=1")
    for layout in ([], ["-dp=2", "-pp=2", "-zero=3"]):
        got, _ = predict("rows.npz", *chosen, "-target=cuda", "-arch=sm_80", *layout)
        same(got, want, f"on a device {layout}")

    # An executable, a part of the data, and the weights of a training run.
    execute([dsopt, place("m.onnx"), "-predict", *chosen, "-dp=2", "-o", place("predictor")])
    execute([place("predictor"), f"-data={place('micro.npz')}", f"-save-outputs={place('by.npz')}", "-eval-batches=3"])
    same(dict(np.load(place("by.npz"))), expected(x[:3]), "an executable")
    np.savez(place("train.npz"), x=x, labels=random.integers(0, 6, (7, ROWS)))
    execute([dsopt, place("m.onnx"), "-run", f"-data={place('train.npz')}", "-steps=3", "-seed=3", "-grad-clip=2", "-weight-decay=0.5",
             f"-save={place('run')}", f"-save-weights={place('w')}", "-quiet"])
    trained, by = predict("micro.npz", "-outputs=logits", f"-resume={place('run')}", "-pp=2", "-zero=3")
    check(not np.allclose(trained["logits"], expected(x)["logits"]), "the checkpoint's weights are not taken")
    check(predict("micro.npz", "-outputs=logits", f"-weights={place('w')}")[1] == by, "weights and checkpoint differ")
    said = execute([dsopt, place("m.onnx"), "-predict", "-outputs=logits", f"-data={place('micro.npz')}", f"-save-outputs={place('o')}",
                    f"-resume={place('run')}", "-quiet"]).stderr
    check(said == "", f"options of training are missed where nothing trains: {said}")

    # A normalization that trains has running statistics here, those of the trained weights, and dropout drops nothing.
    def channel(name, number):
        return initializer(name, np.full(5, number, np.float32))

    write(place("norm.onnx"), [node("BatchNormalization", "x scale bias mean var", "y own_mean own_var", training_mode=1, epsilon=1e-5),
                               node("Dropout", "y ratio on", "z"), node("MatMul", "z w0", "scores"),
                               node("SoftmaxCrossEntropyLoss", "scores labels", "loss")],
          [value("x", (ROWS, 5)), value("labels", (ROWS,), TensorProto.INT64)],
          [channel("scale", 1.5), channel("bias", 0.25), channel("mean", 0.5), channel("var", 2.0), initializer("w0", w[0]),
           initializer("ratio", 0.5), initializer("on", np.array(True))], [value("loss"), value("y", (ROWS, 5)), value("z", (ROWS, 5))])

    def norm(*options):
        return execute([dsopt, place("norm.onnx"), "-predict", f"-data={place('micro.npz')}", "-outputs=[yz]", f"-save-outputs={place('n.npz')}",
                        "-quiet", *options]) and np.load(place("n.npz"))

    got, want = norm(), 1.5 * (x - 0.5) / np.sqrt(2.0 + 1e-5) + 0.25
    check(np.allclose(got["y"], want, atol=1e-5) and np.array_equal(got["y"], got["z"]), f"a batch normalization gives {got['y']}, expected {want}")
    execute([dsopt, place("norm.onnx"), "-run", f"-data={place('train.npz')}", "-steps=3", f"-save-weights={place('nw')}", "-quiet"])
    check(not np.allclose(norm(f"-weights={place('nw')}")["y"], got["y"], atol=1e-3), "the trained statistics are not taken")

    # Halves stay halves, also of a model that is stored in them; numpy has no bfloat16.
    for type, element in ((TensorProto.FLOAT16, np.float16), (TensorProto.BFLOAT16, np.float32)):
        write(place("half.onnx"), [node("MatMul", "x w", "y"), node("Identity", "w", "same")], [value("x", (ROWS, 5), type)],
              [initializer("w", w[0], type)], [value("y", (ROWS, 8), type), value("same", (5, 8), type)])
        np.savez(place("half.npz"), x=x.astype(np.float16 if type == TensorProto.FLOAT16 else np.float32))
        said = execute([dsopt, "predict", place("half.onnx"), f"-data={place('half.npz')}", f"-save-outputs={place('h.npz')}"]).stderr
        check(said == "", f"what is said of training where nothing trains: {said}")
        got = np.load(place("h.npz"))
        check(got["y"].dtype == got["same"].dtype == element, f"{type}: {got['y'].dtype} and {got['same'].dtype}, expected {element}")
        check(np.allclose(got["y"], x @ w[0], rtol=2e-2, atol=5e-2) and np.allclose(got["same"][0], w[0], rtol=1e-2), f"{type}: {got['y']}")

    # Nothing is said of what is trained, of constants, doubts and equal weights that may be merged.
    write(place("quiet.onnx"), [node("LayerNormalization", "x one zero", "a"), node("LayerNormalization", "a one zero", "b"),
                                node("Mul", "b scale", "c"), node("Sub", "c onnx::Sub_7", "y")], [value("x", (ROWS, 5))],
          [initializer("one", np.ones(5, np.float32)), initializer("zero", np.zeros(5, np.float32)), initializer("scale", 1.5),
           initializer("onnx::Sub_7", x[0])], [value("y", (ROWS, 5))])
    command = [place("quiet.onnx"), f"-data={place('micro.npz')}"]
    said = execute([dsopt, "predict", *command, f"-save-outputs={place('q.npz')}"]).stderr
    check(said == "", f"predict says: {said}")
    said = execute([dsopt, place("quiet.onnx"), "-loss=mse:y,t", "-plan"]).stderr
    check("dsopt: 3 of 4 initializers are trained" in said, f"training says: {said}")
    check("'one' is the scale or bias of 2 operations" in said and "'scale' (one number)" in said, f"training says: {said}")

    # Parameters of float64 are not trained, and take part as they are.
    write(place("double.onnx"), [node("MatMul", "x w", "y")], [value("x", (ROWS, 5), TensorProto.DOUBLE)],
          [initializer("w", w[0].astype(np.float64))], [value("y", (ROWS, 8), TensorProto.DOUBLE)])
    execute([dsopt, "predict", place("double.onnx"), f"-data={place('micro.npz')}", f"-save-outputs={place('d.npz')}"])
    got = np.load(place("d.npz"))["y"]
    check(got.dtype == np.float64 and np.allclose(got, x.astype(np.float64) @ w[0].astype(np.float64), rtol=1e-12), f"float64: {got}")

    # All arrays that are missing are said at once.
    np.savez(place("none.npz"), other=x)
    done = execute([dsopt, "predict", place("m.onnx"), f"-data={place('none.npz')}", "-save-outputs=o.npz", "-outputs=loss"], 1).stderr
    check("no array 'x' for the input f32 [4, 5], no array 'labels' for the input i64 [4]; the file has other" in done, done)
    write(place("open.onnx"), [node("Add", "a b", "c"), node("Add", "c d", "y")], [value(name, ("n", 3)) for name in "abd"], [],
          [value("y", ("n", 3))])
    done = execute([dsopt, "predict", place("open.onnx"), f"-data={place('none.npz')}", "-save-outputs=o.npz"], 1).stderr
    check("the data has no array for input 'a', 'b', 'd', whose shape the model leaves open" in done, done)

    # A constant is written as often as there is data, unless all data is of no elements.
    nothing, command = value("nothing", (ROWS, 0)), ["predict", place("empty.onnx"), f"-data={place('empty.npz')}", f"-save-outputs={place('e.npz')}"]
    np.savez(place("empty.npz"), nothing=np.zeros((7, ROWS, 0), np.float32), x=x)
    for inputs, status in (([nothing, value("x", (ROWS, 5))], 0), ([nothing], 1)):
        write(place("empty.onnx"), [node("Not", "yes", "no")], inputs, [initializer("yes", np.array(True))],
              [value("no", (), TensorProto.BOOL), *inputs])
        done = execute([dsopt, *command], status)
        check(not status or "output 'no' is a constant, and the model has no input that says how often" in done.stderr, done.stderr)
    check(np.array_equal(np.load(place("e.npz"))["no"], np.zeros(7, bool)), "a constant beside data of no elements")

    # What cannot be written.
    for options, message in [
        (["-outputs=logit"], "-outputs=logit matches no output of the model: loss, logits"),
        (["-outputs=loss"], "no array 'labels'"),
        (["-outputs=logits", "-metric=accuracy"], "option -metric is about the loss"),
        (["-outputs=logits", "-shuffle"], "option -shuffle does not go with -predict"),
        (["-outputs=logits", f"-save-outputs={folder}/none/file.npz"], "none"),
    ]:
        done = predict("micro.npz", *options, status=1)
        check(message in done.stderr and done.stderr.count("\n") == 1, f"{options}: {done.stderr}")
    for words, message in [(["predict", place("m.onnx"), f"-data={place('micro.npz')}"], "-predict needs -save-outputs=FILE.npz"),
                           (["train", place("m.onnx"), f"-data={place('train.npz')}", f"-save-outputs={place('o')}"], "option -save-outputs needs -predict")]:
        check(message in execute([dsopt, *words], 1).stderr, words)
