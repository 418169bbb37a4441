// The analysis against one bin per nanosecond on random traces, and its rules on small ones.
#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/brute_force.h"
#include "tests/profiler/random_trace.h"

namespace profiler_test {
namespace {

// ---- comparison ----------------------------------------------------------------------------------------------------

void expect_wall(const ProfWall &expected, const ProfWall &found, const std::string &what) {
    EXPECT_EQ(expected.cpu_ns, found.cpu_ns) << what;
    EXPECT_EQ(expected.gpu_ns, found.gpu_ns) << what;
    EXPECT_EQ(expected.both_ns, found.both_ns) << what;
}

void expect_node(const BruteForce &brute, const std::string &path, const BruteNode &expected, const ProfNode &found) {
    EXPECT_EQ(expected.category, found.category) << path;
    EXPECT_EQ(brute.is_leaf(path), found.is_leaf) << path;
    EXPECT_EQ(expected.is_wait, found.is_wait) << path;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        EXPECT_EQ(expected.split[c], found.split[c]) << path;
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        const ProfCell &cell = found.cell[p];
        EXPECT_EQ(expected.count[p], cell.count) << path;
        for (int c = 0; c < PROF_COSTS; c++) {
            EXPECT_EQ(expected.costs[p][c], cell.costs[c]) << path;
            EXPECT_EQ(expected.main_costs[p][c], cell.main_costs[c]) << path;
            EXPECT_EQ(expected.covered_costs[p][c], cell.covered_costs[c]) << path;
        }
        EXPECT_EQ(expected.recorded[p], cell.recorded_units) << path;
        EXPECT_EQ(expected.main_recorded[p], cell.main_recorded_units) << path;
        EXPECT_EQ(expected.plain_ns[p], cell.plain_ns) << path;
        EXPECT_EQ(expected.thread_ns[p], cell.thread_ns) << path;
        EXPECT_EQ(expected.main_ns[p], cell.main_ns) << path;
        EXPECT_EQ(expected.intervals[p], cell.intervals) << path;
        EXPECT_EQ(expected.kernels[p], cell.kernels) << path;
        EXPECT_EQ(expected.device_ns[p], cell.device_ns) << path;
        EXPECT_EQ(expected.allocations[p], cell.allocations) << path;
        EXPECT_EQ(expected.allocated[p], cell.allocated_bytes) << path;
        EXPECT_EQ(expected.released[p], cell.released_bytes) << path;
        EXPECT_EQ(expected.bound_ns[p], cell.bound_ns) << path;
        expect_wall(expected.wall[p], cell.wall, path);
    }
}

void expect_calls(const BruteForce &brute, const ProfAnalysis &a) {
    for (int m = 0; m < PROF_MEMORIES; m++)
        EXPECT_EQ(0, memcmp(&brute.memory[m], &a.memory[m], sizeof a.memory[m])) << m;
    for (int c = 0; c < PROF_POOL_CHANGES; c++)
        EXPECT_EQ(brute.pools[c], a.pools[c]);
    EXPECT_EQ(brute.pool_peak, a.pool_peak_bytes);
    ASSERT_EQ(brute.ids.size(), static_cast<size_t>(a.id_count));
    for (int32_t i = 0; i < a.id_count; i++) {
        const ProfId &found = a.ids[i];
        ASSERT_EQ(1u, brute.ids.count({found.kind, found.id}));
        const ProfId &expected = brute.ids.at({found.kind, found.id});
        EXPECT_EQ(expected.launches, found.launches);
        EXPECT_EQ(expected.intervals, found.intervals);
        EXPECT_EQ(expected.device_ns, found.device_ns);
    }
    EXPECT_EQ(0, a.launches_beyond_ids);
}

void expect_totals(const BruteForce &brute, const ProfAnalysis &a) {
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        EXPECT_EQ(brute.phase_ns[p], a.phase_ns[p]);
        EXPECT_EQ(brute.idle[p], a.idle_ns[p]);
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
            expect_wall(brute.category[p][c], a.category[p][c], host_trace_category_name(HostTraceCategory(c)));
        for (int set = 0; set < PROF_CATEGORY_SETS; set++) {
            EXPECT_EQ(brute.gpu_bound[p][set], a.gpu_bound_ns[p][set]);
            EXPECT_EQ(brute.overlapped[p][set], a.overlapped_ns[p][set]);
        }
    }
    for (int g = 0; g < PROF_GAPS; g++)
        EXPECT_EQ(brute.gap[g], a.gap_ns[g]) << g;
    for (int from = 0; from <= HOST_TRACE_CATEGORIES; from++) {
        for (int to = 0; to <= HOST_TRACE_CATEGORIES; to++)
            EXPECT_EQ(brute.transitions[from][to], a.transitions[from][to]) << from << " to " << to;
    }
    EXPECT_EQ(brute.gaps, a.gaps);
    EXPECT_EQ(brute.intervals, a.intervals);
    EXPECT_EQ(brute.unknown_launches, a.unknown_launches);
    EXPECT_EQ(brute.dropped, a.dropped);
    EXPECT_EQ(brute.dropped_intervals, a.dropped_intervals);
    EXPECT_EQ(brute.reader_ns, a.reader_ns);
    EXPECT_EQ(brute.unmatched_ends, a.unmatched_ends);
    EXPECT_EQ(brute.device_sum, a.device_sum_ns);
    EXPECT_EQ(brute.device_busy, a.device_busy_ns);
    EXPECT_EQ(brute.kernel_busy, a.kernel_busy_ns);
    EXPECT_EQ(brute.device_span, a.device_span_ns);
    expect_calls(brute, a);
}

