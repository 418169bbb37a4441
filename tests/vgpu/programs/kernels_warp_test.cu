// What the lanes of a warp do together: shuffles, votes, matches and the groups of cooperative_groups.h.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <algorithm>
#include <numeric>

#include "tests/vgpu/programs/program_test.cuh"

namespace {

using namespace program;
namespace cg = cooperative_groups;

class Warp : public ProgramTest {};

constexpr unsigned ALL = ~0u;
constexpr int WARP = 32;
constexpr int THREADS = 128;

__device__ int thread() { return static_cast<int>(threadIdx.x); }
__device__ int lane() { return thread() % WARP; }

// ---- shuffles ------------------------------------------------------------------------------------------------------

constexpr int SHUFFLES = 8;
__global__ void shuffle_kernel(const int *in, int *out) {
    int value = in[thread()], *r = out + SHUFFLES * thread();
    r[0] = __shfl_sync(ALL, value, (lane() * 7 + 3) % WARP);
    r[1] = __shfl_up_sync(ALL, value, 5);
    r[2] = __shfl_down_sync(ALL, value, 9);
    r[3] = __shfl_xor_sync(ALL, value, 13);
    r[4] = __shfl_sync(ALL, value, 3, 8);
    r[5] = __shfl_up_sync(ALL, value, 3, 16);
    r[6] = __shfl_down_sync(ALL, value, 2, 4);
    r[7] = __shfl_xor_sync(ALL, value, 6, 8);
}

TEST_F(Warp, Shuffles) {
    std::mt19937 random(11);
    std::vector<int> in = random_integers(random, THREADS, -1000000, 1000000);
    DeviceArray<int> input(in), out(SHUFFLES * THREADS);
    shuffle_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    std::vector<int> actual = out.values();
    for (int t = 0; t < THREADS; t++) {
        int lane = t % WARP, warp = t - lane;
        // A source beyond the lane's part of the warp is the lane itself.
        const int sources[SHUFFLES] = {
            (lane * 7 + 3) % WARP, lane >= 5 ? lane - 5 : lane,      lane + 9 < WARP ? lane + 9 : lane,  lane ^ 13,
            lane / 8 * 8 + 3,      lane % 16 >= 3 ? lane - 3 : lane, lane % 4 + 2 < 4 ? lane + 2 : lane, lane ^ 6};
        for (int k = 0; k < SHUFFLES; k++) {
            ASSERT_EQ(actual[SHUFFLES * t + k], in[warp + sources[k]]) << "shuffle " << k << ", thread " << t;
        }
    }
}

__global__ void prefix_kernel(const double *in, double *out) {
    double sum = in[thread()];
    for (int distance = 1; distance < WARP; distance *= 2) {
        double other = __shfl_up_sync(ALL, sum, distance); // 64 bits: two shuffles
        if (lane() >= distance) sum += other;
    }
    out[thread()] = sum;
}

TEST_F(Warp, PrefixSumByShuffles) {
    std::mt19937 random(12);
    std::vector<int> integers = random_integers(random, THREADS, -1000000, 1000000);
    std::vector<double> in(integers.begin(), integers.end()), expected(THREADS);
    for (int t = 0; t < THREADS; t += WARP) {
        std::inclusive_scan(in.begin() + t, in.begin() + t + WARP, expected.begin() + t);
    }
    DeviceArray<double> input(in), out(THREADS);
    prefix_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    expect_same(out.values(), expected, "sums");
}

// Each half of the warp shuffles by itself, with a mask of its own lanes only.
__global__ void branches_kernel(const int *in, int *out) {
    int value = in[thread()];
    if (lane() % 2 == 0) {
        for (int i = 0; i < lane(); i++)
            value += i; // the lanes arrive one after the other
        __syncwarp(0x55555555);
        out[thread()] = __shfl_xor_sync(0x55555555, value, 2);
    } else {
        out[thread()] = __shfl_xor_sync(0xaaaaaaaa, value, 4) + 1;
    }
}

TEST_F(Warp, ShufflesInBothBranches) {
    std::vector<int> in(WARP), expected(WARP);
    std::iota(in.begin(), in.end(), 100);
    for (int i = 0; i < WARP; i++) {
        int even = i ^ 2, odd = i ^ 4;
        expected[i] = i % 2 == 0 ? in[even] + even * (even - 1) / 2 : in[odd] + 1;
    }
    DeviceArray<int> input(in), out(WARP);
    branches_kernel<<<1, WARP>>>(input.data(), out.data());
    LAUNCH_OK();
    expect_same(out.values(), expected, "values");
}

// ---- votes, matches, reductions ------------------------------------------------------------------------------------

constexpr int VOTES = 9;
__global__ void vote_kernel(const int *in, unsigned *out) {
    int value = in[thread()], all_equal = 0;
    unsigned *r = out + VOTES * thread();
    r[0] = __ballot_sync(ALL, value & 1);
    r[1] = static_cast<unsigned>(__any_sync(ALL, value > 90));
    r[2] = static_cast<unsigned>(__all_sync(ALL, value > 3));
    r[3] = __activemask() >> lane() & 1; // of the other lanes nothing is promised
    r[4] = __match_any_sync(ALL, value & 3);
    r[5] = __match_all_sync(ALL, value / 1000, &all_equal);
    r[6] = static_cast<unsigned>(all_equal);
    r[7] = __match_any_sync(ALL, static_cast<long long>(value % 5) << 40);
    r[8] = 0;
    unsigned threes = __ballot_sync(ALL, value % 3 == 0);
    if (value % 3 == 0) r[8] = __ballot_sync(threes, value & 2);
}

TEST_F(Warp, VotesAndMatches) {
    std::mt19937 random(13);
    std::vector<int> in = random_integers(random, THREADS, 0, 100);
    for (int i = 0; i < WARP; i++)
        in[i] = in[i] % 50 + 5; // a warp in which some votes come out otherwise
    DeviceArray<int> input(in);
    DeviceArray<unsigned> out(VOTES * THREADS);
    vote_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    std::vector<unsigned> actual = out.values();
    for (int t = 0; t < THREADS; t++) {
        const int *warp = &in[t / WARP * WARP];
        auto lanes = [&](auto condition) {
            unsigned mask = 0;
            for (int i = 0; i < WARP; i++)
                mask |= static_cast<unsigned>(condition(warp[i])) << i;
            return mask;
        };
        int own = in[t];
        const unsigned expected[VOTES] = {
            lanes([](int v) { return v % 2 != 0; }),
            lanes([](int v) { return v > 90; }) != 0,
            lanes([](int v) { return v > 3; }) == ALL,
            1,
            lanes([=](int v) { return v % 4 == own % 4; }),
            ALL,
            1,
            lanes([=](int v) { return v % 5 == own % 5; }),
            own % 3 == 0 ? lanes([](int v) { return v % 3 == 0 && (v & 2) != 0; }) : 0,
        };
        for (int k = 0; k < VOTES; k++)
            ASSERT_EQ(actual[VOTES * t + k], expected[k]) << "vote " << k << ", thread " << t;
    }
}

// The reductions in hardware begin with compute capability 8.0.
constexpr int REDUCTIONS = 5;
__global__ void reduction_kernel([[maybe_unused]] const int *in, [[maybe_unused]] int *out) {
#if __CUDA_ARCH__ >= 800
    int value = in[thread()], *r = out + REDUCTIONS * thread();
    unsigned bits = static_cast<unsigned>(value);
    r[0] = __reduce_add_sync(ALL, value);
    r[1] = __reduce_min_sync(ALL, value);
    r[2] = static_cast<int>(__reduce_max_sync(ALL, bits));
    r[3] = static_cast<int>(__reduce_xor_sync(ALL, bits));
    r[4] = static_cast<int>(__reduce_and_sync(ALL, bits | 0xff00ffu));
#endif
}

TEST_F(Warp, Reductions) {
    cudaFuncAttributes attributes;
    CUDA_OK(cudaFuncGetAttributes(&attributes, reduction_kernel));
    if (attributes.ptxVersion < 80) GTEST_SKIP() << "built for " << attributes.ptxVersion;
    std::mt19937 random(16);
    std::vector<int> in = random_integers(random, THREADS, INT32_MIN / WARP, INT32_MAX / WARP);
    DeviceArray<int> input(in), out(REDUCTIONS * THREADS);
    reduction_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    std::vector<int> actual = out.values();
    for (int t = 0; t < THREADS; t++) {
        int sum = 0, lowest = INT32_MAX;
        unsigned highest = 0, parity = 0, common = ALL;
        for (int i = t / WARP * WARP; i < t / WARP * WARP + WARP; i++) {
            unsigned bits = static_cast<unsigned>(in[i]);
            sum += in[i];
            lowest = std::min(lowest, in[i]);
            highest = std::max(highest, bits);
            parity ^= bits;
            common &= bits | 0xff00ffu;
        }
        const int expected[REDUCTIONS] = {sum, lowest, static_cast<int>(highest), static_cast<int>(parity),
                                          static_cast<int>(common)};
        for (int k = 0; k < REDUCTIONS; k++)
            ASSERT_EQ(actual[REDUCTIONS * t + k], expected[k]) << k << ", thread " << t;
    }
}

// ---- cooperative groups --------------------------------------------------------------------------------------------

__global__ void tiles_kernel(const int *in, int *out) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<8>(warp);
    int value = in[block.thread_rank()], *r = out + 6 * block.thread_rank();
    r[0] = cg::reduce(warp, value, cg::plus<int>());
    r[1] = cg::reduce(tile, value, cg::greater<int>());
    r[2] = tile.shfl_xor(value, 3);
    r[3] = cg::exclusive_scan(tile, value, cg::plus<int>());
    r[4] = static_cast<int>(tile.meta_group_rank() * 100 + tile.thread_rank());
    r[5] = static_cast<int>(tile.ballot(value % 2 != 0));
}

