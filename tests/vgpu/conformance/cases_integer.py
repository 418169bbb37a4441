"""The forms of integer, carry and bit instructions."""

import reference_integer as ref
from forms import Form, Input, Output, counter_input, integer_input, predicate_input, range_input

ALL = ("u16", "u32", "u64", "s16", "s32", "s64")
WIDE = ("u32", "u64", "s32", "s64")


def register(type_name):
    return f"b{type_name.lstrip('usbfx')}"


def twice(type_name):
    return f"b{2 * int(type_name[1:])}"


def form(opcode, result, inputs, run):
    """An instruction with one result and its operands in their order."""
    operands = ", ".join(f"%a{i}" for i in range(len(inputs)))
    return Form(opcode.split(".")[0], f"{opcode} %d0, {operands};", [Output(result)], inputs, run)


def same_type(opcode, type_name, count, run):
    """An instruction whose operands and result have one type."""
    return form(f"{opcode}.{type_name}", register(type_name), [integer_input(type_name)] * count, run)


def arithmetic_forms():
    add, subtract = (lambda a, b: a + b), (lambda a, b: a - b)
    for t in ALL:
        yield same_type("add", t, 2, ref.arithmetic(t, add))
        yield same_type("sub", t, 2, ref.arithmetic(t, subtract))
        yield same_type("min", t, 2, ref.arithmetic(t, min))
        yield same_type("max", t, 2, ref.arithmetic(t, max))
        yield same_type("sad", t, 3, ref.arithmetic(t, lambda a, b, c: abs(a - b) + c))
        yield same_type("div", t, 2, ref.divide(t, remainder=False))
        yield same_type("rem", t, 2, ref.divide(t, remainder=True))
    for t in ("s16", "s32", "s64"):
        yield same_type("abs", t, 1, ref.arithmetic(t, abs))
        yield same_type("neg", t, 1, ref.arithmetic(t, lambda a: -a))
    yield same_type("add.sat", "s32", 2, ref.arithmetic("s32", add, saturate=True))
    yield same_type("sub.sat", "s32", 2, ref.arithmetic("s32", subtract, saturate=True))
    for operation, compute in (("add", add), ("min", min), ("max", max)):
        for t in ("u16", "s16"):
            yield pair_form(f"{operation}.{t}x2", ref.pairs(ref.arithmetic(t, compute)))
    for operation, compute in (("min", min), ("max", max)):
        relu = lambda a, b, compute=compute: max(compute(a, b), 0)  # noqa: E731
        yield same_type(f"{operation}.relu", "s32", 2, ref.arithmetic("s32", relu))
        yield pair_form(f"{operation}.relu.s16x2", ref.pairs(ref.arithmetic("s16", relu)))


def pair_form(opcode, run):
    return form(opcode, "b32", [halves_input()] * 2, run)


def halves_input():
    half = integer_input("b16")
    edges = [high << 16 | low for high in half.edges for low in half.edges]
    return Input("b32", edges, lambda rng: half.draw(rng) << 16 | half.draw(rng))


def multiply_forms():
    for t in ALL:
        for part in ("lo", "hi"):
            yield same_type(f"mul.{part}", t, 2, ref.multiply(t, part))
            yield same_type(f"mad.{part}", t, 3, ref.multiply(t, part, add=True))
    yield same_type("mad.hi.sat", "s32", 3, ref.multiply("s32", "hi", add=True, saturate=True))
    for t in ("u16", "u32", "s16", "s32"):
        factors = [integer_input(t)] * 2
        yield form(f"mul.wide.{t}", twice(t), factors, ref.multiply(t, "wide"))
        summand = integer_input(twice(t))
        yield form(f"mad.wide.{t}", twice(t), factors + [summand], ref.multiply(t, "wide", add=True))
    for t in ("u32", "s32"):
        for part in ("lo", "hi"):
            yield same_type(f"mul24.{part}", t, 2, ref.multiply24(t, part))
            yield same_type(f"mad24.{part}", t, 3, ref.multiply24(t, part, add=True))
    yield same_type("mad24.hi.sat", "s32", 3, ref.multiply24("s32", "hi", add=True, saturate=True))
    for name, element in (("vabsdiff2", 16), ("vabsdiff4", 8)):
        inputs = [integer_input("u32")] * 3
        yield form(f"{name}.u32.u32.u32", "b32", inputs, ref.distances(element, False))
        yield form(f"{name}.u32.u32.u32.add", "b32", inputs, ref.distances(element, True))
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            inputs = [integer_input("b32")] * 3
            yield form(f"dp4a.{a}.{b}", "b32", inputs, ref.dot4(a, b))
            for part in ("lo", "hi"):
                yield form(f"dp2a.{part}.{a}.{b}", "b32", inputs, ref.dot2(a, b, part))


