// The floating-point operations: rounding against the sign of the nearest result's error, which is computed exactly;
// special values against tables; f16 and bf16 against exact integers.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/vgpu/exec/ops_test.h"

namespace vgpu {
namespace {

__extension__ using Int128 = __int128;

class FloatOps : public Ops {
  protected:
    // The bits of what `opcode` gives for operands of type T.
    template <class T, class Bits> Bits result(const std::string &opcode, std::vector<T> operands) {
        for (size_t i = 0; i < operands.size(); i++)
            set<T>((int)i + 1, operands[i]);
        execute(opcode, std::vector<int>(operands.size() + 1, (int)sizeof(T)));
        return lanes<Bits>(0)[7];
    }
    uint32_t f32(const std::string &opcode, std::vector<float> operands) {
        return result<float, uint32_t>(opcode, std::move(operands));
    }
    uint64_t f64(const std::string &opcode, std::vector<double> operands) {
        return result<double, uint64_t>(opcode, std::move(operands));
    }
    template <class D, class S> D convert(const std::string &opcode, S source) {
        set<S>(1, source);
        execute(opcode, {(int)sizeof(D), (int)sizeof(S)});
        return lanes<D>(0)[7];
    }
    // A number with random digits, between 2^-range and 2^range.
    template <class T> T number(int range) {
        const T digits = 1 + std::ldexp((T)(random_() >> 12), -52), sign = random_() & 1 ? T{1} : T{-1};
        return sign * std::ldexp(digits, (int)(random_() % (unsigned)(2 * range)) - range);
    }
};

INSTANTIATE_TEST_SUITE_P(Isa, FloatOps, testing::Values("baseline", "v3", "v4"),
                         [](const auto &tested) { return std::string(tested.param); });

float bits_f32(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
uint32_t f32_bits(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

// What `mode` makes of a number whose nearest neighbour is `nearest` and which exceeds that by `error`, or its sign.
template <class T, class E> T rounded(const std::string &mode, T nearest, E error) {
    const T infinity = std::numeric_limits<T>::infinity();
    const bool is_up = mode == "rp" || (mode == "rz" && nearest < 0),
               is_down = mode == "rm" || (mode == "rz" && nearest > 0);
    if (error > 0 && is_up) return std::nextafter(nearest, infinity);
    return error < 0 && is_down ? std::nextafter(nearest, -infinity) : nearest;
}

template <class T> struct Sample {
    const char *name;
    int operands;
    T nearest;
    long double error;
};

TEST_P(FloatOps, RoundInEveryMode) {
    const auto check = [&](auto t, const std::string &type) {
        using T = decltype(t);
        for (int i = 0; i < 2000; i++) {
            const T a = number<T>(8), b = number<T>(8), root = std::sqrt(std::abs(a));
            const T sum = a + b, added = sum - a, quotient = a / b, product = a * b, inverse = 1 / a;
            const Sample<T> samples[] = {
                {"add", 2, sum, (long double)(a - (sum - added)) + (b - added)},
                {"mul", 2, product, std::fma(a, b, -product)},
                {"div", 2, quotient, std::fma(-quotient, b, a) * b},
                {"rcp", 1, inverse, std::fma(-inverse, a, T{1}) * a},
                {"sqrt", 1, root, std::fma(-root, root, std::abs(a))},
            };
            for (const char *mode : {"rn", "rz", "rm", "rp"}) {
                for (const Sample<T> &sample : samples) {
                    set<T>(1, *sample.name == 's' ? std::abs(a) : a), set<T>(2, b);
                    const std::string opcode = std::string(sample.name) + "." + mode + "." + type;
                    execute(opcode, std::vector<int>((size_t)sample.operands + 1, sizeof(T)));
                    ASSERT_EQ(lanes<T>(0)[31], rounded(mode, sample.nearest, sample.error))
                        << opcode << " of " << a << ", " << b;
                }
                if (sizeof(T) == 4) { // exact in long double: 48 bits and the distance of the exponents
                    const float x = (float)number<float>(4), y = (float)number<float>(4), z = (float)number<float>(4);
                    const long double exact = (long double)x * y + z;
                    const float nearest = (float)exact;
                    const std::string opcode = std::string("fma.") + mode + ".f32";
                    ASSERT_EQ(bits_f32(f32(opcode, {x, y, z})), rounded(mode, nearest, exact - nearest))
                        << opcode << " of " << x << ", " << y << ", " << z;
                }
            }
        }
    };
    check(float{}, "f32");
    check(double{}, "f64");
}

constexpr uint32_t NAN_F32 = 0x7fffffff;

TEST_P(FloatOps, SpecialValues) {
    const float infinity = HUGE_VALF, nan = bits_f32(0xffc12345), tiny = 0x1p-140f;
    EXPECT_EQ(f32("add.f32", {infinity, -infinity}), NAN_F32);
    EXPECT_EQ(f32("mul.f32", {nan, 1}), NAN_F32) << "the canonical NaN";
    EXPECT_EQ(f32("add.sat.f32", {nan, 1}), 0U);
    EXPECT_EQ(f32("mul.sat.f32", {-3, 1}), 0U);
    EXPECT_EQ(bits_f32(f32("mul.sat.f32", {3, 1})), 1);
    EXPECT_EQ(bits_f32(f32("add.f32", {tiny, tiny})), 2 * tiny);
    EXPECT_EQ(f32("add.ftz.f32", {-tiny, -tiny}), 0x80000000);
    EXPECT_EQ(f32("mul.ftz.f32", {0x1p-100f, -0x1p-30f}), 0x80000000) << "a subnormal result";
    EXPECT_EQ(f32("add.rm.f32", {1, -1}), 0x80000000) << "an exact zero, rounding down";
    EXPECT_EQ(f32("neg.f32", {nan}), 0x7fc12345U) << "the sign alone changes";
    EXPECT_EQ(f32("min.f32", {nan, 2}), f32_bits(2));
    EXPECT_EQ(f32("min.f32", {nan, nan}), NAN_F32);
    EXPECT_EQ(f32("min.NaN.f32", {nan, 2}), NAN_F32);
    EXPECT_EQ(f32("min.f32", {0.0f, -0.0f}), 0x80000000);
    EXPECT_EQ(f32("max.f32", {-0.0f, 0.0f}), 0U);
    EXPECT_EQ(bits_f32(f32("max.xorsign.abs.f32", {-3, 2})), -3);
    EXPECT_EQ(bits_f32(f32("copysign.f32", {-3, 2})), -2);
    EXPECT_EQ(f32("sqrt.rn.f32", {-1}), NAN_F32);
    EXPECT_EQ(f32("rsqrt.approx.f32", {-0.0f}), 0xff800000);
    EXPECT_EQ(f32("div.approx.f32", {-1, 0x1.8p126f}), 0x80000000) << "the reciprocal is zero";
    EXPECT_EQ(bits_f32(f32("ex2.approx.f32", {-3})), 0.125f);
    EXPECT_EQ(f32("lg2.approx.ftz.f32", {tiny}), 0xff800000);
    EXPECT_EQ(f64("add.f64", {INFINITY, -INFINITY}), 0xfff8000000000000);
    EXPECT_EQ(f64("rcp.approx.ftz.f64", {4}), 0x3fd0000000000000U);
    for (const auto &[property, holds] : std::vector<std::pair<const char *, bool>>{
             {"testp.subnormal.f32", true}, {"testp.normal.f32", false}, {"testp.finite.f32", true}}) {
        set<float>(1, -tiny);
        execute(property, {0, 4});
        EXPECT_EQ(predicate(0), holds ? ALL_LANES : 0) << property;
    }
}

TEST_P(FloatOps, ComparisonsKnowNan) {
    const float values[] = {-HUGE_VALF, -1, -0.0f, 0, 1, HUGE_VALF, NAN};
    for (const float a : values) {
        for (const float b : values) {
            const bool unordered = std::isnan(a) || std::isnan(b);
            const std::pair<const char *, bool> expected[] = {
                {"eq", !unordered && a == b},
                {"equ", unordered || a == b},
                {"ne", !unordered && a != b},
                {"neu", unordered || a != b},
                {"lt", a < b},
                {"ltu", unordered || a < b},
                {"le", a <= b},
                {"leu", unordered || a <= b},
                {"gt", a > b},
                {"gtu", unordered || a > b},
                {"ge", a >= b},
                {"geu", unordered || a >= b},
                {"num", !unordered},
                {"nan", unordered},
            };
            for (const auto &[name, holds] : expected) {
                set<float>(2, a), set<float>(3, b);
                execute(std::string("setp.") + name + ".f32", {0, 0, 4, 4});
                ASSERT_EQ(predicate(0), holds ? ALL_LANES : 0) << name << " of " << a << ", " << b;
                ASSERT_EQ(predicate(1), holds ? 0 : ALL_LANES) << name << " of " << a << ", " << b;
            }
        }
    }
    set<float>(2, 0x1p-140f), set<float>(3, 0);
    execute("setp.eq.ftz.f32", {0, 0, 4, 4});
    EXPECT_EQ(predicate(0), ALL_LANES);
    set<uint16_t>(1, 0x3c00), set<uint16_t>(2, 0x3800);
    execute("set.gt.u32.f16", {4, 2, 2});
    EXPECT_EQ(lanes<uint32_t>(0)[9], ~0U);
}

TEST_P(FloatOps, ToIntegers) {
    EXPECT_EQ((convert<int32_t, float>("cvt.rni.s32.f32", 2.5f)), 2);
    EXPECT_EQ((convert<int32_t, float>("cvt.rmi.s32.f32", -2.5f)), -3);
    EXPECT_EQ((convert<int32_t, float>("cvt.rpi.s32.f32", -2.5f)), -2);
    EXPECT_EQ((convert<int32_t, double>("cvt.rzi.s32.f64", -1e10)), INT32_MIN);
    EXPECT_EQ((convert<uint32_t, float>("cvt.rzi.u32.f32", -1.0f)), 0U);
    EXPECT_EQ((convert<uint32_t, float>("cvt.rzi.u32.f32", 5e9f)), UINT32_MAX);
    EXPECT_EQ((convert<int32_t, float>("cvt.rzi.s32.f32", NAN)), 0);
    EXPECT_EQ((convert<int64_t, float>("cvt.rzi.s64.f32", NAN)), INT64_MIN);
    EXPECT_EQ((convert<uint64_t, double>("cvt.rzi.u64.f64", NAN)), 0x8000000000000000U);
    EXPECT_EQ((convert<uint64_t, double>("cvt.rzi.u64.f64", 0x1.8p63)), 0xc000000000000000U);
    EXPECT_EQ((convert<uint64_t, double>("cvt.rzi.u64.f64", 0x1p64)), UINT64_MAX);
    EXPECT_EQ((convert<int64_t, double>("cvt.rzi.s64.f64", 0x1p63)), INT64_MAX);
    EXPECT_EQ((convert<uint32_t, float>("cvt.rzi.u8.f32", 300.0f)), 255U) << "in a wider register";
    EXPECT_EQ((convert<int32_t, float>("cvt.rzi.s8.f32", -1e9f)), -128);
    EXPECT_EQ(bits_f32(convert<uint32_t, float>("cvt.rni.f32.f32", -3.5f)), -4);
    EXPECT_EQ((convert<uint32_t, float>("cvt.rzi.f32.f32", -0.5f)), 0x80000000);
    EXPECT_EQ((convert<uint32_t, float>("cvt.sat.f32.f32", NAN)), 0U);
}

// An integer's value in f32 from its exact error.
TEST_P(FloatOps, FromIntegers) {
    for (int i = 0; i < 1000; i++) {
        const uint64_t u = random_() >> random_() % 64;
        const int64_t s = (int64_t)random_() >> random_() % 64;
        const float nearest_u = (float)u, nearest_s = (float)s;
        for (const char *mode : {"rn", "rz", "rm", "rp"}) {
            const std::string name = std::string("cvt.") + mode + ".f32.";
            ASSERT_EQ((convert<float, uint64_t>(name + "u64", u)),
                      rounded(mode, nearest_u, (long double)u - (long double)nearest_u))
                << mode << " of " << u;
            ASSERT_EQ((convert<float, int64_t>(name + "s64", s)),
                      rounded(mode, nearest_s, (long double)s - (long double)nearest_s))
                << mode << " of " << s;
            const double d = number<double>(100);
            ASSERT_EQ((convert<float, double>(name + "f64", d)), rounded(mode, (float)d, (long double)d - (float)d));
        }
    }
    for (const char *type : {"u8", "u16", "u32", "u64", "s32", "s64"})
        EXPECT_EQ((convert<uint32_t, uint64_t>(std::string("cvt.rm.f32.") + type, 0)), 0U) << type << ": not -0";
    EXPECT_EQ((convert<uint16_t, uint64_t>("cvt.rn.bf16.u64", 0x8080000000000001)), 0x5f01) << "just above a tie";
    EXPECT_EQ((convert<uint16_t, int64_t>("cvt.rn.f16.s64", 100000)), 0x7c00);
    EXPECT_EQ((convert<uint16_t, int64_t>("cvt.rz.f16.s64", -100000)), 0xfbff);
}

// ---- f16 and bf16 --------------------------------------------------------------------------------------------------

// An encoding's value without its sign, in units of 2^-unit: an integer.
Int128 magnitude(uint32_t bits, int mantissa, int bias, int unit) {
    const int field = (int)(bits >> mantissa), exponent = std::max(field, 1) - bias - mantissa;
    const Int128 digits = (bits & ((1U << mantissa) - 1)) | (field > 0 ? 1U << mantissa : 0);
    return exponent + unit < 0 ? digits >> -(exponent + unit) : digits << (exponent + unit);
}

// The encoding nearest to a number, found by bisection among those of [low, high].
uint32_t nearest(Int128 number, uint32_t low, uint32_t high, int mantissa, int bias, int unit) {
    const Int128 value = number < 0 ? -number : number;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        (magnitude(middle, mantissa, bias, unit) <= value ? low : high) = middle;
    }
    const Int128 below = value - magnitude(low, mantissa, bias, unit);
    const Int128 above = magnitude(high, mantissa, bias, unit) - value;
    const uint32_t chosen = below < above || (below == above && low % 2 == 0) ? low : high;
    return chosen | (number < 0 ? 0x8000U : 0U);
}

TEST_P(FloatOps, FusedHalvesRoundOnce) {
    const auto check = [&](const char *opcode, int mantissa, int bias, uint32_t least, uint32_t range, uint32_t high) {
        const int unit = 2 * (bias + mantissa - (int)std::max(least >> mantissa, 1U)), spare = 16;
        const auto value = [&](uint32_t bits) {
            const Int128 x = magnitude(bits & 0x7fff, mantissa, bias, unit / 2);
            return bits & 0x8000 ? -x : x;
        };
        for (int i = 0; i < 20000; i++) {
            for (int operand = 1; operand <= 3; operand++)
                for (int l = 0; l < LANES; l++)
                    lanes<uint16_t>(operand)[l] = (uint16_t)((least + random_() % range) | (random_() & 0x8000));
            execute(opcode, {2, 2, 2, 2});
            for (int l = 0; l < LANES; l++) {
                const uint16_t a = lanes<uint16_t>(1)[l], b = lanes<uint16_t>(2)[l], c = lanes<uint16_t>(3)[l];
                const Int128 exact = value(a) * value(b) + value(c) * ((Int128)1 << unit / 2);
                if (exact == 0) continue;
                const Int128 scaled = exact * (1 << spare);
                ASSERT_EQ(lanes<uint16_t>(0)[l], nearest(scaled, 0, high, mantissa, bias, unit + spare))
                    << opcode << std::hex << " of " << a << ", " << b << ", " << c;
            }
        }
    };
    check("fma.rn.f16", 10, 15, 0, 0x7c00, 0x7c00);
    check("fma.rn.bf16", 7, 127, 120 << 7, 14 << 7, 160 << 7);
    // A product that is a tie, and an addend that decides it but is lost in 53 bits.
    EXPECT_EQ((result<uint16_t, uint16_t>("fma.rn.bf16", {0x3f81, 0x3fc0, 0x8d80})), 0x3fc1);
    EXPECT_EQ((result<uint16_t, uint16_t>("fma.rn.bf16", {0x3f83, 0x3fc0, 0x0d80})), 0x3fc5);
}

TEST_P(FloatOps, EveryHalfConvertsBothWays) {
    for (uint32_t first = 0; first < 0x10000; first += LANES) {
        for (uint32_t l = 0; l < LANES; l++)
            lanes<uint16_t>(1)[l] = (uint16_t)(first + l);
        execute("cvt.f32.f16", {4, 2});
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t bits = first + l, digits = bits & 0x7fff;
            const float expected = digits > 0x7c00    ? NAN
                                   : digits == 0x7c00 ? HUGE_VALF
                                                      : std::ldexp((float)magnitude(digits, 10, 15, 24), -24);
            const float x = lanes<float>(0)[l];
            ASSERT_EQ(std::isnan(x), std::isnan(expected)) << bits;
            ASSERT_TRUE(std::isnan(x) || x == (bits & 0x8000 ? -expected : expected)) << bits << " is " << x;
        }
        std::copy_n(lanes<float>(0), LANES, lanes<float>(1));
        execute("cvt.rn.f16.f32", {2, 4});
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t bits = first + l;
            ASSERT_EQ(lanes<uint16_t>(0)[l], (bits & 0x7fff) > 0x7c00 ? 0x7fff : bits);
        }
    }
    // Halfway between two, just above it and beyond the largest.
    EXPECT_EQ((convert<uint16_t, float>("cvt.rn.f16.f32", 0x1.002p0f)), 0x3c00);
    EXPECT_EQ((convert<uint16_t, float>("cvt.rn.f16.f32", 0x1.002002p0f)), 0x3c01);
    EXPECT_EQ((convert<uint16_t, float>("cvt.rp.f16.f32", 0x1.000002p0f)), 0x3c01);
    EXPECT_EQ((convert<uint16_t, float>("cvt.rn.f16.f32", 65520.0f)), 0x7c00);
    EXPECT_EQ((convert<uint16_t, float>("cvt.rz.f16.f32", 65520.0f)), 0x7bff);
    EXPECT_EQ((convert<uint16_t, float>("cvt.rn.satfinite.f16.f32", -HUGE_VALF)), 0xfbff);
    EXPECT_EQ((convert<uint16_t, float>("cvt.rn.relu.bf16.f32", -1.0f)), 0);
    EXPECT_EQ((convert<uint32_t, float>("cvt.rna.tf32.f32", 0x1.002p0f)), f32_bits(0x1.004p0f)) << "away from zero";
    set<float>(1, 1000), set<float>(2, -0.4375f);
    execute("cvt.rn.satfinite.e4m3x2.f32", {2, 4, 4});
    EXPECT_EQ(lanes<uint16_t>(0)[3], 0x7eae);
    set<uint16_t>(1, 0x7eae);
    execute("cvt.rn.f16x2.e4m3x2", {4, 2});
    EXPECT_EQ(lanes<uint32_t>(0)[3], 0x5f00b700U);
}

} // namespace
} // namespace vgpu
