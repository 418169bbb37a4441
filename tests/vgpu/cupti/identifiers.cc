// Versions, results, and the numbers of threads, contexts, streams and graphs.
#include "tests/vgpu/cupti/identifiers.h"

#include <atomic>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/vgpu/runtime/observer.h"

namespace vgpu {
namespace {

std::atomic<CUpti_ActivityThreadIdType> thread_id_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};

// Addresses that nothing reads: they are the contexts' handles.
char contexts[CONTEXTS];

int device_of(CUcontext context) {
    auto address = reinterpret_cast<uintptr_t>(context), first = reinterpret_cast<uintptr_t>(contexts);
    return address >= first && address < first + CONTEXTS ? static_cast<int>(address - first) : -1;
}

} // namespace

CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(contexts + device); }

uint32_t thread_id() {
    if (thread_id_type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) return static_cast<uint32_t>(syscall(SYS_gettid));
    return static_cast<uint32_t>(pthread_self());
}

uint32_t process_id() { return static_cast<uint32_t>(getpid()); }

} // namespace vgpu

using namespace vgpu;

CUptiResult cuptiGetVersion(uint32_t *version) {
    if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = vgpu_now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
    if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT && type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
        return CUPTI_ERROR_NOT_SUPPORTED;
    }
    thread_id_type = type;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type) {
    if (type == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *type = thread_id_type;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *device) {
    if (device == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    int found = context == nullptr ? vgpu_current_device() : device_of(context);
    if (found < 0) return CUPTI_ERROR_INVALID_CONTEXT;
    *device = static_cast<uint32_t>(found);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id) {
    if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    int device = device_of(context);
    if (device < 0) return CUPTI_ERROR_INVALID_CONTEXT;
    *id = context_id(device);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t is_per_thread, uint32_t *id) {
    if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    uint64_t number = 0;
    int device = 0;
    if (!vgpu_stream(stream, is_per_thread != 0, &number, &device)) return CUPTI_ERROR_INVALID_STREAM;
    if (context != nullptr && device_of(context) != device) return CUPTI_ERROR_INVALID_CONTEXT;
    *id = static_cast<uint32_t>(number);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id) {
    return cuptiGetStreamIdEx(context, stream, 0, id);
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id) {
    return id != nullptr && vgpu_graph_node(node, id) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id) {
    return id != nullptr && vgpu_graph(graph, id) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t *id) {
    return id != nullptr && vgpu_graph_exec(exec, id) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
