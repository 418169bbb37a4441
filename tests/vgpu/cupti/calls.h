// What calls of the runtime are, by their ids and parameters.
#ifndef SHOAL_TESTS_VGPU_CUPTI_CALLS_H
#define SHOAL_TESTS_VGPU_CUPTI_CALLS_H

#include <optional>

#include "tests/vgpu/cupti/cupti_headers.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

struct Synchronization {
    CUpti_ActivitySynchronizationType type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN;
    bool has_stream = false, is_per_thread = false;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
};

std::optional<Synchronization> synchronization_of(const ApiCall &call);

// The function of the driver that the real runtime calls; CUPTI_DRIVER_TRACE_CBID_INVALID: none that is known here.
CUpti_CallbackId driver_call(const ApiCall &call);

// The kernel that the call launches; null: it launches none.
const char *launched_name(const ApiCall &call);

} // namespace vgpu

#endif
