// Threads that wait for each other: barriers of all sorts, locks between the lanes of a warp, flags between blocks,
// grid barriers, and CUB's block algorithms, which build on them.
#include <cooperative_groups.h>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>

#include <algorithm>
#include <numeric>

#include "tests/vgpu/programs/program_test.cuh"

namespace {

using namespace program;
namespace cg = cooperative_groups;

class Block : public ProgramTest {};
class BetweenThreads : public ProgramTest {};
class BetweenBlocks : public ProgramTest {};

constexpr int THREADS = 128;
constexpr int BLOCKS = 12;
constexpr int COUNT = THREADS * BLOCKS;

__device__ int thread() { return static_cast<int>(threadIdx.x); }
__device__ int block() { return static_cast<int>(blockIdx.x); }
__device__ int global_index() { return block() * THREADS + thread(); }

// ---- CUB's block algorithms ----------------------------------------------------------------------------------------

constexpr int ITEMS = 4;

template <cub::BlockReduceAlgorithm ALGORITHM> __global__ void reduce_kernel(const int *in, int *out) {
    using Reduce = cub::BlockReduce<int, THREADS, ALGORITHM>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(in[global_index()]);
    if (thread() == 0) out[block()] = sum;
}

TEST_F(Block, Reduce) {
    std::mt19937 random(31);
    std::vector<int> in = random_integers(random, COUNT, -1000, 1000), expected;
    for (int b = 0; b < BLOCKS; b++) {
        expected.push_back(std::accumulate(in.begin() + b * THREADS, in.begin() + (b + 1) * THREADS, 0));
    }
    DeviceArray<int> input(in), raking(BLOCKS), warps(BLOCKS);
    reduce_kernel<cub::BLOCK_REDUCE_RAKING><<<BLOCKS, THREADS>>>(input.data(), raking.data());
    reduce_kernel<cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<BLOCKS, THREADS>>>(input.data(), warps.data());
    LAUNCH_OK();
    expect_same(raking.values(), expected, "raking");
    expect_same(warps.values(), expected, "warp reductions");
}

template <cub::BlockScanAlgorithm ALGORITHM> __global__ void scan_kernel(const int *in, int *out) {
    using Scan = cub::BlockScan<int, THREADS, ALGORITHM>;
    __shared__ typename Scan::TempStorage storage;
    int sum = 0;
    Scan(storage).ExclusiveSum(in[global_index()], sum);
    out[global_index()] = sum;
}

TEST_F(Block, Scan) {
    std::mt19937 random(32);
    std::vector<int> in = random_integers(random, COUNT, -1000, 1000), expected(COUNT);
    for (int i = 0; i < COUNT; i += THREADS) {
        std::exclusive_scan(in.begin() + i, in.begin() + i + THREADS, expected.begin() + i, 0);
    }
    DeviceArray<int> input(in), raking(COUNT), warps(COUNT);
    scan_kernel<cub::BLOCK_SCAN_RAKING><<<BLOCKS, THREADS>>>(input.data(), raking.data());
    scan_kernel<cub::BLOCK_SCAN_WARP_SCANS><<<BLOCKS, THREADS>>>(input.data(), warps.data());
    LAUNCH_OK();
    expect_same(raking.values(), expected, "raking");
    expect_same(warps.values(), expected, "warp scans");
}

// One shared buffer after the other in the same memory: exchange, sort, find where keys change.
__global__ void sort_kernel(const unsigned *in, unsigned *sorted, int *heads) {
    using Exchange = cub::BlockExchange<unsigned, THREADS, ITEMS>;
    using Sort = cub::BlockRadixSort<unsigned, THREADS, ITEMS>;
    using Discontinuity = cub::BlockDiscontinuity<unsigned, THREADS>;
    __shared__ union {
        typename Exchange::TempStorage exchange;
        typename Sort::TempStorage sort;
        typename Discontinuity::TempStorage discontinuity;
    } storage;
    int first = block() * THREADS * ITEMS, flags[ITEMS];
    unsigned keys[ITEMS];
    for (int k = 0; k < ITEMS; k++)
        keys[k] = in[first + k * THREADS + thread()];
    Exchange(storage.exchange).StripedToBlocked(keys, keys);
    __syncthreads();
    Sort(storage.sort).Sort(keys);
    __syncthreads();
    Discontinuity(storage.discontinuity).FlagHeads(flags, keys, [](unsigned a, unsigned b) { return a != b; });
    for (int k = 0; k < ITEMS; k++) {
        sorted[first + thread() * ITEMS + k] = keys[k];
        heads[first + thread() * ITEMS + k] = flags[k];
    }
}

TEST_F(Block, ExchangeSortAndDiscontinuity) {
    std::mt19937 random(33);
    std::vector<unsigned> keys = random_integers<unsigned>(random, COUNT * ITEMS, 0, UINT32_MAX);
    for (size_t i = 0; i < keys.size(); i += 3)
        keys[i] %= 50;
    DeviceArray<unsigned> input(keys), sorted(keys.size());
    DeviceArray<int> heads(keys.size());
    sort_kernel<<<BLOCKS, THREADS>>>(input.data(), sorted.data(), heads.data());
    LAUNCH_OK();
    std::vector<int> expected(keys.size());
    for (size_t i = 0; i < keys.size(); i += THREADS * ITEMS) {
        auto first = keys.begin() + static_cast<std::ptrdiff_t>(i);
        std::sort(first, first + THREADS * ITEMS);
        for (size_t k = i; k < i + THREADS * ITEMS; k++)
            expected[k] = k == i || keys[k] != keys[k - 1];
    }
    expect_same(sorted.values(), keys, "keys");
    expect_same(heads.values(), expected, "heads");
}

template <cub::BlockHistogramAlgorithm ALGORITHM> __global__ void histogram_kernel(const unsigned char *in, int *bins) {
    using Histogram = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 64, ALGORITHM>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ int counts[64];
    unsigned char samples[ITEMS];
    for (int k = 0; k < ITEMS; k++)
        samples[k] = in[global_index() * ITEMS + k];
    Histogram(storage).Histogram(samples, counts);
    __syncthreads();
    if (thread() < 64) atomicAdd(&bins[thread()], counts[thread()]);
}

TEST_F(Block, Histogram) {
    std::mt19937 random(34);
    std::vector<int> values = random_integers(random, COUNT * ITEMS, 0, 63), expected(64, 0);
    for (int value : values)
        expected[value]++;
    DeviceArray<unsigned char> input(std::vector<unsigned char>(values.begin(), values.end()));
    DeviceArray<int> atomic(64, 0), sort(64, 0);
    histogram_kernel<cub::BLOCK_HISTO_ATOMIC><<<BLOCKS, THREADS>>>(input.data(), atomic.data());
    histogram_kernel<cub::BLOCK_HISTO_SORT><<<BLOCKS, THREADS>>>(input.data(), sort.data());
    LAUNCH_OK();
    expect_same(atomic.values(), expected, "by atomics");
    expect_same(sort.values(), expected, "by sorting");
}

// ---- barriers of a block -------------------------------------------------------------------------------------------

__global__ void counting_kernel(const int *in, int *out) {
    int value = in[global_index()];
    int count = __syncthreads_count(value > 0);
    int any = __syncthreads_or(value == 1000), all = __syncthreads_and(value > -1000);
    out[global_index()] = count * 4 + (any != 0) * 2 + (all != 0);
}

TEST_F(Block, BarriersThatCount) {
    std::mt19937 random(35);
    std::vector<int> in = random_integers(random, COUNT, -999, 999), expected(COUNT);
    in[3 * THREADS + 17] = 1000;
    in[5 * THREADS + 127] = -1000;
    for (int i = 0; i < COUNT; i++) {
        const int *first = &in[i / THREADS * THREADS], *last = first + THREADS;
        expected[i] = static_cast<int>(std::count_if(first, last, [](int v) { return v > 0; })) * 4 +
                      std::any_of(first, last, [](int v) { return v == 1000; }) * 2 +
                      std::all_of(first, last, [](int v) { return v > -1000; });
    }
    DeviceArray<int> input(in), out(COUNT);
    counting_kernel<<<BLOCKS, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    expect_same(out.values(), expected, "results");
}

// Two warps produce, two consume, through two named barriers: full (1) and empty (2).
__global__ void named_barriers_kernel(const int *in, int *out, int rounds) {
    __shared__ int buffer[64];
    int lane = thread() % 64, sum = 0;
    for (int i = 0; i < rounds; i++) {
        if (thread() < 64) {
            if (i > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
            buffer[lane] = in[i * 64 + lane];
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            sum = sum * 5 + buffer[63 - lane];
            if (i + 1 < rounds) asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
    if (thread() >= 64) out[lane] = sum;
}

TEST_F(Block, NamedBarriers) {
    std::mt19937 random(36);
    std::vector<int> in = random_integers(random, 6 * 64, 0, 1000), expected(64, 0);
    for (int i = 0; i < 6 * 64; i++)
        expected[i % 64] = expected[i % 64] * 5 + in[i / 64 * 64 + 63 - i % 64];
    DeviceArray<int> input(in), out(64);
    named_barriers_kernel<<<1, 128>>>(input.data(), out.data(), 6);
    LAUNCH_OK();
    expect_same(out.values(), expected, "sums");
}

// cuda::barrier split in arrival and wait; a warp leaves it in the middle.
__global__ void barrier_object_kernel(int *out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int values[2][THREADS];
    if (thread() == 0) init(&barrier, THREADS);
    __syncthreads();
    int value = thread();
    for (int i = 0; i < 4; i++) {
        values[i % 2][thread()] = value;
        if (i == 2 && thread() >= 96) {
            barrier.arrive_and_drop();
            break;
        }
        barrier.wait(barrier.arrive());
        value = values[i % 2][(thread() + 32 * (i + 1)) % (i < 2 ? THREADS : 96)] + i;
    }
    out[thread()] = value;
}

TEST_F(Block, BarrierObjects) {
    DeviceArray<int> out(THREADS);
    barrier_object_kernel<<<1, THREADS>>>(out.data());
    LAUNCH_OK();
    std::vector<int> values(THREADS), next(THREADS);
    std::iota(values.begin(), values.end(), 0);
    for (int i = 0; i < 4; i++) {
        next = values;
        for (int t = 0; t < (i < 2 ? THREADS : 96); t++) {
            next[t] = values[(t + 32 * (i + 1)) % (i < 2 ? THREADS : 96)] + i;
        }
        values = next;
    }
    expect_same(out.values(), values, "values");
}

// ---- locks and flags within a warp and a block ---------------------------------------------------------------------

// Every lane takes the same lock: only threads that are scheduled independently get through.
__global__ void lock_kernel(int *lock, int *count, int *last) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    int seen = atomicAdd(count, 0); // the lock makes load and store one
    atomicExch(count, seen + 1);
    atomicExch(last, global_index());
    __threadfence();
    atomicExch(lock, 0);
}

TEST_F(BetweenThreads, SpinLockOfEveryLane) {
    DeviceArray<int> lock(1, 0), count(1, 0), last(1, -1);
    lock_kernel<<<BLOCKS, THREADS>>>(lock.data(), count.data(), last.data());
    LAUNCH_OK();
    EXPECT_EQ(count.values()[0], COUNT);
    EXPECT_GE(last.values()[0], 0);
    EXPECT_LT(last.values()[0], COUNT);
}

// Lane 0 waits for lane 31 of its own warp, and that one for the next warp.
__global__ void wait_kernel(int *flags, int *out) {
    cuda::atomic_ref<int, cuda::thread_scope_block> own(flags[thread() / 32]), next(flags[thread() / 32 + 1]);
    if (thread() % 32 == 0) {
        while (own.load(cuda::std::memory_order_acquire) == 0) {
        }
        out[thread() / 32] = own.load(cuda::std::memory_order_relaxed);
    } else if (thread() % 32 == 31) {
        int value = 1;
        if (thread() + 1 < THREADS) {
            while ((value = next.load(cuda::std::memory_order_acquire)) == 0)
                __nanosleep(20);
            value++;
        }
        own.store(value, cuda::std::memory_order_release);
    }
}

TEST_F(BetweenThreads, LanesThatWaitForEachOther) {
    DeviceArray<int> flags(THREADS / 32 + 1, 0), out(THREADS / 32);
    wait_kernel<<<1, THREADS>>>(flags.data(), out.data());
    LAUNCH_OK();
    expect_same(out.values(), {4, 3, 2, 1}, "values");
}

// ---- flags between blocks ------------------------------------------------------------------------------------------

// The last block to finish adds up what the others have left.
__global__ void last_block_kernel(const int *in, int *parts, unsigned *finished, int *sum) {
    __shared__ int total;
    __shared__ bool is_last;
    if (thread() == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, in[global_index()]);
    __syncthreads();
    if (thread() == 0) {
        parts[block()] = total;
        __threadfence();
        is_last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || thread() > 0) return;
    __threadfence();
    *sum = 0;
    for (int i = 0; i < static_cast<int>(gridDim.x); i++)
        *sum += *static_cast<volatile int *>(parts + i);
}

TEST_F(BetweenBlocks, LastBlockReduces) {
    std::mt19937 random(37);
    std::vector<int> in = random_integers(random, COUNT, -1000, 1000);
    DeviceArray<int> input(in), parts(BLOCKS), sum(1);
    DeviceArray<unsigned> finished(1, 0);
    for (int i = 0; i < 3; i++) { // the counter wraps to zero by itself
        last_block_kernel<<<BLOCKS, THREADS>>>(input.data(), parts.data(), finished.data(), sum.data());
        LAUNCH_OK();
        EXPECT_EQ(sum.values()[0], std::accumulate(in.begin(), in.end(), 0));
        EXPECT_EQ(finished.values()[0], 0u);
    }
}

// A scan in one pass: each block takes a number, sums its tile and looks back at the blocks before it, of which each
// has published its own sum (1) or already that of all up to itself (2).
__global__ void look_back_kernel(const int *in, int *out, int *ticket, int *state, int *sums, int *prefixes) {
    using Scan = cub::BlockScan<int, THREADS>;
    __shared__ typename Scan::TempStorage storage;
    __shared__ int tile, before;
    if (thread() == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    int sum = 0, total = 0;
    Scan(storage).InclusiveSum(in[tile * THREADS + thread()], sum, total);
    if (thread() == 0) {
        auto publish = [&](int *where, int value, int flag) {
            where[tile] = value;
            cuda::atomic_ref<int, cuda::thread_scope_device>(state[tile]).store(flag, cuda::std::memory_order_release);
        };
        publish(tile == 0 ? prefixes : sums, total, tile == 0 ? 2 : 1);
        int prefix = 0;
        for (int t = tile - 1; t >= 0; t--) {
            cuda::atomic_ref<int, cuda::thread_scope_device> flag(state[t]);
            int seen = 0;
            while ((seen = flag.load(cuda::std::memory_order_acquire)) == 0) {
            }
            prefix += seen == 2 ? prefixes[t] : sums[t];
            if (seen == 2) break;
        }
        if (tile > 0) publish(prefixes, prefix + total, 2);
        before = prefix;
    }
    __syncthreads();
    out[tile * THREADS + thread()] = before + sum;
}

TEST_F(BetweenBlocks, LookBackScan) {
    constexpr int TILES = 40;
    std::mt19937 random(38);
    std::vector<int> in = random_integers(random, TILES * THREADS, -1000, 1000), expected(in.size());
    DeviceArray<int> input(in), out(in.size()), ticket(1, 0), state(TILES, 0), sums(TILES), prefixes(TILES);
    look_back_kernel<<<TILES, THREADS>>>(input.data(), out.data(), ticket.data(), state.data(), sums.data(),
                                         prefixes.data());
    LAUNCH_OK();
    std::inclusive_scan(in.begin(), in.end(), expected.begin());
    expect_same(out.values(), expected, "sums");
}

// ---- the whole grid ------------------------------------------------------------------------------------------------

// In each round every thread reads what one of the next block wrote in the round before.
__global__ void grid_kernel(int *values, int rounds) {
    cg::grid_group grid = cg::this_grid();
    int size = static_cast<int>(grid.size());
    for (int i = 0; i < rounds; i++) {
        const int *from = values + i % 2 * size;
        int *to = values + (i + 1) % 2 * size;
        to[global_index()] = from[(global_index() + THREADS + 1) % size] + i;
        grid.sync();
    }
}

TEST_F(BetweenBlocks, GridBarrier) {
    int supported = 0, blocks = 0, processors = 0, rounds = 6;
    CUDA_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    CUDA_OK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid_kernel, THREADS, 0));
    ASSERT_NE(supported, 0);
    ASSERT_GE(blocks * processors, BLOCKS);
    std::vector<int> values(2 * COUNT, 0);
    std::iota(values.begin(), values.begin() + COUNT, 0);
    DeviceArray<int> data(values);
    int *argument = data.data();
    void *arguments[] = {&argument, &rounds};
    CUDA_OK(cudaLaunchCooperativeKernel(grid_kernel, dim3(BLOCKS), dim3(THREADS), arguments, 0, nullptr));
    LAUNCH_OK();
    std::vector<int> result = data.values(COUNT); // after an even number of rounds in the first half
    for (int i = 0; i < COUNT; i++) {
        ASSERT_EQ(result[i], (i + rounds * (THREADS + 1)) % COUNT + rounds * (rounds - 1) / 2) << i;
    }
}

TEST_F(BetweenBlocks, GridBarrierNeedsAllBlocksResident) {
    int blocks = 0, processors = 0, rounds = 1;
    CUDA_OK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid_kernel, THREADS, 0));
    int *argument = nullptr;
    void *arguments[] = {&argument, &rounds};
    dim3 grid(static_cast<unsigned>(blocks * processors + 1));
    EXPECT_EQ(cudaLaunchCooperativeKernel(grid_kernel, grid, dim3(THREADS), arguments, 0, nullptr),
              cudaErrorCooperativeLaunchTooLarge);
    EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
}

} // namespace
