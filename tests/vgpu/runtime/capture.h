// Capturing streams into graphs: what is submitted becomes a node, and events carry dependencies between streams.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_CAPTURE_H
#define SHOAL_TESTS_VGPU_RUNTIME_CAPTURE_H

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/streams.h"
#include "tests/vgpu/runtime/work.h"

namespace vgpu {

// One capture sequence, with the streams that have joined it.
struct Capture {
    uint64_t id = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread; // that began it
    Stream *origin = nullptr;
    std::vector<StreamPtr> streams; // the origin too
    std::shared_ptr<Graph> graph;
    size_t nodes_before = 0; // that the graph had
    bool is_invalid = false, is_ended = false;
};
using CapturePtr = std::shared_ptr<Capture>;

// What an event that was recorded in a capturing stream stands for.
struct CapturedRecord {
    CapturePtr capture; // null: it was recorded in a stream as usual
    std::vector<GraphNode *> tips;
};

// Guards all captures, and the capture fields of streams and events.
std::mutex &capture_mutex();

bool stream_is_capturing(const Stream &stream);
// Makes the work a node where the stream is captured and returns whether it is. Throws where the work is in the legacy
// default stream and would have to wait for a stream that is captured.
bool capture_submit(Stream &stream, Work &work);

void capture_begin(const StreamPtr &stream, cudaStreamCaptureMode mode, std::shared_ptr<Graph> graph,
                   std::vector<GraphNode *> tips);
// The graph. Throws, and there is none, where the capture is not complete or was invalidated.
std::shared_ptr<Graph> capture_end(const StreamPtr &stream);
// Sets the mode of the calling thread for forbid_during_capture() and returns the one before.
cudaStreamCaptureMode capture_exchange_mode(cudaStreamCaptureMode mode);
// The stream goes: the capture that it is in becomes invalid, and ends where the stream is its origin.
void capture_forget(Stream &stream);

// Calls that are not allowed while a stream is captured, such as cudaMalloc(). What the calling thread's mode forbids
// invalidates the captures that it would harm and throws cudaErrorStreamCaptureUnsupported.
void forbid_during_capture();
// Waiting for a stream or asking for its state: never while it is captured.
void forbid_on_capturing(Stream &stream);
// Waiting for a whole device: not while one of its streams is captured.
void forbid_on_capturing_device(int device);

// The capture's part of cudaEventRecord(): the record, whose capture is null where `stream` is not captured.
CapturedRecord capture_record(Stream &stream);
// The capture's part of cudaStreamWaitEvent(). True: it was all; false: neither side is captured.
bool capture_wait(Stream &stream, const CapturedRecord &record);

} // namespace vgpu

#endif
