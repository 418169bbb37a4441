// The rules of stream capture.
#include "tests/vgpu/runtime/capture.h"

#include <algorithm>
#include <set>

#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/graphs.h"
#include "tests/vgpu/runtime/resources.h"

namespace vgpu {
namespace {

struct Captures {
    std::mutex mutex;
    std::vector<CapturePtr> live; // begun and not ended
    uint64_t begun = 0;
};

Captures &captures() {
    static auto *const only = new Captures;
    return *only;
}

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

[[noreturn]] void invalidate(Capture &capture, cudaError_t error) {
    capture.is_invalid = true;
    fail(error);
}

// An action in the legacy default stream makes it wait for the blocking streams: not for one that is captured.
void forbid_implicit(const Stream &legacy) {
    for (const CapturePtr &capture : captures().live) {
        for (const StreamPtr &stream : capture->streams) {
            if (stream->is_blocking() && stream->device == legacy.device) {
                invalidate(*capture, cudaErrorStreamCaptureImplicit);
            }
        }
    }
}

bool is_forbidden_by(const Capture &capture) {
    if (thread_mode == cudaStreamCaptureModeRelaxed || capture.mode == cudaStreamCaptureModeRelaxed) return false;
    if (capture.thread == std::this_thread::get_id()) return true;
    return thread_mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
}

// Whether everything in the graph comes before what the origin would add next.
bool is_joined(const Capture &capture, size_t nodes_before) {
    std::set<const GraphNode *> seen;
    std::vector<const GraphNode *> left(capture.origin->capture_tips.begin(), capture.origin->capture_tips.end());
    while (!left.empty()) {
        const GraphNode *node = left.back();
        left.pop_back();
        if (!seen.insert(node).second) continue;
        left.insert(left.end(), node->dependencies.begin(), node->dependencies.end());
    }
    const auto &nodes = capture.graph->nodes;
    return std::all_of(nodes.begin() + static_cast<ptrdiff_t>(nodes_before), nodes.end(),
                       [&](const GraphNodePtr &node) { return seen.count(node.get()) > 0; });
}

void add_tips(Stream &stream, const std::vector<GraphNode *> &tips) {
    for (GraphNode *tip : tips) {
        auto &own = stream.capture_tips;
        if (std::find(own.begin(), own.end(), tip) == own.end()) own.push_back(tip);
    }
}

} // namespace

std::mutex &capture_mutex() { return captures().mutex; }

bool stream_is_capturing(const Stream &stream) {
    std::lock_guard lock(capture_mutex());
    return stream.capture != nullptr;
}

// The node that the work becomes; null: the stream is not captured.
static GraphNodePtr capture_node(Stream &stream, Work &work) {
    std::lock_guard lock(capture_mutex());
    if (stream.is_legacy) forbid_implicit(stream);
    if (stream.capture == nullptr) return nullptr;
    require(!stream.capture->is_invalid, cudaErrorStreamCaptureInvalidated);
    Graph &graph = *stream.capture->graph;
    if (is_observed()) graph_name(stream.capture->graph); // they are told of it
    stream.capture_tips = {graph_add(graph, std::move(work), stream.capture_tips)};
    return graph.nodes.back();
}

bool capture_submit(Stream &stream, Work &work) {
    GraphNodePtr node = capture_node(stream, work);
    if (node == nullptr) return false;
    tell_node(*node);
    return true;
}

void capture_begin(const StreamPtr &stream, cudaStreamCaptureMode mode, GraphPtr graph, std::vector<GraphNode *> tips) {
    std::lock_guard lock(capture_mutex());
    require(!stream->is_legacy, cudaErrorStreamCaptureUnsupported);
    require(stream->capture == nullptr, cudaErrorIllegalState);
    auto capture = std::make_shared<Capture>();
    capture->id = ++captures().begun;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.get();
    capture->streams = {stream};
    capture->graph = std::move(graph);
    capture->nodes_before = capture->graph->nodes.size();
    stream->capture = capture;
    stream->capture_tips = std::move(tips);
    captures().live.push_back(capture);
}

// Takes the capture away from all its streams. The mutex is held.
static void detach(const CapturePtr &capture) {
    auto &live = captures().live;
    live.erase(std::remove(live.begin(), live.end(), capture), live.end());
    for (const StreamPtr &joined : capture->streams) {
        joined->capture = nullptr;
        joined->capture_tips.clear();
    }
    capture->streams.clear();
    capture->is_ended = true;
}

GraphPtr capture_end(const StreamPtr &stream) {
    std::lock_guard lock(capture_mutex());
    CapturePtr capture = stream->capture;
    require(capture != nullptr, cudaErrorIllegalState);
    if (capture->origin != stream.get()) invalidate(*capture, cudaErrorStreamCaptureUnmatched);
    bool is_right_thread =
        capture->mode == cudaStreamCaptureModeRelaxed || capture->thread == std::this_thread::get_id();
    if (!is_right_thread) invalidate(*capture, cudaErrorStreamCaptureWrongThread);

    bool is_complete = is_joined(*capture, capture->nodes_before);
    detach(capture);
    GraphPtr graph = std::move(capture->graph);
    require(!capture->is_invalid, cudaErrorStreamCaptureInvalidated);
    require(is_complete, cudaErrorStreamCaptureUnjoined);
    return graph;
}

cudaStreamCaptureMode capture_exchange_mode(cudaStreamCaptureMode mode) {
    std::swap(mode, thread_mode);
    return mode;
}

void capture_forget(Stream &stream) {
    std::lock_guard lock(capture_mutex());
    CapturePtr capture = stream.capture;
    if (capture == nullptr) return;
    capture->is_invalid = true;
    if (capture->origin == &stream) {
        detach(capture);
        return;
    }
    auto &streams = capture->streams;
    streams.erase(std::remove(streams.begin(), streams.end(), stream.shared_from_this()), streams.end());
    stream.capture = nullptr;
    stream.capture_tips.clear();
}

void forbid_during_capture() {
    std::lock_guard lock(capture_mutex());
    bool is_forbidden = false;
    for (const CapturePtr &capture : captures().live) {
        if (!is_forbidden_by(*capture)) continue;
        capture->is_invalid = true;
        is_forbidden = true;
    }
    require(!is_forbidden, cudaErrorStreamCaptureUnsupported);
}

void forbid_on_capturing(Stream &stream) {
    std::lock_guard lock(capture_mutex());
    if (stream.is_legacy) forbid_implicit(stream);
    if (stream.capture != nullptr) invalidate(*stream.capture, cudaErrorStreamCaptureUnsupported);
}

void forbid_on_capturing_device(int device) {
    std::lock_guard lock(capture_mutex());
    for (const CapturePtr &capture : captures().live) {
        for (const StreamPtr &stream : capture->streams) {
            if (stream->device == device) invalidate(*capture, cudaErrorStreamCaptureUnsupported);
        }
    }
}

CapturedRecord capture_record(Stream &stream) {
    std::lock_guard lock(capture_mutex());
    if (stream.is_legacy) forbid_implicit(stream);
    if (stream.capture == nullptr) return {};
    require(!stream.capture->is_invalid, cudaErrorStreamCaptureInvalidated);
    return {stream.capture, stream.capture_tips};
}

bool capture_wait(Stream &stream, const CapturedRecord &record) {
    std::lock_guard lock(capture_mutex());
    if (record.capture == nullptr) {
        if (stream.capture != nullptr) invalidate(*stream.capture, cudaErrorStreamCaptureIsolation);
        if (stream.is_legacy) forbid_implicit(stream);
        return false;
    }
    require(!record.capture->is_ended, cudaErrorCapturedEvent);
    require(!record.capture->is_invalid, cudaErrorStreamCaptureInvalidated);
    if (stream.is_legacy) invalidate(*record.capture, cudaErrorStreamCaptureImplicit);
    if (stream.capture == nullptr) {
        stream.capture = record.capture;
        record.capture->streams.push_back(stream.shared_from_this());
    } else if (stream.capture != record.capture) {
        stream.capture->is_invalid = true;
        invalidate(*record.capture, cudaErrorStreamCaptureMerge);
    }
    add_tips(stream, record.tips);
    return true;
}

} // namespace vgpu
