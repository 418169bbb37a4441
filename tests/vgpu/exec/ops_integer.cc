// Integer arithmetic. Overflow wraps, as the PTX ISA says; division by zero gives all ones and the dividend as its
// remainder, which is what the hardware gives.
#include "tests/vgpu/exec/ops_integer.h"

namespace vgpu::VGPU_ISA {
namespace {

struct Add {
    template <class T> static T run(T a, T b) { return (T)((Modular<T>)a + (Modular<T>)b); }
};
struct Sub {
    template <class T> static T run(T a, T b) { return (T)((Modular<T>)a - (Modular<T>)b); }
};

int32_t saturate_s32(int64_t x) { return (int32_t)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x); }

struct AddSaturate {
    static int32_t run(int32_t a, int32_t b) { return saturate_s32((int64_t)a + b); }
};
struct SubSaturate {
    static int32_t run(int32_t a, int32_t b) { return saturate_s32((int64_t)a - b); }
};
struct MadHighSaturate {
    static int32_t run(int32_t a, int32_t b, int32_t c) { return saturate_s32((int64_t)MulHigh::run(a, b) + c); }
};

struct MulWide {
    template <class T> static Wide<T> run(T a, T b) { return (Wide<T>)((Wide<T>)a * (Wide<T>)b); }
};
struct MadLow {
    template <class T> static T run(T a, T b, T c) { return Add::run(MulLow::run(a, b), c); }
};
struct MadHigh {
    template <class T> static T run(T a, T b, T c) { return Add::run(MulHigh::run(a, b), c); }
};
struct MadWide {
    template <class T> static Wide<T> run(T a, T b, Wide<T> c) { return Add::run(MulWide::run(a, b), c); }
};

// The product of the low 24 bits of the operands has 48 bits; .hi takes its upper 32.
template <class T> Wide<T> product24(T a, T b) {
    const T left = (T)((uint32_t)a << 8), right = (T)((uint32_t)b << 8);
    return MulWide::run((T)(left >> 8), (T)(right >> 8));
}
struct Mul24Low {
    template <class T> static T run(T a, T b) { return (T)product24(a, b); }
};
struct Mul24High {
    template <class T> static T run(T a, T b) { return (T)(product24(a, b) >> 16); }
};
struct Mad24Low {
    template <class T> static T run(T a, T b, T c) { return Add::run(Mul24Low::run(a, b), c); }
};
struct Mad24High {
    template <class T> static T run(T a, T b, T c) { return Add::run(Mul24High::run(a, b), c); }
};
struct Mad24HighSaturate {
    static int32_t run(int32_t a, int32_t b, int32_t c) { return saturate_s32((int64_t)Mul24High::run(a, b) + c); }
};

struct Div {
    template <class T> static T run(T a, T b) {
        if (b == 0) return (T)~T{0};
        if (std::is_signed_v<T> && b == (T)-1) // the quotient of the least number overflows
            return Sub::run(T{0}, a);
        return (T)(a / b);
    }
};
struct Rem {
    template <class T> static T run(T a, T b) {
        if (b == 0) return a;
        if (std::is_signed_v<T> && b == (T)-1) return 0;
        return (T)(a % b);
    }
};

struct Min {
    template <class T> static T run(T a, T b) { return a < b ? a : b; }
};
struct Max {
    template <class T> static T run(T a, T b) { return a < b ? b : a; }
};
template <class Op> struct Relu { // negative results are zero
    template <class T> static T run(T a, T b) { return Max::run(Op::run(a, b), T{0}); }
};

struct Neg {
    template <class T> static T run(T a) { return Sub::run(T{0}, a); }
};
struct Abs {
    template <class T> static T run(T a) { return a < 0 ? Neg::run(a) : a; }
};
struct Sad {
    template <class T> static T run(T a, T b, T c) { return Add::run(c, a < b ? Sub::run(b, a) : Sub::run(a, b)); }
};

// Two 16-bit numbers in a register.
template <class Op, class T> struct Pair {
    static uint32_t run(uint32_t a, uint32_t b) {
        const uint32_t low = (uint16_t)Op::run((T)a, (T)b), high = (uint16_t)Op::run((T)(a >> 16), (T)(b >> 16));
        return low | high << 16;
    }
};
template <class Op> Run pair(const Form &form) {
    if (form.type() == ptx::Type::s16x2) return map<Pair<Op, int16_t>, uint32_t, uint32_t, uint32_t>;
    return map<Pair<Op, uint16_t>, uint32_t, uint32_t, uint32_t>;
}

// Products of the elements of `a` with bytes of `b`: all four bytes, or 16-bit elements with the two bytes from FIRST.
template <class A, class B, int ELEMENT_BITS, int FIRST> struct DotProduct {
    static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        for (int i = 0; i < 32 / ELEMENT_BITS; i++)
            c += (uint32_t)((int32_t)(A)(a >> ELEMENT_BITS * i) * (int32_t)(B)(b >> 8 * (FIRST + i)));
        return c;
    }
};

