"""What the PTX ISA says of integer and bit instructions, on Python's integers of any size.

Operands and results are bit patterns: integers from 0 to 2^bits - 1. ANY stands for a result that the ISA leaves open.
"""

ANY = "any"


def mask(bits):
    return (1 << bits) - 1


def signed(a, bits):
    return a - (1 << bits) if a >> (bits - 1) & 1 else a


class IntegerType:
    """u8 to u64, s8 to s64, b8 to b64: how bit patterns stand for numbers."""

    def __init__(self, name):
        self.name = name
        self.bits = int(name[1:])
        self.is_signed = name[0] == "s"
        self.low = -(1 << (self.bits - 1)) if self.is_signed else 0
        self.high = self.low + mask(self.bits)

    def number(self, pattern):
        pattern &= mask(self.bits)
        return signed(pattern, self.bits) if self.is_signed else pattern

    def pattern(self, number):
        return number & mask(self.bits)

    def saturate(self, number):
        return self.pattern(min(max(number, self.low), self.high))


# ---- arithmetic ----


def arithmetic(type_name, compute, saturate=False):
    """The function of bit patterns that computes on the type's numbers and wraps or saturates."""
    t = IntegerType(type_name)
    finish = t.saturate if saturate else t.pattern
    return lambda *operands: finish(compute(*map(t.number, operands)))


def quotient(a, b):
    """Rounded towards zero, as div and rem take it."""
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def divide(type_name, remainder):
    t = IntegerType(type_name)

    def run(x, y):
        a, b = t.number(x), t.number(y)
        if b == 0:
            return ANY
        return t.pattern(a - b * quotient(a, b) if remainder else quotient(a, b))

    return run


def multiply(type_name, part, add=False, saturate=False):
    """mul and mad: `part` is lo, hi or wide."""
    t = IntegerType(type_name)
    wide = IntegerType(type_name[0] + str(2 * t.bits))

    def run(x, y, z=0):
        product = t.number(x) * t.number(y)
        if part == "wide":
            return wide.pattern(product + (wide.number(z) if add else 0))
        taken = product >> t.bits if part == "hi" else product & mask(t.bits)
        if not add:
            return t.pattern(taken)
        return t.saturate(taken + t.number(z)) if saturate else t.pattern(taken + t.number(z))

    return run


def multiply24(type_name, part, add=False, saturate=False):
    """mul24 and mad24: of the 48 bits of the product, lo is the low 32 and hi the high 32."""
    t = IntegerType(type_name)
    narrow = IntegerType(type_name[0] + "24")

    def run(x, y, z=0):
        product = narrow.number(x) * narrow.number(y)
        taken = product >> 16 if part == "hi" else t.number(product & mask(32))
        total = taken + (t.number(z) if add else 0)
        return t.saturate(total) if saturate else t.pattern(total)

    return run


def pairs(function):
    """Lane by lane on two halves of 16 bits."""

    def run(*operands):
        low = function(*(a & 0xFFFF for a in operands))
        high = function(*(a >> 16 for a in operands))
        return high << 16 | low

    return run


def dot4(a_type, b_type):
    a8, b8 = IntegerType(a_type[0] + "8"), IntegerType(b_type[0] + "8")

    def run(a, b, c):
        return (c + sum(a8.number(a >> 8 * i) * b8.number(b >> 8 * i) for i in range(4))) & mask(32)

    return run


def distances(bits, is_sum):
    def run(a, b, c):
        parts = [abs((a >> i & mask(bits)) - (b >> i & mask(bits))) for i in range(0, 32, bits)]
        if is_sum:
            return (c + sum(parts)) & mask(32)
        return sum(part << bits * i for i, part in enumerate(parts))

    return run


def dot2(a_type, b_type, part):
    a16, b8 = IntegerType(a_type[0] + "16"), IntegerType(b_type[0] + "8")
    first = 2 if part == "hi" else 0

    def run(a, b, c):
        return (c + sum(a16.number(a >> 16 * i) * b8.number(b >> 8 * (first + i)) for i in range(2))) & mask(32)

    return run


# ---- carries ----


def add_carry(bits, a, b, carry):
    total = a + b + carry
    return total & mask(bits), total >> bits


