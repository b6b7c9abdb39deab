"""How `dsopt.hf.Trainer` keeps the best model: transformers' comparison, with checkpoints of dsopt."""
from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from ._callbacks import Best, take
from ._compat import is_best
from ._run import train as run_to_end
from ._tools import DsoptError, given_checkpoint
from ._weights import load_weights

if TYPE_CHECKING:
    from transformers import Trainer as _Trainer  # what it is mixed into
else:
    _Trainer = object

#: Options of what a run reads and writes, which one that only brings weights home does not have.
_OF_A_RUN = ("log", "log_norms", "breakdown", "trace", "compare", "save_async", "save_onnx", "save_existing", "eval_batches",
             "restarts", "on_step", "on_evaluation", "on_save", "stop_after", "keep_best")


class BestModel(_Trainer):
    """The part of `dsopt.hf.Trainer` that compares evaluations."""

    control: Any  #: what callbacks of transformers ask for
    _improved: List[List[Any]]  #: steps, and the metric there
    _saves: Callable[[int], bool]  #: whether transformers saves after a step; save_strategy="best" aside

    def _saves_best(self) -> bool:
        return getattr(self.args.save_strategy, "value", self.args.save_strategy) == "best"

    def _evaluate_at(self, checkpoint: Callable[[], str]) -> None:
        """Evaluates as transformers does after a step, with the model's weights; keeps the best where it saves."""
        metrics = self.evaluate(ignore_keys=self._ignored)
        is_better = is_best(self, metrics)
        state, step = self.state, self.state.global_step
        if is_better:
            self._note_best()
        if not is_better or not state.best_global_step or not (self._saves_best() or self._saves(step)):
            return
        place = checkpoint()
        best = Best(os.path.join(self.args.output_dir, "best"), step, self._best_name(), float(state.best_metric))
        if best.keep(place):
            state.best_model_checkpoint = best.path
        if self._saves_best():
            take(place, os.path.join(self.args.output_dir, f"step-{step:08d}"))
            for _, old in self._checkpoints()[:-(self.args.save_total_limit or 1_000_000)]:
                shutil.rmtree(old)
            self.control = self.callback_handler.on_save(self.args, state, self.control)

    def _checkpoints(self) -> List[Tuple[int, str]]:
        """Those in output_dir, oldest first."""
        folder = self.args.output_dir
        return sorted((int(name[5:]), os.path.join(folder, name)) for name in os.listdir(folder) if re.fullmatch(r"step-\d+", name))

    def _put_aside(self, checkpoint: Optional[Dict[str, Any]]) -> None:
        """Gives checkpoints that are later than what the run goes on from other names, as -save-existing=aside does."""
        os.makedirs(self.args.output_dir, exist_ok=True)
        for step, path in self._checkpoints():
            if step > (checkpoint["step"] if checkpoint else 0):
                with open(os.path.join(path, "manifest.json")) as file:
                    os.rename(path, f"{path}.{json.load(file)['xxh3']}")

    def _best_name(self) -> str:
        name = self.args.metric_for_best_model or ""
        return name if name.startswith("eval_") else f"eval_{name}"

    # What was best at which step, also where that is not saved: in a file beside the checkpoints.

    def _note_best(self) -> None:
        if not self.state.best_global_step:
            return
        self._improved = [*self._improved, [self.state.best_global_step, float(self.state.best_metric)]]
        os.makedirs(self.args.output_dir, exist_ok=True)
        with open(os.path.join(self.args.output_dir, "improved.json"), "w") as file:
            json.dump({self._best_name(): self._improved}, file)

    def _go_on_comparing(self, checkpoint: Optional[Dict[str, Any]]) -> None:
        """Takes up what was best before the checkpoint that a run goes on from."""
        self.state.best_metric = self.state.best_global_step = self.state.best_model_checkpoint = None
        self._improved = []
        folder = os.path.dirname(checkpoint["place"]) if checkpoint else self.args.output_dir
        file = os.path.join(folder, "improved.json")
        if not self.args.metric_for_best_model or not os.path.exists(file):
            return
        if checkpoint is None:
            os.remove(file)  # another run's
            return
        with open(file) as known:
            self._improved = [one for one in json.load(known).get(self._best_name(), []) if one[0] <= checkpoint["step"]]
        if self._improved:
            self.state.best_global_step, self.state.best_metric = self._improved[-1]
        best = Best.kept(folder, self._best_name())
        if best and [best.step, best.value] in self._improved:
            self.state.best_model_checkpoint = best.path

    def _bring_home(self, checkpoint: str) -> None:
        """Puts the weights of a checkpoint into the model."""
        file = os.path.join(self._folder.name, "home.safetensors")
        example, _, model = self._programs[0]
        items = list(self._counted([example])) if self._counts else [example]
        found = given_checkpoint([f"-resume={checkpoint}"])
        if found is None:
            raise DsoptError(f"there is no checkpoint in {checkpoint}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is trained, nor should it be
            run_to_end(model, items * self._micro_batches(), resume=found["place"], steps=found["step"], save_weights=file,
                       micro_batches=self.args.gradient_accumulation_steps, **self._common(),
                       **{name: value for name, value in self._options.items() if name not in {*self._common(), *_OF_A_RUN}})
        load_weights(self.model, file)