TEST_F(Warp, TiledPartitions) {
    std::mt19937 random(14);
    std::vector<int> in = random_integers(random, THREADS, -1000, 1000);
    DeviceArray<int> input(in), out(6 * THREADS);
    tiles_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    std::vector<int> actual = out.values();
    for (int t = 0; t < THREADS; t++) {
        const int *warp = &in[t / 32 * 32], *tile = &in[t / 8 * 8];
        int odd = 0;
        for (int i = 0; i < 8; i++)
            odd |= (tile[i] % 2 != 0) << i;
        const int expected[6] = {std::accumulate(warp, warp + 32, 0),    *std::max_element(tile, tile + 8), in[t ^ 3],
                                 std::accumulate(tile, tile + t % 8, 0), t / 8 % 4 * 100 + t % 8,           odd};
        for (int k = 0; k < 6; k++)
            ASSERT_EQ(actual[6 * t + k], expected[k]) << "result " << k << ", thread " << t;
    }
}

// Nothing promises that all lanes which take a branch are one group: the checks hold however they are grouped.
__global__ void coalesced_kernel(const int *in, int *total, int *counter, int *compacted) {
    int value = in[thread()];
    if (value % 3 == 0) {
        cg::coalesced_group group = cg::coalesced_threads();
        int sum = cg::reduce(group, value, cg::plus<int>());
        int first = 0;
        if (group.thread_rank() == 0) { // one atomic for all of the group
            first = atomicAdd(counter, static_cast<int>(group.size()));
            atomicAdd(total, sum);
        }
        compacted[group.shfl(first, 0) + static_cast<int>(group.thread_rank())] = value;
    }
}