void expect_same(const Trace &trace, const Analysed &found) {
    BruteForce brute(trace);
    EXPECT_EQ(trace.end_ns - trace.process.start_ns, found->wall_ns);
    EXPECT_EQ(static_cast<size_t>(found->node_count), brute.nodes.size());
    for (const auto &[path, node] : brute.nodes) {
        const ProfNode *match = found.find(path);
        ASSERT_NE(nullptr, match) << path;
        expect_node(brute, path, node, *match);
    }
    expect_totals(brute, *found);
}

// Every nanosecond of the wall is in exactly one class.
int64_t bound_sum(const ProfAnalysis &a) {
    int64_t sum = 0;
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        sum += a.idle_ns[p];
        for (int set = 0; set < PROF_CATEGORY_SETS; set++)
            sum += a.gpu_bound_ns[p][set] + a.overlapped_ns[p][set];
        for (int32_t i = 0; i < a.node_count; i++)
            sum += a.nodes[i].cell[p].bound_ns;
    }
    return sum;
}

TEST(Analysis, EqualsOneBinPerNanosecond) {
    uint64_t seed = fresh_seed();
#ifdef SHOAL_SANITIZED
    const int traces = 300;
#else
    const int traces = 5000;
#endif
    for (int i = 0; i < traces; i++) {
        RandomTrace generator(seed + static_cast<uint64_t>(i));
        Trace trace = generator.trace();
        Analysed found(trace, static_cast<size_t>(generator.draw(1, 20)));
        expect_same(trace, found);
        EXPECT_EQ(found->wall_ns, bound_sum(*found));
        EXPECT_EQ(found->device_span_ns, found->device_busy_ns + found->gap_ns[0] + found->gap_ns[1] +
                                             found->gap_ns[2] + found->gap_ns[3] + found->gap_ns[4]);
        if (HasFailure()) FAIL() << "trace " << i << " of seed " << seed;
    }
}

// ---- rules ---------------------------------------------------------------------------------------------------------

enum Name : uint32_t { SIMULATE, ACT, LEARN, TALK, WAIT, BOOKS };

// A main thread, another one, a device queue; 1000 ns.
Trace small_trace() {
    Trace t;
    t.process = make_process(5000);
    t.end_ns = 6000;
    t.names = {make_name("simulate", HOST_TRACE_SIMULATION), make_name("act", HOST_TRACE_POLICY),
               make_name("learn", HOST_TRACE_LEARNING),      make_name("talk", HOST_TRACE_COMMUNICATION),
               make_name("wait", HOST_TRACE_IDLE),           make_name("books", HOST_TRACE_HOST)};
    t.streams = {{make_stream(0, PROF_STREAM_THREAD, true), {}},
                 {make_stream(1, PROF_STREAM_THREAD), {}},
                 {make_stream(2, PROF_STREAM_DEVICE, false, 1000), {}}};
    return t;
}

TEST(Analysis, AKernelIsChargedToTheScopeThatLaunchedIt) {
    Trace t = small_trace();
    t.streams[0].events = {begin(5000, SIMULATE), launch(5050, 1), end(5100), begin(5100, LEARN), end(6000)};
    t.streams[2].events = {interval(5400, 200, 1)}; // runs while the main thread learns
    Analysed a(t);
    const ProfCell &simulate = a.find("/simulate")->cell[0], &learn = a.find("/learn")->cell[0];
    EXPECT_EQ(200, simulate.device_ns);
    EXPECT_EQ(200, simulate.wall.gpu_ns);
    EXPECT_EQ(100, simulate.wall.cpu_ns);
    EXPECT_EQ(0, learn.device_ns);
    EXPECT_EQ(900, learn.wall.cpu_ns);
    EXPECT_EQ(200, a->overlapped_ns[0][1 << HOST_TRACE_SIMULATION]);
    EXPECT_EQ(100, simulate.bound_ns);
    EXPECT_EQ(700, learn.bound_ns);
}

