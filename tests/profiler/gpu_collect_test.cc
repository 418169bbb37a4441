// What a profile says of a GPU's work: charged to the scope that launched it, by whatever way, and with its times. On
// the virtual GPU these are the cost model's (tests/vgpu/runtime/timeline.h), to the nanosecond.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "host/clock.h"
#include "profiler/prof_cupti.h"
#include "tests/profiler/gpu_work.h"
#include "tests/profiler/synthetic.h"

namespace profiler_test {
namespace {

#define CUDA_OK(call) ASSERT_EQ(cudaSuccess, call)

// A setting of the cost model; -1: there is none.
int64_t cost(const char *name) {
    const char *text = getenv(name);
    return text != nullptr ? strtoll(text, nullptr, 10) : -1;
}
int64_t kernel_ns(int64_t blocks) { return cost("VGPU_COST_KERNEL") + blocks * cost("VGPU_COST_BLOCK"); }
int64_t copy_ns(int64_t bytes) {
    int64_t bandwidth = cost("VGPU_COST_BANDWIDTH");
    return cost("VGPU_COST_COPY") + (bytes + bandwidth - 1) / bandwidth;
}
bool is_modelled() { return cost("VGPU_COST_KERNEL") >= 0; }

void spin(int64_t ns) {
    for (int64_t end = host_now_ns() + ns; host_now_ns() < end;) {
    }
}

class Collect : public testing::Test {
  protected:
    enum { BLOCKS = 8, THREADS = 64 };

    void SetUp() override {
        int devices = 0;
        cudaError_t error = cudaGetDeviceCount(&devices);
        const char *required = getenv("SHOAL_TEST_CUDA");
        bool is_required = required != nullptr && strcmp(required, "required") == 0;
        if (!is_required && (error != cudaSuccess || devices == 0)) GTEST_SKIP() << cudaGetErrorString(error);
        CUDA_OK(cudaSetDevice(0));
        CUDA_OK(cudaMalloc(reinterpret_cast<void **>(&memory_), 1 << 20));
        CUDA_OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_OK(gpu_work_first(memory_, 1, 1, stream_)); // what is loaded lazily is loaded
        CUDA_OK(gpu_work_second(memory_, 1, 1, stream_));
        CUDA_OK(cudaDeviceSynchronize());
    }
    void TearDown() override {
        if (recorder_ != nullptr) stop();
        for (ProfRecorder *recorder : stopped_)
            prof_recorder_free(recorder);
        if (stream_ != nullptr) cudaStreamDestroy(stream_);
        cudaFree(memory_);
    }

    void start(int buffers = 0, bool takes_ids = false) {
        const ProfCuptiOptions with = {buffers, true, takes_ids};
        if (prof_cupti_open(&with, &cupti_) != STATUS_OK) throw std::runtime_error(host_message());
        ProfRecordOptions options = {};
        options.path = file_.path();
        options.collector = prof_cupti_collector(cupti_);
        unlink(file_.path());
        if (prof_recorder_start(&options, &recorder_) != STATUS_OK) throw std::runtime_error(host_message());
        prof_cupti_attach(cupti_, recorder_);
    }
    // The records that are missing.
    int64_t stop() {
        int64_t dropped = -1, missing = -1;
        EXPECT_EQ(STATUS_OK, prof_cupti_detach(cupti_)) << host_message();
        EXPECT_EQ(STATUS_OK, prof_recorder_stop(recorder_, &dropped)) << host_message();
        EXPECT_EQ(0, dropped);
        prof_cupti_close(cupti_, &missing);
        stopped_.push_back(recorder_);
        recorder_ = nullptr;
        return missing;
    }

    // A scope's intervals and the device's time, over all phases.
    static void expect_device(const Analysed &a, const std::string &path, int64_t intervals, int64_t modelled_ns) {
        const ProfNode *node = a.find(path);
        ASSERT_NE(nullptr, node) << path;
        EXPECT_EQ(intervals, node->cell[0].intervals) << path;
        if (is_modelled()) {
            EXPECT_EQ(modelled_ns, node->cell[0].device_ns) << path;
        } else if (intervals > 0) {
            EXPECT_GT(node->cell[0].device_ns, 0) << path;
        }
    }

