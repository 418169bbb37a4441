// Device intervals on their way into a trace: what comes in any order and in any batches is what the trace holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>

#include "profiler/prof_intervals.h"
#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/synthetic.h"

namespace profiler_test {
namespace {

enum : uint32_t { FIRST = 2048 };

// As the trace has it: begin, duration, correlation, node, threads, work, name, device, queue, capacity.
using Row = std::tuple<int64_t, int64_t, uint64_t, uint64_t, uint64_t, int, std::string, uint64_t, uint64_t, uint64_t>;

class Intervals : public testing::Test {
  protected:
    void SetUp() override {
        ProfProcess process = make_process(1000);
        ASSERT_EQ(STATUS_OK, prof_writer_open(file_.path(), &process, &writer_)) << host_message();
        ASSERT_TRUE(prof_intervals_init(&intervals_, FIRST, 1000));
    }
    void TearDown() override {
        prof_writer_abandon(writer_);
        prof_intervals_free(&intervals_);
    }

    // Ends the trace and reads it: every interval with its queue, sorted.
    std::vector<Row> read() {
        std::vector<Row> rows;
        EXPECT_EQ(STATUS_OK, prof_writer_close(writer_, 1 << 30)) << host_message();
        writer_ = nullptr;
        ProfReader *reader = nullptr;
        EXPECT_EQ(STATUS_OK, prof_reader_open(file_.path(), &reader)) << host_message();
        streams_ = prof_reader_stream_count(reader);
        for (int s = 0; s < streams_; s++) {
            const ProfStream *stream = prof_reader_stream(reader, s);
            EXPECT_EQ(PROF_STREAM_DEVICE, stream->kind);
            EXPECT_GE(stream->id, FIRST);
            EXPECT_EQ("GPU " + std::to_string(stream->device) + " stream " + std::to_string(stream->os_id),
                      stream->name);
            ProfEvent e;
            while (prof_reader_next(reader, s, &e)) {
                EXPECT_EQ(PROF_EVENT_INTERVAL, e.kind);
                rows.emplace_back(e.time_ns, e.duration_ns, e.correlation, e.node, e.threads, e.work,
                                  prof_reader_name(reader, e.name)->text, stream->device, stream->os_id,
                                  stream->capacity);
            }
        }
        backward_ = prof_reader_damage(reader)->backward_clocks;
        prof_reader_close(reader);
        std::sort(rows.begin(), rows.end());
        return rows;
    }

    static ProfInterval make(int64_t begin, int64_t end, uint64_t correlation) {
        ProfInterval i = {};
        i.kind = PROF_EVENT_INTERVAL;
        i.begin_ns = begin;
        i.end_ns = end;
        i.correlation = correlation;
        i.name = "k";
        return i;
    }

