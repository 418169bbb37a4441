// What a program has not given back when it ends, where VGPU_CHECK has leaks, as by default: a list on stderr, and
// exit status 99. After a fault the status is exit_status.h's affair.
//
// It runs when the loader takes the library down, after the destructors of the program's static objects, which may
// still free. A module's variables are not leaks; memory whose cudaFreeAsync() has not come to pass is none either.
// After a fault nothing can be freed any more, and nothing is reported.
#include <cinttypes>
#include <cstdio>
#include <unistd.h>

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/events.h"
#include "tests/vgpu/runtime/exit_status.h"
#include "tests/vgpu/runtime/graphs.h"
#include "tests/vgpu/runtime/runtime_memory.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

constexpr int LEAK_STATUS = 99;

// Returns how many there are.
size_t report_memory(MemoryKind kind, const char *what) {
    size_t count = 0;
    for (const Allocation &allocation : memory_live(kind)) {
        std::optional<AllocationNote> note = note_find(allocation.base);
        if (!note || note->is_being_freed) continue;
        count++;
        fprintf(stderr,
                "vgpu: ERROR: leak: %s at 0x%" PRIx64 ", %" PRIu64 " bytes, allocation %" PRIu64 ", device %d\n",
                note->is_registered ? "registered host memory" : what, allocation.base, allocation.size_bytes,
                allocation.number, allocation.device);
    }
    return count;
}

size_t report_objects(size_t count, const char *what) {
    if (count > 0) fprintf(stderr, "vgpu: ERROR: leak: %zu %s not destroyed\n", count, what);
    return count;
}

bool any_device_failed() {
    for (int i = 0; i < device_count(); i++) {
        if (device_at(i).fault != cudaSuccess) return true;
    }
    return false;
}

size_t report_leaks() {
    if (!engine_checks_leaks() || any_device_failed()) return 0;
    return report_memory(MemoryKind::device, "device memory") + report_memory(MemoryKind::pinned, "pinned memory") +
           report_memory(MemoryKind::managed, "managed memory") +
           report_objects(stream_handles().all().size(), "streams") +
           report_objects(event_handles().all().size(), "events") +
           report_objects(graph_handles().all().size(), "graphs") +
           report_objects(graph_exec_handles().all().size(), "executable graphs");
}

__attribute__((destructor)) void end_process() {
    streams_stop();
    int status = report_leaks() > 0 ? LEAK_STATUS : exit_replacement();
    if (status == 0) return;
    fflush(nullptr);
    _exit(status);
}

} // namespace
} // namespace vgpu
