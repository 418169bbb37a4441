"""What the PTX ISA says of floating-point instructions, computed exactly on the values of formats.py.

A result is a bit pattern, or a Range where the ISA gives a bound on the error, or None where it says nothing about the
operands. NaN results of arithmetic are the canonical NaN of f32, f16 and bf16; of f64 any NaN will do.
"""

import math
from typing import NamedTuple

import formats
from formats import FINITE, INFINITE, NAN, NAN_VALUE, Value


class Range(NamedTuple):
    """Every number from low to high, both bit patterns; where both are different NaNs: any NaN."""

    low: int
    high: int


def any_nan(f):
    return Range(f.infinity + 1, f.sign_bit - 1)


def value_or_nan(f, bits):
    """Where NaNs keep no particular payload."""
    return any_nan(f) if f.is_nan(bits) else bits


# ---- exact operations on values, infinities and NaN included ----


def add_values(a, b, rounding):
    if NAN in (a.kind, b.kind):
        return NAN_VALUE
    if INFINITE in (a.kind, b.kind):
        if a.kind == b.kind and a.sign != b.sign:
            return NAN_VALUE
        return a if a.kind == INFINITE else b
    return formats.add(a, b, int(rounding == "rm"))


def multiply_values(a, b):
    if NAN in (a.kind, b.kind):
        return NAN_VALUE
    if INFINITE in (a.kind, b.kind):
        return NAN_VALUE if a.is_zero or b.is_zero else Value(INFINITE, a.sign ^ b.sign)
    return formats.multiply(a, b)


def divide_values(a, b):
    if NAN in (a.kind, b.kind):
        return NAN_VALUE
    sign = a.sign ^ b.sign
    if a.kind == INFINITE:
        return NAN_VALUE if b.kind == INFINITE else Value(INFINITE, sign)
    if b.kind == INFINITE:
        return Value(FINITE, sign)
    if b.is_zero:
        return NAN_VALUE if a.is_zero else Value(INFINITE, sign)
    return Value(FINITE, sign) if a.is_zero else formats.divide(a, b)


def square_root_value(a):
    if a.kind == NAN or a.is_zero:
        return a
    if a.sign:
        return NAN_VALUE
    return a if a.kind == INFINITE else formats.square_root(a)


ONE = formats.from_integer(1)

OPERATIONS = {
    "add": lambda rounding, a, b: add_values(a, b, rounding),
    "sub": lambda rounding, a, b: add_values(a, formats.negate(b), rounding),
    "mul": lambda rounding, a, b: multiply_values(a, b),
    "fma": lambda rounding, a, b, c: add_values(multiply_values(a, b), c, rounding),
    "div": lambda rounding, a, b: divide_values(a, b),
    "rcp": lambda rounding, a: divide_values(ONE, a),
    "sqrt": lambda rounding, a: square_root_value(a),
}


def round_result(f, value, rounding, ftz=False, sat=False, relu=False):
    """The result of arithmetic: rounded, flushed, clamped."""
    if sat and value.kind == NAN:
        return 0
    bits = f.encode(value, rounding)
    if ftz and f.is_tiny(value):
        if not f.is_subnormal(bits) and bits & ~f.sign_bit:
            return None  # it rounds up to the smallest normal number: whether it is flushed is not said
        bits &= f.sign_bit
    if sat or relu:
        if bits == f.sign_bit:
            return None  # a clamped -0: its sign is not said
        if bits & f.sign_bit and not f.is_nan(bits):
            return 0
        if sat:
            return min(bits, f.encode(ONE))
    return bits


def arithmetic(f, operation, rounding="rn", ftz=False, sat=False, relu=False):
    """add, sub, mul, fma, div, rcp, sqrt in a rounding mode."""
    compute = OPERATIONS[operation]

    def run(*operands):
        if ftz:
            operands = map(f.flush, operands)
        result = round_result(f, compute(rounding, *map(f.decode, operands)), rounding, ftz, sat, relu)
        if result is not None and f is formats.F64:
            return value_or_nan(f, result)
        return result

    return run


