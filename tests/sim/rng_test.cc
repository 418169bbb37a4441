// Philox against the published known-answer vectors of Random123 (kat_vectors), and what is drawn from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "sim/sim_rng.h"

namespace {

void expect_words(SimWords4 got, uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3) {
    EXPECT_EQ(got.x0, x0);
    EXPECT_EQ(got.x1, x1);
    EXPECT_EQ(got.x2, x2);
    EXPECT_EQ(got.x3, x3);
}

TEST(PhiloxTest, GivesThePublishedAnswers) {
    expect_words(sim_philox(0, 0, 0, 0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    expect_words(sim_philox(~0u, ~0u, ~0u, ~0u, ~0u, ~0u), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    expect_words(sim_philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0), 0xd16cfe09,
                 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

// Kolmogorov and Smirnov's distance of sorted values, given as their cumulative probabilities, times sqrt(n):
// above 1.95 once in a thousand.
double ks_statistic(std::vector<double> p) {
    std::sort(p.begin(), p.end());
    const double n = static_cast<double>(p.size());
    double distance = 0;
    for (size_t i = 0; i < p.size(); i++) {
        distance = std::max(distance, std::fabs(p[i] - static_cast<double>(i) / n));
        distance = std::max(distance, std::fabs(p[i] - static_cast<double>(i + 1) / n));
    }
    return distance * std::sqrt(n);
}

TEST(UniformTest, FillsZeroToOne) {
    EXPECT_EQ(sim_uniform_from(0), 0.0f);
    EXPECT_LT(sim_uniform_from(~0u), 1.0f);
    std::vector<double> all;
    SimRng rng = {7, 8, 0, 1, 2, SIM_RNG_BATCH};
    for (int i = 0; i < 25000; i++) {
        SimUniform4 u = sim_rng_uniform4(&rng);
        for (real x : {u.x0, u.x1, u.x2, u.x3})
            all.push_back(static_cast<double>(x));
    }
    EXPECT_EQ(rng.c0, 25000u);
    EXPECT_LT(ks_statistic(all), 1.95);
}

TEST(NormalTest, HasTheNormalDistribution) {
    std::vector<double> all;
    double sum = 0, squares = 0, fourths = 0, products = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        SimNormal4 n = sim_normal4_from(sim_philox(i, 0, 0, SIM_RNG_NOISE, 1, 2));
        for (float x : {n.x0, n.x1, n.x2, n.x3}) {
            double v = static_cast<double>(x);
            sum += v, squares += v * v, fourths += v * v * v * v;
            all.push_back(0.5 * std::erfc(-v / std::sqrt(2.0)));
        }
        products += static_cast<double>(n.x0) * static_cast<double>(n.x1);
        products += static_cast<double>(n.x2) * static_cast<double>(n.x3);
    }
    const double count = 400000;
    EXPECT_NEAR(sum / count, 0.0, 4 / std::sqrt(count));
    EXPECT_NEAR(squares / count, 1.0, 4 * std::sqrt(2 / count));
    EXPECT_NEAR(fourths / count, 3.0, 4 * std::sqrt(96 / count));
    EXPECT_NEAR(products / (count / 2), 0.0, 4 / std::sqrt(count / 2));
    EXPECT_LT(ks_statistic(all), 1.95);
}

TEST(NormalTest, StaysFiniteAtTheEnds) {
    for (uint32_t radius : {0u, 0xffu, 0x100u, 0x7fffffffu, ~0u}) {
        for (uint32_t angle : {0u, 0x40000000u, 0x80000000u, 0xc0000000u, ~0u}) {
            SimNormal4 n = sim_normal4_from(SimWords4{radius, angle, radius, angle});
            for (float x : {n.x0, n.x1, n.x2, n.x3})
                EXPECT_LE(std::fabs(x), 5.8f);
        }
    }
}

TEST(CounterTest, PurposesDiffer) {
    std::set<uint32_t> purposes = {SIM_RNG_NOISE, SIM_RNG_INIT, SIM_RNG_EPISODE, SIM_RNG_EVALUATE, SIM_RNG_BATCH};
    EXPECT_EQ(purposes.size(), 5u);
    for (uint32_t purpose : purposes)
        EXPECT_EQ(purpose & 0x0fffffffu, 0u);
}

} // namespace
