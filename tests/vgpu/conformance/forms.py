"""What a conformance case is made of: the form of an instruction, its operands and where their values come from."""

import random

import formats

# The registers that operands are in.
REGISTER_BITS = {"b8": 8, "b16": 16, "b32": 32, "b64": 64, "pred": 1}


class Output:
    """`register` is a key of REGISTER_BITS; `order`: whether results are compared as bits or as numbers of a format."""

    def __init__(self, register, order="bits"):
        self.register = register
        self.order = order


class Form:
    """One kernel. `text` has its instructions, one a line, with %d0 .. for the results and %a0 .. for the operands;
    `run` gets the operands as bit patterns and returns the result, or a tuple of them. `setup` is what the kernel
    declares and executes before, in every lane."""

    def __init__(self, group, text, outputs, inputs, run, setup=""):
        self.group = group
        self.text = text
        self.outputs = outputs
        self.inputs = inputs
        self.run = run
        self.setup = setup


class Input:
    """An operand: its register, values at the edges, and how random ones are drawn."""

    def __init__(self, register, edges, draw):
        self.register = register
        self.edges = edges
        self.draw = draw


# ---- integers ----


def integer_input(type_name, register=None):
    """Of u8 to s64 and b8 to b64. Registers wider than the type have random bits above it."""
    bits = int(type_name[1:])
    register = register or f"b{bits}"
    width = REGISTER_BITS[register]
    top = 1 << (bits - 1)
    full = (1 << bits) - 1
    edges = [0, 1, 2, full, full - 1, top, top - 1, top + 1, 0x55 * (full // 255), 31 % (full + 1), 32 % (full + 1)]

    def draw(rng):
        shape = rng.randrange(4)
        if shape == 0:  # few bits: small numbers
            low = rng.getrandbits(rng.randint(1, bits))
        elif shape == 1:  # small negative ones
            low = full - rng.getrandbits(rng.randint(1, bits))
        else:
            low = rng.getrandbits(bits)
        return low if width == bits else low | rng.getrandbits(width - bits) << bits

    def widen(value, rng):
        return value if width == bits else value | rng.getrandbits(width - bits) << bits

    wide_edges = [widen(v, random.Random(i)) for i, v in enumerate(edges)]
    return Input(register, wide_edges, draw)


def counter_input(limit=300):
    """A 32-bit amount: of a shift, a position, a length."""
    edges = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xFFFFFFFF]

    def draw(rng):
        return rng.randrange(64) if rng.randrange(4) else rng.choice([rng.randrange(limit), rng.getrandbits(32)])

    return Input("b32", edges, draw)


def range_input(low, high):
    """A 32-bit number from low to high, both included; negative ones in two's complement."""

    def draw(rng):
        return rng.randint(low, high) & 0xFFFFFFFF

    return Input("b32", [low & 0xFFFFFFFF, high & 0xFFFFFFFF], draw)


def predicate_input():
    return Input("pred", [0, 1], lambda rng: rng.getrandbits(1))


# ---- floating-point numbers ----


def format_edges(f):
    """Zeros, subnormals, the smallest and the largest normal numbers, one and its neighbours, infinities, NaNs."""
    one = f.encode(formats.from_integer(1))
    magnitudes = [
        0, 1, 2, f.hidden - 1, f.hidden, f.hidden + 1, one - 1, one, one + 1, f.max_finite, f.infinity,
        f.encode(formats.Value(formats.FINITE, 0, 1, -1)), f.encode(formats.Value(formats.FINITE, 0, 3, -1)),
    ]  # fmt: skip
    quiet = f.infinity | f.hidden >> 1
    nans = [f.nan, quiet, quiet | f.sign_bit, f.infinity | 1]
    return magnitudes + [m | f.sign_bit for m in magnitudes] + nans


def draw_float(f, rng):
    """Uniform over bit patterns, near one, as large as integers, near the subnormals, or of few bits, so that sums,
    products and conversions are exact or ties."""
    shape = rng.randrange(6)
    if shape == 0:
        return rng.getrandbits(f.bits)
    sign = f.sign_bit if rng.getrandbits(1) else 0
    one = f.bias
    if shape == 1:
        exponent = rng.randint(max(one - 3, 1), min(one + 3, 2 * one))
        fraction = rng.getrandbits(f.mantissa_bits)
    elif shape == 2:
        exponent = rng.randint(max(one - f.mantissa_bits, 1), min(one + f.mantissa_bits, 2 * one))
        fraction = rng.getrandbits(2) << (f.mantissa_bits - 2)
    elif shape == 3:  # about as large as integers are
        exponent = rng.randint(max(one - 2, 1), min(one + 66, 2 * one))
        fraction = rng.getrandbits(f.mantissa_bits)
    elif shape == 4:  # zeros behind some place: a tie for formats with fewer places
        exponent = rng.randint(max(one - 20, 0), min(one + 20, 2 * one))
        place = rng.randrange(f.mantissa_bits)
        fraction = rng.getrandbits(f.mantissa_bits) >> place << place | 1 << place
    else:  # near the subnormals
        exponent = rng.randint(0, min(2 * f.mantissa_bits, 2 * one))
        fraction = rng.getrandbits(f.mantissa_bits)
    return sign | exponent << f.mantissa_bits | fraction


def float_input(f, register=None):
    """Registers wider than the format have random bits above it."""
    register = register or f"b{f.bits}"
    width = REGISTER_BITS[register]

    def widen(value, rng):
        return value if width == f.bits else value | rng.getrandbits(width - f.bits) << f.bits

    edges = [widen(v, random.Random(i)) for i, v in enumerate(format_edges(f))]
    return Input(register, edges, lambda rng: widen(draw_float(f, rng), rng))


def float_range_input(f, low_exponent, high_exponent):
    """Magnitudes from 2^low to 2^high, besides the edges."""

    def draw(rng):
        exponent = f.bias + rng.randint(low_exponent, high_exponent - 1)
        return rng.getrandbits(1) << (f.bits - 1) | exponent << f.mantissa_bits | rng.getrandbits(f.mantissa_bits)

    return Input(f"b{f.bits}", format_edges(f), draw)


def wide_float_input(f):
    """One whose values are what float-to-integer conversions clamp at, too."""
    edges = format_edges(f)
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        for offset in (-1, 0, 1):
            for halves in (-1, 0, 1):
                value = formats.Value(formats.FINITE, 0, ((1 << bits) + offset) * 2 + halves, -1)
                bound = f.encode(value, "rz")
                edges += [bound, bound | f.sign_bit]
    return Input(f"b{f.bits}", sorted(set(edges)), lambda rng: draw_float(f, rng))


def pair_input(f):
    """Two halves in one register."""
    edges = format_edges(f)
    rng = random.Random(0)
    both = [rng.choice(edges) << f.bits | e for e in edges] + [e << f.bits | rng.choice(edges) for e in edges]
    return Input(f"b{2 * f.bits}", both, lambda r: draw_float(f, r) << f.bits | draw_float(f, r))


# ---- cases ----


def draw_operands(inputs, count, rng):
    """All combinations of edges where there is room for them, otherwise a sample; the rest is random, some of it with
    an edge among its operands or with two operands alike."""
    combinations = 1
    for operand in inputs:
        combinations *= len(operand.edges)
    if combinations <= count * 3 // 4:
        for index in range(combinations):
            row = []
            for operand in inputs:
                index, position = divmod(index, len(operand.edges))
                row.append(operand.edges[position])
            yield row
    else:
        for _ in range(count // 2):
            yield [rng.choice(operand.edges) for operand in inputs]
    while True:
        row = [operand.draw(rng) for operand in inputs]
        shape = rng.randrange(6)
        position = rng.randrange(len(inputs))
        if shape == 0:
            row[position] = rng.choice(inputs[position].edges)
        elif shape == 1 and inputs[0].register == inputs[-1].register:
            row[-1] = row[0]
        yield row
