"""Compiles products to kernels for several processors, runs them, compares with reference.c bit for bit.

usage: products.py DSOPT-OPT FOLDER. Each kernel runs whole and cut at odd places, so that any number of threads is
covered; what lies between the result's lines and around it stays as it was. Between the lines of a and b there is NaN, and
behind their last elements memory that cannot be read."""
import ctypes
import itertools
import mmap
import os
import re
import sys
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, os.pardir))
from compiled import compile_ir, run
from sampled import sampled

#: -arch, what /proc/cpuinfo says of machines that have it: the first and the last that the machine has.
PROCESSORS = [("x86-64-v3", "avx2"), ("x86-64-v4", "avx512f"), ("cooperlake", "avx512_bf16")]
#: One with AMX, which kernels of bf16 are compiled for and run on any machine with tiles in software.
TILES = "sapphirerapids"
HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f32": np.float32, "bf16": np.uint16, "f16": np.uint16}
NAN = {"f32": np.nan, "bf16": 0x7FC0, "f16": 0x7E00}


def link(product, arch):
    """Elements of the contraction that an instruction adds."""
    return {TILES: 32, "cooperlake": 2}.get(arch, 1) if product.type == "bf16" else 1


class Product:
    """`pads`: elements between lines of a, b and c; `mode`: store, accumulate, addend or bias; `turns_c`: c lies transposed;
    `type` is that of a and b, `result` that of c."""

    def __init__(self, m, n, k, turns_a=0, turns_b=0, batch=(), pads=(0, 0, 0), mode="store", turns_c=0, type="f32", result="f32"):
        self.__dict__.update(locals())

    def matrices(self):
        """Of a, b and c: shape as it lies, shape as the operation sees it, strides of its batch and lines."""
        m, n, k = self.m, self.n, self.k
        for lies, pad, turned in [((k, m) if self.turns_a else (m, k), self.pads[0], 0),
                                  ((n, k) if self.turns_b else (k, n), self.pads[1], 0),
                                  ((n, m) if self.turns_c else (m, n), self.pads[2], self.turns_c)]:
            leading = lies[1] + pad
            strides = [leading, 1]
            for extent in [lies[0], *reversed(self.batch)][:len(self.batch)]:
                strides.insert(0, strides[0] * extent)
            yield lies, leading, strides, turned

    def text(self, index):
        def memref(lies, strides, turned, type):
            shape, strides = list(self.batch) + list(lies), list(strides)
            if turned:
                shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
            return f"memref<{'x'.join(map(str, shape))}x{type}, strided<[{', '.join(map(str, strides))}]>>"

        matrices = list(self.matrices())
        a, b, c = [memref(lies, strides, turned, type)
                   for (lies, _, strides, turned), type in zip(matrices, (self.type, self.type, self.result))]
        d = f"memref<{self.n}x{self.result}>" if self.mode == "bias" else memref(matrices[2][0], matrices[2][2], matrices[2][3], "f32")
        flags = "".join([", transpose_a" if self.turns_a else "", ", transpose_b" if self.turns_b else "",
                         ", into_gradient" if self.mode == "accumulate" else ""])
        plus = f" plus %d : {d}" if self.mode == "addend" else ""
        of = f" of [{self.m}, {self.n}, {self.k}]" if self.mode == "addend" else ""
        product = (f"exec.gemm_epilogue bias %a, %b, %d -> %c {{{flags[2:]}}} : {a}, {b}, {d} -> {c}" if self.mode == "bias"
                   else f"exec.gemm %a, %b{plus} -> %c{of} {{{flags[2:]}}} : {a}, {b} -> {c}")
        return (f"func.func @segment{index}(%a: {a}, %b: {b}, %c: {c}, %d: {d}) attributes {{exec.segment, exec.temp_bytes = 0 : i64}} {{\n"
                f"  {product}\n  return\n}}\n")


