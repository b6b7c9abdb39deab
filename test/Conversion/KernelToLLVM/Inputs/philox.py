"""The random words of operations: a reference (lib/Dialect/Graph/GraphFoldRandom.cpp has the rule)."""
import numpy as np

MASK = np.uint64(0xFFFFFFFF)


def words(number, step, micro_batch, seed, elements, last=0):
    """Philox 4x32-10 for the operation's key, Philox 2x32-10 for each element."""

    def high_low(x, m):
        return ((x * np.uint64(m)) >> np.uint64(32), (x * np.uint64(m)) & MASK)

    def u(*values):
        return [np.uint64(value & 0xFFFFFFFF) for value in values]

    x, (k0, k1) = u(number, step, micro_batch, last), u(seed, seed >> 32)
    for _ in range(10):
        (high0, low0), (high1, low1) = high_low(x[0], 0xD2511F53), high_low(x[2], 0xCD9E8D57)
        x = [high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & MASK, (k1 + np.uint64(0xBB67AE85)) & MASK
    key, x0, x1 = x[0], np.arange(elements, dtype=np.uint64), np.full(elements, x[1], np.uint64)
    for _ in range(10):
        high, low = high_low(x0, 0xD256D193)
        x0, x1, key = high ^ key ^ x1, low, (key + np.uint64(0x9E3779B9)) & MASK
    return x0


def uniform(shape, number=0, step=0, micro_batch=0, seed=0, which=0):
    """graph.uniform; `which` is 2 for numbers that a model chooses itself, 1 more for a second draw."""
    count = int(np.prod(shape))
    drawn = words(number, step, micro_batch, seed, count, (~number ^ which) & 0xFFFFFFFF)
    return ((drawn >> np.uint64(8)).astype(np.float64) * 2.0**-24).reshape(shape)


def kept(ratio, shape, number=0, step=0, micro_batch=0, seed=0):
    count = int(np.prod(shape))
    return (words(number, step, micro_batch, seed, count) >= np.uint64(np.ceil(ratio * 2.0**32))).reshape(shape)