TEST(Analysis, AGraphsNodeIsChargedToItsCaptureBelowTheLaunch) {
    Trace t = small_trace();
    ProfEvent capture = make_event(PROF_EVENT_CAPTURE, 5010);
    capture.node = 9;
    t.streams[0].events = {begin(5000, SIMULATE), capture, end(5100), begin(5200, LEARN), launch(5210, 4), end(5300)};
    t.streams[2].events = {interval(5220, 50, 4, 9), interval(5280, 20, 4, 8)};
    Analysed a(t);
    EXPECT_EQ(50, a.find("/learn/simulate")->cell[0].device_ns);
    EXPECT_EQ(20, a.find("/learn")->cell[0].device_ns); // a node whose capture is not in the trace
    EXPECT_EQ(0, a.find("/simulate")->cell[0].device_ns);
    EXPECT_TRUE(a.find("/learn")->is_leaf); // no thread was in what lies below it
}

TEST(Analysis, TheSixClasses) {
    Trace t = small_trace();
    t.streams[0].events = {begin(5000, LEARN),
                           launch(5000, 1),
                           begin(5010, WAIT),
                           end(5110),
                           end(5130),
                           begin(5130, TALK),
                           end(5160),
                           begin(5160, SIMULATE),
                           end(5200),
                           begin(5200, BOOKS),
                           begin(5250, SIMULATE),
                           begin(5260, WAIT),
                           end(5360),
                           end(5360),
                           end(5360)};
    t.streams[1].events = {begin(5260, SIMULATE), end(5300)};
    t.streams[2].events = {interval(5005, 100, 1)};
    Analysed a(t);
    unsigned learning = 1u << HOST_TRACE_LEARNING;
    EXPECT_EQ(95, a->gpu_bound_ns[0][learning]);       // 5010 to 5105
    EXPECT_EQ(5, a->overlapped_ns[0][learning]);       // 5005 to 5010
    EXPECT_EQ(25, a.find("/learn")->cell[0].bound_ns); // 5000 to 5005, 5110 to 5130
    EXPECT_EQ(30, a.find("/talk")->cell[0].bound_ns);
    EXPECT_EQ(40, a.find("/simulate")->cell[0].bound_ns);
    EXPECT_EQ(50, a.find("/books")->cell[0].bound_ns);
    EXPECT_EQ(10 + 40, a.find("/books/simulate")->cell[0].bound_ns); // it waits for the other thread
    EXPECT_EQ(5 + 60 + 640, a->idle_ns[0]);                          // both wait; nothing is open
    EXPECT_EQ(1000, bound_sum(*a));
}

TEST(Analysis, GapsHaveCauses) {
    Trace t = small_trace();
    t.streams[0].events = {begin(5000, LEARN), launch(5000, 1), end(5020),         begin(5030, BOOKS),
                           launch(5070, 2),    end(5080),       begin(5200, WAIT), end(5220),
                           begin(5220, TALK),  launch(5250, 3), end(5260)};
    t.streams[2].events = {interval(5010, 5, 1), interval(5100, 100, 2), interval(5300, 10, 3)};
    Analysed a(t);
    EXPECT_EQ(2, a->gaps);
    EXPECT_EQ(30 + 50, a->gap_ns[PROF_GAP_LAUNCH]); // 5070 to 5100, 5250 to 5300
    EXPECT_EQ(5 + 40, a->gap_ns[PROF_GAP_HOST]);    // 5015 to 5020, 5030 to 5070
    EXPECT_EQ(10, a->gap_ns[PROF_GAP_NONE_READY]);  // 5020 to 5030
    EXPECT_EQ(20, a->gap_ns[PROF_GAP_SYNCHRONISATION]);
    EXPECT_EQ(30, a->gap_ns[PROF_GAP_COMMUNICATION]); // 5220 to 5250
}

ProfEvent wait(int64_t time_ns, int64_t duration_ns, uint64_t correlation) {
    ProfEvent event = make_event(PROF_EVENT_WAIT, time_ns);
    event.duration_ns = duration_ns;
    event.correlation = correlation;
    event.name = WAIT;
    return event;
}

