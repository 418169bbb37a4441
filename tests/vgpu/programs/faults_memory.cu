// Accesses that must be reported: outside of every array, misaligned, to what was freed or never written. In each
// kernel the line at fault is marked.
#include "tests/vgpu/programs/device_array.cuh"
#include "tests/vgpu/programs/faults.h"

namespace {

using program::DeviceArray;

constexpr int THREADS = 64;
constexpr int SIZE = 100; // of the arrays: no multiple of what memory is handed out in

// The one thread that goes wrong, so that a report that names another is wrong.
__device__ bool is_culprit() { return blockIdx.x == 1 && threadIdx.x == 37; }

// ---- global memory -------------------------------------------------------------------------------------------------

__global__ void load_kernel(const int *in, long long index, int *out) {
    if (is_culprit()) {
        *out = in[index]; // fault
    }
}

__global__ void store_kernel(int *out, long long index) {
    if (is_culprit()) {
        out[index] = 5; // fault
    }
}

__global__ void wide_store_kernel(double *out, int index) {
    if (is_culprit()) {
        out[index] = 5; // fault
    }
}

cudaError_t load_from(const int *in, long long index) {
    DeviceArray<int> out(1);
    load_kernel<<<2, THREADS>>>(in, index, out.data());
    return cudaDeviceSynchronize();
}

cudaError_t store_to(int *out, long long index) {
    store_kernel<<<2, THREADS>>>(out, index);
    return cudaDeviceSynchronize();
}

// Between two others, so that what lies before and behind the array is memory that was handed out.
struct Neighbours {
    DeviceArray<int> before{SIZE, 1}, array{SIZE, 2}, behind{SIZE, 3};
};

cudaError_t load_at(long long index) {
    Neighbours neighbours;
    return load_from(neighbours.array.data(), index);
}
cudaError_t store_at(long long index) {
    Neighbours neighbours;
    return store_to(neighbours.array.data(), index);
}

// Begins in the array and ends behind it.
cudaError_t store_across_the_end() {
    DeviceArray<int> array(25, 0);
    wide_store_kernel<<<2, THREADS>>>(reinterpret_cast<double *>(array.data()), 12);
    return cudaDeviceSynchronize();
}

int *freed_array() {
    int *array = nullptr;
    CUDA_OK(cudaMalloc(&array, SIZE * sizeof(int)));
    CUDA_OK(cudaMemset(array, 0, SIZE * sizeof(int)));
    CUDA_OK(cudaFree(array));
    return array;
}

cudaError_t load_from_the_host() {
    std::vector<int> host(SIZE, 1);
    return load_from(host.data(), 3);
}

cudaError_t load_misaligned() {
    DeviceArray<char> array(SIZE, 0);
    return load_from(reinterpret_cast<const int *>(array.data() + 2), 1);
}
cudaError_t store_misaligned() {
    DeviceArray<char> array(SIZE, 0);
    return store_to(reinterpret_cast<int *>(array.data() + 1), 1);
}

// ---- shared and local memory ---------------------------------------------------------------------------------------

__global__ void shared_store_kernel(int index, int *out) {
    __shared__ int array[THREADS];
    array[threadIdx.x] = 1;
    __syncthreads();
    if (is_culprit()) {
        array[index] = 2; // fault
    }
    __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = array[threadIdx.x];
}

extern __shared__ int dynamic_array[];
__global__ void shared_load_kernel(int index, int *out) {
    dynamic_array[threadIdx.x] = 1;
    __syncthreads();
    if (is_culprit()) {
        out[0] = dynamic_array[index]; // fault
    }
}

__global__ void shared_misaligned_kernel(int offset, char *out) {
    __shared__ alignas(8) char array[THREADS];
    array[threadIdx.x] = 1;
    __syncthreads();
    if (is_culprit()) {
        *reinterpret_cast<int *>(array + offset) = 2; // fault
    }
    __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = array[threadIdx.x];
}

__global__ void local_kernel(int index, int *out) {
    int array[8];
    for (int i = 0; i < 8; i++)
        array[i] = i + static_cast<int>(threadIdx.x);
    if (is_culprit()) {
        array[index] = 2; // fault
    }
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum = sum * 3 + array[(i + out[0]) & 7];
    out[1 + blockIdx.x * THREADS + threadIdx.x] = sum;
}

cudaError_t store_shared(int index) {
    DeviceArray<int> out(2 * THREADS);
    shared_store_kernel<<<2, THREADS>>>(index, out.data());
    return cudaDeviceSynchronize();
}
cudaError_t load_shared(int index) {
    DeviceArray<int> out(1);
    shared_load_kernel<<<2, THREADS, THREADS * sizeof(int)>>>(index, out.data());
    return cudaDeviceSynchronize();
}
cudaError_t store_shared_misaligned() {
    DeviceArray<char> out(2 * THREADS);
    shared_misaligned_kernel<<<2, THREADS>>>(6, out.data());
    return cudaDeviceSynchronize();
}
cudaError_t store_local(int index) {
    DeviceArray<int> out(1 + 2 * THREADS, 0);
    local_kernel<<<2, THREADS>>>(index, out.data());
    return cudaDeviceSynchronize();
}

// ---- memory that was never written ---------------------------------------------------------------------------------

__global__ void shared_unwritten_kernel(int index, int *out) {
    __shared__ int array[THREADS + 1];
    array[threadIdx.x] = 1;
    __syncthreads();
    if (is_culprit()) {
        out[0] = array[index]; // fault
    }
}

__global__ void local_unwritten_kernel(int index, int count, int *out) {
    int array[8];
    for (int i = 0; i < count; i++)
        array[i] = i;
    if (is_culprit()) {
        out[0] = array[index]; // fault
    }
}

cudaError_t load_unwritten_global() {
    DeviceArray<int> array(SIZE);
    CUDA_OK(cudaMemset(array.data(), 0, 7 * sizeof(int)));
    return load_from(array.data(), 7);
}
cudaError_t load_partly_written_global() {
    DeviceArray<int> array(SIZE);
    CUDA_OK(cudaMemset(array.data(), 0, 7 * sizeof(int) + 3));
    return load_from(array.data(), 7);
}
cudaError_t load_written_global() {
    DeviceArray<int> array(SIZE);
    CUDA_OK(cudaMemset(array.data(), 0, 8 * sizeof(int)));
    return load_from(array.data(), 7);
}
cudaError_t load_unwritten_shared(int index) {
    DeviceArray<int> out(1);
    shared_unwritten_kernel<<<2, THREADS>>>(index, out.data());
    return cudaDeviceSynchronize();
}
cudaError_t load_unwritten_local(int index) {
    DeviceArray<int> out(1);
    local_unwritten_kernel<<<2, THREADS>>>(index, 6, out.data());
    return cudaDeviceSynchronize();
}

cudaError_t leak() {
    void *lost = nullptr;
    CUDA_OK(cudaMalloc(&lost, 1234));
    return cudaDeviceSynchronize();
}

} // namespace

