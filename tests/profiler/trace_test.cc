// A trace's way into a file and out again, and what is left of one that is damaged.
#include <gtest/gtest.h>

#include <random>

#include "profiler/prof_format.h"
#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/synthetic.h"

namespace profiler_test {
namespace {

// What is said by an event of kind OTHER.
void expect_note(const ProfEvent &expected, const ProfEvent &found) {
    switch (expected.kind) {
    case PROF_EVENT_PHASE:
        EXPECT_EQ(expected.phase, found.phase);
        break;
    case PROF_EVENT_STRETCH:
        EXPECT_EQ(expected.is_plain, found.is_plain);
        EXPECT_EQ(expected.duration_ns, found.duration_ns);
        EXPECT_EQ(expected.pauses, found.pauses);
        EXPECT_EQ(expected.count, found.count);
        [[fallthrough]];
    case PROF_EVENT_READER:
        EXPECT_EQ(expected.processor_ns, found.processor_ns);
        break;
    case PROF_EVENT_WAIT:
        EXPECT_EQ(expected.duration_ns, found.duration_ns);
        EXPECT_EQ(expected.name, found.name);
        [[fallthrough]];
    case PROF_EVENT_CALL:
        EXPECT_EQ(expected.correlation, found.correlation);
        break;
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_RELEASE:
        EXPECT_EQ(expected.memory, found.memory);
        EXPECT_EQ(expected.correlation, found.correlation);
        EXPECT_EQ(expected.count, found.count);
        break;
    case PROF_EVENT_POOL:
        EXPECT_EQ(expected.change, found.change);
        EXPECT_EQ(expected.correlation, found.correlation);
        EXPECT_EQ(expected.count, found.count);
        break;
    case PROF_EVENT_ID:
        EXPECT_EQ(expected.id_kind, found.id_kind);
        EXPECT_EQ(expected.correlation, found.correlation);
        EXPECT_EQ(expected.count, found.count);
        break;
    case PROF_EVENT_DROPPED:
    case PROF_EVENT_BUSY:
    case PROF_EVENT_MEMORY:
    case PROF_EVENT_OVERHEAD:
        EXPECT_EQ(expected.count, found.count);
        break;
    default:
        break;
    }
}

void expect_event(const ProfEvent &expected, const ProfEvent &found) {
    ASSERT_EQ(expected.kind, found.kind);
    EXPECT_EQ(expected.time_ns, found.time_ns);
    switch (expected.kind) {
    case PROF_EVENT_JOIN:
        EXPECT_EQ(expected.stream, found.stream);
        [[fallthrough]];
    case PROF_EVENT_BEGIN:
        EXPECT_EQ(expected.name, found.name);
        break;
    case PROF_EVENT_LAUNCH:
        EXPECT_EQ(expected.correlation, found.correlation);
        break;
    case PROF_EVENT_INTERVAL:
        EXPECT_EQ(expected.duration_ns, found.duration_ns);
        EXPECT_EQ(expected.correlation, found.correlation);
        EXPECT_EQ(expected.node, found.node);
        EXPECT_EQ(expected.work, found.work);
        EXPECT_EQ(expected.name, found.name);
        EXPECT_EQ(expected.threads, found.threads);
        break;
    case PROF_EVENT_SPLIT:
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
            EXPECT_EQ(expected.weight[c], found.weight[c]);
        break;
    case PROF_EVENT_CAPTURE:
        EXPECT_EQ(expected.node, found.node);
        break;
    default:
        expect_note(expected, found);
        break;
    }
}

class Generator {
  public:
    explicit Generator(uint64_t seed) : random_(seed) {}

