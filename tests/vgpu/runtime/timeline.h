// When things happen on the devices: the cost model. It counts while someone wants it (vgpu_keep_time()), or always;
// else operations take the time that they take, and have no other.
//
// An operation of a stream begins when the one before it and those that it waits for have ended, and work of a device
// no sooner than a latency after the call that issued it. Then, in ns:
//
//   kernel          KERNEL + BLOCK x blocks + INSTRUCTION x thread-instructions executed + what observing it costs
//   copy, fill      COPY + bytes / BANDWIDTH, rounded up
//   host function   as long as it takes
//   graph           its nodes, one after the other, after one latency
//   all else        nothing
//
// For the host an operation is done no sooner than it has ended by the model. Where the processor takes longer to do
// it, that is later; the model's times are not touched by it.
//
//   VGPU_COST_LATENCY=5000    VGPU_COST_KERNEL=2000       VGPU_COST_BLOCK=100
//   VGPU_COST_INSTRUCTION=5   VGPU_COST_COPY=3000         VGPU_COST_BANDWIDTH=10 (bytes per ns, GB/s)
//   VGPU_COST_ALWAYS=1        count from the start of the process
#ifndef SHOAL_TESTS_VGPU_RUNTIME_TIMELINE_H
#define SHOAL_TESTS_VGPU_RUNTIME_TIMELINE_H

#include <vector>

#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

struct Copy;
struct Fill;
struct Launch;
struct Operation;

// What an operation knows of the model.
struct Timing {
    bool is_kept = false;     // whether it counts for this operation
    uint32_t correlation = 0; // of the call that issued it
    uint64_t issued = 0;
    uint64_t ended = 0;
    uint32_t clock = 0; // which clock these are of: vgpu_set_clock() begins the next one
};

// At the operation's submission.
Timing timing_issue();
// `later` - `earlier`, where both have times, by one clock.
bool timing_difference_ns(const Timing &earlier, const Timing &later, int64_t *difference);

// An operation that the calling thread runs: from its construction until end(). Work that is done meanwhile takes its
// place in it.
class TimedOperation {
  public:
    // `before`: what has ended before it may begin.
    TimedOperation(const Operation &operation, const std::vector<Timing> &before);
    ~TimedOperation();
    TimedOperation(const TimedOperation &) = delete;
    TimedOperation &operator=(const TimedOperation &) = delete;

    // Waits until it has ended by the model, tells the observers of its work and returns its times.
    Timing end();

    // The calling thread's; null: none, or one that does not count.
    static TimedOperation *current();

    // A launch of an executable graph, whose nodes are the work until it is finished.
    void begin_graph(uint32_t graph);
    void set_node(uint64_t node) { node_ = node; }
    void finish_graph();
    bool is_in_graph() const { return graph_ != 0; }

    // Work begins; its kind and what it is were filled in.
    void begin(DeviceWork &work);
    void finish(DeviceWork &work, uint64_t duration_ns);
    void host_function_ended();

  private:
    void place(DeviceWork &work) const;

    Timing timing_;
    int device_;
    uint64_t stream_;
    uint64_t now_; // up to where the stream's time has come
    uint32_t graph_ = 0;
    uint64_t node_ = 0, graph_begin_ = 0;
    std::vector<DeviceWork> done_;
    TimedOperation *outer_;
};

uint64_t kernel_duration_ns(uint64_t blocks, uint64_t instructions);
uint64_t copy_duration_ns(uint64_t bytes);
// Reads the settings, and no more.
void timeline_check_settings();

} // namespace vgpu

#endif