    TraceFile file_;
    ProfCupti *cupti_ = nullptr;
    ProfRecorder *recorder_ = nullptr;
    std::vector<ProfRecorder *> stopped_;
    unsigned *memory_ = nullptr;
    cudaStream_t stream_ = nullptr;
};

// No wait is over before the kernel that it is for, or lasts into the next one. One thread, one queue; kernels and
// waits take turns.
void expect_waits_outlast_kernels(const char *path, size_t count) {
    ProfReader *reader = nullptr;
    ASSERT_EQ(STATUS_OK, prof_reader_open(path, &reader)) << host_message();
    std::vector<ProfEvent> kernels, waits;
    for (int s = 0; s < prof_reader_stream_count(reader); s++) {
        for (const ProfEvent &event : read_stream(reader, s)) {
            if (event.kind == PROF_EVENT_INTERVAL) kernels.push_back(event);
            if (event.kind == PROF_EVENT_WAIT) waits.push_back(event);
        }
    }
    prof_reader_close(reader);
    ASSERT_EQ(count, kernels.size());
    ASSERT_EQ(count, waits.size());
    for (size_t i = 0; i < count; i++) {
        EXPECT_GE(waits[i].time_ns + waits[i].duration_ns, kernels[i].time_ns + kernels[i].duration_ns) << i;
        if (i + 1 < count) {
            EXPECT_LE(waits[i].time_ns + waits[i].duration_ns, kernels[i + 1].time_ns) << i;
        }
    }
}

TEST_F(Collect, AKernelIsChargedToTheScopeThatLaunchedIt) {
    start();
    {
        HOST_TRACE_SCOPE(SIMULATION, "A");
        CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_));
    }
    {
        HOST_TRACE_SCOPE(LEARNING, "B"); // it runs here
        spin(1000000);
        CUDA_OK(cudaStreamSynchronize(stream_));
    }
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    EXPECT_EQ(0, a->unknown_launches);
    EXPECT_EQ(1, a->intervals);
    expect_device(a, "/A", 1, kernel_ns(BLOCKS));
    expect_device(a, "/B", 0, 0);
    const ProfWall &wall = a.find("/A")->cell[0].wall;
    EXPECT_EQ(a.find("/A")->cell[0].device_ns, wall.both_ns + wall.gpu_ns); // B's time is not A's; A's kernel is
    // Calls are scopes of their own, of the category that they are within; waits wait.
    const ProfNode *call = a.find("/A/cudaLaunchKernel"), *wait = a.find("/B/cudaStreamSynchronize");
    ASSERT_NE(nullptr, call);
    ASSERT_NE(nullptr, wait);
    EXPECT_EQ(PROF_LAYER_API, call->layer);
    EXPECT_EQ(HOST_TRACE_SIMULATION, call->category);
    EXPECT_EQ(HOST_TRACE_IDLE, wait->category);
    const ProfNode *told = a.find("/B/cudaStreamSynchronize/wait for a stream");
    ASSERT_NE(nullptr, told);
    EXPECT_TRUE(told->is_wait);
    EXPECT_EQ(1, told->cell[0].count);
    EXPECT_EQ(1, call->cell[0].count);
    EXPECT_TRUE(a.find("/A")->is_leaf);
    EXPECT_EQ(nullptr, a.find("/A/cudaGetLastError"));
}

