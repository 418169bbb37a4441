// The recorder: what threads do is what the trace says, and what finds no room is counted.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "host/pool.h"
#include "profiler/prof_clock.h"
#include "profiler/prof_record.h"
#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/synthetic.h"

namespace profiler_test {
namespace {

class Record : public testing::Test {
  protected:
    void start(size_t memory_bytes = 0, bool use_system_clock = false, ProfCollector collector = {}) {
        ProfRecordOptions options = {};
        options.path = file_.path();
        set_text(options.process.tool, "test");
        options.memory_bytes = memory_bytes;
        options.collector = collector;
        options.use_system_clock = use_system_clock;
        ASSERT_EQ(STATUS_OK, prof_recorder_start(&options, &recorder_)) << host_message();
    }
    int64_t stop() {
        int64_t dropped = -1;
        EXPECT_EQ(STATUS_OK, prof_recorder_stop(recorder_, &dropped)) << host_message();
        return dropped;
    }
    void TearDown() override { prof_recorder_free(recorder_); }

    TraceFile file_;
    ProfRecorder *recorder_ = nullptr;
};

void spin(int64_t ns) {
    for (int64_t end = host_now_ns() + ns; host_now_ns() < end;) {
    }
}

TEST_F(Record, ScopesAndTheirTimes) {
    for (bool system_clock : {false, true}) {
        start(0, system_clock);
        int64_t before = host_now_ns();
        host_trace_phase(HOST_PHASE_TRAIN);
        {
            HOST_TRACE_SCOPE(HOST, "outer");
            {
                HOST_TRACE_SCOPE(LEARNING, "inner");
                spin(3000000);
            }
            spin(1000000);
            const uint64_t weight[HOST_TRACE_CATEGORIES] = {3, 0, 5};
            host_trace_split(weight);
        }
        int64_t after = host_now_ns();
        EXPECT_EQ(0, stop());
        Analysed a(file_.path());
        EXPECT_STREQ(system_clock || !prof_clock_has_counter() ? "clock_gettime" : "tsc", a->process.clock);
        EXPECT_EQ(getpid(), a->process.pid);
        EXPECT_NE('\0', a->process.boot_id[0]);
        ASSERT_NE(nullptr, a.find("/outer/inner"));
        const ProfNode *outer = a.find("/outer"), *inner = a.find("/outer/inner");
        int64_t of_inner = inner->cell[HOST_PHASE_TRAIN].thread_ns, of_outer = outer->cell[HOST_PHASE_TRAIN].thread_ns;
        // Readings of the clocks are right within a microsecond.
        EXPECT_GE(of_inner, 3000000 - 1000);
        EXPECT_GE(of_outer, 1000000 - 1000);
        EXPECT_LE(of_inner + of_outer, after - before + 1000);
        EXPECT_EQ(1, outer->cell[HOST_PHASE_TRAIN].count);
        EXPECT_EQ(3u, outer->split[0]);
        EXPECT_EQ(5u, outer->split[2]);
        EXPECT_EQ(HOST_TRACE_LEARNING, inner->category);
        EXPECT_FALSE(a->damage.is_cut);
        prof_recorder_free(recorder_);
        recorder_ = nullptr;
        unlink(file_.path());
    }
}

// Ends `units` of a loop's stretch: 2 ms of work, 3 ms of something else, and 1 ms of work.
void stretch(bool is_plain, uint64_t units) {
    spin(2000000);
    host_trace_stretch(HOST_STRETCH_PAUSE, is_plain, 0);
    spin(3000000);
    host_trace_stretch(HOST_STRETCH_RESUME, is_plain, 0);
    spin(1000000);
    host_trace_stretch(HOST_STRETCH_NEXT, is_plain, units);
}

TEST_F(Record, StretchesAndTheirPauses) {
    for (bool system_clock : {false, true}) {
        start(0, system_clock);
        int64_t before = host_now_ns();
        {
            HOST_TRACE_SCOPE(SIMULATION, "loop");
            host_trace_stretch(HOST_STRETCH_NEXT, false, 0); // the first one begins
            stretch(true, 7);
            stretch(false, 5);
        }
        int64_t after = host_now_ns();
        stop();
        ProfReader *reader = nullptr;
        ASSERT_EQ(STATUS_OK, prof_reader_open(file_.path(), &reader)) << host_message();
        ProfEvent event;
        int found = 0, readers = 0;
        while (prof_reader_next(reader, 0, &event)) {
            readers += event.kind == PROF_EVENT_READER;
            if (event.kind != PROF_EVENT_STRETCH) continue;
            EXPECT_EQ(found == 0, event.is_plain);
            EXPECT_EQ(found == 0 ? 7u : 5u, event.count);
            EXPECT_EQ(1u, event.pauses);
            EXPECT_GE(event.duration_ns, 3000000 - 2000);
            EXPECT_LE(event.duration_ns, after - before - 6000000 + 2000); // neither pause nor the other one's work
            EXPECT_LE(event.processor_ns, event.duration_ns + 20000);      // clocks of their own
            found++;
        }
        EXPECT_EQ(2, found);
        EXPECT_EQ(1, readers);
        prof_reader_close(reader);
        Analysed a(file_.path());
        const ProfNode *loop = a.find("/loop");
        ASSERT_NE(nullptr, loop);
        EXPECT_TRUE(loop->is_loop && loop->is_leaf && !loop->excess.is_known);
        EXPECT_EQ(5, loop->cell[0].recorded_units);
        EXPECT_EQ(5, loop->cell[0].main_recorded_units);
        EXPECT_EQ(2, loop->cell[0].costs[PROF_COST_STRETCH]);
        EXPECT_EQ(2, loop->cell[0].costs[PROF_COST_PAUSE]);
        prof_recorder_free(recorder_);
        recorder_ = nullptr;
        unlink(file_.path());
    }
}

// A pause in which the thread waits for a processor, as here it sleeps, says nothing of what the stretch used.
TEST_F(Record, AStretchOfALongPauseIsNotCounted) {
    start();
    {
        HOST_TRACE_SCOPE(LEARNING, "loop");
        host_trace_stretch(HOST_STRETCH_NEXT, false, 0);
        for (int i = 0; i < 1000; i++) { // two groups of the same, of which nothing is known
            host_trace_stretch(HOST_STRETCH_PAUSE, i % 2 == 0, 0);
            std::this_thread::sleep_for(std::chrono::microseconds(i % 100 == 0 ? 2000 : 100));
            host_trace_stretch(HOST_STRETCH_RESUME, i % 2 == 0, 0);
            host_trace_stretch(HOST_STRETCH_NEXT, i % 2 == 0, 1);
        }
    }
    stop();
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_OK, prof_reader_open(file_.path(), &reader)) << host_message();
    ProfEvent event;
    int found = 0;
    while (prof_reader_next(reader, 0, &event)) {
        if (event.kind != PROF_EVENT_STRETCH) continue;
        EXPECT_EQ(0, event.processor_ns);
        found++;
    }
    prof_reader_close(reader);
    EXPECT_EQ(1000, found);
    Analysed a(file_.path());
    const ProfNode *loop = a.find("/loop");
    ASSERT_NE(nullptr, loop);
    EXPECT_EQ(500, loop->cell[0].recorded_units);
    EXPECT_FALSE(loop->excess.is_known);
}

TEST_F(Record, AScopeMayTakeTheCategoryAroundIt) {
    start();
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        const HostTraceHooks *outer = host_trace_begin(HostTraceCategory(c), "outer");
        const HostTraceHooks *inner = host_trace_begin(HOST_TRACE_ENCLOSING, "inner");
        host_trace_end(inner);
        prof_record_script_begin(outer, HOST_TRACE_ENCLOSING, "script");
        host_trace_end(outer);
        host_trace_end(outer);
    }
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    int found[PROF_LAYERS] = {};
    for (int32_t i = PROF_NODE_UNKNOWN + 1; i < a->node_count; i++) {
        const ProfNode &node = a->nodes[i];
        if (node.parent <= PROF_NODE_UNKNOWN) continue;
        found[node.layer]++;
        EXPECT_EQ(a->nodes[node.parent].category, node.category);
        EXPECT_EQ(1, node.cell[0].costs[node.layer == PROF_LAYER_SCRIPT ? PROF_COST_SCRIPT : PROF_COST_SCOPE]);
    }
    EXPECT_EQ(int{HOST_TRACE_CATEGORIES}, found[PROF_LAYER_CODE]);
    EXPECT_EQ(int{HOST_TRACE_CATEGORIES}, found[PROF_LAYER_SCRIPT]);
}

