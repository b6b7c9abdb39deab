"""Model families from their own libraries, with random weights: exported by both
exporters, trained by PyTorch and by dsopt on the same batches.

usage: families.py DSOPT [FAMILY ...]   with a Python that has torch, onnxscript, transformers and torchvision

Step 0's loss within 1e-5, 8 steps of AdamW within 1e-3, and the same bits for
(zero 3, dp 2, pp 2) as for one rank; of those whose sequences are cut alike, with
one hash at every degree and by both methods. Families whose library is not installed
are left out with a line that says so.
"""
import contextlib
import io
import os
import sys
import tempfile
import time
import warnings

import numpy as np

from runs import check, execute, relative, Run

dsopt = sys.argv[1]
wanted = sys.argv[2:]
try:
    import torch
    from torch import nn
except ImportError:
    print("left out: torch is not installed")
    sys.exit(0)
try:
    import transformers
except ImportError:
    transformers = None
warnings.filterwarnings("ignore")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
STEPS = 8
# The first steps of a fresh ResNet are unsteady: at 1e-4 PyTorch's own curves in fp32 and double are 2e-3 apart.
RATES = {"resnet18": "1e-5"}
# Exporters write batch normalization for inference, whatever the model's mode.
OPTIONS = {"resnet18": ["-batchnorm=train"]}
# Of the others sequences have no attention, or lengths that nothing divides.
SEQUENCES = ("llama", "mixtral", "qwen_moe", "t5")
families = {}


def family(function):
    families[function.__name__] = function
    return function


class WithLoss(nn.Module):
    """A model of images or features and its cross-entropy."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return nn.functional.cross_entropy(self.model(x), labels)


class LanguageModel(nn.Module):
    """A model of transformers: shifts by itself, gives the loss. The older exporter needs a mask."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels, attention_mask=None):
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
        return nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1))


def tokens(rows, length, vocabulary):
    return lambda: (lambda ids: {"input_ids": ids, "labels": ids.clone()})(torch.randint(0, vocabulary, (rows, length)))


def images(rows, size, classes):
    return lambda: {"x": torch.randn(rows, 3, size, size), "labels": torch.randint(0, classes, (rows,))}


@family
def llama():
    config = transformers.LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                                      tie_word_embeddings=False)
    return LanguageModel(transformers.LlamaForCausalLM(config)), tokens(4, 24, 128)


@family
def mixtral():
    config = transformers.MixtralConfig(vocab_size=128, hidden_size=64, intermediate_size=48, num_hidden_layers=2,
                                        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
                                        num_experts_per_tok=2, max_position_embeddings=64, sliding_window=None,
                                        experts_implementation="batched_mm")
    return LanguageModel(transformers.MixtralForCausalLM(config)), tokens(2, 16, 128)


@family
def qwen_moe():
    config = transformers.Qwen2MoeConfig(vocab_size=128, hidden_size=64, intermediate_size=96, moe_intermediate_size=48,
                                         shared_expert_intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
                                         max_position_embeddings=64, experts_implementation="batched_mm")
    return LanguageModel(transformers.Qwen2MoeForCausalLM(config)), tokens(2, 16, 128)


@family
def t5():
    config = transformers.T5Config(vocab_size=128, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_decoder_layers=2,
                                   num_heads=4, dropout_rate=0.0, decoder_start_token_id=0, use_cache=False)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            # The newer exporter cannot write the attention that is chosen by default.
            self.model = transformers.T5ForConditionalGeneration._from_config(config, attn_implementation="eager")

        def forward(self, input_ids, decoder_input_ids, labels):
            logits = self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits
            return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    def batch():
        return {"input_ids": torch.randint(1, 128, (4, 20)), "decoder_input_ids": torch.randint(1, 128, (4, 12)),
                "labels": torch.randint(1, 128, (4, 12))}
    return Both(), batch


@family
def vit():
    config = transformers.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                                    image_size=32, patch_size=8, num_labels=10, hidden_dropout_prob=0.0,
                                    attention_probs_dropout_prob=0.0)
    model = transformers.ViTForImageClassification(config)

    class Logits(nn.Module):
        def __init__(self):
            super().__init__()
            self.vit = model

        def forward(self, x):
            return self.vit(pixel_values=x).logits
    return WithLoss(Logits()), images(4, 32, 10)


@family
def resnet18():
    import torchvision
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    return WithLoss(model), images(4, 32, 10)


@family
def lstm():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(64, 24)
            self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(64, 5)

        def forward(self, x):
            return self.head(self.lstm(self.embedding(x))[0].mean(1))

    return WithLoss(Classifier()), lambda: {"x": torch.randint(0, 64, (6, 11)), "labels": torch.randint(0, 5, (6,))}


