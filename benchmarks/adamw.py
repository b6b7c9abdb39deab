"""AdamW alone, on many parameters: a model for dsopt, or a peer's optimizer, which prints a row.

usage: adamw.py model|torch|deepspeed [--parameters N] [--threads N] [--steps N] [--out MODEL.onnx --data DATA.npz]
The model is one big table of which a step reads some rows.
"""
import argparse
import json
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=["model", "torch", "deepspeed"])
parser.add_argument("--parameters", type=int, default=100_000_000)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=9)
parser.add_argument("--out")
parser.add_argument("--data")
args = parser.parse_args()


def model():
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    table = np.random.default_rng(0).standard_normal((args.parameters // 128, 128), dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["rows"], axis=0),
         helper.make_node("Mul", ["rows", "rows"], ["squares"]),
         helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0)],
        "adamw", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 8])],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], [numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), args.out)
    np.savez(args.data, ids=np.arange(8, dtype=np.int64).reshape(1, 1, 8))


def peer():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import torch

    torch.set_num_threads(args.threads)
    parameters = [torch.nn.Parameter(torch.randn(args.parameters // 8)) for _ in range(8)]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 1e-3)
    if args.mode == "torch":
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=True)
    else:
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        optimizer = DeepSpeedCPUAdam(parameters, lr=1e-3, weight_decay=0.1, adamw_mode=True)
    times = []
    for _ in range(args.steps):
        began = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - began)
    print(json.dumps({"losses": [], "times": times}))


model() if args.mode == "model" else peer()
