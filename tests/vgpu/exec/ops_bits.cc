// Logic, shifts and bit fields.
#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

template <class T> constexpr uint32_t BITS = 8 * sizeof(T);

uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

struct And {
    template <class T> static T run(T a, T b) { return (T)(a & b); }
};
struct Or {
    template <class T> static T run(T a, T b) { return (T)(a | b); }
};
struct Xor {
    template <class T> static T run(T a, T b) { return (T)(a ^ b); }
};
struct Not {
    template <class T> static T run(T a) { return (T)~a; }
};
struct LogicalNot {
    template <class T> static T run(T a) { return a == 0; }
};

template <class Op> void predicates2(Warp &warp, const Instr &in, Mask active) {
    warp.set_predicate(in, 0, Op::run(warp.predicate(in, 1), warp.predicate(in, 2)), active);
}
void not_predicate(Warp &warp, const Instr &in, Mask active) {
    warp.set_predicate(in, 0, ~warp.predicate(in, 1), active);
}

// Shifts by the width or more give what shifting by it would: zeros, or copies of the sign.
struct ShiftLeft {
    template <class T> static T run(T a, uint32_t b) {
        const T shifted = (T)(a << (b & (BITS<T> - 1)));
        return b < BITS<T> ? shifted : T{0};
    }
};
struct ShiftRight {
    template <class T> static T run(T a, uint32_t b) {
        if (std::is_signed_v<T>) return (T)(a >> smaller(b, BITS<T> - 1));
        const T shifted = (T)(a >> (b & (BITS<T> - 1)));
        return b < BITS<T> ? shifted : T{0};
    }
};

template <class Op> Run shift(const Form &form) {
    return with_integer(form.type(), [](auto t) -> Run { return map<Op, decltype(t), decltype(t), uint32_t>; });
}

// Shifts of b:a, of which the upper half after a shift left or the lower one after a shift right is taken.
uint64_t joined(uint32_t a, uint32_t b) { return (uint64_t)b << 32 | a; }

template <bool CLAMP> uint32_t shift_amount(uint32_t c) { return CLAMP ? smaller(c, 32) : c & 31; }

template <bool CLAMP> struct FunnelLeft {
    static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        return (uint32_t)(joined(a, b) << shift_amount<CLAMP>(c) >> 32);
    }
};
template <bool CLAMP> struct FunnelRight {
    static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        return (uint32_t)(joined(a, b) >> shift_amount<CLAMP>(c));
    }
};

// Any function of three bits: bit 4a+2b+c of the table is its value. A lane's result is chosen bit by bit, first by c,
// then by b, then by a.
uint32_t choose(uint32_t selector, uint32_t ones, uint32_t zeros) { return zeros ^ (selector & (ones ^ zeros)); }

struct Lop3 {
    static uint32_t run(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
        uint32_t value[8];
        for (uint32_t i = 0; i < 8; i++)
            value[i] = 0 - (table >> i & 1);
        return choose(a, choose(b, choose(c, value[7], value[6]), choose(c, value[5], value[4])),
                      choose(b, choose(c, value[3], value[2]), choose(c, value[1], value[0])));
    }
};

// d|p = lop3, p = BoolOp(d != 0, q)
template <class Op> void lop3_predicate(Warp &warp, const Instr &in, Mask active) {
    const uint32_t *a = warp.lanes<uint32_t>(in.at[2]), *b = warp.lanes<uint32_t>(in.at[3]);
    const uint32_t *c = warp.lanes<uint32_t>(in.at[4]), *table = warp.lanes<uint32_t>(in.at[5]);
    alignas(64) uint32_t result[LANES];
    map_lanes<Lop3>(ALL_LANES, result, a, b, c, table);
    const Mask nonzero = mask_of([&](int l) { return result[l] != 0; });
    const Mask value = Op::run(nonzero, warp.predicate(in, 6));
    map_lanes<Or>(active, warp.lanes<uint32_t>(in.at[0]), result, result);
    warp.set_predicate(in, 1, value, active);
}

// Permutes: each byte of the result is one of the eight of b:a.
uint32_t byte_of(uint64_t bytes, uint32_t index) { return (uint32_t)(bytes >> 8 * index) & 0xff; }

struct Permute { // a selector of four bits for each byte, the highest: the byte's sign in all bits
    static uint32_t run(uint32_t a, uint32_t b, uint32_t selector) {
        uint32_t result = 0;
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t nibble = selector >> 4 * i, byte = byte_of(joined(a, b), nibble & 7);
            result |= (nibble & 8 ? 0xff * (byte >> 7) : byte) << 8 * i;
        }
        return result;
    }
};