@family
def unet():
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()

            def block(a, b):
                return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())

            self.down, self.middle, self.up = block(3, 16), block(16, 32), block(32, 16)
            self.pool, self.grow = nn.MaxPool2d(2), nn.ConvTranspose2d(32, 16, 2, stride=2)
            self.head = nn.Conv2d(16, 4, 1)

        def forward(self, x):
            a = self.down(x)
            b = self.middle(self.pool(a))
            return self.head(self.up(torch.cat([a, self.grow(b)], 1)))

    return WithLoss(UNet()), lambda: {"x": torch.randn(2, 3, 16, 16), "labels": torch.randint(0, 4, (2, 16, 16))}


def train_torch(model, batches, rate):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=float(rate))
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = model(**batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def export(model, batch, path, dynamo, opset):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        settings = dict(dynamo=True, optimize=False) if dynamo else dict(
            dynamo=False, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
        torch.onnx.export(model, (), path, kwargs=batch, input_names=list(batch), output_names=["loss"], opset_version=opset,
                          **settings)


def run(folder, path, data, *options):
    log = os.path.join(folder, "log.jsonl")
    execute([dsopt, path, "-run", f"-data={data}", f"-log={log}", "-quiet", *options])
    return Run(log)


def one(name, dynamo, opset):
    torch.manual_seed(3)
    model, make = families[name]()
    batches = [make() for _ in range(STEPS)]
    if not dynamo and isinstance(model, LanguageModel):
        for batch in batches:
            batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    with tempfile.TemporaryDirectory() as folder:
        path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "data.npz")
        np.savez(data, **{key: np.stack([batch[key].numpy() for batch in batches]) for key in batches[0]})
        try:
            export(model, batches[0], path, dynamo, opset)
        except Exception as error:  # what the exporter cannot write is not dsopt's to read
            return f"not exported: {type(error).__name__}: {str(error)[:60]!r}"
        rate = RATES.get(name, "1e-3")
        expected = train_torch(model, batches, rate)
        began = time.monotonic()
        options = OPTIONS.get(name, [])
        execute([dsopt, path, "-emit=graph", *options, "-o", os.path.join(folder, "graph.mlir"), f"-data={data}"])
        seconds = time.monotonic() - began
        losses = run(folder, path, data, f"-lr={rate}", *options).losses
        first, worst = relative(losses[:1], expected[:1]), relative(losses, expected)
        check(first < 1e-5 and worst < 1e-3, f"{name}: {losses}, PyTorch {expected}")
        alone = run(folder, path, data, "-micro-batches=2", "-reduction-shards=2", "-accumulate=sharded", "-steps=4", *options)
        # Where few values are alive nowhere, there is nothing to cut.
        done = execute([dsopt, path, "-plan", f"-data={data}", "-pp=2", *options], status=None)
        stages = 1 if "cannot cut 1 blocks" in done.stderr else 2
        ranks = run(folder, path, data, "-zero=3", "-dp=2", f"-pp={stages}", "-micro-batches=1", "-steps=4", *options)
        check(alone.hash == ranks.hash and alone.loss_text == ranks.loss_text, f"{name}: other bits with 4 ranks")
        if name in SEQUENCES:
            layouts = ("-sp=1", "-sp=2 -sp-method=ulysses", "-sp=4 -sp-method=ring -zero=3", "-sp=4 -sp-method=ulysses*2", "-sp=2 -pp=2 -zero=3")
            cut = [run(folder, path, data, f"-lr={rate}", "-micro-batches=1", "-sequence-shards=4", *words.split()) for words in layouts]
            check(relative(cut[0].losses[:1], expected[:1]) < 1e-5 and relative(cut[0].losses, expected) < 1e-3, f"{name}, sequence shards: {cut[0].losses}, PyTorch {expected}")
            check(len({(one.hash, *one.loss_text) for one in cut}) == 1, f"{name}, sequence shards: {[one.loss_text for one in cut]}")
        return f"step 0 within {first:.1e}, 8 steps within {worst:.1e}, (zero 3, dp 2, pp {stages}) the same bits; imported in {seconds:.2f} s"


failures = 0
for name in wanted or families:
    for dynamo, opset in ((True, 18), (True, 23), (False, 17), (False, 20)):
        style = f"{name}, {'dynamo' if dynamo else 'torchscript'}, opset {opset}"
        try:
            print(f"{style}: {one(name, dynamo, opset)}", flush=True)
        except (ImportError, AttributeError) as error:
            print(f"{style}: left out: {error}", flush=True)
        except SystemExit as error:
            failures += 1
            print(f"{style}: {str(error)[:1200]}", flush=True)
sys.exit(1 if failures else 0)
