"""What type checkers say of options: ./dev lint reads this; an error that does not come is an unused ignore, and fails."""
from dsopt import evaluate, plan, predict, start, train

train("model.onnx", "data.npz", dp=2, zero=3, micro_batches="2", recompute="auto", betas=(0.9, 0.95), lr_scale={"*.bias": 2}, no_decay=["*.bias"],
      shuffle=True, save_weights="trained.safetensors", plan=None)  # type: ignore[call-arg]
train("model.onnx", "data.npz", recompute="ful")  # type: ignore[arg-type]
train("model.onnx", "data.npz", micro_batchs=2)  # type: ignore[call-arg]
start("model.onnx", None, zero=[3])  # type: ignore[arg-type]
plan("model.onnx", data="data.npz", device_memory="4G", offload_params="disk")  # type: ignore[arg-type]
evaluate("model.onnx", "data.npz", metric="accuracy", threads=2, shuffle="yes")  # type: ignore[arg-type]
predict("model.onnx", "data.npz", outputs=["logits"], precission="bf16")  # type: ignore[call-arg]
