// Streams and events: order, synchrony, and what a missing synchronisation shows.
#include <atomic>
#include <thread>

#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

constexpr uint32_t N = 1000;

class StreamTest : public RuntimeTest {};

TEST_F(StreamTest, OperationsRunInOrder) {
    std::mt19937 random(20251);
    DeviceWords words(N);
    Stream stream;
    uint32_t expected = 0;
    for (int i = 0; i < 40; i++) {
        uint32_t value = static_cast<uint32_t>(random() % 1000);
        if (random() % 4 == 0) {
            ASSERT_CUDA(cudaMemsetAsync(words.get(), static_cast<int>(value % 256), words.bytes(), stream));
            expected = value % 256 * 0x01010101u;
        } else {
            ASSERT_CUDA(launch("mix", words.get(), N, value, stream));
            expected = expected * 3 + value;
        }
    }
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_CUDA(cudaStreamQuery(stream));
    EXPECT_EQ(words.read(), words_of(N, expected));
}

TEST_F(StreamTest, LegacyStreamWaitsForBlockingOnesAndTheyForIt) {
    DeviceWords words(N);
    Stream first(cudaStreamDefault), second(cudaStreamDefault);
    ASSERT_CUDA(launch_slow(words.get(), 1, first));
    ASSERT_CUDA(launch("fill", words.get(), N, 2, first));
    ASSERT_CUDA(launch("mix", words.get(), N, 1, nullptr)); // 7
    ASSERT_CUDA(launch("mix", words.get(), N, 4, second));  // 25
    ASSERT_CUDA(launch("mix", words.get(), N, 0, cudaStreamLegacy));
    ASSERT_CUDA(cudaStreamSynchronize(nullptr));
    std::vector<uint32_t> host(N);
    ASSERT_CUDA(cudaMemcpy(host.data(), words.get(), words.bytes(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(host, words_of(N, 75));
}

TEST_F(StreamTest, PerThreadStreamsAreOrderedWithTheLegacyOne) {
    DeviceWords words(N);
    std::thread([&] {
        ASSERT_CUDA(launch_slow(words.get(), 1, cudaStreamPerThread));
        ASSERT_CUDA(launch("fill", words.get(), N, 2, cudaStreamPerThread));
        ASSERT_CUDA(launch("mix", words.get(), N, 1, nullptr));
        ASSERT_CUDA(launch("mix", words.get(), N, 2, cudaStreamPerThread));
        ASSERT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    }).join();
    EXPECT_EQ(words.read(), words_of(N, 23));
}

// The legacy stream does not wait for a non-blocking one: under the lazy schedule that one has not begun.
TEST_F(StreamTest, NonBlockingStreamsAreNotWaitedFor) {
    if (!is_lazy()) GTEST_SKIP() << "shows for certain only with VGPU_STREAMS=lazy";
    DeviceWords words(N);
    Stream stream;
    ASSERT_CUDA(launch("fill", words.get(), N, 5, stream));
    std::vector<uint32_t> host(N);
    ASSERT_CUDA(cudaMemcpy(host.data(), words.get(), words.bytes(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(host, words_of(N, 0));
    EXPECT_EQ(words.read(), words_of(N, 5));
}

TEST_F(StreamTest, AMissingSynchronisationShows) {
    if (!is_lazy()) GTEST_SKIP() << "shows for certain only with VGPU_STREAMS=lazy";
    DeviceWords words(N);
    PinnedWords host(N, 1);
    Stream stream;
    ASSERT_CUDA(launch("fill", words.get(), N, 5, stream));
    ASSERT_CUDA(cudaMemcpyAsync(host.get(), words.get(), words.bytes(), cudaMemcpyDeviceToHost, stream));
    EXPECT_EQ(host.get()[0], 1u); // not yet
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(host.get()[0], 5u);
}

// From pinned memory the bytes are read when the copy runs; from pageable memory, before the call returns.
TEST_F(StreamTest, WhenTheSourceOfAnAsynchronousCopyIsRead) {
    for (uint32_t n : {N, 100000u}) { // staged, and too large for it
        DeviceWords words(n);
        Stream stream;
        std::vector<uint32_t> pageable = words_of(n, 3);
        ASSERT_CUDA(cudaMemcpyAsync(words.get(), pageable.data(), words.bytes(), cudaMemcpyHostToDevice, stream));
        pageable = words_of(n, 4);
        ASSERT_CUDA(cudaStreamSynchronize(stream));
        EXPECT_EQ(words.read(), words_of(n, 3));
    }
    if (!is_lazy()) return;
    DeviceWords words(N);
    Stream stream;
    PinnedWords pinned(N, 3);
    ASSERT_CUDA(cudaMemcpyAsync(words.get(), pinned.get(), words.bytes(), cudaMemcpyHostToDevice, stream));
    std::fill_n(pinned.get(), N, 4u);
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(words.read(), words_of(N, 4));
}

// An asynchronous copy to pageable memory may be done at the return or not; a synchronous one is.
TEST_F(StreamTest, WhenACopyToPageableMemoryIsThere) {
    DeviceWords words(N);
    Stream stream;
    std::vector<uint32_t> host(N), other(N);
    ASSERT_CUDA(launch_slow(words.get(), 1, stream));
    ASSERT_CUDA(launch("fill", words.get(), N, 6, stream));
    ASSERT_CUDA(cudaMemcpyAsync(host.data(), words.get(), words.bytes(), cudaMemcpyDeviceToHost, stream));
    if (is_lazy()) {
        EXPECT_EQ(host, words_of(N, 0));
    }
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(host, words_of(N, 6));
    ASSERT_CUDA(launch("fill", words.get(), N, 7, nullptr));
    ASSERT_CUDA(cudaMemcpy(other.data(), words.get(), words.bytes(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(other, words_of(N, 7));
}

TEST_F(StreamTest, DestroyedStreamsFinishTheirWork) {
    DeviceWords words(N);
    {
        Stream stream;
        ASSERT_CUDA(launch_slow(words.get(), 1, stream));
        ASSERT_CUDA(launch("fill", words.get(), N, 8, stream));
    }
    EXPECT_EQ(words.read(), words_of(N, 8)); // waits for the device
}

TEST_F(StreamTest, InvalidHandlesAreRefused) {
    if (!is_virtual()) GTEST_SKIP() << "the real runtime may crash";
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreate(&stream));
    ASSERT_CUDA(cudaStreamDestroy(stream));
    DeviceWords words(N);
    EXPECT_CUDA_ERROR(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA_ERROR(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA_ERROR(launch("fill", words.get(), N, 1, stream), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA_ERROR(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA_ERROR(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
    cudaEvent_t event = nullptr;
    ASSERT_CUDA(cudaEventCreate(&event));
    ASSERT_CUDA(cudaEventDestroy(event));
    EXPECT_CUDA_ERROR(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA_ERROR(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA_ERROR(cudaEventSynchronize(nullptr), cudaErrorInvalidResourceHandle);
}

TEST_F(StreamTest, WhatStreamsSayOfThemselves) {
    int least = 1, greatest = 1, priority = 1, device = -1;
    ASSERT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT_EQ(least, 0);
    EXPECT_LT(greatest, least);
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1000));
    unsigned flags = 0;
    unsigned long long id = 0, legacy_id = 0;
    EXPECT_CUDA(cudaStreamGetPriority(stream, &priority));
    EXPECT_EQ(priority, greatest);
    EXPECT_CUDA(cudaStreamGetFlags(stream, &flags));
    EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
    EXPECT_CUDA(cudaStreamGetDevice(stream, &device));
    EXPECT_EQ(device, 0);
    EXPECT_CUDA(cudaStreamGetId(stream, &id));
    EXPECT_CUDA(cudaStreamGetId(nullptr, &legacy_id));
    EXPECT_NE(id, legacy_id);
    EXPECT_CUDA(cudaStreamDestroy(stream));
    EXPECT_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, 77), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
}

// ---- host functions ------------------------------------------------------------------------------------------------

struct Seen {
    uint32_t *words = nullptr;
    uint32_t value = 0;
    cudaError_t inside = cudaSuccess;
};

TEST_F(StreamTest, HostFunctionsRunInOrderAndMayNotCallTheRuntime) {
    DeviceWords words(1);
    PinnedWords host(1, 0);
    Stream stream;
    Seen seen;
    seen.words = host.get();
    ASSERT_CUDA(launch_slow(words.get(), 33, stream));
    ASSERT_CUDA(cudaMemcpyAsync(host.get(), words.get(), 4, cudaMemcpyDeviceToHost, stream));
    auto look = [](void *data) {
        auto *own = static_cast<Seen *>(data);
        own->value = *own->words;
        void *memory = nullptr;
        own->inside = cudaMalloc(&memory, 16);
        *own->words = 44;
    };
    ASSERT_CUDA(cudaLaunchHostFunc(stream, look, &seen));
    ASSERT_CUDA(cudaMemcpyAsync(words.get(), host.get(), 4, cudaMemcpyHostToDevice, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(seen.value, 33u);
    EXPECT_EQ(seen.inside, cudaErrorNotPermitted);
    EXPECT_EQ(words.read(), words_of(1, 44));
}

TEST_F(StreamTest, CallbacksGetTheStreamAndItsState) {
    struct Call {
        cudaStream_t stream = nullptr;
        cudaError_t status = cudaErrorUnknown;
    } call;
    Stream stream;
    auto note = [](cudaStream_t in, cudaError_t status, void *data) { *static_cast<Call *>(data) = {in, status}; };
    ASSERT_CUDA(cudaStreamAddCallback(stream, note, &call, 0));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(call.stream, static_cast<cudaStream_t>(stream));
    EXPECT_EQ(call.status, cudaSuccess);
}

// A query says that work is left, as often as it takes, and that is no error.
TEST_F(StreamTest, QueriesDoNotWaitAndMakeProgress) {
    Stream stream;
    Event event;
    std::atomic<bool> may_end{false};
    auto wait = [](void *data) {
        while (!*static_cast<std::atomic<bool> *>(data))
            std::this_thread::yield();
    };
    ASSERT_CUDA(cudaLaunchHostFunc(stream, wait, &may_end));
    ASSERT_CUDA(cudaEventRecord(event, stream));
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
    (void)cudaGetLastError();
    may_end = true;
    cudaError_t state = cudaErrorNotReady;
    while (state == cudaErrorNotReady)
        state = cudaEventQuery(event);
    EXPECT_CUDA(state);
    while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady)
        std::this_thread::yield();
    EXPECT_CUDA(state);
    (void)cudaGetLastError();
}

// The legacy default stream's state is that of the blocking streams too, and to ask for it adds no work.
TEST_F(StreamTest, QueriesOfTheLegacyStreamEnd) {
    DeviceWords words(1);
    PinnedWords host(1, 0);
    Stream stream(cudaStreamDefault);
    ASSERT_CUDA(launch_slow(words.get(), 33, stream));
    ASSERT_CUDA(cudaMemcpyAsync(host.get(), words.get(), 4, cudaMemcpyDeviceToHost, stream));
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    cudaError_t state = cudaErrorNotReady;
    while ((state = cudaStreamQuery(nullptr)) == cudaErrorNotReady && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    EXPECT_CUDA(state);
    EXPECT_EQ(host.get()[0], 33u);
    (void)cudaGetLastError();
}

// ---- events --------------------------------------------------------------------------------------------------------

TEST_F(StreamTest, EventsOrderStreams) {
    DeviceWords words(N);
    Stream first, second;
    Event ready, done;
    ASSERT_CUDA(launch_slow(words.get(), 1, first));
    ASSERT_CUDA(launch("fill", words.get(), N, 2, first));
    ASSERT_CUDA(cudaEventRecord(ready, first));
    ASSERT_CUDA(cudaStreamWaitEvent(second, ready, 0));
    ASSERT_CUDA(launch("mix", words.get(), N, 1, second)); // 7
    ASSERT_CUDA(cudaEventRecord(done, second));
    ASSERT_CUDA(cudaStreamWaitEvent(first, done, 0));
    ASSERT_CUDA(launch("mix", words.get(), N, 2, first)); // 23
    ASSERT_CUDA(cudaEventRecord(ready, first));           // again
    ASSERT_CUDA(cudaEventSynchronize(ready));
    EXPECT_CUDA(cudaEventQuery(ready));
    EXPECT_EQ(words.read(), words_of(N, 23));
}

// A wait is for the record before it, whatever is recorded later.
TEST_F(StreamTest, WaitsAreForTheRecordBeforeThem) {
    Stream first, second;
    Event event;
    std::atomic<bool> may_end{false};
    auto wait = [](void *data) {
        while (!*static_cast<std::atomic<bool> *>(data))
            std::this_thread::yield();
    };
    ASSERT_CUDA(cudaEventRecord(event, first));
    ASSERT_CUDA(cudaStreamWaitEvent(second, event, 0));
    ASSERT_CUDA(cudaLaunchHostFunc(first, wait, &may_end));
    ASSERT_CUDA(cudaEventRecord(event, first));
    EXPECT_CUDA(cudaStreamSynchronize(second)); // ends, though the second record has not come
    may_end = true;
    EXPECT_CUDA(cudaEventSynchronize(event));
}

TEST_F(StreamTest, EventsThatWereNotRecordedAreDone) {
    Stream stream;
    Event event;
    EXPECT_CUDA(cudaEventQuery(event));
    EXPECT_CUDA(cudaEventSynchronize(event));
    EXPECT_CUDA(cudaStreamWaitEvent(stream, event, 0));
    EXPECT_CUDA(cudaStreamSynchronize(stream));
}

TEST_F(StreamTest, ElapsedTime) {
    DeviceWords words(1);
    Stream stream;
    Event begin(cudaEventDefault), end(cudaEventDefault), untimed;
    float milliseconds = -1;
    EXPECT_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);
    ASSERT_CUDA(cudaEventRecord(begin, stream));
    ASSERT_CUDA(launch_slow(words.get(), 1, stream));
    ASSERT_CUDA(cudaEventRecord(end, stream));
    ASSERT_CUDA(cudaEventRecord(untimed, stream));
    ASSERT_CUDA(cudaEventSynchronize(end));
    ASSERT_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    EXPECT_GT(milliseconds, 0.0F);
    float backwards = 0;
    ASSERT_CUDA(cudaEventElapsedTime(&backwards, end, begin));
    EXPECT_EQ(backwards, -milliseconds);
    ASSERT_CUDA(cudaEventSynchronize(untimed));
    EXPECT_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, begin, untimed), cudaErrorInvalidResourceHandle);
    cudaEvent_t event = nullptr;
    EXPECT_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
}

// Many threads, each with a stream, on one device.
TEST_F(StreamTest, ThreadsDoNotDisturbEachOther) {
    constexpr int threads = 8;
    std::vector<std::thread> all;
    for (uint32_t number = 0; number < threads; number++) {
        all.emplace_back([this, number] {
            Stream stream;
            DeviceWords words(N);
            uint32_t expected = 0;
            for (uint32_t i = 0; i < 10; i++) {
                ASSERT_CUDA(launch("mix", words.get(), N, number + i, stream));
                expected = expected * 3 + number + i;
            }
            std::vector<uint32_t> host(N);
            ASSERT_CUDA(cudaMemcpyAsync(host.data(), words.get(), words.bytes(), cudaMemcpyDeviceToHost, stream));
            ASSERT_CUDA(cudaStreamSynchronize(stream));
            EXPECT_EQ(host, words_of(N, expected));
        });
    }
    for (std::thread &thread : all)
        thread.join();
}

} // namespace
