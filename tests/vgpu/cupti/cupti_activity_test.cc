// Records of what devices do: what is in them, which call they belong to, and that their times are the cost model's.
#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

class CuptiActivity : public CuptiTest {};

uint64_t kernel_ns(uint64_t blocks) { return cost("KERNEL") + cost("BLOCK") * blocks; }

uint64_t bytes_ns(uint64_t bytes) { return cost("COPY") + (bytes + cost("BANDWIDTH") - 1) / cost("BANDWIDTH"); }

uint32_t id_of(cudaStream_t stream) {
    uint32_t id = 0;
    EXPECT_CUPTI(cuptiGetStreamIdEx(nullptr, stream, 0, &id));
    return id;
}

TEST_F(CuptiActivity, AKernelsRecordIsThatOfTheCallThatLaunchedIt) {
    DeviceWords words(1000);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
    ASSERT_CUDA(launch("fill", words.get(), 1000, 7, stream));
    flush();
    auto kernels = Records::get().kernels();
    auto calls = Records::get().calls();
    ASSERT_EQ(kernels.size(), 1u);
    const CUpti_ActivityKernel10 &kernel = kernels[0];
    EXPECT_STREQ(kernel.name, "fill");
    EXPECT_EQ(kernel.gridX, 8);
    EXPECT_EQ(kernel.gridY, 1);
    EXPECT_EQ(kernel.gridZ, 1);
    EXPECT_EQ(kernel.blockX, 128);
    EXPECT_EQ(kernel.blockY, 1);
    EXPECT_EQ(kernel.graphId, 0u);
    EXPECT_EQ(kernel.graphNodeId, 0u);
    EXPECT_EQ(kernel.deviceId, 0u);
    EXPECT_EQ(kernel.streamId, id_of(stream));
    const CUpti_ActivityAPI *call = find_correlated(calls, kernel.correlationId);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    EXPECT_LT(call->start, call->end);
    EXPECT_LT(call->start, kernel.start);
    EXPECT_LT(kernel.start, kernel.end);
    EXPECT_EQ(call->returnValue, 0u);
    if (is_virtual()) {
        EXPECT_GE(kernel.start, call->start + cost("LATENCY"));
    }
}

TEST_F(CuptiActivity, TimesAreThoseOfTheCostModel) {
    if (!is_virtual()) GTEST_SKIP() << "a GPU takes the time that it takes";
    DeviceWords words(4096);
    PinnedWords host(4096, 1);
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET});
    for (uint32_t n : {1u, 128u, 129u, 4096u})
        ASSERT_CUDA(launch("fill", words.get(), n, 7, nullptr));
    for (size_t bytes : {1u, 4u, 5u, 16384u})
        ASSERT_CUDA(cudaMemcpyAsync(words.get(), host.get(), bytes, cudaMemcpyHostToDevice, nullptr));
    for (size_t bytes : {3u, 1000u})
        ASSERT_CUDA(cudaMemsetAsync(words.get(), 5, bytes, nullptr));
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 4u);
    for (const CUpti_ActivityKernel10 &kernel : kernels)
        EXPECT_EQ(kernel.end - kernel.start, kernel_ns(uint64_t(kernel.gridX)));
    EXPECT_EQ(kernels[3].gridX, 32);
    auto copies = Records::get().all<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(copies.size(), 4u);
    for (const CUpti_ActivityMemcpy6 &copy : copies)
        EXPECT_EQ(copy.end - copy.start, bytes_ns(copy.bytes));
    auto fills = Records::get().all<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
    ASSERT_EQ(fills.size(), 2u);
    for (const CUpti_ActivityMemset4 &fill : fills)
        EXPECT_EQ(fill.end - fill.start, bytes_ns(fill.bytes));
}

