"""The forms of floating-point instructions: f32, f64, and the halves f16 and bf16, alone and in pairs."""

import formats
import reference_float as ref
from cases_integer import form
from forms import Form, Output, float_input, float_range_input, pair_input
from formats import BF16, F16, F32, F64

ROUNDINGS = ("rn", "rz", "rm", "rp")


def opcode(name, *modifiers):
    return ".".join([name, *(m for m in modifiers if m)])


def float_form(f, name, modifiers, count, run, inputs=None):
    """An instruction whose operands and result have the format."""
    inputs = inputs or [float_input(f)] * count
    made = form(opcode(name, *modifiers, f.name), f"b{f.bits}", inputs, run)
    made.outputs = [Output(f"b{f.bits}", f.name)]
    return made


def pair_form(f, name, modifiers, count, run):
    """The same on pairs; the halves of the result are compared one by one."""
    operands = ", ".join(f"%a{i}" for i in range(count))
    text = f"{opcode(name, *modifiers, f.name + 'x2')} %t0, {operands};\nmov.b32 {{%d0, %d1}}, %t0;"

    def run_both(*pairs):
        low, high = run(*(p & 0xFFFF for p in pairs)), run(*(p >> 16 for p in pairs))
        return None if low is None or high is None else (low, high)

    return Form(name, text, [Output("b16", f.name)] * 2, [pair_input(f)] * count, run_both)


def both_forms(f, name, modifiers, count, run):
    yield float_form(f, name, modifiers, count, run)
    yield pair_form(f, name, modifiers, count, run)


# ---- correctly rounded ----

OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3, "div": 2, "rcp": 1, "sqrt": 1}


def rounded_forms():
    for name in ("add", "sub", "mul", "fma", "mad"):
        operation = "fma" if name == "mad" else name
        explicit = ROUNDINGS if name in ("fma", "mad") else ("",) + ROUNDINGS
        for rounding in explicit:
            for ftz in ("", "ftz"):
                for sat in ("", "sat"):
                    run = ref.arithmetic(F32, operation, rounding or "rn", bool(ftz), bool(sat))
                    yield float_form(F32, name, (rounding, ftz, sat), OPERANDS[name], run)
            yield float_form(F64, name, (rounding,), OPERANDS[name], ref.arithmetic(F64, operation, rounding or "rn"))
    for name in ("div", "rcp", "sqrt"):
        for rounding in ROUNDINGS:
            for ftz in ("", "ftz"):
                run = ref.arithmetic(F32, name, rounding, bool(ftz))
                yield float_form(F32, name, (rounding, ftz), OPERANDS[name], run)
            yield float_form(F64, name, (rounding,), OPERANDS[name], ref.arithmetic(F64, name, rounding))


def half_forms():
    for name in ("add", "sub", "mul"):
        for rounding in ("", "rn"):
            for ftz in ("", "ftz"):
                for sat in ("", "sat"):
                    run = ref.arithmetic(F16, name, ftz=bool(ftz), sat=bool(sat))
                    yield from both_forms(F16, name, (rounding, ftz, sat), 2, run)
            yield from both_forms(BF16, name, (rounding,), 2, ref.arithmetic(BF16, name))
    for ftz in ("", "ftz"):
        for clamp in ("", "sat", "relu"):
            run = ref.arithmetic(F16, "fma", ftz=bool(ftz), sat=clamp == "sat", relu=clamp == "relu")
            yield from both_forms(F16, "fma", ("rn", ftz, clamp), 3, run)
    for relu in ("", "relu"):
        yield from both_forms(BF16, "fma", ("rn", relu), 3, ref.arithmetic(BF16, "fma", relu=bool(relu)))


# ---- signs, extrema, properties ----


def sign_forms():
    for name in ("abs", "neg"):
        yield float_form(F64, name, (), 1, ref.sign_operation(F64, name))
        for ftz in ("", "ftz"):
            yield float_form(F32, name, (ftz,), 1, ref.sign_operation(F32, name, bool(ftz)))
            yield from both_forms(F16, name, (ftz,), 1, ref.sign_operation(F16, name, bool(ftz)))
        yield from both_forms(BF16, name, (), 1, ref.sign_operation(BF16, name))
    for f in (F32, F64):
        yield float_form(f, "copysign", (), 2, ref.copy_sign(f))
        for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield form(f"testp.{name}.{f.name}", "pred", [float_input(f)], ref.test_property(f, name))


def extremum_forms():
    for name in ("min", "max"):
        yield float_form(F64, name, (), 2, ref.extremum(F64, name))
        for nan in ("", "NaN"):
            for xorsign in ("", "xorsign.abs"):
                for ftz in ("", "ftz"):
                    run = ref.extremum(F32, name, bool(ftz), bool(nan), bool(xorsign))
                    yield float_form(F32, name, (ftz, nan, xorsign), 2, run)
                    run = ref.extremum(F16, name, bool(ftz), bool(nan), bool(xorsign))
                    yield from both_forms(F16, name, (ftz, nan, xorsign), 2, run)
                run = ref.extremum(BF16, name, False, bool(nan), bool(xorsign))
                yield from both_forms(BF16, name, (nan, xorsign), 2, run)


