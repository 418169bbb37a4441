// cvt: conversions between numbers.
//
// Integers become other integers or f32 and f64 in one pass over the lanes, as f32 becomes integers of 32 bits. The
// others take three: load as f64, which holds every f16, bf16 and f32 exactly; change (round to an integer, clamp);
// store, which rounds once. There are many combinations of the passes, so these stay functions of their own.
#include "tests/vgpu/exec/ops_float.h"
#include "tests/vgpu/exec/ops_wide.h"

namespace vgpu::VGPU_ISA {
namespace {

template <class T> constexpr T LEAST = std::is_signed_v<T> ? (T)(T{1} << (8 * sizeof(T) - 1)) : T{0};
template <class T> constexpr T GREATEST = (T)~LEAST<T>;

// d = Op::run(a), where registers may be wider than their types. As wide as they: in one pass without copies.
template <class Op, class D, class S> void convert(Warp &warp, const Instr &in, Mask active) {
    if (in.width[0] == sizeof(D) && in.width[1] == sizeof(S)) {
        map<Op, D, S>(warp, in, active);
        return;
    }
    alignas(64) S source[LANES];
    alignas(64) D result[LANES];
    load_low_bits(warp, in, 1, source);
    map_lanes<Op>(ALL_LANES, result, source);
    if constexpr (std::is_floating_point_v<D>) {
        alignas(64) std::conditional_t<sizeof(D) == 4, uint32_t, uint64_t> bits[LANES];
        __builtin_memcpy(bits, result, sizeof bits);
        store_extended(warp, in, 0, bits, active);
    } else {
        store_extended(warp, in, 0, result, active);
    }
}

// ---- integers to integers ------------------------------------------------------------------------------------------

template <class D> struct Truncate {
    template <class S> static D run(S a) { return (D)a; }
};
template <class D> struct Clamp {
    template <class S> static D run(S a) {
        if (a < 0) {
            if (!std::is_signed_v<D>) return 0;
            return (int64_t)a < (int64_t)LEAST<D> ? LEAST<D> : (D)a;
        }
        return (uint64_t)a > (uint64_t)GREATEST<D> ? GREATEST<D> : (D)a;
    }
};

// .sat has to have an effect.
Run between_integers(const Form &form) {
    if (!are_wide_enough(form)) return nullptr;
    return with_integer<1>(form.types[0], [&](auto d) {
        return with_integer<1>(form.types[1], [&](auto s) -> Run {
            using D = decltype(d);
            using S = decltype(s);
            constexpr bool HOLDS_ALL = std::is_signed_v<D> == std::is_signed_v<S>
                                           ? sizeof(D) >= sizeof(S)
                                           : std::is_signed_v<D> && sizeof(D) > sizeof(S);
            if constexpr (!HOLDS_ALL)
                if (form.has("sat")) return convert<Clamp<D>, D, S>;
            return form.has("sat") ? nullptr : convert<Truncate<D>, D, S>;
        });
    });
}

// ---- integers to f32 and f64 ---------------------------------------------------------------------------------------

// The CPU rounds. Zero is set apart: some ways to convert unsigned numbers give -0 when rounding down.
template <class D, bool SATURATES> struct FromInteger {
    template <class S> static D run(S a) {
        const D converted = a == 0 ? D{0} : (D)a;
        return SATURATES ? saturate(converted) : converted;
    }
};
template <class D> Run integer_to(const Form &form) {
    if (!are_wide_enough(form)) return nullptr;
    return with_integer<1>(form.types[1], [&](auto s) -> Run {
        using S = decltype(s);
        return form.has("sat") ? with_rounding<convert<FromInteger<D, true>, D, S>>(form)
                               : with_rounding<convert<FromInteger<D, false>, D, S>>(form);
    });
}

// ---- first pass: load ----------------------------------------------------------------------------------------------

using Load = void (*)(const Warp &warp, const Instr &in, double *to);

template <bool FTZ> struct WidenF32 {
    static double run(uint32_t bits) { return (double)flush<FTZ>(bits_as<float>(bits)); }
};
struct WidenF64 {
    static double run(uint64_t bits) { return bits_as<double>(bits); }
};
// Integers of more than 53 bits lose the lowest ones, but for one that says whether they were zeros: enough to round to
// a narrow format.
struct WidenInteger {
    template <class S> static double run(S a) {
        constexpr S LOST = sizeof(S) == 8 ? (S)0xfff : S{0};
        const S sticky = (S)((a & LOST) != 0 ? LOST & (S) ~(LOST >> 1) : 0);
        const bool is_long = sizeof(S) == 8 && (a > (S)(GREATEST<S> >> 12) || a < (S)(LEAST<S> >> 12));
        return (double)(is_long ? (S)((a & (S)~LOST) | sticky) : a);
    }
};

template <class Op, class S> [[gnu::noinline]] void load(const Warp &warp, const Instr &in, double *to) {
    alignas(64) S source[LANES];
    load_low_bits(warp, in, 1, source);
    map_lanes<Op>(ALL_LANES, to, source);
}

template <class Format> [[gnu::noinline]] void load_halves(const Warp &warp, const Instr &in, double *to) {
    alignas(64) uint16_t source[LANES];
    alignas(64) float numbers[LANES];
    load_low_bits(warp, in, 1, source);
    decode_halves<Format>(source, numbers, LANES);
    for (int l = 0; l < LANES; l++)
        to[l] = (double)numbers[l];
}

template <Load LOAD, bool F64 = false> struct Loading {
    static constexpr Load FUNCTION = LOAD;
    static constexpr bool IS_F64 = F64;
};

// Calls pick with the Loading of the form's source.
template <class F> Run with_load(const Form &form, F &&pick) {
    switch (form.types[1]) {
    case ptx::Type::f16:
        return pick(Loading<load_halves<F16>>{});
    case ptx::Type::bf16:
        return pick(Loading<load_halves<BF16>>{});
    case ptx::Type::f32:
        if (form.has("ftz")) return pick(Loading<load<WidenF32<true>, uint32_t>>{});
        return pick(Loading<load<WidenF32<false>, uint32_t>>{});
    default:
        return pick(Loading<load<WidenF64, uint64_t>, true>{});
    }
}
template <class F> Run with_integer_load(const Form &form, F &&pick) {
    return with_integer<1>(form.types[1],
                           [&](auto s) -> Run { return pick(Loading<load<WidenInteger, decltype(s)>>{}); });
}

// ---- second pass: change -------------------------------------------------------------------------------------------

using Change = void (*)(double *lanes);

struct Keep {
    template <class T> static T run(T a) { return a; }
};
struct NearestInteger { // ties to even, the CPU's mode
    static double run(double a) { return __builtin_rint(a); }
    static float run(float a) { return __builtin_rintf(a); }
};
struct TruncateToInteger {
    static double run(double a) { return __builtin_trunc(a); }
    static float run(float a) { return __builtin_truncf(a); }
};
struct Floor {
    static double run(double a) { return __builtin_floor(a); }
    static float run(float a) { return __builtin_floorf(a); }
};
struct Ceiling {
    static double run(double a) { return __builtin_ceil(a); }
    static float run(float a) { return __builtin_ceilf(a); }
};

template <class Integral, class Limit> [[gnu::noinline]] void change(double *lanes) {
    for (int l = 0; l < LANES; l++)
        lanes[l] = Limit::run(Integral::run(lanes[l]));
}

template <Change CHANGE> struct Changing { static constexpr Change FUNCTION = CHANGE; };

template <class Integral, class F> Run with_limit(const Form &form, F &&pick) {
    if (form.has("sat")) return pick(Changing<change<Integral, Saturate>>{});
    if (form.has("relu")) return pick(Changing<change<Integral, Rectify>>{});
    return pick(Changing<change<Integral, Keep>>{});
}
template <class F> Run with_integral(const Form &form, F &&pick) {
    if (form.has("rni")) return pick(NearestInteger{});
    if (form.has("rzi")) return pick(TruncateToInteger{});
    if (form.has("rmi")) return pick(Floor{});
    if (form.has("rpi")) return pick(Ceiling{});
    return pick(Keep{});
}

// ---- third pass: store ---------------------------------------------------------------------------------------------

using Store = void (*)(Warp &warp, const Instr &in, Mask active, const double *from);

template <Rounding ROUNDING, bool FTZ> struct NarrowF32 {
    static uint32_t run(double a) {
        const float nearest = canonical((float)a);
        const uint32_t bits =
            ROUNDING == Rounding::nearest_even ? bits_as<uint32_t>(nearest) : (uint32_t)encode<F32, ROUNDING>(a);
        return bits_as<uint32_t>(flush<FTZ>(bits_as<float>(bits)));
    }
};
struct NarrowF64 {
    static uint64_t run(double a) { return bits_as<uint64_t>(a); }
};
template <class Format, Rounding ROUNDING, bool SATURATE_FINITE> struct NarrowHalf {
    static uint16_t run(double a) { return (uint16_t)encode<Format, ROUNDING, SATURATE_FINITE>(a); }
};
// Numbers out of range are clamped. NaN gives 0, but the highest bit alone where the integer has 64 bits or NaN had.
template <class D, bool FROM_F64> struct NarrowInteger {
    template <class T> static D run(T a) {
        constexpr T LOW = (T)LEAST<D>, BEYOND = 2 * (T)(GREATEST<D> / 2 + 1);
        constexpr D OF_NAN = sizeof(D) == 8 || FROM_F64 ? (D)(D{1} << (8 * sizeof(D) - 1)) : D{0};
        const T least = a > LOW ? a : LOW;
        const D inside = (D)(least < BEYOND ? least : 0), clamped = a < BEYOND ? inside : GREATEST<D>;
        return a == a ? clamped : OF_NAN;
    }
};

template <class Op, class D>
[[gnu::noinline]] void store(Warp &warp, const Instr &in, Mask active, const double *from) {
    alignas(64) D result[LANES];
    map_lanes<Op>(ALL_LANES, result, from);
    store_extended(warp, in, 0, result, active);
}

template <Store STORE> struct Storing { static constexpr Store FUNCTION = STORE; };

template <class F> Run with_rounding_mode(const Form &form, F &&pick) {
    if (form.has("rz")) return pick(std::integral_constant<Rounding, Rounding::toward_zero>{});
    if (form.has("rm")) return pick(std::integral_constant<Rounding, Rounding::down>{});
    if (form.has("rp")) return pick(std::integral_constant<Rounding, Rounding::up>{});
    return pick(std::integral_constant<Rounding, Rounding::nearest_even>{});
}

// Calls pick with the Storing of the form's result, a floating-point number.
template <class Format, class F> Run with_half_store(const Form &form, F &&pick) {
    return with_rounding_mode(form, [&](auto mode) -> Run {
        return with_flag(form.has("satfinite"), [&](auto satfinite) -> Run {
            using Narrow = NarrowHalf<Format, decltype(mode)::value, decltype(satfinite)::value>;
            return pick(Storing<store<Narrow, uint16_t>>{});
        });
    });
}
template <class F> Run with_store(const Form &form, F &&pick) {
    switch (form.types[0]) {
    case ptx::Type::f16:
        return with_half_store<F16>(form, pick);
    case ptx::Type::bf16:
        return with_half_store<BF16>(form, pick);
    case ptx::Type::f32:
        return with_rounding_mode(form, [&](auto mode) -> Run {
            return with_flag(form.has("ftz"), [&](auto ftz) -> Run {
                return pick(Storing<store<NarrowF32<decltype(mode)::value, decltype(ftz)::value>, uint32_t>>{});
            });
        });
    default:
        return pick(Storing<store<NarrowF64, uint64_t>>{});
    }
}

// ---- the three of them ---------------------------------------------------------------------------------------------

template <Load LOAD, Change CHANGE, Store STORE> void three_passes(Warp &warp, const Instr &in, Mask active) {
    alignas(64) double lanes[LANES];
    LOAD(warp, in, lanes);
    if (CHANGE != change<Keep, Keep>) CHANGE(lanes);
    STORE(warp, in, active, lanes);
}

#ifdef VGPU_F16C
void nearest_f16(Warp &warp, const Instr &in, Mask active) {
    alignas(64) uint32_t source[LANES];
    alignas(64) float numbers[LANES];
    alignas(64) uint16_t result[LANES];
    load_low_bits(warp, in, 1, source);
    for (int l = 0; l < LANES; l++)
        numbers[l] = canonical(bits_as<float>(source[l])); // f32's and f16's are alike
    encode_f16(numbers, result, LANES);
    store_extended(warp, in, 0, result, active);
}
#endif

// Of one format to another.
Run between_formats(const Form &form) {
    if (!are_wide_enough(form)) return nullptr;
#ifdef VGPU_F16C
    const bool is_plain = form.words.size() == 1 && form.has("rn");
    if (is_plain && form.types[0] == ptx::Type::f16 && form.types[1] == ptx::Type::f32) return nearest_f16;
#endif
    return with_load(form, [&](auto loading) {
        return with_limit<Keep>(form, [&](auto changing) {
            return with_store(form, [&](auto storing) -> Run {
                return three_passes<decltype(loading)::FUNCTION, decltype(changing)::FUNCTION,
                                    decltype(storing)::FUNCTION>;
            });
        });
    });
}

// Within one format, whose numbers may be rounded to integers.
template <Load LOAD, Store STORE> Run within_format(const Form &form) {
    if (!are_wide_enough(form)) return nullptr;
    return with_integral(form, [&](auto integral) {
        return with_limit<decltype(integral)>(
            form, [](auto changing) -> Run { return three_passes<LOAD, decltype(changing)::FUNCTION, STORE>; });
    });
}
template <bool FTZ>
constexpr auto WITHIN_F32 =
    within_format<load<WidenF32<FTZ>, uint32_t>, store<NarrowF32<Rounding::nearest_even, FTZ>, uint32_t>>;
template <class Format>
constexpr auto WITHIN_HALF =
    within_format<load_halves<Format>, store<NarrowHalf<Format, Rounding::nearest_even, false>, uint16_t>>;
constexpr auto WITHIN_F64 = within_format<load<WidenF64, uint64_t>, store<NarrowF64, uint64_t>>;

// f32 to integers of 32 bits are so frequent that they have one pass of their own.
template <class Integral, class D, bool FTZ> struct FromF32 {
    static D run(uint32_t bits) {
        return NarrowInteger<D, false>::run(Integral::run(flush<FTZ>(bits_as<float>(bits))));
    }
};
Run f32_to_word(const Form &form) {
    return with_integral(form, [&](auto integral) {
        return with_flag(form.has("ftz"), [&](auto ftz) {
            return with_integer<4, 4>(form.types[0], [](auto d) -> Run {
                using D = decltype(d);
                return convert<FromF32<decltype(integral), D, decltype(ftz)::value>, D, uint32_t>;
            });
        });
    });
}

// .sat has no effect: numbers out of range are clamped anyway.
Run to_integer(const Form &form) {
    if (!are_wide_enough(form)) return nullptr;
    if (form.types[1] == ptx::Type::f32 && ptx::type_bytes(form.types[0]) == 4) return f32_to_word(form);
    return with_load(form, [&](auto loading) {
        return with_integral(form, [&](auto integral) {
            return with_integer<1>(form.types[0], [](auto d) -> Run {
                using D = decltype(d);
                using Loading = decltype(loading);
                return three_passes<Loading::FUNCTION, change<decltype(integral), Keep>,
                                    store<NarrowInteger<D, Loading::IS_F64>, D>>;
            });
        });
    });
}

template <class Format> Run integer_to_half(const Form &form) {
    if (!are_wide_enough(form)) return nullptr;
    return with_integer_load(form, [&](auto loading) {
        return with_limit<Keep>(form, [&](auto changing) {
            return with_half_store<Format>(form, [](auto storing) -> Run {
                return three_passes<decltype(loading)::FUNCTION, decltype(changing)::FUNCTION,
                                    decltype(storing)::FUNCTION>;
            });
        });
    });
}

#define INTEGER    "u8|u16|u32|u64|s8|s16|s32|s64"
#define ROUNDING   "rn|rz|rm|rp"
#define TO_INTEGER "rni|rzi|rmi|rpi"

const Row rows[] = {
    {"cvt", "sat? " INTEGER " " INTEGER, "x x", between_integers},
    {"cvt", ROUNDING " ftz? sat? f32 " INTEGER, "x x", integer_to<float>},
    {"cvt", ROUNDING " sat? f64 " INTEGER, "x x", integer_to<double>},
    {"cvt", ROUNDING " sat? f16 " INTEGER, "x x", integer_to_half<F16>},
    {"cvt", ROUNDING " bf16 " INTEGER, "x x", integer_to_half<BF16>},
    {"cvt", TO_INTEGER " ftz? sat? " INTEGER " f32", "x x", to_integer},
    {"cvt", TO_INTEGER " sat? " INTEGER " f64|f16", "x x", to_integer},
    {"cvt", TO_INTEGER " " INTEGER " bf16", "x x", to_integer},
    {"cvt", TO_INTEGER "? sat? f32 f32", "x x", WITHIN_F32<false>},
    {"cvt", TO_INTEGER "? ftz sat? f32 f32", "x x", WITHIN_F32<true>},
    {"cvt", TO_INTEGER "? sat? f64 f64", "x x", WITHIN_F64},
    {"cvt", TO_INTEGER "? sat? f16 f16", "x x", WITHIN_HALF<F16>},
    {"cvt", TO_INTEGER "? bf16 bf16", "x x", WITHIN_HALF<BF16>},
    {"cvt", "ftz? sat? f64 f32", "x x", between_formats},
    {"cvt", "ftz? sat? f32 f16", "x x", between_formats},
    {"cvt", ROUNDING "? ftz? f32 bf16", "x x", between_formats},
    {"cvt", "sat? f64 f16", "x x", between_formats},
    {"cvt", ROUNDING "? f64 bf16", "x x", between_formats},
    {"cvt", ROUNDING " ftz? sat? f32 f64", "x x", between_formats},
    {"cvt", ROUNDING " ftz? sat? f16 f32", "x x", between_formats},
    {"cvt", ROUNDING " sat? f16 f64", "x x", between_formats},
    {"cvt", ROUNDING " f16 bf16", "x x", between_formats},
    {"cvt", ROUNDING " ftz? bf16 f32", "x x", between_formats},
    {"cvt", ROUNDING " bf16 f64", "x x", between_formats},
    {"cvt", ROUNDING "? bf16 f16", "x x", between_formats},
    {"cvt", "rn|rz relu? satfinite? f16|bf16 f32", "x x", between_formats},
};

} // namespace

extern const Rows convert_rows;
const Rows convert_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
