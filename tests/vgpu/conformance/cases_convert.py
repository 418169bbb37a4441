"""The forms of cvt and cvt.pack."""

import reference_convert as ref
from cases_float import ROUNDINGS, opcode
from cases_integer import register
from forms import REGISTER_BITS, Form, Output, counter_input, float_input, integer_input, pair_input, wide_float_input
from formats import F16, F32, FORMATS
from reference_integer import IntegerType

INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGER_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")


def registers_of(type_name):
    """The registers that hold a type: its own, and wider ones."""
    return {"8": ("b8", "b16", "b32"), "16": ("b16", "b32"), "32": ("b32", "b64"), "64": ("b64",)}[type_name[1:]]


def convert_form(group, modifiers, destination, source, output, operand, run):
    text = f"{opcode('cvt', *modifiers, destination, source)} %d0, %a0;"
    return Form(group, text, [output], [operand], run)


def integer_forms():
    for d in INTEGERS:
        for s in INTEGERS:
            to, of = IntegerType(d), IntegerType(s)
            for register_ in registers_of(d):
                run = ref.integer_to_integer(d, s, REGISTER_BITS[register_])
                source = integer_input(s, registers_of(s)[-1 if register_ != register(d) else 0])
                yield convert_form("cvt_integer", (), d, s, Output(register_), source, run)
            if to.low > of.low or to.high < of.high:
                source = integer_input(s, registers_of(s)[0])
                run = ref.integer_to_integer(d, s, REGISTER_BITS[registers_of(d)[0]], saturate=True)
                yield convert_form("cvt_integer", ("sat",), d, s, Output(registers_of(d)[0]), source, run)


def integer_float_forms():
    for f in FLOATS:
        for t in INTEGERS:
            # With bf16 no register may be wider than the type.
            held = "b32" if t in ("u8", "s8") and f != "bf16" else registers_of(t)[0]
            number = integer_input(t, held)
            for rounding in ROUNDINGS:
                run = ref.integer_to_float(f, t, rounding)
                yield convert_form("cvt_to_float", (rounding,), f, t, Output(register(f), f), number, run)
            if f in ("f32", "f64", "f16"):
                run = ref.integer_to_float(f, t, "rn", saturate=True)
                yield convert_form("cvt_to_float", ("rn", "sat"), f, t, Output(register(f), f), number, run)
            for rounding in INTEGER_ROUNDINGS:
                for ftz in ("", "ftz") if f == "f32" else ("",):
                    run = ref.float_to_integer(t, f, rounding, REGISTER_BITS[held], bool(ftz))
                    source = wide_float_input(FORMATS[f])
                    yield convert_form("cvt_to_integer", (rounding, ftz), t, f, Output(held), source, run)


def float_forms():
    """Between formats: rounded where the destination has fewer bits, to integral values within one format."""
    for d in FLOATS:
        for s in FLOATS:
            to, of = FORMATS[d], FORMATS[s]
            exact = to.mantissa_bits >= of.mantissa_bits and to.e_min <= of.e_min and to.bias >= of.bias
            for rounding in ("",) if exact else ROUNDINGS:
                for ftz in ("", "ftz") if "f32" in (d, s) else ("",):
                    for sat in ("", "sat") if "bf16" not in (d, s) else ("",):
                        if d == s == "bf16":
                            continue
                        yield float_convert_form((rounding, ftz, sat), d, s)
        for rounding in INTEGER_ROUNDINGS:
            for ftz in ("", "ftz") if d == "f32" else ("",):
                yield float_convert_form((rounding, ftz), d, d)


def float_convert_form(modifiers, d, s):
    rounding = modifiers[0] or "rn"
    named = {name: name in modifiers for name in ("ftz", "sat", "relu", "satfinite")}
    run = ref.float_to_float(d, s, rounding, **named)
    output = Output(register(d), d)
    return convert_form("cvt_float", modifiers, d, s, output, float_input(FORMATS[s]), run)


def of_low_bits(run, bits):
    return lambda a: run(a & ((1 << bits) - 1))


def wide_register_forms():
    """Numbers in registers that are wider: the lower bits are read, and zeros stand above the result."""
    wide = {"f16": "b32", "f32": "b64"}
    for f, register_ in wide.items():
        for t in INTEGERS:
            run = ref.integer_to_float(f, t, "rn")
            number = integer_input(t, registers_of(t)[-1])
            yield convert_form("cvt_to_float", ("rn",), f, t, Output(register_, f), number, run)
            result = registers_of(t)[-1]
            run = of_low_bits(ref.float_to_integer(t, f, "rzi", REGISTER_BITS[result]), FORMATS[f].bits)
            source = float_input(FORMATS[f], register_)
            yield convert_form("cvt_to_integer", ("rzi",), t, f, Output(result), source, run)
    for rounding, d, s in ("rn", "f16", "f32"), ("rz", "f16", "f32"), ("", "f32", "f16"), ("rni", "f32", "f32"):
        run = of_low_bits(ref.float_to_float(d, s, rounding or "rn"), FORMATS[s].bits)
        source = float_input(FORMATS[s], wide[s])
        yield convert_form("cvt_float", (rounding,), d, s, Output(wide[d], d), source, run)


