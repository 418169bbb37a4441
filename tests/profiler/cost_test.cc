// The profiler's own cost: estimates, the file that keeps them, and what they take off.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "profiler/prof_cost.h"
#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/synthetic.h"

namespace profiler_test {
namespace {

TEST(Cost, TheIntervalHoldsTheMedianAsOftenAsItSays) {
    std::mt19937_64 random(fresh_seed());
    std::exponential_distribution<double> draw(1.0); // of median log 2
    int held = 0, trials = 4000;
    for (int i = 0; i < trials; i++) {
        double values[41];
        for (double &value : values)
            value = draw(random);
        ProfEstimate e = prof_estimate(values, 41);
        EXPECT_TRUE(std::is_sorted(values, values + 41));
        EXPECT_EQ(values[20], e.value);
        held += e.low <= std::log(2.0) && std::log(2.0) <= e.high;
    }
    // Of order statistics 14 and 28: 97.2%, known to within 0.3% by as many trials.
    EXPECT_GT(held, trials * 95 / 100);
    EXPECT_LT(held, trials * 99 / 100);
}

TEST(Cost, IsTakenOffWhereItFell) {
    ProfCost cost = {};
    cost.each_ns[PROF_COST_SCOPE] = {20, 30, 40};
    cost.each_ns[PROF_COST_SPLIT] = {1, 1, 1};
    cost.inside_ns[PROF_COST_SCOPE] = {8, 10, 12};
    cost.is_known[PROF_COST_SCOPE] = cost.is_known[PROF_COST_SPLIT] = true;
    ProfScope scope = {};
    ProfSummary summary = {};
    ProfEstimate corrected;
    summary.scopes = &scope;
    summary.scope_count = 1;
    scope.loop = -1;
    scope.thread_ns = 10000;
    scope.costs[PROF_COST_SCOPE] = 100;
    scope.costs_within[PROF_COST_SCOPE] = 50;
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(&cost, &summary, &corrected));
    EXPECT_EQ(10000 - 100 * 10 - 50 * 20, corrected.value);
    EXPECT_EQ(10000 - 100 * 12 - 50 * 28, corrected.low);
    EXPECT_EQ(10000 - 100 * 8 - 50 * 12, corrected.high);
    scope.thread_ns = 500;
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(&cost, &summary, &corrected));
    EXPECT_EQ(0, corrected.value);
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(nullptr, &summary, &corrected));
    EXPECT_EQ(500, corrected.value);
    summary.total.wall_ns = 100000;
    summary.total.main_costs[PROF_COST_SCOPE] = 1000;
    summary.total.main_costs[PROF_COST_SPLIT] = 10;
    ProfCorrection c = prof_cost_correct(&cost, &summary);
    EXPECT_EQ(59990, c.wall_ns.low);
    EXPECT_EQ(69990, c.wall_ns.value);
    EXPECT_EQ(79990, c.wall_ns.high);
    // Independent parts: half the interval is the root of the squares' sum.
    summary.excess = {5000, 300.0 * 300.0, 7};
    c = prof_cost_correct(nullptr, &summary);
    EXPECT_DOUBLE_EQ(94700, c.wall_ns.low);
    EXPECT_EQ(5000, c.excess_ns.value);
    EXPECT_DOUBLE_EQ(95300, c.wall_ns.high);
    c = prof_cost_correct(&cost, &summary);
    EXPECT_EQ(64990, c.wall_ns.value);
    EXPECT_NEAR(64990 - std::hypot(10000.0, 300.0), c.wall_ns.low, 1e-6);
}

