"""Optimizers against numpy in double; flat kernels whole and cut at odd places."""
import sys
import numpy as np
from kernels import call, compile_kernels

opt, folder, *driver = sys.argv[1:]
if driver:
    from device import Device
device = Device(*driver) if driver else None
LR, FACTOR, APPLY, DECAY, BETA1, ONE1, BETA2, ONE2, EPS, STEP, RSQRT, DECAYED, FIRST = range(13)
N = 100003
random = np.random.default_rng(2)


def scalars(step, apply=1.0):
    s = np.zeros(16)
    s[LR], s[FACTOR], s[APPLY], s[DECAY] = 1e-3, 0.5, apply, 0.1
    s[BETA1], s[ONE1], s[BETA2], s[ONE2], s[EPS] = 0.9, 1 - 0.9, 0.999, 1 - 0.999, 1e-8
    s[STEP], s[RSQRT] = 1e-3 / (1 - 0.9**step), 1 / np.sqrt(1 - 0.999**step)
    s[DECAYED], s[FIRST] = 1 - 1e-3 * 0.1, step == 1
    return s.astype(np.float32)


def sgd(s, p, g):
    g = g * s[FACTOR] + s[DECAY] * p
    return [p - s[LR] * g]


def momentum(s, p, g, m):
    g = g * s[FACTOR] + s[DECAY] * p
    m = g if s[FIRST] else s[BETA1] * m + g
    return [p - s[LR] * m, m]


def adam(s, p, g, m, v, decoupled=False):
    g = g * s[FACTOR]
    if decoupled:
        p = p * s[DECAYED]
    else:
        g = g + s[DECAY] * p
    m, v = s[BETA1] * m + s[ONE1] * g, s[BETA2] * v + s[ONE2] * g * g
    return [p - s[STEP] * m / (np.sqrt(v) * s[RSQRT] + s[EPS]), m, v]


def lion(s, p, g, m):
    g = g * s[FACTOR]
    return [p * s[DECAYED] - s[LR] * np.sign(s[BETA1] * m + s[ONE1] * g), s[BETA2] * m + s[ONE2] * g]


def adagrad(s, p, g, total):
    g = g * s[FACTOR] + s[DECAY] * p
    total = total + g * g
    return [p - s[LR] * g / (np.sqrt(total) + s[EPS]), total]


CASES = {"lion": (lion, 1, ""), "adagrad": (adagrad, 1, ""), "sgd": (sgd, 0, ""), "momentum": (momentum, 1, ""), "adam": (adam, 2, ""),
         "adamw": (lambda *a: adam(*a, decoupled=True), 2, " {decoupled}")}

for name, (oracle, states, attributes) in CASES.items():
    tensors = ["tensor<10xf32>"] * (2 + states)
    values = ", ".join(f"%a{i}: {t}" for i, t in enumerate(tensors))
    names = ", ".join(f"%a{i}" for i in range(len(tensors)))
    results = ", ".join(tensors[1:])
    text = f"""func.func @update({values}, %s: tensor<16xf32>) -> ({results}) {{
  %r:{1 + states} = graph.{name.removesuffix("w")} {names}, %s{attributes} : ({", ".join(tensors)}, tensor<16xf32>) -> ({results})
  return {", ".join(f"%r#{i}" for i in range(1 + states))} : {results}
}}
"""
    _, _, library = compile_kernels(opt, folder, f"update_{name}", text, device)
    start = [random.standard_normal(N).astype(np.float32) for _ in range(2 + states)]
    if states == 2 or name == "adagrad":
        start[-1] = np.abs(start[-1]) * 0.01
    gradients = [random.standard_normal(N).astype(np.float32) for _ in range(3)]
    outcomes = []
    for parts in [1, 7, 13, 1009]:
        places = sorted(random.integers(0, N, parts - 1).tolist() + [0, N])
        ranges = list(zip(places, places[1:]))[::-1]
        arrays = [a.copy() for a in start]
        exact = [a.astype(np.float64) for a in start]
        for step, gradient in enumerate(gradients, 1):
            arrays[1][:] = gradient
            s = scalars(step)
            call(library, f"update.{name}", ranges, arrays + [s])
            new = oracle(s.astype(np.float64), exact[0], gradient.astype(np.float64), *exact[2:])
            exact = [new[0], gradient] + new[1:]
        for got, want in zip(arrays, exact):
            error = np.max(np.abs(got - want)) / np.max(np.abs(want))
            if not error < 5e-7:
                sys.exit(f"{name} differs by {error:.3g} of the largest value")
        before = [a.copy() for a in arrays]
        arrays[1][::3] = np.nan
        call(library, f"update.{name}", ranges, arrays + [scalars(4, apply=0.0)])
        for a, b in zip(arrays[:1] + arrays[2:], before[:1] + before[2:]):
            if a.tobytes() != b.tobytes():
                sys.exit(f"{name} changes values that are not to be changed")
        outcomes.append(arrays)
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other):
            if a.tobytes() != b.tobytes():
                sys.exit(f"{name}: bytes change with the cut")
    print(f"ok {name}")
