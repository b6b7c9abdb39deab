"""Small models of one's own: written as ONNX, trained, and read back."""
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute
from saved_weights import safetensors

__all__ = ["TensorProto", "check", "helper", "initializer", "node", "train", "value", "write"]


def value(name, shape=(), type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def initializer(name, array, type=None):
    """An initializer; of a type that numpy lacks (bfloat16) if `type` says so."""
    array = np.asarray(array, np.float32) if isinstance(array, (list, float, int)) else array
    if type is not None:
        array = array.astype(helper.tensor_dtype_to_np_dtype(type))
    return numpy_helper.from_array(np.asarray(array), name)


def node(op, inputs, outputs, **attributes):
    def split(names):
        return names.split() if isinstance(names, str) else names

    return helper.make_node(op, split(inputs), split(outputs), **attributes)


def write(path, nodes, inputs, initializers, outputs=None, opset=20, metadata=None):
    """A model whose loss is `loss`."""
    graph = helper.make_graph(nodes, "g", inputs, outputs or [value("loss")], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    if metadata:
        helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


def train(dsopt, path, data, *options, status=0):
    """Trains on `data`, a dict of arrays: the run, and the weights it saved. Of a run that fails, what it says."""
    with tempfile.TemporaryDirectory() as folder:
        batches, log, weights = (os.path.join(folder, name) for name in ("data.npz", "log.jsonl", "weights"))
        np.savez(batches, **data)
        command = [dsopt, path, "-run", f"-data={batches}", f"-log={log}", f"-save-weights={weights}", *options]
        done = execute(command, status=status)
        if status:
            return done.stderr
        run = Run(log)
        run.said = done.stderr
        return run, safetensors(weights)
