"""The forms of comparisons, selections and moves."""

import reference_float
import reference_integer as ref
from cases_float import opcode
from cases_integer import register
from forms import Form, Output, float_input, integer_input, pair_input, predicate_input
from formats import BF16, F16, F32, F64

BIT_OPERATIONS = ("eq", "ne")
SIGNED_OPERATIONS = BIT_OPERATIONS + ("lt", "le", "gt", "ge")
UNSIGNED_OPERATIONS = SIGNED_OPERATIONS + ("lo", "ls", "hi", "hs")

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


class Compared:
    """A type that comparisons know: its operations, and what they are."""

    def __init__(self, name, ftz=""):
        self.name = name
        self.ftz = ftz
        self.format = FORMATS.get(name)
        if self.format:
            self.operations = tuple(reference_float.COMPARE)
            self.input = float_input(self.format)
        else:
            self.operations = {"b": BIT_OPERATIONS, "s": SIGNED_OPERATIONS, "u": UNSIGNED_OPERATIONS}[name[0]]
            self.input = integer_input(name)

    def compare(self, operation):
        if self.format:
            return reference_float.compare(self.format, operation, bool(self.ftz))
        return ref.compare(self.name, operation)


INTEGERS = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")


def compared_types():
    for name in INTEGERS + ("f32", "f64", "f16", "bf16"):
        yield Compared(name)
    for name in ("f32", "f16"):
        yield Compared(name, "ftz")


def setp_forms(rng):
    for t in compared_types():
        inputs = [t.input] * 2
        for operation in t.operations:
            text = f"{opcode('setp', operation, t.ftz, t.name)} %d0, %a0, %a1;"
            yield Form("setp", text, [Output("pred")], inputs, t.compare(operation))
        # With a second destination, and combined with a predicate or its opposite.
        operation = rng.choice(t.operations)
        if t.format not in (F16, BF16):
            text = f"{opcode('setp', operation, t.ftz, t.name)} %d0|%d1, %a0, %a1;"
            yield Form("setp", text, [Output("pred")] * 2, inputs, complement(t.compare(operation)))
        for boolean in ref.BOOLEAN:
            operation = rng.choice(t.operations)
            for negation in ("", "!"):
                run = combined(t.compare(operation), boolean, negation)
                name = opcode("setp", operation, boolean, t.ftz, t.name)
                destination, outputs = "%d0|%d1", [Output("pred")] * 2
                if t.format in (F16, BF16):
                    destination, outputs = "%d0", outputs[:1]
                    run = first_of(run)
                text = f"{name} {destination}, %a0, %a1, {negation}%a2;"
                yield Form("setp", text, outputs, inputs + [predicate_input()], run)


def complement(compare):
    def run(a, b):
        result = compare(a, b)
        return result, 1 - result

    return run


def combined(compare, boolean, negation):
    """d = compare BoolOp c; q = !compare BoolOp c."""
    combine = ref.BOOLEAN[boolean]

    def run(a, b, c):
        c = 1 - c if negation else c
        result = compare(a, b)
        return combine(result, c), combine(1 - result, c)

    return run


def first_of(function):
    return lambda *operands: function(*operands)[0]


def pair_comparison_forms(rng):
    for name in ("f16", "bf16"):
        f = FORMATS[name]
        for ftz in ("", "ftz") if name == "f16" else ("",):
            for operation in reference_float.COMPARE:
                compare = reference_float.compare(f, operation, bool(ftz))

                def run(a, b, compare=compare):
                    return compare(a & 0xFFFF, b & 0xFFFF), compare(a >> 16, b >> 16)

                text = f"{opcode('setp', operation, ftz, name + 'x2')} %d0|%d1, %a0, %a1;"
                yield Form("setp", text, [Output("pred")] * 2, [pair_input(f)] * 2, run)
            yield from combined_pair_forms(rng, f, ftz)


def combined_pair_forms(rng, f, ftz):
    """setp of pairs with a predicate, and set of pairs: each half gives 1.0 or 16 ones."""
    for boolean, combine in ref.BOOLEAN.items():
        operation = rng.choice(list(reference_float.COMPARE))
        compare = reference_float.compare(f, operation, bool(ftz))

        def run(a, b, c, compare=compare, combine=combine):
            return combine(compare(a & 0xFFFF, b & 0xFFFF), c), combine(compare(a >> 16, b >> 16), c)

        inputs = [pair_input(f)] * 2 + [predicate_input()]
        text = f"{opcode('setp', operation, boolean, ftz, f.name + 'x2')} %d0|%d1, %a0, %a1, %a2;"
        yield Form("setp", text, [Output("pred")] * 2, inputs, run)
        for destination in (f.name + "x2", "u32", "s32"):
            true = TRUE[f.name] if destination.endswith("x2") else 0xFFFF
            both = lambda *a, run=run, true=true: sum(t * true << 16 * i for i, t in enumerate(run(*a)))  # noqa: E731
            text = f"{opcode('set', operation, boolean, ftz, destination, f.name + 'x2')} %d0, %a0, %a1, %a2;"
            yield Form("set", text, [Output("b32")], inputs, both)
            alone = lambda a, b, compare=compare, true=true: (  # noqa: E731
                compare(a & 0xFFFF, b & 0xFFFF) * true | compare(a >> 16, b >> 16) * true << 16
            )
            text = f"{opcode('set', operation, ftz, destination, f.name + 'x2')} %d0, %a0, %a1;"
            yield Form("set", text, [Output("b32")], inputs[:2], alone)