# ---- carries: chains of instructions, since the carry flag lives between them only ----


def carry_forms():
    for t in WIDE:
        bits = int(t[1:])
        yield Form(
            "add",
            f"add.cc.{t} %d0, %a0, %a1;\naddc.cc.{t} %d1, %a2, %a3;\n"
            f"addc.{t} %d2, 0, 0;\naddc.{t} %d3, %a0, %a2;",
            [Output(register(t))] * 4,
            [integer_input(t)] * 4,
            chain(bits, ref.add_carry, 0),
        )
        yield Form(
            "sub",
            f"sub.cc.{t} %d0, %a0, %a1;\nsubc.cc.{t} %d1, %a2, %a3;\n"
            f"addc.{t} %d2, 0, 0;\nsubc.{t} %d3, %a0, %a2;",
            [Output(register(t))] * 4,
            [integer_input(t)] * 4,
            chain(bits, ref.subtract_carry, 1),
        )
        for first in ("lo", "hi"):
            for second in ("lo", "hi"):
                yield multiply_chain(t, first, second)


def chain(bits, step, carry_in):
    """Two words, the carry out of them, and what an instruction does that reads it only."""

    def run(a, b, c, d):
        low, carry = step(bits, a, b, carry_in)
        high, carry = step(bits, c, d, carry)
        return low, high, carry, step(bits, a, c, carry)[0]

    return run


def multiply_chain(t, first, second):
    """mad.cc, then a madc that reads and sets the carry, then one that reads it only."""
    bits = int(t[1:])

    def run(a, b, c, d):
        low, carry = ref.add_carry(bits, ref.multiply_part(t, first, a, b), c, 0)
        high, carry = ref.add_carry(bits, ref.multiply_part(t, second, a, b), d, carry)
        return low, high, ref.add_carry(bits, ref.multiply_part(t, second, c, d), a, carry)[0]

    text = (
        f"mad.{first}.cc.{t} %d0, %a0, %a1, %a2;\n"
        f"madc.{second}.cc.{t} %d1, %a0, %a1, %a3;\n"
        f"madc.{second}.{t} %d2, %a2, %a3, %a0;"
    )
    return Form("mad", text, [Output(register(t))] * 3, [integer_input(t)] * 4, run)


# ---- bits ----


def logic_forms():
    for bits in (16, 32, 64):
        t = f"b{bits}"
        for name, compute in ref.BOOLEAN.items():
            yield same_type(name, t, 2, compute)
        yield same_type("not", t, 1, lambda a, bits=bits: a ^ ref.mask(bits))
        yield same_type("cnot", t, 1, lambda a: int(a == 0))
        yield form(f"shl.{t}", t, [integer_input(t), counter_input()], ref.shift_left(bits))
        for kind in "bus":
            run = ref.shift_right(f"{kind}{bits}")
            yield form(f"shr.{kind}{bits}", t, [integer_input(t), counter_input()], run)
    for name, compute in ref.BOOLEAN.items():
        yield form(f"{name}.pred", "pred", [predicate_input()] * 2, compute)
    yield form("not.pred", "pred", [predicate_input()], lambda a: 1 - a)
    # Negated operands are a matter of every instruction that reads a predicate.
    yield Form("and", "and.pred %d0, !%a0, %a1;", [Output("pred")], [predicate_input()] * 2, lambda a, b: (1 - a) & b)
    yield Form("or", "or.pred %d0, %a0, !%a1;", [Output("pred")], [predicate_input()] * 2, lambda a, b: a | (1 - b))


