// The scheduler: one mutex for all queues, one condition for everything that becomes done, one for each stream's work.
#include "tests/vgpu/runtime/streams.h"

#include <algorithm>
#include <map>
#include <thread>

#include "tests/vgpu/exec/report.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/environment.h"

namespace vgpu {
namespace {

enum class Schedule : uint8_t { eager, lazy, shuffle };

Schedule read_schedule() {
    std::string_view text = text_setting("VGPU_STREAMS");
    if (text.empty() || text == "eager") return Schedule::eager;
    if (text == "lazy") return Schedule::lazy;
    if (text == "shuffle") return Schedule::shuffle;
    bad_setting("VGPU_STREAMS", text, "eager, lazy or shuffle");
}

// Never destroyed: threads may still be in it when the process ends.
struct Scheduler {
    std::mutex mutex;
    std::condition_variable done;
    std::vector<StreamPtr> streams; // all that are not released or not yet empty
    uint64_t streams_made = 0;
    int running = 0; // operations that are no host functions
    bool is_stopping = false;
    const Schedule schedule = read_schedule();
    const uint64_t seed = shuffle_seed();
    StreamPtr legacy[MAX_DEVICES];
};

Scheduler &scheduler() {
    static auto *const only = new Scheduler;
    return *only;
}

// Lets an operation begin, with everything that has to be done before. The mutex is held.
void want(const OperationPtr &operation) {
    std::vector<OperationPtr> left{operation};
    while (!left.empty()) {
        OperationPtr next = std::move(left.back());
        left.pop_back();
        if (next->is_done || next->is_wanted) continue;
        Stream &stream = *next->stream;
        for (const OperationPtr &earlier : stream.queue) {
            if (!earlier->is_wanted) {
                earlier->is_wanted = true;
                left.insert(left.end(), earlier->waits.begin(), earlier->waits.end());
            }
            if (earlier == next) break;
        }
        stream.work.notify_all();
    }
}

// Up to two milliseconds, another one for each operation of each seed.
std::chrono::microseconds random_delay(uint64_t stream, uint64_t operation) {
    return std::chrono::microseconds(mix(scheduler().seed ^ mix(stream << 32 ^ operation)) % 2000);
}

// What the operation ends with, be it thrown: no exception may leave the stream's thread.
cudaError_t result_of(const Operation &operation) {
    cudaError_t result = cudaSuccess;
    cudaError_t thrown = api_without_device([&] { result = operation.run(); });
    return thrown != cudaSuccess ? thrown : result;
}

// Runs an operation without the mutex, keeps what it failed with and returns its times. It comes after all of `before`.
Timing run_operation(const Operation &operation, const std::vector<Timing> &before) {
    TimedOperation timed(operation, before);
    Device &device = device_at(operation.stream->device);
    if (operation.run && (device.fault == cudaSuccess || operation.runs_after_fault)) {
        cudaError_t error = result_of(operation);
        if (error != cudaSuccess) device.set_fault(error);
    }
    return timed.end();
}

// The body of a stream's thread: ends when the stream is released and empty.
void run_stream(const StreamPtr &stream) {
    Scheduler &all = scheduler();
    set_current_device(stream->device);
    Timing last; // of the operation before
    std::unique_lock lock(all.mutex);
    for (uint64_t number = 0;; number++) {
        stream->work.wait(lock, [&] {
            if (stream->queue.empty()) return stream->is_released;
            return stream->queue.front()->is_wanted && !all.is_stopping;
        });
        if (stream->queue.empty()) break;
        OperationPtr operation = stream->queue.front();
        all.done.wait(lock, [&] {
            if (all.is_stopping) return false;
            return std::all_of(operation->waits.begin(), operation->waits.end(),
                               [](const OperationPtr &earlier) { return earlier->is_done; });
        });
        int counted = operation->is_host_function ? 0 : 1;
        all.running += counted;
        std::vector<Timing> before{last};
        for (const OperationPtr &earlier : operation->waits)
            before.push_back(earlier->timing);
        lock.unlock();
        if (all.schedule == Schedule::shuffle) std::this_thread::sleep_for(random_delay(stream->id, number));
        last = run_operation(*operation, before);
        operation->run = nullptr; // what it holds is let go before anyone is told
        lock.lock();
        all.running -= counted;
        operation->waits.clear();
        operation->timing = last;
        operation->is_done = true;
        operation->done_at = std::chrono::steady_clock::now();
        stream->queue.pop_front();
        all.done.notify_all();
    }
    stream->has_thread = false;
    all.streams.erase(std::remove(all.streams.begin(), all.streams.end(), stream), all.streams.end());
}

// Whether what comes in `stream` waits for what is in `other`, by the rules of the legacy default stream.
bool comes_after(const Stream &stream, const Stream &other) {
    bool is_ordered = (stream.is_legacy && other.is_blocking()) || (stream.is_blocking() && other.is_legacy);
    return is_ordered && other.device == stream.device;
}

// The streams of cudaStreamPerThread, one for each device. They go with their thread; what the last destructors of the
// main thread use after that is made anew.
struct ThreadStreams {
    std::map<int, StreamPtr> by_device;
    ~ThreadStreams() {
        for (const auto &[device, stream] : by_device)
            stream_release(stream);
    }
};

thread_local ThreadStreams *thread_streams = nullptr;

struct ThreadStreamsOwner {
    ~ThreadStreamsOwner() {
        delete thread_streams;
        thread_streams = nullptr;
    }
};

StreamPtr per_thread_stream() {
    thread_local ThreadStreamsOwner owner;
    if (thread_streams == nullptr) thread_streams = new ThreadStreams;
    StreamPtr &stream = thread_streams->by_device[current_device_index()];
    if (stream == nullptr) {
        stream = stream_create(current_device_index(), cudaStreamDefault, 0);
        stream->handle = cudaStreamPerThread;
    }
    return stream;
}

StreamPtr legacy_stream(int device) {
    Scheduler &all = scheduler();
    {
        std::lock_guard lock(all.mutex);
        if (all.legacy[device] != nullptr) return all.legacy[device];
    }
    StreamPtr made = stream_create(device, cudaStreamDefault, 0);
    made->is_legacy = true;
    made->handle = cudaStreamLegacy;
    std::lock_guard lock(all.mutex);
    if (all.legacy[device] == nullptr) all.legacy[device] = made;
    return all.legacy[device];
}

} // namespace

HandleTable<Stream, cudaStream_t> &stream_handles() {
    static auto *const table = new HandleTable<Stream, cudaStream_t>(HandleKind::stream);
    return *table;
}

StreamPtr stream_create(int device, unsigned flags, int priority) {
    Scheduler &all = scheduler();
    auto stream = std::make_shared<Stream>();
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    std::lock_guard lock(all.mutex);
    stream->id = ++all.streams_made;
    return stream;
}

void stream_release(const StreamPtr &stream) {
    std::lock_guard lock(scheduler().mutex);
    stream->is_released = true;
    stream->work.notify_all();
}

StreamPtr stream_find(cudaStream_t handle) {
    device_at(current_device_index());
    if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(current_device_index());
    if (handle == cudaStreamPerThread) return per_thread_stream();
    return stream_handles().find(handle);
}

OperationPtr stream_submit(Stream &stream, OperationPtr operation) {
    Scheduler &all = scheduler();
    operation->stream = &stream;
    operation->timing = timing_issue();
    std::lock_guard lock(all.mutex);
    for (const StreamPtr &other : all.streams) {
        if (comes_after(stream, *other) && !other->last->is_done) operation->waits.push_back(other->last);
    }
    stream.queue.push_back(operation);
    stream.last = operation;
    if (!stream.has_thread) {
        stream.has_thread = true;
        StreamPtr held = stream.shared_from_this();
        all.streams.push_back(held);
        std::thread([held] { run_stream(held); }).detach();
    }
    if (all.schedule != Schedule::lazy) want(operation);
    return operation;
}

OperationPtr stream_submit(Stream &stream, std::function<cudaError_t()> run, std::vector<OperationPtr> waits) {
    auto operation = std::make_shared<Operation>();
    operation->run = std::move(run);
    operation->waits = std::move(waits);
    return stream_submit(stream, std::move(operation));
}

void operation_wait(const OperationPtr &operation) {
    std::unique_lock lock(scheduler().mutex);
    if (operation == nullptr) return;
    want(operation);
    scheduler().done.wait(lock, [&] { return operation->is_done; });
}

bool operation_is_done(const OperationPtr &operation) {
    std::lock_guard lock(scheduler().mutex);
    if (operation == nullptr) return true;
    want(operation);
    return operation->is_done;
}

// The last operations of the streams for which `is_meant` holds.
template <typename Predicate> static std::vector<OperationPtr> last_operations(Predicate &&is_meant) {
    std::lock_guard lock(scheduler().mutex);
    std::vector<OperationPtr> lasts;
    for (const StreamPtr &stream : scheduler().streams) {
        if (is_meant(*stream)) lasts.push_back(stream->last);
    }
    return lasts;
}

// What has to be done for the stream to be: the legacy default stream's state is that of the blocking ones too.
static std::vector<OperationPtr> last_of(const Stream &stream) {
    return last_operations(
        [&](const Stream &other) { return &other == &stream || (stream.is_legacy && comes_after(stream, other)); });
}

static void wait_all(const std::vector<OperationPtr> &operations) {
    for (const OperationPtr &operation : operations)
        operation_wait(operation);
}

void stream_synchronize(Stream &stream) {
    wait_all(last_of(stream));
    device_at(stream.device).surface_fault();
}

bool stream_query(Stream &stream) {
    bool is_done = true;
    for (const OperationPtr &last : last_of(stream))
        is_done = operation_is_done(last) && is_done; // asks all of them: each may begin
    if (is_done) device_at(stream.device).surface_fault();
    return is_done;
}

void device_synchronize(int device) {
    wait_all(last_operations([device](const Stream &stream) { return stream.device == device; }));
    device_at(device).surface_fault();
}

void devices_wait() {
    wait_all(last_operations([](const Stream &) { return true; }));
}

bool copies_to_pageable_wait() { return scheduler().schedule == Schedule::eager; }

void streams_check_settings() { read_schedule(); }

void streams_stop() {
    Scheduler &all = scheduler();
    std::unique_lock lock(all.mutex);
    all.is_stopping = true;
    all.done.wait_for(lock, std::chrono::seconds(10), [&] { return all.running == 0; });
}

} // namespace vgpu