def subtract_carry(bits, a, b, carry):
    """The carry is that of the complement's addition: 1 where nothing is borrowed."""
    return add_carry(bits, a, ~b & mask(bits), carry)


def multiply_part(type_name, part, a, b):
    """The half of the product that mad.cc adds to."""
    return multiply(type_name, part)(a, b)


# ---- bits ----


def count_leading_zeros(bits):
    return lambda a: bits - a.bit_length()


def find_leading(type_name, shift_amount):
    """bfind: the most significant bit that is not a copy of the sign."""
    t = IntegerType(type_name)

    def run(a):
        number = t.number(a)
        position = (~number if number < 0 else number).bit_length() - 1
        if position < 0:
            return 0xFFFFFFFF
        return t.bits - 1 - position if shift_amount else position

    return run


def find_nth_set(bits, base, offset):
    """fns of 32 bits; base is below 32."""
    offset = signed(offset, 32)
    if offset == 0:
        return base if bits >> base & 1 else 0xFFFFFFFF
    step = 1 if offset > 0 else -1
    count = abs(offset)
    position = base
    while 0 <= position < 32:
        count -= bits >> position & 1
        if count == 0 and bits >> position & 1:
            return position
        position += step
    return 0xFFFFFFFF


def reverse(bits):
    return lambda a: int(format(a, f"0{bits}b")[::-1], 2)


def is_open_field(bits, position, length):
    """The ISA takes positions and lengths modulo 256, NVIDIA's assembler takes those of 64 bits as they are."""
    return bits == 64 and max(position, length) > 255


def extract_field(type_name):
    t = IntegerType(type_name)

    def run(a, position, length):
        if is_open_field(t.bits, position, length):
            return None
        position, length = position & 0xFF, length & 0xFF
        # Beyond the register follow copies of its sign, or zeros.
        field = (t.number(a) >> position) & mask(length)
        if t.is_signed and length > 0:
            field = signed(field, length)
        return t.pattern(field)

    return run


def insert_field(bits):
    def run(a, b, position, length):
        if is_open_field(bits, position, length):
            return None
        position, length = position & 0xFF, length & 0xFF
        field = mask(length) << position & mask(bits)
        return b & ~field | a << position & field

    return run


def field_mask(mode):
    def run(position, width):
        if mode == "wrap":
            position, width = position & 31, width & 31
        else:
            position, width = min(position, 32), min(width, 32)
        return mask(width) << position & mask(32)

    return run


def extend(mode, type_name):
    """szext."""

    def run(a, width):
        width = width & 31 if mode == "wrap" else min(width, 32)
        if width == 0:
            return 0
        field = a & mask(width)
        return signed(field, width) & mask(32) if type_name == "s32" else field

    return run


def shift_left(bits):
    return lambda a, count: a << min(count, bits) & mask(bits)


def shift_right(type_name):
    t = IntegerType(type_name)
    return lambda a, count: t.pattern(t.number(a) >> min(count, t.bits))


def funnel_shift(direction, mode):
    def run(a, b, count):
        count = count & 31 if mode == "wrap" else min(count, 32)
        both = b << 32 | a
        return (both << count >> 32 if direction == "l" else both >> count) & mask(32)

    return run


def logic3(table):
    def run(a, b, c):
        result = 0
        for i in range(32):
            row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
            result |= (table >> row & 1) << i
        return result

    return run


def permute(a, b, c):
    """prmt without a mode: each nibble of c picks a byte, and its high bit replicates that byte's sign."""
    source = b << 32 | a
    result = 0
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = source >> 8 * (selector & 7) & 0xFF
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * i
    return result


# The bytes that each mode of prmt picks for c & 3 = 0 to 3, the least significant first.
PERMUTATIONS = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def permute_mode(mode):
    def run(a, b, c):
        source = b << 32 | a
        picked = PERMUTATIONS[mode][c & 3]
        return sum((source >> 8 * byte & 0xFF) << 8 * i for i, byte in enumerate(picked))

    return run


# ---- comparison ----

COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}


def compare(type_name, operation):
    t = IntegerType(type_name)
    return lambda a, b: int(COMPARE[operation](t.number(a), t.number(b)))


BOOLEAN = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
