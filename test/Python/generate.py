"""dsopt.generate: texts, conversations and tokens; of a file and of what `train` returned; whole and as it comes; and what is wrong with a call.

usage: generate.py SOURCE BUILD
"""
import json
import os
import sys
import tempfile

from start import source

import numpy as np

import dsopt

TOY, BATCHES = (os.path.join(source, "test", "Models", "gpt2-toy", name) for name in ("model.onnx", "batches.npz"))
WORDS = [f"w{number}" for number in range(94)]


def check(holds, said):
    if not holds:
        sys.exit(said)


def tokenizer(folder):
    """Words with blanks between them; turns of a conversation are lines of words."""
    vocabulary = {word: number for number, word in enumerate(["<s>", "</s>", *WORDS])}
    special = [{"id": number, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for number, word in enumerate(["<s>", "</s>"])]
    json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
               "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<s>"}}, open(os.path.join(folder, "tokenizer.json"), "w"))
    json.dump({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{% for m in messages %}{{ m['content'] }} {% endfor %}"}, open(os.path.join(folder, "tokenizer_config.json"), "w"))
    json.dump({"max_new_tokens": 4, "eos_token_id": [1]}, open(os.path.join(folder, "generation_config.json"), "w"))
    return folder


def fails(said, *arguments, **options):
    try:
        dsopt.generate(*arguments, **options)
    except (dsopt.DsoptError, ValueError) as error:
        check(said in str(error) and "\n" not in str(error), f"expected one line with {said!r}: {error}")
    else:
        sys.exit(f"{arguments}, {options}: expected an error with {said!r}")


def main(folder):
    with_tokens = {"max_new_tokens": 5, "ignore_eos": True}
    many = dsopt.generate(TOY, [[5, 6, 7], [8]], **with_tokens)
    one = dsopt.generate(TOY, np.array([5, 6, 7]), **with_tokens)
    check([len(answer) for answer in many] == [5, 5] and (many[0] == one).all() and one.dtype == np.int64, f"{many}, {one}")
    drawn = dsopt.generate(TOY, [[5, 6, 7]], n=3, seed=2, **with_tokens)
    check(np.shape(drawn) == (1, 3, 5), f"three answers of one prompt: {drawn}")

    words = {"tokenizer": tokenizer(folder)}
    text = dsopt.generate(TOY, "w3 w4 w5", **with_tokens, **words)
    check(text == " ".join((["<s>", "</s>"] + WORDS)[token] for token in one if token > 1), f"{text!r}, tokens {one}")
    check(dsopt.generate(TOY, ["w3 w4 w5", "w6"], **with_tokens, **words)[0] == text, "a list of one text and more is answered otherwise")
    check(dsopt.generate(TOY, [{"role": "user", "content": "w3 w4"}, {"role": "user", "content": "w5"}], **with_tokens, **words) == text, "a conversation of the same words")
    pieces = list(dsopt.generate(TOY, "w3 w4 w5", stream=True, **with_tokens, **words))
    check("".join(pieces) == text, f"in pieces: {pieces}")
    check(dsopt.generate(TOY, "w3 w4 w5", ignore_eos=True, **words) == " ".join(text.split()[:4]) or 1 in one[:4], "generation_config.json says four tokens")

    result = dsopt.train(TOY, BATCHES, steps=4, lr=0.1, save_weights=os.path.join(folder, "trained.safetensors"), quiet=True)
    trained = dsopt.generate(result, [5, 6, 7], **with_tokens)
    same = dsopt.generate(TOY, [5, 6, 7], weights=result.weights, **with_tokens)
    check((trained == same).all() and (trained != one).any(), f"trained {trained}, by its weights {same}, before {one}")

    fails("the result has no weights", dsopt.train(TOY, BATCHES, steps=1, quiet=True), [1])
    fails("prompts are texts and tokens", TOY, ["w1", [1]])
    fails("prompt 1 is an array of float64 [2]", TOY, [[1], [0.5, 1.5]])
    fails("stream=True needs one prompt, a text", TOY, [1, 2], stream=True)
    fails("prompt 0 has token 96 at position 0, expected 0 to 95", TOY, [96])
    fails("there is no tokenizer", TOY, "w1")
    check(dsopt.generate(TOY, []) == [], "no prompts")


with tempfile.TemporaryDirectory() as folder:
    main(folder)
print("texts, conversations and tokens are answered")
