#include <sched.h>

#include <atomic>
#include <cfenv>
#include <thread>
#include <vector>

#include "host/pool.h"
#include "host/pool_cpu.h"
#include "tests/host/host_test.h"

namespace {

struct Coverage {
    std::vector<int> hits; // plain ints: pieces must not share an index, or TSan and the counts tell
    std::vector<int64_t> per_worker;
    int64_t grain = 0;
    std::atomic<bool> bad_piece{false};
};

void cover(void *context, int64_t begin, int64_t end, int worker) {
    auto *coverage = static_cast<Coverage *>(context);
    if (begin >= end || begin % coverage->grain != 0 || end - begin > coverage->grain) coverage->bad_piece = true;
    for (int64_t i = begin; i < end; i++)
        coverage->hits[static_cast<size_t>(i)]++;
    coverage->per_worker[static_cast<size_t>(worker)] += end - begin;
}

class PoolTest : public testing::TestWithParam<int> {};

TEST_P(PoolTest, EveryIndexExactlyOnce) {
    HostPool *pool;
    ASSERT_OK(host_pool_create(GetParam(), HOST_BIND_NONE, &pool));
    ASSERT_EQ(GetParam(), host_pool_threads(pool));
    EXPECT_EQ(GetParam() > host_cpu_allowed(), host_pool_is_oversubscribed(pool));
    for (int64_t count : {0, 1, 2, 3, 7, 64, 1000, 10007}) {
        for (int64_t grain : {1, 2, 3, 64, 1000, 20000}) {
            Coverage coverage;
            coverage.hits.assign(static_cast<size_t>(count), 0);
            coverage.per_worker.assign(static_cast<size_t>(GetParam()), 0);
            coverage.grain = grain;
            host_pool_for(pool, count, grain, cover, &coverage);
            int64_t total = 0;
            for (int hits : coverage.hits)
                ASSERT_EQ(1, hits) << count << " by " << grain;
            for (int64_t done : coverage.per_worker)
                total += done;
            ASSERT_EQ(count, total);
            ASSERT_FALSE(coverage.bad_piece);
        }
    }
    host_pool_free(pool);
}

TEST_P(PoolTest, ManyShortLoopsSeeEachOthersWrites) {
    HostPool *pool;
    ASSERT_OK(host_pool_create(GetParam(), HOST_BIND_NONE, &pool));
    std::vector<int64_t> values(97, 0);
    auto add = [](void *context, int64_t begin, int64_t end, int) {
        auto &all = *static_cast<std::vector<int64_t> *>(context);
        // Pieces move between threads, so every loop adds to what another thread wrote in the one before.
        for (int64_t i = begin; i < end; i++)
            all[static_cast<size_t>(i)] += 1;
    };
    const int rounds = 3000;
    for (int round = 0; round < rounds; round++)
        host_pool_for(pool, 97, 1 + round % 5, add, &values);
    for (int64_t value : values)
        ASSERT_EQ(rounds, value);
    host_pool_free(pool);
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolTest, testing::Values(1, 2, 3, 8, 33));

TEST(Pool, CountsNearTheLargestIntegerDoNotOverflow) {
    HostPool *pool;
    ASSERT_OK(host_pool_create(3, HOST_BIND_NONE, &pool));
    std::atomic<uint64_t> covered{0};
    auto add = [](void *context, int64_t begin, int64_t end, int) {
        *static_cast<std::atomic<uint64_t> *>(context) += static_cast<uint64_t>(end - begin);
    };
    host_pool_for(pool, INT64_MAX, INT64_MAX / 7, add, &covered);
    EXPECT_EQ(static_cast<uint64_t>(INT64_MAX), covered.load());
    host_pool_free(pool);
}

TEST(Pool, ThreadCountIsChecked) {
    HostPool *pool = nullptr;
    EXPECT_FAILS(STATUS_USAGE, "-1 threads; allowed: 1 to 1024", host_pool_create(-1, HOST_BIND_NONE, &pool));
    EXPECT_FAILS(STATUS_USAGE, "1025 threads", host_pool_create(1025, HOST_BIND_NONE, &pool));
    EXPECT_EQ(nullptr, pool);
    host_pool_free(nullptr);
    ASSERT_OK(host_pool_create(0, HOST_BIND_NONE, &pool));
    EXPECT_EQ(host_cpu_allowed(), host_pool_threads(pool));
    EXPECT_FALSE(host_pool_is_oversubscribed(pool));
    host_pool_free(pool);
}

TEST(Pool, SubnormalsAreLeftAlone) {
    HostPool *pool;
    ASSERT_OK(host_pool_create(2, HOST_BIND_NONE, &pool));
    std::vector<float> halves(64, 0);
    auto halve = [](void *context, int64_t begin, int64_t end, int) {
        volatile float smallest_normal = 1.17549435e-38f;
        for (int64_t i = begin; i < end; i++)
            (*static_cast<std::vector<float> *>(context))[static_cast<size_t>(i)] = smallest_normal * 0.5f;
    };
    host_pool_for(pool, 64, 1, halve, &halves);
    for (float half : halves)
        EXPECT_GT(half, 0.0f);
    host_pool_free(pool);
}

struct Nested {
    HostPool *pool;
};

void nest(void *context, int64_t, int64_t, int) {
    auto *nested = static_cast<Nested *>(context);
    host_pool_for(
        nested->pool, 4, 1, [](void *, int64_t, int64_t, int) {}, nullptr);
}

TEST(PoolDeathTest, ALoopWithinALoopAborts) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(
        {
            HostPool *pool = nullptr;
            if (host_pool_create(2, HOST_BIND_NONE, &pool) == STATUS_OK) {
                Nested nested = {pool};
                host_pool_for(pool, 8, 1, nest, &nested);
            }
        },
        "a loop was started while another runs");
}

