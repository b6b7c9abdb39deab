"""`dsopt tokenize` of small tokenizers, as the libraries that they come from have it; and the ways that texts come in.

usage: tokenize.py DSOPT SCRATCH
"""
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def run(*words, lines=""):
    done = subprocess.run(words, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(dsopt, scratch):
    scratch = pathlib.Path(scratch)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    expected = json.loads((HERE / "expected.json").read_text())
    prompts = scratch / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(line if i % 2 else {"prompt": line}) + "\n" for i, line in enumerate(expected["lines"])))
    for name, right in expected["tokenizers"].items():
        text = run(dsopt, "tokenize", HERE / name, f"-prompts={prompts}", f"-special-tokens={right['special']}")
        ids = [[int(one) for one in line.split()] for line in text.split("\n")[:-1]]
        assert ids == right["ids"], (name, ids, right["ids"])
        back = run(dsopt, "tokenize", HERE / name, "-decode=json", lines=text)
        assert [json.loads(line) for line in back.split("\n")[:-1]] == right["texts"], (name, back)
    print(f"{len(expected['tokenizers'])} tokenizers")

    tokenizer = HERE / "bytes.json"
    one = run(dsopt, "tokenize", f"-tokenizer={tokenizer}", "-prompt=the cat")
    assert run(dsopt, "tokenize", tokenizer, lines="the cat\nthe cat\n") == one * 2
    assert run(dsopt, "tokenize", tokenizer, "-prompt=-", lines="the cat") == one
    file = scratch / "text"
    file.write_text("the cat")
    assert run(dsopt, "tokenize", tokenizer, f"-prompt=@{file}") == one
    assert run(dsopt, "tokenize", tokenizer, "-decode", lines=one) == "<s>the cat\n"
    assert run(dsopt, "tokenize", tokenizer, "-decode", "-special-tokens=ignore", lines=one) == "the cat\n"
    # A token may end inside a character.
    assert json.loads(run(dsopt, "tokenize", tokenizer, "-decode=json", lines=one.split()[0] + " 0\n")) == "<s><s>"
    pieces = run(dsopt, "tokenize", tokenizer, "-prompt=the cat", "-pieces")
    assert pieces.startswith('"<s>":0 "the":') and [word.rsplit(":", 1)[1] for word in pieces.split()] == one.split(), pieces
    # Beside a model; with a template.
    folder = scratch / "model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"")
    shutil.copy(tokenizer, folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ x }}{% endfor %}"}))
    prompts.write_text(json.dumps({"messages": [{"role": "user", "content": "the cat"}], "x": "!"}) + "\n")
    chat = run(dsopt, "tokenize", folder / "model.onnx", f"-prompts={prompts}")
    assert run(dsopt, "tokenize", folder, "-decode", lines=chat) == "<s>user:the cat!\n", chat
    print("texts come in all ways")


if __name__ == "__main__":
    main(*sys.argv[1:])
