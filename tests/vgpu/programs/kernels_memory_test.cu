// The kinds of memory and the ways to reach them: local, constant, shared, pinned and managed memory, generic
// addresses, vectors and small types, atomics, asynchronous copies, parameters.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

#include <algorithm>
#include <numeric>

#include "tests/vgpu/programs/program_test.cuh"

namespace {

using namespace program;
namespace cg = cooperative_groups;

class Memory : public ProgramTest {};
class Atomics : public ProgramTest {};

constexpr int THREADS = 128;
constexpr int BLOCKS = 8;
constexpr int COUNT = THREADS * BLOCKS;

__device__ int thread() { return static_cast<int>(threadIdx.x); }
__device__ int global_index() { return static_cast<int>(blockIdx.x) * THREADS + thread(); }

// ---- local, constant and shared memory -----------------------------------------------------------------------------

__constant__ int weights[8];
__device__ int launches_seen;
extern __shared__ int dynamic_shared[];

__global__ void local_kernel(const int *index, int *out) {
    int table[16];
    for (int k = 0; k < 16; k++)
        table[k] = k * weights[k % 8];
    int p = index[global_index()];
    table[p] += 3;
    int sum = 0;
    for (int k = 0; k <= p; k++)
        sum += table[k];
    out[global_index()] = sum + table[p * 7 % 16];
}

__global__ void count_kernel() { atomicAdd(&launches_seen, 1); }

TEST_F(Memory, LocalArraysAndConstants) {
    std::mt19937 random(21);
    std::vector<int> factors = random_integers(random, 8, -100, 100), index = random_integers(random, COUNT, 0, 15);
    CUDA_OK(cudaMemcpyToSymbol(weights, factors.data(), sizeof(weights)));
    DeviceArray<int> device_index(index), out(COUNT);
    local_kernel<<<BLOCKS, THREADS>>>(device_index.data(), out.data());
    LAUNCH_OK();
    std::vector<int> expected;
    for (int p : index) {
        int table[16];
        for (int k = 0; k < 16; k++)
            table[k] = k * factors[k % 8];
        table[p] += 3;
        expected.push_back(std::accumulate(table, table + p + 1, 0) + table[p * 7 % 16]);
    }
    expect_same(out.values(), expected, "sums");
}

TEST_F(Memory, DeviceVariables) {
    int before = 1000, after = 0;
    CUDA_OK(cudaMemcpyToSymbol(launches_seen, &before, sizeof(before)));
    count_kernel<<<2, 3>>>();
    CUDA_OK(cudaMemcpyFromSymbol(&after, launches_seen, sizeof(after)));
    EXPECT_EQ(after, 1006);
    void *address = nullptr;
    size_t size = 0;
    CUDA_OK(cudaGetSymbolAddress(&address, launches_seen));
    CUDA_OK(cudaGetSymbolSize(&size, launches_seen));
    EXPECT_EQ(size, sizeof(int));
    CUDA_OK(cudaMemcpy(&after, address, sizeof(after), cudaMemcpyDeviceToHost));
    EXPECT_EQ(after, 1006);
}

// Static and dynamic shared memory, and of the latter as much as the device offers on request.
__global__ void shared_kernel(const int *in, int *out, int words) {
    __shared__ int reversed[THREADS];
    reversed[THREADS - 1 - thread()] = in[global_index()];
    for (int i = thread(); i < words; i += THREADS)
        dynamic_shared[i] = i * 3;
    __syncthreads();
    int sum = reversed[thread()];
    for (int i = thread(); i < words; i += THREADS)
        sum += dynamic_shared[words - 1 - i];
    out[global_index()] = sum;
}

TEST_F(Memory, SharedMemoryUpToTheLimit) {
    int limit = 0;
    CUDA_OK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    ASSERT_GT(limit, 48 * 1024);
    int words = (limit - THREADS * 4) / 4;
    std::vector<int> in(COUNT);
    std::iota(in.begin(), in.end(), 5);
    DeviceArray<int> input(in), out(COUNT);
    for (int bytes : {4, 48 * 1024 - THREADS * 4, words * 4}) {
        CUDA_OK(cudaFuncSetAttribute(shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        shared_kernel<<<BLOCKS, THREADS, bytes>>>(input.data(), out.data(), bytes / 4);
        LAUNCH_OK();
        std::vector<int> expected;
        for (int g = 0; g < COUNT; g++) {
            int sum = in[g / THREADS * THREADS + THREADS - 1 - g % THREADS];
            for (int i = g % THREADS; i < bytes / 4; i += THREADS)
                sum += (bytes / 4 - 1 - i) * 3;
            expected.push_back(sum);
        }
        expect_same(out.values(), expected, "sums");
    }
    EXPECT_NE(cudaFuncSetAttribute(shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit), cudaSuccess);
    EXPECT_NE(cudaGetLastError(), cudaSuccess); // and forget it
}

// ---- generic addresses, types --------------------------------------------------------------------------------------

__device__ __noinline__ int sum_of(const int *values, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

__global__ void generic_kernel(const int *in, int *out) {
    __shared__ int shared[4];
    int local[4];
    for (int i = 0; i < 4; i++)
        local[i] = in[i] * 10 + thread();
    if (thread() < 4) shared[thread()] = in[thread()] * 100;
    __syncthreads();
    const int *values = thread() % 3 == 0 ? in : thread() % 3 == 1 ? shared : local;
    int kind = __isGlobal(values) + 2 * __isShared(values) + 4 * __isLocal(values);
    out[thread()] = sum_of(values, 4) * 8 + kind;
}

TEST_F(Memory, GenericAddresses) {
    std::vector<int> in = {3, -4, 9, 20}, expected;
    DeviceArray<int> input(in), out(THREADS);
    generic_kernel<<<1, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    for (int t = 0; t < THREADS; t++) {
        const int sums[3] = {28, 2800, 280 + 4 * t};
        expected.push_back(sums[t % 3] * 8 + (1 << t % 3));
    }
    expect_same(out.values(), expected, "sums");
}

struct alignas(16) Mixed {
    double wide;
    short narrow;
    signed char tiny;
    bool flag;
    float single;
};

__global__ void types_kernel(const Mixed *in, Mixed *out, const float4 *vectors, float4 *sums, const uchar4 *pixels,
                             uchar4 *inverted) {
    int i = global_index();
    Mixed mixed = in[i];
    mixed.wide *= 2;
    mixed.narrow = static_cast<short>(mixed.narrow * 3); // wraps
    mixed.tiny = static_cast<signed char>(-mixed.tiny);
    mixed.flag = !mixed.flag;
    mixed.single += static_cast<float>(mixed.tiny);
    out[i] = mixed;
    float4 a = __ldg(&vectors[i]), b = __ldcs(&vectors[COUNT - 1 - i]);
    __stcg(&sums[i], float4{a.x + b.w, a.y + b.z, a.z + b.y, a.w + b.x});
    uchar4 p = pixels[i];
    inverted[i] = uchar4{static_cast<unsigned char>(255 - p.x), p.w, p.z, p.y};
}

TEST_F(Memory, TypesOfAllSizes) {
    std::mt19937 random(22);
    std::vector<Mixed> in(COUNT), expected(COUNT);
    std::vector<float4> vectors(COUNT), sums(COUNT);
    std::vector<uchar4> pixels(COUNT), inverted(COUNT);
    for (int i = 0; i < COUNT; i++) {
        in[i] = Mixed{static_cast<double>(random()), static_cast<short>(random()), static_cast<signed char>(random()),
                      random() % 2 == 0, static_cast<float>(random() % 1000)};
        std::vector<float> v = random_floats(random, 4, -1.0f, 1.0f);
        vectors[i] = float4{v[0], v[1], v[2], v[3]};
        auto byte = [&] { return static_cast<unsigned char>(random()); };
        pixels[i] = uchar4{byte(), byte(), byte(), byte()};
    }
    for (int i = 0; i < COUNT; i++) {
        auto tiny = static_cast<signed char>(-in[i].tiny);
        expected[i] = Mixed{in[i].wide * 2, static_cast<short>(in[i].narrow * 3), tiny, !in[i].flag,
                            in[i].single + static_cast<float>(tiny)};
        float4 a = vectors[i], b = vectors[COUNT - 1 - i];
        sums[i] = float4{a.x + b.w, a.y + b.z, a.z + b.y, a.w + b.x};
        inverted[i] = uchar4{static_cast<unsigned char>(255 - pixels[i].x), pixels[i].w, pixels[i].z, pixels[i].y};
    }
    DeviceArray<Mixed> device_in(in), out(COUNT);
    DeviceArray<float4> device_vectors(vectors), device_sums(COUNT);
    DeviceArray<uchar4> device_pixels(pixels), device_inverted(COUNT);
    types_kernel<<<BLOCKS, THREADS>>>(device_in.data(), out.data(), device_vectors.data(), device_sums.data(),
                                      device_pixels.data(), device_inverted.data());
    LAUNCH_OK();
    expect_same(out.values(), expected, "structs");
    expect_same(device_sums.values(), sums, "vectors");
    expect_same(device_inverted.values(), inverted, "bytes");
}

struct Parameters {
    int table[900];
    double scale;
    char text[7];
};

__global__ void parameters_kernel(char first, Parameters parameters, short last, double *out) {
    int i = thread();
    out[i] = parameters.table[i * 7 % 900] * parameters.scale + parameters.text[i % 7] + first - last;
}

TEST_F(Memory, ParametersAreWholeStructs) {
    std::mt19937 random(23);
    Parameters parameters = {{}, 0.5, {1, 2, 3, 5, 7, 11, 13}};
    for (int &entry : parameters.table)
        entry = static_cast<int>(random() % 10000);
    DeviceArray<double> out(THREADS);
    parameters_kernel<<<1, THREADS>>>(-5, parameters, 300, out.data());
    LAUNCH_OK();
    std::vector<double> expected;
    for (int i = 0; i < THREADS; i++) {
        expected.push_back(parameters.table[i * 7 % 900] * 0.5 + parameters.text[i % 7] - 305);
    }
    expect_same(out.values(), expected, "results");
}

// ---- memory that host and device share -----------------------------------------------------------------------------

__managed__ int managed_variable = 30;
__global__ void host_kernel(int *pinned, int *managed) {
    pinned[thread()] += 1000;
    managed[thread()] *= 2;
    if (thread() == 0) managed_variable++;
}

TEST_F(Memory, PinnedAndManagedMemory) {
    int *pinned = nullptr, *on_device = nullptr, *managed = nullptr;
    CUDA_OK(cudaHostAlloc(&pinned, THREADS * sizeof(int), cudaHostAllocMapped));
    CUDA_OK(cudaHostGetDevicePointer(&on_device, pinned, 0));
    CUDA_OK(cudaMallocManaged(&managed, THREADS * sizeof(int)));
    for (int i = 0; i < THREADS; i++)
        pinned[i] = managed[i] = i;
    managed_variable = 41;
    host_kernel<<<1, THREADS>>>(on_device, managed);
    LAUNCH_OK();
    EXPECT_EQ(managed_variable, 42);
    for (int i = 0; i < THREADS; i++) {
        ASSERT_EQ(pinned[i], i + 1000);
        ASSERT_EQ(managed[i], 2 * i);
    }
    CUDA_OK(cudaFreeHost(pinned));
    CUDA_OK(cudaFree(managed));
}

// ---- atomics -------------------------------------------------------------------------------------------------------

struct Totals {
    int sum, lowest, highest, difference;
    unsigned all, any, parity, increments, decrements, count;
    unsigned long long wide_sum, wide_highest, wide_count;
    float float_sum;
    double double_sum;
    unsigned short half_count;
};

// `parts` is in global memory or, for each block, in shared memory.
__device__ void add_to(Totals *parts, int value) {
    atomicAdd(&parts->sum, value);
    atomicMin(&parts->lowest, value);
    atomicMax(&parts->highest, value);
    atomicSub(&parts->difference, value);
    atomicAnd(&parts->all, static_cast<unsigned>(value) | 0xffffu << value % 16);
    atomicOr(&parts->any, 1u << (value & 31));
    atomicXor(&parts->parity, static_cast<unsigned>(value));
    atomicInc(&parts->increments, 99);
    atomicDec(&parts->decrements, 99);
    unsigned long long wide = static_cast<unsigned long long>(value) << 33;
    atomicAdd(&parts->wide_sum, wide);
    atomicMax(&parts->wide_highest, wide);
    atomicAdd(&parts->float_sum, static_cast<float>(value));
    atomicAdd(&parts->double_sum, value * 0.5);
    // Compare and swap of 32, 64 and 16 bits: each thread succeeds once.
    for (unsigned old = 0, seen; (seen = atomicCAS(&parts->count, old, old + 1)) != old; old = seen) {
    }
    for (unsigned long long old = 0, seen; (seen = atomicCAS(&parts->wide_count, old, old + 1)) != old; old = seen) {
    }
    unsigned short half_old = 0, half_seen;
    while ((half_seen = atomicCAS(&parts->half_count, half_old, static_cast<unsigned short>(half_old + 1))) !=
           half_old) {
        half_old = half_seen;
    }
}

__global__ void global_atomics_kernel(const int *in, Totals *totals) { add_to(totals, in[global_index()]); }

__global__ void shared_atomics_kernel(const int *in, Totals start, Totals *totals) {
    __shared__ Totals parts;
    if (thread() == 0) parts = start;
    __syncthreads();
    add_to(&parts, in[global_index()]);
    __syncthreads();
    if (thread() == 0) totals[blockIdx.x] = parts;
}

void expect_totals(const Totals &totals, const Totals &start, const int *values, int count) {
    Totals expected = start;
    for (const int *v = values; v < values + count; v++) {
        expected.sum += *v;
        expected.lowest = std::min(expected.lowest, *v);
        expected.highest = std::max(expected.highest, *v);
        expected.difference -= *v;
        expected.all &= static_cast<unsigned>(*v) | 0xffffu << *v % 16;
        expected.any |= 1u << (*v & 31);
        expected.parity ^= static_cast<unsigned>(*v);
        expected.increments = expected.increments >= 99 ? 0 : expected.increments + 1;
        expected.decrements = expected.decrements == 0 ? 99 : expected.decrements - 1;
        expected.wide_sum += static_cast<unsigned long long>(*v) << 33;
        expected.wide_highest = std::max(expected.wide_highest, static_cast<unsigned long long>(*v) << 33);
        expected.float_sum += static_cast<float>(*v); // exact: whole numbers below 2^24
        expected.double_sum += *v * 0.5;
    }
    EXPECT_EQ(totals.sum, expected.sum);
    EXPECT_EQ(totals.lowest, expected.lowest);
    EXPECT_EQ(totals.highest, expected.highest);
    EXPECT_EQ(totals.difference, expected.difference);
    EXPECT_EQ(totals.all, expected.all);
    EXPECT_EQ(totals.any, expected.any);
    EXPECT_EQ(totals.parity, expected.parity);
    EXPECT_EQ(totals.increments, expected.increments);
    EXPECT_EQ(totals.decrements, expected.decrements);
    EXPECT_EQ(totals.wide_sum, expected.wide_sum);
    EXPECT_EQ(totals.wide_highest, expected.wide_highest);
    EXPECT_EQ(totals.float_sum, expected.float_sum);
    EXPECT_EQ(totals.double_sum, expected.double_sum);
    EXPECT_EQ(totals.count, static_cast<unsigned>(count));
    EXPECT_EQ(totals.wide_count, static_cast<unsigned>(count));
    EXPECT_EQ(totals.half_count, count);
}

TEST_F(Atomics, OfAllKindsInGlobalAndSharedMemory) {
    std::mt19937 random(24);
    std::vector<int> in = random_integers(random, COUNT, 0, 10000);
    Totals start = {};
    start.lowest = INT32_MAX;
    start.all = ~0u;
    start.decrements = 7;
    DeviceArray<int> input(in);
    DeviceArray<Totals> global(1, start), shared(BLOCKS);
    global_atomics_kernel<<<BLOCKS, THREADS>>>(input.data(), global.data());
    shared_atomics_kernel<<<BLOCKS, THREADS>>>(input.data(), start, shared.data());
    LAUNCH_OK();
    expect_totals(global.values()[0], start, in.data(), COUNT);
    std::vector<Totals> parts = shared.values();
    for (int b = 0; b < BLOCKS; b++)
        expect_totals(parts[b], start, &in[b * THREADS], THREADS);
}

// Every thread passes its number on and gets that of another: no number is lost.
__global__ void exchange_kernel(int *slot, int *out) {
    int got = global_index();
    for (int i = 0; i < 3; i++)
        got = atomicExch(slot, got);
    out[global_index()] = got;
}

TEST_F(Atomics, ExchangeLosesNothing) {
    DeviceArray<int> slot(1, -1), out(COUNT);
    exchange_kernel<<<BLOCKS, THREADS>>>(slot.data(), out.data());
    LAUNCH_OK();
    std::vector<int> numbers = out.values(), expected(COUNT + 1);
    numbers.push_back(slot.values()[0]);
    std::sort(numbers.begin(), numbers.end());
    std::iota(expected.begin(), expected.end(), -1);
    expect_same(numbers, expected, "numbers");
}

__global__ void atomic_ref_kernel(int *ticket, double *sum, int *order) {
    cuda::atomic_ref<int, cuda::thread_scope_device> next(*ticket);
    order[next.fetch_add(1, cuda::std::memory_order_relaxed)] = global_index();
    cuda::atomic_ref<double, cuda::thread_scope_device> total(*sum);
    double old = total.load(cuda::std::memory_order_relaxed);
    while (!total.compare_exchange_weak(old, old + global_index(), cuda::std::memory_order_acq_rel)) {
    }
}

TEST_F(Atomics, AtomicRef) {
    DeviceArray<int> ticket(1, 0), order(COUNT);
    DeviceArray<double> sum(1, 0.0);
    atomic_ref_kernel<<<BLOCKS, THREADS>>>(ticket.data(), sum.data(), order.data());
    LAUNCH_OK();
    std::vector<int> numbers = order.values(), expected(COUNT);
    std::sort(numbers.begin(), numbers.end());
    std::iota(expected.begin(), expected.end(), 0);
    expect_same(numbers, expected, "tickets");
    EXPECT_EQ(sum.values()[0], COUNT * (COUNT - 1) / 2);
}

// ---- asynchronous copies -------------------------------------------------------------------------------------------

constexpr int STAGES = 2;
constexpr int TILES = 5;

// Each block sums its tiles in reverse, the next one already on its way (cp.async where there is one).
__global__ void pipeline_kernel(const int *in, int *out) {
    __shared__ alignas(16) int tiles[STAGES][THREADS];
    auto pipe = cuda::make_pipeline();
    const int *first = in + static_cast<size_t>(blockIdx.x) * TILES * THREADS;
    auto fetch = [&](int tile) {
        pipe.producer_acquire();
        if (tile < TILES) {
            cuda::memcpy_async(&tiles[tile % STAGES][thread()], first + tile * THREADS + thread(), sizeof(int), pipe);
        }
        pipe.producer_commit();
    };
    fetch(0);
    int sum = 0;
    for (int tile = 0; tile < TILES; tile++) {
        fetch(tile + 1);
        cuda::pipeline_consumer_wait_prior<1>(pipe);
        __syncthreads();
        sum = sum * 3 + tiles[tile % STAGES][THREADS - 1 - thread()];
        pipe.consumer_release();
        __syncthreads();
    }
    out[global_index()] = sum;
}

// The same by whole blocks: a barrier counts the bytes, or a group waits.
__global__ void block_copy_kernel(const int *in, int *out) {
    __shared__ alignas(16) int tile[THREADS], other[THREADS];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    cg::thread_block block = cg::this_thread_block();
    if (thread() == 0) init(&arrived, THREADS);
    block.sync();
    int sum = 0;
    for (int i = 0; i < TILES; i++) {
        const int *from = in + (static_cast<size_t>(blockIdx.x) * TILES + i) * THREADS;
        cuda::memcpy_async(block, tile, from, cuda::aligned_size_t<16>(sizeof(tile)), arrived);
        cg::memcpy_async(block, other, from, sizeof(other));
        arrived.arrive_and_wait();
        cg::wait(block);
        sum = sum * 3 + (tile[THREADS - 1 - thread()] + other[THREADS - 1 - thread()]) / 2;
        block.sync();
    }
    out[global_index()] = sum;
}

TEST_F(Memory, AsynchronousCopies) {
    std::mt19937 random(25);
    std::vector<int> in = random_integers(random, COUNT * TILES, 0, 1000000), expected;
    for (int g = 0; g < COUNT; g++) {
        int sum = 0;
        for (int i = 0; i < TILES; i++) {
            sum = sum * 3 + in[(g / THREADS * TILES + i) * THREADS + THREADS - 1 - g % THREADS];
        }
        expected.push_back(sum);
    }
    DeviceArray<int> input(in), out(COUNT);
    pipeline_kernel<<<BLOCKS, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    expect_same(out.values(), expected, "pipeline");
    block_copy_kernel<<<BLOCKS, THREADS>>>(input.data(), out.data());
    LAUNCH_OK();
    expect_same(out.values(), expected, "block copy");
}

} // namespace
