"""Numbers as PTX has them, exactly: bits, rationals, and one rounding."""
from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Optional, Tuple


@dataclass(frozen=True)
class Format:
    name: str
    bits: int
    fraction: int  # bits of it

    @property
    def exponents(self) -> int:
        return (1 << (self.bits - 1 - self.fraction)) - 1

    @property
    def least(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.exponents // 2

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return self.exponents << self.fraction


FORMATS = {f.name: f for f in (Format("f16", 16, 10), Format("bf16", 16, 7), Format("f32", 32, 23), Format("f64", 64, 52))}


@dataclass(frozen=True)
class Number:
    """A float: a rational, or none of it with `infinite` or not (a NaN); a sign in any case."""
    value: Optional[Fraction]
    negative: bool = False
    infinite: bool = False

    @property
    def nan(self) -> bool:
        return self.value is None and not self.infinite

    def __neg__(self) -> "Number":
        return Number(None if self.value is None else -self.value, not self.negative, self.infinite)


NAN = Number(None)


def finite(value: Fraction, negative: Optional[bool] = None) -> Number:
    return Number(value, value < 0 if negative is None else negative)


def decode(bits: int, form: Format) -> Number:
    negative, exponent = bool(bits & form.sign), bits >> form.fraction & form.exponents
    rest = bits & ((1 << form.fraction) - 1)
    if exponent == form.exponents:
        return NAN if rest else Number(None, negative, True)
    if exponent:
        rest |= 1 << form.fraction
    scale = max(exponent, 1) - 1 + form.least - form.fraction
    value = Fraction(rest) * Fraction(2) ** scale
    return Number(-value if negative else value, negative)


def is_subnormal(number: Number, form: Format) -> bool:
    return number.value is not None and abs(number.value) < Fraction(2) ** form.least


def flush(number: Number, form: Format) -> Number:
    return Number(Fraction(0), number.negative) if is_subnormal(number, form) else number


def exponent_of(value: Fraction) -> int:
    """Of the highest bit."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def rounded_up(mode: str, negative: bool, odd: bool, side: int) -> bool:
    """Whether the magnitude grows; what is left is below, at or above the middle (-1, 0, 1)."""
    if mode == "rn":
        return side > 0 or (side == 0 and odd)
    return mode == ("rm" if negative else "rp")


def encode(number: Number, form: Format, mode: str = "rn", root: bool = False) -> int:
    """Bits of a number, or of the square root of one."""
    if number.nan:
        return form.infinity | 1
    sign = form.sign if number.negative else 0
    if number.infinite:
        return sign | form.infinity
    magnitude = abs(number.value)
    if not magnitude:
        return sign
    exponent = max(exponent_of(magnitude) // 2 if root else exponent_of(magnitude), form.least)
    unit = Fraction(2) ** (exponent - form.fraction)
    if root:
        scaled = magnitude / unit ** 2
        kept = math.isqrt(scaled.numerator // scaled.denominator)
        rest, middle = scaled - kept * kept, (kept + Fraction(1, 2)) ** 2 - kept * kept
    else:
        scaled = magnitude / unit
        kept = scaled.numerator // scaled.denominator
        rest, middle = scaled - kept, Fraction(1, 2)
    if rest and rounded_up(mode, number.negative, bool(kept & 1), (rest > middle) - (rest < middle)):
        kept += 1
    # Bits count up with the magnitude, from subnormals to infinity.
    bits = ((exponent - form.least) << form.fraction) + kept
    if bits >= form.infinity and mode != "rn" and not rounded_up(mode, number.negative, True, 1):
        bits = form.infinity - 1
    return sign | min(bits, form.infinity)


def add(a: Number, b: Number, mode: str = "rn") -> Number:
    if a.nan or b.nan or (a.infinite and b.infinite and a.negative != b.negative):
        return NAN
    if a.infinite or b.infinite:
        return a if a.infinite else b
    total = a.value + b.value
    if total:
        return finite(total)
    both = a.negative and b.negative
    return Number(total, both if a.negative == b.negative else mode == "rm")


def mul(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.nan or b.nan:
        return NAN
    if a.infinite or b.infinite:
        return NAN if 0 in (a.value, b.value) else Number(None, negative, True)
    return Number(a.value * b.value, negative)


def div(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.nan or b.nan or (a.infinite and b.infinite) or (a.value == 0 and b.value == 0):
        return NAN
    if a.infinite or b.value == 0:
        return Number(None, negative, True)
    return Number(Fraction(0) if b.infinite else a.value / b.value, negative)


def saturated(number: Number) -> Number:
    """To [+0, 1], a NaN to +0. What is -0 is within: CUDA's __saturatef gives +0 of all that is not above 0."""
    if number.nan or number.negative or number.value == 0:
        return Number(Fraction(0))
    return Number(Fraction(1)) if number.infinite or number.value > 1 else number


def less(a: Number, b: Number) -> bool:
    """Of no NaNs; zeros are equal."""
    def rank(x: Number) -> Tuple[int, Fraction]:
        return (-1 if x.negative else 1, Fraction(0)) if x.value is None else (0, x.value)
    return rank(a) < rank(b)