def compile_kernels(opt, folder, products, arch, level="-O3", table=""):
    """The library, and for each product the kernel's name and range. `table`: what the module says besides."""
    os.makedirs(folder, exist_ok=True)
    module = "".join(product.text(index) for index, product in enumerate(products))
    if table:
        module = f"module attributes {{exec.gemm_table = {table}}} {{\n{module}}}\n"
    outlined = run([opt, f"-pass-pipeline=builtin.module(attach-target{{arch={arch}}},nest-kernels,compile-products)"], module)
    calls = [(m.group(1), int(m.group(2))) for m in re.finditer(r"by <@kernels::@(\w+) range (\d+)>", outlined)]
    if len(calls) != len(products):
        sys.exit(f"{len(products)} products, {len(calls)} with kernels for {arch}")
    target = re.search(r"#target = .*|^#.* = #dsopt.target<.*", outlined, re.M).group(0)
    inner = outlined[outlined.index("module @kernels"):]
    lowered = run([opt, "-lower-kernels"], target + "\n" + inner[:inner.index("\n  }") + 4])
    # The translation knows no target of ours.
    lowered = re.sub(r"^#target = .*|attributes \{dsopt.target = #target\} ", "", lowered, flags=re.M)
    library, march, sources, ir = f"{folder}/{arch}.so", arch, [], run(["mlir-translate", "--mlir-to-llvmir"], lowered)
    if arch == TILES:
        march, sources = processors_here()[-1], ["-x", "c", f"{HERE}/tiles.c"]
        ir = re.sub(r"@llvm\.x86\.(tile\w+|tdpbf16ps)\.internal", r"@\1", re.sub(r"\bx86_amx\b", "i64", ir))
        ir = re.sub(r"^(declare .*@(?:tile|tdpbf16ps).*) #\d+$", r"\1", ir, flags=re.M)
    compile_ir([level, "-Wno-override-module", "-x", "ir", "-", *sources, f"-march={march}", "-shared", "-fPIC",
                "-mprefer-vector-width=512"], ir, library, sources[2:])
    return ctypes.CDLL(library), calls


