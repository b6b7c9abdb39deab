"""Logits that tokens are chosen by are those of `dsopt predict` on prompt and answer, to the bit: over chunks, batches, neighbours, threads, precisions
and layouts, of models of a symbolic length and of a fixed one. Equal seeds draw equal tokens everywhere; bad input ends in one line.

usage: generate_bits.py DSOPT [CASES [SEED]]
"""
import sys
import tempfile

import numpy as np

from runs import check, execute, model

dsopt = sys.argv[1]
CASES = int(sys.argv[2]) if len(sys.argv) > 2 else 12
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
# Name, whether its length is open, vocabulary, positions.
MODELS = [("gpt2-tiny-opset23-dynamic", True, 512, 60), ("gpt2-tiny", False, 512, 32), ("gpt2-toy", False, 96, 16)]
GRID = {"chunk": (1, 7, 64, 512), "max-batch": (1, 3, 32), "threads": (1, 2, 3), "precision": ("fp32", "bf16", "fp16"), "layout": ("", "-pp=2", "-tp=2", "-pp=2 -tp=2")}


def generate(path, prompts, new, folder, *options, status=0):
    np.savez(f"{folder}/prompts.npz", **{str(i): prompt for i, prompt in enumerate(prompts)})
    done = execute([dsopt, "generate", path, f"-prompt-ids={folder}/prompts.npz", f"-max-new-tokens={new}", f"-save-outputs={folder}/answers.npz", "-save-logits", "-quiet",
                    *options], status)
    if status:
        return done
    saved = np.load(f"{folder}/answers.npz")
    return saved["tokens"], saved["logits"]


def predict(path, ids, folder, *options):
    """Of a fixed shape: the sequence behind itself, filled up behind its end, which no earlier row sees."""
    np.savez(f"{folder}/ids.npz", input_ids=ids[None], labels=ids[None])
    execute([dsopt, "predict", path, f"-data={folder}/ids.npz", f"-save-outputs={folder}/logits.npz", "-outputs=logits", "-quiet", *options])
    return np.load(f"{folder}/logits.npz")["logits"].reshape(*ids.shape, -1)


def case(number, random, folder):
    name, is_open, vocabulary, positions = MODELS[number % len(MODELS)]
    path, _ = model(name)
    pick = {key: values[random.integers(len(values))] for key, values in GRID.items()}
    layout, new = pick.pop("layout"), 6
    shards = ["-tensor-shards=2"] if "tp" in layout else []
    options = [f"-{key}={value}" for key, value in pick.items()] + layout.split() + ([f"-max-context={positions}"] if is_open else [])
    prompts = [random.integers(0, vocabulary, length) for length in random.integers(1, positions - new + 1, 4)]
    tokens, logits = generate(path, prompts, new, folder, *options)
    shape = (1, None) if is_open else np.load(model(name)[1])["input_ids"].shape[-2:]
    for i, prompt in enumerate(prompts):
        all = np.concatenate([prompt, tokens[i]])
        length = shape[1] or len(all)
        ids = np.tile(np.pad(all, (0, length - len(all))), (shape[0], 1))
        expected = predict(path, ids, folder, f"-precision={pick['precision']}", *shards)[0, len(prompt) - 1 : len(all) - 1]
        check(expected.astype(np.float32).tobytes() == logits[i].tobytes(), f"{name} {options}: prompt {i} of {len(prompt)} tokens has other logits than predict")
        check((logits[i].argmax(-1) == tokens[i]).all(), f"{name} {options}: prompt {i} has not the likeliest tokens")


def draws(folder):
    """Tokens follow from seed, answer and position, and from nothing else."""
    path, _ = model("gpt2-tiny")
    prompts = [np.array([1, 2, 3]), np.array([4])]
    words = ["-n=2", "-seed=5", "-temperature=2", "-top-k=50", "-top-p=0.95"]
    runs = [generate(path, prompts, 12, folder, *words, *layout.split())[0] for layout in ("", "-chunk=2", "-max-batch=8", "-pp=2", "-tp=2 -threads=1", "-max-batch=3 -chunk=5")]
    check(all((run == runs[0]).all() for run in runs), f"one seed draws other tokens: {runs}")
    check(len({tuple(answer) for answer in runs[0]}) == 4, f"answers are alike: {runs[0]}")
    other = generate(path, prompts, 12, folder, "-n=2", "-seed=6", "-temperature=2")[0]
    check((other != runs[0]).any(), "another seed draws the same tokens")


def ends(folder):
    """An end token is kept, and what is behind it is -1; before the least number of tokens it does not come."""
    path, _ = model("gpt2-tiny")
    prompts = [np.array([1, 2, 3])]
    whole = generate(path, prompts, 8, folder)[0][0]
    end = int(whole[3])
    first = int(np.argmax(whole == end))
    ended = generate(path, prompts, 8, folder, f"-stop-ids={end}")[0][0]
    check((ended == np.where(np.arange(8) <= first, whole, -1)).all(), f"{whole} ends at {end}: {ended}")
    check((generate(path, prompts, 8, folder, f"-stop-ids={end}", "-ignore-eos")[0][0] == whole).all(), "an end token that is ignored ends the answer")
    later = generate(path, prompts, 8, folder, f"-stop-ids={end}", "-min-new-tokens=6")[0][0]
    check(end not in later[:6] and (later[:6] >= 0).all(), f"{end} came before 6 tokens: {later}")
    banned = generate(path, prompts, 8, folder, f"-logit-bias={end}:-1000")[0][0]
    check(end not in banned, f"{end} came in spite of its bias: {banned}")


def refused(folder):
    path, _ = model("gpt2-tiny")
    for said, prompts, options in [
        ("prompt 0 is empty", [np.zeros(0, np.int64)], []),
        ("prompt 1 has token 512 at position 1, expected 0 to 511", [np.array([1]), np.array([1, 512])], []),
        ("prompt 0 has 30 tokens and is to get 6 more (-max-new-tokens), expected at most 32 in all", [np.arange(30)], []),
        ("-n=2 asks for several answers, which at temperature 0 would be one and the same", [np.array([1])], ["-n=2", "-temperature=0"]),
        ("-min-new-tokens=9: expected at most the 6 of -max-new-tokens", [np.array([1])], ["-min-new-tokens=9"]),
        ("(-stop-ids, generation_config.json): the model has no token 900, expected 0 to 511", [np.array([1])], ["-stop-ids=900"]),
        ("-logit-bias: '3', expected TOKEN:NUMBER", [np.array([1])], ["-logit-bias=3"]),
        ("-top-p=0: expected more than 0, at most 1", [np.array([1])], ["-top-p=0"]),
        ("is of 32 positions, expected at least the 64 of -max-context", [np.array([1])], ["-max-context=64"]),
        ("option -dp does not go with -generate", [np.array([1])], ["-dp=2"]),
    ]:
        done = generate(path, prompts, 6, folder, *options, status=1)
        lines = done.stderr.strip().splitlines()
        check(len(lines) == 1 and lines[0].startswith("dsopt: error: ") and said in lines[0], f"expected one line with {said!r}: {done.stderr}")


random = np.random.default_rng(SEED)
with tempfile.TemporaryDirectory() as folder:
    for number in range(CASES):
        case(number, random, folder)
    print(f"{CASES} cases: the logits of predict, to the bit")
    if len(sys.argv) == 2:
        draws(folder)
        ends(folder)
        refused(folder)
        print("draws follow from their seeds, answers end, bad input is refused")