const char *const names[] = {"a", "b", "c", "d", "e"};

// Opens `count` scopes, nested at random; returns how many.
int64_t random_scopes(std::mt19937_64 &random, int depth, int64_t count) {
    int64_t made = 0;
    while (made < count) {
        const HostTraceHooks *scope = host_trace_begin(HostTraceCategory(random() % 6), names[random() % 5]);
        made++;
        if (depth < 90 && random() % 3 != 0) made += random_scopes(random, depth + 1, 1 + int64_t(random() % 3));
        host_trace_end(scope);
    }
    return made;
}

int64_t scope_count(const Analysed &a) {
    int64_t count = 0;
    for (int32_t i = 0; i < a->node_count; i++)
        count += a->nodes[i].cell[0].count;
    return count;
}

TEST_F(Record, EveryScopeIsThereOrCounted) {
    uint64_t seed = fresh_seed();
    for (size_t memory : {size_t(0), size_t(5) * PROF_RECORD_BUFFER_BYTES, size_t(1)}) {
        start(memory);
        std::atomic<int64_t> made{0};
        std::vector<std::thread> threads;
        for (uint64_t i = 0; i < 4; i++) {
            threads.emplace_back([&made, seed, i] {
                std::mt19937_64 random(seed + i);
                made += random_scopes(random, 0, 60000);
            });
        }
        for (std::thread &thread : threads)
            thread.join();
        int64_t dropped = stop();
        Analysed a(file_.path());
        EXPECT_EQ(2 * made.load(), 2 * scope_count(a) + dropped);
        EXPECT_EQ(dropped, a->dropped);
        EXPECT_EQ(0, a->unmatched_ends);
        EXPECT_TRUE(!a->damage.is_cut && a->damage.lost_events == 0 && a->damage.backward_clocks == 0);
        for (int32_t i = PROF_NODE_UNKNOWN + 1; i < a->node_count; i++) // ends are never dropped: nothing stays open
            EXPECT_LT(a->nodes[i].cell[0].thread_ns, a->wall_ns * 4);
        EXPECT_TRUE(memory != 1 || dropped > 0);
        prof_recorder_free(recorder_);
        recorder_ = nullptr;
        unlink(file_.path());
    }
}

