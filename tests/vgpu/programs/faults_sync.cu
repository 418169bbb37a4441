// Threads that do not meet, or that use memory without meeting: divergent barriers, deadlocks, endless loops, races,
// each with correct neighbours that must not be reported, and kernels that end themselves. In each kernel the lines at
// fault are marked.
#undef NDEBUG // the assert of a kernel is one of the faults
#include <cassert>

#include "tests/vgpu/programs/device_array.cuh"
#include "tests/vgpu/programs/faults.h"

namespace {

using program::DeviceArray;

constexpr int THREADS = 64;

__device__ int thread() { return static_cast<int>(threadIdx.x); }
__device__ int lane() { return thread() % 32; }

// Launches a kernel on an array of zeros.
template <int BLOCKS = 1> cudaError_t run(void (*kernel)(int *)) {
    DeviceArray<int> data(BLOCKS * THREADS + 64, 0);
    kernel<<<BLOCKS, THREADS>>>(data.data());
    return cudaDeviceSynchronize();
}

// ---- barriers ------------------------------------------------------------------------------------------------------

// The other half of the warp waits as well, but elsewhere.
__global__ void divergent_barrier_kernel(int *out) {
    if (lane() < 16) __syncthreads();
    __syncwarp();
    out[thread()] = 1;
}

__global__ void uniform_barrier_kernel(int *out) {
    if (thread() < THREADS && out[0] == 0) __syncthreads();
    __syncwarp();
    out[1 + thread()] = 1;
}

// Both halves wait at a barrier of the whole block, but not at the same one.
__global__ void split_barrier_kernel(int *out) {
    if (lane() < 16) {
        __syncthreads();
        out[thread()] = 1;
    } else {
        __syncthreads();
        out[thread()] = thread() + 1;
    }
}

// Each warp waits at a barrier at which the other one never arrives.
__global__ void deadlock_kernel(int *out) {
    if (thread() < 32) {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 2, 64;" ::: "memory");
    }
    out[thread()] = 1;
}

// Half of the warp waits in a shuffle for the other half, which waits for it at a barrier.
__global__ void absent_lanes_kernel(int *out) {
    int value = thread();
    if (lane() < 16) {
        value = __shfl_xor_sync(~0u, value, 1);
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    }
    out[thread()] = value;
}

__global__ void present_lanes_kernel(int *out) {
    int value = thread();
    if (lane() < 16) {
        value = __shfl_xor_sync(0xffffu, value, 1);
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    }
    out[thread()] = value;
}

// The value of a lane that is not there any more, or that does something else.
__global__ void shuffle_from_exited_kernel(int *out) {
    if (lane() == 20) return;
    out[thread()] = __shfl_sync(~0u, thread(), 20);
}

__global__ void shuffle_from_outside_kernel(int *out) {
    if (lane() < 16) out[thread()] = __shfl_down_sync(0xffffu, thread(), 1);
}

// Within the half that takes part.
__global__ void shuffle_in_half_kernel(int *out) {
    if (lane() < 16) out[thread()] = __shfl_down_sync(0xffffu, thread(), 1, 16);
}

__global__ void endless_kernel(int *data) {
    if (thread() == 37) {
        while (*static_cast<volatile int *>(data) == 0) { // fault
        }
    }
}

// Half of the block spins on what the other half would write behind the barrier.
__global__ void spin_kernel(int *data) {
    if (thread() < 32) {
        __syncthreads();
        *static_cast<volatile int *>(data) = 1;
    } else {
        while (*static_cast<volatile int *>(data) == 0) { // fault
        }
        __syncthreads();
    }
}

// ---- races in shared memory ----------------------------------------------------------------------------------------

__global__ void shared_write_write_kernel(int *out) {
    __shared__ int last;
    last = thread(); // fault
    __syncthreads();
    out[thread()] = last;
}

__global__ void shared_write_atomic_kernel(int *out) {
    __shared__ int last;
    if (thread() == 0) last = 0;
    __syncthreads();
    atomicExch(&last, thread());
    __syncthreads();
    out[thread()] = last;
}

__global__ void missing_syncthreads_kernel(int *out) {
    __shared__ int array[THREADS];
    array[thread()] = 0;
    __syncthreads();
    array[thread()] = thread();               // fault
    out[thread()] = array[thread() ^ 32] + 1; // fault
}

__global__ void syncthreads_kernel(int *out) {
    __shared__ int array[THREADS];
    array[thread()] = 0;
    __syncthreads();
    array[thread()] = thread();
    __syncthreads();
    out[thread()] = array[thread() ^ 32] + 1;
}

__global__ void missing_syncwarp_kernel(int *out) {
    __shared__ int array[THREADS];
    array[thread()] = 0;
    __syncthreads();
    array[thread()] = thread();              // fault
    out[thread()] = array[thread() ^ 1] + 1; // fault
}

__global__ void syncwarp_kernel(int *out) {
    __shared__ int array[THREADS];
    array[thread()] = 0;
    __syncthreads();
    array[thread()] = thread();
    __syncwarp();
    out[thread()] = array[thread() ^ 1] + 1;
}

// The write of the next round overtakes the read of this one.
__global__ void one_barrier_a_round_kernel(int *out) {
    __shared__ int array[THREADS];
    int value = thread();
    for (int i = 0; i < 3; i++) {
        array[thread()] = value; // fault
        __syncthreads();
        value = array[(thread() + 33) % THREADS] + i; // fault
    }
    out[thread()] = value;
}

__global__ void two_barriers_a_round_kernel(int *out) {
    __shared__ int array[THREADS];
    int value = thread();
    for (int i = 0; i < 3; i++) {
        array[thread()] = value;
        __syncthreads();
        value = array[(thread() + 33) % THREADS] + i;
        __syncthreads();
    }
    out[thread()] = value;
}

// ---- races in global memory ----------------------------------------------------------------------------------------

__global__ void global_write_write_kernel(int *data) {
    if (thread() == 5) {
        data[0] = static_cast<int>(blockIdx.x); // fault
    }
}

__global__ void global_read_write_kernel(int *data) {
    if (thread() == 5) {
        if (blockIdx.x == 0) {
            data[0] = 7; // fault
        } else {
            data[blockIdx.x] = data[0]; // fault
        }
    }
}

__global__ void global_increment_kernel(int *data) {
    if (thread() == 5) {
        data[0]++; // fault
    }
}

__global__ void global_atomic_kernel(int *data) { atomicAdd(data, thread()); }

// Written by one block, read by another that has seen its flag.
__device__ void pass_on(int *data, bool with_fences) {
    volatile int *flag = data + 1;
    if (thread() > 0) return;
    if (blockIdx.x == 0) {
        data[0] = 7; // fault
        if (with_fences) __threadfence();
        *flag = 1;
    } else if (blockIdx.x == 1) {
        while (*flag == 0) {
        }
        if (with_fences) __threadfence();
        data[2] = data[0]; // fault
    }
}
__global__ void flag_kernel(int *data) { pass_on(data, true); }
__global__ void flag_without_fence_kernel(int *data) { pass_on(data, false); }

__global__ void atomic_flag_kernel(int *data) {
    if (thread() > 0) return;
    if (blockIdx.x == 0) {
        data[0] = 7;
        __threadfence();
        atomicExch(data + 1, 1);
    } else if (blockIdx.x == 1) {
        while (atomicAdd(data + 1, 0) == 0) {
        }
        __threadfence();
        data[2] = data[0];
    }
}

__global__ void global_barrier_kernel(int *data) {
    int *own = data + blockIdx.x * THREADS;
    own[thread()] = thread();
    __syncthreads();
    int value = own[thread() ^ 32];
    __syncthreads();
    own[thread()] += value;
}

// ---- kernels that end themselves -----------------------------------------------------------------------------------

__global__ void trap_kernel(int *data) {
    if (blockIdx.x == 1 && thread() == 37) {
        data[0] = 1;
        __trap(); // fault
    }
}

__global__ void assert_kernel(int *data) {
    if (blockIdx.x == 1) assert(thread() != 37 || data[0] != 0);
}

// ---- what the virtual GPU does not have ----------------------------------------------------------------------------

__global__ void tensor_kernel(int *data) {
    double x = data[0], y = 2.0;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%0}, {%1}, {%0, %1};" : "+d"(x), "+d"(y));
    data[0] = int(x + y);
}