    TraceFile file_;
    ProfWriter *writer_ = nullptr;
    ProfIntervals intervals_ = {};
    int streams_ = 0;
    uint64_t backward_ = 0;
};

TEST_F(Intervals, AnyOrderAnyBatches) {
    static const char *const names[] = {"first", "second", "third"};
    std::mt19937_64 random(fresh_seed());
    auto draw = [&](uint64_t below) { return random() % below; };
    intervals_.capacity_of[0] = 1000;
    intervals_.capacity_of[1] = 2000;
    // In the order of time, as a device works; then late by a while of its own, as buffers come back.
    std::vector<std::pair<int64_t, ProfInterval>> coming;
    std::vector<Row> expected;
    std::map<std::pair<uint32_t, uint32_t>, int64_t> free_at;
    for (uint64_t c = 1; c <= 20000; c++) {
        ProfInterval i = make(0, 0, c);
        i.device = static_cast<uint32_t>(draw(3));
        i.queue = static_cast<uint32_t>(draw(4));
        int64_t &from = free_at[{i.device, i.queue}];
        i.begin_ns = std::max<int64_t>(from, 2000 + static_cast<int64_t>(c) * 10) + static_cast<int64_t>(draw(20));
        from = i.end_ns = i.begin_ns + static_cast<int64_t>(draw(100));
        i.node = draw(3) == 0 ? draw(1000) : 0;
        i.threads = draw(2) == 0 ? draw(100000) : 0;
        i.work = static_cast<ProfDeviceWork>(draw(PROF_DEVICE_WORKS));
        i.name = names[draw(3)];
        coming.emplace_back(i.end_ns + (draw(10) == 0 ? static_cast<int64_t>(draw(20000)) : 0), i);
        uint64_t capacity = i.device < 2 ? 1000 * (i.device + 1) : 0;
        expected.emplace_back(i.begin_ns, i.end_ns - i.begin_ns, c, i.node, i.threads, i.work, i.name, i.device,
                              i.queue, capacity);
    }
    std::stable_sort(coming.begin(), coming.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    for (size_t n = 0; n < coming.size(); n++) {
        prof_intervals_add(&intervals_, &coming[n].second);
        if (draw(100) == 0) prof_intervals_write(&intervals_, writer_);
    }
    prof_intervals_write(&intervals_, writer_);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(expected, read());
    EXPECT_EQ(0, intervals_.dropped);
    EXPECT_EQ(0u, backward_);
    EXPECT_GT(streams_, 12); // some came too late for the stream of their queue
    EXPECT_LT(streams_, 12 * PROF_QUEUE_STREAMS_MAX);
}

TEST_F(Intervals, BeginNoEarlierThanTheirLaunch) {
    prof_intervals_launch(&intervals_, 5, 3000);
    prof_intervals_launch(&intervals_, 6 + PROF_LAUNCHES_KNOWN, 9000); // not that of 6
    for (ProfInterval i : {make(2900, 3100, 5), make(2900, 3100, 6), make(2000, 2500, 7), make(900, 1100, 8),
                           make(900, 999, 9)}) // the last one ended before the trace began
        prof_intervals_add(&intervals_, &i);
    ProfInterval before = make(2800, 2900, 5); // wholly
    prof_intervals_add(&intervals_, &before);
    prof_intervals_write(&intervals_, writer_);
    std::vector<std::pair<int64_t, int64_t>> times;
    for (const Row &row : read())
        times.emplace_back(std::get<0>(row), std::get<1>(row));
    EXPECT_EQ((std::vector<std::pair<int64_t, int64_t>>{{900, 200}, {2000, 500}, {2900, 200}, {3000, 0}, {3000, 100}}),
              times);
}

TEST_F(Intervals, NodesOfGraphsAreThoseThatWereCaptured) {
    std::mt19937_64 random(fresh_seed());
    std::map<uint64_t, uint64_t> captured;
    std::map<uint64_t, int> depth;
    std::vector<uint64_t> nodes;
    for (uint64_t n = 1; n <= 3000; n++) { // clones of what there is, or new ones; at most some deep
        uint64_t node = n << 32 | random() % 7;
        uint64_t original = nodes.empty() || random() % 3 == 0 ? node : nodes[random() % nodes.size()];
        bool is_clone = original != node && depth[original] < 8;
        depth[node] = is_clone ? depth[original] + 1 : 0;
        captured[node] = is_clone ? captured[original] : node;
        if (is_clone) prof_intervals_clone(&intervals_, node, original);
        if (!is_clone || random() % 4 == 0) nodes.push_back(node);
    }
    int64_t now = 2000;
    std::vector<uint64_t> expected, found;
    for (auto [node, original] : captured) {
        ProfInterval i = make(now, now + 1, 1);
        i.node = node;
        now += 2;
        prof_intervals_add(&intervals_, &i);
        expected.push_back(original);
    }
    prof_intervals_write(&intervals_, writer_);
    for (const Row &row : read())
        found.push_back(std::get<3>(row));
    EXPECT_EQ(expected, found);
}

TEST_F(Intervals, NamesAreWrittenAsPeopleWriteThem) {
    std::deque<std::string> symbols = {"plain", "_Z3addPfi", "_Zbroken", std::string(500, 'x')};
    int64_t now = 2000;
    for (const std::string &symbol : symbols) {
        ProfInterval i = make(now, now + 1, 1);
        i.name = symbol.c_str();
        now += 2;
        prof_intervals_add(&intervals_, &i);
    }
    prof_intervals_write(&intervals_, writer_);
    std::vector<std::string> names;
    for (const Row &row : read())
        names.push_back(std::get<6>(row));
    EXPECT_EQ((std::vector<std::string>{"plain", "add(float*, int)", "_Zbroken", std::string(PROF_TEXT_MAX - 1, 'x')}),
              names);
}

// A release gives back what was allocated here, whichever of the two comes first; and ids have their launch's time.
TEST_F(Intervals, WhatIsKnownOfCalls) {
    auto call = [](ProfEventKind kind, int64_t at, uint64_t correlation, uint64_t address, uint64_t count) {
        ProfInterval i = make(at, at, correlation);
        i.kind = kind;
        i.queue = PROF_QUEUE_OF_CALLS;
        i.name = nullptr;
        i.address = address;
        i.count = count;
        return i;
    };
    prof_intervals_launch(&intervals_, 7, 2500);
    for (ProfInterval i : {call(PROF_EVENT_RELEASE, 3000, 1, 16, 100), call(PROF_EVENT_ALLOC, 2000, 2, 16, 100),
                           call(PROF_EVENT_RELEASE, 3100, 3, 16, 100),  // it was given back before
                           call(PROF_EVENT_RELEASE, 3200, 4, 32, 5000), // it was there before the trace
                           call(PROF_EVENT_ALLOC, 3300, 5, 16, 70), call(PROF_EVENT_RELEASE, 3400, 6, 16, 70),
                           call(PROF_EVENT_ID, 0, 7, 0, 42), call(PROF_EVENT_ID, 0, 8, 0, 43)}) // of no launch
        prof_intervals_add(&intervals_, &i);
    ProfInterval wait = call(PROF_EVENT_WAIT, 2600, 7, 0, 0);
    wait.end_ns = 2700;
    wait.name = "wait for a stream";
    prof_intervals_add(&intervals_, &wait);
    prof_intervals_write(&intervals_, writer_);
    ASSERT_EQ(STATUS_OK, prof_writer_close(writer_, 1 << 30)) << host_message();
    writer_ = nullptr;
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_OK, prof_reader_open(file_.path(), &reader)) << host_message();
    ASSERT_EQ(1, prof_reader_stream_count(reader));
    EXPECT_STREQ("GPU 0: waits, memory", prof_reader_stream(reader, 0)->name);
    std::vector<std::tuple<ProfEventKind, int64_t, uint64_t, uint64_t>> found;
    ProfEvent e;
    while (prof_reader_next(reader, 0, &e)) {
        bool is_wait = e.kind == PROF_EVENT_WAIT;
        if (is_wait) {
            EXPECT_STREQ("wait for a stream", prof_reader_name(reader, e.name)->text);
            EXPECT_EQ(HOST_TRACE_IDLE, prof_reader_name(reader, e.name)->category);
        }
        found.emplace_back(e.kind, e.time_ns, e.correlation, is_wait ? static_cast<uint64_t>(e.duration_ns) : e.count);
    }
    prof_reader_close(reader);
    decltype(found) expected = {{PROF_EVENT_ALLOC, 2000, 2, 100}, {PROF_EVENT_ID, 2500, 7, 42},
                                {PROF_EVENT_WAIT, 2600, 7, 100},  {PROF_EVENT_RELEASE, 3000, 1, 100},
                                {PROF_EVENT_RELEASE, 3100, 3, 0}, {PROF_EVENT_RELEASE, 3200, 4, 0},
                                {PROF_EVENT_ALLOC, 3300, 5, 70},  {PROF_EVENT_RELEASE, 3400, 6, 70}};
    EXPECT_EQ(expected, found);
}

// What tells no device of its own is of the first that something was recorded of.
TEST_F(Intervals, TheDeviceOfWhatTellsNone) {
    ProfInterval wait = make(2000, 2100, 1), pool = make(2200, 2200, 1);
    wait.kind = PROF_EVENT_WAIT;
    pool.kind = PROF_EVENT_POOL;
    wait.queue = pool.queue = PROF_QUEUE_OF_CALLS;
    wait.device = PROF_NO_DEVICE;
    pool.device = 3;
    prof_intervals_add(&intervals_, &wait);
    EXPECT_EQ(nullptr, prof_intervals_first(&intervals_));
    prof_intervals_add(&intervals_, &pool);
    ASSERT_NE(nullptr, prof_intervals_first(&intervals_));
    EXPECT_EQ(PROF_EVENT_POOL, prof_intervals_first(&intervals_)->kind);
    intervals_.device = prof_intervals_first(&intervals_)->device;
    prof_intervals_write(&intervals_, writer_);
    ASSERT_EQ(STATUS_OK, prof_writer_close(writer_, 1 << 30)) << host_message();
    writer_ = nullptr;
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_OK, prof_reader_open(file_.path(), &reader)) << host_message();
    ASSERT_EQ(1, prof_reader_stream_count(reader));
    EXPECT_STREQ("GPU 3: waits, memory", prof_reader_stream(reader, 0)->name);
    prof_reader_close(reader);
}

TEST_F(Intervals, AQueueThatIsOutOfAllOrderLosesNothing) {
    // Every batch is before the one before it: at some point times of one stream go backwards, and that is said.
    for (int64_t at = 100; at > 0; at--) {
        ProfInterval i = make(2000 + at * 10, 2005 + at * 10, static_cast<uint64_t>(at));
        prof_intervals_add(&intervals_, &i);
        prof_intervals_write(&intervals_, writer_);
    }
    EXPECT_EQ(100u, read().size());
    EXPECT_EQ(int{PROF_QUEUE_STREAMS_MAX}, streams_);
    EXPECT_EQ(uint64_t{100 - PROF_QUEUE_STREAMS_MAX}, backward_);
}

} // namespace
} // namespace profiler_test
