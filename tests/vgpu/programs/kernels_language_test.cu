// What C++ asks of a kernel beyond arithmetic: calls through pointers, virtual functions, recursion, switches, loops of
// different length in each lane, printf, assert, three-dimensional launches, streams and events.
#undef NDEBUG // the assert of a kernel is what a test is about
#include <cassert>
#include <cstdio>

#include "tests/vgpu/programs/program_test.cuh"

namespace {

using namespace program;

class Language : public ProgramTest {};

constexpr int THREADS = 96;

__device__ int thread() { return static_cast<int>(threadIdx.x); }

// ---- calls ---------------------------------------------------------------------------------------------------------

__host__ __device__ __noinline__ int twice(int x) { return x * 2; }
__host__ __device__ __noinline__ int plus_hundred(int x) { return x + 100; }
__host__ __device__ __noinline__ int negated(int x) { return -x; }

using Function = int (*)(int);
__device__ Function table[2] = {plus_hundred, negated};

__global__ void pointers_kernel(int *out) {
    Function function = thread() % 3 == 2 ? twice : table[thread() % 3];
    out[thread()] = function(thread());
}

TEST_F(Language, FunctionPointers) {
    const Function functions[3] = {plus_hundred, negated, twice};
    DeviceArray<int> out(THREADS);
    pointers_kernel<<<1, THREADS>>>(out.data());
    LAUNCH_OK();
    std::vector<int> expected;
    for (int t = 0; t < THREADS; t++)
        expected.push_back(functions[t % 3](t));
    expect_same(out.values(), expected, "results");
}

struct Shape {
    __host__ __device__ explicit Shape(int size) : size_(size) {}
    __host__ __device__ virtual int area() const { return 0; }
    int size_;
};
struct Square : Shape {
    using Shape::Shape;
    __host__ __device__ int area() const override { return size_ * size_; }
};
struct Stripe : Shape {
    using Shape::Shape;
    __host__ __device__ int area() const override { return size_ * 3; }
};

__global__ void virtual_kernel(int *out) {
    Square square(thread());
    Stripe stripe(thread());
    Shape nothing(thread());
    const Shape *shapes[3] = {&square, &stripe, &nothing};
    out[thread()] = shapes[thread() * 5 % 3]->area() + 1;
}

TEST_F(Language, VirtualFunctions) {
    DeviceArray<int> out(THREADS);
    virtual_kernel<<<1, THREADS>>>(out.data());
    LAUNCH_OK();
    std::vector<int> expected;
    for (int t = 0; t < THREADS; t++) {
        const int areas[3] = {t * t, t * 3, 0};
        expected.push_back(areas[t * 5 % 3] + 1);
    }
    expect_same(out.values(), expected, "results");
}

__host__ __device__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__global__ void recursion_kernel(int *out) { out[thread()] = ackermann(thread() % 3, thread() % 7); }

TEST_F(Language, Recursion) {
    DeviceArray<int> out(THREADS);
    CUDA_OK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
    recursion_kernel<<<1, THREADS>>>(out.data());
    LAUNCH_OK();
    std::vector<int> expected;
    for (int t = 0; t < THREADS; t++)
        expected.push_back(ackermann(t % 3, t % 7));
    expect_same(out.values(), expected, "results");
}

// ---- control flow --------------------------------------------------------------------------------------------------

__host__ __device__ int by_case(int selector, int value) {
    switch (selector) {
    case 0:
        return value + 1;
    case 1:
        value *= 2;
        [[fallthrough]];
    case 2:
        return value - 5;
    case 3:
        return -value;
    case 4:
        return value ^ 0x55;
    case 5:
        return value << 3;
    case 6:
        return value / 7;
    case 40:
        return value % 7;
    default:
        return 12345;
    }
}

// Loops of different length, with breaks and continues in some lanes.
__host__ __device__ int collatz(int start) {
    int steps = 0;
    for (unsigned value = static_cast<unsigned>(start) + 1; value != 1; steps++) {
        if (steps == 100) break;
        if (value % 2 == 0) {
            value /= 2;
            continue;
        }
        value = 3 * value + 1;
    }
    return steps;
}

__global__ void control_kernel(int *out) {
    int sum = 0;
    for (int i = 0; i < 50; i++)
        sum = sum * 3 + by_case((thread() * 11 + i) % 50, sum + thread());
    out[thread()] = sum;
    out[THREADS + thread()] = collatz(thread());
}

TEST_F(Language, SwitchesAndLoops) {
    DeviceArray<int> out(2 * THREADS);
    control_kernel<<<1, THREADS>>>(out.data());
    LAUNCH_OK();
    std::vector<int> expected(2 * THREADS);
    for (int t = 0; t < THREADS; t++) {
        unsigned sum = 0; // wraps, as on the device
        for (int i = 0; i < 50; i++) {
            int value = static_cast<int>(sum + static_cast<unsigned>(t));
            sum = sum * 3 + static_cast<unsigned>(by_case((t * 11 + i) % 50, value));
        }
        expected[t] = static_cast<int>(sum);
        expected[THREADS + t] = collatz(t);
    }
    expect_same(out.values(), expected, "results");
}

// ---- launches ------------------------------------------------------------------------------------------------------

__global__ void indices_kernel(uint4 *out) {
    uint3 b = blockIdx, t = threadIdx;
    unsigned block = b.x + gridDim.x * (b.y + gridDim.y * b.z);
    unsigned thread = t.x + blockDim.x * (t.y + blockDim.y * t.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
        uint4{b.x << 8 | t.x, b.y << 8 | t.y, b.z << 8 | t.z, static_cast<unsigned>(warpSize)};
}

TEST_F(Language, ThreeDimensions) {
    dim3 grid(3, 4, 2), block(5, 3, 4);
    DeviceArray<uint4> out(3 * 4 * 2 * 5 * 3 * 4);
    indices_kernel<<<grid, block>>>(out.data());
    LAUNCH_OK();
    std::vector<uint4> expected;
    for (unsigned b = 0; b < 24; b++) {
        for (unsigned t = 0; t < 60; t++) {
            expected.push_back({b % 3 << 8 | t % 5, b / 3 % 4 << 8 | t / 5 % 3, b / 12 << 8 | t / 15, 32});
        }
    }
    expect_same(out.values(), expected, "indices");
}

TEST_F(Language, LaunchesThatCannotBe) {
    DeviceArray<uint4> out(1);
    indices_kernel<<<1, 1025>>>(out.data());
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    indices_kernel<<<0, 1>>>(out.data());
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    indices_kernel<<<dim3(1, 65536), 1>>>(out.data());
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    indices_kernel<<<1, 1>>>(out.data()); // none of them sticks
    LAUNCH_OK();
}

__global__ void append_kernel(int *values, int *count, int value) { values[(*count)++] = value; }

TEST_F(Language, StreamsAndEventsKeepTheOrder) {
    DeviceArray<int> values(20), count(1, 0);
    // cudaMemcpy of pageable memory may return before the copy is complete, and these streams do not wait for it.
    CUDA_OK(cudaDeviceSynchronize());
    cudaStream_t streams[2];
    cudaEvent_t done;
    for (cudaStream_t &stream : streams)
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int i = 0; i < 20; i++) {
        append_kernel<<<1, 1, 0, streams[i % 2]>>>(values.data(), count.data(), i * i);
        CUDA_OK(cudaEventRecord(done, streams[i % 2]));
        CUDA_OK(cudaStreamWaitEvent(streams[(i + 1) % 2], done, 0));
    }
    for (cudaStream_t stream : streams)
        CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<int> expected;
    for (int i = 0; i < 20; i++)
        expected.push_back(i * i);
    expect_same(values.values(), expected, "values");
    for (cudaStream_t stream : streams)
        CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaEventDestroy(done));
}

