#!/usr/bin/env python3
"""Tests of the reference itself: rounding against this machine's arithmetic and against its definition."""

import math
import random
import struct
import unittest
from fractions import Fraction

import formats
import reference_convert
import reference_float
import reference_integer
from formats import BF16, E4M3, E5M2, F16, F32, F64, FINITE
from forms import draw_float

rng = random.Random(20240607)


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits_of(number):
    return struct.unpack("<Q", struct.pack("<d", number))[0]


def fraction(f, bits):
    value = f.decode(bits)
    magnitude = value.m * Fraction(2) ** value.e
    return -magnitude if value.sign else magnitude


def finite(f):
    while True:
        bits = draw_float(f, rng)
        if f.decode(bits).kind == FINITE:
            return bits


class Rounding(unittest.TestCase):
    def test_every_number_of_the_small_formats_is_itself(self):
        for f in (F16, BF16, E4M3, E5M2):
            for bits in range(1 << f.bits):
                if not f.is_nan(bits):
                    self.assertEqual(f.encode(f.decode(bits)), bits)

    def test_narrowing_as_this_machine_does(self):
        for _ in range(20000):
            number = math.ldexp(rng.uniform(-1, 1), rng.randint(-30, 15))
            value = formats.from_float(number)
            self.assertEqual(F16.encode(value), struct.unpack("<H", struct.pack("<e", number))[0])
            number = math.ldexp(rng.uniform(-1, 1), rng.randint(-155, 127))
            value = formats.from_float(number)
            self.assertEqual(F32.encode(value), struct.unpack("<I", struct.pack("<f", number))[0])

    def test_directions(self):
        """Each mode gives the neighbour that its definition names."""
        for f in (F16, BF16, F32, F64):
            for _ in range(3000):
                a, b, c = (finite(f) for _ in range(3))
                exact = fraction(f, a) * fraction(f, b) + fraction(f, c)
                down, up = (reference_float.arithmetic(f, "fma", r)(a, b, c) for r in ("rm", "rp"))
                if not down & ~f.sign_bit < f.infinity > up & ~f.sign_bit:
                    continue
                low, high = fraction(f, down), fraction(f, up)
                self.assertLessEqual(low, exact)
                self.assertGreaterEqual(high, exact)
                self.assertIn(f.step(down, 1) if low < exact else down, (up, up ^ f.sign_bit if high == 0 else up))
                toward_zero = reference_float.arithmetic(f, "fma", "rz")(a, b, c)
                self.assertEqual(fraction(f, toward_zero), low if exact >= 0 else high)
                nearest = fraction(f, reference_float.arithmetic(f, "fma", "rn")(a, b, c))
                self.assertEqual(abs(nearest - exact), min(exact - low, high - exact))


class DoubleArithmetic(unittest.TestCase):
    """Python's floats are f64 and rounded to nearest."""

    def check(self, operation, compute, count):
        run = reference_float.arithmetic(F64, operation)
        for _ in range(20000):
            operands = [draw_float(F64, rng) for _ in range(count)]
            try:
                expected = compute(*map(double, operands))
            except (ZeroDivisionError, ValueError, OverflowError):
                continue  # what Python refuses
            result = run(*operands)
            if math.isnan(expected):
                self.assertEqual(result, reference_float.any_nan(F64))
            else:
                self.assertEqual(result, bits_of(expected))

    def test_add(self):
        self.check("add", lambda a, b: a + b, 2)

    def test_subtract(self):
        self.check("sub", lambda a, b: a - b, 2)

    def test_multiply(self):
        self.check("mul", lambda a, b: a * b, 2)

    def test_divide(self):
        self.check("div", lambda a, b: a / b, 2)

    def test_square_root(self):
        self.check("sqrt", math.sqrt, 1)


