// How many workers are wanted: runs that are made up, looked at every 0.1 s.
#include "host/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace {

// A run whose generations have `work` worker-seconds to share out, in at most `most` parts, and `rest_s` in which one
// worker does what cannot be shared.
class ToyRun {
  public:
    ToyRun(int min, int max, int started, double interval_s = 10.0) {
        HostScaleOptions options = {};
        options.min = min;
        options.max = max;
        options.started = started;
        options.asks = options.has_leases = true;
        options.interval_s = interval_s;
        workers = started;
        host_scale_init(&scale, &options, now_s);
    }

    // Looks for so long; `obeys`: there are as many workers as are wanted, two seconds later.
    void pass(double seconds, bool obeys = true) {
        for (int i = 0; i < std::lround(seconds * 10); i++) {
            now_s += 0.1;
            HostScaleLook look = {};
            look.workers = workers;
            look.is_alone = workers == 1;
            look.most = workers > 1 ? most : 0;
            int parts = std::min(workers, most);
            double busy_s = work_s / parts;
            credit += busy_s / (busy_s + rest_s) * parts;
            look.working = workers > 1 ? static_cast<int>(credit) : 0;
            credit -= static_cast<int>(credit);
            leases += 0.1 * look.working / lease_s;
            look.leases = static_cast<int64_t>(leases);
            changes += host_scale_look(&scale, &look, now_s);
            if (obeys && scale.reason != HOST_SCALE_NONE && now_s - scale.reason_s > 2.0) workers = scale.wanted;
        }
    }

    HostScale scale = {};
    double now_s = 100.0, work_s = 10.0, rest_s = 0.0, lease_s = 0.1, credit = 0, leases = 0;
    int workers, most = 1000, changes = 0;
};

TEST(Scale, WhatIsLostIsWantedAgainAfterAWhile) {
    ToyRun run(1, 8, 4);
    run.work_s = 3.0;
    run.rest_s = 0.25; // 4 workers: three quarters of their time
    run.pass(30);
    EXPECT_EQ(0, run.changes);
    run.workers = 3;
    run.pass(5, false);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason) << "it may be started again";
    run.pass(10, false);
    EXPECT_EQ(HOST_SCALE_LOST, run.scale.reason);
    EXPECT_EQ(4, run.scale.wanted);
    run.workers = 4;
    run.pass(1, false);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
}

TEST(Scale, BelowTheLeastIsSoon) {
    ToyRun run(3, 8, 1);
    run.pass(1, false);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
    run.pass(2, false);
    EXPECT_EQ(HOST_SCALE_MIN, run.scale.reason);
    EXPECT_EQ(3, run.scale.wanted);
}

TEST(Scale, BusyWorkersAreDoubledUpToTheMost) {
    ToyRun run(1, 11, 1);
    run.pass(15);
    EXPECT_EQ(2, run.workers);
    run.pass(15);
    EXPECT_EQ(4, run.workers);
    run.pass(15);
    EXPECT_EQ(8, run.workers);
    run.pass(200);
    EXPECT_EQ(11, run.workers);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
}

TEST(Scale, NoMoreThanARoundHasWorkFor) {
    ToyRun run(1, 100, 2);
    run.most = 5;
    run.pass(300);
    EXPECT_EQ(5, run.workers);
    EXPECT_LE(run.changes, 6);
}

TEST(Scale, MessagesAreNoWork) {
    ToyRun run(1, 100, 2);
    run.lease_s = 0.001;
    run.pass(100);
    EXPECT_EQ(2, run.workers);
}

TEST(Scale, IdleWorkersAreHalvedDownToTheLeast) {
    ToyRun run(2, 16, 16);
    run.rest_s = 100.0;
    run.pass(15);
    EXPECT_EQ(8, run.workers);
    run.pass(100);
    EXPECT_EQ(2, run.workers);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
}

// A follower that is asked to leave is not started again.
TEST(Scale, IdleTrainersStay) {
    ToyRun run(1, 16, 9);
    run.scale.options.keep = 4;
    run.rest_s = 100.0;
    run.pass(15);
    EXPECT_EQ(5, run.workers);
    run.pass(200);
    EXPECT_EQ(4, run.workers);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
    run.workers = 3; // one was lost: idle workers are no reason for more
    run.pass(1, false);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
    run.pass(15, false);
    EXPECT_EQ(HOST_SCALE_LOST, run.scale.reason);
    EXPECT_EQ(4, run.scale.wanted);
}