// A call that says nothing of waiting by its name, and waits.
TEST(Analysis, AWaitThatTheInterfaceTellsOfIsOneWhateverTheCall) {
    Trace t = small_trace();
    ProfEvent call = launch(5200, 7);
    call.kind = PROF_EVENT_CALL;
    t.streams[0].events = {begin(5000, LEARN), launch(5010, 1), begin(5200, BOOKS), call,
                           end(5400),          end(5500),       begin(5500, ACT),   launch(5500, 2)};
    t.streams[2].events = {interval(5020, 100, 1), wait(5230, 100, 7), interval(5600, 10, 2), wait(5700, 10, 7),
                           wait(5800, 10, 9)}; // one comes too late, and one is of no call
    Analysed a(t);
    const ProfNode *waits = a.find("/learn/books/wait");
    ASSERT_NE(nullptr, waits);
    EXPECT_TRUE(waits->is_wait);
    EXPECT_EQ(1, waits->cell[0].count);
    EXPECT_EQ(100, waits->cell[0].thread_ns);
    EXPECT_EQ(100, a.find("/learn/books")->cell[0].thread_ns);
    EXPECT_EQ(100, a->gap_ns[PROF_GAP_SYNCHRONISATION]);
    EXPECT_EQ(100, a->idle_ns[0]);
    EXPECT_EQ(nullptr, a.find("/act/wait"));
}

TEST(Analysis, AWaitEndsWithItsCall) {
    Trace t = small_trace();
    t.streams[0].events = {begin(5000, LEARN), launch(5000, 1), end(5100)};
    t.streams[2].events = {wait(5050, 500, 1)};
    Analysed a(t);
    EXPECT_EQ(50, a.find("/learn/wait")->cell[0].thread_ns);
    EXPECT_EQ(50, a.find("/learn")->cell[0].thread_ns);
    EXPECT_EQ(900, a.find("(outside)")->cell[0].thread_ns);
}

TEST(Analysis, MemoryIsChargedToTheScopeThatAllocatedIt) {
    Trace t = small_trace();
    t.streams[0].events = {begin(5000, LEARN), launch(5000, 1), end(5100), begin(5100, ACT), launch(5110, 2)};
    auto change = [](ProfEventKind kind, int64_t time_ns, uint64_t correlation, ProfMemory memory, uint64_t bytes) {
        ProfEvent event = make_event(kind, time_ns);
        event.correlation = correlation;
        event.memory = memory;
        event.count = bytes;
        return event;
    };
    t.streams[2].events = {change(PROF_EVENT_ALLOC, 5050, 1, PROF_MEMORY_DEVICE, 100),
                           change(PROF_EVENT_ALLOC, 5060, 1, PROF_MEMORY_PINNED, 7),
                           change(PROF_EVENT_RELEASE, 5070, 1, PROF_MEMORY_DEVICE, 60),
                           change(PROF_EVENT_ALLOC, 5120, 2, PROF_MEMORY_DEVICE, 50),
                           change(PROF_EVENT_RELEASE, 5130, 9, PROF_MEMORY_DEVICE, 1000)}; // more than is held
    Analysed a(t);
    EXPECT_EQ(1, a.find("/learn")->cell[0].allocations);
    EXPECT_EQ(100, a.find("/learn")->cell[0].allocated_bytes);
    EXPECT_EQ(60, a.find("/learn")->cell[0].released_bytes);
    EXPECT_EQ(50, a.find("/act")->cell[0].allocated_bytes);
    EXPECT_EQ(1000, a.find("(unknown launch)")->cell[0].released_bytes);
    EXPECT_EQ(100, a->memory[PROF_MEMORY_DEVICE].peak_bytes);
    EXPECT_EQ(0, a->memory[PROF_MEMORY_DEVICE].held_bytes);
    EXPECT_EQ(7, a->memory[PROF_MEMORY_PINNED].held_bytes);
}

// Of a call, each interface that it goes through may have a number and the id; calls that are no launches have it, too.
TEST(Analysis, LaunchesUnderAnIdCountOnce) {
    Trace t = small_trace();
    std::vector<ProfEvent> &calls = t.streams[0].events, &told = t.streams[2].events;
    for (uint64_t i = 1; i <= 5; i++) { // 1 and 2 are one launch, as are 3 and 4; 5 is none
        calls.push_back(launch(5000 + static_cast<int64_t>(i), i));
        if (i == 5) calls.back().kind = PROF_EVENT_CALL;
        told.push_back(make_event(PROF_EVENT_ID, calls.back().time_ns));
        told.back().correlation = i;
        told.back().count = i == 5 ? 43 : 42;
    }
    for (uint64_t i : {2, 3, 3})
        told.push_back(interval(5010, 7, i));
    Analysed a(t);
    ASSERT_EQ(1, a->id_count);
    EXPECT_EQ(42u, a->ids[0].id);
    EXPECT_EQ(2, a->ids[0].launches);
    EXPECT_EQ(3, a->ids[0].intervals);
    EXPECT_EQ(21, a->ids[0].device_ns);
}