// A loop of 10,000 ns: 2,000 in plain stretches; in the recorded ones 5,000 and 1,000 in scopes, and the rest its own.
TEST(Cost, OfALoopInFullDetailIsSharedOutAsItWasRecorded) {
    ProfScope scopes[4] = {};
    for (ProfScope &scope : scopes)
        scope.loop = 1;
    scopes[0].loop = -1;
    scopes[0].thread_ns = 500;
    scopes[1].thread_ns = 4000;
    scopes[1].plain_ns = 2000;
    scopes[1].costs[PROF_COST_SCOPE] = 1;
    scopes[1].costs_within[PROF_COST_SCOPE] = 20;
    scopes[1].excess = {1600, 400.0 * 400.0, 10};
    scopes[2].thread_ns = 5000;
    scopes[3].thread_ns = 1000;
    scopes[2].costs[PROF_COST_SCOPE] = scopes[3].costs[PROF_COST_SCOPE] = 10;
    ProfSummary summary = {};
    summary.scopes = scopes;
    summary.scope_count = 4;
    ProfEstimate corrected[4];
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(nullptr, &summary, corrected));
    EXPECT_EQ(500, corrected[0].value);
    EXPECT_DOUBLE_EQ(8400 * 5.0 / 8, corrected[2].value);
    EXPECT_DOUBLE_EQ(400 * 5.0 / 8, corrected[2].high - corrected[2].value);
    EXPECT_DOUBLE_EQ(8400, corrected[1].value + corrected[2].value + corrected[3].value);
    ProfCost cost = {};
    cost.each_ns[PROF_COST_SCOPE] = {60, 60, 60};
    cost.inside_ns[PROF_COST_SCOPE] = {20, 20, 20};
    cost.is_known[PROF_COST_SCOPE] = true;
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(&cost, &summary, corrected)); // 4,800, 800 and 1,200 are left
    EXPECT_DOUBLE_EQ(8400 * 4800.0 / 6800, corrected[2].value);
    EXPECT_DOUBLE_EQ(8400 * 800.0 / 6800, corrected[3].value);
    EXPECT_DOUBLE_EQ(8400 * 1200.0 / 6800, corrected[1].value);
    scopes[1].excess.ns = 20000; // more than there is
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(&cost, &summary, corrected));
    EXPECT_EQ(0, corrected[2].value);
}

// Of an interpreter's scopes, of calls and of what is recorded of them, each class has its own cost.
TEST(Cost, OfEachClassApart) {
    ProfCost cost = {};
    auto know = [&](ProfCostClass of, double each, double inside) {
        cost.is_known[of] = true;
        cost.each_ns[of] = {each, each, each};
        cost.inside_ns[of] = {inside, inside, inside};
    };
    know(PROF_COST_SCRIPT, 1000, 400);
    know(PROF_COST_CALL, 3000, 500);
    know(PROF_COST_RECORD, 700, 700);
    ProfScope scopes[2] = {};
    scopes[0].loop = scopes[1].loop = -1;
    scopes[0].thread_ns = scopes[1].thread_ns = 100000;
    scopes[0].costs[PROF_COST_SCRIPT] = 5;
    scopes[0].costs_within[PROF_COST_CALL] = 10;
    scopes[1].costs[PROF_COST_CALL] = 10;
    scopes[1].costs[PROF_COST_RECORD] = 20;
    scopes[1].costs[PROF_COST_SCOPE] = 1000; // whose cost is not known
    scopes[1].device_ns = 5000;
    scopes[1].kernels = 3;
    ProfSummary summary = {};
    summary.scopes = scopes;
    summary.scope_count = 2;
    ProfEstimate corrected[2];
    ASSERT_EQ(STATUS_OK, prof_cost_scopes(&cost, &summary, corrected));
    EXPECT_EQ(100000 - 5 * 400 - 10 * 2500, corrected[0].value);
    EXPECT_EQ(100000 - 10 * 500 - 20 * 700, corrected[1].value);
    EXPECT_EQ(5000, prof_cost_device_ns(&cost, &scopes[1]));
    cost.has_kernel = true;
    cost.kernel_ns = {900, 1000, 1100};
    EXPECT_EQ(2000, prof_cost_device_ns(&cost, &scopes[1]));
    scopes[1].device_ns = 2500;
    EXPECT_EQ(0, prof_cost_device_ns(&cost, &scopes[1]));
}