template <class SignedA, int ELEMENT_BITS, int FIRST> Run dot_product(const Form &form) {
    const bool signed_a = form.types[0] == ptx::Type::s32, signed_b = form.types[1] == ptx::Type::s32;
    return with_flag(signed_a, [&](auto is_signed_a) -> Run {
        return with_flag(signed_b, [](auto is_signed_b) -> Run {
            using A = std::conditional_t<decltype(is_signed_a)::value, SignedA, std::make_unsigned_t<SignedA>>;
            using B = std::conditional_t<decltype(is_signed_b)::value, int8_t, uint8_t>;
            return map<DotProduct<A, B, ELEMENT_BITS, FIRST>, uint32_t, uint32_t, uint32_t, uint32_t>;
        });
    });
}

// Of the unsigned numbers of BITS bits in two registers: each difference, or all of them added to `c`.
template <int BITS, bool IS_SUM> struct Distances {
    static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        const uint32_t mask = (1u << BITS) - 1;
        uint32_t sum = c, each = 0;
        for (int i = 0; i < 32; i += BITS) {
            const uint32_t x = a >> i & mask, y = b >> i & mask, distance = x < y ? y - x : x - y;
            sum += distance;
            each |= distance << i;
        }
        return IS_SUM ? sum : each;
    }
};

template <int BITS> Run distances(const Form &form) {
    if (form.has("add")) return map<Distances<BITS, true>, uint32_t, uint32_t, uint32_t, uint32_t>;
    return map<Distances<BITS, false>, uint32_t, uint32_t, uint32_t, uint32_t>;
}

template <class Op> Run divide(const Form &form) {
    return with_integer(form.type(), [](auto t) -> Run { return map_each<Op, decltype(t), decltype(t), decltype(t)>; });
}

Run mul_wide(const Form &form) {
    return with_integer<2, 4>(form.type(),
                              [](auto t) -> Run { return map<MulWide, Wide<decltype(t)>, decltype(t), decltype(t)>; });
}
Run mad_wide(const Form &form) {
    return with_integer<2, 4>(form.type(), [](auto t) -> Run {
        return map<MadWide, Wide<decltype(t)>, decltype(t), decltype(t), Wide<decltype(t)>>;
    });
}

template <class Op> constexpr Run S32_2 = map<Op, int32_t, int32_t, int32_t>;
template <class Op> constexpr Run S32_3 = map<Op, int32_t, int32_t, int32_t, int32_t>;

#define ALL "u16|u32|u64|s16|s32|s64"

const Row rows[] = {
    {"add", ALL, "t t t", integer2<Add>},
    {"add", "sat s32", "t t t", only<S32_2<AddSaturate>>},
    {"add", "u16x2|s16x2", "t t t", pair<Add>},
    {"sub", ALL, "t t t", integer2<Sub>},
    {"sub", "sat s32", "t t t", only<S32_2<SubSaturate>>},
    {"mul", "lo " ALL, "t t t", integer2<MulLow>},
    {"mul", "hi " ALL, "t t t", integer2<MulHigh>},
    {"mul", "wide u16|u32|s16|s32", "w t t", mul_wide},
    {"mad", "lo " ALL, "t t t t", integer3<MadLow>},
    {"mad", "hi " ALL, "t t t t", integer3<MadHigh>},
    {"mad", "hi sat s32", "t t t t", only<S32_3<MadHighSaturate>>},
    {"mad", "wide u16|u32|s16|s32", "w t t w", mad_wide},
    {"mul24", "lo u32|s32", "t t t", integer2<Mul24Low, 4, 4>},
    {"mul24", "hi u32|s32", "t t t", integer2<Mul24High, 4, 4>},
    {"mad24", "lo u32|s32", "t t t t", integer3<Mad24Low, 4, 4>},
    {"mad24", "hi u32|s32", "t t t t", integer3<Mad24High, 4, 4>},
    {"mad24", "hi sat s32", "t t t t", only<S32_3<Mad24HighSaturate>>},
    {"div", ALL, "t t t", divide<Div>},
    {"rem", ALL, "t t t", divide<Rem>},
    {"min", ALL, "t t t", integer2<Min>},
    {"min", "relu s32", "t t t", only<S32_2<Relu<Min>>>},
    {"min", "u16x2|s16x2", "t t t", pair<Min>},
    {"min", "relu s16x2", "t t t", pair<Relu<Min>>},
    {"max", ALL, "t t t", integer2<Max>},
    {"max", "relu s32", "t t t", only<S32_2<Relu<Max>>>},
    {"max", "u16x2|s16x2", "t t t", pair<Max>},
    {"max", "relu s16x2", "t t t", pair<Relu<Max>>},
    {"abs", "s16|s32|s64", "t t", integer1<Abs>},
    {"neg", "s16|s32|s64", "t t", integer1<Neg>},
    {"sad", ALL, "t t t t", integer3<Sad>},
    {"vabsdiff2", "u32 u32 u32 add?", "t t t t", distances<16>},
    {"vabsdiff4", "u32 u32 u32 add?", "t t t t", distances<8>},
    {"dp4a", "u32|s32 u32|s32", "b32 t1 t2 b32", dot_product<int8_t, 8, 0>},
    {"dp2a", "lo u32|s32 u32|s32", "b32 t1 t2 b32", dot_product<int16_t, 16, 0>},
    {"dp2a", "hi u32|s32 u32|s32", "b32 t1 t2 b32", dot_product<int16_t, 16, 2>},
};

} // namespace

extern const Rows integer_rows;
const Rows integer_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
