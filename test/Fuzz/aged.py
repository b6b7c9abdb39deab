"""Random graphs in older opsets and IR versions (aging.py): the same bits.

usage: aged.py DSOPT FOLDER [-seed=N] [-cases=N]

Without options a sample of them, at night all.
"""
from __future__ import annotations

import itertools
import os
import random
import sys
import warnings

import onnx

from checks import Checker, Layout
from generate import generate
from tool import Failure, Tool, shown

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from aging import aged, by_hand  # noqa: E402
from sampled import sampled  # noqa: E402

OLDEST, CASES, BY_DAY = 7, 400, 24


def age(seed: int, model: onnx.ModelProto) -> tuple[int, onnx.ModelProto] | None:
    """The model in the first of some older opsets, of two in three cases in one below 13, where operators have other forms."""
    newest, drawn = model.opset_import[0].version, random.Random(seed)
    parts = [drawn.sample(part, len(part)) for part in (range(OLDEST, min(13, newest)), range(13, newest))]
    for opset in itertools.chain(*(parts if drawn.random() < 2 / 3 else reversed(parts))):
        old = aged(model, opset, by_hand)
        if old is not None:
            return opset, old
    return None


def compare(dsopt: str, folder: str, seed: int) -> int | None:
    """The opset in which a case has the bits that it has in its own; None where the converter reaches none."""
    case = generate(seed)
    found = age(seed, case.graph.to_onnx())
    if found is None:
        return None
    checker = Checker(Tool(dsopt, os.path.join(folder, str(seed))), case)
    checker.write(case)
    onnx.save(found[1], checker.tool.path("old.onnx"))
    base = checker.train(Layout(), norms=True, weights=True)
    old = checker.train(Layout(), norms=True, weights=True, model="old.onnx")
    where = f"opset {found[0]}"
    if old.text != base.text:
        raise Failure("aged", f"losses and gradient norms are {old.text} in {where}, else {base.text}", old.command)
    # Frozen numbers may have become attributes, which are no weights.
    for name in map(case.graph.spell, [*case.graph.parameters, *case.graph.statistics]):
        if name in base.weights and (name not in old.weights or old.weights[name].tobytes() != base.weights[name].tobytes()):
            raise Failure("aged", f"'{name}' has other values in {where}", old.command)
    return found[0]


def main() -> None:
    warnings.simplefilter("ignore")
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    given = {name: int(value) for name, _, value in (word.lstrip("-").partition("=") for word in sys.argv[1:] if word.startswith("-"))}
    if len(words) != 2 or set(given) - {"seed", "cases"}:
        sys.exit(__doc__)
    dsopt, folder = map(os.path.abspath, words)
    first = given.get("seed", 1)
    seeds = range(first, first + given["cases"]) if "cases" in given else sampled(range(first, first + CASES), BY_DAY)
    opsets, failures = [], 0
    for seed in seeds:
        try:
            opsets.append(compare(dsopt, folder, seed))
        except Failure as failure:
            failures += 1
            print(f"seed {seed}: {failure.kind}: {failure.what}\n  {shown(failure.command or [])}", flush=True)
    old = [opset for opset in opsets if opset is not None]
    print(f"{len(old)} graphs in opsets {', '.join(map(str, sorted(set(old))))}, {len(opsets) - len(old)} that the converter does not reach, {failures} failures")
    sys.exit(1 if failures or not old else 0)


if __name__ == "__main__":
    main()