class SpecialValues(unittest.TestCase):
    def test_zeros_and_infinities(self):
        one, minus = 0x3F800000, 0x80000000
        add, fma = reference_float.arithmetic(F32, "add"), reference_float.arithmetic(F32, "fma")
        self.assertEqual(add(one, one | minus), 0)
        self.assertEqual(reference_float.arithmetic(F32, "add", "rm")(one, one | minus), minus)
        self.assertEqual(add(minus, minus), minus)
        self.assertEqual(add(F32.infinity, F32.infinity | minus), F32.nan)
        self.assertEqual(fma(0, F32.infinity, one), F32.nan)
        self.assertEqual(reference_float.arithmetic(F32, "div")(one, minus), F32.infinity | minus)
        self.assertEqual(reference_float.arithmetic(F32, "sqrt")(minus), minus)
        self.assertEqual(reference_float.arithmetic(F32, "add", sat=True)(F32.infinity, one), one)
        self.assertEqual(reference_float.arithmetic(F32, "add", sat=True)(F32.nan, one), 0)

    def test_flushing(self):
        mul = reference_float.arithmetic(F32, "mul", ftz=True)
        self.assertEqual(mul(0x80000001, 0x7F000000), 0x80000000)
        self.assertEqual(mul(0x00800000, 0x3F000000), 0)
        # It rounds up to the smallest normal number: the ISA does not say.
        self.assertIsNone(mul(0x00FFFFFF, 0x3F000000))

    def test_steps_over_zero(self):
        self.assertEqual(F32.step(1, -1), 0x80000000)
        self.assertEqual(F32.step(0x80000001, 1), 0)
        self.assertEqual(F32.step(1, -2), 0x80000001)
        self.assertEqual(F32.step(F32.infinity, 5), F32.infinity)


class Conversions(unittest.TestCase):
    """Values worked out by hand."""

    def test_ties(self):
        for rounding, expected in (("rna", 0x4B4C2), ("rn", 0x4B4C0), ("rz", 0x4B4C0)):
            run = reference_convert.float_to_float("tf32", "f32", rounding)
            self.assertEqual(run(0x4B4C1000), expected >> 1)
        self.assertEqual(reference_convert.float_to_float("f16", "f32", "rn")(0x3F801000), 0x3C00)
        self.assertEqual(reference_convert.float_to_float("f16", "f32", "rp")(0x3F801000), 0x3C01)

    def test_clamping(self):
        run = reference_convert.float_to_float("e4m3", "f32", "rn", relu=True, satfinite=True)
        self.assertEqual([run(0xFF7FFFFF), run(0x7F7FFFFF), run(0x7FC00000)], [0, 0x7E, 0x7F])
        run = reference_convert.float_to_float("e4m3", "f32", "rn", satfinite=True)
        self.assertEqual([run(0xFF7FFFFF), run(0x43E00000), run(0x43E80000)], [0xFE, 0x7E, 0x7E])

    def test_integers(self):
        run = reference_convert.float_to_integer("s8", "f32", "rni", 32)
        self.assertEqual([run(0x40200000), run(0xC3800000), run(0x7FC00000)], [2, 0xFFFFFF80, 0])
        self.assertEqual(reference_convert.float_to_integer("s64", "f32", "rzi", 64)(0x7FC00000), 1 << 63)
        self.assertEqual(reference_convert.integer_to_integer("u8", "s16", 32, saturate=True)(0xFFFF), 0)
        self.assertEqual(reference_convert.saturate_pack("s8")(0x80000000, 1, 0xABCD), 0xABCD8001)


class Integers(unittest.TestCase):
    """Values worked out by hand."""

    def test_fields(self):
        self.assertEqual(reference_integer.extract_field("s32")(0x80000000, 28, 8), 0xFFFFFFF8)
        self.assertEqual(reference_integer.extract_field("u32")(0x80000000, 28, 8), 8)
        self.assertEqual(reference_integer.extract_field("s32")(0xFFFFFFFF, 4, 0), 0)
        self.assertEqual(reference_integer.insert_field(32)(0xFF, 0, 28, 8), 0xF0000000)
        self.assertEqual(reference_integer.field_mask("clamp")(4, 40), 0xFFFFFFF0)
        self.assertEqual(reference_integer.field_mask("wrap")(36, 4), 0xF0)
        self.assertEqual(reference_integer.extend("clamp", "s32")(0x80, 8), 0xFFFFFF80)

    def test_searches(self):
        self.assertEqual(reference_integer.find_leading("s32", False)(0xFFFFFFFE), 0)
        self.assertEqual(reference_integer.find_leading("s32", False)(0xFFFFFFFF), 0xFFFFFFFF)
        self.assertEqual(reference_integer.find_leading("u32", True)(1), 31)
        self.assertEqual(reference_integer.find_nth_set(0b1011, 1, 2), 3)
        self.assertEqual(reference_integer.find_nth_set(0b1011, 1, 0xFFFFFFFE), 0)

    def test_shifts_and_bytes(self):
        self.assertEqual(reference_integer.shift_right("s32")(0x80000000, 100), 0xFFFFFFFF)
        self.assertEqual(reference_integer.funnel_shift("l", "clamp")(1, 2, 40), 1)
        self.assertEqual(reference_integer.funnel_shift("r", "wrap")(1, 2, 33), 0)
        self.assertEqual(reference_integer.permute(0x33221180, 0x77665544, 0x8074), 0xFF807744)


if __name__ == "__main__":
    unittest.main()