def narrow_forms():
    """What only networks use: relu and satfinite, pairs, tf32, eight bits."""
    for d in ("f16", "bf16"):
        for rounding in ("rn", "rz"):
            for relu in ("", "relu"):
                for satfinite in ("", "satfinite"):
                    if relu or satfinite:
                        yield float_convert_form((rounding, relu, satfinite), d, "f32")
                    yield pair_form((rounding, relu, satfinite), d)
    for modifiers in (("rna",), ("rn",), ("rz",), ("rn", "relu"), ("rz", "relu"), ("rna", "satfinite")):
        yield tf32_form(modifiers)
    for d in ("e4m3", "e5m2"):
        for relu in ("", "relu"):
            yield from eight_bit_forms(d, relu)


def pair_form(modifiers, d):
    rounding, relu, satfinite = modifiers
    convert = ref.float_to_float(d, "f32", rounding, relu=bool(relu), satfinite=bool(satfinite))
    text = f"{opcode('cvt', *modifiers, d + 'x2', 'f32')} %t0, %a0, %a1;\nmov.b32 {{%d0, %d1}}, %t0;"

    def run(a, b):
        low, high = convert(b), convert(a)
        return None if low is None or high is None else (low, high)

    return Form("cvt_float", text, [Output("b16", d)] * 2, [float_input(F32)] * 2, run)


def tf32_form(modifiers):
    """Of the result the 13 low bits mean nothing."""
    convert = ref.float_to_float(
        "tf32", "f32", modifiers[0], relu="relu" in modifiers, satfinite="satfinite" in modifiers
    )
    text = f"{opcode('cvt', *modifiers, 'tf32', 'f32')} %t0, %a0;\nand.b32 %d0, %t0, 0xffffe000;"

    def run(a):
        result = convert(a)
        return None if not isinstance(result, int) or F32.is_nan(a) else result << 13

    return Form("cvt_float", text, [Output("b32")], [float_input(F32)], run)


def eight_bit_forms(d, relu):
    convert = ref.float_to_float(d, "f32", "rn", relu=bool(relu), satfinite=True)
    text = f"{opcode('cvt', 'rn', 'satfinite', relu, d + 'x2', 'f32')} %d0, %a0, %a1;"
    run = ref.pack_two(convert, 8)
    yield Form("cvt_float", text, [Output("b16")], [float_input(F32)] * 2, run)
    convert = ref.float_to_float(d, "f16", "rn", relu=bool(relu), satfinite=True)
    text = f"{opcode('cvt', 'rn', 'satfinite', relu, d + 'x2', 'f16x2')} %d0, %a0;"
    run = ref.convert_halves(convert, 16, 8)
    yield Form("cvt_float", text, [Output("b16")], [pair_input(F16)], run)
    widen = ref.float_to_float("f16", d, "rn", relu=bool(relu))
    text = f"{opcode('cvt', 'rn', relu, 'f16x2', d + 'x2')} %t0, %a0;\nmov.b32 {{%d0, %d1}}, %t0;"

    def run_both(a):
        low, high = widen(a & 0xFF), widen(a >> 8)
        return None if low is None or high is None else (low, high)

    yield Form("cvt_float", text, [Output("b16", "f16")] * 2, [integer_input("b16")], run_both)


def pack_forms():
    numbers = [integer_input("s32")] * 2
    for d in ("u16", "s16"):
        text = f"cvt.pack.sat.{d}.s32 %d0, %a0, %a1;"
        yield Form("cvt_integer", text, [Output("b32")], numbers, ref.saturate_pack(d))
    for d in ("u8", "s8", "u4", "s4", "u2", "s2"):
        text = f"cvt.pack.sat.{d}.s32.b32 %d0, %a0, %a1, %a2;"
        small = [integer_input("s32"), counter_input(12)]
        inputs = small + [integer_input("b32")]
        yield Form("cvt_integer", text, [Output("b32")], inputs, ref.saturate_pack(d))


def forms(rng):
    del rng
    yield from integer_forms()
    yield from integer_float_forms()
    yield from float_forms()
    yield from wide_register_forms()
    yield from narrow_forms()
    yield from pack_forms()
