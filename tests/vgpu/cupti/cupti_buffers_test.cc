// How records come to the client: buffers, flushes, and what is dropped.
#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

class CuptiBuffers : public CuptiTest {
  protected:
    // Calls that have a record of the runtime's each, and nothing else.
    void make_calls(int count) {
        int device = 0;
        for (int i = 0; i < count; i++)
            ASSERT_CUDA(cudaGetDevice(&device));
    }

    size_t take_dropped() {
        size_t dropped = 0;
        EXPECT_CUPTI(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
        return dropped;
    }

    // Only those that make_calls() makes.
    void enable_calls() {
        ASSERT_CUPTI(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 1));
    }
    void TearDown() override {
        EXPECT_CUPTI(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0));
        CuptiTest::TearDown();
    }
};

TEST_F(CuptiBuffers, RecordsComeInTheirOrderFromAThreadOfTheLibrary) {
    constexpr int CALLS = 1000;
    Records::get().buffer_bytes = 50 * sizeof(CUpti_ActivityAPI) + 20;
    enable_calls();
    make_calls(CALLS);
    flush();
    auto calls = Records::get().calls();
    ASSERT_EQ(calls.size(), size_t(CALLS));
    for (size_t i = 1; i < calls.size(); i++) {
        EXPECT_GT(calls[i].correlationId, calls[i - 1].correlationId);
        EXPECT_GE(calls[i].start, calls[i - 1].end);
    }
    EXPECT_GE(Records::get().buffers(), 20u);
    EXPECT_NE(Records::get().deliverer(), std::this_thread::get_id());
    EXPECT_EQ(take_dropped(), 0u);
}

TEST_F(CuptiBuffers, ABufferHoldsNoMoreRecordsThanTheClientSays) {
    Records::get().buffer_records = 10;
    enable_calls();
    make_calls(95);
    flush();
    EXPECT_EQ(Records::get().calls().size(), 95u);
    EXPECT_EQ(Records::get().buffers(), 10u);
}

TEST_F(CuptiBuffers, WhatThereIsNoRoomForIsDroppedAndCounted) {
    enable_calls();
    for (size_t bytes : {size_t(0), sizeof(CUpti_ActivityAPI) - 8}) {
        Records::get().clear();
        Records::get().buffer_bytes = bytes;
        make_calls(7);
        flush();
        EXPECT_TRUE(Records::get().calls().empty());
        EXPECT_EQ(take_dropped(), 7u);
        EXPECT_EQ(take_dropped(), 0u); // counted anew
    }
    Records::get().buffer_bytes = Records::BYTES;
    make_calls(3);
    flush();
    EXPECT_EQ(Records::get().calls().size(), 3u);
    EXPECT_EQ(take_dropped(), 0u);
}

TEST_F(CuptiBuffers, AKernelHasNoRecordBeforeItHasEnded) {
    DeviceWords words(256);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Gate gate(stream);
    ASSERT_CUDA(launch("fill", words.get(), 256, 7, stream));
    ASSERT_CUPTI(cuptiActivityFlushAll(0));
    EXPECT_TRUE(Records::get().kernels().empty());
    gate.open();
    flush();
    EXPECT_EQ(Records::get().kernels().size(), 1u);
}

TEST_F(CuptiBuffers, AForcedFlushGivesBackEmptyBuffersToo) {
    enable_calls();
    make_calls(1);
    flush();
    EXPECT_EQ(Records::get().buffers(), 1u);
    ASSERT_CUPTI(cuptiActivityFlushAll(0));
    EXPECT_EQ(Records::get().buffers(), 1u);
    make_calls(1);
    ASSERT_CUPTI(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    EXPECT_EQ(Records::get().buffers(), 2u);
    EXPECT_EQ(Records::get().calls().size(), 2u);
}

TEST_F(CuptiBuffers, ManyThreadsLoseNothing) {
    constexpr int THREADS = 6, CALLS = 500;
    Records::get().buffer_bytes = 33 * sizeof(CUpti_ActivityAPI);
    enable_calls();
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&] { make_calls(CALLS); });
    for (int i = 0; i < 50; i++)
        EXPECT_CUPTI(cuptiActivityFlushAll(0));
    for (std::thread &thread : threads)
        thread.join();
    flush();
    auto calls = Records::get().calls();
    EXPECT_EQ(calls.size(), size_t(THREADS * CALLS));
    std::sort(calls.begin(), calls.end(),
              [](const auto &a, const auto &b) { return a.correlationId < b.correlationId; });
    auto same = std::adjacent_find(calls.begin(), calls.end(),
                                   [](const auto &a, const auto &b) { return a.correlationId == b.correlationId; });
    EXPECT_EQ(same, calls.end());
}

TEST_F(CuptiBuffers, NextRecordEndsAtTheValidBytes) {
    alignas(8) uint8_t bytes[2 * sizeof(CUpti_ActivityAPI)] = {};
    CUpti_Activity *record = nullptr;
    EXPECT_EQ(cuptiActivityGetNextRecord(nullptr, 10, &record), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiActivityGetNextRecord(bytes, 0, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
    EXPECT_EQ(cuptiActivityGetNextRecord(bytes, sizeof bytes, &record), CUPTI_ERROR_INVALID_KIND);
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    memcpy(bytes, &kind, sizeof kind);
    EXPECT_CUPTI(cuptiActivityGetNextRecord(bytes, sizeof(CUpti_ActivityAPI), &record));
    EXPECT_EQ(reinterpret_cast<uint8_t *>(record), bytes);
    EXPECT_EQ(cuptiActivityGetNextRecord(bytes, sizeof(CUpti_ActivityAPI), &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
}

} // namespace
