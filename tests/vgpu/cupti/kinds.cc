#include "tests/vgpu/cupti/kinds.h"

#include <atomic>
#include <mutex>

#include "tests/vgpu/cupti/records.h"
#include "tests/vgpu/cupti/watcher.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {
namespace {

struct KindInfo {
    CUpti_ActivityKind kind;
    size_t bytes;
    bool has_device_times; // the cost model has to count
};

constexpr KindInfo KINDS[] = {
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6), true},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4), true},
    {CUPTI_ACTIVITY_KIND_KERNEL, sizeof(CUpti_ActivityKernel10), true},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI), false},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI), false},
    {CUPTI_ACTIVITY_KIND_DEVICE, sizeof(CUpti_ActivityDevice5), false},
    {CUPTI_ACTIVITY_KIND_CONTEXT, sizeof(CUpti_ActivityContext3), false},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10), true},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3), false},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4), true},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2), false},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation), false},
    {CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API, sizeof(CUpti_ActivityAPI), false}, // there is no such call here
    {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4), false},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, sizeof(CUpti_ActivityMemoryPool3), false},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2), true},
};

const KindInfo *find_kind(CUpti_ActivityKind kind) {
    for (const KindInfo &info : KINDS) {
        if (info.kind == kind) return &info;
    }
    return nullptr;
}

std::mutex mutex; // of changes
std::atomic<bool> is_on[CUPTI_ACTIVITY_KIND_COUNT];
std::atomic<bool> was_used{false};
std::atomic<bool> runtime_calls[CUPTI_RUNTIME_TRACE_CBID_SIZE], driver_calls[CUPTI_DRIVER_TRACE_CBID_SIZE];

void set_calls(CUpti_ActivityKind kind, bool is_enabled) {
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
        for (auto &call : runtime_calls)
            call = is_enabled;
    } else if (kind == CUPTI_ACTIVITY_KIND_DRIVER) {
        for (auto &call : driver_calls)
            call = is_enabled;
    }
}

void set_kind(const KindInfo &info, bool is_enabled) {
    set_calls(info.kind, is_enabled);
    if (is_on[info.kind].exchange(is_enabled) == is_enabled) return;
    if (info.has_device_times) vgpu_keep_time(is_enabled);
}

CUptiResult change_kind(CUpti_ActivityKind kind, bool is_enabled) {
    const KindInfo *info = find_kind(kind);
    if (info == nullptr) return CUPTI_ERROR_INVALID_KIND;
    std::lock_guard lock(mutex);
    // Kernels one after the other, or as they come: not both.
    bool is_kernel = kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    CUpti_ActivityKind other =
        kind == CUPTI_ACTIVITY_KIND_KERNEL ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL;
    if (is_enabled && is_kernel && is_on[other]) return CUPTI_ERROR_NOT_COMPATIBLE;
    watch();
    was_used = was_used || is_enabled;
    bool is_first = is_enabled && !is_on[kind];
    set_kind(*info, is_enabled);
    if (is_first && kind == CUPTI_ACTIVITY_KIND_DEVICE) record_devices();
    if (is_first && kind == CUPTI_ACTIVITY_KIND_CONTEXT) record_contexts();
    return CUPTI_SUCCESS;
}

} // namespace

bool kind_is_on(CUpti_ActivityKind kind) { return is_on[kind].load(std::memory_order_relaxed); }

bool kinds_were_used() { return was_used; }

bool runtime_call_is_on(CUpti_CallbackId cbid) { return runtime_calls[cbid].load(std::memory_order_relaxed); }

bool driver_call_is_on(CUpti_CallbackId cbid) { return driver_calls[cbid].load(std::memory_order_relaxed); }

size_t record_size(CUpti_ActivityKind kind) {
    const KindInfo *info = find_kind(kind);
    return info != nullptr ? info->bytes : 0;
}

void kinds_reset() {
    std::lock_guard lock(mutex);
    for (const KindInfo &info : KINDS)
        set_kind(info, false);
    was_used = false;
}

} // namespace vgpu

using namespace vgpu;

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return change_kind(kind, true); }

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return change_kind(kind, false); }

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
    if (cbid == CUPTI_RUNTIME_TRACE_CBID_INVALID || cbid >= CUPTI_RUNTIME_TRACE_CBID_SIZE) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    watch();
    was_used = was_used || enable != 0;
    runtime_calls[cbid] = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
    if (cbid == CUPTI_DRIVER_TRACE_CBID_INVALID || cbid >= CUPTI_DRIVER_TRACE_CBID_SIZE) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    watch();
    was_used = was_used || enable != 0;
    driver_calls[cbid] = enable != 0;
    return CUPTI_SUCCESS;
}
