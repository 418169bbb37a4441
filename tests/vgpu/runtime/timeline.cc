// The cost model's settings, its clock and the operations that it counts for.
#include "tests/vgpu/runtime/timeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "tests/vgpu/exec/report.h"
#include "tests/vgpu/runtime/observers.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

constexpr uint64_t SECOND_NS = 1'000'000'000;

struct Costs {
    uint64_t latency = number_setting("VGPU_COST_LATENCY", 5000, 0, SECOND_NS);
    uint64_t kernel = number_setting("VGPU_COST_KERNEL", 2000, 0, SECOND_NS);
    uint64_t block = number_setting("VGPU_COST_BLOCK", 100, 0, SECOND_NS);
    uint64_t instruction = number_setting("VGPU_COST_INSTRUCTION", 5, 0, SECOND_NS);
    uint64_t copy = number_setting("VGPU_COST_COPY", 3000, 0, SECOND_NS);
    uint64_t bandwidth = number_setting("VGPU_COST_BANDWIDTH", 10, 1, SECOND_NS);
    bool is_always = number_setting("VGPU_COST_ALWAYS", 0, 0, 1) != 0;
};

const Costs &costs() {
    static const Costs only;
    return only;
}

uint64_t real_time() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return uint64_t(now.tv_sec) * SECOND_NS + uint64_t(now.tv_nsec);
}

struct Clock {
    std::atomic<uint64_t (*)()> read{real_time};
    std::atomic<uint32_t> number{1};
    std::atomic<int> wanted{costs().is_always ? 1 : 0};
};

Clock &the_clock() {
    static Clock only;
    return only;
}

thread_local TimedOperation *current_operation = nullptr;

// Until the clock says so. One that stands still ends it all the same.
void wait_until(uint64_t time) {
    uint64_t now = vgpu_now();
    if (now >= time) return;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(2 * (time - now) + 1'000'000);
    do {
        std::this_thread::sleep_for(std::chrono::nanoseconds(time - now));
        now = vgpu_now();
    } while (now < time && std::chrono::steady_clock::now() < deadline);
}

uint64_t observing_cost_ns() {
    uint64_t cost = 0;
    tell_observers([&](const Observer &observer) { cost += observer.kernel_cost_ns(); });
    return cost;
}

} // namespace

Timing timing_issue() {
    Timing timing;
    timing.correlation = vgpu_correlation();
    timing.is_kept = the_clock().wanted.load(std::memory_order_relaxed) > 0;
    if (!timing.is_kept) return timing;
    timing.clock = the_clock().number;
    timing.issued = vgpu_now();
    return timing;
}

bool timing_difference_ns(const Timing &earlier, const Timing &later, int64_t *difference) {
    if (!earlier.is_kept || !later.is_kept || earlier.clock != later.clock) return false;
    *difference = int64_t(later.ended) - int64_t(earlier.ended);
    return true;
}

TimedOperation::TimedOperation(const Operation &operation, const std::vector<Timing> &before)
    : timing_(operation.timing), device_(operation.stream->device), stream_(operation.stream->id), now_(timing_.issued),
      outer_(current_operation) {
    for (const Timing &earlier : before) {
        if (earlier.is_kept && earlier.clock == timing_.clock) now_ = std::max(now_, earlier.ended);
    }
    current_operation = this;
}

TimedOperation::~TimedOperation() { current_operation = outer_; }

TimedOperation *TimedOperation::current() {
    return current_operation != nullptr && current_operation->timing_.is_kept ? current_operation : nullptr;
}

Timing TimedOperation::end() {
    if (!timing_.is_kept) return timing_;
    timing_.ended = now_;
    if (timing_.clock == the_clock().number) wait_until(now_);
    for (const DeviceWork &work : done_)
        tell_observers([&](Observer &observer) { observer.ended(work); });
    return timing_;
}

void TimedOperation::place(DeviceWork &work) const {
    work.device = device_, work.stream = stream_;
    work.correlation = timing_.correlation;
    work.graph = graph_, work.node = node_;
    work.issued = timing_.issued, work.begin = now_;
}

void TimedOperation::begin(DeviceWork &work) {
    now_ = std::max(now_, timing_.issued + costs().latency);
    place(work);
    tell_observers([&](Observer &observer) { observer.begun(work); });
}

void TimedOperation::finish(DeviceWork &work, uint64_t duration_ns) {
    if (work.kind == DeviceWork::Kind::kernel) duration_ns += observing_cost_ns();
    now_ = work.end = work.begin + duration_ns;
    done_.push_back(work);
}

void TimedOperation::begin_graph(uint32_t graph) {
    now_ = graph_begin_ = std::max(now_, timing_.issued + costs().latency);
    graph_ = graph;
}

void TimedOperation::finish_graph() {
    DeviceWork work;
    work.kind = DeviceWork::Kind::graph;
    node_ = 0;
    place(work);
    work.begin = graph_begin_, work.end = now_;
    done_.push_back(work);
    graph_ = 0;
}

void TimedOperation::host_function_ended() { now_ = std::max(now_, vgpu_now()); }

uint64_t kernel_duration_ns(uint64_t blocks, uint64_t instructions) {
    return costs().kernel + costs().block * blocks + costs().instruction * instructions;
}

uint64_t copy_duration_ns(uint64_t bytes) { return costs().copy + (bytes + costs().bandwidth - 1) / costs().bandwidth; }

void timeline_check_settings() { costs(); }

} // namespace vgpu

using namespace vgpu;

void vgpu_keep_time(bool is_wanted) { the_clock().wanted += is_wanted ? 1 : -1; }

void vgpu_set_clock(uint64_t (*clock)()) {
    the_clock().read = clock != nullptr ? clock : real_time;
    the_clock().number++;
}

uint64_t vgpu_now() { return the_clock().read.load(std::memory_order_relaxed)(); }