// While a device is busy it may be what bounds the run: such costs count by half, and the interval has none and all.
TEST(Cost, WhatFallsWhileADeviceIsBusyMayNotCount) {
    ProfCost cost = {};
    cost.is_known[PROF_COST_CALL] = true;
    cost.each_ns[PROF_COST_CALL] = {10, 10, 10};
    ProfSummary summary = {};
    summary.total.wall_ns = 100000;
    summary.total.main_costs[PROF_COST_CALL] = 1000;
    summary.total.covered_costs[PROF_COST_CALL] = 400;
    ProfCorrection c = prof_cost_correct(&cost, &summary);
    EXPECT_EQ(92000, c.wall_ns.value);
    EXPECT_EQ(90000, c.wall_ns.low);
    EXPECT_EQ(94000, c.wall_ns.high);
    // Kernels that threads waited for, two thirds of them, certainly do.
    cost.has_kernel = true;
    cost.kernel_ns = {3, 3, 3};
    summary.total.main_costs[PROF_COST_CALL] = 0;
    summary.total.covered_costs[PROF_COST_CALL] = 0;
    summary.total.kernels = 900;
    summary.total.bound_ns[PROF_BOUND_GPU] = 2000;
    summary.total.bound_ns[PROF_BOUND_OVERLAPPED] = 1000;
    c = prof_cost_correct(&cost, &summary);
    EXPECT_DOUBLE_EQ(100000 - 3 * 750, c.wall_ns.value);
    EXPECT_DOUBLE_EQ(100000 - 3 * 900, c.wall_ns.low);
    EXPECT_DOUBLE_EQ(100000 - 3 * 600, c.wall_ns.high);
}

// A cost is a difference of measurements: where it is below 0, the interval still has none of what may not count and
// all.
TEST(Cost, BelowNothingStaysAnInterval) {
    ProfCost cost = {};
    cost.is_known[PROF_COST_CALL] = true;
    ProfSummary summary = {};
    summary.total.wall_ns = 100000;
    summary.total.main_costs[PROF_COST_CALL] = 1000;
    summary.total.covered_costs[PROF_COST_CALL] = 400;
    for (ProfEstimate e : {ProfEstimate{-10, -10, -10}, ProfEstimate{-10, -2, 8}, ProfEstimate{-6, 4, 8}}) {
        cost.each_ns[PROF_COST_CALL] = e;
        ProfCorrection c = prof_cost_correct(&cost, &summary);
        EXPECT_EQ(100000 - 800 * e.value, c.wall_ns.value);
        EXPECT_EQ(1000 * e.low, c.costs_ns.low);
        EXPECT_EQ((e.high < 0 ? 600 : 1000) * e.high, c.costs_ns.high);
        EXPECT_LE(c.wall_ns.low, c.wall_ns.value);
        EXPECT_LE(c.wall_ns.value, c.wall_ns.high);
    }
}