def sign_operation(f, operation, ftz=False):
    """abs and neg: what becomes of a NaN's sign and payload is not said."""

    def run(a):
        if f.is_nan(a):
            return any_nan(f)
        if ftz:
            a = f.flush(a)
        return a & ~f.sign_bit if operation == "abs" else a ^ f.sign_bit

    return run


def copy_sign(f):
    return lambda a, b: a & f.sign_bit | b & ~f.sign_bit


def extremum(f, operation, ftz=False, nan=False, xorsign=False):
    """min and max: a NaN loses against a number, -0 is less than +0."""

    def run(a, b):
        if ftz:
            a, b = f.flush(a), f.flush(b)
        a_nan, b_nan = f.is_nan(a), f.is_nan(b)
        if (a_nan and b_nan) or (nan and (a_nan or b_nan)):
            return any_nan(f) if f is formats.F64 else f.nan
        sign = (a ^ b) & f.sign_bit
        if xorsign:
            a, b = a & ~f.sign_bit, b & ~f.sign_bit
        if a_nan or b_nan:
            result = b if a_nan else a
        else:
            result = (min if operation == "min" else max)(a, b, key=f.order)
        return result | sign if xorsign else result

    return run


def test_property(f, name):
    """testp."""

    def run(a):
        magnitude = a & ~f.sign_bit
        return int(
            {
                "finite": magnitude < f.infinity,
                "infinite": magnitude == f.infinity,
                "number": magnitude <= f.infinity,
                "notanumber": magnitude > f.infinity,
                "normal": magnitude < f.infinity and not f.is_subnormal(a),  # zeros count as normal
                "subnormal": f.is_subnormal(a),
            }[name]
        )

    return run


# ---- comparison ----

# Whether an operation is true of less, equal, greater, unordered.
COMPARE = {
    "eq": "E", "ne": "LG", "lt": "L", "le": "LE", "gt": "G", "ge": "GE",
    "equ": "EU", "neu": "LGU", "ltu": "LU", "leu": "LEU", "gtu": "GU", "geu": "GEU",
    "num": "LEG", "nan": "U",
}  # fmt: skip


def relation(f, a, b, ftz=False):
    if f.is_nan(a) or f.is_nan(b):
        return "U"
    if ftz:
        a, b = f.flush(a), f.flush(b)
    x, y = (-(v & ~f.sign_bit) if v & f.sign_bit else v for v in (a, b))
    return "L" if x < y else "E" if x == y else "G"


def compare(f, operation, ftz=False):
    return lambda a, b: int(relation(f, a, b, ftz) in COMPARE[operation])


# ---- approximations ----


def within_steps(f, exact, steps, ftz=False):
    """All numbers less than `steps` units in the last place from the exact value."""
    if exact.kind != FINITE:
        bits = f.encode(exact)
        return any_nan(f) if exact.kind == NAN else bits
    low = f.step(f.encode(exact, "rp"), -steps)
    high = f.step(f.encode(exact, "rm"), steps)
    return flush_range(f, low, high) if ftz else Range(low, high)


def within_error(f, exact, error, ftz=False):
    """All numbers whose distance from the exact value is at most `error`, a Value, or to which the value rounds."""
    below, above = formats.add(exact, formats.negate(error), 0), formats.add(exact, error, 0)
    low, high = f.encode(below, "rp"), f.encode(above, "rm")
    low = min(low, f.encode(exact, "rm"), key=f.order)
    high = max(high, f.encode(exact, "rp"), key=f.order)
    # A result that may be zero may be either zero.
    if f.encode(below, "rm") & f.sign_bit and not f.encode(above, "rp") & f.sign_bit:
        low = min(low, f.sign_bit, key=f.order)
        high = max(high, 0, key=f.order)
    return flush_range(f, low, high) if ftz else Range(low, high)


def flush_range(f, low, high):
    """The range of results of which subnormal ones are flushed."""
    return Range(f.flush(low), f.flush(high))


def power_of_two(exponent):
    """2^exponent, rounded up to 60 bits where it is not an integer."""
    whole = math.floor(exponent)
    return Value(FINITE, 0, math.ceil(2.0 ** (exponent - whole) * 2**60), whole - 60)


def relative(exact, bound):
    return formats.multiply(exact, power_of_two(bound))._replace(sign=0)


