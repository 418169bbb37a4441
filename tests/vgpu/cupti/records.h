// Records of what the runtime tells.
#ifndef SHOAL_TESTS_VGPU_CUPTI_RECORDS_H
#define SHOAL_TESTS_VGPU_CUPTI_RECORDS_H

#include "tests/vgpu/cupti/cupti_headers.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

void record_work(const DeviceWork &work);
// A call that ended at `end`: what is enabled of its own records, and of those that stand for what it did.
void record_call(const ApiCall &call, uint64_t end);
// Whether a call will have records of a kind that is on, its own as the runtime's apart.
bool call_has_records(const ApiCall &call);
// Whether it launches a kernel that is recorded.
bool call_has_work(const ApiCall &call);
void record_overhead(CUpti_ActivityOverheadKind kind, uint64_t begin, uint64_t end);
void record_devices();
void record_contexts();
// Queued and submitted times of kernels: cuptiActivityEnableLatencyTimestamps().
void set_latency_timestamps(bool is_on);

} // namespace vgpu

#endif