// 70,000 ids are more than are kept; those that are keep their figures. Of several of one launch the first counts.
TEST(Analysis, IdsOfOtherTools) {
    Trace t = small_trace();
    t.end_ns = 200000;
    uint64_t many = PROF_IDS_MAX + 4000;
    for (uint64_t i = 1; i <= many; i++) {
        ProfEvent id = make_event(PROF_EVENT_ID, 5000 + static_cast<int64_t>(i));
        id.correlation = i;
        id.id_kind = static_cast<uint8_t>(i % 3);
        id.count = i % 2 == 0 ? i : UINT64_MAX - i;
        t.streams[0].events.push_back(launch(id.time_ns, i));
        t.streams[2].events.push_back(id);
        id.count = i % 2 == 0 ? 2 : UINT64_MAX - 1; // the first or second, if of that kind
        t.streams[2].events.push_back(id);
        id.count = ~i;
        t.streams[2].events.push_back(id);
        ProfEvent work = interval(id.time_ns, 2, i);
        t.streams[2].events.push_back(work);
    }
    Analysed a(t);
    ASSERT_EQ(int{PROF_IDS_MAX}, a->id_count);
    EXPECT_EQ(4000, a->launches_beyond_ids);
    for (int32_t i = 0; i < a->id_count; i++) {
        const ProfId &id = a->ids[i];
        uint64_t n = static_cast<uint64_t>(i) + 1;
        ASSERT_EQ(n % 3, id.kind);
        ASSERT_EQ(n % 2 == 0 ? n : UINT64_MAX - n, id.id);
        ASSERT_EQ(1, id.launches);
        ASSERT_EQ(1, id.intervals);
        ASSERT_EQ(2, id.device_ns);
    }
}

TEST(Analysis, FillIsTheShareOfTheDevice) {
    Trace t = small_trace();
    t.streams[2].events = {interval(5000, 100, 1), interval(5200, 100, 1), interval(5400, 100, 1)};
    t.streams[2].events[0].threads = 500;
    t.streams[2].events[1].threads = 5000; // the third says nothing
    Analysed a(t);
    EXPECT_EQ(200, a->fill_of_ns);
    EXPECT_EQ(150, a->fill_ns);
    EXPECT_EQ(3, a->unknown_launches);
}

TEST(Analysis, DeeperScopesThanThereIsRoomFor) {
    Trace t = small_trace();
    for (int i = 0; i < PROF_DEPTH_MAX + 10; i++)
        t.streams[0].events.push_back(begin(5000 + i, LEARN));
    for (int i = 0; i < PROF_DEPTH_MAX + 10; i++)
        t.streams[0].events.push_back(end(5500 + i));
    Analysed a(t);
    EXPECT_EQ(10, a->too_deep);
    EXPECT_EQ(0, a->unmatched_ends);
    EXPECT_EQ(1000 - (500 + PROF_DEPTH_MAX + 10 - 1) + 0, a.find("(outside)")->cell[0].thread_ns);
}

TEST(Analysis, SharesAddUpToTheLastNanosecond) {
    std::mt19937_64 random(fresh_seed());
    for (int i = 0; i < 10000; i++) {
        uint64_t weight[HOST_TRACE_CATEGORIES], sum = 0;
        for (uint64_t &w : weight)
            sum += w = random() % 3 == 0 ? 0 : random() >> (8 + random() % 56);
        int64_t total = static_cast<int64_t>(random() >> 8), given = 0, part[HOST_TRACE_CATEGORIES];
        prof_share(total, weight, HOST_TRACE_CATEGORIES, 2, part);
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
            given += part[c];
            double fair = sum > 0
                              ? static_cast<double>(total) * static_cast<double>(weight[c]) / static_cast<double>(sum)
                              : static_cast<double>(c == 2 ? total : 0);
            EXPECT_NEAR(fair, static_cast<double>(part[c]), 1.0 + 1e-12 * static_cast<double>(total));
        }
        EXPECT_EQ(total, given);
    }
}

} // namespace
} // namespace profiler_test
