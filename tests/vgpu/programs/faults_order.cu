// Threads that use memory that others wrote and are ordered by flags, fences, atomic operations and barriers in memory,
// or would be if they did it right. In each kernel the lines at fault are marked.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda_pipeline.h>

#include "tests/vgpu/programs/device_array.cuh"
#include "tests/vgpu/programs/faults.h"

namespace {

using program::DeviceArray;

constexpr int THREADS = 64;
constexpr int FLAG = 1024, RESULT = 1100; // in the arrays; the data is before them
constexpr int SIZE = 2048;

__device__ int thread() { return static_cast<int>(threadIdx.x); }
__device__ int block() { return static_cast<int>(blockIdx.x); }
__device__ int lane() { return thread() % 32; }

// Launches a kernel on an array of zeros.
template <int BLOCKS = 1> cudaError_t run(void (*kernel)(int *)) {
    DeviceArray<int> data(SIZE, 0);
    kernel<<<BLOCKS, THREADS>>>(data.data());
    return cudaDeviceSynchronize();
}

// ---- flags between blocks ------------------------------------------------------------------------------------------

enum class Fence { none, block, device };

template <Fence FENCE> __device__ void fence() {
    if (FENCE == Fence::block) __threadfence_block();
    if (FENCE == Fence::device) __threadfence();
}

// Block 0 gives its threads' data to block 1.
template <bool MEETS, Fence BEFORE, Fence BEHIND> __global__ void hand_over_kernel(int *data) {
    volatile int *flag = data + FLAG;
    if (block() == 0) {
        data[thread()] = thread() + 1;
        if (MEETS) __syncthreads();
        if (thread() == 0) {
            fence<BEFORE>();
            *flag = 1;
        }
    } else {
        if (thread() == 0) {
            while (*flag == 0) {
            }
            fence<BEHIND>();
        }
        __syncthreads();
        data[RESULT + thread()] = data[63 - thread()]; // fault
    }
}

// Each block waits for the one before it, and the last one uses what the first one wrote.
__global__ void relay_kernel(int *data) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(data[FLAG]);
    if (block() == 0) data[thread()] = thread() + 1;
    __syncthreads();
    if (thread() == 0) {
        while (flag.load(cuda::memory_order_acquire) != block()) {
        }
    }
    __syncthreads();
    if (block() == 3) data[RESULT + thread()] = data[63 - thread()];
    __syncthreads();
    if (thread() == 0) flag.store(block() + 1, cuda::memory_order_release);
}

// The block that comes last adds up what all have left.
template <Fence FENCE> __global__ void last_block_kernel(int *data) {
    __shared__ bool is_last;
    if (thread() == 0) {
        data[block()] = block() + 1;
        fence<FENCE>();
        is_last = atomicAdd(data + FLAG, 1) == 3;
    }
    __syncthreads();
    if (is_last && thread() < 4) {
        data[RESULT + thread()] = data[3 - thread()]; // fault
    }
}

template <Fence FENCE> __global__ void lock_kernel(int *data) {
    if (thread() % 32 != 0) return;
    while (atomicCAS(data + FLAG, 0, 1) != 0) {
    }
    fence<Fence::device>();
    data[0] += 1; // fault
    fence<FENCE>();
    atomicExch(data + FLAG, 0);
}

__global__ void block_atomic_kernel(int *data) {
    if (thread() == 0) atomicAdd_block(data, 1); // fault
}
__global__ void own_block_atomic_kernel(int *data) { atomicAdd_block(data + block(), 1); }

__global__ void grid_kernel(int *data) {
    data[block() * THREADS + thread()] = thread();
    cooperative_groups::this_grid().sync();
    data[RESULT + block() * THREADS + thread()] = data[(3 - block()) * THREADS + 63 - thread()];
}
cudaError_t run_grid() {
    DeviceArray<int> data(SIZE, 0);
    int *argument = data.data();
    void *arguments[] = {&argument};
    CUDA_OK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid_kernel), 4, THREADS, arguments, 0, nullptr));
    return cudaDeviceSynchronize();
}

// ---- within a block ------------------------------------------------------------------------------------------------

// One warp gives its data to the other.
template <Fence FENCE> __global__ void block_flag_kernel(int *data) {
    __shared__ int array[32];
    __shared__ int flag;
    if (thread() == 0) flag = 0;
    __syncthreads();
    if (thread() < 32) {
        array[lane()] = lane();
        __syncwarp();
        fence<FENCE>();
        if (lane() == 0) atomicExch(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) == 0) {
        }
        fence<FENCE>();
        data[lane()] = array[31 - lane()]; // fault
    }
}