namespace faults {

std::vector<Program> memory_programs() {
    return {
        {"global_load_behind", [] { return load_at(SIZE); }},
        {"global_load_before", [] { return load_at(-1); }},
        {"global_load_far", [] { return load_at(1LL << 40); }},
        {"global_load_null", [] { return load_from(nullptr, 0); }},
        {"global_load_host", load_from_the_host},
        {"global_load_last", [] { return load_at(SIZE - 1); }},
        {"global_store_behind", [] { return store_at(SIZE); }},
        {"global_store_before", [] { return store_at(-1); }},
        {"global_store_far", [] { return store_at(-(1LL << 40)); }},
        {"global_store_null", [] { return store_to(nullptr, 0); }},
        {"global_store_across_end", store_across_the_end},
        {"global_store_last", [] { return store_at(SIZE - 1); }},
        {"global_load_misaligned", load_misaligned},
        {"global_store_misaligned", store_misaligned},
        {"freed_load", [] { return load_from(freed_array(), 3); }},
        {"freed_store", [] { return store_to(freed_array(), 3); }},
        {"shared_store_behind", [] { return store_shared(THREADS); }},
        {"shared_store_before", [] { return store_shared(-1); }},
        {"shared_store_far", [] { return store_shared(1 << 20); }},
        {"shared_store_last", [] { return store_shared(THREADS - 1); }},
        {"dynamic_shared_load_behind", [] { return load_shared(THREADS); }},
        {"shared_misaligned", store_shared_misaligned},
        {"local_store_behind", [] { return store_local(8); }},
        {"local_store_before", [] { return store_local(-1); }},
        {"local_store_far", [] { return store_local(1 << 24); }},
        {"local_store_last", [] { return store_local(7); }},
        {"global_unwritten", load_unwritten_global},
        {"global_partly_written", load_partly_written_global},
        {"global_written", load_written_global},
        {"shared_unwritten", [] { return load_unwritten_shared(THREADS); }},
        {"shared_written", [] { return load_unwritten_shared(THREADS - 1); }},
        {"local_unwritten", [] { return load_unwritten_local(6); }},
        {"local_written", [] { return load_unwritten_local(5); }},
        {"leak", leak},
    };
}

} // namespace faults
