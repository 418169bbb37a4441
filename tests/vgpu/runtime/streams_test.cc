// The scheduler of streams by itself: what no program can bring about.
#include "tests/vgpu/runtime/streams.h"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "tests/vgpu/runtime/device.h"

namespace vgpu {
namespace {

TEST(Streams, WhatAnOperationThrowsIsTheDevicesFault) {
    StreamPtr stream = stream_create(0, cudaStreamNonBlocking, 0);
    const std::pair<std::function<cudaError_t()>, cudaError_t> rows[] = {
        {[]() -> cudaError_t { fail(cudaErrorInvalidValue); }, cudaErrorInvalidValue},
        {[]() -> cudaError_t { throw std::bad_alloc(); }, cudaErrorMemoryAllocation},
    };
    for (const auto &[run, error] : rows) {
        operation_wait(stream_submit(*stream, run));
        EXPECT_EQ(device_at(0).fault, error);
        device_at(0).fault = cudaSuccess;
    }
    stream_release(stream);
}

// One that waits for another stream, whose operation goes on while the process ends.
void stop_before_a_waiting_operation() {
    static std::atomic<bool> may_end{false}, has_begun{false};
    StreamPtr first = stream_create(0, cudaStreamNonBlocking, 0), second = stream_create(0, cudaStreamNonBlocking, 0);
    auto running = std::make_shared<Operation>();
    running->is_host_function = true; // which the stop does not wait for
    running->run = [] {
        while (!may_end)
            std::this_thread::yield();
        return cudaSuccess;
    };
    stream_submit(*first, running);
    auto begin = [] {
        has_begun = true;
        return cudaSuccess;
    };
    stream_submit(*second, begin, {running});
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // both threads get to where they wait
    streams_stop();
    may_end = true;
    operation_wait(running);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    _exit(has_begun ? 1 : 42);
}

TEST(Streams, NoOperationBeginsAfterTheStop) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(stop_before_a_waiting_operation(), testing::ExitedWithCode(42), "");
}

} // namespace
} // namespace vgpu
