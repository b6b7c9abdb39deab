"""Runs dsopt on a case's files, and tells what is wrong with how it ended."""
from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Execution"))
from runs import varied  # noqa: E402

#: Refusals that the documentation has: what a random layout may meet.
REFUSALS = [
    r"cannot cut \d+ blocks? into (the \d+ chunks that schedule \S+ has on )?\d+ pipeline stages",
    r"-optimizer=(lamb|adafactor) .*-gradient-type=fp32, got param",
    r"has nothing that \d+ tensor shards could cut",
    r"adafactor sees whole parameters, but .* is cut in tensor shards",
    r"goes by norms of whole parameters and has its state on",
    r"comes from an? \S+ .*and then from .*, expected logits",
]
#: What a message never says: names of passes, operations and types of the compiler, and of nothing.
INTERNAL = [
    r"'(graph|dist|exec|arith|linalg|memref|scf|func|vector|math|llvm|tensor|builtin|cf|affine)\.", r"failed to", r"Assertion",
    r"operand #\d", r"redefinition of symbol", r"no operation of the kernel", r"PLEASE submit a bug", r"Stack dump",
    r"tensor<", r"memref<", r"terminate called", r"UNREACHABLE", r"[Ss]anitizer", r"unrealized", r"0x[0-9a-f]{6}",
    r"\(DSOPT_CHECK_ACCESSES\)",
]
#: A refusal of the model says which node, input or option it speaks of.
NAMED = r"'[^']*'|-[a-z][a-z-]+|\.npz|\.onnx"


class Failure(Exception):
    """Something is wrong: `kind` is what minimisation keeps."""

    def __init__(self, kind: str, what: str, command: list[str] | None = None):
        super().__init__(kind, what, command)
        self.kind, self.what, self.command = kind, what, command


class Refused(Exception):
    """A documented refusal."""


@dataclasses.dataclass
class Run:
    """What a training run logged and saved; text is what equal bits have in common."""
    command: list[str]
    text: dict[int, tuple[str, str]]
    steps: list[dict]
    head: dict
    end: dict
    weights: dict[str, np.ndarray]

    @property
    def hash(self) -> str:
        return self.end.get("weights_hash", "")


def read_safetensors(path: str) -> dict[str, np.ndarray]:
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = file.read()
    kinds = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64}
    return {name: np.frombuffer(body[slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def field(line: str, key: str) -> str:
    found = re.search(rf'"{key}":("[^"]*"|[^,}}]*)', line)
    return found.group(1) if found else ""


class Tool:
    def __init__(self, dsopt: str, folder: str, seconds: float = 120, device: str = ""):
        """`device`: what SOFT_DEVICE says of the device in software that programs are for; without it for the host."""
        self.dsopt, self.folder, self.seconds, self.device = dsopt, folder, seconds, device
        os.makedirs(folder, exist_ok=True)
        self.environment = dict(os.environ, DSOPT_CACHE=os.path.join(folder, "cache"))
        if device:
            build = os.path.dirname(os.path.dirname(dsopt))
            self.environment.update(LD_LIBRARY_PATH=os.path.join(build, "test", "SoftDevice"), SOFT_DEVICE=device)
        self.processes = 0

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def execute(self, command: list[str]) -> str:
        """Standard output of a command that ended well; Refused or Failure otherwise."""
        self.processes += 1
        # A module says itself what it is for.
        if self.device and command[0] == self.dsopt and command[1] != "stage.mlir":
            command = [*command, "-target=cuda", "-arch=sm_80"]
        # Actions go one after the other, and do what they say; or as they can, which gives the same bits.
        checks = {} if "DSOPT_CHECK_ACCESSES" in os.environ or self.processes % 2 else {"DSOPT_CHECK_ACCESSES": str(self.processes)}
        process = subprocess.Popen(varied(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env={**self.environment, **checks}, cwd=self.folder, start_new_session=True)
        try:
            out, err = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failure("hang", f"did not end within {self.seconds:.0f} s", command) from None
        self.judge(command, process.returncode, err)
        return out

    def judge(self, command: list[str], status: int, err: str) -> None:
        errors = [line for line in err.splitlines() if "error" in line] or err.splitlines()
        first = errors[0] if errors else "no message"
        if status == 0:
            return
        if status < 0 or status > 3:
            raise Failure("crash", f"ended with status {status}: {first}", command)
        if any(re.search(pattern, err) for pattern in REFUSALS):
            raise Refused(first)
        if any(re.search(pattern, err) for pattern in INTERNAL):
            raise Failure("internal", f"an internal message: {first}", command)
        if not re.search(NAMED, first):
            raise Failure("nameless", f"a message that names nothing: {first}", command)
        raise Failure("refused", f"refused: {first}", command)

    def train(self, model: str, *options: str, command: list[str] | None = None, norms: bool = False, weights: bool = False) -> Run:
        """Trains a model or a module (or runs a program) on the case's data."""
        log, saved = self.path("log.jsonl"), self.path("weights.safetensors")
        for path in (log, saved):
            if os.path.exists(path):
                os.remove(path)
        words = [*(command or [self.dsopt, model, "-run"]), "-data=data.npz", "-log=log.jsonl", "-quiet", *options]
        words += ["-log-norms"] if norms else []
        words += ["-save-weights=weights.safetensors"] if weights else []
        self.execute(words)
        lines = open(log).read().splitlines()
        steps = [json.loads(line) for line in lines if '"loss":' in line]
        text = {json.loads(line)["step"]: (field(line, "loss"), field(line, "grad_norm")) for line in lines if '"loss":' in line}
        return Run(words, text, steps, json.loads(lines[0]).get("run", {}), json.loads(lines[-1]).get("end", {}),
                   read_safetensors(saved) if weights else {})


def shown(command: list[str]) -> str:
    return shlex.join(command)
