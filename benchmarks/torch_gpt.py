"""The benchmark's GPT in PyTorch and DeepSpeed: exports it as ONNX, or trains it and prints a row.

usage: torch_gpt.py export|eager|compile|budget|tensor|fsdp2|zero0|...|zero3 [--device cpu|cuda] [--size S] [--steps N] [--threads N] [--precision fp32|bf16] [--offload cpu|nvme --nvme DIR] [--out DIR]
budget is compile with half of the activations' memory, the rest computed again in backward. The zero modes, fsdp2 and tensor (DTensor's tensor
parallelism, all ranks of one micro-batch, with embedding and loss by vocabulary) run under torchrun, one process a rank.
"""
import os

import gpt

args = gpt.arguments("export", "eager", "compile", "budget", "tensor", "fsdp2", "zero0", "zero1", "zero2", "zero3")
os.environ.setdefault("DS_ACCELERATOR", args.device)
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

if args.device == "cpu":
    torch.set_num_threads(args.threads)
else:
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(rows, tokens, 3, args.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(args.vocabulary, args.width)
        self.wpe = nn.Embedding(args.tokens, args.width)
        self.layers = nn.ModuleList(Layer(args.width) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)
        values = gpt.load_weights(args.weights) if args.weights else gpt.weights(args)
        self.load_state_dict({name: torch.from_numpy(value) for name, value in values.items()})

    def forward(self, input_ids, labels):
        x = self.wte(input_ids) + self.wpe.weight
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def export():
    batches = [gpt.micro_batch(args, i) for i in range(2 * args.steps)]
    os.makedirs(args.out, exist_ok=True)
    np.savez(os.path.join(args.out, "batches.npz"), input_ids=np.stack([x for x, _ in batches]),
             labels=np.stack([y for _, y in batches]))
    torch.onnx.export(GPT().eval(), tuple(map(torch.from_numpy, batches[0])), os.path.join(args.out, "model.onnx"), dynamo=True,
                      optimize=False, opset_version=18, input_names=["input_ids", "labels"], output_names=["loss"], verbose=False)


def here(array):
    return torch.from_numpy(array).to(args.device, non_blocking=True)


def report(row):
    """With the most memory of a GPU that PyTorch has had from the driver."""
    if args.device == "cuda":
        row["device_mb"] = torch.cuda.max_memory_reserved() / 2**20
    gpt.report(row)


def train_alone():
    model = GPT().to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **gpt.ADAMW)
    if args.mode == "budget":
        torch._functorch.config.activation_memory_budget = 0.5
    forward = torch.compile(model) if args.mode in ("compile", "budget") else model

    def step(ids, labels):
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = forward(here(ids), here(labels))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    report(gpt.train(args, step))


def train_sharded():
    """FSDP2: parameters in slices, gathered a layer at a time."""
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    model = GPT().to(args.device)
    narrow = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if args.precision == "bf16" else MixedPrecisionPolicy()
    for layer in model.layers:
        fully_shard(layer, mp_policy=narrow)
    fully_shard(model, mp_policy=narrow)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **gpt.ADAMW)

    def step(ids, labels):
        loss = model(here(ids), here(labels))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    finish_ranks(dist, gpt.train(args, step, dist.get_rank(), dist.get_world_size()))


def train_tensor():
    """DTensor: columns then rows of each layer, heads, the table's rows and the loss over them."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module

    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    mesh = init_device_mesh(args.device, (dist.get_world_size(),))
    model = GPT().to(args.device)
    for layer in model.layers:
        # Heads are columns of q, k and v each.
        for name, weight, bias in zip("qkv", layer.qkv.weight.detach().chunk(3), layer.qkv.bias.detach().chunk(3)):
            part = nn.Linear(args.width, args.width, device=args.device)
            part.load_state_dict({"weight": weight, "bias": bias})
            setattr(layer, name, part)
        del layer.qkv
        parallelize_module(layer, mesh, {name: ColwiseParallel() for name in ("q", "k", "v", "up")} | {name: RowwiseParallel() for name in ("proj", "down")})
    parallelize_module(model, mesh, {"wte": RowwiseParallel(input_layouts=Replicate())})
    cut, whole = ([value for value in model.parameters() if isinstance(value, DTensor) == is_cut] for is_cut in (True, False))
    optimizer = torch.optim.AdamW([{"params": cut}, {"params": whole}], fused=True, **gpt.ADAMW)

    def attend(layer, x):
        rows, tokens, _ = x.shape
        q, k, v = (part(x).view(rows, tokens, -1, args.width // args.heads).transpose(1, 2) for part in (layer.q, layer.k, layer.v))
        return layer.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, tokens, -1))

    def step(ids, labels):
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            x = model.wte(here(ids)) + model.wpe.weight
            for layer in model.layers:
                x = x + attend(layer, layer.norm1(x))
                x = x + layer.down(F.gelu(layer.up(layer.norm2(x)), approximate="tanh"))
            logits = F.linear(DTensor.from_local(model.norm(x), mesh, [Replicate()]), model.wte.weight)
            targets = distribute_tensor(here(labels).flatten(), mesh, [Replicate()])
            with loss_parallel():
                loss = F.cross_entropy(logits.flatten(0, 1), targets)
                loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.full_tensor().item()

    finish_ranks(dist, gpt.train(args, step))


def finish_ranks(dist, row):
    """The first rank says what all have: the mean of their losses."""
    rows = [None] * dist.get_world_size()
    dist.all_gather_object(rows, row)
    if dist.get_rank() == 0:
        losses = [sum(values) / len(rows) for values in zip(*(row["losses"] for row in rows))]
        report({**rows[0], "losses": losses})
    dist.destroy_process_group()


def train_ranks():
    import deepspeed
    import torch.distributed as dist

    deepspeed.init_distributed(dist_backend="gloo" if args.device == "cpu" else "nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = GPT()
    zero = {"stage": int(args.mode[-1])}
    if args.offload != "none":
        place = {"device": args.offload, "nvme_path": args.nvme}
        zero.update(offload_optimizer=place, **({"offload_param": place} if zero["stage"] == 3 else {}))
    config = {"train_micro_batch_size_per_gpu": args.rows, "zero_optimization": zero,
              "optimizer": {"type": "AdamW", "params": gpt.ADAMW}, "gradient_clipping": 0.0, "steps_per_print": 10**9}
    if args.precision == "bf16":
        config["bf16"] = {"enabled": True}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)

    def step(ids, labels):
        loss = engine(here(ids), here(labels))
        engine.backward(loss)
        engine.step()
        dist.barrier()
        return loss.item()

    finish_ranks(dist, gpt.train(args, step, rank, world))


if args.mode == "export":
    export()
elif args.mode == "tensor":
    train_tensor()
elif args.mode == "fsdp2":
    train_sharded()
elif args.mode.startswith("zero"):
    train_ranks()
else:
    train_alone()
