"""What the PTX ISA says of cvt and cvt.pack: conversions between integers, floating-point formats, and both."""

import formats
from formats import FINITE, INFINITE, NAN
from reference_float import any_nan, round_result
from reference_integer import IntegerType, mask

FORMATS = dict(formats.FORMATS, tf32=formats.TF32, e4m3=formats.E4M3, e5m2=formats.E5M2)


def is_float(type_name):
    return type_name in FORMATS


def integer_to_integer(destination, source, register_bits, saturate=False):
    """The result is extended to the register it goes to, by its own sign."""
    d, s = IntegerType(destination), IntegerType(source)

    def run(a):
        number = s.number(a)
        pattern = d.saturate(number) if saturate else d.pattern(number)
        return d.number(pattern) & mask(register_bits)

    return run


def integer_to_float(destination, source, rounding, saturate=False):
    f, s = FORMATS[destination], IntegerType(source)
    return lambda a: round_result(f, formats.from_integer(s.number(a)), rounding, sat=saturate)


def float_to_integer(destination, source, rounding, register_bits, ftz=False):
    """Clamped to the destination's range. What an f64's NaN becomes in u8 and u16 is left out: the ISA says the highest
    bit, NVIDIA's assembler clamps what it became in u32."""
    d, f = IntegerType(destination), FORMATS[source]
    nan_is_zero = source != "f64" and d.bits != 64

    def run(a):
        value = f.decode(f.flush(a) if ftz else a)
        if value.kind == NAN:
            if source == "f64" and destination in ("u8", "u16"):
                return None
            pattern = 0 if nan_is_zero else 1 << (d.bits - 1)
        elif value.kind == INFINITE:
            pattern = d.pattern(d.low if value.sign else d.high)
        else:
            whole = formats.round_to_integer(value, rounding)
            pattern = d.saturate(-whole.m if whole.sign else whole.m)
        return d.number(pattern) & mask(register_bits)

    return run


def float_to_float(destination, source, rounding="rn", ftz=False, sat=False, relu=False, satfinite=False):
    """Between formats, or to an integral value of the same format where the rounding is rni, rzi, rmi or rpi."""
    d, s = FORMATS[destination], FORMATS[source]
    is_integral, to_integer = rounding.endswith("i"), rounding
    rounding = "rn" if is_integral else rounding

    def run(a):
        if ftz and source == "f32":
            a = s.flush(a)
        value = s.decode(a)
        if value.kind == NAN:
            return 0 if sat else d.nan if relu or satfinite else any_nan(d)
        if is_integral and value.kind == FINITE:
            value = formats.round_to_integer(value, to_integer)
        result = round_result(d, value, rounding, ftz and destination == "f32", sat)
        if result is None:
            return None
        if satfinite and result & ~d.sign_bit > d.max_finite:
            result = result & d.sign_bit | d.max_finite
        if relu and result == d.sign_bit:
            return None  # a clamped -0: its sign is not said
        return 0 if relu and result & d.sign_bit else result

    return run


def pack_two(convert, bits):
    """The first operand in the upper part."""

    def run(a, b):
        upper, lower = convert(a), convert(b)
        if not (isinstance(upper, int) and isinstance(lower, int)):
            return None
        return upper << bits | lower

    return run


def convert_halves(convert, from_bits, to_bits):
    """Both halves of the operand."""

    def run(a):
        return pack_two(convert, to_bits)(a >> from_bits, a & mask(from_bits))

    return run


def saturate_pack(destination):
    """cvt.pack: two saturated numbers below as much of c as there is room for."""
    d = IntegerType(destination)
    s32 = IntegerType("s32")

    def run(a, b, c=0):
        pair = d.saturate(s32.number(a)) << d.bits | d.saturate(s32.number(b))
        return (c << 2 * d.bits | pair) & mask(32)

    return run
