// What observing a GPU costs, as planted in the stand-in by the environment, is what the calibration finds.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "profiler/prof_cost_parts.h"

namespace profiler_test {
namespace {

double planted(const char *name) {
    const char *text = getenv(name);
    return text != nullptr ? strtod(text, nullptr) : 0.0;
}

void expect_within(double expected, const ProfEstimate &found, const char *what) {
    EXPECT_NEAR(expected, found.median, 0.05 * expected) << what;
    EXPECT_LE(found.low, found.median) << what;
    EXPECT_LE(found.median, found.high) << what;
}

TEST(GpuCost, WhatWasPlantedIsFound) {
    double before = planted("VGPU_COST_CALL_BEFORE"), inside = planted("VGPU_COST_CALL_INSIDE");
    double record = planted("VGPU_COST_RECORD"), kernel = planted("VGPU_COST_TRACED_KERNEL");
    ASSERT_TRUE(before > 0 && inside > 0 && record > 0 && kernel > 0) << "this test is for the virtual GPU";
    ProfCost cost = {};
    std::string folder = testing::TempDir() + "/shoal-gpu-cost-" + std::to_string(getpid());
    ASSERT_EQ(0, mkdir(folder.c_str(), 0700));
    ASSERT_EQ(STATUS_OK, prof_cost_measure_gpu(folder.c_str(), &cost)) << host_message();
    EXPECT_EQ(0, rmdir(folder.c_str())); // it leaves nothing behind
    ASSERT_TRUE(cost.is_known[PROF_COST_CALL] && cost.is_known[PROF_COST_RECORD] && cost.has_kernel);
    expect_within(before + inside, cost.each_ns[PROF_COST_CALL], "a call");
    expect_within(inside, cost.inside_ns[PROF_COST_CALL], "a call, for itself");
    expect_within(record, cost.each_ns[PROF_COST_RECORD], "a record");
    expect_within(kernel, cost.kernel_ns, "a kernel");
}

} // namespace
} // namespace profiler_test