TEST_F(Collect, AGraphsNodesAreChargedToWhereTheyWereCaptured) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    start();
    {
        HOST_TRACE_SCOPE(HOST, "capture");
        CUDA_OK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < 3; i++) {
            HOST_TRACE_SCOPE(SIMULATION, "C");
            CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_));
            HOST_TRACE_SCOPE(POLICY, "E");
            CUDA_OK(gpu_work_second(memory_, 2 * BLOCKS, THREADS, stream_));
        }
        CUDA_OK(cudaStreamEndCapture(stream_, &graph));
        CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    }
    for (int i = 0; i < 4; i++) {
        HOST_TRACE_SCOPE(LEARNING, "D");
        CUDA_OK(cudaGraphLaunch(exec, stream_));
    }
    CUDA_OK(cudaStreamSynchronize(stream_));
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    expect_device(a, "/D/C", 12, 12 * kernel_ns(BLOCKS));
    expect_device(a, "/D/E", 12, 12 * kernel_ns(2 * BLOCKS));
    expect_device(a, "/D", 0, 0);
    EXPECT_EQ(24, a->intervals);
    EXPECT_EQ(0, a->unknown_launches);
    EXPECT_EQ(HOST_TRACE_SIMULATION, a.find("/D/C")->category);

    // A profile that begins later does not know where they were captured: the launch has them.
    start();
    {
        HOST_TRACE_SCOPE(LEARNING, "D");
        CUDA_OK(cudaGraphLaunch(exec, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
    }
    EXPECT_EQ(0, stop());
    Analysed b(file_.path());
    expect_device(b, "/D", 6, 3 * kernel_ns(BLOCKS) + 3 * kernel_ns(2 * BLOCKS));
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
}

TEST_F(Collect, CopiesAndFills) {
    const int64_t size = 1 << 16;
    std::vector<char> host(size);
    start();
    {
        HOST_TRACE_SCOPE(IO, "up");
        CUDA_OK(cudaMemcpy(memory_, host.data(), size, cudaMemcpyHostToDevice));
    }
    {
        HOST_TRACE_SCOPE(HOST, "clear");
        CUDA_OK(cudaMemsetAsync(memory_, 1, size, stream_));
        CUDA_OK(cudaMemcpyAsync(memory_ + size, memory_, size, cudaMemcpyDeviceToDevice, stream_));
    }
    {
        HOST_TRACE_SCOPE(IO, "down");
        CUDA_OK(cudaMemcpyAsync(host.data(), memory_, size, cudaMemcpyDeviceToHost, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
    }
    CUDA_OK(cudaDeviceSynchronize()); // the first copy is of another stream, and was only staged
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    expect_device(a, "/up", 1, copy_ns(size));
    expect_device(a, "/clear", 2, 2 * copy_ns(size));
    expect_device(a, "/down", 1, copy_ns(size));
    ASSERT_NE(nullptr, a.find("/up/cudaMemcpy"));
    EXPECT_EQ(HOST_TRACE_IDLE, a.find("/up/cudaMemcpy")->category);
    EXPECT_EQ(HOST_TRACE_IO, a.find("/down/cudaMemcpyAsync")->category);
    EXPECT_EQ(0, a->work_ns[PROF_DEVICE_KERNEL]);
    EXPECT_EQ(0, a->kernel_busy_ns);
    EXPECT_GT(a->work_ns[PROF_DEVICE_FILL], 0);
    EXPECT_EQ(a->device_sum_ns, a->work_ns[PROF_DEVICE_COPY] + a->work_ns[PROF_DEVICE_FILL]);
    std::set<std::string> names;
    for (uint32_t i = 0; i < a->name_count; i++)
        names.insert(a->names[i].text);
    for (const char *name : {"copy host to device", "copy device to host", "copy on device", "fill"})
        EXPECT_EQ(1u, names.count(name)) << name;
}

// The queues of a trace: (device, number) -> intervals.
std::map<std::pair<uint64_t, uint64_t>, int> queues_of(const char *path, std::set<std::string> *kernels) {
    std::map<std::pair<uint64_t, uint64_t>, int> queues;
    ProfReader *reader = nullptr;
    EXPECT_EQ(STATUS_OK, prof_reader_open(path, &reader)) << host_message();
    for (int s = 0; s < prof_reader_stream_count(reader); s++) {
        const ProfStream *stream = prof_reader_stream(reader, s);
        ProfEvent e;
        while (prof_reader_next(reader, s, &e)) {
            if (e.kind != PROF_EVENT_INTERVAL) continue;
            queues[{stream->device, stream->os_id}]++;
            EXPECT_GT(stream->capacity, 0u);
            EXPECT_EQ(uint64_t{8 * 64}, e.threads);
            kernels->insert(prof_reader_name(reader, e.name)->text);
        }
    }
    EXPECT_EQ(0u, prof_reader_damage(reader)->backward_clocks);
    prof_reader_close(reader);
    return queues;
}

TEST_F(Collect, ThreadsStreamsAndDevices) {
    enum { THREADS_OF_HOST = 4, LAUNCHES = 50 };
    static const char *const names[] = {"t0", "t1", "t2", "t3"};
    int devices = 0;
    CUDA_OK(cudaGetDeviceCount(&devices));
    start();
    std::vector<std::thread> threads;
    for (int t = 0; t < THREADS_OF_HOST; t++) {
        threads.emplace_back([t, devices] {
            cudaStream_t stream = nullptr;
            unsigned *memory = nullptr;
            CUDA_OK(cudaSetDevice(t % devices));
            CUDA_OK(cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20));
            CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            for (int i = 0; i < LAUNCHES; i++) {
                HOST_TRACE_SCOPE(SIMULATION, names[t]);
                CUDA_OK((i % 2 == 0 ? gpu_work_first : gpu_work_second)(memory, BLOCKS, THREADS, stream));
            }
            CUDA_OK(cudaStreamSynchronize(stream));
            CUDA_OK(cudaStreamDestroy(stream));
            CUDA_OK(cudaFree(memory));
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    for (const char *name : names)
        expect_device(a, std::string("/") + name, LAUNCHES, LAUNCHES * kernel_ns(BLOCKS));
    EXPECT_EQ(0, a->unknown_launches);
    EXPECT_LT(a->device_busy_ns, a->device_sum_ns); // streams run side by side
    EXPECT_EQ(a->kernel_busy_ns, a->device_busy_ns);
    std::set<std::string> kernels;
    auto queues = queues_of(file_.path(), &kernels);
    EXPECT_EQ(size_t{THREADS_OF_HOST}, queues.size());
    std::set<uint64_t> used;
    for (const auto &[queue, intervals] : queues) {
        EXPECT_EQ(int{LAUNCHES}, intervals);
        used.insert(queue.first);
    }
    EXPECT_EQ(std::min<size_t>(THREADS_OF_HOST, static_cast<size_t>(devices)), used.size());
    EXPECT_EQ((std::set<std::string>{"first_kernel(unsigned int*)", "second_kernel(unsigned int*)"}), kernels);
}

TEST_F(Collect, OneProfileAfterAnother) {
    for (int round = 0; round < 5; round++) {
        CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_)); // of no profile
        CUDA_OK(cudaStreamSynchronize(stream_));
        start();
        for (int i = 0; i < 10; i++) {
            HOST_TRACE_SCOPE(POLICY, "A");
            CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_));
        }
        CUDA_OK(cudaStreamSynchronize(stream_));
        EXPECT_EQ(0, stop());
        Analysed a(file_.path());
        expect_device(a, "/A", 10, 10 * kernel_ns(BLOCKS));
        EXPECT_EQ(10, a->intervals);
        EXPECT_EQ(0, a->unknown_launches);
        EXPECT_EQ(0, a->unmatched_ends);
    }
}

TEST_F(Collect, WhatFindsNoBufferIsCounted) {
    enum { LAUNCHES = 12000 };
    cudaStream_t streams[16] = {};
    for (cudaStream_t &stream : streams)
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    start(1); // one buffer holds some thousand records, and is away until it is read
    {
        HOST_TRACE_SCOPE(SIMULATION, "A");
        for (int i = 0; i < LAUNCHES; i++)
            CUDA_OK(gpu_work_first(memory_, 1, 1, streams[i % 16]));
        CUDA_OK(cudaDeviceSynchronize());
    }
    int64_t missing = stop();
    for (cudaStream_t stream : streams)
        CUDA_OK(cudaStreamDestroy(stream));
    Analysed a(file_.path());
    EXPECT_GT(missing, 0);
    EXPECT_EQ(missing, a->dropped_intervals);
    EXPECT_EQ(missing, a->dropped);
    EXPECT_LT(a->intervals, LAUNCHES);
    EXPECT_GE(a->intervals + missing, LAUNCHES);
    EXPECT_LE(a->intervals + missing, LAUNCHES + LAUNCHES / 100); // records of overhead may be missing, too
    // The pool is as good as before.
    start();
    {
        HOST_TRACE_SCOPE(SIMULATION, "A");
        for (int i = 0; i < 100; i++)
            CUDA_OK(gpu_work_first(memory_, 1, 1, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
    }
    EXPECT_EQ(0, stop());
    Analysed b(file_.path());
    EXPECT_EQ(100, b->intervals);
}

// Between two kernels the main thread waits for the first, by whatever call.
TEST_F(Collect, WaitsAreScopesWithinTheirCalls) {
    cudaEvent_t event = nullptr;
    CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    auto work = [this] { CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_)); };
    start();
    {
        HOST_TRACE_SCOPE(LEARNING, "A");
        work();
        CUDA_OK(cudaStreamSynchronize(stream_));
        work();
        CUDA_OK(cudaEventRecord(event, stream_));
        CUDA_OK(cudaEventSynchronize(event));
        CUDA_OK(cudaStreamWaitEvent(nullptr, event, 0)); // keeps no thread
        work();
        CUDA_OK(cudaDeviceSynchronize());
    }
    EXPECT_EQ(0, stop());
    CUDA_OK(cudaEventDestroy(event));
    Analysed a(file_.path());
    int64_t waits = 0;
    for (int32_t i = 0; i < a->node_count; i++)
        waits += a->nodes[i].is_wait ? a->nodes[i].cell[0].count : 0;
    EXPECT_EQ(3, waits);
    for (const char *path : {"/A/cudaStreamSynchronize/wait for a stream", "/A/cudaEventSynchronize/wait for an event",
                             "/A/cudaDeviceSynchronize/wait for the device"}) {
        const ProfNode *node = a.find(path);
        ASSERT_NE(nullptr, node) << path;
        EXPECT_EQ(HOST_TRACE_IDLE, node->category);
        EXPECT_EQ(1, node->cell[0].count) << path;
    }
    expect_waits_outlast_kernels(file_.path(), 3);
    EXPECT_EQ(1, a.find("/A/cudaStreamWaitEvent")->cell[0].count);
    EXPECT_EQ(HOST_TRACE_LEARNING, a.find("/A/cudaStreamWaitEvent")->category);
}

TEST_F(Collect, MemoryIsChargedToTheScopeThatAllocatesIt) {
    void *before = nullptr, *large = nullptr, *small = nullptr, *pinned = nullptr, *pooled = nullptr;
    CUDA_OK(cudaMalloc(&before, 3 << 20));
    start();
    {
        HOST_TRACE_SCOPE(POLICY, "A");
        CUDA_OK(cudaMalloc(&large, 5 << 20));
        CUDA_OK(cudaMallocHost(&pinned, 1 << 16));
        CUDA_OK(cudaMalloc(&small, 1 << 20));
        CUDA_OK(cudaFree(small));
    }
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    {
        HOST_TRACE_SCOPE(LEARNING, "B");
        CUDA_OK(cudaFree(before)); // it was allocated before
        CUDA_OK(cudaMemPoolCreate(&pool, &properties));
        CUDA_OK(cudaMallocFromPoolAsync(&pooled, 2 << 20, pool, stream_));
        CUDA_OK(cudaFreeAsync(pooled, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
        CUDA_OK(cudaMemPoolTrimTo(pool, 1 << 20)); // of the two mebibytes that it had
        CUDA_OK(cudaMemPoolDestroy(pool));
        CUDA_OK(cudaFree(large));
        CUDA_OK(cudaFreeHost(pinned));
    }
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    const ProfCell &in_a = a.find("/A")->cell[0], &in_b = a.find("/B")->cell[0];
    EXPECT_EQ(2, in_a.allocations);
    EXPECT_EQ(6 << 20, in_a.allocated_bytes);
    EXPECT_EQ(1 << 20, in_a.released_bytes);
    EXPECT_EQ(1, in_b.allocations);
    EXPECT_EQ(2 << 20, in_b.allocated_bytes);
    EXPECT_EQ(7 << 20, in_b.released_bytes);
    const ProfMemorySum &device = a->memory[PROF_MEMORY_DEVICE], &host = a->memory[PROF_MEMORY_PINNED];
    EXPECT_EQ(3, device.allocations);
    EXPECT_EQ(4, device.releases);
    EXPECT_EQ(8 << 20, device.allocated_bytes);
    EXPECT_EQ(7 << 20, device.peak_bytes);
    EXPECT_EQ(0, device.held_bytes);
    EXPECT_EQ(1, host.allocations);
    EXPECT_EQ(1 << 16, host.peak_bytes);
    EXPECT_EQ(0, host.held_bytes);
    EXPECT_EQ(1, a->pools[PROF_POOL_MADE]);
    EXPECT_EQ(1, a->pools[PROF_POOL_TRIMMED]);
    EXPECT_EQ(1, a->pools[PROF_POOL_DESTROYED]);
    if (is_modelled()) {
        EXPECT_EQ(1 << 20, a->pool_peak_bytes);
    }
    EXPECT_EQ(0, a->nodes[PROF_NODE_UNKNOWN].cell[0].allocations);
}

// A framework that marks its operations by CUPTI's ids: launches are counted for the operation that made them.
TEST_F(Collect, LaunchesUnderIdsOfAnotherTool) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    ASSERT_NE(nullptr, library) << dlerror();
    auto push = reinterpret_cast<decltype(&cuptiActivityPushExternalCorrelationId)>(
        dlsym(library, "cuptiActivityPushExternalCorrelationId"));
    auto pop = reinterpret_cast<decltype(&cuptiActivityPopExternalCorrelationId)>(
        dlsym(library, "cuptiActivityPopExternalCorrelationId"));
    for (bool takes_ids : {true, false}) {
        start(0, takes_ids);
        for (uint64_t id = 100; id < 103; id++) {
            HOST_TRACE_SCOPE(LEARNING, "A");
            ASSERT_EQ(CUPTI_SUCCESS, push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id));
            void *more = nullptr;
            CUDA_OK(cudaMalloc(&more, 1 << 16)); // these are no launches
            for (uint64_t i = 0; i <= id - 100; i++)
                CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_));
            CUDA_OK(cudaStreamSynchronize(stream_));
            CUDA_OK(cudaFree(more));
            ASSERT_EQ(CUPTI_SUCCESS, pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr));
            CUDA_OK(gpu_work_second(memory_, BLOCKS, THREADS, stream_)); // of none
        }
        CUDA_OK(cudaStreamSynchronize(stream_));
        EXPECT_EQ(0, stop());
        Analysed a(file_.path());
        EXPECT_EQ(9, a->intervals);
        ASSERT_EQ(takes_ids ? 3 : 0, a->id_count);
        for (int32_t i = 0; i < a->id_count; i++) {
            const ProfId &id = a->ids[i];
            int64_t launches = static_cast<int64_t>(id.id) - 99;
            EXPECT_EQ(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id.kind);
            EXPECT_EQ(launches, id.launches);
            EXPECT_EQ(launches, id.intervals);
            if (is_modelled()) {
                EXPECT_EQ(launches * kernel_ns(BLOCKS), id.device_ns);
            }
        }
    }
}