    // Two threads and a queue, `count` events each, with every kind and numbers of every size.
    Trace trace(int count, int names = 12) {
        names_ = static_cast<uint32_t>(names);
        Trace t;
        t.process = make_process(1000);
        t.process.devices = 3;
        t.process.threads = 5;
        t.process.envs = 4096;
        t.process.env_steps = PROF_COUNT_MAX - 1;
        for (int i = 0; i < names; i++)
            t.names.push_back(
                make_name("name " + std::to_string(i), i % 2 == 0 ? i % 7 : PROF_CATEGORY_ENCLOSING, i % PROF_LAYERS));
        t.streams = {{make_stream(0, PROF_STREAM_THREAD, true), {}},
                     {make_stream(7, PROF_STREAM_THREAD), {}},
                     {make_stream(300, PROF_STREAM_DEVICE, false, 99), {}}};
        for (Stream &stream : t.streams) {
            int64_t now = 1000;
            for (int i = 0; i < count; i++) {
                now += 1 + static_cast<int64_t>(number() >> 24); // so that kind and time tell events apart
                stream.events.push_back(stream.info.kind == PROF_STREAM_DEVICE ? device_event(now) : thread_event(now));
            }
            t.end_ns = std::max(t.end_ns, now);
        }
        return t;
    }

  private:
    uint64_t number() { return random_() >> (8 + random_() % 56); } // below 2^56
    uint32_t name() { return static_cast<uint32_t>(random_() % names_); }

    ProfEvent device_event(int64_t now) {
        static const ProfEventKind notes[] = {PROF_EVENT_DROPPED,  PROF_EVENT_BUSY, PROF_EVENT_MEMORY,
                                              PROF_EVENT_OVERHEAD, PROF_EVENT_WAIT, PROF_EVENT_ALLOC,
                                              PROF_EVENT_RELEASE,  PROF_EVENT_POOL, PROF_EVENT_ID};
        ProfEvent e = interval(now, static_cast<int64_t>(number()), random_(), random_());
        if (random_() % 4 == 0) {
            e.kind = notes[random_() % (sizeof notes / sizeof notes[0])];
            e.count = e.kind == PROF_EVENT_BUSY ? random_() % 101 : number();
        }
        e.work = static_cast<ProfDeviceWork>(random_() % PROF_DEVICE_WORKS);
        e.memory = static_cast<ProfMemory>(random_() % PROF_MEMORIES);
        e.change = static_cast<ProfPoolChange>(random_() % PROF_POOL_CHANGES);
        e.id_kind = static_cast<uint8_t>(random_());
        if (e.kind == PROF_EVENT_ID) e.count = random_();
        e.name = name();
        e.threads = random_() >> (random_() % 64);
        return e;
    }

    ProfEvent thread_event(int64_t now) {
        static const ProfEventKind kinds[] = {
            PROF_EVENT_END,   PROF_EVENT_BEGIN,   PROF_EVENT_JOIN,  PROF_EVENT_LAUNCH, PROF_EVENT_CAPTURE,
            PROF_EVENT_PHASE, PROF_EVENT_END,     PROF_EVENT_SPLIT, PROF_EVENT_BEGIN,  PROF_EVENT_DROPPED,
            PROF_EVENT_CALL,  PROF_EVENT_STRETCH, PROF_EVENT_READER};
        ProfEvent e = make_event(kinds[random_() % (sizeof kinds / sizeof kinds[0])], now);
        e.is_plain = random_() % 2 == 0;
        e.duration_ns = static_cast<int64_t>(number());
        e.processor_ns = static_cast<int64_t>(number());
        e.pauses = random_() >> (random_() % 64);
        e.name = name();
        e.stream = static_cast<uint32_t>(random_() % PROF_STREAMS_MAX);
        e.correlation = random_() >> (random_() % 64);
        e.node = random_() >> (random_() % 64);
        e.phase = static_cast<HostTracePhase>(random_() % HOST_TRACE_PHASES);
        e.count = number() % 1000000;
        for (uint64_t &weight : e.weight)
            weight = number();
        return e;
    }