# ---- approximations ----


def ulps(count):
    return lambda exact, operand: count


def relative_error(exponent):
    return lambda exact, operand: ref.relative(exact, exponent)


def absolute_error(exponent):
    return lambda exact, operand: ref.power_of_two(exponent)


def not_negative_subnormal(exact_value):
    """Of roots of negative subnormal numbers the ISA's table is for flushed ones only."""

    def run(operand):
        return None if operand.sign and F32.is_tiny(operand) else exact_value(operand)

    return run


def reciprocal(a):
    return ref.divide_values(ref.ONE, a)


# Name, exact function, largest error, range of the exponents of random operands.
F32_APPROXIMATIONS = (
    ("rcp", reciprocal, ulps(1), (-127, 127)),
    ("sqrt", not_negative_subnormal(ref.square_root_value), relative_error(-23), (-127, 127)),
    ("rsqrt", not_negative_subnormal(ref.reciprocal_square_root), relative_error(-22.9), (-127, 127)),
    ("sin", ref.sine, absolute_error(-20.5), (-12, 3)),
    ("cos", ref.cosine, absolute_error(-20.5), (-12, 3)),
    ("lg2", not_negative_subnormal(ref.logarithm), ref.logarithm_error, (-20, 20)),
    ("ex2", ref.exponential, ulps(2), (-10, 8)),
)


def approximate_forms():
    for ftz in ("", "ftz"):
        for name, exact, bound, exponents in F32_APPROXIMATIONS:
            run = ref.approximate(F32, exact, bound, bool(ftz))
            yield float_form(F32, name, ("approx", ftz), 1, run, [float_range_input(F32, *exponents)])
        yield float_form(F32, "div", ("approx", ftz), 2, ref.approximate_divide(F32, bool(ftz), full=False))
        yield float_form(F32, "div", ("full", ftz), 2, ref.approximate_divide(F32, bool(ftz), full=True))
    near = [float_range_input(F32, -14, 5)]
    run = ref.approximate(F32, ref.hyperbolic_tangent, relative_error(-11))
    yield float_form(F32, "tanh", ("approx",), 1, run, near)
    yield from f64_approximations()
    run = ref.approximate(F16, ref.hyperbolic_tangent, absolute_error(-10.987), nan=F16.nan)
    yield from both_forms(F16, "tanh", ("approx",), 1, run)
    run = ref.approximate(BF16, ref.hyperbolic_tangent, relative_error(-8), nan=BF16.nan)
    yield from both_forms(BF16, "tanh", ("approx",), 1, run)
    run = ref.approximate(F16, ref.exponential, relative_error(-9.9), nan=F16.nan)
    yield from both_forms(F16, "ex2", ("approx",), 1, run)
    run = ref.approximate(BF16, ref.exponential, relative_error(-7), ftz=True, nan=BF16.nan)
    yield from both_forms(BF16, "ex2", ("approx", "ftz"), 1, run)


def f64_approximations():
    """The ISA says that they compute on the upper word, without a bound on the error: 2^-18 is two bits short of the
    upper word's precision. rsqrt.approx.f64 is emulated in software at about the precision of an f64."""
    for name, exact in (("rcp", reciprocal), ("rsqrt", ref.reciprocal_square_root)):
        text = f"{name}.approx.ftz.f64 %d0, %a0;\nmov.b64 {{%d1, _}}, %d0;"
        outputs = [Output("b64", "f64"), Output("b32")]
        yield Form(name, text, outputs, [float_input(F64)], ref.approximate_high_word(exact, -18))
    run = ref.approximate(F64, ref.reciprocal_square_root, relative_error(-50))
    yield float_form(F64, "rsqrt", ("approx",), 1, run)


def immediate_forms(rng):
    """Immediate operands of f32 and f64, as bit patterns and as decimals."""
    for f, prefix in ((F32, "0f"), (F64, "0d")):
        for _ in range(2):
            bits = f.encode(formats.from_float(rng.uniform(-8, 8)))
            run = lambda a, f=f, bits=bits: ref.arithmetic(f, "mul")(a, bits)  # noqa: E731
            text = f"mul.rn.{f.name} %d0, %a0, {prefix}{bits:0{f.bits // 4}X};"
            yield Form("mul", text, [Output(f"b{f.bits}", f.name)], [float_input(f)], run)
        decimal = round(rng.uniform(-8, 8), 3)
        bits = f.encode(formats.from_float(decimal))
        run = lambda a, f=f, bits=bits: ref.arithmetic(f, "add")(a, bits)  # noqa: E731
        text = f"add.rn.{f.name} %d0, %a0, {decimal};"
        yield Form("add", text, [Output(f"b{f.bits}", f.name)], [float_input(f)], run)


def forms(rng):
    yield from rounded_forms()
    yield from half_forms()
    yield from sign_forms()
    yield from extremum_forms()
    yield from approximate_forms()
    yield from immediate_forms(rng)
