// Devices, their properties and limits; errors and where they stay.
#include <thread>

#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

class DeviceTest : public RuntimeTest {};

TEST_F(DeviceTest, PropertiesAndAttributesAgree) {
    cudaDeviceProp properties;
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
    auto attribute = [](cudaDeviceAttr which) {
        int value = -1;
        EXPECT_CUDA(cudaDeviceGetAttribute(&value, which, 0));
        return value;
    };
    EXPECT_GT(strlen(properties.name), 0u);
    EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMajor), properties.major);
    EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMinor), properties.minor);
    EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), properties.multiProcessorCount);
    EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerMultiProcessor), properties.maxThreadsPerMultiProcessor);
    EXPECT_EQ(attribute(cudaDevAttrMaxGridDimX), properties.maxGridSize[0]);
    EXPECT_EQ(attribute(cudaDevAttrMaxGridDimZ), properties.maxGridSize[2]);
    EXPECT_EQ(attribute(cudaDevAttrMaxBlockDimZ), properties.maxThreadsDim[2]);
    EXPECT_EQ(attribute(cudaDevAttrMaxTexture3DDepthAlt), properties.maxTexture3DAlt[2]);
    EXPECT_EQ(static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
              properties.sharedMemPerBlockOptin);
    EXPECT_EQ(static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)),
              properties.sharedMemPerMultiprocessor);
    EXPECT_EQ(properties.warpSize, 32);
    EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
    EXPECT_EQ(properties.sharedMemPerBlock, 49152u);
    EXPECT_LT(properties.sharedMemPerBlock, properties.sharedMemPerBlockOptin);

    size_t free_bytes = 0, total_bytes = 0;
    ASSERT_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    EXPECT_EQ(total_bytes, properties.totalGlobalMem);
    EXPECT_LE(free_bytes, total_bytes);
}

TEST_F(DeviceTest, UnknownAttributesAndDevicesAreRefused) {
    int value = 0, count = 0;
    ASSERT_CUDA(cudaGetDeviceCount(&count));
    EXPECT_CUDA_ERROR(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(107), 0), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count), cudaErrorInvalidDevice);
    EXPECT_CUDA_ERROR(cudaSetDevice(count), cudaErrorInvalidDevice);
    EXPECT_CUDA_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice);
    int current = -1;
    EXPECT_CUDA(cudaGetDevice(&current));
    EXPECT_EQ(current, 0);
}

TEST_F(DeviceTest, BusIdsAreFoundAgain) {
    char text[32];
    int device = -1;
    ASSERT_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, 0));
    ASSERT_CUDA(cudaDeviceGetByPCIBusId(&device, text));
    EXPECT_EQ(device, 0);
    EXPECT_CUDA_ERROR(cudaDeviceGetPCIBusId(text, 4, 0), cudaErrorInvalidValue);
}

TEST_F(DeviceTest, LimitsAreKept) {
    size_t before = 0, after = 0;
    ASSERT_CUDA(cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize));
    ASSERT_CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 * before));
    ASSERT_CUDA(cudaDeviceGetLimit(&after, cudaLimitMallocHeapSize));
    EXPECT_GE(after, 2 * before);
    EXPECT_CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, before));
    EXPECT_CUDA_ERROR(cudaDeviceGetLimit(&after, static_cast<cudaLimit>(7)), cudaErrorUnsupportedLimit);
}

TEST_F(DeviceTest, ErrorTexts) {
    EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
    EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorCooperativeLaunchTooLarge), "too many blocks in cooperative launch");
    EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(10)), "unrecognized error code");
    EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12000)), "unrecognized error code");
}

