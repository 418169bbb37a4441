// Stream capture and graphs.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

constexpr uint32_t N = 500;

class GraphTest : public RuntimeTest {
  protected:
    // Instantiates, launches `times` times, waits, and destroys the executable graph.
    void run(cudaGraph_t graph, int times, cudaStream_t stream) {
        cudaGraphExec_t exec = nullptr;
        ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
        for (int i = 0; i < times; i++)
            ASSERT_CUDA(cudaGraphLaunch(exec, stream));
        EXPECT_CUDA(cudaGraphExecDestroy(exec)); // what was launched goes on
        EXPECT_CUDA(cudaStreamSynchronize(stream));
    }

    size_t count_nodes(cudaGraph_t graph) {
        size_t count = 0;
        EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
        return count;
    }

    size_t count_edges(cudaGraph_t graph) {
        size_t count = 0;
        EXPECT_CUDA(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
        return count;
    }

    cudaGraphNode_t add_kernel(cudaGraph_t graph, const std::vector<cudaGraphNode_t> &after, const char *name,
                               uint32_t *out, uint32_t value) {
        uint32_t n = N;
        void *arguments[] = {&out, &n, &value};
        cudaKernelNodeParams parameters{};
        parameters.func = const_cast<void *>(kernel(name));
        parameters.gridDim = dim3((N + 127) / 128);
        parameters.blockDim = dim3(128);
        parameters.kernelParams = arguments;
        cudaGraphNode_t node = nullptr;
        EXPECT_CUDA(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &parameters));
        return node;
    }
};