TEST_F(Collect, CallsOutsideOfAllScopes) {
    start();
    CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_));
    CUDA_OK(cudaDeviceSynchronize());
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    expect_device(a, "/cudaLaunchKernel", 1, kernel_ns(BLOCKS));
    EXPECT_EQ(HOST_TRACE_HOST, a.find("/cudaLaunchKernel")->category);
    EXPECT_EQ(HOST_TRACE_IDLE, a.find("/cudaDeviceSynchronize")->category);
}

TEST_F(Collect, TheMonitorIsBesideIt) {
    start();
    for (int64_t end = host_now_ns() + 700000000; host_now_ns() < end;) {
        HOST_TRACE_SCOPE(SIMULATION, "A");
        CUDA_OK(gpu_work_first(memory_, BLOCKS, THREADS, stream_));
        CUDA_OK(cudaStreamSynchronize(stream_));
    }
    EXPECT_EQ(0, stop());
    Analysed a(file_.path());
    EXPECT_GE(a->monitor_samples, 2);
    EXPECT_LE(a->monitor_samples, 5 + a->wall_ns / 166666666);
    EXPECT_GT(a->memory_peak_bytes, 0);
    EXPECT_GT(a->monitor_percent, 0);
    EXPECT_GT(a->fill_of_ns, 0);
    EXPECT_LT(a->fill_ns, a->fill_of_ns);
}

void CUPTIAPI ignore(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

TEST_F(Collect, AnotherToolIsSaid) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    ASSERT_NE(nullptr, library) << dlerror();
    auto subscribe = reinterpret_cast<decltype(&cuptiSubscribe)>(dlsym(library, "cuptiSubscribe"));
    auto unsubscribe = reinterpret_cast<decltype(&cuptiUnsubscribe)>(dlsym(library, "cuptiUnsubscribe"));
    CUpti_SubscriberHandle other = nullptr;
    ASSERT_EQ(CUPTI_SUCCESS, subscribe(&other, ignore, nullptr));
    const ProfCuptiOptions with = {0, true, false};
    EXPECT_EQ(STATUS_DEVICE, prof_cupti_open(&with, &cupti_));
    EXPECT_EQ(0u, std::string(host_message()).rfind("another tool is attached to CUPTI", 0)) << host_message();
    ASSERT_EQ(CUPTI_SUCCESS, unsubscribe(other));
    start();
    EXPECT_EQ(STATUS_DEVICE, prof_cupti_open(&with, &cupti_)); // there is one
    EXPECT_EQ(0, stop());
}

} // namespace
} // namespace profiler_test
