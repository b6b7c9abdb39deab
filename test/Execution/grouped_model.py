"""A small decoder whose positions decide much: heads that share keys, rotary angles, dropout, documents that are padded, a shifted loss over a
tied vocabulary; and, where asked for, what is computed of few rows: a class of the mean and one of a position."""
import os

import numpy as np
from onnx import TensorProto, helper

from own_models import Nodes, save

ROWS, LENGTH, VOCABULARY, SIZE, BATCHES = 2, 16, 48, 8, 6


class Decoder(Nodes):
    def __init__(self, heads, few, layers, dropout, shares, classes, rows=ROWS, length=LENGTH):
        super().__init__(seed=5)
        self.heads, self.few, self.dropout, self.drops_shares, self.classes = heads, few, dropout, shares, classes
        self.rows, self.length, self.width = rows, length, heads * SIZE
        embedding = self.weight("embedding", VOCABULARY, self.width)
        x = self.dropped(self.make("Gather", embedding, "input_ids"))
        for layer in range(layers):
            x = self.make("Add", x, self.attention(self.norm(x, f"{layer}.norm1"), str(layer)))
            x = self.make("Add", x, self.gated(self.norm(x, f"{layer}.norm2"), str(layer)))
        logits = self.make("MatMul", self.norm(x, "norm"), self.make("Transpose", embedding, perm=[1, 0]))
        said = self.sliced(logits, 1, 0, length - 1)
        loss = self.entropy(self.shaped(said, rows * (length - 1), VOCABULARY), self.shaped(self.sliced("labels", 1, 1, length), rows * (length - 1)))
        if classes:
            mean = self.make("ReduceMean", x, axes=[1], keepdims=0)
            row = self.shaped(self.sliced(x, 1, length - 3, length - 2), rows, self.width)
            for name, taken in (("mean", mean), ("row", row)):
                loss = self.make("Add", loss, self.entropy(self.make("MatMul", self.make("Tanh", taken), self.weight(f"{name}.classes", self.width, 3)), "kind"))
        self.nodes.append(helper.make_node("Identity", [loss], ["loss"]))

    def weight(self, name, *shape, value=None):
        return self.parameter(name, self.random.standard_normal(shape) / np.sqrt(shape[0]) if value is None else np.full(shape, value))

    def sliced(self, x, axis, begin, end):
        return self.make("Slice", x, *(self.constant([one], np.int64) for one in (begin, end, axis)))

    def norm(self, x, name):
        return self.make("LayerNormalization", x, self.weight(name + ".weight", self.width, value=1), self.weight(name + ".bias", self.width, value=0), axis=-1)

    def dropped(self, x):
        return self.make("Dropout", x, self.constant(self.dropout), self.constant(True, np.bool_)) if self.dropout else x

    def entropy(self, x, labels):
        return self.make("SoftmaxCrossEntropyLoss", x, labels, ignore_index=-100)

    def projected(self, x, name, count):
        x = self.shaped(self.make("MatMul", x, self.weight(name, self.width, count * SIZE)), self.rows, self.length, count, SIZE)
        return self.make("Transpose", x, perm=[0, 2, 1, 3])

    def turned(self, x):
        """Rotary embedding: halves of a head by angles that follow from the position."""
        angles = np.arange(self.length)[:, None] / 100.0 ** (np.arange(SIZE // 2) / (SIZE // 2))
        cos, sin = (self.constant(np.tile(function(angles), 2)[None, None]) for function in (np.cos, np.sin))
        half = self.make("Concat", self.make("Neg", self.sliced(x, 3, SIZE // 2, SIZE)), self.sliced(x, 3, 0, SIZE // 2), axis=3)
        return self.make("Add", self.make("Mul", x, cos), self.make("Mul", half, sin))

    def repeated(self, x):
        shape = [self.rows, self.few, self.heads // self.few, self.length, SIZE]
        x = self.make("Expand", self.shaped(x, self.rows, self.few, 1, self.length, SIZE), self.constant(shape, np.int64))
        return self.shaped(x, self.rows, self.heads, self.length, SIZE)

    def mask(self):
        """Positions before one's own that are not padded."""
        causal = self.constant(np.tril(np.ones((1, 1, self.length, self.length))), np.bool_)
        present = self.shaped(self.make("Cast", "attention_mask", to=TensorProto.BOOL), self.rows, 1, 1, self.length)
        return self.make("Where", self.make("And", causal, present), self.constant(0), self.constant(-1e9))

    def attention(self, x, layer):
        q = self.turned(self.projected(x, layer + ".q", self.heads))
        k = self.repeated(self.turned(self.projected(x, layer + ".k", self.few)))
        v = self.repeated(self.projected(x, layer + ".v", self.few))
        scores = self.make("Mul", self.make("MatMul", q, self.make("Transpose", k, perm=[0, 1, 3, 2])), self.constant(SIZE**-0.5))
        shares = self.make("Softmax", self.make("Add", scores, self.mask()), axis=-1)
        shares = self.dropped(shares) if self.drops_shares else shares
        y = self.shaped(self.make("Transpose", self.make("MatMul", shares, v), perm=[0, 2, 1, 3]), self.rows, self.length, self.width)
        return self.dropped(self.make("MatMul", y, self.weight(layer + ".o", self.width, self.width)))

    def gated(self, x, layer):
        gate, up = (self.make("MatMul", x, self.weight(f"{layer}.{name}", self.width, 2 * self.width)) for name in ("gate", "up"))
        return self.make("MatMul", self.make("Mul", self.make("Mul", gate, self.make("Sigmoid", gate)), up), self.weight(layer + ".down", 2 * self.width, self.width))

    def inputs(self):
        shapes = dict.fromkeys(("input_ids", "labels", "attention_mask"), [self.rows, self.length])
        return shapes | ({"kind": [self.rows]} if self.classes else {})

    def data(self, length=None):
        """Documents of several lengths, many of them full: what is behind them is no label."""
        random = np.random.default_rng(3)
        count, length = BATCHES * self.rows, length or self.length
        ids = random.integers(0, VOCABULARY, (count, length))
        present = np.arange(length) < random.integers(length // 4, 2 * length, count)[:, None]
        arrays = {"input_ids": ids, "labels": np.where(present, ids, -100), "attention_mask": present.astype(np.int64), "kind": random.integers(0, 3, count)}
        return {name: arrays[name] for name in self.inputs()}


def grouped(folder, heads=4, few=2, layers=2, dropout=0.1, shares=False, classes=True, **sizes):
    """The model's file and that of its data. Attention whose shares are dropped, too, is no single operation."""
    decoder = Decoder(heads, few, layers, dropout, shares, classes, **sizes)
    path, data = (os.path.join(folder, f"{heads}over{few}{'dropped' if shares else ''}.{end}") for end in ("onnx", "npz"))
    save(path, decoder.nodes, [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in decoder.inputs().items()], decoder.initializers, 17)
    np.savez(data, **decoder.data())
    return path, data
