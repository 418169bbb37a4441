// The error of every function of sim_math.h against double precision, as its comment states it, and the same bits from
// every way of compiling it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "math_loops.h"
#include "sim/sim_rng.h"

namespace {

const float inf = std::numeric_limits<float>::infinity();

// |got - want| in units in the last place of want, as a float; subnormals count as multiples of 2^-149.
double ulp_error(float got, double want) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0.0 : 1e9;
    float rounded = static_cast<float>(want);
    if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0.0 : 1e9;
    int exponent;
    std::frexp(std::fmax(std::fabs(want), 0x1p-126), &exponent);
    return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 24);
}

// Floats spread over all bit patterns, including zeros, infinities, NaNs and subnormals, and dense ones where it
// counts.
template <typename Visit> void visit_floats(Visit visit) {
    for (uint64_t bits = 0; bits < 0x100000000u; bits += 1009)
        visit(sim_float_from_bits(static_cast<uint32_t>(bits)));
    for (uint32_t i = 0; i < 200000; i++) {
        SimWords4 w = sim_philox(i, 0, 0, 0, 3, 4);
        visit(sim_float_from_bits(w.x0));
        visit(20.0f * (sim_uniform_from(w.x1) - 0.5f));
        visit(8192.0f * (sim_uniform_from(w.x2) - 0.5f));
        visit(2.0f * sim_uniform_from(w.x3));
    }
    for (int k = -2700; k <= 2700; k++) { // around the multiples of pi/2
        float x = static_cast<float>(k * 1.5707963267948966);
        for (int step = 0; step < 3; step++, x = std::nextafter(x, inf))
            visit(x);
    }
    // the worst of all floats for sin, cos, exp (twice), log and tanh
    for (float x : {0x1.bd5a2p+11f, 0x1.ef75c2p+9f, 0x1.da72c4p+5f, -0x1.76da64p+2f, 0x1.58463p+1f, 0x1.470ad2p+1f})
        visit(x);
    for (float x : {0.0f, -0.0f, inf, -inf, std::nanf(""), 1.0f, -1.0f, 4096.0f, -4096.0f, 0x1p22f, 0x1p-149f,
                    0x1p-126f, 88.72283f, 88.72284f, -87.33655f, -103.97208f, -104.0f, 3.4028235e38f})
        visit(x);
}

struct Worst {
    double error = 0;
    float at = 0;
    void see(double e, float x) {
        if (e > error) error = e, at = x;
    }
    void expect_within(const char *name, double bound) const {
        std::printf("%-8s %.3f ulp at %a\n", name, error, static_cast<double>(at));
        EXPECT_LE(error, bound) << name << " at " << at;
    }
};

double as_double(float x) { return static_cast<double>(x); }

TEST(MathTest, SineAndCosineStayWithinTheStatedError) {
    Worst sine, cosine, large;
    visit_floats([&](float x) {
        SimSinCosf a = sim_sincosf(x);
        if (std::fabs(x) <= 4096) {
            sine.see(ulp_error(a.sin, std::sin(as_double(x))), x);
            cosine.see(ulp_error(a.cos, std::cos(as_double(x))), x);
        } else if (std::fabs(x) <= 0x1p22f) {
            large.see(std::fabs(as_double(a.sin) - std::sin(as_double(x))), x);
            large.see(std::fabs(as_double(a.cos) - std::cos(as_double(x))), x);
        } else {
            EXPECT_TRUE(std::isnan(a.sin) && std::isnan(a.cos)) << x;
        }
        SimSinCosf mirrored = sim_sincosf(-x);
        if (!std::isnan(a.sin)) {
            EXPECT_EQ(mirrored.sin, -a.sin) << x;
            EXPECT_EQ(mirrored.cos, a.cos) << x;
        }
    });
    sine.expect_within("sin", 1.53);
    cosine.expect_within("cos", 1.53);
    EXPECT_LE(large.error, 3e-7);
}

TEST(MathTest, ExponentialStaysWithinTheStatedError) {
    Worst worst;
    visit_floats([&](float x) { worst.see(ulp_error(sim_expf(x), std::exp(as_double(x))), x); });
    worst.expect_within("exp", 1.02);
    EXPECT_EQ(sim_expf(inf), inf);
    EXPECT_EQ(sim_expf(-inf), 0.0f);
    EXPECT_EQ(sim_expf(0.0f), 1.0f);
}

