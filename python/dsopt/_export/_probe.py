"""Forward by itself, before any exporter: what it draws, keeps and reads from outside, which no file would have.

It runs several times from one state. What code runs says which globals and closures it can reach.
"""
from __future__ import annotations

import contextlib
import functools
import gc
import random
import sys
import time
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .._generators import is_generator
from ._graph import is_code_of_users, place_of
from ._inputs import Job
from ._outside import Outside
from ._parameters import gradients_of
from ._random import Draws
from ._recorder import Recorder, Seeing
from ._refused import Refused
from ._settings import exporting
from ._state import Kept, State, is_same

#: What two runs from one state may differ by, of a loss and of a gradient's norm: rounding of threads, in chaotic models.
_SAME_LOSS, _SAME_GRADIENT = 1e-4, 1e-2
#: How many calls further on numbers that forward keeps are looked at.
_LATER = (7, 1000, 100_000)
_MOST_ELEMENTS = 500_000_000
_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "process_time_ns")
_ENTROPY = {"urandom", "getrandom"}


class Draw:
    """A call that drew: where, and from what state of its generator."""

    def __init__(self, place: str, state: bytes):
        self.place, self.state = place, state


class _Listening(Seeing):
    """Notes each call that draws by PyTorch's generators."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.draws: List[Draw] = []
        self.generators: Dict[int, Any] = {}

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        generator = keywords.get("generator")
        generator = torch.default_generator if generator is None else generator
        before = generator.get_state()
        result = function(*arguments, **keywords)
        if not torch.equal(before, generator.get_state()):
            self.draws.append(Draw(self.place(), before.numpy().tobytes()))
            if generator is not torch.default_generator:
                self.generators[id(generator)] = generator
        return result


class _Result:
    def __init__(self, loss: Any, gradients: Dict[str, Any]):
        self.loss, self.gradients = float(loss), gradients

    def difference(self, other: "_Result") -> float:
        """How far apart two are: 1 is as much as two runs from one state may be."""
        def apart(a: float, b: float, scale: float, allowed: float) -> float:
            if a == b or (a != a and b != b):
                return 0.0
            found = abs(a - b) / (allowed * max(scale, 1e-30))
            return found if found == found else float("inf")

        found = apart(self.loss, other.loss, max(abs(self.loss), abs(other.loss)), _SAME_LOSS)
        for name in {**self.gradients, **other.gradients}:
            a, b = self.gradients.get(name), other.gradients.get(name)
            if (a is None) != (b is None):
                return float("inf")
            if a is None or b is None or torch.equal(a, b):
                continue
            off = (a - b).nan_to_num(0.0, 0.0, 0.0).abs().double().norm()
            lost = not torch.equal(a.isfinite(), b.isfinite())
            found = max(found, float("inf") if lost else
                        float(off) / (_SAME_GRADIENT * max(float(a.nan_to_num().abs().double().norm()), 1e-30)))
        return found


class Probe:
    """Forward under observation."""

    def __init__(self, job: Job):
        self.job, self.model = job, job.model
        self.reads: List[str] = []  # places where forward asks the machine for something
        #: Of these the loss alone is compared.
        self.is_large = sum(one.numel() for one in self.model.parameters()) > _MOST_ELEMENTS

    def run(self) -> None:
        """Raises where forward depends on what no file would have; the job knows its code afterwards."""
        seed = torch.random.initial_seed()
        self.state: State
        with exporting(self.model, ()) as self.state:
            outside = Outside()
            before = [] if self.is_large else [(one, one.data, one.detach().clone()) for one in self.model.parameters()]
            try:
                first = self._observed(outside)
            except Refused:
                raise
            except Exception:  # the exporters say what it is
                return
            finally:
                changes = [restored(*one) for one in before]
            if any(changes):  # likewise
                return
            del before
            changed, moved = self.state.changed(), self.state.moved()
            self._refuse_draws(changed)
            if moved:
                self._refuse_moved(moved[0])
            again, drawn = self._again()
            noise = first.difference(again)
            if noise > 1:
                where = f" ({self.reads[0]})" if self.reads else ""
                raise Refused(f"forward computes something else from the same inputs, parameters, buffers and generators{where}: "
                              "what it reads from the clock or the machine is no part of a file; give it as an input")
            if self.reads and self._asks_entropy:
                raise Refused(f"{self.reads[0]} asks the system for random numbers, which no file can: use torch.rand")
            self.job.draws = bool(drawn)
            self._refuse_seeded(drawn, seed)
            self._check_dependence(first, noise)

    # Runs.

    def _restore(self) -> None:
        self.state.restore()
        torch.random.set_rng_state(self._rng)

    def _run(self, mode: Any = None, outside: Any = None) -> _Result:
        module = self.job.module(mode or contextlib.nullcontext(), outside=outside)
        if self.is_large:
            with torch.no_grad():
                return _Result(module(*self.job.values), {})
        return _Result(*gradients_of(self.model, lambda: module(*self.job.values)))

    def look_at_sides(self) -> None:
        """Code that no run has got to so far, as a draw left it out: the job knows it, and what it draws, afterwards."""
        known = list(self.job.code)
        codes = {one[0] for one in known} | set(self.job.branches.own)
        with exporting(self.model, self.job.code) as self.state:
            recorder = Recorder(self.model, Draws(keeps=True), self.job.branches)
            self.job.code = []
            try:
                self._observed(Outside(known, recorder), recorder)
            finally:
                self.job.code = known + [one for one in self.job.code if one[0] not in codes]
            self._refuse_draws(self.state.changed())

    def _observed(self, outside: Outside, mode: Any = None) -> _Result:
        """The first run, which finds out what code there is before it runs."""
        seen: Dict[Any, None] = {}
        self._rng = torch.random.get_rng_state()
        self._asks_entropy = False

        fresh: Dict[int, Any] = {}  # objects that forward itself makes

        def profile(frame: Any, event: str, argument: Any) -> None:
            code = frame.f_code
            if event == "call":
                makes = code.co_name in ("__init__", "__post_init__")
                own = frame.f_locals.get("self") if (makes or code not in seen) and code.co_varnames[:1] == ("self",) else None
                if makes and own is not None:
                    fresh[id(own)] = own
                if code not in seen:
                    seen[code] = None
                    if is_code_of_users(code):
                        functions = [one for one in gc.get_referrers(code) if isinstance(one, types.FunctionType)] \
                            if [name for name in code.co_freevars if name != "__class__"] else []
                        owner = None if id(own) in fresh or isinstance(own, (dict, list, set, tuple)) else own
                        self.job.code.append((code, frame.f_globals, functions, owner))
                        self.state.visit(code, frame.f_globals, functions, owner)
                        outside.visit(code, frame.f_globals)
            elif event == "c_call":
                name = getattr(argument, "__name__", "")
                if name in _ENTROPY or name in _CLOCKS or name in ("now", "utcnow", "today"):
                    if place := _place_of(frame, name in _ENTROPY):
                        self._asks_entropy |= name in _ENTROPY
                        self.reads.insert(0 if name in _ENTROPY else len(self.reads), place)

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            if mode is None:
                return self._run(outside=outside)
            with torch.no_grad():
                result = self.job.module(mode, outside=outside)(*self.job.values)
                return _Result(result[0] if isinstance(result, tuple) else result, {})
        finally:
            sys.setprofile(before)

    def _again(self) -> Tuple[_Result, List[Draw]]:
        """From the same state, at another time; with what drew."""
        self._restore()
        listening = _Listening(self.model)
        offset = random.Random(1)
        old = {name: getattr(time, name) for name in _CLOCKS}

        def other(name: str) -> Callable[[], Any]:
            unit = 10 ** 9 if name.endswith("_ns") else 1
            return lambda: old[name]() + offset.randrange(10 ** 5, 10 ** 8) * unit

        clocks = set(map(id, old.values()))
        spaces = [(names, name) for _, names, *_ in self.job.code for name in names if id(names[name]) in clocks] if self.reads else []
        patched = [(vars(time), name) for name in old] + spaces
        before = [(space, name, space[name]) for space, name in patched]
        try:
            for space, name, value in before:
                space[name] = other(next(one for one, function in old.items() if function is value))
            self.listening = listening
            return self._run(listening), listening.draws
        finally:
            for space, name, value in before:
                space[name] = value

    # Draws.

    def _refuse_draws(self, changed: List[Tuple[Kept, str]]) -> None:
        """Generators of NumPy and Python that forward has drawn from by calls that do not become PyTorch's."""
        for kept, path in changed:
            if is_generator(kept.value) and not isinstance(kept.value, torch.Generator):
                whose = "NumPy" if "numpy" in type(kept.value).__module__ else "Python"
                named = "" if path in ("random", "numpy.random") else f" '{path}'"
                raise Refused(f"{self._where(kept)} draws from {whose}'s generator{named} in a way that the file cannot have (it has "
                              "random, uniform, normal, randint, permutation, choice, beta, gamma and exponential of numbers): use "
                              "torch.rand, torch.randn or torch.randint, or draw in the loader and give it as an input")

    def _refuse_moved(self, path: str) -> None:
        raise Refused(f"{self._where(None, path)} takes the next value of the iterator '{path}', which the file would keep as it is: "
                      "give what it yields as an input, or keep it in a buffer")

    def _refuse_seeded(self, drawn: List[Draw], seed: int) -> None:
        """Draws from generators that forward itself seeds."""
        if not drawn and not self.listening.generators:
            return
        self._restore()
        torch.manual_seed(seed ^ 0x5bd1e995)
        for at, generator in enumerate(self.listening.generators.values()):
            generator.manual_seed(0x5bd1e995 + at)
        listening = _Listening(self.model)
        try:
            self._run(listening)
        except Refused:
            raise
        except Exception:  # where Python decides by what is drawn
            pass
        known = {one.state for one in drawn}
        for one in listening.draws:
            if one.state in known:
                raise Refused(f"{one.place} draws from a generator that forward seeds, whose numbers are the same in each call: "
                              "draw them once, in __init__, and keep them as a buffer")
        self._restore()

    # State.

    def _check_dependence(self, first: _Result, noise: float) -> None:
        """Raises where forward depends on what it has changed."""
        self._restore()
        self._run()
        changed = self._changes()
        if not changed:
            return
        allowed = max(2 * noise, 1e-7)
        later, runs = self._later(changed), [self._values(changed)]
        for step in range(2 + len(later)):
            self.state.restore_buffers()
            for kept in self.state.kept:
                if is_generator(kept.value):
                    kept.restore()
            torch.random.set_rng_state(self._rng)
            if step >= 2:
                for set_, value in later[step - 2]:
                    set_(value)
            try:
                depends = self._run().difference(first) > allowed
            except Exception:
                depends = True
            if depends:
                kept, path = self._read_one(changed, runs[0], first, allowed)
                raise Refused(f"{self._where(kept, path)}: forward changes {kept.what} '{path}' and depends on it, which the file "
                              "would keep as it is: make it a buffer")
            runs.append(self._values(changed))
        # What was made in the first call alone, for later ones, is no news.
        told = sorted({path for kept, path in changed if _is_count(kept.now(), path) and
                       path in kept.differs(runs[0][id(kept)], runs[1][id(kept)])})
        if told:
            self.job.told.append(f"forward changes {', '.join(told[:5])}{' and more' if len(told) > 5 else ''}, which the loss does "
                                 "not read: training with dsopt leaves it as it is")

    def _read_one(self, changed: List[Tuple[Kept, str]], values: Dict[int, Any], first: _Result, allowed: float) -> Tuple[Kept, str]:
        """Of what forward changes the first that it depends on by itself."""
        for kept, path in changed:
            self._restore()
            try:
                kept.load(values[id(kept)])
                if self._run().difference(first) > allowed:
                    return kept, path
            except Exception:
                return kept, path
        return changed[0]

    @staticmethod
    def _values(changed: List[Tuple[Kept, str]]) -> Dict[int, Any]:
        return {id(kept): kept.now() for kept, _ in changed}

    def _changes(self) -> List[Tuple[Kept, str]]:
        return [(kept, path) for kept, path in self.state.changed() if not is_generator(kept.value)]

    def _later(self, changed: List[Tuple[Kept, str]]) -> List[List[Tuple[Callable[[Any], None], Any]]]:
        """What numbers would be that forward has changed, after more calls that change them by as much."""
        numbers: List[Tuple[Callable[[Any], None], Any, Any]] = []
        for kept in {id(kept): kept for kept, _ in changed}.values():
            now, old = kept.now(), kept.saved
            if hasattr(now, "dtype") and hasattr(now, "shape"):
                if str(now.dtype).rpartition(".")[2] != "bool":
                    numbers.append((kept.load, old, now - old))
                continue
            pairs = [(name, old[name], value) for name, value in now.items() if name in old] if isinstance(now, dict) else \
                [(at, *both) for at, both in enumerate(zip(old, now))]
            numbers += [(functools.partial(_put, kept, place), first, second - first) for place, first, second in pairs
                        if type(first) in (int, float) and type(second) in (int, float) and first != second]
        return [[(set_, old + type(by)(by * calls) if isinstance(by, (int, float)) else old + by * calls)
                 for set_, old, by in numbers] for calls in _LATER] if numbers else []

    # Places.

    def _where(self, kept: Optional[Kept], path: str = "") -> str:
        """The line of the model that changes something, found by running once more."""
        self._restore()
        watched = next((one for _, one, name in self.state.iterators if name == path), None)
        found: List[str] = []
        last: Dict[Any, int] = {}  # by frame, the line that it is in

        def differs() -> bool:
            return bool(kept.changes()) if kept is not None else watched is not None and watched.at > 0

        def note(frame: Any, line: int) -> None:
            found.append(place_of(frame, line))

        def inside(frame: Any, event: str, argument: Any) -> Any:
            if found:
                return None
            if event in ("line", "return") and differs():
                note(frame, last.get(frame, frame.f_lineno))
                return None
            last[frame] = frame.f_lineno
            return inside

        def call(frame: Any, event: str, argument: Any) -> Any:
            return inside if not found and is_code_of_users(frame.f_code) else None

        before = sys.gettrace()
        sys.settrace(call)
        try:
            self._run()
        except Exception:
            pass
        finally:
            sys.settrace(before)
        self._restore()
        return found[0] if found else "forward"


def restored(parameter: Any, data: Any, value: Any) -> bool:
    """Makes a parameter what it was; whether it was something else."""
    if parameter.data_ptr() == data.data_ptr() and is_same(parameter.detach(), value):
        return False
    parameter.data = data
    with torch.no_grad():
        parameter.data.copy_(value)
    return True


def _put(kept: Kept, place: Any, value: Any) -> None:
    """Makes one of the values that something holds another."""
    now = kept.now()
    now[place] = value
    kept.load(now)


def _place_of(frame: Any, entropy: bool) -> str:
    """The innermost line of the model, where it is the one that calls; of the system's random numbers, through any other."""
    while frame is not None:
        if is_code_of_users(frame.f_code):
            return place_of(frame)
        if not entropy and "torch" in frame.f_code.co_filename:
            return ""
        frame = frame.f_back
    return ""


def _is_count(now: Any, path: str) -> bool:
    """Whether what changed is a number or a container, not what a forward has left of its results."""
    if not isinstance(now, dict):
        return not hasattr(now, "dtype")
    return any(path.endswith(str(name)) and isinstance(value, (int, float, str)) for name, value in now.items())