// As the model has it: without a gap, once the stream holds all of it.
TEST_F(CuptiActivity, WorkOfAStreamComesOneAfterTheOther) {
    DeviceWords words(256);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Gate gate(stream);
    for (int i = 0; i < 8; i++)
        ASSERT_CUDA(launch("mix", words.get(), 256, 7, stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate.open();
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 8u);
    for (size_t i = 1; i < 8; i++) {
        EXPECT_GT(kernels[i].correlationId, kernels[i - 1].correlationId);
        EXPECT_GE(kernels[i].start, kernels[i - 1].end);
        if (is_virtual()) {
            EXPECT_EQ(kernels[i].start, kernels[i - 1].end);
        }
    }
}

TEST_F(CuptiActivity, AKernelIsDoneForTheHostOnceItHasEnded) {
    DeviceWords words(256);
    Stream stream;
    Event event;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    uint64_t seen[3];
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    seen[0] = monotonic_ns();
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    ASSERT_CUDA(cudaEventRecord(event, stream));
    ASSERT_CUDA(cudaEventSynchronize(event));
    seen[1] = monotonic_ns();
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        std::this_thread::yield();
    seen[2] = monotonic_ns();
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 3u);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_LE(kernels[i].end, seen[i]) << i;
        if (i > 0) {
            EXPECT_GT(kernels[i].start, seen[i - 1]) << i;
        }
    }
}

TEST_F(CuptiActivity, EventsHaveTheTimesOfTheWorkBeforeThem) {
    DeviceWords words(256);
    Stream stream;
    Event first(cudaEventDefault), second(cudaEventDefault);
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Gate gate(stream); // so that the stream holds all of it when the first begins
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    ASSERT_CUDA(cudaEventRecord(first, stream));
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    ASSERT_CUDA(cudaEventRecord(second, stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate.open();
    flush();
    float elapsed_ms = 0;
    ASSERT_CUDA(cudaEventElapsedTime(&elapsed_ms, first, second));
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 3u);
    if (is_virtual()) {
        EXPECT_EQ(kernels[2].end - kernels[0].end, 2 * kernel_ns(2));
        EXPECT_FLOAT_EQ(elapsed_ms, float(kernels[2].end - kernels[0].end) * 1e-6F);
    } else {
        EXPECT_GT(elapsed_ms, 0);
    }
}

// What attribution by wall-clock time gets wrong: the kernel belongs to the call that launched it.
TEST_F(CuptiActivity, AKernelThatRunsDuringAnotherThreadsCallIsItsLaunchers) {
    DeviceWords words(256);
    Stream stream;
    static std::atomic<bool> is_synchronizing;
    is_synchronizing = false;
    subscribe(
        [](void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data) {
            if (static_cast<const CUpti_CallbackData *>(data)->callbackSite == CUPTI_API_EXIT) return;
            is_synchronizing = true;
        },
        nullptr);
    ASSERT_CUPTI(cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API,
                                     CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020));
    ASSERT_CUPTI(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
    Gate gate(stream);
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    std::thread other([&] { EXPECT_CUDA(cudaStreamSynchronize(stream)); });
    while (!is_synchronizing)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the call's recorded time has begun
    gate.open();
    other.join();
    flush();
    ASSERT_CUPTI(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT));
    auto kernels = Records::get().kernels();
    auto calls = Records::get().calls();
    ASSERT_EQ(kernels.size(), 1u);
    const CUpti_ActivityAPI *launch = find_correlated(calls, kernels[0].correlationId);
    ASSERT_NE(launch, nullptr);
    EXPECT_EQ(launch->cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    const CUpti_ActivityAPI *wait = nullptr;
    for (const CUpti_ActivityAPI &call : calls) {
        if (call.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020) wait = &call;
    }
    ASSERT_NE(wait, nullptr);
    EXPECT_NE(wait->threadId, launch->threadId);
    EXPECT_LT(launch->end, kernels[0].start);
    EXPECT_LT(wait->start, kernels[0].start);
    EXPECT_GT(wait->end, kernels[0].end);
}

TEST_F(CuptiActivity, StreamsRunAtTheSameTime) {
    DeviceWords words(256);
    Stream gated, streams[2];
    Event opened;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Gate gate(gated);
    ASSERT_CUDA(cudaEventRecord(opened, gated));
    for (const Stream &stream : streams) {
        ASSERT_CUDA(cudaStreamWaitEvent(stream, opened, 0));
        ASSERT_CUDA(launch("fill", words.get() + (&stream - streams) * 128, 128, 7, stream));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate.open();
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_NE(kernels[0].streamId, kernels[1].streamId);
    for (const CUpti_ActivityKernel10 &kernel : kernels)
        EXPECT_TRUE(kernel.streamId == id_of(streams[0]) || kernel.streamId == id_of(streams[1]));
    if (is_virtual()) {
        EXPECT_EQ(kernels[0].start, kernels[1].start);
    }
}

TEST_F(CuptiActivity, DevicesAreToldApart) {
    int count = 0;
    ASSERT_CUDA(cudaGetDeviceCount(&count));
    if (count < 2) GTEST_SKIP() << "one device only";
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2});
    DeviceWords first(256);
    ASSERT_CUDA(launch("fill", first.get(), 256, 7, nullptr));
    ASSERT_CUDA(cudaSetDevice(1));
    DeviceWords second(256);
    ASSERT_CUDA(launch("fill", second.get(), 256, 7, nullptr));
    ASSERT_CUDA(cudaMemcpyPeer(second.get(), 1, first.get(), 0, 512));
    flush();
    ASSERT_CUDA(cudaSetDevice(0));
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 2u);
    std::sort(kernels.begin(), kernels.end(), [](const auto &a, const auto &b) { return a.deviceId < b.deviceId; });
    EXPECT_EQ(kernels[0].deviceId, 0u);
    EXPECT_EQ(kernels[1].deviceId, 1u);
    EXPECT_NE(kernels[0].contextId, kernels[1].contextId);
    auto copies = Records::get().all<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    EXPECT_EQ(copies[0].srcDeviceId, 0u);
    EXPECT_EQ(copies[0].dstDeviceId, 1u);
    EXPECT_EQ(copies[0].bytes, 512u);
    EXPECT_TRUE(Records::get().all<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY).empty());
}

