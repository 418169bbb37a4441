// Records of what the host does: calls, external ids, synchronisation, memory, devices; and the settings.
#include <unistd.h>

#include <cupti_version.h>

#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

class CuptiRecords : public CuptiTest {};

TEST_F(CuptiRecords, ExternalIdsComeBeforeTheCallThatTheyAreOf) {
    constexpr auto OUTER = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, OTHER = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
    enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
    int device = 0;
    ASSERT_CUPTI(cuptiActivityPushExternalCorrelationId(OUTER, 11));
    ASSERT_CUPTI(cuptiActivityPushExternalCorrelationId(OUTER, 12));
    ASSERT_CUPTI(cuptiActivityPushExternalCorrelationId(OTHER, 13));
    ASSERT_CUDA(cudaGetDevice(&device));                              // 12 and 13
    std::thread([&] { EXPECT_CUDA(cudaGetDevice(&device)); }).join(); // none: it is another thread
    uint64_t last = 0;
    ASSERT_CUPTI(cuptiActivityPopExternalCorrelationId(OUTER, &last));
    EXPECT_EQ(last, 12u);
    ASSERT_CUPTI(cuptiActivityPopExternalCorrelationId(OTHER, nullptr));
    ASSERT_CUDA(cudaGetDevice(&device)); // 11
    ASSERT_CUPTI(cuptiActivityPopExternalCorrelationId(OUTER, &last));
    EXPECT_EQ(cuptiActivityPopExternalCorrelationId(OUTER, &last), CUPTI_ERROR_QUEUE_EMPTY);
    EXPECT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1),
              CUPTI_ERROR_INVALID_PARAMETER);
    ASSERT_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
    flush();
    constexpr auto ID = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CALL = CUPTI_ACTIVITY_KIND_RUNTIME;
    EXPECT_EQ(Records::get().kinds(), (std::vector<CUpti_ActivityKind>{ID, ID, CALL, CALL, ID, CALL}));
    auto ids = Records::get().all<CUpti_ActivityExternalCorrelation>(ID);
    auto calls = Records::get().calls();
    ASSERT_EQ(ids.size(), 3u);
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(ids[0].externalId, 12u);
    EXPECT_EQ(ids[1].externalId, 13u);
    EXPECT_EQ(ids[1].externalKind, OTHER);
    EXPECT_EQ(ids[2].externalId, 11u);
    EXPECT_EQ(ids[0].correlationId, calls[0].correlationId);
    EXPECT_EQ(ids[1].correlationId, calls[0].correlationId);
    EXPECT_EQ(ids[2].correlationId, calls[2].correlationId);
}

TEST_F(CuptiRecords, CallsAreChosenOneByOne) {
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    ASSERT_CUPTI(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0));
    int device = 0;
    ASSERT_CUDA(cudaGetDevice(&device));
    ASSERT_CUDA(cudaSetDevice(device));
    ASSERT_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
    ASSERT_CUPTI(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 1));
    ASSERT_CUDA(cudaGetDevice(&device));
    ASSERT_CUDA(cudaSetDevice(device));
    ASSERT_CUPTI(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0));
    EXPECT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_SIZE, 1), CUPTI_ERROR_INVALID_PARAMETER);
    flush();
    auto calls = Records::get().calls();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020));
    EXPECT_EQ(calls[1].cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020));
    EXPECT_EQ(calls[0].processId, uint32_t(getpid()));
}

TEST_F(CuptiRecords, TheDriversCallIsInsideTheRuntimes) {
    DeviceWords words(256);
    enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    flush();
    auto drivers = Records::get().all<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
    auto calls = Records::get().calls();
    auto launch = std::find_if(drivers.begin(), drivers.end(), [](const CUpti_ActivityAPI &call) {
        return call.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    });
    ASSERT_NE(launch, drivers.end());
    const CUpti_ActivityAPI *call = find_correlated(calls, launch->correlationId);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    EXPECT_LE(call->start, launch->start);
    EXPECT_GE(call->end, launch->end);
}