// ---- printf and assert ---------------------------------------------------------------------------------------------

__global__ void print_kernel(int value, const char *unused) {
    if (thread() != 1) return;
    int written = printf("%d %5.2f|%-6s|%c %llx %u%% %e\n", value, 1.5, "text", 'z', 0x123456789abcdefull, 7u, -2.5e10);
    printf("%d %p no newline", written, unused);
}

TEST_F(Language, Printf) {
    ::testing::internal::CaptureStdout();
    print_kernel<<<1, 2>>>(-42, nullptr);
    cudaError_t error = cudaDeviceSynchronize();
    fflush(stdout);
    std::string printed = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(error, cudaSuccess);
    // printf of a kernel returns the number of its arguments.
    EXPECT_EQ(printed, "-42  1.50|text  |z 123456789abcdef 7% -2.500000e+10\n7 (nil) no newline");
}

__global__ void assert_kernel(int limit) { assert(thread() < limit); }

// In a process of its own: after the error the device is of no use any more.
TEST_F(Language, AssertEndsTheKernel) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto run = [](int limit) {
        assert_kernel<<<1, THREADS>>>(limit);
        cudaError_t error = cudaDeviceSynchronize();
        bool sticks = cudaDeviceSynchronize() == error;
        _exit(error == cudaSuccess ? 3 : error == cudaErrorAssert && sticks ? 4 : 5);
    };
    EXPECT_EXIT(run(THREADS - 1), ::testing::ExitedWithCode(4), "thread\\(\\) < limit");
    EXPECT_EXIT(run(THREADS), ::testing::ExitedWithCode(3), "");
}

} // namespace
