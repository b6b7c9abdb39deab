"""Instructions of the device in software beside exact arithmetic: every spelling on odd and on random operands.

instructions.py FOLDER [SEED]: prints each spelling that differs with an example, then how many there are."""
from __future__ import annotations

import ctypes
import os
import random
import sys
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from exact import (FORMATS, NAN, Format, Number, add, decode, div, encode, finite, flush, less, mul, saturated)
from fractions import Fraction

LANES = 256
ROUNDS = ("rn", "rz", "rm", "rp")


class Spelling:
    """A kernel that makes %to of %a, %b and %c; what it must make. Registers are as wide as operands say."""

    def __init__(self, text: str, types: Sequence[str], to: str, expected: Callable[..., object], body: str = ""):
        self.text, self.types, self.to, self.expected, self.body = text, types, to, expected, body or text


class Device:
    """The driver's calls, in a library that stands in for it."""

    def __init__(self, folder: str):
        self.cuda = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        if status := getattr(self.cuda, name)(*arguments):
            raise RuntimeError(f"{name}: {status}")

    def upload(self, data: bytes) -> ctypes.c_uint64:
        place = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", place, data, ctypes.c_size_t(len(data)))
        return place

    def run(self, module: ctypes.c_void_p, name: str, operands: Sequence[bytes], result: int) -> bytes:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        absent = [bytes(8)] * (3 - len(operands))
        places = [self.upload(data) for data in [*operands, *absent, bytes(result)]]
        pointers = (ctypes.c_void_p * len(places))(*[ctypes.addressof(place) for place in places])
        self.call("cuLaunchKernel", function, 1, 1, 1, LANES, 1, 1, 0, None, pointers, None)
        made = ctypes.create_string_buffer(result)
        self.call("cuMemcpyDtoH_v2", made, places[-1], ctypes.c_size_t(result))
        for place in places:
            self.call("cuMemFree_v2", place)
        return made.raw


def width(kind: str) -> int:
    return 32 if kind == "pred" else int(kind.lstrip("bfsu"))


def memory(kind: str) -> str:
    """The type by which a register's bits are read and written."""
    return f"b{max(width(kind), 16)}"


def kernel(name: str, spelling: Spelling) -> str:
    lines = [f".visible .entry {name}(" + ", ".join(f".param .u64 p{i}" for i in range(4)) + ")", "{",
             ".reg .pred %p, %q; .reg .b32 %lane; .reg .b64 %at, %base; mov.u32 %lane, %tid.x;"]
    for i, (letter, kind) in enumerate(zip("abc", spelling.types)):
        lines.append(f".reg .{memory(kind)} %{letter}; ld.param.u64 %base, [p{i}]; "
                     f"mad.wide.u32 %at, %lane, {width(kind) // 8}, %base; ld.global.{memory(kind)} %{letter}, [%at];")
    to = memory(spelling.to)
    lines.append(f".reg .{to} %to; ld.param.u64 %base, [p3]; mad.wide.u32 %at, %lane, {int(to[1:]) // 8}, %base;")
    return "\n".join([*lines, spelling.body, f"st.global.{to} [%at], %to;", "ret;", "}", ""])


# Operands.

def samples(kind: str, count: int, source: random.Random) -> List[int]:
    bits = width(kind)
    if form := FORMATS.get(kind):
        one, most = (form.exponents // 2) << form.fraction, form.infinity - 1
        odd = [0, 1, 5, (1 << form.fraction) - 1, 1 << form.fraction, one, one + 1, one - 1, one + (1 << form.fraction),
               one + (1 << (form.fraction - 1)), most, form.infinity, form.infinity | 1 << (form.fraction - 1), 3 << (form.fraction - 1) ^ one]
        for exponent in (7, 8, 15, 16, 31, 32, 53, 63, 64):  # where whole numbers end
            place = exponent + form.exponents // 2
            if place < form.exponents:
                odd += [place << form.fraction, (place << form.fraction) - 1, (place << form.fraction) + 1]
        odd += [value | form.sign for value in odd]
    else:
        odd = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 127, 128, 255, 256]
        odd += [edge + step for size in (8, 16, 24, 32, 53, 63, 64) for edge in (1 << size, 1 << (size - 1)) for step in (-1, 0, 1)]
        odd += [-value for value in odd]
    values = [value % (1 << bits) for value in odd]

    def drawn() -> int:
        value = source.getrandbits(bits)
        if form and source.random() < 0.6:  # of like magnitude
            near = form.exponents // 2 + source.randrange(-form.fraction - 4, form.fraction + 4)
            value = value & ~form.infinity | max(0, min(near, form.exponents - 1)) << form.fraction
        return value if form else value >> source.randrange(bits)
    return [source.choice(values) if source.random() < 0.4 else drawn() for _ in range(count - len(values))] + values[:count]