TEST(Cost, ScopesBelowAScopeAreItsEntriesWithin) {
    Trace t;
    t.process = make_process(0);
    t.end_ns = 1000;
    t.names = {make_name("outer", HOST_TRACE_HOST), make_name("inner", HOST_TRACE_HOST)};
    ProfEvent join = begin(50, 1);
    join.kind = PROF_EVENT_JOIN;
    t.streams = {{make_stream(0, PROF_STREAM_THREAD, true),
                  {begin(0, 0), begin(10, 1), end(60), begin(70, 1), end(80), end(100), begin(200, 1), end(210)}},
                 {make_stream(1, PROF_STREAM_THREAD), {join, end(55)}}};
    Analysed a(t);
    ProfSummary s;
    prof_summary_init(&s, PROF_ALL_PHASES);
    ASSERT_EQ(STATUS_OK, prof_summary_add(&s, &*a));
    prof_summary_finish(&s);
    for (int32_t i = 0; i < s.scope_count; i++) {
        const ProfScope &scope = s.scopes[i];
        bool is_outer = strcmp(scope.name, "outer") == 0, is_inner = strcmp(scope.name, "inner") == 0;
        EXPECT_TRUE(!is_outer || scope.costs_within[PROF_COST_SCOPE] + scope.costs_within[PROF_COST_JOIN] == 3);
        EXPECT_TRUE(!is_inner || scope.parent < 0 || (scope.entries == 3 && scope.count == 2));
    }
    EXPECT_EQ(4, s.total.costs[PROF_COST_SCOPE]);
    EXPECT_EQ(1, s.total.costs[PROF_COST_JOIN]);
    EXPECT_EQ(4, s.total.main_costs[PROF_COST_SCOPE]);
    EXPECT_EQ(0, s.total.main_costs[PROF_COST_JOIN]);
    prof_summary_free(&s);
}

TEST(Cost, IsMeasuredAndKept) {
    ProfCost cost, loaded;
    ProfCostMissing missing;
    bool found = true;
    ASSERT_EQ(STATUS_OK, prof_cost_measure("/no/python", &cost, &missing)) << host_message();
    for (const ProfEstimate &e : cost.each_ns) {
        EXPECT_LE(e.low, e.value);
        EXPECT_LE(e.value, e.high);
    }
    EXPECT_GT(cost.inside_ns[PROF_COST_SCOPE].value, 0);
    EXPECT_FALSE(cost.is_known[PROF_COST_SCRIPT]);
    EXPECT_STRNE("", missing.script); // the program, or the module beside this test
    EXPECT_EQ(cost.is_known[PROF_COST_CALL], missing.gpu[0] == '\0');
    cost.is_known[PROF_COST_SCRIPT] = true;
    cost.each_ns[PROF_COST_SCRIPT] = {900, 1000, 1100};
    cost.has_kernel = true;
    cost.kernel_ns = {1, 2, 3};
    TraceFile file; // a path
    std::string path = std::string(file.path()) + "/a/cost.json";
    EXPECT_EQ(STATUS_OK, prof_cost_load(path.c_str(), &loaded, &found));
    EXPECT_FALSE(found);
    ASSERT_EQ(STATUS_OK, prof_cost_save(&cost, path.c_str())) << host_message();
    ASSERT_EQ(STATUS_OK, prof_cost_load(path.c_str(), &loaded, &found)) << host_message();
    EXPECT_TRUE(found);
    EXPECT_EQ(0, memcmp(&cost, &loaded, sizeof cost));
    set_text(cost.host, "another machine");
    ASSERT_EQ(STATUS_OK, prof_cost_save(&cost, path.c_str()));
    ASSERT_EQ(STATUS_OK, prof_cost_load(path.c_str(), &loaded, &found));
    EXPECT_FALSE(found);
    for (const char *text : {"", "{}", "not JSON", "{\"host\": 1}"}) {
        std::ofstream(path) << text;
        EXPECT_EQ(STATUS_CORRUPT, prof_cost_load(path.c_str(), &loaded, &found)) << text;
        EXPECT_FALSE(found);
        EXPECT_NE(nullptr, strstr(host_message(), "profreport --calibrate makes it anew"));
    }
    std::ofstream(path) << R"({"host": "x", "cpu": "y", "costs": {"scope": [1, 2, 3]}, "inside_ns": [1, 2, 3]})";
    EXPECT_EQ(STATUS_CORRUPT, prof_cost_load(path.c_str(), &loaded, &found));
    EXPECT_NE(nullptr, strstr(host_message(), "of an earlier version, which measured less"));
    unlink(path.c_str());
    rmdir((std::string(file.path()) + "/a").c_str());
    rmdir(file.path());
}

} // namespace
} // namespace profiler_test
