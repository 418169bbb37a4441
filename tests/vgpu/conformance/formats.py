"""Floating-point formats: exact values of bit patterns, and rounding of exact values to bit patterns.

A finite value is sign, m and e: (-1)^sign * m * 2^e with integers m >= 0 and e. Where a value has no such form (a
quotient, a root), m is truncated and `sticky` says that the value is a little more in magnitude. Nothing here uses
floating-point arithmetic.
"""

from math import isqrt
from typing import NamedTuple

FINITE, INFINITE, NAN = range(3)


class Value(NamedTuple):
    kind: int
    sign: int = 0
    m: int = 0
    e: int = 0
    sticky: bool = False

    @property
    def is_zero(self):
        return self.kind == FINITE and self.m == 0 and not self.sticky


NAN_VALUE = Value(NAN)


class Format:
    """An IEEE 754 binary format; `nan` is the canonical NaN that hardware produces."""

    def __init__(self, name, exponent_bits, mantissa_bits, nan):
        self.name = name
        self.bits = 1 + exponent_bits + mantissa_bits
        self.mantissa_bits = mantissa_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.e_min = 1 - self.bias - mantissa_bits  # of the last place of subnormals
        self.sign_bit = 1 << (self.bits - 1)
        self.hidden = 1 << mantissa_bits
        self.infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        self.max_finite = self.infinity - 1
        self.nan = nan

    def is_nan(self, bits):
        return bits & ~self.sign_bit > self.infinity

    def is_subnormal(self, bits):
        return 0 < bits & ~self.sign_bit < self.hidden

    def flush(self, bits):
        """A subnormal becomes a zero of its sign."""
        return bits & self.sign_bit if self.is_subnormal(bits) else bits

    def decode(self, bits):
        sign = bits >> (self.bits - 1)
        magnitude = bits & ~self.sign_bit
        if magnitude >= self.infinity:
            return Value(INFINITE, sign) if magnitude == self.infinity else NAN_VALUE
        exponent = magnitude >> self.mantissa_bits
        fraction = magnitude & (self.hidden - 1)
        if exponent == 0:
            return Value(FINITE, sign, fraction, self.e_min)
        return Value(FINITE, sign, fraction | self.hidden, self.e_min + exponent - 1)

    def encode(self, value, rounding="rn"):
        """Rounds a value: rn to nearest even, rna to nearest away, rz to zero, rm down, rp up."""
        if value.kind == NAN:
            return self.nan
        sign_bits = self.sign_bit if value.sign else 0
        if value.kind == INFINITE:
            return sign_bits | self.infinity
        away = rounding == ("rm" if value.sign else "rp")
        magnitude = self._round_magnitude(value, rounding, away)
        if magnitude > self.max_finite:
            stays_finite = rounding == "rz" or (rounding in ("rm", "rp") and not away)
            magnitude = self.max_finite if stays_finite else self.infinity
        return sign_bits | magnitude

    def _round_magnitude(self, value, rounding, away):
        if value.m == 0 and not value.sticky:
            return 0
        exponent = max(value.m.bit_length() + value.e - 1 - self.mantissa_bits, self.e_min)
        kept, rest, half = shift_right(value.m, exponent - value.e)
        # `rest` of the discarded part against `half`: what decides the direction.
        if rounding == "rn":
            up = rest > half or (rest == half and (value.sticky or kept & 1))
        elif rounding == "rna":
            up = rest >= half
        else:
            up = away and (rest > 0 or value.sticky)
        # The hidden bit carries into the exponent's field, and so does rounding up to the next power of two.
        return ((exponent - self.e_min) << self.mantissa_bits) + kept + (1 if up else 0)

    def is_tiny(self, value):
        """Whether the exact value is below the normal range, but not zero."""
        if value.kind != FINITE or value.is_zero:
            return False
        return value.m.bit_length() + value.e - 1 < self.e_min + self.mantissa_bits

    def order(self, bits):
        """An integer that grows with the number; -0 comes just below +0."""
        return -1 - (bits & ~self.sign_bit) if bits & self.sign_bit else bits

    def step(self, bits, count):
        """The number `count` steps up (or down) from one that is not a NaN. The two zeros are one step: the one
        further in the direction of the step is taken."""
        magnitude = bits & ~self.sign_bit
        moved = (-magnitude if bits & self.sign_bit else magnitude) + count
        limited = min(abs(moved), self.infinity)
        return limited | (self.sign_bit if moved < 0 or (moved == 0 and count < 0) else 0)