TEST_F(Warp, CoalescedGroups) {
    std::mt19937 random(15);
    std::vector<int> in = random_integers(random, THREADS, 0, 1000), chosen;
    DeviceArray<int> input(in), total(1, 0), counter(1, 0), compacted(THREADS);
    coalesced_kernel<<<1, THREADS>>>(input.data(), total.data(), counter.data(), compacted.data());
    LAUNCH_OK();
    std::copy_if(in.begin(), in.end(), std::back_inserter(chosen), [](int value) { return value % 3 == 0; });
    ASSERT_EQ(counter.values()[0], static_cast<int>(chosen.size()));
    EXPECT_EQ(total.values()[0], std::accumulate(chosen.begin(), chosen.end(), 0));
    std::vector<int> actual = compacted.values(chosen.size());
    std::sort(actual.begin(), actual.end());
    std::sort(chosen.begin(), chosen.end());
    expect_same(actual, chosen, "compacted values");
}

__global__ void labeled_kernel(const int *in, int *out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto group = cg::labeled_partition(warp, in[thread()] % 4);
    auto parity = cg::binary_partition(warp, in[thread()] % 2 != 0);
    out[thread()] = static_cast<int>(group.size() * 10000 + group.thread_rank() * 100 + parity.size());
}

TEST_F(Warp, LabeledGroups) {
    std::mt19937 random(17);
    std::vector<int> in = random_integers(random, THREADS, 0, 1000), expected;
    DeviceArray<int> input(in), out(THREADS);
    labeled_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    for (int t = 0; t < THREADS; t++) {
        int same = 0, rank = 0, parity = 0;
        for (int i = t / WARP * WARP; i < t / WARP * WARP + WARP; i++) {
            same += in[i] % 4 == in[t] % 4;
            rank += in[i] % 4 == in[t] % 4 && i < t;
            parity += in[i] % 2 == in[t] % 2;
        }
        expected.push_back(same * 10000 + rank * 100 + parity);
    }
    expect_same(out.values(), expected, "sizes and ranks");
}

// A warp whose last lanes do not exist, and one half of whose lanes has returned.
__global__ void partial_kernel(int *out) {
    if (lane() % 2 == 1) return;
    out[thread()] = static_cast<int>(__ballot_sync(0x155555, 1)) + __shfl_sync(0x155555, thread(), 2);
}

TEST_F(Warp, LanesThatAreMissing) {
    DeviceArray<int> out(21, 0);
    partial_kernel<<<1, 21>>>(out.data());
    LAUNCH_OK();
    std::vector<int> expected(21, 0);
    for (int i = 0; i < 21; i += 2)
        expected[i] = 0x155555 + 2;
    expect_same(out.values(), expected, "values");
}

} // namespace
