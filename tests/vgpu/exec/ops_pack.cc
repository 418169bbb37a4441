// cvt with two sources, whose results share a register, and from and to the formats of which only pairs are converted;
// tf32, which is an f32 with fewer bits.
#include "tests/vgpu/exec/ops_float.h"

namespace vgpu::VGPU_ISA {
namespace {

// .relu: negative numbers give +0, NaN stays.
template <bool RELU> float rectify(float a) { return RELU && a <= 0 ? 0 : a; }

// ---- f16x2, bf16x2, e4m3x2, e5m2x2 ---------------------------------------------------------------------------------

template <class Format> constexpr int BITS = Format::CANONICAL_NAN > 0xff ? 16 : 8;

template <class T, class Format, Rounding ROUNDING, bool RELU, bool SATURATE_FINITE>
struct Pack { // a is the upper half
    static uint32_t half(float a) {
        return (uint32_t)encode<Format, ROUNDING, SATURATE_FINITE>((double)rectify<RELU>(a));
    }
    static T run(float a, float b) { return (T)(half(a) << BITS<Format> | half(b)); }
    static T run(uint32_t pair) { return run(decode<F16>(pair >> 16), decode<F16>(pair & 0xffff)); }
};

template <class Format> Run pack_halves(const Form &form) {
    return with_flag(form.has("relu"), [&](auto relu) -> Run {
        return with_flag(form.has("satfinite"), [&](auto satfinite) -> Run {
            constexpr bool RELU = decltype(relu)::value, SATFINITE = decltype(satfinite)::value;
            if (form.has("rz"))
                return map<Pack<uint32_t, Format, Rounding::toward_zero, RELU, SATFINITE>, uint32_t, float, float>;
            return map<Pack<uint32_t, Format, Rounding::nearest_even, RELU, SATFINITE>, uint32_t, float, float>;
        });
    });
}
template <class Format, class... A> Run pack_bytes(const Form &form) {
    return with_flag(form.has("relu"), [](auto relu) -> Run {
        using Op = Pack<uint16_t, Format, Rounding::nearest_even, decltype(relu)::value, true>;
        return map<Op, uint16_t, A...>;
    });
}

template <class Format, bool RELU> struct Unpack { // every number of eight bits is one of f16
    static uint32_t half(uint32_t bits) {
        return (uint32_t)encode<F16, Rounding::nearest_even>((double)rectify<RELU>(decode<Format>(bits)));
    }
    static uint32_t run(uint16_t pair) { return half(pair >> 8U) << 16 | half(pair & 0xffU); }
};
template <class Format> Run unpack_bytes(const Form &form) {
    return form.has("relu") ? map<Unpack<Format, true>, uint32_t, uint16_t>
                            : map<Unpack<Format, false>, uint32_t, uint16_t>;
}

// ---- tf32 ----------------------------------------------------------------------------------------------------------

template <Rounding ROUNDING, bool RELU, bool SATURATE_FINITE> struct NarrowTf32 {
    static uint32_t run(float a) {
        const uint32_t bits = (uint32_t)encode<TF32, ROUNDING, SATURATE_FINITE>((double)rectify<RELU>(a));
        return a == a ? bits << 13 : NAN_32;
    }
};
template <Rounding ROUNDING> Run to_tf32(const Form &form) {
    return form.has("relu") ? map<NarrowTf32<ROUNDING, true, false>, uint32_t, float>
                            : map<NarrowTf32<ROUNDING, false, false>, uint32_t, float>;
}
Run to_tf32_away(const Form &form) {
    return form.has("satfinite") ? map<NarrowTf32<Rounding::nearest_away, false, true>, uint32_t, float>
                                 : map<NarrowTf32<Rounding::nearest_away, false, false>, uint32_t, float>;
}

// ---- cvt.pack ------------------------------------------------------------------------------------------------------

template <int32_t LEAST, int32_t GREATEST, int FIELD> struct PackIntegers { // a:b, above them the low bits of c
    static uint32_t field(int32_t a) {
        return (uint32_t)(a < LEAST ? LEAST : a > GREATEST ? GREATEST : a) & ((1U << FIELD) - 1);
    }
    static uint32_t run(int32_t a, int32_t b) { return field(a) << FIELD | field(b); }
    static uint32_t run(int32_t a, int32_t b, uint32_t c) { return run(a, b) | c << 2 * FIELD; }
};
template <int32_t LEAST, int32_t GREATEST>
constexpr Run PACK_16 = map<PackIntegers<LEAST, GREATEST, 16>, uint32_t, int32_t, int32_t>;
template <int32_t LEAST, int32_t GREATEST, int FIELD>
constexpr Run PACK_ABOVE = map<PackIntegers<LEAST, GREATEST, FIELD>, uint32_t, int32_t, int32_t, uint32_t>;

const Row rows[] = {
    {"cvt", "rn|rz relu? satfinite? f16x2 f32", "t1 t2 t2", pack_halves<F16>},
    {"cvt", "rn|rz relu? satfinite? bf16x2 f32", "t1 t2 t2", pack_halves<BF16>},
    {"cvt", "rn satfinite relu? e4m3x2 f32", "t1 t2 t2", pack_bytes<E4M3, float, float>},
    {"cvt", "rn satfinite relu? e5m2x2 f32", "t1 t2 t2", pack_bytes<E5M2, float, float>},
    {"cvt", "rn satfinite relu? e4m3x2 f16x2", "t1 t2", pack_bytes<E4M3, uint32_t>},
    {"cvt", "rn satfinite relu? e5m2x2 f16x2", "t1 t2", pack_bytes<E5M2, uint32_t>},
    {"cvt", "rn relu? f16x2 e4m3x2", "t1 t2", unpack_bytes<E4M3>},
    {"cvt", "rn relu? f16x2 e5m2x2", "t1 t2", unpack_bytes<E5M2>},
    {"cvt", "rn relu? tf32 f32", "t1 t2", to_tf32<Rounding::nearest_even>},
    {"cvt", "rz relu? tf32 f32", "t1 t2", to_tf32<Rounding::toward_zero>},
    {"cvt", "rna satfinite? tf32 f32", "t1 t2", to_tf32_away},
    {"cvt", "pack sat u16 s32", "b32 t2 t2", only<PACK_16<0, UINT16_MAX>>},
    {"cvt", "pack sat s16 s32", "b32 t2 t2", only<PACK_16<INT16_MIN, INT16_MAX>>},
    {"cvt", "pack sat u8 s32 b32", "b32 t2 t2 t3", only<PACK_ABOVE<0, UINT8_MAX, 8>>},
    {"cvt", "pack sat s8 s32 b32", "b32 t2 t2 t3", only<PACK_ABOVE<INT8_MIN, INT8_MAX, 8>>},
    {"cvt", "pack sat u4 s32 b32", "b32 s32 s32 b32", only<PACK_ABOVE<0, 15, 4>>},
    {"cvt", "pack sat s4 s32 b32", "b32 s32 s32 b32", only<PACK_ABOVE<-8, 7, 4>>},
    {"cvt", "pack sat u2 s32 b32", "b32 s32 s32 b32", only<PACK_ABOVE<0, 3, 2>>},
    {"cvt", "pack sat s2 s32 b32", "b32 s32 s32 b32", only<PACK_ABOVE<-2, 1, 2>>},
};

} // namespace

extern const Rows pack_rows;
const Rows pack_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
