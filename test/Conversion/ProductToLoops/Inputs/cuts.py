"""Compiles products to kernels cut in ways that no model chooses, by a table; compares with reference.c bit for bit.

usage: cuts.py DSOPT-OPT FOLDER [ROUNDS [SEED]]. In each round every product has another blocking, drawn by SEED from all
that are possible."""
import random
import sys
import products
from products import Product
from sampled import NIGHTLY

LANES = {"x86-64-v3": 8, "x86-64-v4": 16, "cooperlake": 16, products.TILES: 16}


def shapes():
    for turns_a, turns_b in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        yield Product(37, 100, 33, turns_a, turns_b)
        yield Product(40, 130, 64, turns_a, turns_b, mode="accumulate", pads=(0, 0, 14))
        yield Product(21, 48, 1024 + 30, turns_a, turns_b, mode="bias")
        yield Product(19, 65, 40, turns_a, turns_b, batch=(2, 2), pads=(1, 2, 3))
        yield Product(5, 90, 20, turns_a, turns_b)
        yield Product(2, 300, 1024 + 9, turns_a, turns_b, mode="accumulate", pads=(1, 2, 3))
        for narrow, result in [("bf16", "f32"), ("bf16", "bf16"), ("f16", "f32"), ("f16", "f16")]:
            yield Product(35, 70, 49, turns_a, turns_b, type=narrow, result=result)
            yield Product(3, 200, 1024 + 21, turns_a, turns_b, type=narrow, result=result)
            yield Product(26, 64, 2048 + 6, turns_a, turns_b, type=narrow, result=result, mode="accumulate")


def draw(product, arch, random):
    """rows, vectors, band, packing, copies_a, result_ahead, swaps."""
    registers, lanes = (16 if arch == "x86-64-v3" else 32), LANES[arch]
    swaps = random.random() < 0.4
    turns_a, turns_b = (not product.turns_b, not product.turns_a) if swaps else (product.turns_a, product.turns_b)
    m, ahead = product.n if swaps else product.m, random.choice([-1, 0, 1, 7])
    few = ["lines"] * 3 if m <= (registers - 1) // 2 else []
    while True:
        rows, vectors = random.randint(1, 16), random.randint(1, 8)
        packing = random.choice(["transpose", "registers"] if turns_b else ["none", "fused", *few])
        if packing == "registers":
            vectors, rows = 1, min(rows, registers - lanes - 3)
        elif packing == "lines":
            rows, vectors, ahead = m, random.randint(1, 40), -1
        elif rows * vectors + vectors + 1 > registers:
            continue
        is_widened = product.type != "f32" and products.link(product, arch) == 1
        copies = is_widened or (bool(turns_a) and (product.type != "f32" or random.random() < 0.5))
        return rows, vectors, random.choice([1, 2, 3, 100]), packing, copies, ahead, swaps


def draw_tiles(product, random):
    """The same on a processor with AMX: no fewer rows than a tile has, and eight tiles."""
    while True:
        rows, vectors = random.randint(1, 64), random.randint(1, 6)
        blocks, tiles = -(-product.m // rows), -(-min(rows, product.m) // 16)
        if product.m // blocks >= min(product.m, 16) and tiles * vectors + tiles + 1 <= 8:
            return (rows, vectors, random.choice([1, 2, 100]), "transpose" if product.turns_b else "fused", bool(product.turns_a),
                    random.choice([-1, 0, 7]), False)


def table(some, arch, random):
    choices = []
    for product in some:
        rows, vectors, band, packing, copies, ahead, swaps = (draw_tiles(product, random) if arch == products.TILES else
                                                              draw(product, arch, random))
        batch = 1
        for extent in product.batch:
            batch *= extent
        choices.append(f"#exec.gemm_choice<operands = {product.type}, m = {product.m}, n = {product.n}, k = {product.k}, "
                       f"transpose_a = {str(bool(product.turns_a)).lower()}, transpose_b = {str(bool(product.turns_b)).lower()}, "
                       f"batch = {batch}, blocking = <rows = {rows}, vectors = {vectors}, band = {band}, packing = {packing}, "
                       f"copies_a = {str(copies).lower()}, result_ahead = {ahead}, swaps = {str(swaps).lower()}>>")
    return f'#exec.gemm_table<arch = "{arch}", vector_bits = {32 * LANES[arch]}, choices = [{", ".join(dict.fromkeys(choices))}]>'


def main(opt, folder, rounds="24" if NIGHTLY else "3", seed="0"):
    references, there, checked = products.compile_references(folder), products.processors_here(), 0
    for number in range(int(rounds) if there else 0):
        arch = (there[0], there[-1], products.TILES)[number % 3]
        # A table has one choice for products that differ in their result alone.
        some = [product for product in shapes() if (arch != products.TILES or product.type == "bf16")
                and (product.type == "f32" or (product.result == "f32") == (number % 2 == 0))]
        choices = table(some, arch, random.Random(f"{seed} {number}"))
        library, calls = products.compile_kernels(opt, f"{folder}/{number}", some, arch, "-O1", choices)
        for index, (product, call) in enumerate(zip(some, calls)):
            products.check(product, references, {arch: (library, call)}, index)
            checked += 1
    print(f"ok {checked} kernels")


if __name__ == "__main__":
    main(*sys.argv[1:])