def cuts(total):
    """The range whole; in two, three and eight parts; and in its smallest, last first."""
    for parts in (1, 2, 3, 8):
        places = [total * part // parts for part in range(parts + 1)]
        yield list(zip(places, places[1:]))
    if total <= 64:
        yield [(i, i + 1) for i in reversed(range(total))]


def numbers(random, count, type):
    """Of 16 bits their bits."""
    values = random.standard_normal(count).astype(np.float32)
    return {"f32": values, "bf16": (values.view(np.uint32) >> 16).astype(np.uint16), "f16": values.astype(np.float16).view(np.uint16)}[type]


def guarded(product, matrix, values, type):
    """Values in memory that ends with the last element of a matrix; NaN between its lines. With what keeps it."""
    (rows, columns), leading, _, _ = matrix
    values = values[:int(np.prod(product.batch, dtype=np.int64)) * rows * leading].reshape(-1, leading).copy()
    values[:, columns:] = NAN[type]
    values = values.reshape(-1)[:values.size - (leading - columns)]
    pages = (values.nbytes + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    there = np.frombuffer(memory, DTYPES[type], values.size, pages * mmap.PAGESIZE - values.nbytes)
    there[:] = values
    end = ctypes.c_void_p(there.ctypes.data + values.nbytes)
    if ctypes.CDLL(None).mprotect(end, ctypes.c_size_t(mmap.PAGESIZE), 0):
        sys.exit("mprotect failed")
    return there


def expect(product, references, together, a, b, c, d):
    """What c is then."""
    want, pointer = c.copy(), ctypes.c_void_p
    parts = list(product.matrices())
    sizes, (lda, ldb, ldc) = [lies[0] * leading for lies, leading, _, _ in parts], [leading for _, leading, _, _ in parts]
    m, n, k, turns_a, turns_b = product.m, product.n, product.k, product.turns_a, product.turns_b
    if product.turns_c:
        m, n, lda, ldb, turns_a, turns_b = n, m, ldb, lda, 1 - turns_b, 1 - turns_a
    for i in range(int(np.prod(product.batch, dtype=np.int64))):
        one, other, addend, start = [x[i * size:].ctypes.data_as(pointer) for x, size in zip((a, b, d, want), sizes + sizes[2:])]
        if product.turns_c:
            one, other = other, one
        numbers = [ctypes.c_int64(v) for v in (m, n, k, lda, ldb, ldc, turns_a, turns_b)]
        flags = [ctypes.c_int64(product.mode == "accumulate")]
        if product.type != "f32":
            flags += [ctypes.c_int64(v) for v in (product.result != "f32", product.type == "f16", together)]
        function = references.reference if product.type == "f32" else references.reference_narrow
        added = [addend if product.mode == mode else None for mode in ("addend", "bias")]
        function(*numbers, one, other, *added, start, *flags)
    return want


def check(product, references, libraries, seed):
    random = np.random.default_rng(seed)
    parts, count = list(product.matrices()), int(np.prod(product.batch, dtype=np.int64))
    a, b, c, d = [numbers(random, count * lies[0] * leading + 7, type) for (lies, leading, _, _), type in
                  zip(parts + parts[2:], (product.type, product.type, product.result, product.result if product.mode == "bias" else "f32"))]
    a, b = guarded(product, parts[0], a, product.type), guarded(product, parts[1], b, product.type)
    flag, wants = np.ones(1, np.int64), {}
    for arch, (library, (name, total)) in libraries.items():
        kernel = library[name]
        kernel.argtypes, kernel.restype = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p], None
        together = link(product, arch)
        if together not in wants:
            wants[together] = expect(product, references, together, a, b, c, d)
        want = wants[together]
        for ranges in cuts(total):
            got = c.copy()
            buffers = ([b, a] if product.turns_c else [a, b]) + ([d] if product.mode in ("addend", "bias") else []) + [got]
            if product.mode == "accumulate":
                buffers.append(flag)
            pointers = (ctypes.c_void_p * len(buffers))(*[x.ctypes.data for x in buffers])
            for begin, end in ranges:
                kernel(begin, end, pointers)
            if got.tobytes() != want.tobytes():
                wrong = np.flatnonzero(got.view(np.uint8).reshape(got.size, -1) != want.view(np.uint8).reshape(got.size, -1)) // got.itemsize
                sys.exit(f"{arch}: {text(product)} in {len(ranges)} parts: {wrong.size} of {got.size} elements differ, "
                         f"the first at {wrong[0]}: {got[wrong[0]]}, expected {want[wrong[0]]}")
        # A flag of 0 stores.
        if product.mode == "accumulate":
            flag[0] = 0
            kernel(0, total, pointers)
            first = got.copy()
            got[want != c] = NAN[product.result]
            kernel(0, total, pointers)
            if first.tobytes() != got.tobytes():
                sys.exit(f"{arch}: {text(product)} reads its result where it should store")
            flag[0] = 1


def text(product):
    return ", ".join(f"{name}={value}" for name, value in product.__dict__.items() if name != "self" and value)


def cases():
    odd = [(1, 1, 1), (5, 7, 3), (8, 48, 16), (33, 20, 17), (17, 100, 65), (1, 257, 100), (96, 1, 70), (3, 130, 31), (64, 64, 64),
           (25, 161, 130), (70, 333, 64)]
    for number, ((m, n, k), turns_a, turns_b) in enumerate(itertools.product(odd, (0, 1), (0, 1))):
        yield Product(m, n, k, turns_a, turns_b)
        mode = ("accumulate", "bias")[(number + number // 4) % 2]
        yield Product(m, n, k, turns_a, turns_b, pads=(3, 5, 9), mode=mode)
    for turns_a, turns_b, mode in itertools.product((0, 1), (0, 1), ("store", "accumulate", "addend", "bias")):
        yield Product(19, 40, 30, turns_a, turns_b, mode=mode, turns_c=int(mode in ("store", "accumulate")))
        # Few columns, whose rows are vectors.
        yield Product(77, 3, 1024 + 40, turns_a, turns_b, mode=mode, pads=(1, 2, 3))
        yield Product(50, 19, 300, turns_a, turns_b, mode=mode, batch=(2,) if mode in ("store", "accumulate") else ())
        # Few rows of a b that is read by lines.
        yield Product(2, 1100, 1024 + 30, turns_a, turns_b, mode=mode)
    for turns_b, mode in itertools.product((0, 1), ("store", "accumulate", "addend")):
        # Columns of a whose lines share a few sets of a cache: they are copied, some rows at a time.
        yield Product(136, 200, 300, 1, turns_b, pads=(2048 - 136, 0, 0), mode=mode)
        yield Product(301, 160, 1024 + 300, 1, turns_b, pads=(1024 - 301, 0, 1), mode=mode)
    for turns_a, turns_b in itertools.product((0, 1), (0, 1)):
        yield Product(18, 20, 9, turns_a, turns_b, batch=(3,))
        yield Product(17, 70, 40, turns_a, turns_b, batch=(2, 3), pads=(1, 1, 1))
        yield Product(300, 200, 150, turns_a, turns_b)
        yield Product(6, 1000, 300, turns_a, turns_b)
        yield Product(11, 170, 90, turns_a, turns_b)
        yield Product(133, 170, 260, turns_a, turns_b, batch=(2,), pads=(1024 - (133 if turns_a else 260), 0, 0))


def run_cases():
    """Runs of the contraction: whole ones, and one that is cut."""
    for turns_a, turns_b, mode in itertools.product((0, 1), (0, 1), ("store", "accumulate", "addend", "bias")):
        yield Product(20, 100, 2048, turns_a, turns_b, mode=mode)
        yield Product(37, 53, 1024 + 21, turns_a, turns_b, mode=mode, pads=(1, 2, 3))


def narrow_cases(narrow):
    for (m, n, k), turns_a, turns_b in itertools.product([(1, 1, 1), (5, 7, 3), (33, 20, 17), (17, 100, 65), (3, 130, 31), (70, 333, 64)],
                                                         (0, 1), (0, 1)):
        yield Product(m, n, k, turns_a, turns_b, type=narrow)
        yield Product(m, n, k, turns_a, turns_b, pads=(3, 5, 9), mode="accumulate", type=narrow, result=narrow)
    for turns_a, turns_b, mode, result in itertools.product((0, 1), (0, 1), ("store", "accumulate", "addend", "bias"), ("f32", narrow)):
        if mode == "bias" and result == "f32":
            continue  # an epilogue has one type
        yield Product(37, 53, 1024 + 21, turns_a, turns_b, mode=mode, pads=(1, 2, 3), type=narrow, result=result)
        yield Product(19, 40, 30, turns_a, turns_b, mode=mode, turns_c=int(mode in ("store", "accumulate")), type=narrow, result=result)
        yield Product(70, 333, 64, turns_a, turns_b, mode=mode, type=narrow, result=result)
        yield Product(77, 3, 1024 + 41, turns_a, turns_b, mode=mode, pads=(1, 2, 3), type=narrow, result=result)
    # Lines of pairs, and half a pair.
    yield Product(1, 2100, 2 * 1024 + 3, type=narrow, result=narrow, mode="accumulate")
    # One block of rows, which asks for the next panel's lines.
    yield Product(5, 1000, 600, type=narrow)
    # Sums of more columns than are kept at a time.
    yield Product(260, 1000, 1030, 1, 0, type=narrow, result=narrow, mode="bias")
    yield Product(260, 1000, 1030, 1, 0, type=narrow, result=narrow, mode="accumulate")
    for turns_a, turns_b in itertools.product((0, 1), (0, 1)):
        yield Product(300, 160, 2 * 1024 + 2, turns_a, turns_b, type=narrow, result=narrow)
        yield Product(17, 70, 40, turns_a, turns_b, batch=(2, 3), pads=(1, 1, 1), type=narrow, result=narrow)


def tile_cases():
    """Extents about those of tiles, and what fills none."""
    for (m, n, k), turns_a, turns_b in itertools.product([(2, 15, 32), (16, 16, 31), (31, 33, 34), (47, 97, 63), (15, 250, 65)], (0, 1), (0, 1)):
        yield Product(m, n, k, turns_a, turns_b, type="bf16", result="bf16", mode="bias")
        yield Product(m, n, k, turns_a, turns_b, pads=(1, 2, 3), type="bf16", mode="accumulate")
    for turns_a in (0, 1):
        yield Product(600, 40, 2 * 1024 + 17, turns_a, 0, type="bf16", result="bf16", pads=(5, 0, 0))
        yield Product(12, 40, 1024 + 33, turns_a, 1, batch=(3,), type="bf16", result="bf16", mode="accumulate")


TILE_CASES = list(tile_cases())


def processors_here():
    """Those of PROCESSORS that this machine is."""
    processor = open("/proc/cpuinfo").read()
    return [arch for arch, flag in PROCESSORS if flag in processor]


def compile_references(folder):
    march = "cooperlake" if "cooperlake" in processors_here() else "x86-64-v3"
    os.makedirs(folder, exist_ok=True)
    run(["clang", "-O1", f"-march={march}", "-shared", "-fPIC", f"{HERE}/reference.c", "-o", f"{folder}/reference.so"])
    return ctypes.CDLL(f"{folder}/reference.so")


def is_for(arch, there, product, index):
    """Whether a product is computed for a processor, too: all types are for one, and some for others."""
    if arch == TILES:
        return product.type == "bf16" and (index % 3 == 0 or product in TILE_CASES)
    if arch == there[-1]:
        return product.type == "f32" or link(product, arch) > 1 or index % 4 == 0
    return product.type != "f32" or index % 2 == 0


def main(opt, folder):
    products = [*sampled(run_cases(), 8), *sampled(cases(), 14), *sampled(narrow_cases("bf16"), 10), *sampled(list(narrow_cases("f16"))[::4], 4), *sampled(TILE_CASES, 5)]
    libraries = [{} for _ in products]
    there = processors_here()
    for arch in dict.fromkeys(there[:1] + there[-1:] + [TILES] * bool(there)):
        some = [index for index, product in enumerate(products) if is_for(arch, there, product, index)]
        library, calls = compile_kernels(opt, folder, [products[index] for index in some], arch, "-O1")
        for index, call in zip(some, calls):
            libraries[index][arch] = library, call
    references = compile_references(folder)
    for index, product in enumerate(products):
        if libraries[index]:
            check(product, references, libraries[index], index)
    print(f"ok {len(products)} products")


if __name__ == "__main__":
    main(*sys.argv[1:])