def count_forms():
    for bits in (32, 64):
        t = f"b{bits}"
        source = [integer_input(t)]
        yield form(f"popc.{t}", "b32", source, lambda a: bin(a).count("1"))
        yield form(f"clz.{t}", "b32", source, ref.count_leading_zeros(bits))
        yield form(f"brev.{t}", t, source, ref.reverse(bits))
        inputs = [integer_input(t), integer_input(t), counter_input(), counter_input()]
        yield form(f"bfi.{t}", t, inputs, ref.insert_field(bits))
    for t in WIDE:
        source = [integer_input(t)]
        yield form(f"bfind.{t}", "b32", source, ref.find_leading(t, shift_amount=False))
        yield form(f"bfind.shiftamt.{t}", "b32", source, ref.find_leading(t, shift_amount=True))
        inputs = [integer_input(t), counter_input(), counter_input()]
        yield form(f"bfe.{t}", register(t), inputs, ref.extract_field(t))
    inputs = [integer_input("b32"), range_input(0, 31), range_input(-34, 34)]
    yield form("fns.b32", "b32", inputs, ref.find_nth_set)


def field_forms():
    amounts = [counter_input(), counter_input()]
    for mode in ("clamp", "wrap"):
        yield form(f"bmsk.{mode}.b32", "b32", amounts, ref.field_mask(mode))
        for t in ("u32", "s32"):
            yield form(f"szext.{mode}.{t}", "b32", [integer_input(t), counter_input()], ref.extend(mode, t))
        for direction in "lr":
            inputs = [integer_input("b32"), integer_input("b32"), counter_input()]
            yield form(f"shf.{direction}.{mode}.b32", "b32", inputs, ref.funnel_shift(direction, mode))
    inputs = [integer_input("b32"), integer_input("b32"), integer_input("b32")]
    yield form("prmt.b32", "b32", inputs, ref.permute)
    for mode in ref.PERMUTATIONS:
        yield form(f"prmt.b32.{mode}", "b32", inputs, ref.permute_mode(mode))


def logic3_forms(rng):
    """The tables of the three operands, of common expressions, and random ones."""
    tables = [0, 0xFF, 0xF0, 0xCC, 0xAA, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1A, 0x40]
    tables += [rng.getrandbits(8) for _ in range(12)]
    inputs = [integer_input("b32")] * 3
    for table in tables:
        yield Form("lop3", f"lop3.b32 %d0, %a0, %a1, %a2, {table};", [Output("b32")], inputs, ref.logic3(table))
    for name, combine in (("and", ref.BOOLEAN["and"]), ("or", ref.BOOLEAN["or"])):
        table = rng.getrandbits(8)
        bits = ref.logic3(table)

        def both(a, b, c, q, bits=bits, combine=combine):
            result = bits(a, b, c)
            return result, combine(int(result != 0), q)

        text = f"lop3.{name}.b32 %d0|%d1, %a0, %a1, %a2, {table}, %a3;"
        yield Form("lop3", text, [Output("b32"), Output("pred")], inputs + [predicate_input()], both)


def immediate_forms(rng):
    """Immediate operands of every width, positive and negative."""
    for t in ALL:
        kind = ref.IntegerType(t)
        number = kind.number(rng.getrandbits(kind.bits))
        for name, compute in (("add", lambda a, b: a + b), ("max", max)):
            run = ref.arithmetic(t, lambda a, compute=compute, number=number: compute(a, number))
            yield Form(name, f"{name}.{t} %d0, %a0, {number};", [Output(register(t))], [integer_input(t)], run)
    for bits in (16, 32, 64):
        pattern = rng.getrandbits(bits)
        text = f"xor.b{bits} %d0, %a0, {pattern:#x};"
        yield Form("xor", text, [Output(f"b{bits}")], [integer_input(f"b{bits}")], lambda a, p=pattern: a ^ p)
        for count in (rng.randrange(bits), bits, bits + 5):
            run = lambda a, bits=bits, count=count: ref.shift_left(bits)(a, count)  # noqa: E731
            text = f"shl.b{bits} %d0, %a0, {count};"
            yield Form("shl", text, [Output(f"b{bits}")], [integer_input(f"b{bits}")], run)


def forms(rng):
    yield from arithmetic_forms()
    yield from multiply_forms()
    yield from carry_forms()
    yield from logic_forms()
    yield from count_forms()
    yield from field_forms()
    yield from logic3_forms(rng)
    yield from immediate_forms(rng)