def shift_right(m, places):
    """m shifted, what was shifted out, and half of a unit of the result; a shift to the left shifts nothing out."""
    if places <= 0:
        return m << -places, 0, 1
    return m >> places, m & ((1 << places) - 1), 1 << (places - 1)


F16 = Format("f16", 5, 10, 0x7FFF)
BF16 = Format("bf16", 8, 7, 0x7FFF)
TF32 = Format("tf32", 8, 10, 0x3FFFF)  # without its 13 low bits that are not used
F32 = Format("f32", 8, 23, 0x7FFFFFFF)
F64 = Format("f64", 11, 52, 0x7FFFFFFFFFFFFFFF)
E5M2 = Format("e5m2", 5, 2, 0x7F)


class FormatE4M3(Format):
    """No infinity; its one NaN takes the place of the largest number's successor."""

    def __init__(self):
        super().__init__("e4m3", 4, 3, 0x7F)
        self.infinity = 0x7F  # what lies beyond the largest number; it decodes as NaN
        self.max_finite = 0x7E

    def is_nan(self, bits):
        return bits & 0x7F == 0x7F

    def decode(self, bits):
        return NAN_VALUE if self.is_nan(bits) else super().decode(bits)


E4M3 = FormatE4M3()

FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}


# ---- exact arithmetic on finite values ----


def negate(a):
    return a._replace(sign=a.sign ^ 1)


def add(a, b, zero_sign):
    """The exact sum; `zero_sign` is that of a sum of opposite values."""
    e = min(a.e, b.e)
    x = (a.m << (a.e - e)) * (-1 if a.sign else 1)
    y = (b.m << (b.e - e)) * (-1 if b.sign else 1)
    total = x + y
    if total == 0:
        return Value(FINITE, a.sign if a.sign == b.sign else zero_sign, 0, e)
    return Value(FINITE, int(total < 0), abs(total), e)


def multiply(a, b):
    return Value(FINITE, a.sign ^ b.sign, a.m * b.m, a.e + b.e)


PRECISION = 160  # bits of quotients and roots: more than any format's, twice over


def divide(a, b):
    shift = max(PRECISION + b.m.bit_length() - a.m.bit_length(), 0)
    quotient, rest = divmod(a.m << shift, b.m)
    return Value(FINITE, a.sign ^ b.sign, quotient, a.e - b.e - shift, rest != 0)


def square_root(a):
    shift = max(2 * PRECISION - a.m.bit_length(), 0)
    if (a.e - shift) % 2:
        shift += 1
    root = isqrt(a.m << shift)
    return Value(FINITE, a.sign, root, (a.e - shift) // 2, root * root != a.m << shift)


def from_integer(integer):
    return Value(FINITE, int(integer < 0), abs(integer), 0)


def from_float(number):
    """The exact value of a finite Python float."""
    numerator, denominator = number.as_integer_ratio()
    sign = int(str(number).startswith("-"))
    return Value(FINITE, sign, abs(numerator), 1 - denominator.bit_length())


def to_float(value):
    """The Python float of a value that one holds exactly."""
    return (-1.0 if value.sign else 1.0) * float(value.m) * 2.0**value.e


def round_to_integer(value, rounding):
    """rni, rzi, rmi, rpi to an integer that keeps its sign as a Value."""
    kept, rest, half = shift_right(value.m, -value.e)
    if rounding == "rni":
        up = rest > half or (rest == half and value.e < 0 and kept & 1)
    elif rounding == "rzi":
        up = False
    else:
        up = rest > 0 and (rounding == ("rmi" if value.sign else "rpi"))
    return Value(FINITE, value.sign, kept + (1 if up else 0), 0)