TEST_F(Record, OthersJoinAScope) {
    start();
    std::thread other;
    {
        HOST_TRACE_SCOPE(HOST, "outer");
        HOST_TRACE_SCOPE(SIMULATION, "loop");
        HostTraceMark mark = host_trace_mark();
        other = std::thread([mark] {
            const HostTraceHooks *joined = host_trace_join(mark);
            spin(2000000);
            host_trace_end(joined);
        });
        spin(1000000);
        other.join();
    }
    EXPECT_EQ(nullptr, host_trace_mark().name);
    stop();
    Analysed a(file_.path());
    const ProfNode *loop = a.find("/outer/loop");
    ASSERT_NE(nullptr, loop);
    EXPECT_EQ(nullptr, a.find("/loop"));
    EXPECT_EQ(1, loop->cell[0].count);
    EXPECT_GE(loop->cell[0].thread_ns - loop->cell[0].main_ns, 2000000 - 1000);
}

TEST_F(Record, APoolsThreadsAreInTheCallersScope) {
    HostPool *pool = nullptr;
    ASSERT_EQ(STATUS_OK, host_pool_create(4, HOST_BIND_NONE, &pool));
    auto body = [](void *, int64_t, int64_t, int) { spin(20000); };
    std::vector<ProfRecorder *> stopped;
    for (int round = 0; round < 20; round++) { // its threads go on from one recorder to the next
        start();
        for (int i = 0; i < 5; i++) {
            HOST_TRACE_SCOPE(SIMULATION, "loop");
            host_pool_for(pool, 16, 1, body, nullptr);
        }
        stop();
        Analysed a(file_.path());
        const ProfNode *loop = a.find("/loop");
        ASSERT_NE(nullptr, loop);
        EXPECT_EQ(5, loop->cell[0].count);
        EXPECT_GE(loop->cell[0].thread_ns, 5 * 16 * 20000); // all of the work, whoever did it
        EXPECT_TRUE(loop->is_leaf);
        EXPECT_NE(nullptr, a.find("/loop/wait for workers"));
        for (int32_t i = PROF_NODE_UNKNOWN + 1; i < a->node_count; i++)
            EXPECT_TRUE(a.path(i) == "/loop" || a->nodes[i].category == HOST_TRACE_IDLE) << a.path(i);
        EXPECT_EQ(0, a->unmatched_ends);
        stopped.push_back(recorder_);
        recorder_ = nullptr;
        unlink(file_.path());
    }
    host_pool_free(pool);
    for (ProfRecorder *recorder : stopped)
        prof_recorder_free(recorder);
}