__global__ void __cluster_dims__(2, 1, 1) cluster_kernel(int *data) { data[0] = 1; }

} // namespace

namespace faults {

std::vector<Program> sync_programs() {
    return {
        {"divergent_barrier", [] { return run(divergent_barrier_kernel); }},
        {"split_barrier", [] { return run(split_barrier_kernel); }},
        {"uniform_barrier", [] { return run(uniform_barrier_kernel); }},
        {"deadlock", [] { return run(deadlock_kernel); }},
        {"absent_lanes", [] { return run(absent_lanes_kernel); }},
        {"present_lanes", [] { return run(present_lanes_kernel); }},
        {"shuffle_from_exited", [] { return run(shuffle_from_exited_kernel); }},
        {"shuffle_from_outside", [] { return run(shuffle_from_outside_kernel); }},
        {"shuffle_in_half", [] { return run(shuffle_in_half_kernel); }},
        {"endless", [] { return run(endless_kernel); }},
        {"spin", [] { return run(spin_kernel); }},
        {"shared_write_write", [] { return run(shared_write_write_kernel); }},
        {"shared_write_atomic", [] { return run(shared_write_atomic_kernel); }},
        {"missing_syncthreads", [] { return run(missing_syncthreads_kernel); }},
        {"syncthreads", [] { return run(syncthreads_kernel); }},
        {"missing_syncwarp", [] { return run(missing_syncwarp_kernel); }},
        {"syncwarp", [] { return run(syncwarp_kernel); }},
        {"one_barrier_a_round", [] { return run(one_barrier_a_round_kernel); }},
        {"two_barriers_a_round", [] { return run(two_barriers_a_round_kernel); }},
        {"global_write_write", [] { return run<4>(global_write_write_kernel); }},
        {"global_read_write", [] { return run<4>(global_read_write_kernel); }},
        {"global_increment", [] { return run<4>(global_increment_kernel); }},
        {"global_atomic", [] { return run<4>(global_atomic_kernel); }},
        {"flag", [] { return run<2>(flag_kernel); }},
        {"flag_without_fence", [] { return run<2>(flag_without_fence_kernel); }},
        {"atomic_flag", [] { return run<2>(atomic_flag_kernel); }},
        {"global_barrier", [] { return run<4>(global_barrier_kernel); }},
        {"trap", [] { return run<2>(trap_kernel); }},
        {"assertion", [] { return run<2>(assert_kernel); }},
        {"tensor_cores", [] { return run<2>(tensor_kernel); }},
        {"clusters", [] { return run<2>(cluster_kernel); }},
    };
}

} // namespace faults
