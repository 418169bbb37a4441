// The settings of activities, and what is not here: it says so, by the real one's codes.
#include <cstring>
#include <mutex>

#include "tests/vgpu/cupti/buffers.h"
#include "tests/vgpu/cupti/kinds.h"
#include "tests/vgpu/cupti/records.h"
#include "tests/vgpu/cupti/subscriber.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {
namespace {

// Attributes are kept, with the real one's initial values; nothing here depends on them.
struct Attribute {
    CUpti_ActivityAttribute attribute;
    size_t bytes;
    uint64_t value;
};

std::mutex mutex;
Attribute attributes[] = {
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, sizeof(size_t), 3200000},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, sizeof(size_t), 25000},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof(uint8_t), 1},
    {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof(uint8_t), 0},
};

template <typename Access>
CUptiResult access_attribute(CUpti_ActivityAttribute wanted, const size_t *bytes, const void *value, Access &&access) {
    if (bytes == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard lock(mutex);
    for (Attribute &found : attributes) {
        if (found.attribute != wanted) continue;
        if (*bytes < found.bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
        access(found);
        return CUPTI_SUCCESS;
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes, void *value) {
    return access_attribute(attribute, bytes, value,
                            [&](Attribute &found) { memcpy(&found.value, value, found.bytes); });
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes, void *value) {
    return access_attribute(attribute, bytes, value, [&](const Attribute &found) {
        memcpy(value, &found.value, found.bytes);
        *bytes = found.bytes;
    });
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
    if (callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (kinds_were_used()) return CUPTI_ERROR_INVALID_OPERATION;
    vgpu_set_clock(callback);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
    set_latency_timestamps(enable != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize(void) {
    kinds_reset();
    subscriber_reset();
    flush_buffers(true);
    vgpu_set_clock(nullptr);
    return CUPTI_SUCCESS;
}

// ---- what is not here ----------------------------------------------------------------------------------------------

CUptiResult cuptiActivityEnableContext(CUcontext, CUpti_ActivityKind) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiActivityDisableContext(CUcontext, CUpti_ActivityKind) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiActivityEnableHWTrace(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; } // Blackwell has it
CUptiResult cuptiActivityEnableDeviceGraph(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiActivityEnableLaunchAttributes(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiActivityEnableAllocationSource(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
