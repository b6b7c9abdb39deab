"""A GPT-2 on tokens and a BERT on padded sentences, from transformers with random weights: exported,
trained with the package, weights loaded back. PyTorch's loss on a held-out batch is dsopt's.

usage: models.py SOURCE BUILD   with a Python that has torch, onnxscript and transformers
"""
import copy
import os
import sys
import tempfile
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.join(source, "python"))
warnings.filterwarnings("ignore")

import numpy as np
import torch
import transformers

import dsopt

transformers.logging.set_verbosity_error()
folder = tempfile.mkdtemp()
torch.manual_seed(7)


def path(name):
    return os.path.join(folder, name)


def check(truth, what):
    if not truth:
        sys.exit(f"wrong: {what}")


def reference(model, batches, lr):
    """The same steps in PyTorch: the losses, and the model after them."""
    model = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def arrays(batches):
    return {name: np.stack([batch[name].numpy() for batch in batches]) for name in batches[0]}


def go(name, model, data, batches, held, lr):
    """Trains here and there, takes the weights home, and compares on what neither has seen."""
    report = dsopt.export(model, batches[0], path(name + ".onnx"))
    check(not report.unused and not report.transposed, report)
    want, there = reference(model, batches, lr)
    before = model(**held).loss.item()
    np.savez(path("held.npz"), **arrays([held]))
    result = dsopt.train(path(name + ".onnx"), data, lr=lr, save_weights=path(name), eval_data=path("held.npz"),
                         save_onnx=path(name + "-trained.onnx"))
    check(np.allclose(result.losses, want, rtol=1e-4), f"{name}: losses {result.losses}, PyTorch's {want}")
    check(not dsopt.load_weights(model, result.weights), "parameters were lost")
    here = model(**held).loss.item()
    evaluated = dsopt.evaluate(path(name + "-trained.onnx"), arrays([held]))
    for got, what in ((evaluated, "-eval"), (result.eval_losses[-1], "-eval-data")):
        check(abs(got - here) < 1e-5, f"{name}: {what} says {got}, PyTorch {here}")
    check(abs(here - there(**held).loss.item()) < 1e-4 and here != before, f"{name}: {here} after, {before} before")
    # Home and back: the first file, with the weights that PyTorch has now.
    dsopt.write_weights(model, path(name + "-home"), path(name + ".onnx"))
    returned = dsopt.evaluate(path(name + ".onnx"), arrays([held]), weights=path(name + "-home"))
    check(abs(returned - here) < 1e-5, f"{name}: -weights says {returned}, PyTorch {here}")
    print(f"{name}: loss {want[0]:.4f} to {want[-1]:.4f}; held out {here:.6f} in PyTorch, {evaluated:.6f} by -eval")
    return result


# GPT-2: windows of a file of tokens; transformers shifts labels by itself.
gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=101, n_positions=32, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
    bos_token_id=0, eos_token_id=0))
rows, length = 4, 24
tokens = np.random.default_rng(1).integers(0, 101, 8 * rows * length).astype(np.uint16)
tokens.tofile(path("tokens.bin"))
windows = torch.from_numpy(tokens.astype(np.int64)).reshape(8, rows, length)
batches = [{"input_ids": window, "labels": window.clone()} for window in windows]
ids = torch.randint(0, 101, (rows, length))
first = go("gpt2", gpt2, path("tokens.bin"), batches, {"input_ids": ids, "labels": ids.clone()}, 1e-3)
again = dsopt.train(path("gpt2.onnx"), path("tokens.bin"), lr=1e-3, pp=2, micro_batches=1)
check(again.weights_hash == first.weights_hash, "two stages give other bits")

# BERT: sentences of different lengths, padded, from a DataLoader.
bert = transformers.BertForSequenceClassification(transformers.BertConfig(
    vocab_size=101, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=32, hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=3))


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count):
        self.lengths = torch.randint(5, length + 1, (count,))
        self.words = torch.randint(1, 101, (count, length))
        self.labels = torch.randint(0, 3, (count,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, at):
        mask = (torch.arange(length) < self.lengths[at]).long()
        return {"input_ids": self.words[at] * mask, "attention_mask": mask, "labels": self.labels[at]}


loader = torch.utils.data.DataLoader(Sentences(8 * rows), batch_size=rows)
held = next(iter(torch.utils.data.DataLoader(Sentences(rows), batch_size=rows)))
go("bert", bert, loader, list(loader), held, 1e-3)

# A model whose loss leaves a part of it out, and one that shares a matrix.
class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.head = torch.nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = torch.nn.Linear(3, 3)

    def forward(self, ids):
        return self.head(torch.tanh(self.embedding(ids)))


def next_token(outputs, inputs):
    return torch.nn.functional.cross_entropy(outputs.flatten(0, 1), inputs["ids"].flatten())


odd = Odd()
report = dsopt.export(odd, (torch.randint(0, 11, (2, 6)),), path("odd.onnx"), loss=next_token)
check(report.unused == ["unused.weight", "unused.bias"] and report.parameters == 1, report)
result = dsopt.train(path("odd.onnx"), {"ids": np.random.default_rng(0).integers(0, 11, (4, 2, 6))}, lr=0.1, save_weights=path("odd"))
check(list(dsopt.read_weights(path("odd"))) == ["embedding.weight"], "the shared matrix has its first name")
older = dsopt.export(odd, (torch.randint(0, 11, (2, 6)),), path("older.onnx"), loss=next_token, exporter="torchscript", opset=18)
check(older.unused == report.unused and older.parameters == 1, older)
before = odd.head.weight.detach().clone()
check(dsopt.load_weights(odd, path("odd")) == ["unused.weight", "unused.bias"], "what is not in the file")
check(not torch.equal(before, odd.head.weight), "both uses have the trained matrix")
for wrong in (bert, torch.nn.Linear(2, 2)):
    try:
        dsopt.load_weights(wrong, path("odd"))
        sys.exit("wrong: weights of another model were loaded")
    except ValueError as error:
        check("is of another model" in str(error), error)

# Running statistics of batch normalizations come home as buffers.
class Normalized(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(8)
        self.last = torch.nn.Linear(8, 5)

    def forward(self, x, y):
        return torch.nn.functional.cross_entropy(self.last(torch.relu(self.norm(self.first(x))).mean((2, 3))), y)


normalized = Normalized()
images = [{"x": torch.randn(8, 3, 8, 8), "y": torch.randint(0, 5, (8,))} for _ in range(6)]
dsopt.export(normalized, images[0], path("normalized.onnx"))
there = copy.deepcopy(normalized)
optimizer = torch.optim.AdamW(there.parameters(), lr=1e-2)
for image in images:
    optimizer.zero_grad()
    there(**image).backward()
    optimizer.step()
result = dsopt.train(path("normalized.onnx"), images, lr=1e-2, batchnorm="train", save_weights=path("normalized"))
check(not dsopt.load_weights(normalized, result.weights), "parameters were lost")
for name in ("running_mean", "running_var"):
    got, want = getattr(normalized.norm, name), getattr(there.norm, name)
    check(torch.allclose(got, want, rtol=1e-3, atol=1e-5), f"{name}: {got}, PyTorch's {want}")
try:
    dsopt.export(torch.nn.Linear(2, 3), (torch.zeros(2, 2),), path("none.onnx"))
    sys.exit("wrong: a model without a loss was exported")
except ValueError as error:
    check("no scalar loss" in str(error), error)
print("passed")