// The other modes: the selector's low two bits say which of four sets of bytes; a row of SETS has the bytes' indices,
// that of the lowest byte in the lowest digit.
using PermuteSets = const uint16_t[4];
PermuteSets FORWARD = {0x3210, 0x4321, 0x5432, 0x6543};
PermuteSets BACKWARD = {0x5670, 0x6701, 0x7012, 0x0123};
PermuteSets REPLICATE_8 = {0x0000, 0x1111, 0x2222, 0x3333};
PermuteSets REPLICATE_16 = {0x1010, 0x3232, 0x1010, 0x3232};
PermuteSets EDGE_LEFT = {0x3210, 0x3211, 0x3222, 0x3333};
PermuteSets EDGE_RIGHT = {0x0000, 0x1110, 0x2210, 0x3210};

template <PermuteSets &SETS> struct PermuteMode {
    static uint32_t run(uint32_t a, uint32_t b, uint32_t selector) { return Permute::run(a, b, SETS[selector & 3]); }
};

// Positions and lengths of bit fields are the low eight bits of their operands.
template <class T> T low_ones(uint32_t length) { return length < BITS<T> ? (T)((T{1} << length) - 1) : (T)~T{0}; }

struct BitFieldExtract { // beyond the field its sign is copied: that of its highest bit within the number
    template <class T> static T run(T a, uint32_t b, uint32_t c) {
        using U = std::make_unsigned_t<T>;
        const uint32_t position = b & 0xff, length = c & 0xff, last = smaller(position + length - 1, BITS<T> - 1);
        const U field = (U)(ShiftRight::run((U)a, position) & low_ones<U>(length));
        const bool is_negative = std::is_signed_v<T> && length > 0 && ((U)a >> last & 1);
        const uint32_t valid = position < BITS<T> ? smaller(length, BITS<T> - position) : 0;
        return (T)(is_negative ? field | (U)~low_ones<U>(valid) : field);
    }
};
struct BitFieldInsert {
    template <class T> static T run(T a, T b, uint32_t c, uint32_t d) {
        const uint32_t position = c & 0xff, length = d & 0xff;
        const T field = ShiftLeft::run(low_ones<T>(length), position);
        return (T)((b & ~field) | (ShiftLeft::run(a, position) & field));
    }
};
template <bool CLAMP> struct BitMask {
    static uint32_t run(uint32_t a, uint32_t b) {
        if (CLAMP) return ShiftLeft::run(low_ones<uint32_t>(b), a);
        return low_ones<uint32_t>(b & 31) << (a & 31);
    }
};
template <bool CLAMP> struct ExtendFrom { // zero or sign extension of the low b bits
    template <class T> static T run(T a, uint32_t b) {
        const uint32_t bits = CLAMP ? smaller(b, 32) : b & 31;
        if (bits == 0) return 0;
        return (T)((T)((uint32_t)a << (32 - bits)) >> (32 - bits));
    }
};

uint32_t leading_zeros(uint32_t a) { return a == 0 ? 32 : (uint32_t)__builtin_clz(a); }
uint32_t leading_zeros(uint64_t a) { return a == 0 ? 64 : (uint32_t)__builtin_clzll(a); }

struct LeadingZeros {
    template <class T> static uint32_t run(T a) { return leading_zeros((std::make_unsigned_t<T>)a); }
};
// The position of the highest one, or of the highest bit that differs from the sign; all ones where there is none.
template <bool SHIFT_AMOUNT> struct BitFind {
    template <class T> static uint32_t run(T a) {
        using U = std::make_unsigned_t<T>;
        const uint32_t zeros = leading_zeros((U)(a < 0 ? ~a : a));
        if (zeros == BITS<T>) return ~0U;
        return SHIFT_AMOUNT ? zeros : BITS<T> - 1 - zeros;
    }
};
struct PopulationCount {
    template <class T> static uint32_t run(T a) { return (uint32_t)__builtin_popcountll((std::make_unsigned_t<T>)a); }
};
struct BitReverse {
    template <class T> static T run(T a) {
        a = (T)((a >> 1 & (T)0x5555555555555555) | (a & (T)0x5555555555555555) << 1);
        a = (T)((a >> 2 & (T)0x3333333333333333) | (a & (T)0x3333333333333333) << 2);
        a = (T)((a >> 4 & (T)0x0f0f0f0f0f0f0f0f) | (a & (T)0x0f0f0f0f0f0f0f0f) << 4);
        if constexpr (sizeof(T) == 8)
            return __builtin_bswap64(a);
        else
            return __builtin_bswap32(a);
    }
};
// The position of the n-th one at or above the base, or for a negative n at or below it; n = 0: the base's own bit.
struct FindNthSet {
    static uint32_t run(uint32_t mask, uint32_t base, int32_t n) {
        if (n == 0) return base < 32 && (mask >> base & 1) ? base : ~0U;
        const int64_t step = n < 0 ? -1 : 1;
        int64_t wanted = n * step;
        for (int64_t bit = base; bit >= 0 && bit < 32; bit += step)
            if ((mask >> bit & 1) && --wanted == 0) return (uint32_t)bit;
        return ~0U;
    }
};

