"""The benchmark's GPT in JAX: forward, backward and AdamW as one jit; prints a row.

usage: jax_gpt.py jit [--size S] [--steps N] [--precision fp32|bf16]
XLA takes as many threads as it finds CPUs.
"""
import os

import gpt

args = gpt.arguments("jit")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
import jax
import jax.numpy as jnp

compute = jnp.bfloat16 if args.precision == "bf16" else jnp.float32


def loss_of(weights, ids, labels):
    def norm(x, name):
        x = x.astype(jnp.float32)
        mean = x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
        return ((x - mean) * scale * weights[name + ".weight"] + weights[name + ".bias"]).astype(compute)

    def linear(x, name):
        return x @ weights[name + ".weight"].astype(compute).T + weights[name + ".bias"].astype(compute)

    x = weights["wte.weight"][ids] + weights["wpe.weight"]
    rows, tokens, width = x.shape
    causal = jnp.tril(jnp.ones((tokens, tokens), bool))
    for i in range(args.layers):
        layer = f"layers.{i}"
        qkv = linear(norm(x, layer + ".norm1"), layer + ".qkv").reshape(rows, tokens, 3, args.heads, -1)
        q, k, v = jnp.moveaxis(qkv, (2, 3), (0, 2))
        scores = (q @ k.swapaxes(-1, -2)).astype(jnp.float32) * q.shape[-1] ** -0.5
        y = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), -1).astype(compute) @ v
        x = x + linear(y.swapaxes(1, 2).reshape(rows, tokens, width), layer + ".proj")
        up = jax.nn.gelu(linear(norm(x, layer + ".norm2"), layer + ".up"), approximate=True)
        x = x + linear(up, layer + ".down")
    logits = (norm(x, "norm") @ weights["wte.weight"].astype(compute).T).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def update(state, time, ids, labels):
    (b1, b2), lr = gpt.ADAMW["betas"], gpt.ADAMW["lr"]
    loss, gradients = jax.value_and_grad(loss_of)({name: w for name, (w, _, _) in state.items()}, ids, labels)

    def one(w, m, v, g):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = m / (1 - b1**time) / (jnp.sqrt(v / (1 - b2**time)) + gpt.ADAMW["eps"])
        return w * (1 - lr * gpt.ADAMW["weight_decay"]) - lr * step, m, v

    return {name: one(*values, gradients[name]) for name, values in state.items()}, loss


compiled = jax.jit(update, donate_argnums=0)
state = {name: (jnp.asarray(w), jnp.zeros_like(w), jnp.zeros_like(w)) for name, w in gpt.weights(args).items()}
time = 0


def step(ids, labels):
    global state, time
    time += 1
    state, loss = compiled(state, jnp.float32(time), jnp.asarray(ids, jnp.int32), jnp.asarray(labels, jnp.int32))
    jax.block_until_ready(state)
    return float(loss)


gpt.report(gpt.train(args, step))