TEST_F(Record, AScopeThatOutlivesTheRecorderEndsQuietly) {
    start();
    const HostTraceHooks *outlives = host_trace_begin(HOST_TRACE_HOST, "outlives");
    stop();
    host_trace_end(outlives);
    host_trace_end(host_trace_begin(HOST_TRACE_HOST, "after"));
    Analysed a(file_.path());
    ASSERT_NE(nullptr, a.find("/outlives"));
    EXPECT_EQ(nullptr, a.find("/after"));
    EXPECT_EQ(0, a->unmatched_ends);
    // A second recorder meets the thread anew.
    ProfRecorder *first = recorder_;
    unlink(file_.path());
    start();
    host_trace_end(outlives); // of the first one
    { HOST_TRACE_SCOPE(IO, "second"); }
    stop();
    Analysed b(file_.path());
    EXPECT_EQ(1, scope_count(b));
    prof_recorder_free(first);
}

// What a collector is told, all by the recorder's thread.
struct Told {
    std::map<uint64_t, int64_t> launches;
    std::map<uint64_t, uint64_t> clones;
    int64_t takes = 0, writes = 0, latest_ns = 0;
    bool in_order = true;

    static Told *of(void *self) { return static_cast<Told *>(self); }
    ProfCollector collector() {
        return {[](void *self) { of(self)->in_order &= of(self)->takes++ == of(self)->writes; },
                [](void *self, uint64_t correlation, int64_t time_ns) {
                    of(self)->in_order &= of(self)->takes == of(self)->writes + 1;
                    of(self)->launches[correlation] = time_ns;
                },
                [](void *self, uint64_t node, uint64_t original) { of(self)->clones[node] = original; },
                [](void *self, ProfWriter *writer) {
                    if (of(self)->writes++ > 0) return;
                    ProfStream stream = make_stream(PROF_RECORD_THREADS, PROF_STREAM_DEVICE);
                    ProfEvent event = make_event(PROF_EVENT_MEMORY, host_now_ns());
                    event.count = 4711;
                    prof_writer_stream(writer, &stream);
                    prof_writer_put(writer, stream.id, &event);
                },
                this};
    }
};

TEST_F(Record, CallsOfADevicesInterface) {
    static const char call[] = "__cudaLaunchKernel_ptsz_v13000", wait[] = "cudaStreamSynchronize_v3020",
                      other[] = "cuMemAlloc_v2";
    enum { CALLS = 20000, THREADS_OF_HOST = 4 };
    Told told;
    start(0, false, told.collector());
    int64_t before = host_now_ns();
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < THREADS_OF_HOST; t++) {
        threads.emplace_back([this, t] {
            HOST_TRACE_SCOPE(SIMULATION, "A");
            for (uint64_t i = 1; i <= CALLS; i++) {
                uint64_t number = t * 100000 + i;
                prof_record_call_begin(recorder_, call, false, i % 3 != 0, number);
                if (i % 1000 == 0) prof_record_call_number(recorder_, true, number + 50000);
                if (i % 100 == 0) prof_record_capture(recorder_, number << 32);
                if (i % 200 == 0) prof_record_clone(recorder_, number << 32 | 1, number << 32);
                prof_record_call_end(recorder_);
                if (i % 10 == 0)
                    prof_record_call_begin(recorder_, wait, true, false, 0), prof_record_call_end(recorder_);
                if (i % 10 == 0)
                    prof_record_call_begin(recorder_, other, false, false, 0), prof_record_call_end(recorder_);
                if (i % 1000 == 0) std::this_thread::yield();
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    int64_t after = host_now_ns();
    ASSERT_EQ(0, stop());
    EXPECT_TRUE(told.in_order);
    EXPECT_EQ(told.takes, told.writes);
    EXPECT_EQ(size_t{THREADS_OF_HOST} * (CALLS + CALLS / 1000), told.launches.size());
    for (const auto &[correlation, time_ns] : told.launches)
        EXPECT_TRUE(time_ns >= before - 1000 && time_ns <= after + 1000) << correlation;
    EXPECT_EQ(size_t{THREADS_OF_HOST} * (CALLS / 200), told.clones.size());
    for (const auto &[node, original] : told.clones)
        EXPECT_EQ(node, original | 1);
    Analysed a(file_.path());
    EXPECT_EQ(4711, a->memory_peak_bytes);
    for (auto [path, count, category] : {std::tuple("/A/cudaLaunchKernel", int{CALLS}, HOST_TRACE_SIMULATION),
                                         std::tuple("/A/cudaStreamSynchronize", CALLS / 10, HOST_TRACE_IDLE),
                                         std::tuple("/A/cuMemAlloc", CALLS / 10, HOST_TRACE_SIMULATION)}) {
        const ProfNode *node = a.find(path);
        ASSERT_NE(nullptr, node) << path;
        EXPECT_EQ(PROF_LAYER_API, node->layer) << path;
        EXPECT_EQ(category, node->category) << path;
        EXPECT_EQ(int64_t{THREADS_OF_HOST} * count, node->cell[0].count) << path;
    }
    EXPECT_EQ(0, a->unmatched_ends);
}

TEST_F(Record, WhatCannotBeWrittenIsReportedAtTheEnd) {
    ProfRecordOptions options = {};
    options.path = "/does/not/exist/x.trace";
    EXPECT_EQ(STATUS_IO, prof_recorder_start(&options, &recorder_));
    EXPECT_EQ(nullptr, host_trace_attached);
    start();
    { HOST_TRACE_SCOPE(HOST, "no room"); }
    struct rlimit before;
    ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &before));
    const struct rlimit none = {0, before.rlim_max}; // a disk that is full
    auto signal_before = signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &none));
    int64_t dropped = -1;
    Status status = prof_recorder_stop(recorder_, &dropped);
    std::string message = host_message();
    ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &before));
    signal(SIGXFSZ, signal_before);
    EXPECT_EQ(STATUS_IO, status);
    EXPECT_NE(std::string::npos, message.find(std::string("cannot write ") + file_.path())) << message;
}