TEST_F(DeviceTest, LastErrorIsEachThreadsOwn) {
    EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    std::thread([] {
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
        EXPECT_EQ(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
        EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
    }).join();
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT_CUDA(cudaDeviceSynchronize()); // a success takes nothing away
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(DeviceTest, VersionsAreThoseOfTheHeaders) {
    int version = 0;
    ASSERT_CUDA(cudaRuntimeGetVersion(&version));
    EXPECT_EQ(version / 1000, CUDART_VERSION / 1000);
    ASSERT_CUDA(cudaDriverGetVersion(&version));
    EXPECT_GE(version, CUDART_VERSION / 1000 * 1000);
}

// A fault ends the device for the process, so that it has one of its own.
using FaultTest = DeviceTest;

TEST_F(FaultTest, SticksFromTheNextSynchronisation) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    auto fault = [this] {
        void *memory = nullptr;
        bool is_right = cudaMalloc(&memory, 16) == cudaSuccess;
        is_right &= cudaLaunchKernel(kernel("wild"), dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess;
        is_right &= cudaDeviceSynchronize() == cudaErrorIllegalAddress;
        is_right &= cudaGetLastError() == cudaErrorIllegalAddress;
        is_right &= cudaMalloc(&memory, 16) == cudaErrorIllegalAddress;
        is_right &= cudaMemset(memory, 0, 16) == cudaErrorIllegalAddress;
        is_right &= cudaStreamQuery(nullptr) == cudaErrorIllegalAddress;
        is_right &= cudaFree(memory) == cudaErrorIllegalAddress;
        std::thread([&] { is_right &= cudaDeviceSynchronize() == cudaErrorIllegalAddress; }).join();
        int device = -1;
        is_right &= cudaGetDevice(&device) == cudaSuccess && device == 0;
        _exit(is_right ? 42 : 1);
    };
    EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
}

TEST_F(FaultTest, ResetTakesItAway) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    auto fault = [this] {
        bool is_right = cudaLaunchKernel(kernel("wild"), dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess;
        is_right &= cudaDeviceSynchronize() == cudaErrorIllegalAddress;
        is_right &= cudaDeviceReset() == cudaSuccess;
        void *memory = nullptr;
        is_right &= cudaMalloc(&memory, 16) == cudaSuccess;
        is_right &= cudaMemset(memory, 1, 16) == cudaSuccess;
        is_right &= cudaDeviceSynchronize() == cudaSuccess;
        _exit(is_right ? 42 : 1);
    };
    if (!is_virtual()) GTEST_SKIP() << "the real runtime does not promise it";
    EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
}

// What comes after the fault does not run.
TEST_F(FaultTest, NothingRunsAfterIt) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    auto fault = [this] {
        static bool is_called = false;
        bool is_right = cudaLaunchKernel(kernel("wild"), dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess;
        auto call = [](void *) { is_called = true; };
        is_right &= cudaLaunchHostFunc(nullptr, call, nullptr) == cudaSuccess;
        is_right &= cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress;
        _exit(is_right && !is_called ? 42 : 1);
    };
    if (!is_virtual()) GTEST_SKIP() << "the launch may tell of the fault already";
    EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
}

// What a graph copies or fills may be freed after it was made.
TEST_F(FaultTest, CopiesAndFillsAreCheckedWhenTheyRun) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    if (!is_virtual()) GTEST_SKIP() << "a real GPU need not notice";
    enum Which { FILL, COPY_TO, COPY_FROM };
    auto fault = [](Which which) {
        void *kept = nullptr, *freed = nullptr;
        bool is_right = cudaMalloc(&kept, 4000) == cudaSuccess && cudaMalloc(&freed, 4000) == cudaSuccess;
        cudaGraph_t graph = nullptr;
        cudaGraphNode_t node = nullptr;
        cudaGraphExec_t exec = nullptr;
        is_right &= cudaGraphCreate(&graph, 0) == cudaSuccess;
        cudaMemsetParams fill{freed, 0, 7, 4, 1000, 1};
        void *to = which == COPY_TO ? freed : kept, *from = which == COPY_TO ? kept : freed;
        is_right &= (which == FILL ? cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill)
                                   : cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, to, from, 4000,
                                                              cudaMemcpyDeviceToDevice)) == cudaSuccess;
        is_right &= cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
        is_right &= cudaGraphLaunch(exec, nullptr) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
        is_right &= cudaFree(freed) == cudaSuccess && cudaGraphLaunch(exec, nullptr) == cudaSuccess;
        is_right &= cudaDeviceSynchronize() == cudaErrorIllegalAddress;
        _exit(is_right ? 42 : 1);
    };
    EXPECT_EXIT(fault(FILL), testing::ExitedWithCode(42),
                "out-of-bounds write by a fill of 4000 bytes: address 0x[0-9a-f]+: .*freed allocation of 4000 bytes");
    EXPECT_EXIT(fault(COPY_TO), testing::ExitedWithCode(42), "out-of-bounds write by a copy of 4000 bytes");
    EXPECT_EXIT(fault(COPY_FROM), testing::ExitedWithCode(42), "out-of-bounds read by a copy of 4000 bytes");
}

// ---- several devices -----------------------------------------------------------------------------------------------

class DevicesTest : public RuntimeTest {
  protected:
    void SetUp() override {
        RuntimeTest::SetUp();
        if (IsSkipped()) return;
        ASSERT_CUDA(cudaGetDeviceCount(&count_));
        if (count_ < 2) GTEST_SKIP() << "one GPU: VGPU_DEVICES=8 has more";
    }
    int count_ = 0;
};

