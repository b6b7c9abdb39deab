"""Prompts as text: from the command line, a file, standard input, a terminal, lines of JSON; answers as text and as JSON, what ends them, what a model's
files say; of an executable and a checkpoint; under a budget of memory; and what is refused.

usage: generate_text.py DSOPT
"""
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from runs import check, execute, model

dsopt = sys.argv[1]
TOY, BATCHES = model("gpt2-toy")


def write_tokenizer(folder, words=94, **config):
    """Letters are tokens, two of them make one character of two bytes."""
    os.makedirs(folder, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(["<s>", "</s>", *(f"w{number}" for number in range(words))])}
    special = [{"id": number, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for number, word in enumerate(["<s>", "</s>"])]
    json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
               "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<s>"}}, open(f"{folder}/tokenizer.json", "w"))
    json.dump({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{% for m in messages %}{{ m['content'] }} {% endfor %}"}, open(f"{folder}/tokenizer_config.json", "w"))
    if config:
        json.dump(config, open(f"{folder}/generation_config.json", "w"))
    return folder


def ask(*options, status=0, given=None):
    done = subprocess.run([dsopt, "generate", TOY, "-quiet", *options], input=given, capture_output=True, text=True, timeout=300)
    check(done.returncode == status, f"{options}: status {done.returncode}, expected {status}: {done.stderr}")
    return done


def texts(folder):
    words = [f"-tokenizer={folder}", "-max-new-tokens=6", "-ignore-eos"]
    answer = ask("-prompt=w3 w4", *words).stdout
    check(answer.endswith("\n") and len(answer.split()) <= 6, f"{answer!r}")
    open(f"{folder}/prompt.txt", "w").write("w3 w4")
    for options, given in ((["-prompt=-"], "w3 w4"), ([f"-prompt=@{folder}/prompt.txt"], None), ([], "w3 w4\n"), (["-prompt=w4", "-chat", "-system=w3"], None)):
        check(ask(*options, *words, given=given).stdout == answer, f"{options} is answered otherwise")
    check(ask("-prompt=w3 w4", "-echo", *words).stdout == "w3 w4" + answer, "an echo is not the prompt and the answer")
    open(f"{folder}/prompts.jsonl", "w").write('"w3 w4"\n{"prompt":"w5"}\n{"messages":[{"role":"user","content":"w3 w4"}]}\n')
    lines = [json.loads(line) for line in ask(f"-prompts={folder}/prompts.jsonl", *words).stdout.splitlines()]
    check([line["prompt"] for line in lines] == [0, 1, 2] and lines[0]["text"] + "\n" == answer == lines[2]["text"] + "\n", f"{lines}")
    lines = [json.loads(line) for line in ask("-prompt=w3 w4", "-n=3", "-seed=4", *words).stdout.splitlines()]
    check(len(lines) == 3 and len({line["text"] for line in lines}) > 1, f"three answers: {lines}")
    said = json.loads(ask("-prompt=w3 w4", "-logprobs=3", *words).stdout)
    check(said["text"] + "\n" == answer and len(said["choices"]) == 6, f"{said}")
    for choice in said["choices"]:
        check(choice["top"][0] == [choice["token"], choice["logprob"]] and len(choice["top"]) == 3 and -9 < choice["logprob"] < 0, f"the likeliest is not the first: {choice}")
    ours, theirs = pty.openpty()
    os.write(ours, b"w3 w4\n\x04")
    done = subprocess.run([dsopt, "generate", TOY, "-quiet", *words], stdin=theirs, capture_output=True, text=True, timeout=300)
    check(done.stdout == answer, f"on a terminal: {done.stdout!r}, expected {answer!r}")
    return answer


def ends(folder, answer):
    """A stop is no part of the answer, wherever tokens end; what might become one is said if it does not."""
    words = [f"-tokenizer={folder}", "-max-new-tokens=6", "-ignore-eos", "-prompt=w3 w4"]
    text = answer[:-1]
    for stop in {text[2:4], text[-1], text[1:5], text.split()[1]}:
        check(ask(f"-stop={stop}", *words).stdout == text[: text.index(stop)] + "\n", f"{text!r} up to {stop!r}")
    check(ask(f"-stop={text[-2:]}?", *words).stdout == answer, "what only begins as a stop is left out")
    drawn = write_tokenizer(os.path.join(folder, "drawn"), do_sample=True, temperature=3.0, max_new_tokens=3, eos_token_id=[1, 95])
    words = [f"-tokenizer={drawn}", "-prompt=w3 w4"]
    one = ask(*words, "-ignore-eos").stdout
    check(len(one.split()) <= 3 and one != " ".join(answer.split()[:3]) + "\n", f"generation_config.json asks for draws of three tokens: {one!r}")
    # Of a model with one beside it, prompts of tokens go by it, too.
    beside = os.path.join(folder, "beside")
    shutil.copytree(os.path.dirname(TOY), beside)
    json.dump({"max_new_tokens": 2}, open(f"{beside}/generation_config.json", "w"))
    np.savez(f"{beside}/ids.npz", **{"0": np.array([5, 6]), "1": np.array([7])})
    said = execute([dsopt, "generate", os.path.join(beside, os.path.basename(TOY)), f"-prompt-ids={beside}/ids.npz", "-quiet"]).stdout
    lines = [json.loads(line) for line in said.splitlines()]
    check([len(line["tokens"]) for line in lines] == [2, 2] and all(isinstance(token, int) for token in lines[0]["tokens"]), f"answers of two tokens: {lines}")
    check(ask(*words, "-ignore-eos", "-temperature=0").stdout == " ".join(answer.split()[:3]) + "\n", "an option counts before generation_config.json")


def elsewhere(folder, answer):
    words = [f"-tokenizer={folder}", "-max-new-tokens=6", "-ignore-eos", "-prompt=w3 w4"]
    program = os.path.join(folder, "program")
    execute([dsopt, "generate", TOY, "-o", program, "-quiet"])
    check(execute([program, *words, "-quiet"]).stdout == answer, "an executable answers otherwise")
    # It carries the tokenizer that it was given, and what lay beside the model.
    given = write_tokenizer(os.path.join(folder, "given"), max_new_tokens=2)
    said = execute([dsopt, "generate", TOY, f"-tokenizer={given}", "-o", os.path.join(folder, "whole")]).stdout
    check("whole -prompt=TEXT runs it" in said and "runs with" not in said, f"an executable with its tokenizer: {said}")
    shutil.rmtree(given)
    whole = [os.path.join(folder, "whole"), "-prompt=w3 w4", "-ignore-eos", "-quiet"]
    check(execute(whole).stdout == " ".join(answer.split()[:2]) + "\n", "what an executable carries counts for nothing")
    check(execute([*whole, f"-tokenizer={folder}", "-max-new-tokens=6"]).stdout == answer, "a tokenizer that is asked for counts before the carried one")
    said = execute([program, *words]).stderr
    check(re.search(r"dsopt: 2 tokens of prompts in .* a second\), 6 behind them in .* a second\)", said), f"rates: {said!r}")
    run = os.path.join(folder, "run")
    execute([dsopt, TOY, "-run", f"-data={BATCHES}", "-steps=3", "-lr=0.1", f"-save={run}", "-quiet"])
    resumed = ask(f"-resume={run}", *words).stdout
    check(resumed != answer, "a checkpoint answers as the model did before")
    total = json.loads(execute([dsopt, "generate", TOY, "-plan=json", "-max-batch=4"]).stdout)["ranks"][0]["memory"]
    check(total["cache"] == 2 * 4 * 16 * 4 * 8 * int(total["cache"] / (2 * 4 * 16 * 4 * 8)) > 0, f"caches of 4 sequences: {total}")
    check(ask("-max-batch=4", f"-device-memory={total['total']}", *words).stdout == answer, "a budget of what the plan says is too small")
    refused = ask("-max-batch=4", f"-device-memory={total['total'] - 4096}", *words, status=1).stderr
    check("-device-memory" in refused and "a smaller -max-batch, -max-context or -chunk takes less" in refused, f"a smaller budget: {refused}")


def refused(folder):
    large = write_tokenizer(os.path.join(folder, "large"), words=200)
    words = [f"-tokenizer={folder}"]
    open(f"{folder}/bad.txt", "wb").write(b"w1 \xff\xfe")
    for said, options in (
        ("the tokenizer has 202 tokens, expected at most the 96 of the model's embedding", ["-prompt=w1", f"-tokenizer={large}"]),
        ("there is no tokenizer", ["-prompt=w1"]),
        ("prompt 0 is empty, expected at least one token", ["-prompt= ", *words]),
        ("option -steps trains, but nothing is trained with -generate", ["-prompt=w1", "-steps=3", *words]),
        ("UTF-8", [f"-prompt=@{folder}/bad.txt", *words]),
        ("options -prompt-ids and -prompt exclude each other", ["-prompt=w1", "-prompt-ids=x.npz", *words]),
        ("option -system is what a conversation begins with: it needs -chat", ["-prompt=w1", "-system=w2", *words]),
        ("option -save-logits needs -save-outputs=FILE.npz", ["-prompt=w1", "-save-logits", *words]),
        ("prompt 0 has 15 tokens and is to get 4 more (-max-new-tokens), expected at most 16 in all", ["-prompt=" + " w1" * 15, "-max-new-tokens=4", *words]),
    ):
        lines = ask(*options, status=1).stderr.strip().splitlines()
        check(len(lines) == 1 and lines[0].startswith("dsopt: error: ") and said in lines[0], f"expected one line with {said!r}: {lines}")
    saved = os.path.join(folder, "saved")
    os.mkdir(saved)
    for said in ("is a folder, expected an ONNX model", f"this makes one: python -c \"import dsopt, torch; .*from_pretrained.'{re.escape(saved)}'"):
        lines = execute([dsopt, "generate", saved, "-prompt=w1"], status=1).stderr.splitlines()
        check(len(lines) == 1 and re.search(said, lines[0]), f"expected one line with {said!r}: {lines}")
        open(f"{saved}/config.json", "w").write("{}")


with tempfile.TemporaryDirectory() as folder:
    write_tokenizer(folder)
    answer = texts(folder)
    ends(folder, answer)
    elsewhere(folder, answer)
    refused(folder)
print("text is answered by text")
