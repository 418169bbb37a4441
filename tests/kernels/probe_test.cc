// What a loop's probe makes of planted times, and that it lets go of the profiler.
#include <gtest/gtest.h>

#include <array>

#include "kernels/cpu/probe.h"

namespace {

// A profiler that takes splits, and scopes that it forgets.
struct Profiler {
    HostTraceHooks hooks = {};
    std::array<uint64_t, HOST_TRACE_CATEGORIES> sum = {};
    int stretches = 0;

    explicit Profiler(bool is_full) {
        hooks.split = [](const HostTraceHooks *h, const uint64_t *weight) {
            auto *self = reinterpret_cast<Profiler *>(const_cast<HostTraceHooks *>(h));
            for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
                self->sum[static_cast<size_t>(c)] += weight[c];
        };
        hooks.stretch = [](const HostTraceHooks *h, HostTraceStretch, bool, uint64_t) {
            reinterpret_cast<Profiler *>(const_cast<HostTraceHooks *>(h))->stretches++;
        };
        hooks.is_full = is_full;
        host_trace_attach(&hooks);
    }
    Profiler(const Profiler &) = delete;
    Profiler &operator=(const Profiler &) = delete;
    ~Profiler() { host_trace_attach(nullptr); }

    double share(HostTraceCategory category) const {
        uint64_t all = 0;
        for (uint64_t ticks : sum)
            all += ticks;
        return static_cast<double>(sum[category]) / static_cast<double>(all);
    }
};

TEST(Probe, TheSimulatorHasWhatARoundTakesLessWithoutIt) {
    Profiler profiler(false);
    CpuProbe probe = {};
    cpu_probe_open(&probe, 64);
    cpu_probe_add_round(&probe, 1000, 10, 2800, 40); // 70 ticks a step for the policy, 30 for the simulator
    cpu_probe_close(&probe);
    EXPECT_EQ(700u * CPU_PROBE_EVERY, profiler.sum[HOST_TRACE_POLICY]);
    EXPECT_EQ(300u * CPU_PROBE_EVERY, profiler.sum[HOST_TRACE_SIMULATION]);
}

// Something takes 5,000 ticks, as often of the one measurement as of the other by their lengths; and each round is a
// call of the loop, so that remainders have to be carried on.
TEST(Probe, WhatSlowsARoundDownCancelsOut) {
    Profiler profiler(false);
    CpuProbe probe = {};
    for (int i = 0; i < 1900; i++) {
        const uint64_t in_all = i % 19 < 10 ? 5000 : 0, in_acts = 5000 - in_all; // 1,000 and 900 ticks long
        cpu_probe_open(&probe, 64);
        cpu_probe_add_round(&probe, 1000 + in_all, 1, 900 + in_acts, 1);
        cpu_probe_close(&probe);
    }
    EXPECT_NEAR(0.1, profiler.share(HOST_TRACE_SIMULATION), 0.01);
}

// Whichever measurement the processor is taken away from.
TEST(Probe, InterruptedRoundsDoNotCount) {
    Profiler profiler(false);
    CpuProbe probe = {};
    cpu_probe_open(&probe, 64);
    for (int i = 0; i < 1000; i++) {
        const uint64_t in_all = i % 50 == 20 ? 1000000 : 0, in_acts = i % 50 == 40 ? 1000000 : 0;
        cpu_probe_add_round(&probe, 1000 + in_all, 1, 900 + in_acts, 1);
    }
    cpu_probe_close(&probe);
    EXPECT_NEAR(0.1, profiler.share(HOST_TRACE_SIMULATION), 1e-6);
}

TEST(Probe, WhatGoesOnIsUsual) {
    Profiler profiler(false);
    CpuProbe probe = {};
    cpu_probe_open(&probe, 64);
    cpu_probe_add_round(&probe, 1000, 1, 900, 1);
    for (int i = 0; i < 1000; i++)
        cpu_probe_add_round(&probe, 1000000, 1, 300000, 1);
    cpu_probe_close(&probe);
    EXPECT_NEAR(0.7, profiler.share(HOST_TRACE_SIMULATION), 1e-3);
    EXPECT_LT(900 * 1000000.0 * CPU_PROBE_EVERY, static_cast<double>(profiler.sum[HOST_TRACE_SIMULATION]) / 0.7);
}

TEST(Probe, ForgetsTheProfilerWhenItIsClosed) {
    CpuProbe probe = {};
    for (bool is_full : {false, true}) {
        Profiler profiler(is_full);
        cpu_probe_open(&probe, 64);
        cpu_probe_close(&probe);
        EXPECT_EQ(nullptr, probe.hooks);
        cpu_probe_open_part(&probe, 64, "a loop");
        cpu_probe_count(&probe, 32);
        cpu_probe_close_part(&probe, "a loop");
        cpu_probe_open_part(&probe, 64, "a loop");
        EXPECT_EQ(is_full ? 32u : 0u, probe.units);
        cpu_probe_close(&probe);
        EXPECT_FALSE(cpu_probe_takes(&probe));
        EXPECT_EQ(nullptr, probe.hooks);
        EXPECT_EQ(is_full ? 5 : 0, profiler.stretches); // two begin, one pauses, goes on and ends
    }
}

} // namespace