TEST(MathTest, LogarithmStaysWithinTheStatedError) {
    Worst worst;
    visit_floats([&](float x) { worst.see(ulp_error(sim_logf(x), std::log(as_double(x))), x); });
    worst.expect_within("log", 1.0);
    EXPECT_EQ(sim_logf(0.0f), -inf);
    EXPECT_EQ(sim_logf(-0.0f), -inf);
    EXPECT_EQ(sim_logf(1.0f), 0.0f);
}

TEST(MathTest, TanhStaysWithinTheStatedError) {
    Worst worst;
    visit_floats([&](float x) {
        float y = sim_tanhf(x);
        worst.see(ulp_error(y, std::tanh(as_double(x))), x);
        if (std::isnan(y)) return;
        EXPECT_LE(std::fabs(y), 1.0f) << x;
        EXPECT_EQ(sim_bits_from_float(sim_tanhf(-x)), sim_bits_from_float(-y)) << x;
    });
    worst.expect_within("tanh", 3.1);
}

TEST(MathTest, Atan2StaysWithinTheStatedError) {
    Worst worst;
    uint32_t i = 0;
    visit_floats([&](float x) {
        SimWords4 w = sim_philox(i++, 0, 0, 0, 5, 6);
        float any = sim_float_from_bits(w.x0), near = x * (0.5f + sim_uniform_from(w.x1));
        worst.see(ulp_error(sim_atan2f(any, x), std::atan2(as_double(any), as_double(x))), x);
        worst.see(ulp_error(sim_atan2f(near, x), std::atan2(as_double(near), as_double(x))), x);
        worst.see(ulp_error(sim_atan2f(x, -near), std::atan2(as_double(x), -as_double(near))), x);
    });
    worst.expect_within("atan2", 2.0);
    for (float y : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf}) {
        for (float x : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf}) {
            float got = sim_atan2f(y, x), want = static_cast<float>(std::atan2(as_double(y), as_double(x)));
            EXPECT_EQ(sim_bits_from_float(got), sim_bits_from_float(want)) << y << " " << x;
        }
    }
}

TEST(MathTest, FloorIsExact) {
    visit_floats([](float x) {
        if (std::isnan(x)) return;
        EXPECT_EQ(sim_floorf(x), std::floor(x)) << x;
    });
}

TEST(MathTest, WrapTurnsByWholeRevolutions) {
    visit_floats([](float x) {
        if (!(std::fabs(x) <= 4096)) return;
        double y = as_double(sim_wrap_pi(x));
        EXPECT_LE(std::fabs(y), as_double(SIM_PI)) << x;
        EXPECT_LE(std::fabs(std::remainder(y - as_double(x), 6.283185307179586)), 3e-7) << x;
    });
}

std::vector<uint32_t> run(MathLoops *loops, const std::vector<float> &x, const std::vector<float> &y) {
    std::vector<uint32_t> out(MATH_LOOP_OUTPUTS * x.size());
    loops(x.data(), y.data(), out.data(), static_cast<int>(x.size()));
    return out;
}

void expect_same(const char *way, MathLoops *loops, const std::vector<float> &x, const std::vector<float> &y,
                 const std::vector<uint32_t> &want) {
    std::vector<uint32_t> got = run(loops, x, y);
    for (size_t i = 0; i < got.size(); i++) {
        ASSERT_EQ(got[i], want[i]) << way << ", function " << i / x.size() << " of x = " << x[i % x.size()]
                                   << ", y = " << y[i % x.size()];
    }
}

TEST(MathTest, EveryWayOfCompilingGivesTheSameBits) {
    std::vector<float> x, y;
    uint32_t count = 0;
    visit_floats([&](float v) {
        SimWords4 w = sim_philox(count++, 1, 0, 0, 9, 9);
        if (w.x1 % 8 != 0 && std::fabs(v) > 200) return;
        x.push_back(v);
        y.push_back(sim_float_from_bits(w.x0));
    });
    std::vector<uint32_t> want = run(math_loops_o0, x, y);
    expect_same("-O3", math_loops_o3, x, y, want);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        expect_same("x86-64-v3", math_loops_v3, x, y, want);
    }
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        expect_same("x86-64-v4", math_loops_v4, x, y, want);
    }
#endif
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t word : want)
        hash = (hash ^ word) * 0x100000001b3u;
    EXPECT_EQ(hash, 0x1d847018eb2c340au) << std::hex << hash;
}

} // namespace
