// The API of stream capture.
#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/graphs.h"

namespace vgpu {
namespace {

void require_mode(cudaStreamCaptureMode mode) {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed);
}

std::vector<GraphNode *> find_nodes(const cudaGraphNode_t *handles, size_t count) {
    require(handles != nullptr || count == 0);
    std::vector<GraphNode *> nodes;
    for (size_t i = 0; i < count; i++) {
        nodes.push_back(graph_node_handles().find(handles[i], cudaErrorInvalidValue).get());
    }
    return nodes;
}

// What cudaStreamGetCaptureInfo() gives pointers to, until the thread's next such call.
struct CaptureInfo {
    std::vector<cudaGraphNode_t> dependencies;
    std::vector<cudaGraphEdgeData> edges;
};

CaptureInfo &capture_info() {
    thread_local CaptureInfo info;
    return info;
}

cudaStreamCaptureStatus capture_status(const Stream &stream) {
    if (stream.capture == nullptr) return cudaStreamCaptureStatusNone;
    return stream.capture->is_invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return api([&] {
        require_mode(mode);
        capture_begin(stream_find(stream), mode, std::make_shared<Graph>(), {});
    });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count, cudaStreamCaptureMode mode) {
    return api([&] {
        require_mode(mode);
        require(edges == nullptr, cudaErrorNotSupported);
        GraphPtr into = graph_handles().find(graph, cudaErrorInvalidValue);
        capture_begin(stream_find(stream), mode, into, find_nodes(dependencies, count));
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    return api([&] {
        require(graph != nullptr);
        *graph = nullptr;
        GraphPtr captured = capture_end(stream_find(stream));
        graph_name(captured);
        *graph = captured->handle;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    return api([&] {
        require(status != nullptr);
        StreamPtr found = stream_find(stream);
        std::lock_guard lock(capture_mutex());
        *status = capture_status(*found);
    });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    return api([&] {
        require(status != nullptr);
        StreamPtr found = stream_find(stream);
        std::lock_guard lock(capture_mutex());
        *status = capture_status(*found);
        if (*status != cudaStreamCaptureStatusActive) return;
        CaptureInfo &info = capture_info();
        info.dependencies.clear();
        for (const GraphNode *tip : found->capture_tips)
            info.dependencies.push_back(tip->handle);
        info.edges.assign(info.dependencies.size(), cudaGraphEdgeData{});
        graph_name(found->capture->graph);
        if (id != nullptr) *id = found->capture->id;
        if (graph != nullptr) *graph = found->capture->graph->handle;
        if (dependencies != nullptr) *dependencies = info.dependencies.data();
        if (edges != nullptr) *edges = info.edges.data();
        if (count != nullptr) *count = info.dependencies.size();
    });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *edges, size_t count, unsigned flags) {
    return api([&] {
        require(flags == cudaStreamAddCaptureDependencies || flags == cudaStreamSetCaptureDependencies);
        require(edges == nullptr, cudaErrorNotSupported);
        StreamPtr found = stream_find(stream);
        std::vector<GraphNode *> nodes = find_nodes(dependencies, count);
        std::lock_guard lock(capture_mutex());
        require(found->capture != nullptr, cudaErrorIllegalState);
        require(!found->capture->is_invalid, cudaErrorStreamCaptureInvalidated);
        for (const GraphNode *node : nodes)
            require(node->graph == found->capture->graph.get());
        if (flags == cudaStreamSetCaptureDependencies) found->capture_tips.clear();
        found->capture_tips.insert(found->capture_tips.end(), nodes.begin(), nodes.end());
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    return api([&] {
        require(mode != nullptr);
        require_mode(*mode);
        *mode = capture_exchange_mode(*mode);
    });
}