// A scope and a join are two events each, a split and a phase one.
TEST_F(Record, WhatThreadsBeyondTheMostDoIsCounted) {
    start();
    { HOST_TRACE_SCOPE(HOST, "main"); }
    HOST_TRACE_SCOPE(HOST, "open");
    HostTraceMark mark = host_trace_mark();
    for (int i = 1; i < PROF_RECORD_THREADS; i++) // a place each
        std::thread([] { (void)host_trace_mark(); }).join();
    std::thread([mark] {
        host_trace_end(host_trace_begin(HOST_TRACE_HOST, "scope"));
        host_trace_end(host_trace_join(mark));
        const uint64_t weight[HOST_TRACE_CATEGORIES] = {3, 0, 5};
        host_trace_split(weight);
        host_trace_phase(HOST_PHASE_TRAIN);
    }).join();
    EXPECT_EQ(2 + 2 + 1 + 1, stop());
    Analysed a(file_.path());
    EXPECT_EQ(6, a->dropped);
    EXPECT_EQ(nullptr, a.find("/scope"));
}

// One pass over a long backlog reads the clocks once for each buffer, and older events lie before all of these
// readings.
TEST(Clock, ManyReadingsLeaveWhatLiesBeforeThem) {
    static ProfClock clock;
    prof_clock_init(&clock, true);
    int64_t before[2], after[2];
    uint64_t ticks[2];
    for (int i = 0; i < 2; i++) {
        spin(200000);
        before[i] = host_now_ns();
        ticks[i] = prof_ticks(clock.is_counter);
        after[i] = host_now_ns();
    }
    for (int i = 0; i < 5 * PROF_SYNCS_MAX; i++)
        prof_clock_sync(&clock);
    for (int i = 0; i < 2; i++) {
        EXPECT_GE(prof_clock_ns(&clock, ticks[i]), before[i] - 1000);
        EXPECT_LE(prof_clock_ns(&clock, ticks[i]), after[i] + 1000);
    }
}

TEST(Clock, InterpolatesBetweenReadings) {
    static ProfClock clock;
    prof_clock_init(&clock, true);
    std::mt19937_64 random(fresh_seed());
    int64_t last = 0;
    for (int i = 0; i < 3000; i++) {
        int64_t before = host_now_ns();
        uint64_t ticks = prof_ticks(clock.is_counter);
        int64_t after = host_now_ns();
        if (random() % 4 == 0) spin(static_cast<int64_t>(random() % 20000));
        prof_clock_sync(&clock);
        int64_t ns = prof_clock_ns(&clock, ticks);
        EXPECT_GE(ns, before - 1000);
        EXPECT_LE(ns, after + 1000);
        EXPECT_GE(ns, last);
        last = ns;
    }
}

} // namespace
} // namespace profiler_test