# What set writes for true.
TRUE = {"u16": 0xFFFF, "s16": 0xFFFF, "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF}
TRUE.update({"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80})


def set_forms(rng):
    """True is all ones, or 1.0."""
    for t in compared_types():
        half = t.format in (F16, BF16)
        destinations = ("u16", "s16", "u32", "s32", t.name) if half else ("u32", "s32", "f32", "f16", "bf16")
        for destination in destinations:
            if t.ftz and t.name == "f32" and destination == "bf16":
                continue
            true = TRUE[destination]
            result = register(destination)
            for operation in (rng.choice(t.operations), rng.choice(t.operations)):
                compare = t.compare(operation)
                run = lambda a, b, compare=compare, true=true: true if compare(a, b) else 0  # noqa: E731
                text = f"{opcode('set', operation, t.ftz, destination, t.name)} %d0, %a0, %a1;"
                yield Form("set", text, [Output(result)], [t.input] * 2, run)
            boolean = rng.choice(list(ref.BOOLEAN))
            operation = rng.choice(t.operations)
            both = combined(t.compare(operation), boolean, "")
            run = lambda a, b, c, both=both, true=true: true if both(a, b, c)[0] else 0  # noqa: E731
            text = f"{opcode('set', operation, boolean, t.ftz, destination, t.name)} %d0, %a0, %a1, %a2;"
            yield Form("set", text, [Output(result)], [t.input] * 2 + [predicate_input()], run)


def select_forms():
    for t in INTEGERS + ("f32", "f64"):
        bits = register(t)
        inputs = [integer_input(bits)] * 2
        run = lambda a, b, p: a if p else b  # noqa: E731
        text = f"selp.{t} %d0, %a0, %a1, %a2;"
        yield Form("selp", text, [Output(bits)], inputs + [predicate_input()], run)
        run = lambda a, b, c: a if c < 1 << 31 else b  # noqa: E731
        text = f"slct.{t}.s32 %d0, %a0, %a1, %a2;"
        yield Form("slct", text, [Output(bits)], inputs + [integer_input("s32")], run)
        for ftz in ("", "ftz"):
            at_least = reference_float.compare(F32, "ge", bool(ftz))
            run = lambda a, b, c, at_least=at_least: a if at_least(c, 0) else b  # noqa: E731
            text = f"{opcode('slct', ftz, t, 'f32')} %d0, %a0, %a1, %a2;"
            yield Form("slct", text, [Output(bits)], inputs + [float_input(F32)], run)


# ---- moves ----


def move_forms():
    for t in INTEGERS + ("f32", "f64", "f16", "bf16"):
        if t in ("f16", "bf16"):
            continue  # moved as b16
        bits = register(t)
        yield Form("mov", f"mov.{t} %d0, %a0;", [Output(bits)], [integer_input(bits)], lambda a: a)
    yield Form("mov", "mov.pred %d0, %a0;", [Output("pred")], [predicate_input()], lambda a: a)
    for whole, part in (("b32", "b16"), ("b64", "b16"), ("b64", "b32")):
        yield from pack_forms(whole, part)
    text = "mov.b64 {%d0, _}, %a0;"
    yield Form("mov", text, [Output("b32")], [integer_input("b64")], lambda a: a & ref.mask(32))
    text = "mov.b64 {_, %d0}, %a0;"
    yield Form("mov", text, [Output("b32")], [integer_input("b64")], lambda a: a >> 32)
    text = "mov.b128 %q0, {%a0, %a1};\nmov.b128 {%d1, %d0}, %q0;"
    yield Form("mov", text, [Output("b64")] * 2, [integer_input("b64")] * 2, lambda a, b: (b, a))
    yield from byte_pack_forms()


def pack_forms(whole, part):
    bits = int(part[1:])
    count = int(whole[1:]) // bits

    def pack(*parts):
        return sum(p << bits * i for i, p in enumerate(parts))

    def unpack(a):
        return tuple(a >> bits * i & ref.mask(bits) for i in range(count))

    braces = ", ".join(f"%a{i}" for i in range(count))
    yield Form("mov", f"mov.{whole} %d0, {{{braces}}};", [Output(whole)], [integer_input(part)] * count, pack)
    braces = ", ".join(f"%d{i}" for i in range(count))
    yield Form("mov", f"mov.{whole} {{{braces}}}, %a0;", [Output(part)] * count, [integer_input(whole)], unpack)


def byte_pack_forms():
    """Two and four bytes, taken apart and put together again in another order."""
    text = "mov.b16 {%c0, %c1}, %a0;\nmov.b16 %d0, {%c1, %c0};"
    swap = lambda a: a >> 8 | (a & 0xFF) << 8  # noqa: E731
    yield Form("mov", text, [Output("b16")], [integer_input("b16")], swap)
    text = "mov.b32 {%c0, %c1, %c2, %c3}, %a0;\nmov.b32 %d0, {%c2, %c0, %c3, %c1};"

    def run(a):
        byte = [a >> 8 * i & 0xFF for i in range(4)]
        return byte[2] | byte[0] << 8 | byte[3] << 16 | byte[1] << 24

    yield Form("mov", text, [Output("b32")], [integer_input("b32")], run)


def forms(rng):
    yield from setp_forms(rng)
    yield from pair_comparison_forms(rng)
    yield from set_forms(rng)
    yield from select_forms()
    yield from move_forms()
