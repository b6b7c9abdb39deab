"""Engines that train in turn, each one a part of what they share: a GAN's two losses with an optimizer each.

    d = dsopt.initialize(DiscriminatorLoss(G, D), example, optimizer=torch.optim.Adam(D.parameters(), lr=2e-4))
    g = dsopt.initialize(GeneratorLoss(G, D), example, optimizer=torch.optim.Adam(G.parameters(), lr=1e-4))
    dsopt.in_turn(d, g)

Each is a program of its own with a copy of what its module has. Before an engine steps, measures or hands out weights it
takes what others have changed since: of the tensors that both modules have those that the other one trains, and buffers
(running statistics), of which the last one's are taken.
"""
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Dict, Iterable, List, Set, Tuple

from ._tools import DsoptError, run_tool
from ._weights import parameter_rows, read_stored, tensors_of

if TYPE_CHECKING:
    from ._engine import Engine


class _Holding:
    """The tensors of an engine's module that are in its program, by what they are."""

    def __init__(self, engine: "Engine"):
        table = json.loads(run_tool([*engine._run.twin_words(), "-list-parameters=json"]))
        use = {row["name"]: row["use"] for row in table}
        tensors = tensors_of(engine.module)
        self.names: Dict[int, str] = {}
        self.trained: Set[int] = set()
        self.buffers: Set[int] = set()
        for row in parameter_rows(engine.model_path):
            if use.get(row["onnx"]) not in ("trained", "frozen"):
                continue
            one = id(tensors[row["torch"]])
            self.names[one] = row["torch"]
            if use[row["onnx"]] == "trained":
                self.trained.add(one)
            elif row["kind"] == "buffer":
                self.buffers.add(one)

    def gives(self, other: "_Holding") -> Dict[str, str]:
        """What the other one takes of this one: its own names by this one's."""
        return {name: other.names[one] for one, name in self.names.items()
                if one in other.names and (one in self.trained or one in self.buffers)}


class Turns:
    """What engines in turn have changed, and when they took it from each other."""

    def __init__(self, engines: List["Engine"]):
        self._engines = engines
        self._clock = 0
        self._changed: Dict["Engine", int] = {engine: 0 for engine in engines}  # when, 0: never
        self._taken: Dict[Tuple["Engine", "Engine"], int] = {}
        self._holdings: Dict["Engine", _Holding] = {}
        for engine in engines:
            self._see(engine)

    def _see(self, engine: "Engine") -> bool:
        """Compares an engine with those that were seen, as soon as it knows its parameters; whether it does."""
        if engine in self._holdings or not engine._opened:
            return engine in self._holdings
        mine = _Holding(engine)
        for other in self._holdings.values():
            if both := mine.trained & other.trained:
                raise DsoptError(f"two engines in turn train '{mine.names[both.pop()]}': expected that one does, as with "
                                 "optimizer=torch.optim.Adam(module.parameters()) of its own module's alone")
        self._holdings[engine] = mine
        if len(self._holdings) == len(self._engines):
            self._check_common()
        if engine._has_changed():
            self.note(engine)
        return True

    def _check_common(self) -> None:
        for engine, mine in self._holdings.items():
            others = [other for other in self._holdings.values() if other is not mine]
            if not any(mine.names.keys() & other.trained or other.names.keys() & mine.trained for other in others):
                raise DsoptError(f"an engine in turn, of {type(engine.module).__name__}, has no parameter that another one "
                                 "trains, and none of its own is another one's: expected modules that share tensors")

    def note(self, engine: "Engine") -> None:
        """It has changed what it has."""
        self._clock += 1
        self._changed[engine] = self._clock

    def trained_by_others(self, engine: "Engine", names: Iterable[str]) -> Set[str]:
        """Those of these parameters of an engine that others train."""
        self._see(engine)
        elsewhere = {one for other, holding in self._holdings.items() if other is not engine for one in holding.trained}
        return set(names) & {name for one, name in self._holdings[engine].names.items() if one in elsewhere}

    def catch_up(self, engine: "Engine") -> None:
        """It takes what others have changed since it last did."""
        self._see(engine)
        for giver in sorted(self._engines, key=self._changed.__getitem__):  # the last one's buffers are what counts
            if giver is engine or self._taken.get((engine, giver), 0) == self._changed[giver] or not self._see(giver):
                continue
            if giver._result is None and giver.stopped is not None:
                giver.finish()  # which hands on what there is
                continue
            if names := self._holdings[giver].gives(self._holdings[engine]):
                stored = read_stored(giver._weights_now())
                engine._take({mine: stored[theirs] for theirs, mine in names.items() if theirs in stored})
            self._taken[engine, giver] = self._changed[giver]

    def leave(self, engine: "Engine") -> None:
        """It ends: others take the last of it."""
        for other in self._engines:
            if other is not engine and other._opened and other._is_open:
                self.catch_up(other)


def in_turn(*engines: "Engine") -> None:
    """From now on these engines, over modules that share tensors, train in turn: each takes what others have trained
    since, before it steps, measures or hands out weights. No two of them may train the same parameter."""
    if len(engines) < 2 or len(set(engines)) < len(engines):
        raise ValueError(f"in_turn takes two engines or more, each once; got {len(engines)}, {len(set(engines))} of them different")
    for engine in engines:
        if engine._turns is not None:
            raise RuntimeError("an engine is in turn with others already: one call names all of them")
        engine._check_open()
    turns = Turns(list(engines))
    for engine in engines:
        engine._turns = turns
