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
        EXPECT_EQ(values[20], e.median);
        held += e.low <= std::log(2.0) && std::log(2.0) <= e.high;
    }
    // Of order statistics 14 and 28: 97.2%, known to within 0.3% by as many trials.
    EXPECT_GT(held, trials * 95 / 100);
    EXPECT_LT(held, trials * 99 / 100);
}

TEST(Cost, IsTakenOffWhereItFell) {
    ProfCost cost = {};
    cost.pair_ns = {20, 30, 40};
    cost.inside_ns = {8, 10, 12};
    ProfScope scope = {};
    scope.thread_ns = 10000;
    scope.entries = 100;
    scope.entries_within = 50;
    ProfEstimate corrected = prof_cost_scope(&cost, &scope);
    EXPECT_EQ(10000 - 100 * 10 - 50 * 20, corrected.median);
    EXPECT_EQ(10000 - 100 * 12 - 50 * 28, corrected.low);
    EXPECT_EQ(10000 - 100 * 8 - 50 * 12, corrected.high);
    scope.thread_ns = 500;
    EXPECT_EQ(0, prof_cost_scope(&cost, &scope).median);
    ProfSummary summary = {};
    summary.total.wall_ns = 100000;
    summary.total.main_entries = 1000;
    ProfEstimate wall = prof_cost_wall(&cost, &summary);
    EXPECT_EQ(60000, wall.low);
    EXPECT_EQ(70000, wall.median);
    EXPECT_EQ(80000, wall.high);
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
        EXPECT_TRUE(!is_outer || scope.entries_within == 3);
        EXPECT_TRUE(!is_inner || scope.parent < 0 || (scope.entries == 3 && scope.count == 2));
    }
    EXPECT_EQ(5, s.total.entries);
    EXPECT_EQ(4, s.total.main_entries);
    prof_summary_free(&s);
}

TEST(Cost, IsMeasuredAndKept) {
    ProfCost cost, loaded;
    bool found = true;
    ASSERT_EQ(STATUS_OK, prof_cost_measure(&cost)) << host_message();
    EXPECT_LE(cost.pair_ns.low, cost.pair_ns.median);
    EXPECT_LE(cost.pair_ns.median, cost.pair_ns.high);
    EXPECT_GT(cost.inside_ns.median, 0);
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
    unlink(path.c_str());
    rmdir((std::string(file.path()) + "/a").c_str());
    rmdir(file.path());
}

} // namespace
} // namespace profiler_test
