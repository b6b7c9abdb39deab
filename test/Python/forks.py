"""Scripts in processes of their own that have PyTorch already: forked, since importing it takes longer than most of them."""
import atexit
import copy
import functools
import importlib
import os
import runpy
import socket
import sys
import tempfile
import traceback
import warnings


def prepare(modules):
    """Imports what takes long, for all scripts. PyTorch's newer exporter reads the sources of hundreds of functions for its table
    of what writes which operation, anew for each model: here it is made once and copied."""
    for module in ("torch", "torch.export", "torch.onnx", "onnxscript", *modules):
        importlib.import_module(module)
    registry = importlib.import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
    make = functools.lru_cache(maxsize=None)(registry.from_torchlib)

    def copied(opset_version=18):
        table = copy.copy(make(opset_version=opset_version))
        table.functions = {target: list(functions) for target, functions in table.functions.items()}
        return table

    registry.from_torchlib = staticmethod(copied)
    torch = sys.modules["torch"]
    torch.set_num_threads(1)  # models are tiny, and threads that wait for each other spin
    # What the first model brings in belongs to all.
    program = torch.export.export(torch.nn.Tanh(), (torch.zeros(2),))
    torch.onnx.export(program, (), None, opset_version=20, dynamo=True, optimize=False, verbose=False)


def _run(script, words, environment, said, errors):
    """The whole life of a forked process."""
    status = 1
    try:
        os.dup2(said, 1)
        os.dup2(errors, 2)
        os.environ.update(environment)
        if "OMP_NUM_THREADS" in environment:  # PyTorch has read it
            sys.modules["torch"].set_num_threads(int(environment["OMP_NUM_THREADS"]))
        if environment.get("PYTHONWARNINGS") == "ignore":
            warnings.simplefilter("ignore")
        sys.argv = [script, *words]
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
        runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _start(script, words, environment, *files):
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _run(script, words, environment, *(file.fileno() for file in files))
    return child


def run(script, *words, ranks=1, environment=None, folder=None):
    """Runs a script, on several ranks as torch.distributed.run starts them: what it printed, with what went wrong behind it, and
    its status, 0 where all ranks ended well. `environment` is what it has beside this process's."""
    environment, before = dict(environment or {}), os.getcwd()
    with tempfile.TemporaryFile("w+", errors="replace") as said, tempfile.TemporaryFile("w+", errors="replace") as errors:
        os.chdir(folder or before)
        children = []
        try:
            if ranks == 1:
                children.append(_start(script, words, environment, said, errors))
            else:
                with socket.create_server(("127.0.0.1", 0)) as free:
                    port = free.getsockname()[1]
                for rank in range(ranks):
                    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0", "WORLD_SIZE": str(ranks),
                           "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                           "TORCHELASTIC_RUN_ID": "forks"}
                    children.append(_start(script, words, {**environment, **own}, said, errors))
        finally:
            os.chdir(before)
        states = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        said.seek(0)
        errors.seek(0)
        status = next((state for state in states if state), 0)
        return said.read() + (errors.read() if status else ""), status