// Whatever the shares: it comes to a number and stays there.
TEST(Scale, ItSettles) {
    for (double rest_s : {0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0}) {
        for (int started : {1, 2, 3, 5, 8, 13, 40, 64}) {
            ToyRun run(1, 64, started);
            run.rest_s = rest_s;
            run.pass(400);
            int changes = run.changes, workers = run.workers;
            run.pass(400);
            EXPECT_EQ(workers, run.workers) << rest_s << " s, " << started << " workers";
            EXPECT_EQ(changes, run.changes) << rest_s << " s, " << started << " workers";
            double best = run.work_s / (3 * rest_s); // three quarters
            if (best < 64 && best > 2) {
                EXPECT_GT(workers, 0.5 * best);
                EXPECT_LT(workers, 2.5 * best);
            }
        }
    }
}

TEST(Scale, OneWorkerTriesASecondOneOnce) {
    ToyRun run(1, 8, 1);
    run.rest_s = 1000.0;
    run.pass(100);
    EXPECT_EQ(1, run.workers);
    EXPECT_EQ(HOST_SCALE_IDLE, run.scale.last);
    int changes = run.changes;
    run.pass(1000);
    EXPECT_EQ(changes, run.changes);
}

// Work that comes and goes: each turn has to wait for longer.
TEST(Scale, ToAndFroIsSlowedDown) {
    ToyRun run(2, 64, 4);
    int turns[2] = {0, 0};
    for (int half = 0; half < 2; half++) {
        int before = run.changes;
        for (int i = 0; i < 20; i++) {
            run.rest_s = i % 2 == 0 ? 0.0 : 100.0;
            run.pass(13);
        }
        turns[half] = run.changes - before;
    }
    EXPECT_LT(2 * turns[1], turns[0]);
}

TEST(Scale, WorkersThatJoinOfThemselvesStay) {
    ToyRun run(1, 8, 2);
    run.work_s = 3.0;
    run.rest_s = 0.25;
    run.pass(1, false);
    run.workers = 5;
    run.pass(5, false);
    EXPECT_EQ(5, run.scale.wanted);
    EXPECT_EQ(HOST_SCALE_NONE, run.scale.reason);
    run.workers = 10;
    run.pass(1, false);
    EXPECT_EQ(8, run.scale.wanted);
    EXPECT_EQ(HOST_SCALE_MAX, run.scale.reason);
    EXPECT_EQ(0, host_scale_surplus(&run.scale, 5.0, run.now_s));
    run.pass(5, false);
    EXPECT_EQ(2, host_scale_surplus(&run.scale, 5.0, run.now_s));
    run.workers = 8;
    run.pass(1, false);
    EXPECT_EQ(0, host_scale_surplus(&run.scale, 0.0, run.now_s));
}

TEST(Scale, WithoutAnybodyToAskOnlyTheMostCounts) {
    HostScaleOptions options = {};
    options.min = 4;
    options.max = 6;
    options.started = 4;
    options.has_leases = true;
    options.interval_s = 1.0;
    HostScale scale;
    host_scale_init(&scale, &options, 0.0);
    HostScaleLook look = {};
    look.most = 100;
    for (int i = 1; i < 200; i++) {
        look.workers = i < 100 ? 2 : 7;
        look.working = i % 50 < 25 ? look.workers : 0;
        host_scale_look(&scale, &look, 0.1 * i);
        ASSERT_EQ(i < 100 ? HOST_SCALE_NONE : HOST_SCALE_MAX, scale.reason);
    }
    EXPECT_EQ(1, host_scale_surplus(&scale, 5.0, 20.0));
}

TEST(Scale, ReasonsHaveNames) {
    for (int i = 0; i < HOST_SCALE_REASON_COUNT; i++)
        EXPECT_STRNE("?", host_scale_name(static_cast<HostScaleReason>(i)));
    EXPECT_STREQ("?", host_scale_name(HOST_SCALE_REASON_COUNT));
}

} // namespace
