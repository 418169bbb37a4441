// What recorded stretches took more than plain ones: known excess is found again, and its interval holds it as often as
// it says.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "profiler/prof_estimate.h"
#include "tests/kernels/fresh_seed.h"

namespace {

// A loop whose units take `unit_ns`, 20% more of it slowly coming and going, with a spread of 5%, and now and then an
// interrupt; recorded ones `excess_ns` more.
class Loop {
  public:
    Loop(uint64_t seed, double excess_ns) : random_(seed), excess_ns_(excess_ns) {}
    ~Loop() { prof_stretches_free(&stretches); }
    Loop(const Loop &) = delete;
    Loop &operator=(const Loop &) = delete;

    void run(int count) {
        std::normal_distribution<double> spread(1.0, 0.05);
        std::exponential_distribution<double> interrupt(1.0 / 20000.0);
        for (int i = 0; i < count; i++) {
            bool is_plain = random_() % 4 == 0;
            uint64_t units = 50 + random_() % 100;
            double drift = 1.0 + 0.2 * std::sin(0.0005 * i), ns = static_cast<double>(units) * 400.0 * drift;
            ns *= spread(random_);
            if (!is_plain) ns += excess_ns_ * static_cast<double>(units);
            if (random_() % 100 == 0) ns += interrupt(random_);
            ASSERT_TRUE(prof_stretches_add(&stretches, is_plain, units, std::llround(ns)));
        }
    }

    ProfStretches stretches = {};

  private:
    std::mt19937_64 random_;
    double excess_ns_;
};

TEST(Stretches, AKnownExcessIsFoundAndItsIntervalHoldsIt) {
    uint64_t seed = fresh_seed();
    const int trials = 400;
    for (double excess_ns : {0.0, 5.0, 200.0}) {
        int held = 0;
        double sum = 0.0;
        for (uint64_t i = 0; i < trials; i++) {
            Loop loop(seed + i, excess_ns);
            loop.run(3000);
            ProfExcess excess = prof_stretches_excess(&loop.stretches);
            ASSERT_TRUE(excess.is_known);
            EXPECT_LE(excess.ns.low, excess.ns.value);
            EXPECT_LE(excess.ns.value, excess.ns.high);
            held += excess.ns.low <= excess_ns && excess_ns <= excess.ns.high;
            sum += excess.ns.value;
        }
        EXPECT_GE(held, trials * 90 / 100) << excess_ns;   // 95% and more; four and a half deviations below
        EXPECT_NEAR(excess_ns, sum / trials, 1.0) << seed; // a 400th of a unit's time
    }
}

// What recording costs now and then is part of the sum, too: here a third of it, at one stretch in thirty.
TEST(Stretches, WhatIsRareCounts) {
    std::mt19937_64 random(fresh_seed());
    ProfStretches s = {};
    for (int i = 0; i < 40000; i++) {
        bool is_plain = random() % 4 == 0;
        int64_t ns = 100 * 1000 + static_cast<int64_t>(random() % 1000) + (is_plain ? 0 : 20 * 1000);
        if (!is_plain && random() % 30 == 0) ns += 300 * 1000;
        ASSERT_TRUE(prof_stretches_add(&s, is_plain, 100, ns));
    }
    ProfExcess excess = prof_stretches_excess(&s);
    ASSERT_TRUE(excess.is_known);
    EXPECT_NEAR(300.0, excess.ns.value, 15.0); // 5%
    prof_stretches_free(&s);
}

TEST(Stretches, ALongRunIsThinnedOut) {
    Loop loop(fresh_seed(), 100.0);
    loop.run(5 * PROF_STRETCHES_MAX);
    EXPECT_LE(loop.stretches.count, uint32_t(PROF_STRETCHES_MAX));
    EXPECT_GE(loop.stretches.count, uint32_t(PROF_STRETCHES_MAX) / 2);
    ProfExcess excess = prof_stretches_excess(&loop.stretches);
    ASSERT_TRUE(excess.is_known);
    EXPECT_NEAR(100.0, excess.ns.value, 3.0);
}

TEST(Stretches, NothingIsSaidOfWhatIsTooLittle) {
    ProfStretches none = {};
    EXPECT_FALSE(prof_stretches_excess(&none).is_known);
    prof_stretches_free(&none);
    for (int plain_of_10 : {0, 10}) { // one group only
        ProfStretches s = {};
        for (int i = 0; i < 5000; i++)
            ASSERT_TRUE(prof_stretches_add(&s, i % 10 < plain_of_10, 10, 1000));
        EXPECT_FALSE(prof_stretches_excess(&s).is_known);
        prof_stretches_free(&s);
    }
    ProfStretches s = {}; // no units, or more than a word holds
    for (int i = 0; i < 5000; i++) {
        ASSERT_TRUE(prof_stretches_add(&s, i % 4 == 0, 0, 1000));
        ASSERT_TRUE(prof_stretches_add(&s, i % 4 == 0, UINT64_MAX, 1000));
    }
    EXPECT_EQ(0u, s.count);
    ASSERT_TRUE(prof_stretches_add(&s, true, 1, 1000)); // a single one
    EXPECT_EQ(1u, s.count);
    EXPECT_FALSE(prof_stretches_excess(&s).is_known);
    for (int i = 0; i < 5000; i++) // times of a forged trace
        ASSERT_TRUE(prof_stretches_add(&s, i % 4 == 0, 1, i % 2 == 0 ? 0 : INT64_C(1) << 56));
    ProfExcess excess = prof_stretches_excess(&s);
    EXPECT_TRUE(std::isfinite(excess.ns.low) && std::isfinite(excess.ns.high));
    prof_stretches_free(&s);
}

} // namespace
