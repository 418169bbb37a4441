// The list of leaks at a process's end. On a real GPU there is none, and nothing to test.
#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

class LeakTest : public RuntimeTest {
  protected:
    void SetUp() override {
        if (!is_virtual()) GTEST_SKIP() << "a real GPU reports no leaks";
        testing::FLAGS_gtest_death_test_style = "threadsafe";
        RuntimeTest::SetUp();
    }
};

void leak_memory() {
    void *device = nullptr, *pinned = nullptr, *managed = nullptr;
    EXPECT_CUDA(cudaMalloc(&device, 1111));
    EXPECT_CUDA(cudaMallocHost(&pinned, 2222));
    EXPECT_CUDA(cudaMallocManaged(&managed, 3333));
    exit(0);
}

TEST_F(LeakTest, MemoryIsListed) {
    EXPECT_EXIT(leak_memory(), testing::ExitedWithCode(99), "leak: device memory at 0x[0-9a-f]+, 1111 bytes");
    EXPECT_EXIT(leak_memory(), testing::ExitedWithCode(99), "leak: pinned memory at 0x[0-9a-f]+, 2222 bytes");
    EXPECT_EXIT(leak_memory(), testing::ExitedWithCode(99), "leak: managed memory at 0x[0-9a-f]+, 3333 bytes");
}

void leak_objects() {
    cudaStream_t stream = nullptr;
    cudaEvent_t events[2];
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamCreate(&stream));
    EXPECT_CUDA(cudaEventCreate(&events[0]));
    EXPECT_CUDA(cudaEventCreate(&events[1]));
    EXPECT_CUDA(cudaGraphCreate(&graph, 0));
    exit(0);
}

TEST_F(LeakTest, ObjectsAreCounted) {
    EXPECT_EXIT(leak_objects(), testing::ExitedWithCode(99), "leak: 1 streams not destroyed");
    EXPECT_EXIT(leak_objects(), testing::ExitedWithCode(99), "leak: 2 events not destroyed");
    EXPECT_EXIT(leak_objects(), testing::ExitedWithCode(99), "leak: 1 graphs not destroyed");
}

TEST_F(LeakTest, ALibrarysVariablesAreNone) { EXPECT_EXIT(exit(7), testing::ExitedWithCode(7), ""); }

// An object that is made before main() frees in its destructor, which runs last of the program's.
struct LateOwner {
    void *memory = nullptr;
    ~LateOwner() {
        if (memory != nullptr) (void)cudaFree(memory);
    }
} late_owner;

TEST_F(LeakTest, DestructorsOfStaticObjectsMayStillFree) {
    auto own = [] {
        EXPECT_CUDA(cudaMalloc(&late_owner.memory, 64));
        exit(7);
    };
    EXPECT_EXIT(own(), testing::ExitedWithCode(7), "");
}

TEST_F(LeakTest, MemoryWhoseFreeingWaitsIsNone) {
    auto free_late = [] {
        void *memory = nullptr;
        EXPECT_CUDA(cudaMallocAsync(&memory, 64, nullptr));
        EXPECT_CUDA(cudaFreeAsync(memory, nullptr));
        exit(7);
    };
    EXPECT_EXIT(free_late(), testing::ExitedWithCode(7), "");
}

TEST_F(LeakTest, AfterAFaultNothingCanBeFreed) {
    auto fault = [this] {
        void *memory = nullptr;
        EXPECT_CUDA(cudaMalloc(&memory, 64));
        EXPECT_CUDA(cudaLaunchKernel(kernel("wild"), dim3(1), dim3(1), nullptr, 0, nullptr));
        EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
        exit(7);
    };
    EXPECT_EXIT(fault(), testing::ExitedWithCode(7), "");
}

} // namespace