    std::mt19937_64 random_;
    uint32_t names_ = 1;
};

TEST(Trace, EveryEventComesBack) {
    uint64_t seed = fresh_seed();
    Trace t = Generator(seed).trace(20000, 300);
    TraceFile file;
    write_trace(t, file.path(), 777);
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_OK, prof_reader_open(file.path(), &reader)) << host_message();
    const ProfProcess *process = prof_reader_process(reader);
    EXPECT_STREQ("test", process->tool);
    EXPECT_STREQ("no \"device\"", process->device);
    EXPECT_STREQ("no reason", process->no_device);
    EXPECT_EQ(77, process->pid);
    EXPECT_EQ(1000, process->start_ns);
    EXPECT_EQ(2000, process->start_unix_ns);
    EXPECT_EQ(-1, process->offset_error_ns);
    EXPECT_EQ(3, process->devices);
    EXPECT_EQ(5, process->threads);
    EXPECT_EQ(4096, process->envs);
    EXPECT_EQ(PROF_COUNT_MAX - 1, process->env_steps);
    for (uint32_t i = 0; i < t.names.size(); i++) {
        const ProfName *name = prof_reader_name(reader, i);
        ASSERT_NE(nullptr, name);
        EXPECT_EQ(0, memcmp(name, &t.names[i], sizeof *name));
    }
    EXPECT_EQ(nullptr, prof_reader_name(reader, 300));
    ASSERT_EQ(3, prof_reader_stream_count(reader));
    for (int pass = 0; pass < 2; pass++) {
        for (int s = 0; s < 3; s++) {
            const Stream &stream = t.streams[static_cast<size_t>(s)];
            const ProfStream *info = prof_reader_stream(reader, s);
            EXPECT_EQ(stream.info.id, info->id);
            EXPECT_EQ(stream.info.kind, info->kind);
            EXPECT_EQ(stream.info.is_main, info->is_main);
            EXPECT_EQ(stream.info.capacity, info->capacity);
            EXPECT_STREQ(stream.info.name, info->name);
            std::vector<ProfEvent> events = read_stream(reader, s);
            ASSERT_EQ(stream.events.size(), events.size());
            for (size_t i = 0; i < events.size(); i++)
                expect_event(stream.events[i], events[i]);
        }
        EXPECT_TRUE(prof_reader_is_whole(reader));
        prof_reader_rewind(reader);
    }
    int64_t end_ns = 0;
    EXPECT_TRUE(prof_reader_end(reader, &end_ns));
    EXPECT_EQ(t.end_ns, end_ns);
    prof_reader_close(reader);
}

// What a damaged trace still gives: a subset of its events, in their order, with times as they were.
void expect_subset(ProfReader *reader, const Trace &t) {
    for (int s = 0; s < prof_reader_stream_count(reader); s++) {
        const ProfStream *info = prof_reader_stream(reader, s);
        size_t at = 0;
        while (at < t.streams.size() && t.streams[at].info.id != info->id)
            at++;
        ASSERT_LT(at, t.streams.size());
        const std::vector<ProfEvent> &all = t.streams[at].events;
        size_t next = 0;
        for (const ProfEvent &event : read_stream(reader, s)) {
            if (event.kind == PROF_EVENT_LOST || event.kind == PROF_EVENT_RESYNC) continue;
            while (next < all.size() && (all[next].kind != event.kind || all[next].time_ns != event.time_ns))
                next++;
            ASSERT_LT(next, all.size()) << "an event that was never written";
            expect_event(all[next++], event);
        }
    }
}

TEST(Trace, CutOffAnywhere) {
    Trace t = Generator(fresh_seed()).trace(40);
    TraceFile file;
    write_trace(t, file.path(), 5);
    std::vector<uint8_t> bytes = file.bytes();
    int analysed = 0;
    for (size_t size = 0; size < bytes.size(); size++) {
        std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        ProfReader *reader = nullptr;
        Status status = prof_reader_open_memory(part.data(), size, "part", &reader);
        if (status != STATUS_OK) {
            ASSERT_EQ(STATUS_CORRUPT, status);
            ASSERT_NE(nullptr, strstr(host_message(), "part: no trace"));
            continue;
        }
        analysed++;
        EXPECT_TRUE(prof_reader_damage(reader)->is_cut);
        expect_subset(reader, t);
        ProfAnalysis analysis;
        ASSERT_EQ(STATUS_OK, prof_analyse(reader, &analysis));
        prof_analysis_free(&analysis);
        prof_reader_close(reader);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(analysed, static_cast<int>(bytes.size()) * 9 / 10);
}

TEST(Trace, AnyFlippedBitIsSaid) {
    std::mt19937_64 random(fresh_seed());
    Trace t = Generator(random()).trace(60);
    TraceFile file;
    write_trace(t, file.path(), 10);
    const std::vector<uint8_t> bytes = file.bytes();
    for (size_t i = 0; i < bytes.size(); i++) {
        std::vector<uint8_t> flipped = bytes;
        flipped[i] = static_cast<uint8_t>(flipped[i] ^ (1u << (random() % 8)));
        ProfReader *reader = nullptr;
        ASSERT_EQ(STATUS_OK, prof_reader_open_memory(flipped.data(), flipped.size(), "flipped", &reader));
        expect_subset(reader, t);
        EXPECT_FALSE(prof_reader_is_whole(reader)) << "byte " << i;
        ProfAnalysis analysis;
        ASSERT_EQ(STATUS_OK, prof_analyse(reader, &analysis));
        prof_analysis_free(&analysis);
        prof_reader_close(reader);
        if (HasFatalFailure()) return;
    }
}

TEST(Trace, WhatIsLostIsLostAndNothingElse) {
    Trace t;
    t.process = make_process(0);
    t.end_ns = 30000;
    t.names = {make_name("outer", HOST_TRACE_HOST), make_name("inner", HOST_TRACE_LEARNING)};
    t.streams = {{make_stream(0, PROF_STREAM_THREAD, true), {}}, {make_stream(1, PROF_STREAM_THREAD), {}}};
    t.streams[0].events.push_back(begin(0, 0));
    for (int i = 0; i < 3000; i++) {
        t.streams[0].events.push_back(begin(10 * i + 2, 1));
        t.streams[0].events.push_back(end(10 * i + 9));
    }
    t.streams[1].events.assign(6001, make_event(PROF_EVENT_DROPPED, 0)); // so that blocks alternate
    TraceFile file;
    write_trace(t, file.path(), 1001);
    std::vector<uint8_t> bytes = file.bytes();
    // The second block of the first stream: events 1001 to 2001, from 5000 on; a scope of both is open in it.
    size_t at = 0;
    ProfBlock block = {};
    for (;; at += PROF_HEADER_BYTES + block.payload_bytes) {
        ASSERT_TRUE(prof_get_header(&bytes[at], &block));
        if (block.type == PROF_BLOCK_EVENTS && block.stream == 0 && block.sequence == 1) break;
    }
    for (bool header : {true, false}) {
        std::vector<uint8_t> damaged = bytes;
        damaged[at + (header ? 10 : PROF_HEADER_BYTES + 100)] ^= 4;
        ProfReader *reader = nullptr;
        ASSERT_EQ(STATUS_OK, prof_reader_open_memory(damaged.data(), damaged.size(), "damaged", &reader));
        ProfAnalysis a;
        ASSERT_EQ(STATUS_OK, prof_analyse(reader, &a));
        EXPECT_EQ(30000, a.wall_ns);
        EXPECT_EQ(a.nodes[PROF_NODE_LOST].cell[0].thread_ns, t.streams[0].events[2002].time_ns - 4999);
        EXPECT_EQ(0, a.unmatched_ends);
        EXPECT_EQ(0, a.nodes[PROF_NODE_OUTSIDE].cell[0].main_ns);
        EXPECT_EQ(header ? 0u : 1001u, a.damage.lost_events);
        EXPECT_EQ(header ? 1u : 0u, a.damage.missing_blocks);
        prof_analysis_free(&a);
        prof_reader_close(reader);
    }
}

TEST(Trace, ClocksThatRunBackwards) {
    Trace t;
    t.process = make_process(100);
    t.end_ns = 1000;
    t.names = {make_name("work", HOST_TRACE_HOST)};
    t.streams = {{make_stream(0, PROF_STREAM_THREAD, true),
                  {begin(200, 0), end(300), begin(250, 0), end(260), begin(400, 0), end(350), begin(50, 0), end(500)}}};
    Analysed a(t);
    EXPECT_EQ(3u, a->damage.backward_clocks);
    EXPECT_EQ(900, a->wall_ns);
    EXPECT_EQ(100 + 0 + 0 + 100, a.find("/work")->cell[0].thread_ns);
    EXPECT_EQ(4, a.find("/work")->cell[0].count);
}

// Codes of threads only, of queues only, and of both.
TEST(Trace, CodesAreWhereTheyBelong) {
    static const ProfEventKind both[] = {PROF_EVENT_PHASE, PROF_EVENT_DROPPED, PROF_EVENT_READER};
    static const ProfEventKind threads[] = {PROF_EVENT_STRETCH, PROF_EVENT_CALL};
    for (uint64_t code = 1; prof_kind_of_code(code) != PROF_EVENT_OTHER; code++) {
        ProfEventKind kind = prof_kind_of_code(code);
        bool is_of_both = std::find(std::begin(both), std::end(both), kind) != std::end(both);
        bool is_of_threads = std::find(std::begin(threads), std::end(threads), kind) != std::end(threads);
        for (ProfStreamKind stream : {PROF_STREAM_THREAD, PROF_STREAM_DEVICE}) {
            Trace t;
            t.process = make_process(0);
            t.end_ns = 100;
            t.names = {make_name("name", HOST_TRACE_IDLE)};
            t.streams = {{make_stream(0, stream), {make_event(kind, 10)}}};
            Analysed a(t);
            bool belongs = is_of_both || is_of_threads == (stream == PROF_STREAM_THREAD);
            EXPECT_EQ(belongs ? 0u : 1u, a->damage.damaged_blocks) << "code " << code << " on " << stream;
            EXPECT_EQ(belongs ? 0u : 1u, a->damage.lost_events) << "code " << code << " on " << stream;
        }
    }
}

TEST(Trace, AnotherVersionIsNamed) {
    Trace t = Generator(1).trace(10);
    TraceFile file;
    write_trace(t, file.path());
    std::vector<uint8_t> bytes = file.bytes();
    for (size_t at = 0; at < bytes.size();) {
        ProfBlock block = {};
        ASSERT_TRUE(prof_get_header(&bytes[at], &block));
        block.version = 9;
        prof_put_header(&bytes[at], &block);
        at += PROF_HEADER_BYTES + block.payload_bytes;
    }
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_CORRUPT, prof_reader_open_memory(bytes.data(), bytes.size(), "new", &reader));
    EXPECT_STREQ("new: a trace of version 9; this program reads versions 1 to 2", host_message());
}

TEST(Trace, BlocksOfUnknownTypesArePassedOver) {
    Trace t = Generator(2).trace(10);
    TraceFile file;
    write_trace(t, file.path());
    std::vector<uint8_t> bytes = file.bytes(), added(PROF_HEADER_BYTES + 5, 7);
    ProfBlock block = {};
    block.version = PROF_VERSION;
    block.type = 77;
    block.payload_bytes = 5;
    block.payload_hash = prof_hash(&added[PROF_HEADER_BYTES], 5);
    prof_put_header(added.data(), &block);
    bytes.insert(bytes.end(), added.begin(), added.end());
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_OK, prof_reader_open_memory(bytes.data(), bytes.size(), "new", &reader));
    EXPECT_EQ(1u, prof_reader_damage(reader)->foreign_blocks);
    EXPECT_EQ(0u, prof_reader_damage(reader)->skipped_bytes);
    EXPECT_FALSE(prof_reader_damage(reader)->is_cut);
    prof_reader_close(reader);
}

TEST(Trace, WhatIsNoTrace) {
    const std::string text(5000, 'S');
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_CORRUPT, prof_reader_open_memory(text.data(), text.size(), "text", &reader));
    EXPECT_STREQ("text: no trace: there is no whole block in it", host_message());
    ASSERT_EQ(STATUS_CORRUPT, prof_reader_open_memory("", 0, "void", &reader));
    EXPECT_STREQ("void: no trace: it is empty", host_message());
    ASSERT_EQ(STATUS_IO, prof_reader_open("/does/not/exist", &reader));
    ASSERT_EQ(STATUS_IO, prof_reader_open("/", &reader));
}

TEST(Trace, WritingToAFullDiskIsReportedOnce) {
    if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
    ProfWriter *writer = nullptr;
    ProfProcess process = make_process(0);
    EXPECT_EQ(STATUS_IO, prof_writer_open("/dev/full", &process, &writer)); // it is there already
    TraceFile file;
    ASSERT_EQ(0, symlink("/dev/full", file.path()));
    EXPECT_EQ(STATUS_IO, prof_writer_open(file.path(), &process, &writer));
    EXPECT_EQ(nullptr, writer);
}

} // namespace
} // namespace profiler_test