TEST_F(CuptiActivity, CopiesSayWhereFromAndWhereTo) {
    DeviceWords words(256), others(256);
    PinnedWords pinned(256, 1);
    std::vector<uint32_t> pageable(256);
    enable({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET});
    ASSERT_CUDA(cudaMemcpyAsync(words.get(), pinned.get(), 1024, cudaMemcpyHostToDevice, nullptr));
    ASSERT_CUDA(cudaMemcpy(pageable.data(), words.get(), 512, cudaMemcpyDeviceToHost));
    ASSERT_CUDA(cudaMemcpy(others.get(), words.get(), 256, cudaMemcpyDeviceToDevice));
    ASSERT_CUDA(cudaMemset(words.get(), 0x5a, 100));
    flush();
    auto copies = Records::get().all<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(copies.size(), 3u);
    const int expected[][4] = {
        {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 1024},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, 512},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 256}};
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQ(copies[i].copyKind, expected[i][0]) << i;
        EXPECT_EQ(copies[i].srcKind, expected[i][1]) << i;
        EXPECT_EQ(copies[i].dstKind, expected[i][2]) << i;
        EXPECT_EQ(copies[i].bytes, uint64_t(expected[i][3])) << i;
    }
    EXPECT_EQ(copies[0].flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
    EXPECT_EQ(copies[1].flags, CUPTI_ACTIVITY_FLAG_NONE);
    auto fills = Records::get().all<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
    ASSERT_EQ(fills.size(), 1u);
    EXPECT_EQ(fills[0].value, 0x5au);
    EXPECT_EQ(fills[0].bytes, 100u);
}

TEST_F(CuptiActivity, NothingIsRecordedOfWhatIsNotEnabled) {
    DeviceWords words(256);
    enable({CUPTI_ACTIVITY_KIND_MEMSET});
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, nullptr));
    ASSERT_CUDA(cudaMemset(words.get(), 1, 100));
    flush();
    EXPECT_EQ(Records::get().kinds(), std::vector<CUpti_ActivityKind>{CUPTI_ACTIVITY_KIND_MEMSET});
}

} // namespace