TEST_F(DevicesTest, CurrentDeviceIsEachThreadsOwn) {
    ASSERT_CUDA(cudaSetDevice(1));
    std::thread([] {
        int device = -1;
        EXPECT_CUDA(cudaGetDevice(&device));
        EXPECT_EQ(device, 0);
    }).join();
    int device = -1;
    EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 1);
}

TEST_F(DevicesTest, WorkOnAllAtOnceAndACopyAround) {
    constexpr uint32_t n = 1000;
    std::vector<uint32_t *> words(static_cast<size_t>(count_));
    for (int i = 0; i < count_; i++) {
        ASSERT_CUDA(cudaSetDevice(i));
        ASSERT_CUDA(cudaMalloc(reinterpret_cast<void **>(&words[static_cast<size_t>(i)]), n * 4));
        ASSERT_CUDA(launch("fill", words[static_cast<size_t>(i)], n, 100u + static_cast<uint32_t>(i), nullptr));
        cudaPointerAttributes attributes;
        ASSERT_CUDA(cudaPointerGetAttributes(&attributes, words[static_cast<size_t>(i)]));
        EXPECT_EQ(attributes.device, i);
        EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    }
    for (int i = 0; i < count_; i++) {
        ASSERT_CUDA(cudaSetDevice(i));
        ASSERT_CUDA(cudaDeviceSynchronize());
    }
    // From device to device, beginning with the last but one: all get that one's words.
    for (int i = 0; i < count_; i++) {
        size_t to = static_cast<size_t>((i + count_ - 1) % count_),
               from = static_cast<size_t>((i + count_ - 2) % count_);
        ASSERT_CUDA(cudaMemcpyPeer(words[to], static_cast<int>(to), words[from], static_cast<int>(from), n * 4));
        ASSERT_CUDA(cudaDeviceSynchronize());
        std::vector<uint32_t> host(n);
        ASSERT_CUDA(cudaMemcpy(host.data(), words[to], n * 4, cudaMemcpyDefault));
        EXPECT_EQ(host, words_of(n, 98u + static_cast<uint32_t>(count_)));
    }
    for (uint32_t *each : words)
        EXPECT_CUDA(cudaFree(each));
}

TEST_F(DevicesTest, EventsOrderStreamsOfDifferentDevices) {
    constexpr uint32_t n = 256;
    DeviceWords first(n);
    Stream stream_0;
    Event event;
    ASSERT_CUDA(launch_slow(first.get(), 1, stream_0));
    ASSERT_CUDA(launch("fill", first.get(), n, 5, stream_0));
    ASSERT_CUDA(cudaEventRecord(event, stream_0));
    ASSERT_CUDA(cudaSetDevice(1));
    {
        DeviceWords second(n);
        Stream stream_1;
        EXPECT_CUDA_ERROR(cudaEventRecord(event, stream_1), cudaErrorInvalidResourceHandle);
        EXPECT_CUDA_ERROR(launch("fill", second.get(), n, 1, stream_0), cudaErrorInvalidResourceHandle);
        ASSERT_CUDA(cudaStreamWaitEvent(stream_1, event, 0));
        ASSERT_CUDA(cudaMemcpyPeerAsync(second.get(), 1, first.get(), 0, n * 4, stream_1));
        ASSERT_CUDA(launch("mix", second.get(), n, 2, stream_1));
        EXPECT_EQ(second.read(), words_of(n, 17));
    }
    ASSERT_CUDA(cudaSetDevice(0));
}

// Memory of the host is every device's: to free it waits for them all.
TEST_F(DevicesTest, FreeingHostMemoryWaitsForAll) {
    if (!is_virtual()) GTEST_SKIP() << "the documentation does not promise it";
    std::vector<uint32_t> own(16);
    void *pinned = nullptr, *managed = nullptr;
    ASSERT_CUDA(cudaMallocHost(&pinned, 64));
    ASSERT_CUDA(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal));
    ASSERT_CUDA(cudaHostRegister(own.data(), 64, cudaHostRegisterDefault));
    ASSERT_CUDA(cudaSetDevice(1));
    DeviceWords words(16);
    Stream stream;
    auto expect_waiting = [&](void *memory, cudaError_t (*free)(void *)) {
        EXPECT_CUDA(launch_slow(words.get(), 1, stream));
        EXPECT_CUDA(cudaMemcpyAsync(memory, words.get(), 64, cudaMemcpyDefault, stream));
        EXPECT_CUDA(cudaSetDevice(0));
        EXPECT_CUDA(free(memory));
        EXPECT_CUDA(cudaSetDevice(1));
        EXPECT_CUDA(cudaStreamQuery(stream));
    };
    expect_waiting(pinned, cudaFreeHost);
    expect_waiting(managed, cudaFree);
    expect_waiting(own.data(), cudaHostUnregister);
    EXPECT_EQ(own[0], 1u);
}

