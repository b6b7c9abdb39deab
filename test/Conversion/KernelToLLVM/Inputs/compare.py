"""Rows, columns and data movement against numpy, on odd sizes (see kernels.py)."""
import sys
from math import erf, pi, sqrt
import numpy as np
from kernels import Suite, spell
from philox import kept, uniform
from sampled import sampled

suite = Suite(*sys.argv[1:])
random = np.random.default_rng(1)
f64 = np.float64


def real(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def T(*shape, t="f32"):
    return "tensor<" + "x".join([str(s) for s in shape] + [t]) + ">"


def softmax(x, axis):
    e = np.exp(x.astype(f64) - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


verf = np.vectorize(erf, otypes=[f64])

for shape in sampled([(15, 17), (1, 1), (17, 1023), (1023, 15), (3, 5, 64), (2, 3, 5)], 3):
    n, x, h = shape[-1], real(*shape), real(*shape)
    g, b, X, V, S = real(n), real(n), T(*shape), T(n), T(*shape[:-1], 1)
    axis = len(shape) - 1
    r = x.astype(f64) + h
    mean = r.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(((r - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    y = (r - mean) * rstd * g + b
    if n > 1:
        suite.check(f"residual and layer_norm {shape}", f"""
  %r = graph.add %arg0, %arg1 : ({X}, {X}) -> {X}
  %y, %m, %s = graph.layer_norm %r, %arg2, %arg3 {{axis = {axis}, epsilon = 1.0e-5 : f64}} : ({X}, {V}, {V}) -> ({X}, {S}, {S})
  return %r, %y, %m, %s : {X}, {X}, {S}, {S}""", [x, h, g, b], [r, y, mean, rstd])
    suite.check(f"softmax {shape}", f"""
  %y = graph.softmax %arg0 {{axis = {axis}}} : ({X}) -> {X}
  return %y : {X}""", [x * 10], [softmax(x * 10, -1)])
    p = softmax(x, -1)
    suite.check(f"softmax backward {shape}", f"""
  %t = graph.mul %arg0, %arg1 : ({X}, {X}) -> {X}
  %s = graph.reduce_sum %t {{axes = array<i64: {axis}>, keepdims}} : ({X}) -> {S}
  %d = graph.sub %arg1, %s : ({X}, {S}) -> {X}
  %r = graph.mul %arg0, %d : ({X}, {X}) -> {X}
  return %r : {X}""", [p.astype(np.float32), h], [p * (h - (p * h).sum(-1, keepdims=True))])
    lead = tuple(range(axis))
    if n > 1:
        suite.check(f"column sums {shape}", f"""
  %t = graph.mul %arg0, %arg1 : ({X}, {X}) -> {X}
  %s = graph.reduce_sum %t {{axes = array<i64: {", ".join(map(str, lead))}>}} : ({X}) -> {V}
  return %s : {V}""", [x, h], [(x.astype(f64) * h).sum(lead)])

for shape in sampled([(17, 10), (1, 1), (31, 1023)], 1):
    n, c = shape
    x, labels = real(n, c, scale=3), random.integers(0, c, n)
    labels[::5] = -100
    X, L, N = T(n, c), T(n, t="i64"), T(n)
    lse = np.log(np.exp(x.astype(f64)).sum(1))
    loss = np.where(labels == -100, 0, lse - x[np.arange(n), np.where(labels == -100, 0, labels)])
    suite.check(f"nll {shape}", f"""
  %n, %l = graph.nll %arg0, %arg1 {{ignore_index = -100}} : ({X}, {L}) -> ({N}, {N})
  return %n, %l : {N}, {N}""", [x, labels], [loss, lse])
    suite.check(f"nll backward {shape}", f"""
  %k = graph.reshape %arg2 : ({N}) -> {T(n, 1)}
  %z = graph.sub %arg0, %k : ({X}, {T(n, 1)}) -> {X}
  %e = graph.exp %z : ({X}) -> {X}
  %o = graph.one_hot %arg1 {{depth = {c}}} : ({L}) -> {X}
  %d = graph.sub %e, %o : ({X}, {X}) -> {X}
  return %d : {X}""", [x, labels, lse.astype(np.float32)],
                [np.exp(x - lse[:, None]) - (labels[:, None] == np.arange(c))])

x = np.concatenate([real(1000, scale=4), [0, -0.0, 1e-30, 30, -30, 90, -110]]).astype(np.float32)
X = T(x.size)
phi = 0.5 * (1 + verf(x.astype(f64) / sqrt(2)))
tanh = np.tanh(sqrt(2 / pi) * (x + 0.044715 * x.astype(f64) ** 3))
suite.check("gelu", f"""
  %a = graph.gelu %arg0 : ({X}) -> {X}
  %b = graph.gelu %arg0 {{approximate_tanh}} : ({X}) -> {X}
  return %a, %b : {X}, {X}""", [x], [x * phi, x * 0.5 * (1 + tanh)])
with np.errstate(all="ignore"):
    for name, low, high, f in sampled([("exp", -87, 88, np.exp), ("exp", -1, 1, np.exp), ("log", 1e-30, 1e30, np.log),
                               ("log", 0.5, 2, np.log), ("tanh", -9, 9, np.tanh), ("tanh", -0.01, 0.01, np.tanh),
                               ("erf", -4, 4, verf), ("sqrt", 0, 1e9, np.sqrt), ("abs", -3, 3, np.abs),
                               ("sigmoid", -90, 90, lambda x: 1 / (1 + np.exp(-x))), ("neg", -1, 1, np.negative),
                               ("reciprocal", 0.1, 9, lambda x: 1 / x), ("sign", -1, 1, np.sign),
                               ("relu", -1, 1, lambda x: np.maximum(x, 0)), ("acos", -1, 1, np.arccos),
                               ("acosh", 1, 1e6, np.arccosh), ("asin", -1, 1, np.arcsin), ("asinh", -100, 100, np.arcsinh),
                               ("atan", -100, 100, np.arctan), ("atanh", -0.99, 0.99, np.arctanh), ("cosh", -5, 5, np.cosh),
                               ("sinh", -5, 5, np.sinh)], 8):
        points = random.uniform(low, high, 100003).astype(np.float32)
        Y = T(points.size)
        # Each element relative to itself: the quotient of the kernel's and numpy's.
        exact = f(points.astype(f64))
        body = f"  %y = graph.{name} %arg0 : ({Y}) -> {Y}\n"
        if name in ("erf", "tanh", "abs", "neg", "sign", "relu", "sinh") or name.startswith("a"):
            suite.check(f"{name} in [{low}, {high}]", body + f"  return %y : {Y}", [points], [exact], 2e-6)
            continue
        small = np.abs(exact) < 1e-3 if name == "log" else np.abs(exact) < 1e-37
        points, exact = points[~small], exact[~small]
        Y = T(points.size)
        body = f"  %y = graph.{name} %arg0 : ({Y}) -> {Y}\n  %q = graph.div %y, %arg1 : ({Y}, {Y}) -> {Y}\n"
        suite.check(f"{name} in [{low}, {high}], each", body + f"  return %q : {Y}",
                    [points, exact.astype(np.float32)], [np.ones(points.size)], 6e-7)
    special = np.array([np.inf, -np.inf, np.nan, 0, 1, -1], np.float32)
    Y = T(6)
    suite.check("special values", f"""
  %e = graph.exp %arg0 : ({Y}) -> {Y}
  %l = graph.log %arg0 : ({Y}) -> {Y}
  %m = graph.relu %arg0 : ({Y}) -> {Y}
  %r = graph.reduce_max %arg0 {{axes = array<i64: 0>}} : ({Y}) -> {T()}
  return %e, %l, %m, %r : {Y}, {Y}, {Y}, {T()}""", [special],
                [np.exp(special), np.log(special), np.maximum(special, 0), np.max(special)])

key, stream = np.array([7, 5, 3, 2, 1, 1, 1], np.int32), np.array([4, ~4], np.int32)
for shape in sampled([(3, 5, 64), (1, 1), (1,), (1023,), (15, 17), (17, 1023), (2, 3, 5, 7), (9, 1, 2)], 3):
    x, X, ratio = real(*shape), T(*shape), 0.1 * len(shape)
    y = np.where(kept(ratio, shape, number=4, step=3, micro_batch=2, seed=7 + (5 << 32)), x.astype(f64) / (1 - ratio), 0)
    drop = f"graph.dropout %arg0, %arg1, %arg2 {{ratio = {ratio} : f64}} : ({X}, {T(7, t='i32')}, {T(2, t='i32')}) -> {X}"
    suite.check(f"dropout {shape}", f"""
  %y = {drop}
  return %y : {X}""", [x, key, stream], [y])
    if len(shape) > 1 and shape[-1] > 1:
        # As part of sums over rows and over columns.
        lead = range(len(shape) - 1)
        suite.check(f"sums of dropout {shape}", f"""
  %y = {drop}
  %r = graph.reduce_sum %y {{axes = array<i64: {len(shape) - 1}>}} : ({X}) -> {T(*shape[:-1])}
  return %r : {T(*shape[:-1])}""", [x, key, stream], [y.sum(-1)])
        suite.check(f"column sums of dropout {shape}", f"""
  %y = {drop}
  %c = graph.reduce_sum %y {{axes = array<i64: {", ".join(map(str, lead))}>}} : ({X}) -> {T(shape[-1])}
  return %c : {T(shape[-1])}""", [x, key, stream], [y.sum(tuple(lead))])

    drawn = uniform(shape, number=4, step=3, micro_batch=2, seed=7 + (5 << 32))
    suite.check(f"uniform {shape}", f"""
  %y = graph.uniform %arg0, %arg1 : ({T(7, t='i32')}, {T(2, t='i32')}) -> {X}
  %z = graph.add %y, %arg2 : ({X}, {X}) -> {X}
  return %y, %z : {X}, {X}""", [key, stream, x], [drawn, drawn + x])

# The last of four shards of columns in three parts, on the second of two ranks: it has the mask of its part of the whole.
whole = kept(0.3, (6, 24), number=4, step=3, micro_batch=2, seed=7 + (5 << 32)).reshape(6, 3, 4, 2)[:, :, 3].reshape(6, 6)
x, X = real(6, 6), T(6, 6)
suite.check("dropout of a shard", f"""
  %y = graph.dropout %arg0, %arg1, %arg2 {{ratio = 0.3 : f64, begin = 2 : i64, runs = #graph.runs<2 every 8 step 4>}} : ({X}, {T(7, t='i32')}, {T(2, t='i32')}) -> {X}
  return %y : {X}""", [x, key, stream], [np.where(whole, x.astype(f64) / 0.7, 0)])

# The last of four sequence shards, on the second of two ranks, and of these the second of two tensor shards.
whole = kept(0.3, (2, 8, 6), number=4, step=3, micro_batch=2, seed=7 + (5 << 32))[:, 6:, 3:]
x, X = real(2, 2, 3), T(2, 2, 3)
runs = "runs = #graph.runs<3 every 6 step 3>, time_begin = 12 : i64, time_runs = #graph.runs<12 every 48 step 24>"
suite.check("dropout of positions", f"""
  %y = graph.dropout %arg0, %arg1, %arg2 {{ratio = 0.3 : f64, {runs}}} : ({X}, {T(7, t='i32')}, {T(2, t='i32')}) -> {X}
  return %y : {X}""", [x, key, stream], [np.where(whole, x.astype(f64) / 0.7, 0)])

a, b = np.abs(real(7, 1, 33)) + 0.1, real(5, 1)
A, B, C, M = T(7, 1, 33), T(5, 1), T(7, 5, 33), T(7, 5, 33, t="i1")
suite.check("broadcasting", f"""
  %0 = graph.add %arg0, %arg1 : ({A}, {B}) -> {C}
  %1 = graph.div %arg1, %arg0 : ({B}, {A}) -> {C}
  %2 = graph.pow %arg0, %arg1 : ({A}, {B}) -> {C}
  %3 = graph.min %0, %1 : ({C}, {C}) -> {C}
  %4 = graph.less %0, %1 : ({C}, {C}) -> {M}
  %5 = graph.not %4 : ({M}) -> {M}
  %6 = graph.where %5, %arg0, %arg1 : ({M}, {A}, {B}) -> {C}
  %7 = graph.cast %5 : ({M}) -> {C}
  %8 = graph.cast %2 : ({C}) -> {T(7, 5, 33, t="i64")}
  %9 = graph.expand %arg1 : ({B}) -> {C}
  return %0, %1, %2, %3, %5, %6, %7, %8, %9 : {C}, {C}, {C}, {C}, {M}, {C}, {C}, {T(7, 5, 33, t="i64")}, {C}""",
            [a, b], [a + b, b / a.astype(f64), a.astype(f64) ** b, np.minimum(a + b, b / a), ~(a + b < b / a),
                     np.where(~(a + b < b / a), a, b), ~(a + b < b / a), (a.astype(f64) ** b).astype(np.int64),
                     np.broadcast_to(b, (7, 5, 33))])
for exponent in sampled([0.5, 2.0, 3.0, -1.0, -0.5, 4.0, 2.5, 1.0], 3):
    P = T(7, 1, 33)
    suite.check(f"pow {exponent}", f"""
  %c = graph.constant dense<{exponent}> : {T()}
  %y = graph.pow %arg0, %c : ({P}, {T()}) -> {P}
  return %y : {P}""", [a], [a.astype(f64) ** exponent])

x = real(3, 17, 5)
X = T(3, 17, 5)
m = T
suite.check("reductions", f"""
  %a = graph.reduce_sum %arg0 {{axes = array<i64: 1>}} : ({X}) -> {m(3, 5)}
  %b = graph.reduce_max %arg0 {{axes = array<i64: 0, 2>, keepdims}} : ({X}) -> {m(1, 17, 1)}
  %c = graph.reduce_min %arg0 {{axes = array<i64: 1, 2>}} : ({X}) -> {m(3)}
  %d = graph.reduce_mean %arg0 {{axes = array<i64: 0, 1, 2>}} : ({X}) -> {m()}
  %e = graph.reduce_sum %arg0 {{axes = array<i64: 0>}} : ({X}) -> {m(17, 5)}
  %f = graph.reduce_sum %arg0 {{axes = array<i64>, keepdims}} : ({X}) -> {X}
  %g = graph.softmax %arg0 {{axis = 1}} : ({X}) -> {X}
  return %a, %b, %c, %d, %e, %f, %g : {m(3, 5)}, {m(1, 17, 1)}, {m(3)}, {m()}, {m(17, 5)}, {X}, {X}""", [x],
            [x.astype(f64).sum(1), x.max((0, 2), keepdims=True), x.min((1, 2)), x.astype(f64).mean(),
             x.astype(f64).sum(0), x, softmax(x, 1)], 1e-5)
i = random.integers(-50, 50, (9, 70))
J = T(9, 70, t="i64")
suite.check("integers", f"""
  %s = graph.reduce_sum %arg0 {{axes = array<i64: 1>}} : ({J}) -> {T(9, t="i64")}
  %m = graph.reduce_max %arg0 {{axes = array<i64: 0>}} : ({J}) -> {T(70, t="i64")}
  %t = graph.mul %arg0, %arg0 : ({J}, {J}) -> {J}
  %e = graph.equal %t, %arg0 : ({J}, {J}) -> {T(9, 70, t="i1")}
  %a = graph.abs %arg0 : ({J}) -> {J}
  return %s, %m, %e, %a : {T(9, t="i64")}, {T(70, t="i64")}, {T(9, 70, t="i1")}, {J}""", [i],
            [i.sum(1), i.max(0), i * i == i, np.abs(i)])
mask = random.integers(0, 2, (9, 70)).astype(np.bool_)
suite.check("masks", f"""
  %c = graph.constant dense<-1.0> : {T()}
  %y = graph.where %arg0, %arg1, %c : ({spell(mask)}, {T(9, 70)}, {T()}) -> {T(9, 70)}
  return %y : {T(9, 70)}""", [mask.astype(np.uint8), w := real(9, 70)], [np.where(mask, w, -1)])

x, y = real(4, 6, 10), real(4, 3, 10)
X, Y = T(4, 6, 10), T(4, 3, 10)
padded = np.pad(x[:, 1:, :], ((1, 2), (0, 3), (0, 0)), constant_values=7)
back = np.zeros((4, 13, 10))
back[:, 1::2, ::-1] = x
suite.check("movement", f"""
  %a = graph.transpose %arg0 {{perm = array<i64: 2, 0, 1>}} : ({X}) -> {T(10, 4, 6)}
  %b = graph.slice %arg0 {{starts = array<i64: 1, 5, 9>, sizes = array<i64: 2, 3, 10>, steps = array<i64: 1, -2, -1>}} : ({X}) -> {T(2, 3, 10)}
  %c = graph.slice_grad %arg0 {{starts = array<i64: 0, 1, 9>, steps = array<i64: 1, 2, -1>}} : ({X}) -> {T(4, 13, 10)}
  %d = graph.pad %arg0 {{lows = array<i64: 1, -1, 0>, highs = array<i64: 2, 3, 0>, value = 7.0 : f32}} : ({X}) -> {T(7, 8, 10)}
  %e = graph.concat %arg0, %arg1, %arg0 {{axis = 1}} : ({X}, {Y}, {X}) -> {T(4, 15, 10)}
  return %a, %b, %c, %d, %e : {T(10, 4, 6)}, {T(2, 3, 10)}, {T(4, 13, 10)}, {T(7, 8, 10)}, {T(4, 15, 10)}""", [x, y],
            [x.transpose(2, 0, 1), x[1:3, [5, 3, 1]][:, :, ::-1], back, padded, np.concatenate([x, y, x], 1)])
table, ids = real(50, 33), random.integers(-50, 50, (3, 7))
ids.flat[:3] = 50, -51, 1 << 40  # outside: the nearest row
nearest = np.clip(np.where(ids < 0, ids + 50, ids), 0, 49)
spots = random.integers(0, 6, (4, 2, 10)).astype(np.int32)
suite.check("gathers", f"""
  %a = graph.gather %arg0, %arg1 {{axis = 0}} : ({T(50, 33)}, {T(3, 7, t="i64")}) -> {T(3, 7, 33)}
  %b = graph.gather_elements %arg2, %arg3 {{axis = 1}} : ({X}, {T(4, 2, 10, t="i32")}) -> {T(4, 2, 10)}
  return %a, %b : {T(3, 7, 33)}, {T(4, 2, 10)}""", [table, ids, x, spots],
            [table[nearest], np.take_along_axis(x, spots.astype(np.int64), 1)])

x = real(9, 33, scale=3)
X, J = T(9, 33), T(9, 33, t="i64")
k, j = random.integers(-90, 90, (9, 33)), random.integers(1, 9, (9, 33))
suite.check("rounding", f"""
  %a = graph.floor %arg0 : ({X}) -> {X}
  %b = graph.ceil %arg0 : ({X}) -> {X}
  %c = graph.round %arg0 : ({X}) -> {X}
  %d = graph.sin %arg0 : ({X}) -> {X}
  %e = graph.cos %arg0 : ({X}) -> {X}
  %f = graph.rem %arg1, %arg2 : ({J}, {J}) -> {J}
  %g = graph.reduce_prod %arg0 {{axes = array<i64: 1>}} : ({X}) -> {T(9)}
  return %a, %b, %c, %d, %e, %f, %g : {X}, {X}, {X}, {X}, {X}, {J}, {T(9)}""", [x, k, j],
            [np.floor(x), np.ceil(x), np.rint(x), np.sin(x.astype(f64)), np.cos(x.astype(f64)), np.fmod(k, j),
             x.astype(f64).prod(1)])
# Remainders to the bit: numbers of every kind with each other, bits at random, and quotients of few and of many digits.
special = np.array([0, 1, 2.5, 3, 0.1, 1e-30, 1e30, 2**23 - 1, 2**24, 1.1754942e-38, 1.17549435e-38, 1e-45, 3e-45, 7e-42, 3.4028235e38, np.inf, np.nan], np.float32)
special = np.concatenate([special, -special])
anything = random.integers(0, 2**32, (2, 5000), dtype=np.uint32).view(np.float32)
near = real(2, 5000, scale=100)
x, y = (np.concatenate([pairs.ravel(), anything[i], near[i]]) for i, pairs in enumerate(np.meshgrid(special, special)))
X = T(x.size)


def narrow(x, t):
    """To the nearest number of a type, of two to the even one; infinite where it has none."""
    if t == "f16":
        return x.astype(np.float16).astype(np.float32)
    bits = x.view(np.uint32)
    return np.where(np.isnan(x), x, (((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32)).view(np.float32))


with np.errstate(all="ignore"):
    suite.check("remainders", f"""
  %r = graph.rem %arg0, %arg1 : ({X}, {X}) -> {X}
  %o = graph.constant dense<1.0> : {X}
  %s = graph.div %o, %r : ({X}, {X}) -> {X}
  return %r, %s : {X}, {X}""", [x, y], [np.fmod(x, y), 1 / np.fmod(x, y)], exact=True)
    for t in ("f16", "bf16"):
        if t == "bf16":
            # Processors that round to bf16 by an instruction take numbers below the least normal one for 0.
            normal = [(np.abs(z) >= np.finfo(np.float32).tiny) | (z == 0) | np.isnan(z) for z in (x, y, np.fmod(narrow(x, t), narrow(y, t)))]
            x, y = x[np.all(normal, 0)], y[np.all(normal, 0)]
            X = T(x.size)
        N = T(x.size, t=t)
        suite.check(f"remainders in {t}", f"""
  %a = graph.cast %arg0 : ({X}) -> {N}
  %b = graph.cast %arg1 : ({X}) -> {N}
  %r = graph.rem %a, %b : ({N}, {N}) -> {N}
  %f = graph.cast %r : ({N}) -> {X}
  return %f : {X}""", [x, y], [np.fmod(narrow(x, t), narrow(y, t))], exact=True)
for size in sampled([17, 1, 64, 1023], 2):
    x = random.integers(-50, 50, (3, size, 2))
    X = T(3, size, 2, t="i64")
    back = np.flip(np.cumsum(np.flip(x, 1), 1), 1) - x
    suite.check(f"cumsum {size}", f"""
  %a = graph.cumsum %arg0 {{axis = 1}} : ({X}) -> {X}
  %b = graph.cumsum %arg0 {{axis = 1, exclusive, reverse}} : ({X}) -> {X}
  return %a, %b : {X}, {X}""", [x], [np.cumsum(x, 1), back])
# Windows of 3 by 2 that move by 2 and 1 over padded planes, dilated in the second dimension.
x = real(2, 7, 5, 3)
padded = np.full((2, 10, 7, 3), 9.0)
padded[:, 1:8, 1:6] = x
places = [(2 * o + k, p + 2 * q) for o in range(4) for p in range(5) for k in range(3) for q in range(2)]
windows = np.stack([padded[:, i, j] for i, j in places], 1).reshape(2, 4, 5, 3, 2, 3)
g = real(2, 4, 5, 3, 2, 3)
sums = np.zeros((2, 10, 7, 3))
for at, (i, j) in enumerate(places):
    sums[:, i, j] += g.reshape(2, -1, 3)[:, at]
X, W = T(2, 7, 5, 3), T(2, 4, 5, 3, 2, 3)
moves = "axis = 1, strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, lows = array<i64: 1, 1>"
suite.check("windows", f"""
  %w = graph.windows %arg0 {{{moves}, counts = array<i64: 4, 5>, kernel = array<i64: 3, 2>, value = 9.0 : f32}} : ({X}) -> {W}
  %s = graph.windows_sum %arg1 {{{moves}}} : ({W}) -> {X}
  return %w, %s : {W}, {X}""", [x, g], [windows, sums[:, 1:8, 1:6]])
