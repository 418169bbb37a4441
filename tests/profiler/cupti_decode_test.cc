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
    std::vector<Record> records, expected;
    int64_t overhead = 0;
    for (int i = 0; i < 10000; i++) {
        Record r = record(static_cast<RecordKind>(draw(6)));
        records.push_back(r);
        if (r.kind == RECORD_OVERHEAD) overhead += static_cast<int64_t>(r.end_ns - r.begin_ns);
        if (r.kind < RECORD_OVERHEAD) expected.push_back(r);
    }
    Decoded found = decode_records(records.data(), records.size());
    ASSERT_EQ(expected.size(), found.count);
    for (size_t i = 0; i < expected.size(); i++) {
        const Record &r = expected[i];
        const ProfInterval &f = found.intervals[i];
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

TEST_F(Decode, RecordsWithoutTimesAreCounted) {
    std::vector<Record> records;
    int64_t untimed = 0;
    for (int i = 0; i < 1000; i++) {
        Record r = record(static_cast<RecordKind>(draw(RECORD_OVERHEAD)));
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