TEST_F(GraphTest, CapturedWorkRunsWhenItIsLaunched) {
    DeviceWords words(N);
    PinnedWords host(N, 0);
    Stream stream;
    uint32_t value = 1;
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(launch("mix", words.get(), N, value, stream));
    value = 1000; // the parameters were copied
    ASSERT_CUDA(launch("mix", words.get(), N, 2, stream));
    ASSERT_CUDA(cudaMemcpyAsync(host.get(), words.get(), words.bytes(), cudaMemcpyDeviceToHost, stream));
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    EXPECT_EQ(words.read(), words_of(N, 0)); // nothing has run
    EXPECT_EQ(count_nodes(graph), 3u);
    EXPECT_EQ(count_edges(graph), 2u);
    run(graph, 1, stream);
    EXPECT_EQ(host.get()[N - 1], 5u);
    run(graph, 2, stream);
    EXPECT_EQ(host.get()[0], 455u); // 5 -> 50 -> 455
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

// Two branches that fork and join through events, with what is before, between and after them.
TEST_F(GraphTest, ForksAndJoinsThroughEvents) {
    DeviceWords left(N), right(N);
    Stream origin, branch;
    Event fork, join;
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(launch("fill", left.get(), N, 1, origin));
    ASSERT_CUDA(cudaEventRecord(fork, origin));
    ASSERT_CUDA(cudaStreamWaitEvent(branch, fork, 0));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    ASSERT_CUDA(cudaStreamIsCapturing(branch, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    ASSERT_CUDA(cudaMemcpyAsync(right.get(), left.get(), left.bytes(), cudaMemcpyDeviceToDevice, branch));
    ASSERT_CUDA(launch("mix", right.get(), N, 4, branch)); // 7
    ASSERT_CUDA(cudaEventRecord(join, branch));
    ASSERT_CUDA(cudaStreamWaitEvent(origin, join, 0));
    ASSERT_CUDA(launch("mix", left.get(), N, 2, origin)); // 5, after both
    uint32_t *out = left.get(), *in = right.get(), n = N / 2;
    void *arguments[] = {&out, &in, &n};
    ASSERT_CUDA(cudaLaunchKernel(kernel("copy"), dim3(4), dim3(128), arguments, 0, origin));
    ASSERT_CUDA(cudaStreamEndCapture(origin, &graph));
    ASSERT_CUDA(cudaStreamIsCapturing(branch, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_EQ(count_nodes(graph), 5u);
    EXPECT_EQ(count_edges(graph), 5u); // fill-copy, copy-mix, fill-mix, mix-mix, mix-copy
    for (int i = 0; i < 5; i++) {
        run(graph, 1, origin);
        std::vector<uint32_t> expected = words_of(N, 5);
        std::fill_n(expected.begin(), N / 2, 7u);
        EXPECT_EQ(left.read(), expected);
    }
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, CaptureInfo) {
    Stream stream;
    DeviceWords words(N);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    ASSERT_CUDA(cudaStreamGetCaptureInfo(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ASSERT_CUDA(launch("mix", words.get(), N, 1, stream));
    unsigned long long id = 0;
    cudaGraph_t graph = nullptr, ended = nullptr;
    const cudaGraphNode_t *tips = nullptr;
    size_t count = 0;
    ASSERT_CUDA(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &tips, nullptr, &count));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_GT(id, 0u);
    ASSERT_EQ(count, 1u);
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    ASSERT_CUDA(cudaGraphNodeGetType(tips[0], &type));
    EXPECT_EQ(type, cudaGraphNodeTypeKernel);
    // A node of one's own, put in the stream's way.
    cudaGraphNode_t added = add_kernel(graph, {tips[0]}, "mix", words.get(), 2);
    ASSERT_CUDA(cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1, cudaStreamSetCaptureDependencies));
    ASSERT_CUDA(launch("mix", words.get(), N, 3, stream));
    ASSERT_CUDA(cudaStreamEndCapture(stream, &ended));
    EXPECT_EQ(ended, graph);
    run(ended, 1, stream);
    EXPECT_EQ(words.read(), words_of(N, 18)); // 1, 5, 18
    EXPECT_CUDA(cudaGraphDestroy(ended));
}

// ---- what capture forbids ------------------------------------------------------------------------------------------

class CaptureTest : public GraphTest {
  protected:
    // Begins a capture, runs `forbidden`, and expects the capture to be invalid then.
    template <typename Call> void expect_invalidated(cudaError_t error, Call &&forbidden, unsigned flags) {
        Stream stream(flags);
        ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        EXPECT_CUDA_ERROR(forbidden(stream), error);
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        EXPECT_CUDA(cudaStreamIsCapturing(stream, &status));
        EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
        cudaGraph_t graph = nullptr;
        EXPECT_CUDA_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
        EXPECT_EQ(graph, nullptr);
        EXPECT_CUDA(cudaStreamSynchronize(stream)); // it is a stream as before
    }
};

TEST_F(CaptureTest, CallsThatInvalidateACapture) {
    DeviceWords words(N);
    std::vector<uint32_t> host(N);
    Event event;
    ASSERT_CUDA(cudaEventRecord(event, nullptr));
    expect_invalidated(
        cudaErrorStreamCaptureUnsupported, [](cudaStream_t stream) { return cudaStreamSynchronize(stream); },
        cudaStreamNonBlocking);
    expect_invalidated(
        cudaErrorStreamCaptureUnsupported, [](cudaStream_t stream) { return cudaStreamQuery(stream); },
        cudaStreamNonBlocking);
    expect_invalidated(
        cudaErrorStreamCaptureUnsupported, [](cudaStream_t) { return cudaDeviceSynchronize(); }, cudaStreamNonBlocking);
    expect_invalidated(
        cudaErrorStreamCaptureUnsupported,
        [](cudaStream_t) {
            void *memory = nullptr;
            return cudaMalloc(&memory, 16);
        },
        cudaStreamNonBlocking);
    expect_invalidated(
        cudaErrorStreamCaptureIsolation, [&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, event, 0); },
        cudaStreamNonBlocking);
    // The legacy default stream would have to wait for a blocking stream that is captured.
    expect_invalidated(
        cudaErrorStreamCaptureImplicit, [&](cudaStream_t) { return launch("fill", words.get(), N, 1, nullptr); },
        cudaStreamDefault);
    expect_invalidated(
        cudaErrorStreamCaptureImplicit,
        [&](cudaStream_t) { return cudaMemcpy(host.data(), words.get(), words.bytes(), cudaMemcpyDeviceToHost); },
        cudaStreamDefault);
}

TEST_F(CaptureTest, RelaxedCaptureAllowsAllocation) {
    Stream stream;
    cudaGraph_t graph = nullptr;
    void *memory = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_CUDA(cudaMalloc(&memory, 16));
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    EXPECT_EQ(count_nodes(graph), 0u);
    EXPECT_CUDA(cudaGraphDestroy(graph));
    EXPECT_CUDA(cudaFree(memory));
}

// A global capture binds all threads, one of a thread's own only that, and a thread may except itself.
TEST_F(CaptureTest, ModesOfOtherThreads) {
    auto malloc_elsewhere = [](cudaStreamCaptureMode mode) {
        cudaError_t result = cudaErrorUnknown;
        std::thread([&] {
            EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
            EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
            void *memory = nullptr;
            result = cudaMalloc(&memory, 16);
            if (result == cudaSuccess) {
                EXPECT_CUDA(cudaFree(memory));
            }
        }).join();
        return result;
    };
    struct Row {
        cudaStreamCaptureMode capture, thread;
        cudaError_t expected;
    } const rows[] = {
        {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported},
        {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaSuccess},
        {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed, cudaSuccess},
        {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal, cudaSuccess},
        {cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeGlobal, cudaSuccess},
    };
    for (const Row &row : rows) {
        Stream stream;
        ASSERT_CUDA(cudaStreamBeginCapture(stream, row.capture));
        EXPECT_EQ(malloc_elsewhere(row.thread), row.expected) << row.capture << " " << row.thread;
        cudaGraph_t graph = nullptr;
        bool is_good = row.expected == cudaSuccess;
        EXPECT_EQ(cudaStreamEndCapture(stream, &graph), is_good ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
        if (is_good) {
            EXPECT_CUDA(cudaGraphDestroy(graph));
        }
        (void)cudaGetLastError();
    }
}

TEST_F(CaptureTest, EndsThatAreRefused) {
    DeviceWords words(N);
    Stream origin, branch;
    Event event;
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(origin, &graph), cudaErrorIllegalState);
    EXPECT_CUDA_ERROR(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);

    // A branch that is not joined.
    ASSERT_CUDA(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
    EXPECT_CUDA_ERROR(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    ASSERT_CUDA(launch("fill", words.get(), N, 1, origin));
    ASSERT_CUDA(cudaEventRecord(event, origin));
    ASSERT_CUDA(cudaStreamWaitEvent(branch, event, 0));
    ASSERT_CUDA(launch("fill", words.get(), N, 2, branch));
    EXPECT_CUDA_ERROR(cudaEventQuery(event), cudaErrorCapturedEvent);
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureUnjoined);
    EXPECT_EQ(graph, nullptr);

    // From another thread.
    ASSERT_CUDA(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
    std::thread([&] {
        EXPECT_CUDA_ERROR(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureWrongThread);
    }).join();
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureInvalidated);

    // In another stream.
    ASSERT_CUDA(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(cudaEventRecord(event, origin));
    ASSERT_CUDA(cudaStreamWaitEvent(branch, event, 0));
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(branch, &graph), cudaErrorStreamCaptureUnmatched);
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureInvalidated);
}

// With its origin a capture ends; without another of its streams it is invalid.
TEST_F(CaptureTest, StreamsThatAreDestroyed) {
    if (!is_virtual()) GTEST_SKIP() << "the documentation does not say what happens";
    Stream other;
    Event event;
    cudaGraph_t graph = nullptr;
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(cudaEventRecord(event, stream));
    ASSERT_CUDA(cudaStreamWaitEvent(other, event, 0));
    ASSERT_CUDA(cudaStreamDestroy(stream));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    EXPECT_CUDA(cudaStreamIsCapturing(other, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    DeviceWords words(N); // which no capture forbids

    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(cudaEventRecord(event, other));
    ASSERT_CUDA(cudaStreamWaitEvent(stream, event, 0));
    ASSERT_CUDA(cudaStreamDestroy(stream));
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_CUDA(launch("fill", words.get(), N, 1, other));
}

TEST_F(CaptureTest, CapturesDoNotMerge) {
    Stream first, second;
    Event event;
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(cudaStreamBeginCapture(second, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(cudaEventRecord(event, first));
    EXPECT_CUDA_ERROR(cudaStreamWaitEvent(second, event, 0), cudaErrorStreamCaptureMerge);
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(second, &graph), cudaErrorStreamCaptureInvalidated);
}

// ---- graphs built by hand ------------------------------------------------------------------------------------------

struct Note {
    std::vector<int> *order;
    int number;
};

void note(void *data) {
    auto *own = static_cast<Note *>(data);
    own->order->push_back(own->number);
}

// A random graph of host functions: each runs once, after those it depends on.
TEST_F(GraphTest, NodesRunAfterThoseTheyDependOn) {
    std::mt19937 random(20254);
    constexpr int nodes = 30;
    std::vector<int> order;
    std::vector<Note> notes;
    for (int i = 0; i < nodes; i++)
        notes.push_back({&order, i});
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    std::vector<cudaGraphNode_t> handles(nodes);
    std::vector<std::pair<int, int>> edges;
    for (int i = 0; i < nodes; i++) {
        cudaHostNodeParams parameters{note, &notes[static_cast<size_t>(i)]};
        ASSERT_CUDA(cudaGraphAddHostNode(&handles[static_cast<size_t>(i)], graph, nullptr, 0, &parameters));
    }
    for (int i = 0; i < nodes; i++) {
        for (int j = 0; j < nodes; j++) {
            // Edges lead along (7 i mod 30), which is an order other than that of adding.
            if (i * 7 % nodes >= j * 7 % nodes || random() % 8 != 0) continue;
            ASSERT_CUDA(cudaGraphAddDependencies(graph, &handles[static_cast<size_t>(i)],
                                                 &handles[static_cast<size_t>(j)], nullptr, 1));
            edges.emplace_back(i, j);
        }
    }
    EXPECT_EQ(count_edges(graph), edges.size());
    Stream stream;
    for (int round = 0; round < 10; round++) {
        order.clear();
        run(graph, 1, stream);
        ASSERT_EQ(order.size(), static_cast<size_t>(nodes));
        std::vector<int> when(nodes);
        for (int i = 0; i < nodes; i++)
            when[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
        for (const auto &[before, after] : edges) {
            EXPECT_LT(when[static_cast<size_t>(before)], when[static_cast<size_t>(after)]);
        }
    }
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, CyclesAreRefused) {
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t nodes[2];
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    ASSERT_CUDA(cudaGraphAddEmptyNode(&nodes[0], graph, nullptr, 0));
    ASSERT_CUDA(cudaGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
    EXPECT_CUDA_ERROR(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], nullptr, 1), cudaErrorInvalidValue);
    ASSERT_CUDA(cudaGraphAddDependencies(graph, &nodes[1], &nodes[0], nullptr, 1));
    EXPECT_CUDA_ERROR(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
    ASSERT_CUDA(cudaGraphRemoveDependencies(graph, &nodes[1], &nodes[0], nullptr, 1));
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphDestroyNode(nodes[0]));
    EXPECT_EQ(count_nodes(graph), 1u);
    EXPECT_EQ(count_edges(graph), 0u);
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, CyclesInAChildGraphAreRefused) {
    cudaGraph_t graph = nullptr, child = nullptr;
    cudaGraphNode_t nodes[2], node = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    ASSERT_CUDA(cudaGraphCreate(&child, 0));
    ASSERT_CUDA(cudaGraphAddEmptyNode(&nodes[0], child, nullptr, 0));
    ASSERT_CUDA(cudaGraphAddEmptyNode(&nodes[1], child, &nodes[0], 1));
    ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    ASSERT_CUDA(cudaGraphAddDependencies(child, &nodes[1], &nodes[0], nullptr, 1));
    EXPECT_CUDA_ERROR(cudaGraphExecChildGraphNodeSetParams(exec, node, child), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    EXPECT_CUDA_ERROR(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaGraphDestroy(child));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

struct Inside {
    std::atomic<int> now{0}, most{0};
};

void stay_inside(void *data) {
    auto *own = static_cast<Inside *>(data);
    own->most = std::max(own->most.load(), ++own->now);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    own->now--;
}

TEST_F(GraphTest, LaunchesOfOneExecutableGraphDoNotOverlap) {
    Stream first, second;
    Inside inside;
    cudaHostNodeParams parameters{stay_inside, &inside};
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    ASSERT_CUDA(cudaGraphAddHostNode(&node, graph, nullptr, 0, &parameters));
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 4; i++) {
        ASSERT_CUDA(cudaGraphUpload(exec, first));
        ASSERT_CUDA(cudaGraphLaunch(exec, first));
        ASSERT_CUDA(cudaGraphLaunch(exec, second));
    }
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(inside.most, 1);
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, AllTypesOfNodes) {
    DeviceWords words(N), other(N);
    cudaGraph_t graph = nullptr, child = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    ASSERT_CUDA(cudaGraphCreate(&child, 0));
    cudaMemsetParams fill{};
    fill.dst = words.get();
    fill.value = 0x01020304;
    fill.elementSize = 4;
    fill.width = N;
    fill.height = 1;
    cudaGraphNode_t set = nullptr, copied = nullptr, nested = nullptr, empty = nullptr;
    ASSERT_CUDA(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
    add_kernel(child, {}, "mix", words.get(), 5);
    ASSERT_CUDA(cudaGraphAddChildGraphNode(&nested, graph, &set, 1, child));
    EXPECT_CUDA(cudaGraphDestroy(child)); // it was copied
    ASSERT_CUDA(cudaGraphAddEmptyNode(&empty, graph, &nested, 1));
    ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&copied, graph, &empty, 1, other.get(), words.get(), words.bytes(),
                                         cudaMemcpyDeviceToDevice));
    cudaGraphNode_t list[8];
    size_t count = 8;
    ASSERT_CUDA(cudaGraphGetRootNodes(graph, list, &count));
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(list[0], set);
    count = 8;
    ASSERT_CUDA(cudaGraphNodeGetDependentNodes(set, list, nullptr, &count));
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(list[0], nested);
    Stream stream;
    run(graph, 1, stream);
    EXPECT_EQ(other.read(), words_of(N, 0x01020304u * 3 + 5));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

// ---- executable graphs and their updates ---------------------------------------------------------------------------

TEST_F(GraphTest, ParametersOfAnExecutableGraphChange) {
    DeviceWords words(N);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = add_kernel(graph, {}, "mix", words.get(), 1);
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    Stream stream;
    ASSERT_CUDA(cudaGraphLaunch(exec, stream)); // 1
    cudaKernelNodeParams parameters;
    ASSERT_CUDA(cudaGraphKernelNodeGetParams(node, &parameters));
    EXPECT_EQ(parameters.gridDim.x, (N + 127) / 128);
    uint32_t value = 10;
    void *arguments[] = {parameters.kernelParams[0], parameters.kernelParams[1], &value};
    parameters.kernelParams = arguments;
    ASSERT_CUDA(cudaGraphExecKernelNodeSetParams(exec, node, &parameters));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream)); // 13; the launch before keeps its own
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(words.read(), words_of(N, 13));
    cudaMemsetParams fill{};
    fill.dst = words.get(), fill.elementSize = 1, fill.width = 4, fill.height = 1;
    EXPECT_CUDA_ERROR(cudaGraphExecMemsetNodeSetParams(exec, node, &fill), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
    EXPECT_CUDA_ERROR(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

TEST_F(GraphTest, UpdatesFromAnotherGraph) {
    DeviceWords words(N);
    cudaGraph_t first = nullptr, second = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraphExecUpdateResultInfo info;
    ASSERT_CUDA(cudaGraphCreate(&first, 0));
    ASSERT_CUDA(cudaGraphCreate(&second, 0));
    add_kernel(first, {add_kernel(first, {}, "fill", words.get(), 1)}, "mix", words.get(), 1);
    cudaGraphNode_t root = add_kernel(second, {}, "fill", words.get(), 2);
    ASSERT_CUDA(cudaGraphInstantiate(&exec, first, 0));
    EXPECT_CUDA_ERROR(cudaGraphExecUpdate(exec, second, &info), cudaErrorGraphExecUpdateFailure);
    EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
    add_kernel(second, {root}, "mix", words.get(), 3);
    ASSERT_CUDA(cudaGraphExecUpdate(exec, second, &info));
    EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
    Stream stream;
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(words.read(), words_of(N, 9));
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(first));
    EXPECT_CUDA(cudaGraphDestroy(second));
}

TEST_F(GraphTest, ClonesStandAlone) {
    DeviceWords words(N);
    cudaGraph_t graph = nullptr, clone = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = add_kernel(graph, {}, "fill", words.get(), 1), found = nullptr;
    ASSERT_CUDA(cudaGraphClone(&clone, graph));
    ASSERT_CUDA(cudaGraphNodeFindInClone(&found, node, clone));
    EXPECT_NE(found, node);
    EXPECT_CUDA(cudaGraphDestroy(graph));
    add_kernel(clone, {found}, "mix", words.get(), 4);
    Stream stream;
    run(clone, 1, stream);
    EXPECT_EQ(words.read(), words_of(N, 7));
    EXPECT_CUDA(cudaGraphDestroy(clone));
}

} // namespace