def near_middles(form: Format, count: int, source: random.Random) -> List[Tuple[int, int, int]]:
    """Products in the middle between two numbers, and what decides how they round: of any smallness."""
    one, found = (form.exponents // 2) << form.fraction, []
    while len(found) < count:
        a, b = (one | source.getrandbits(form.fraction) for _ in "ab")
        product = ((1 << form.fraction) | (a - one)) * ((1 << form.fraction) | (b - one))
        below = product.bit_length() - form.fraction - 1
        if product & ((1 << below) - 1) == 1 << (below - 1):
            found.append((a, b, source.getrandbits(1) << (form.bits - 1) | source.randrange(1, one)))
    return found


def packed(values: Sequence[int], bits: int) -> bytes:
    return b"".join(value.to_bytes(bits // 8, "little") for value in values)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def whole(kind: str, value: int) -> int:
    return signed(value, width(kind)) if kind[0] == "s" else value


# Whole numbers.

def whole_numbers() -> List[Spelling]:
    all: List[Spelling] = []

    def arithmetic(text: str, kind: str, count: int, f: Callable[..., int], to: Optional[str] = None,
                   types: Optional[Sequence[str]] = None) -> None:
        operands = types or [kind] * count
        spelled = f"{text}.{kind} %to, " + ", ".join("%" + letter for letter in "abc"[:count]) + ";"
        all.append(Spelling(spelled, operands, to or kind,
                            lambda *v: f(*(whole(k, x) for k, x in zip(operands, v)))))

    def quotient(a: int, b: int) -> int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        bits, twice = width(kind), kind[0] + str(2 * width(kind))
        arithmetic("add", kind, 2, lambda a, b: a + b)
        arithmetic("sub", kind, 2, lambda a, b: a - b)
        arithmetic("mul.lo", kind, 2, lambda a, b: a * b)
        arithmetic("mul.hi", kind, 2, lambda a, b, n=bits: a * b >> n)
        arithmetic("mad.lo", kind, 3, lambda a, b, c: a * b + c)
        if bits > 16:
            arithmetic("mad.hi", kind, 3, lambda a, b, c, n=bits: (a * b >> n) + c)
        if bits < 64:
            arithmetic("mul.wide", kind, 2, lambda a, b: a * b, to=twice)
            arithmetic("mad.wide", kind, 3, lambda a, b, c: a * b + c, to=twice, types=[kind, kind, twice])
        arithmetic("sad", kind, 3, lambda a, b, c: c + abs(a - b))
        # By 0 nothing is said.
        arithmetic("div", kind, 2, lambda a, b: quotient(a, b) if b else None)
        arithmetic("rem", kind, 2, lambda a, b: a - b * quotient(a, b) if b else None)
        arithmetic("min", kind, 2, min)
        arithmetic("max", kind, 2, max)
        if kind[0] == "s":
            arithmetic("abs", kind, 1, abs)
            arithmetic("neg", kind, 1, lambda a: -a)
        if bits > 16:
            def highest(a: int) -> int:
                return (~a if a < 0 else a).bit_length() - 1
            arithmetic("bfind", kind, 1, highest, to="u32")
            arithmetic("bfind.shiftamt", kind, 1, lambda a, n=bits: n - 1 - highest(a) if highest(a) >= 0 else -1, to="u32")

            def field(a: int, at: int, count: int, n: int = bits, kind: str = kind) -> int:
                at, count = at & 255, count & 255
                top = a >> min(at + count - 1, n - 1) & 1 if kind[0] == "s" and count else 0
                made = sum((a >> at + i & 1 if at + i < n else top) << i for i in range(min(count, n)))
                return made | (-1 << min(count, n) if top else 0)
            arithmetic("bfe", kind, 3, field, types=[kind, "u32", "u32"])
        arithmetic("shr", kind, 2, lambda a, b: a >> b, types=[kind, "u32"])
    for bits in (16, 32, 64):
        kind = f"b{bits}"
        arithmetic("and", kind, 2, lambda a, b: a & b)
        arithmetic("or", kind, 2, lambda a, b: a | b)
        arithmetic("xor", kind, 2, lambda a, b: a ^ b)
        arithmetic("not", kind, 1, lambda a: ~a)
        arithmetic("cnot", kind, 1, lambda a: int(not a))
        arithmetic("shl", kind, 2, lambda a, b, n=bits: a << b if b < n else 0, types=[kind, "u32"])
        arithmetic("shr", kind, 2, lambda a, b: a >> b, types=[kind, "u32"])
        if bits > 16:
            arithmetic("popc", kind, 1, lambda a: bin(a).count("1"), to="u32")
            arithmetic("clz", kind, 1, lambda a, n=bits: n - a.bit_length(), to="u32")
            arithmetic("brev", kind, 1, lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2))
    for clamp in ("clamp", "wrap"):
        def far(count: int, clamp: str = clamp) -> int:
            return min(count, 32) if clamp == "clamp" else count & 31
        arithmetic(f"shf.l.{clamp}", "b32", 3, lambda a, b, c, f=far: (b << 32 | a) << f(c) >> 32)
        arithmetic(f"shf.r.{clamp}", "b32", 3, lambda a, b, c, f=far: (b << 32 | a) >> f(c))

    def permuted(a: int, b: int, selector: int) -> int:
        made = 0
        for i in range(4):
            which = selector >> 4 * i & 15
            byte = (b << 32 | a) >> 8 * (which & 7) & 255
            made |= (255 * (byte >> 7) if which & 8 else byte) << 8 * i
        return made
    arithmetic("prmt", "b32", 3, permuted)
    return all


# Floats.

def smaller(a: Number, b: Number) -> Number:
    if a.nan or b.nan:
        return b if a.nan else a
    if a.value == 0 and b.value == 0:
        return a if a.negative else b
    return a if less(a, b) else b


def greater(a: Number, b: Number) -> Number:
    return -smaller(-a, -b) if not (a.nan or b.nan) else (b if a.nan else a)


def floats() -> List[Spelling]:
    all: List[Spelling] = []

    def arithmetic(text: str, kind: str, count: int, f: Callable[..., Number], mode: str = "rn", flushes: bool = False,
                   saturates: bool = False, root: bool = False) -> None:
        form = FORMATS[kind]

        def expected(*bits: int) -> int:
            numbers = [decode(value, form) for value in bits]
            if flushes:
                numbers = [flush(number, form) for number in numbers]
            made = encode(f(*numbers), form, mode, root)
            if flushes:
                made = encode(flush(decode(made, form), form), form)
            return encode(saturated(decode(made, form)), form) if saturates else made
        spelled = f"{text}.{kind} %to, " + ", ".join("%" + letter for letter in "abc"[:count]) + ";"
        all.append(Spelling(spelled, [kind] * count, kind, expected))
    operations: List[Tuple[str, int, Callable[..., Callable[..., Number]]]] = [
        ("add", 2, lambda m: lambda a, b: add(a, b, m)),
        ("sub", 2, lambda m: lambda a, b: add(a, -b, m)),
        ("mul", 2, lambda m: mul),
        ("fma", 3, lambda m: lambda a, b, c: add(mul(a, b), c, m))]

    def root(a: Number) -> Number:
        return NAN if a.nan or (a.negative and a.value != 0) else a
    for kind in ("f32", "f64"):
        for mode in ROUNDS:
            for flushes in (False, True) if kind == "f32" else (False,):
                words = f".{mode}" + (".ftz" if flushes else "")
                for name, count, f in operations:
                    arithmetic(name + words, kind, count, f(mode), mode, flushes)
                    if kind == "f32":
                        arithmetic(name + words + ".sat", kind, count, f(mode), mode, flushes, True)
                arithmetic("div" + words, kind, 2, div, mode, flushes)
                arithmetic("rcp" + words, kind, 1, lambda a: div(finite(Fraction(1)), a), mode, flushes)
                arithmetic("sqrt" + words, kind, 1, root, mode, flushes, root=True)
    for kind in ("f16", "bf16"):
        for flushes in (False, True) if kind == "f16" else (False,):
            words = ".rn" + (".ftz" if flushes else "")
            for name, count, f in operations:
                if kind == "f16" or name == "fma":
                    arithmetic(name + words, kind, count, f("rn"), flushes=flushes)
                if kind == "f16":
                    arithmetic(name + words + ".sat", kind, count, f("rn"), flushes=flushes, saturates=True)

    def either(f: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
        return lambda a, b: NAN if a.nan or b.nan else f(a, b)
    for kind in FORMATS:
        for flushes in (False, True) if kind in ("f16", "f32") else (False,):
            words = ".ftz" if flushes else ""
            arithmetic("min" + words, kind, 2, smaller, flushes=flushes)
            arithmetic("max" + words, kind, 2, greater, flushes=flushes)
            if kind != "f64":
                arithmetic(f"min{words}.NaN", kind, 2, either(smaller), flushes=flushes)
                arithmetic(f"max{words}.NaN", kind, 2, either(greater), flushes=flushes)
        arithmetic("neg", kind, 1, lambda a: a if a.nan else -a)
        arithmetic("abs", kind, 1, lambda a: -a if a.negative and not a.nan else a)
    return all


# Comparisons.

def comparisons() -> List[Spelling]:
    all: List[Spelling] = []
    order: Dict[str, Callable[[int], bool]] = {
        "eq": lambda x: x == 0, "ne": lambda x: x != 0, "lt": lambda x: x < 0, "le": lambda x: x <= 0,
        "gt": lambda x: x > 0, "ge": lambda x: x >= 0}
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}

    def spell(name: str, kind: str, expected: Callable[[int, int], bool]) -> None:
        text = f"setp.{name}.{kind} %p, %a, %b;"
        all.append(Spelling(text, [kind, kind], "u32", lambda a, b: int(expected(a, b)),
                            text + " selp.u32 %to, 1, 0, %p;"))
    for kind in ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"):
        names = {name: order[name] for name in (("eq", "ne") if kind[0] == "b" else order)}
        if kind[0] == "u":
            names.update({name: order[same] for name, same in unsigned.items()})
        for name, holds in names.items():
            def compared(a: int, b: int, kind: str = kind, holds: Callable[[int], bool] = holds) -> bool:
                return holds(whole(kind, a) - whole(kind, b))
            spell(name, kind, compared)
    for kind, form in FORMATS.items():
        for flushes in (False, True) if kind in ("f16", "f32") else (False,):
            for name in [*order, *(name + "u" for name in order), "num", "nan"]:
                def holds(a: int, b: int, form: Format = form, name: str = name, flushes: bool = flushes) -> bool:
                    x, y = decode(a, form), decode(b, form)
                    if flushes:
                        x, y = flush(x, form), flush(y, form)
                    unordered = x.nan or y.nan
                    if name in ("num", "nan"):
                        return unordered == (name == "nan")
                    if unordered:
                        return name.endswith("u") and name not in order
                    return order[name if name in order else name[:-1]](less(y, x) - less(x, y))
                spell(name + (".ftz" if flushes else ""), kind, holds)
    return all


# Conversions.

def conversions() -> List[Spelling]:
    all: List[Spelling] = []
    wholes = [sign + str(bits) for bits in (8, 16, 32, 64) for sign in "us"]

    def limits(kind: str) -> Tuple[int, int]:
        bits = width(kind)
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)

    def register(kind: str) -> str:
        return "b16" if width(kind) == 8 else kind

    def spell(words: str, to: str, kind: str, expected: Callable[[int], int]) -> None:
        text = f"cvt{words}.{to}.{kind} %to, %a;"
        # What is narrower than its register is extended.
        def extended(value: int) -> int:
            made = expected(value % (1 << width(kind)))
            return whole(to, made % (1 << width(to))) if to not in FORMATS else made
        all.append(Spelling(text, [register(kind)], register(to), extended))
    for to in wholes:
        least, most = limits(to)
        for kind in wholes:
            if to == kind:
                continue
            spell("", to, kind, lambda a, k=kind: whole(k, a))
            spell(".sat", to, kind, lambda a, k=kind, low=least, high=most: min(max(whole(k, a), low), high))
        for kind, form in FORMATS.items():
            for mode in ROUNDS:
                for flushes in (False, True) if kind == "f32" else (False,):
                    def made(a: int, form: Format = form, to: str = to, mode: str = mode, flushes: bool = flushes) -> int:
                        low, high = limits(to)
                        number = decode(a, form)
                        if number.nan:
                            return 1 << (width(to) - 1) if form.name == "f64" or width(to) == 64 else 0
                        if number.infinite:
                            return low if number.negative else high
                        value = flush(number, form).value if flushes else number.value
                        kept = value.numerator // value.denominator
                        if mode == "rn":
                            kept = round(value)
                        elif mode == "rp" or (mode == "rz" and value < 0):
                            kept = -(-value.numerator // value.denominator)
                        return min(max(kept, low), high)
                    spell(f".{mode}i" + (".ftz" if flushes else ""), to, kind, made)
    for to, form in FORMATS.items():
        for kind in wholes:
            for mode in ROUNDS:
                spell("." + mode, to, kind, lambda a, k=kind, f=form, m=mode: encode(finite(Fraction(whole(k, a))), f, m))
        for kind, source in FORMATS.items():
            if to == kind:
                for mode in ROUNDS if kind != "bf16" else ():
                    def integral(a: int, form: Format = form, mode: str = mode) -> int:
                        number = decode(a, form)
                        if number.value is None:
                            return a if not number.nan else encode(NAN, form)
                        value = number.value
                        kept = value.numerator // value.denominator
                        if mode == "rn":
                            kept = round(value)
                        elif mode == "rp" or (mode == "rz" and value < 0):
                            kept = -(-value.numerator // value.denominator)
                        return encode(Number(Fraction(kept), number.negative), form)
                    spell(f".{mode}i", to, kind, integral)
                continue
            if form.fraction >= source.fraction and form.exponents >= source.exponents:
                spell("", to, kind, lambda a, s=source, f=form: encode(decode(a, s), f))
                continue
            for mode in ROUNDS:
                for saturates in (False, True):
                    def narrowed(a: int, source: Format = source, form: Format = form, mode: str = mode,
                                 saturates: bool = saturates) -> int:
                        number = decode(a, source)
                        return encode(saturated(number) if saturates else number, form, mode)
                    spell("." + mode + (".sat" if saturates else ""), to, kind, narrowed)
    return all


# Changes in memory: each lane has a place of its own.

def atomics() -> List[Spelling]:
    form = FORMATS["f32"]

    def added(flushes: bool) -> Callable[[int, int], int]:
        def expected(a: int, b: int) -> int:
            x, y = decode(a, form), decode(b, form)
            made = encode(add(flush(x, form), flush(y, form)) if flushes else add(x, y), form)
            return encode(flush(decode(made, form), form), form) if flushes else made
        return expected
    all = []
    for space, flushes in (("global", True), ("shared", False)):
        for name in ("atom", "red"):
            place = "[%at]" if space == "global" else "[%shared]"
            set_up = "" if space == "global" else (".shared .align 4 .b8 cells[1024]; .reg .b32 %shared; "
                                                   "mov.u32 %shared, cells; mad.lo.u32 %shared, %lane, 4, %shared; ")
            call = f"{name}.{space}.add.f32 " + (f"%to, {place}, %b;" if name == "atom" else f"{place}, %b;")
            all.append(Spelling(call, ["f32", "f32"], "f32", added(flushes),
                                set_up + f"st.{space}.b32 {place}, %a; {call} ld.{space}.b32 %to, {place};"))
    return all


def agrees(made: int, right: Optional[int], kind: str) -> bool:
    """Of NaNs any is right."""
    if right is None:
        return True
    form = FORMATS.get(kind)
    if form and decode(right, form).nan:
        return decode(made, form).nan
    return made == right % (1 << max(width(kind), 16))


def main() -> int:
    source = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    device = Device(sys.argv[1])
    spellings = [*whole_numbers(), *floats(), *comparisons(), *conversions(), *atomics()]
    text = ".version 8.6\n.target sm_90\n.address_size 64\n" + "".join(
        kernel(f"k{i}", spelling) for i, spelling in enumerate(spellings))
    module = ctypes.c_void_p()
    device.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
    wrong = 0
    for i, spelling in enumerate(spellings):
        operands = [samples(kind, LANES, source) for kind in spelling.types]
        for values in operands[1:]:
            source.shuffle(values)
        if spelling.text.startswith("fma") and width(spelling.to) == 16:
            chosen = near_middles(FORMATS[spelling.to], LANES // 4, source)
            operands = [[*head, *values[len(head):]] for head, values in zip(zip(*chosen), operands)]
        bits = max(width(spelling.to), 16)
        try:
            data = device.run(module, f"k{i}", [packed(v, width(k)) for v, k in zip(operands, spelling.types)],
                              LANES * bits // 8)
        except RuntimeError as error:  # after which the device does nothing
            print(f"{spelling.text} is refused: {error}")
            return 1
        bad = []
        for lane, values in enumerate(zip(*operands)):
            made, right = int.from_bytes(data[lane * bits // 8:(lane + 1) * bits // 8], "little"), spelling.expected(*values)
            if not agrees(made, right, spelling.to):
                bad.append(f"of {', '.join(map(hex, values))} is {made:#x}, expected {right % (1 << bits):#x}")
        if bad:
            wrong += 1
            print(f"{spelling.text} differs on {len(bad)} of {LANES}: {bad[0]}")
    print(f"{len(spellings)} spellings: {len(spellings) - wrong} right, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
