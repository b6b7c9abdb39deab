"""Answers of a model: `generate` starts a compiled program, which reads prompts and writes what it chose."""
import codecs
import json
import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Iterator, List, Sequence, Union

import numpy as np

from ._run import Result
from ._tools import DsoptError, config_words, find_tool, message_of, option_words, run_tool, spoken

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

Model = Union[str, "os.PathLike[str]", Result]


def _model_words(model: Model) -> List[str]:
    """The model's file; of what a run left with the weights that it has trained."""
    if not isinstance(model, Result):
        return [os.fspath(model), "-generate"]
    if model.model is None or model.weights is None:
        raise ValueError("the result has no weights: train with save_weights=FILE, or give the model and resume= or weights=")
    return [model.model, "-generate", f"-weights={model.weights}"]


def _is_text(prompt: Any) -> bool:
    return isinstance(prompt, str) or (isinstance(prompt, Sequence) and len(prompt) > 0 and isinstance(prompt[0], dict))


def _prompt_words(prompts: List[Any], folder: str) -> List[str]:
    """A file of texts and conversations, or of tokens."""
    if all(_is_text(prompt) for prompt in prompts):
        path = os.path.join(folder, "prompts.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for prompt in prompts:
                file.write(json.dumps(prompt if isinstance(prompt, str) else {"messages": prompt}) + "\n")
        return [f"-prompts={path}"]
    if any(_is_text(prompt) for prompt in prompts):
        raise ValueError("prompts are texts and tokens, expected one of them")
    path = os.path.join(folder, "prompts.npz")
    arrays = [np.asarray(prompt) for prompt in prompts]
    for number, array in enumerate(arrays):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"prompt {number} is an array of {array.dtype} {list(array.shape)}, expected tokens of one dimension")
    np.savez(path, **{str(number): array.astype(np.int64) for number, array in enumerate(arrays)})
    return [f"-prompt-ids={path}"]


def _stream(words: List[str], folder: Any) -> Iterator[str]:
    """The text of one answer as it comes; leaving the loop ends the program."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = ""
    with folder, subprocess.Popen([find_tool(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        try:
            while piece := os.read(process.stdout.fileno(), 4096):
                text = last + decoder.decode(piece)
                # What ends the answer's last line is none of it.
                last = "\n" if text.endswith("\n") else ""
                if text := text[: len(text) - len(last)]:
                    yield text
        finally:
            process.stdout.close()
            if process.poll() is None:
                process.terminate()
            errors = process.stderr.read().decode(errors="replace")
        if process.wait() != 0:
            raise DsoptError(message_of(spoken(errors, folder.name)), process.returncode)


def generate(model: Model, prompts: Any, *, stream: bool = False, config: Any = None, **options: "Unpack[Options]") -> Any:
    """Goes on from prompts (`dsopt generate`). `model` is a file, or what `train` returned: its weights answer then.
    A prompt is a text, a conversation ([{"role": .., "content": ..}, ..], by the tokenizer's chat template) or tokens (a
    list or array of numbers); `prompts` is one or a list of them. Texts are answered by texts, tokens by arrays; with n=
    each by a list of so many. stream=True yields the pieces of one text's answer as they come.

        dsopt.generate("model.onnx", "Once upon a time", max_new_tokens=50, temperature=0.8, seed=1)
        dsopt.generate(result, [[1, 2, 3], [4, 5]], max_new_tokens=8)
    """
    isOne = _is_text(prompts) or (len(prompts) > 0 and np.ndim(prompts[0]) == 0 and not isinstance(prompts[0], str))
    every = [prompts] if isOne else list(prompts)
    if not every:
        return []
    if stream and not (isOne and isinstance(prompts, str) and "n" not in options):
        raise ValueError("stream=True needs one prompt, a text, and one answer of it")
    folder = tempfile.TemporaryDirectory(prefix="dsopt-")
    words = [*_model_words(model), "-quiet", *config_words(config, folder.name), *option_words(options)]
    if stream:
        return _stream([*words, f"-prompt={prompts}"], folder)
    with folder:
        said = run_tool([*words, "-logprobs=0", *_prompt_words(every, folder.name)], folder=folder.name)
        answers: List[List[Any]] = [[] for _ in every]
        for line in map(json.loads, said.splitlines()):
            tokens = [choice["token"] for choice in line["choices"]]
            answers[line["prompt"]].append(line["text"] if _is_text(every[0]) else np.array(tokens, np.int64))
        results = answers if "n" in options else [one[0] for one in answers]
        return results[0] if isOne else results
