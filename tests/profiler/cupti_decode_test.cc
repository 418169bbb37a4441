// CUPTI's records as intervals: random records of all kinds, whole and without times.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/cupti_records.h"

namespace profiler_test {
namespace {

class Decode : public testing::Test {
  protected:
    uint64_t draw(uint64_t below) { return random_() % below; }

    Record record(RecordKind kind) {
        Record r = {};
        r.kind = kind;
        r.begin_ns = 1 + draw(uint64_t{1} << 40);
        r.end_ns = r.begin_ns + draw(1 << 20);
        r.device = static_cast<uint32_t>(draw(8));
        r.context = static_cast<uint32_t>(draw(4));
        r.stream = static_cast<uint32_t>(draw(100));
        r.correlation = static_cast<uint32_t>(random_());
        r.node = draw(2) * random_();
        for (int i = 0; i < 3; i++) {
            r.grid[i] = 1 + static_cast<int32_t>(draw(1000));
            r.block[i] = 1 + static_cast<int32_t>(draw(10));
        }
        r.copy_kind = static_cast<int>(draw(12));
        r.has_details = draw(2) == 0;
        return r;
    }

    std::mt19937_64 random_{fresh_seed()};
};

TEST_F(Decode, EveryKind) {
    static const ProfDeviceWork works[] = {PROF_DEVICE_KERNEL, PROF_DEVICE_COPY, PROF_DEVICE_COPY, PROF_DEVICE_FILL};
    static const RecordKind devices_kinds[] = {RECORD_KERNEL, RECORD_COPY,     RECORD_PEER_COPY,
                                               RECORD_FILL,   RECORD_OVERHEAD, RECORD_OTHER};
    std::vector<Record> records, expected;
    int64_t overhead = 0;
    for (int i = 0; i < 10000; i++) {
        Record r = record(devices_kinds[draw(6)]);
        records.push_back(r);
        if (r.kind == RECORD_OVERHEAD) overhead += static_cast<int64_t>(r.end_ns - r.begin_ns);
        if (r.kind <= RECORD_FILL) expected.push_back(r);
    }
    Decoded found = decode_records(records.data(), records.size());
    ASSERT_EQ(expected.size(), found.count);
    for (size_t i = 0; i < expected.size(); i++) {
        const Record &r = expected[i];
        const ProfInterval &f = found.intervals[i];
        ASSERT_EQ(PROF_EVENT_INTERVAL, f.kind);
        ASSERT_EQ(works[r.kind], f.work);
        EXPECT_EQ(static_cast<int64_t>(r.begin_ns), f.begin_ns);
        EXPECT_EQ(static_cast<int64_t>(r.end_ns), f.end_ns);
        EXPECT_EQ(r.device, f.device);
        EXPECT_EQ(r.context, f.context);
        EXPECT_EQ(r.stream, f.queue);
        EXPECT_EQ(r.correlation, f.correlation);
        EXPECT_EQ(r.node, f.node);
        uint64_t threads = 1;
        for (int k = 0; k < 3; k++)
            threads *= static_cast<uint64_t>(r.grid[k]) * static_cast<uint64_t>(r.block[k]);
        EXPECT_EQ(r.kind == RECORD_KERNEL ? threads : 0, f.threads);
    }
    EXPECT_EQ(overhead, found.overhead_ns); // never a device's time
    EXPECT_EQ(0, found.untimed);
}

TEST_F(Decode, Copies) {
    // CUpti_ActivityMemcpyKind: 1 host to device, 2 device to host, 8 on the device, 9 on the host, 10 between devices.
    for (auto [kind, name] : {std::pair(1, "copy host to device"), std::pair(2, "copy device to host"),
                              std::pair(8, "copy on device"), std::pair(9, "copy host to host"),
                              std::pair(10, "copy device to other device"), std::pair(77, "copy on device")}) {
        Record r = record(RECORD_COPY);
        r.copy_kind = kind;
        EXPECT_STREQ(name, decode_records(&r, 1).intervals[0].name);
    }
}

// CUpti_ActivitySynchronizationType: 1 for an event, 2 of a stream for an event, 3 for a stream, 4 for a context.
TEST_F(Decode, Waits) {
    for (auto [type, name] :
         {std::pair(1, "wait for an event"), std::pair(3, "wait for a stream"), std::pair(4, "wait for the device")}) {
        Record r = record(RECORD_WAIT);
        r.type = type;
        Decoded found = decode_records(&r, 1);
        ASSERT_EQ(1u, found.count);
        const ProfInterval &f = found.intervals[0];
        EXPECT_EQ(PROF_EVENT_WAIT, f.kind);
        EXPECT_STREQ(name, f.name);
        EXPECT_EQ(static_cast<int64_t>(r.begin_ns), f.begin_ns);
        EXPECT_EQ(static_cast<int64_t>(r.end_ns), f.end_ns);
        EXPECT_EQ(r.correlation, f.correlation);
        EXPECT_EQ(PROF_QUEUE_OF_CALLS, f.queue);
        EXPECT_EQ(PROF_NO_DEVICE, f.device);
    }
    Record of_a_stream = record(RECORD_WAIT); // no thread waits
    of_a_stream.type = 2;
    EXPECT_EQ(0u, decode_records(&of_a_stream, 1).count);
}

// CUpti_ActivityMemoryKind: 0 unknown, 1 pageable, 2 pinned, 3 device, 4 array, 5 managed, 6 and 7 static ones.
TEST_F(Decode, Memory) {
    static const ProfMemory kinds[] = {PROF_MEMORY_OTHER,  PROF_MEMORY_OTHER,  PROF_MEMORY_PINNED,
                                       PROF_MEMORY_DEVICE, PROF_MEMORY_DEVICE, PROF_MEMORY_MANAGED,
                                       PROF_MEMORY_DEVICE, PROF_MEMORY_MANAGED};
    for (int type = 0; type < 8; type++) {
        for (bool is_release : {false, true}) {
            Record r = record(RECORD_MEMORY);
            r.type = type;
            r.is_release = is_release;
            r.bytes = random_() >> 1;
            r.address = random_();
            ProfInterval f = decode_records(&r, 1).intervals[0];
            EXPECT_EQ(is_release ? PROF_EVENT_RELEASE : PROF_EVENT_ALLOC, f.kind);
            EXPECT_EQ(kinds[type], static_cast<ProfMemory>(f.which));
            EXPECT_EQ(r.bytes, f.count);
            EXPECT_EQ(r.address, f.address);
            EXPECT_EQ(r.device, f.device);
            EXPECT_EQ(r.correlation, f.correlation);
            EXPECT_EQ(static_cast<int64_t>(r.begin_ns), f.begin_ns);
        }
    }
}

// CUpti_ActivityMemoryPoolOperationType: 1 created, 2 destroyed, 3 trimmed.
TEST_F(Decode, PoolsAndIds) {
    for (auto [type, change] :
         {std::pair(1, PROF_POOL_MADE), std::pair(2, PROF_POOL_DESTROYED), std::pair(3, PROF_POOL_TRIMMED)}) {
        Record r = record(RECORD_POOL);
        r.type = type;
        r.bytes = draw(1 << 30);
        ProfInterval f = decode_records(&r, 1).intervals[0];
        EXPECT_EQ(PROF_EVENT_POOL, f.kind);
        EXPECT_EQ(change, static_cast<ProfPoolChange>(f.which));
        EXPECT_EQ(r.bytes, f.count);
        EXPECT_EQ(r.device, f.device);
    }
    Record r = record(RECORD_ID);
    r.type = 4;
    r.bytes = UINT64_MAX;
    ProfInterval f = decode_records(&r, 1).intervals[0];
    EXPECT_EQ(PROF_EVENT_ID, f.kind);
    EXPECT_EQ(PROF_NO_DEVICE, f.device);
    EXPECT_EQ(4, f.which);
    EXPECT_EQ(UINT64_MAX, f.count);
    EXPECT_EQ(r.correlation, f.correlation);
}

TEST_F(Decode, RecordsWithoutTimesAreCounted) {
    std::vector<Record> records;
    int64_t untimed = 0;
    for (int i = 0; i < 1000; i++) {
        Record r = record(static_cast<RecordKind>(draw(RECORD_WAIT + 1)));
        r.type = 3; // of a wait: for a stream
        switch (draw(4)) {
        case 0:
            r.begin_ns = r.end_ns = 0;
            break;
        case 1:
            r.end_ns = r.begin_ns - 1;
            break;
        case 2:
            r.end_ns = UINT64_MAX;
            break;
        default:
            untimed--;
        }
        untimed++;
        records.push_back(r);
    }
    Decoded found = decode_records(records.data(), records.size());
    EXPECT_EQ(untimed, found.untimed);
    EXPECT_EQ(records.size() - static_cast<size_t>(untimed), found.count);
}

} // namespace
} // namespace profiler_test