def approximate_divide(f, ftz, full):
    """div.approx and div.full: 2 units in the last place; of a divisor beyond 2^126 approx says something else.
    Subnormal operands and results are left out unless they are flushed: the ISA has two voices there."""
    huge = formats.from_integer(1 << 126)

    def run(a, b):
        if ftz:
            a, b = f.flush(a), f.flush(b)
        x, y = f.decode(a), f.decode(b)
        exact = divide_values(x, y)
        if f.is_tiny(x) or f.is_tiny(y) or (not ftz and f.is_tiny(exact)):
            return None
        if not full and y.kind == FINITE and b & ~f.sign_bit > f.encode(huge):
            return Range(f.sign_bit, 0) if x.kind == FINITE else f.nan
        if exact.kind == NAN:
            return f.nan
        if exact.kind == INFINITE or exact.is_zero:
            return f.encode(exact)
        return within_steps(f, exact, 2, ftz)

    return run


def approximate(f, exact_value, bound, ftz=False, nan=None):
    """A unary approximation. exact_value(Value) gives the exact Value or None; bound(exact, operand) gives the largest
    error as a Value, or a number of units in the last place. Infinities and NaN are exact."""

    def run(a):
        if ftz:
            a = f.flush(a)
        operand = f.decode(a)
        exact = exact_value(operand)
        if exact is None:
            return None
        if exact.kind == NAN:
            return any_nan(f) if nan is None else nan
        if exact.kind == INFINITE or operand.kind == INFINITE or operand.is_zero:
            return f.encode(exact)
        limit = bound(exact, operand)
        if isinstance(limit, int):
            return within_steps(f, exact, limit, ftz)
        return within_error(f, exact, limit, ftz)

    return run


def approximate_high_word(exact_value, error):
    """rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 compute on the upper word; the results: upper word, lower word."""
    f = formats.F64

    def run(a):
        operand = f.decode(f.flush(a >> 32 << 32) if not f.is_nan(a) else a)
        exact = exact_value(operand)
        if exact.kind == NAN:
            return (any_nan(f), 0)
        if exact.kind == INFINITE or exact.is_zero or operand.kind == INFINITE:
            return (f.encode(exact), 0)
        near = within_error(f, exact, relative(exact, error), ftz=True)
        return (near, 0)

    return run


# ---- the functions that approximations approximate ----


def reciprocal_square_root(a):
    if a.kind == NAN:
        return a
    if a.is_zero:
        return Value(INFINITE, a.sign)
    if a.sign:
        return NAN_VALUE
    return Value(FINITE) if a.kind == INFINITE else formats.divide(ONE, formats.square_root(a))


def from_math(function, at_infinity, at_minus_infinity):
    """A function of Python's math, whose error is far below all bounds here."""

    def run(a):
        if a.kind == NAN:
            return a
        if a.kind == INFINITE:
            return at_minus_infinity if a.sign else at_infinity
        return formats.from_float(function(formats.to_float(a)))

    return run


ZERO = Value(FINITE)
INFINITY = Value(INFINITE)

exponential = from_math(lambda x: 2.0 ** max(min(x, 1000.0), -1000.0), INFINITY, ZERO)
hyperbolic_tangent = from_math(math.tanh, ONE, formats.negate(ONE))


def sine(a):
    """Within a turn of zero; further out the ISA gives no bound."""
    if a.kind == FINITE and a.m and abs(formats.to_float(a)) > 2 * math.pi:
        return None
    return from_math(math.sin, NAN_VALUE, NAN_VALUE)(a)


def cosine(a):
    if a.kind == FINITE and a.m and abs(formats.to_float(a)) > 2 * math.pi:
        return None
    return from_math(math.cos, NAN_VALUE, NAN_VALUE)(a)


def logarithm(a):
    if a.kind == FINITE and a.is_zero:
        return Value(INFINITE, 1)
    if a.sign:
        return NAN_VALUE
    return from_math(math.log2, INFINITY, NAN_VALUE)(a)


def logarithm_error(exact, operand):
    x = formats.to_float(operand)
    return power_of_two(-22) if 0.5 < x < 2 else relative(exact, -22)