TEST(Pool, BoundThreadsStayOnTheirPlaceAndTheCallerGetsItsOwnBack) {
    cpu_set_t before, after;
    ASSERT_EQ(0, sched_getaffinity(0, sizeof before, &before));
    HostPool *pool;
    ASSERT_OK(host_pool_create(2, HOST_BIND_CORE, &pool));
    std::vector<int> places(2, 0);
    auto count_places = [](void *context, int64_t, int64_t, int worker) {
        cpu_set_t set;
        auto &all = *static_cast<std::vector<int> *>(context);
        all[static_cast<size_t>(worker)] = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
        std::this_thread::yield();
    };
    for (int i = 0; i < 1000 && (places[0] == 0 || places[1] == 0); i++)
        host_pool_for(pool, 64, 1, count_places, &places);
    EXPECT_EQ(1, places[0]);
    EXPECT_EQ(1, places[1]);
    host_pool_free(pool);
    ASSERT_EQ(0, sched_getaffinity(0, sizeof after, &after));
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Pool, AllowedRespectsTheAffinityMask) {
    cpu_set_t before, one;
    ASSERT_EQ(0, sched_getaffinity(0, sizeof before, &before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    }
    ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
    EXPECT_EQ(1, host_cpu_allowed());
    ASSERT_EQ(0, sched_setaffinity(0, sizeof before, &before));
    EXPECT_GE(host_cpu_allowed(), 1);
    EXPECT_LE(host_cpu_allowed(), CPU_COUNT(&before));
}

class QuotaTest : public testing::Test {
  protected:
    void put(const std::string &name, const std::string &text) {
        std::string path = folder / name;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        write_file(path, text);
    }
    int quota() { return host_cpu_quota((folder / "membership").c_str(), (folder / "cgroup").c_str()); }
    TempFolder folder;
};

TEST_F(QuotaTest, UnifiedTakesTheTightestOfTheParents) {
    put("membership", "0::/a/b\n");
    EXPECT_EQ(0, quota());
    put("cgroup/a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(0, quota());
    put("cgroup/a/cpu.max", "250000 100000\n");
    EXPECT_EQ(3, quota());
    put("cgroup/a/b/cpu.max", "400000 100000\n");
    EXPECT_EQ(3, quota());
    put("cgroup/cpu.max", "50000 100000\n");
    EXPECT_EQ(1, quota());
}

TEST_F(QuotaTest, FirstVersion) {
    put("membership", "5:memory:/x\n4:cpu,cpuacct:/host/path\n1:cpuset:/\n");
    put("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(0, quota());
    put("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    EXPECT_EQ(2, quota()); // the group's own path is not there, its parent counts
    put("cgroup/cpu,cpuacct/host/path/cpu.cfs_quota_us", "100000\n");
    put("cgroup/cpu,cpuacct/host/path/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(1, quota());
}

TEST_F(QuotaTest, NonsenseIsNoQuota) {
    EXPECT_EQ(0, quota());
    for (const char *text : {"", "x", "0::", ":::::\n", "0::/\n"}) {
        put("membership", text);
        put("cgroup/cpu.max", "what ever");
        EXPECT_EQ(0, quota()) << text;
    }
    put("cgroup/cpu.max", "100000");
    EXPECT_EQ(0, quota());
}

} // namespace
