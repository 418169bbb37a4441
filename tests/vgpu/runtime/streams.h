// Streams: queues of operations that run in order, each in a thread of its own, and what waits for what.
//
//   VGPU_STREAMS=eager    an operation starts as soon as it may (the default)
//   VGPU_STREAMS=lazy     it runs only when something waits for it or queries it: the most adverse schedule that is
//                         still legal, in which a missing synchronisation always shows
//   VGPU_STREAMS=shuffle  it starts after a random delay, drawn from VGPU_SEED
#ifndef SHOAL_TESTS_VGPU_RUNTIME_STREAMS_H
#define SHOAL_TESTS_VGPU_RUNTIME_STREAMS_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/handles.h"
#include "tests/vgpu/runtime/timeline.h"

namespace vgpu {

struct Capture;
struct GraphNode;
struct Stream;

// One operation of a stream. Its fields are the scheduler's.
struct Operation {
    std::function<cudaError_t()> run;              // what it returns is the device's fault from then on
    std::vector<std::shared_ptr<Operation>> waits; // operations that have to be done before it begins
    Stream *stream = nullptr;                      // lives at least as long as it is not done
    bool is_host_function = false;
    bool runs_after_fault = false;
    bool is_wanted = false, is_done = false;
    std::chrono::steady_clock::time_point done_at;
    Timing timing;
};
using OperationPtr = std::shared_ptr<Operation>;

struct Stream : std::enable_shared_from_this<Stream> {
    uint64_t id = 0;
    int device = 0;
    unsigned flags = cudaStreamDefault;
    std::atomic<int> priority{0};
    bool is_legacy = false; // the legacy default stream of its device
    cudaStream_t handle = nullptr;

    // The scheduler's, under its mutex.
    std::deque<OperationPtr> queue;
    OperationPtr last; // submitted; null: none yet
    std::condition_variable work;
    bool has_thread = false, is_released = false;

    // Under the mutex of captures (capture.h).
    std::shared_ptr<Capture> capture;
    std::vector<GraphNode *> capture_tips; // what the next node depends on

    // Waits for the legacy default stream, and that for it.
    bool is_blocking() const { return !is_legacy && (flags & cudaStreamNonBlocking) == 0; }
};
using StreamPtr = std::shared_ptr<Stream>;

StreamPtr stream_create(int device, unsigned flags, int priority);
// No more operations come; those that are there still run.
void stream_release(const StreamPtr &stream);
// Resolves null, cudaStreamLegacy and cudaStreamPerThread for the current device and the calling thread.
StreamPtr stream_find(cudaStream_t handle);
HandleTable<Stream, cudaStream_t> &stream_handles();

// Puts an operation at the stream's end. It also waits for what the legacy default stream's rules say.
OperationPtr stream_submit(Stream &stream, OperationPtr operation);
OperationPtr stream_submit(Stream &stream, std::function<cudaError_t()> run, std::vector<OperationPtr> waits = {});

void operation_wait(const OperationPtr &operation);
bool operation_is_done(const OperationPtr &operation); // and lets it begin
// Everything that was submitted before. They throw the fault that the device ended with, if any.
void stream_synchronize(Stream &stream);
bool stream_query(Stream &stream);
void device_synchronize(int device);
// All work on all devices. Throws nothing.
void devices_wait();

// Whether an asynchronous copy from a device to pageable memory is done when the call returns: CUDA leaves that open.
bool copies_to_pageable_wait();

// At the process's end: no more operations begin. Waits for those that run now, host functions excepted.
void streams_stop();
// Reads VGPU_STREAMS, and no more.
void streams_check_settings();

} // namespace vgpu

#endif