TEST_F(DevicesTest, PeersAreEnabledOnce) {
    int can = -1;
    EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
    EXPECT_EQ(can, 0);
    ASSERT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
    if (can == 0) GTEST_SKIP() << "these GPUs are no peers";
    EXPECT_CUDA(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT_CUDA_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    EXPECT_CUDA(cudaDeviceDisablePeerAccess(1));
    EXPECT_CUDA_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    EXPECT_CUDA_ERROR(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
}

TEST_F(DevicesTest, OnlyPeersReachTheMemory) {
    constexpr uint32_t n = 64;
    int can = -1;
    ASSERT_CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
    if (can == 0) GTEST_SKIP() << "these GPUs are no peers";
    DeviceWords theirs(n);
    void *pinned = nullptr, *managed = nullptr;
    ASSERT_CUDA(cudaMallocHost(&pinned, n * 4));
    ASSERT_CUDA(cudaMallocManaged(&managed, n * 4, cudaMemAttachGlobal));
    ASSERT_CUDA(launch("fill", theirs.get(), n, 5, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaSetDevice(1));
    for (void *hosts : {pinned, managed}) {
        EXPECT_CUDA(launch("fill", static_cast<uint32_t *>(hosts), n, 5, nullptr));
        EXPECT_CUDA(cudaDeviceSynchronize());
    }
    ASSERT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
    EXPECT_CUDA(launch("mix", theirs.get(), n, 2, nullptr));
    EXPECT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaDeviceDisablePeerAccess(0));
    if (is_virtual()) { // on a real one nothing would work any more
        EXPECT_CUDA(launch("mix", theirs.get(), n, 2, nullptr));
        EXPECT_CUDA_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
        ASSERT_CUDA(cudaDeviceReset());
    }
    ASSERT_CUDA(cudaSetDevice(0));
    EXPECT_EQ(theirs.read(), words_of(n, 17));
    EXPECT_CUDA(cudaFreeHost(pinned));
    EXPECT_CUDA(cudaFree(managed));
}

TEST_F(DevicesTest, MemoryOfAPoolIsForWhomItIsGivenTo) {
    constexpr uint32_t n = 64;
    int can = -1;
    ASSERT_CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
    if (can == 0) GTEST_SKIP() << "these GPUs are no peers";
    cudaMemPool_t pool = nullptr;
    void *words = nullptr;
    cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, {1}}, cudaMemAccessFlagsProtReadWrite};
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtRead;
    ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
    EXPECT_EQ(flags, cudaMemAccessFlagsProtNone);
    ASSERT_CUDA(cudaMallocAsync(&words, n * 4, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
    EXPECT_CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
    EXPECT_EQ(flags, cudaMemAccessFlagsProtReadWrite);
    ASSERT_CUDA(cudaSetDevice(1));
    EXPECT_CUDA(launch("fill", static_cast<uint32_t *>(words), n, 5, nullptr));
    EXPECT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaSetDevice(0));
    access.flags = cudaMemAccessFlagsProtNone;
    EXPECT_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
    EXPECT_CUDA(cudaFree(words));
}

TEST_F(DevicesTest, VariablesOfALibraryAreEachDevicesOwn) {
    uint32_t value = 0;
    void *address[2] = {};
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) {
        ASSERT_CUDA(cudaSetDevice(i));
        ASSERT_CUDA(cudaLibraryGetGlobal(&address[i], &bytes, library_, "counter"));
        EXPECT_EQ(bytes, 4u);
        ASSERT_CUDA(cudaMemcpy(&value, address[i], 4, cudaMemcpyDeviceToHost));
        EXPECT_EQ(value, 7u);
        ASSERT_CUDA(cudaMemset(address[i], i, 4));
        ASSERT_CUDA(cudaDeviceSynchronize());
    }
    EXPECT_NE(address[0], address[1]);
    ASSERT_CUDA(cudaMemcpy(&value, address[0], 4, cudaMemcpyDeviceToHost));
    EXPECT_EQ(value, 0u);
}

} // namespace