TEST_F(CuptiRecords, SynchronisationsSayOfWhat) {
    Stream stream;
    Event event;
    ASSERT_CUDA(cudaEventRecord(event, stream));
    enable({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    ASSERT_CUDA(cudaEventSynchronize(event));
    ASSERT_CUDA(cudaStreamWaitEvent(stream, event, 0));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUPTI(cuptiActivityFlushAll(0));
    auto waits = Records::get().all<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    ASSERT_EQ(waits.size(), 4u);
    uint32_t stream_id = 0;
    EXPECT_CUPTI(cuptiGetStreamIdEx(nullptr, stream, 0, &stream_id));
    EXPECT_EQ(waits[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    EXPECT_EQ(waits[0].streamId, stream_id);
    EXPECT_EQ(waits[1].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
    EXPECT_EQ(waits[2].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    EXPECT_EQ(waits[2].streamId, stream_id);
    EXPECT_EQ(waits[2].cudaEventId, waits[1].cudaEventId);
    EXPECT_EQ(waits[3].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_LE(waits[i].start, waits[i].end);
        if (i > 0) {
            EXPECT_GT(waits[i].correlationId, waits[i - 1].correlationId);
        }
    }
}

TEST_F(CuptiRecords, MemoryComesAndGoes) {
    enable({CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL});
    Stream stream;
    void *device = nullptr, *pinned = nullptr, *pooled = nullptr;
    ASSERT_CUDA(cudaMalloc(&device, 5000));
    ASSERT_CUDA(cudaMallocHost(&pinned, 600));
    ASSERT_CUDA(cudaMallocAsync(&pooled, 700, stream));
    ASSERT_CUDA(cudaFreeAsync(pooled, stream));
    ASSERT_CUDA(cudaFreeHost(pinned));
    ASSERT_CUDA(cudaFree(device));
    ASSERT_CUDA(cudaFree(nullptr));
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, {0}};
    cudaMemPool_t pool = nullptr;
    ASSERT_CUDA(cudaMemPoolCreate(&pool, &properties));
    ASSERT_CUDA(cudaMemPoolDestroy(pool));
    flush();
    auto changes = Records::get().all<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(changes.size(), 6u);
    const struct {
        void *address;
        uint64_t bytes;
        CUpti_ActivityMemoryKind kind;
    } expected[] = {{device, 5000, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
                    {pinned, 600, CUPTI_ACTIVITY_MEMORY_KIND_PINNED},
                    {pooled, 700, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE}};
    for (size_t i = 0; i < 3; i++) {
        const CUpti_ActivityMemory4 &made = changes[i], &freed = changes[5 - i];
        EXPECT_EQ(made.memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
        EXPECT_EQ(freed.memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
        for (size_t j : {i, 5 - i}) {
            EXPECT_EQ(changes[j].address, reinterpret_cast<uint64_t>(expected[i].address));
            EXPECT_EQ(changes[j].bytes, expected[i].bytes);
            EXPECT_EQ(changes[j].memoryKind, expected[i].kind);
            EXPECT_EQ(changes[j].isAsync, i == 2 ? 1u : 0u);
        }
        EXPECT_LE(made.timestamp, freed.timestamp);
    }
    auto pools = Records::get().all<CUpti_ActivityMemoryPool3>(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
    ASSERT_EQ(pools.size(), 2u);
    EXPECT_EQ(pools[0].memoryPoolOperationType, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
    EXPECT_EQ(pools[1].memoryPoolOperationType, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
}

TEST_F(CuptiRecords, DevicesAreDescribed) {
    enable({CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT});
    flush();
    int count = 0;
    ASSERT_CUDA(cudaGetDeviceCount(&count));
    auto devices = Records::get().all<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
    ASSERT_EQ(devices.size(), size_t(count));
    for (int i = 0; i < count; i++) {
        const CUpti_ActivityDevice5 &device = devices[size_t(i)];
        cudaDeviceProp properties{};
        ASSERT_CUDA(cudaGetDeviceProperties(&properties, i));
        EXPECT_EQ(device.id, uint32_t(i));
        EXPECT_STREQ(device.name, properties.name);
        EXPECT_EQ(device.numMultiprocessors, uint32_t(properties.multiProcessorCount));
        EXPECT_EQ(device.computeCapabilityMajor, uint32_t(properties.major));
        EXPECT_EQ(memcmp(device.uuid.bytes, properties.uuid.bytes, 16), 0);
    }
    auto contexts = Records::get().all<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
    ASSERT_GE(contexts.size(), 1u);
    EXPECT_EQ(contexts[0].deviceId, 0u);
}

TEST_F(CuptiRecords, DeliveringBuffersIsAnOverhead) {
    enable({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_RUNTIME});
    int device = 0;
    for (int i = 0; i < 5; i++)
        ASSERT_CUDA(cudaGetDevice(&device));
    flush();
    ASSERT_CUPTI(cuptiActivityFlushAll(0));
    auto overheads = Records::get().all<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
    ASSERT_GE(overheads.size(), 1u);
    EXPECT_EQ(overheads[0].overheadKind, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
    EXPECT_LE(overheads[0].start, overheads[0].end);
}

TEST_F(CuptiRecords, QueuedTimesAreThereIfAskedFor) {
    DeviceWords words(256);
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    flush();
    ASSERT_CUPTI(cuptiActivityEnableLatencyTimestamps(1));
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    flush();
    ASSERT_CUPTI(cuptiActivityEnableLatencyTimestamps(0));
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[0].queued, uint64_t(CUPTI_TIMESTAMP_UNKNOWN));
    EXPECT_NE(kernels[1].queued, uint64_t(CUPTI_TIMESTAMP_UNKNOWN));
    EXPECT_LT(kernels[1].queued, kernels[1].start);
}

TEST_F(CuptiRecords, WhatIsNotThereIsRefused) {
    for (int kind : {int(CUPTI_ACTIVITY_KIND_INVALID), int(CUPTI_ACTIVITY_KIND_COUNT), -1})
        EXPECT_EQ(cuptiActivityEnable(static_cast<CUpti_ActivityKind>(kind)), CUPTI_ERROR_INVALID_KIND) << kind;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    EXPECT_EQ(cuptiActivityRegisterTimestampCallback(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
    if (is_virtual()) {
        EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING), CUPTI_ERROR_INVALID_KIND);
        EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_ERROR_NOT_COMPATIBLE);
        EXPECT_EQ(cuptiActivityEnableHWTrace(1), CUPTI_ERROR_NOT_SUPPORTED);
        EXPECT_EQ(cuptiActivityRegisterTimestampCallback(monotonic_ns), CUPTI_ERROR_INVALID_OPERATION);
    }
}

TEST_F(CuptiRecords, SettingsAreKept) {
    uint8_t is_zeroed = 1;
    size_t bytes = sizeof is_zeroed;
    ASSERT_CUPTI(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &is_zeroed));
    is_zeroed = 0;
    ASSERT_CUPTI(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &is_zeroed));
    EXPECT_EQ(is_zeroed, 1);
    size_t pool = 0, small = 1;
    EXPECT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &small, &pool),
              CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, nullptr, &pool),
              CUPTI_ERROR_INVALID_PARAMETER);
    is_zeroed = 0;
    ASSERT_CUPTI(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &is_zeroed));
    uint32_t version = 0;
    ASSERT_CUPTI(cuptiGetVersion(&version));
    EXPECT_GE(version, 100000u);
    uint64_t before = monotonic_ns(), now = 0;
    ASSERT_CUPTI(cuptiGetTimestamp(&now));
    EXPECT_GE(now, before); // by the clock that was registered
    EXPECT_LE(now, monotonic_ns());
}

TEST_F(CuptiRecords, AfterwardsNothingIsRecorded) {
    DeviceWords words(256);
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
    ASSERT_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    ASSERT_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    flush();
    EXPECT_TRUE(Records::get().kinds().empty());
}

} // namespace