__global__ void shared_atomic_kernel(int *data) {
    __shared__ int sum;
    if (thread() == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, thread());
    data[thread()] = sum; // fault
}

// Only the lanes of the mask are ordered.
template <unsigned MASK> __global__ void half_warp_kernel(int *data) {
    __shared__ int array[THREADS];
    array[thread()] = 0;
    __syncthreads();
    array[thread()] = thread();
    if (lane() < 16) {
        __syncwarp(0xffffu);
        data[thread()] = array[thread() ^ MASK]; // fault
    }
}

__global__ void same_value_kernel(int *data) {
    __shared__ int found;
    if (thread() < 32) found = data[0] + 7;
    __syncthreads();
    data[1 + thread()] = found;
}

__global__ void bytes_kernel(int *data) {
    __shared__ unsigned char bytes[THREADS + 2];
    bytes[thread() + 2] = static_cast<unsigned char>(thread());
    auto *global = reinterpret_cast<unsigned char *>(data) + 2;
    global[block() * THREADS + thread()] = bytes[thread() + 2];
    __syncthreads();
    data[RESULT + block() * THREADS + thread()] = bytes[63 - thread() + 2];
}

// Each thread copies a word and uses another one's.
template <bool MEETS> __global__ void copy_kernel(int *data) {
    __shared__ int array[THREADS];
    array[thread()] = 0;
    __syncthreads();
    __pipeline_memcpy_async(&array[thread()], &data[thread()], sizeof(int));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (MEETS) __syncthreads();
    data[RESULT + thread()] = array[63 - thread()]; // fault
}

// Arrives at a barrier in memory, before or behind what the others wait for.
template <bool IS_WRITTEN_BEFORE> __global__ void barrier_kernel(int *data) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int array[THREADS];
    if (thread() == 0) init(&barrier, THREADS);
    __syncthreads();
    if (IS_WRITTEN_BEFORE) array[thread()] = thread();
    auto token = barrier.arrive();
    if (!IS_WRITTEN_BEFORE) array[thread()] = thread(); // fault
    barrier.wait(std::move(token));
    data[thread()] = array[63 - thread()]; // fault
}

} // namespace

namespace faults {

std::vector<Program> order_programs() {
    constexpr Fence NONE = Fence::none, BLOCK = Fence::block, DEVICE = Fence::device;
    return {
        {"hand_over", [] { return run<2>(hand_over_kernel<true, DEVICE, DEVICE>); }},
        {"hand_over_unmet", [] { return run<2>(hand_over_kernel<false, DEVICE, DEVICE>); }},
        {"hand_over_unreleased", [] { return run<2>(hand_over_kernel<true, NONE, DEVICE>); }},
        {"hand_over_unacquired", [] { return run<2>(hand_over_kernel<true, DEVICE, NONE>); }},
        {"hand_over_in_block", [] { return run<2>(hand_over_kernel<true, BLOCK, DEVICE>); }},
        {"relay", [] { return run<4>(relay_kernel); }},
        {"last_block", [] { return run<4>(last_block_kernel<DEVICE>); }},
        {"last_block_unfenced", [] { return run<4>(last_block_kernel<NONE>); }},
        {"lock", [] { return run<4>(lock_kernel<DEVICE>); }},
        {"lock_unfenced", [] { return run<4>(lock_kernel<NONE>); }},
        {"block_atomic", [] { return run<4>(block_atomic_kernel); }},
        {"own_block_atomic", [] { return run<4>(own_block_atomic_kernel); }},
        {"grid_sync", run_grid},
        {"block_flag", [] { return run(block_flag_kernel<BLOCK>); }},
        {"block_flag_unfenced", [] { return run(block_flag_kernel<NONE>); }},
        {"shared_atomic_read", [] { return run(shared_atomic_kernel); }},
        {"half_warp", [] { return run(half_warp_kernel<1>); }},
        {"other_half_warp", [] { return run(half_warp_kernel<16>); }},
        {"same_value", [] { return run(same_value_kernel); }},
        {"bytes", [] { return run<3>(bytes_kernel); }},
        {"copy", [] { return run(copy_kernel<true>); }},
        {"copy_unmet", [] { return run(copy_kernel<false>); }},
        {"memory_barrier", [] { return run(barrier_kernel<true>); }},
        {"memory_barrier_too_early", [] { return run(barrier_kernel<false>); }},
    };
}

} // namespace faults