template <class Op> Run count(const Form &form) {
    return with_integer<4>(form.type(), [](auto t) -> Run { return map<Op, uint32_t, decltype(t)>; });
}
Run bit_field_extract(const Form &form) {
    return with_integer<4>(
        form.type(), [](auto t) -> Run { return map<BitFieldExtract, decltype(t), decltype(t), uint32_t, uint32_t>; });
}
Run bit_field_insert(const Form &form) {
    return with_integer<4>(form.type(), [](auto t) -> Run {
        return map<BitFieldInsert, decltype(t), decltype(t), decltype(t), uint32_t, uint32_t>;
    });
}
template <bool CLAMP> Run extend_from(const Form &form) {
    if (form.type() == ptx::Type::s32) return map<ExtendFrom<CLAMP>, int32_t, int32_t, uint32_t>;
    return map<ExtendFrom<CLAMP>, uint32_t, uint32_t, uint32_t>;
}

template <class Op> constexpr Run WORDS2 = map<Op, uint32_t, uint32_t, uint32_t>;
template <class Op> constexpr Run WORDS3 = map<Op, uint32_t, uint32_t, uint32_t, uint32_t>;
constexpr Run LOP3 = map<Lop3, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
constexpr Run FIND_NTH_SET = map_each<FindNthSet, uint32_t, uint32_t, uint32_t, int32_t>;

const Row rows[] = {
    {"and", "b16|b32|b64", "t t t", integer2<And>},
    {"or", "b16|b32|b64", "t t t", integer2<Or>},
    {"xor", "b16|b32|b64", "t t t", integer2<Xor>},
    {"not", "b16|b32|b64", "t t", integer1<Not>},
    {"cnot", "b16|b32|b64", "t t", integer1<LogicalNot>},
    {"and", "pred", "p p p", only<predicates2<And>>},
    {"or", "pred", "p p p", only<predicates2<Or>>},
    {"xor", "pred", "p p p", only<predicates2<Xor>>},
    {"not", "pred", "p p", only<not_predicate>},
    {"shl", "b16|b32|b64", "t t u32", shift<ShiftLeft>},
    {"shr", "b16|b32|b64|u16|u32|u64|s16|s32|s64", "t t u32", shift<ShiftRight>},
    {"shf", "l clamp b32", "t t t u32", only<WORDS3<FunnelLeft<true>>>},
    {"shf", "l wrap b32", "t t t u32", only<WORDS3<FunnelLeft<false>>>},
    {"shf", "r clamp b32", "t t t u32", only<WORDS3<FunnelRight<true>>>},
    {"shf", "r wrap b32", "t t t u32", only<WORDS3<FunnelRight<false>>>},
    {"lop3", "b32", "t t t t u32", only<LOP3>},
    {"lop3", "and b32", "t|p t t t u32 p", only<lop3_predicate<And>>},
    {"lop3", "or b32", "t|p t t t u32 p", only<lop3_predicate<Or>>},
    {"prmt", "b32", "t t t u32", only<WORDS3<Permute>>},
    {"prmt", "b32 f4e", "t t t u32", only<WORDS3<PermuteMode<FORWARD>>>},
    {"prmt", "b32 b4e", "t t t u32", only<WORDS3<PermuteMode<BACKWARD>>>},
    {"prmt", "b32 rc8", "t t t u32", only<WORDS3<PermuteMode<REPLICATE_8>>>},
    {"prmt", "b32 ecl", "t t t u32", only<WORDS3<PermuteMode<EDGE_LEFT>>>},
    {"prmt", "b32 ecr", "t t t u32", only<WORDS3<PermuteMode<EDGE_RIGHT>>>},
    {"prmt", "b32 rc16", "t t t u32", only<WORDS3<PermuteMode<REPLICATE_16>>>},
    {"bfe", "u32|u64|s32|s64", "t t u32 u32", bit_field_extract},
    {"bfi", "b32|b64", "t t t u32 u32", bit_field_insert},
    {"bfind", "u32|u64|s32|s64", "u32 t", count<BitFind<false>>},
    {"bfind", "shiftamt u32|u64|s32|s64", "u32 t", count<BitFind<true>>},
    {"bmsk", "clamp b32", "t u32 u32", only<WORDS2<BitMask<true>>>},
    {"bmsk", "wrap b32", "t u32 u32", only<WORDS2<BitMask<false>>>},
    {"szext", "clamp u32|s32", "t t u32", extend_from<true>},
    {"szext", "wrap u32|s32", "t t u32", extend_from<false>},
    {"brev", "b32|b64", "t t", integer1<BitReverse, 4>},
    {"clz", "b32|b64", "u32 t", count<LeadingZeros>},
    {"popc", "b32|b64", "u32 t", count<PopulationCount>},
    {"fns", "b32", "t t u32 s32", only<FIND_NTH_SET>},
};

} // namespace

extern const Rows bits_rows;
const Rows bits_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
