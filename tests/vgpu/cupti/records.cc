#include "tests/vgpu/cupti/records.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "tests/vgpu/cupti/buffers.h"
#include "tests/vgpu/cupti/calls.h"
#include "tests/vgpu/cupti/external_ids.h"
#include "tests/vgpu/cupti/identifiers.h"
#include "tests/vgpu/cupti/kinds.h"
#include "tests/vgpu/cupti/memory_records.h"

namespace vgpu {
namespace {

std::atomic<bool> has_latency_timestamps{false};

// Names of kernels stay for good, as clients rely on.
const char *keep_name(const char *name) {
    static std::mutex mutex;
    static auto *const names = new std::set<std::string>;
    std::lock_guard lock(mutex);
    return names->insert(name).first->c_str();
}

uint8_t memory_kind(MemoryPlace place) {
    switch (place) {
    case MemoryPlace::pageable:
        return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    case MemoryPlace::pinned:
        return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case MemoryPlace::managed:
        return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    case MemoryPlace::variable:
        return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC;
    case MemoryPlace::device:
        break;
    }
    return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

bool is_host(MemoryPlace place) { return place == MemoryPlace::pageable || place == MemoryPlace::pinned; }

uint8_t copy_kind(const DeviceWork &work) {
    if (is_host(work.from)) return is_host(work.to) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOH : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    if (is_host(work.to)) return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    return work.from_device != work.to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_PTOP : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

// The fields that all records of a device's work have.
template <typename Record> Record record_of(CUpti_ActivityKind kind, const DeviceWork &work) {
    Record record{};
    record.kind = kind;
    record.start = work.begin, record.end = work.end;
    record.deviceId = static_cast<uint32_t>(work.device);
    record.contextId = context_id(work.device);
    record.streamId = static_cast<uint32_t>(work.stream);
    record.correlationId = work.correlation;
    record.graphId = work.graph;
    return record;
}

void record_kernel(CUpti_ActivityKind kind, const DeviceWork &work) {
    auto record = record_of<CUpti_ActivityKernel10>(kind, work);
    record.registersPerThread = static_cast<uint16_t>(work.registers);
    record.completed = work.end;
    record.gridX = int(work.grid[0]), record.gridY = int(work.grid[1]), record.gridZ = int(work.grid[2]);
    record.blockX = int(work.block[0]), record.blockY = int(work.block[1]), record.blockZ = int(work.block[2]);
    record.staticSharedMemory = static_cast<int32_t>(work.static_shared_bytes);
    record.dynamicSharedMemory = static_cast<int32_t>(work.dynamic_shared_bytes);
    record.sharedMemoryExecuted = static_cast<uint32_t>(work.static_shared_bytes + work.dynamic_shared_bytes);
    record.localMemoryPerThread = static_cast<uint32_t>(work.local_bytes);
    record.name = keep_name(work.name);
    record.graphNodeId = work.node;
    record.launchType =
        work.is_cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
    record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    record.queued = record.submitted = has_latency_timestamps ? work.issued : CUPTI_TIMESTAMP_UNKNOWN;
    put(record);
}

void record_copy(const DeviceWork &work) {
    auto record = record_of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, work);
    record.copyKind = copy_kind(work);
    record.srcKind = memory_kind(work.from), record.dstKind = memory_kind(work.to);
    record.flags = work.is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
    record.bytes = work.bytes;
    record.graphNodeId = work.node;
    record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    record.copyCount = 1;
    put(record);
}

void record_peer_copy(const DeviceWork &work) {
    auto record = record_of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, work);
    record.copyKind = copy_kind(work);
    record.srcKind = memory_kind(work.from), record.dstKind = memory_kind(work.to);
    record.flags = work.is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
    record.bytes = work.bytes;
    record.srcDeviceId = static_cast<uint32_t>(work.from_device), record.srcContextId = context_id(work.from_device);
    record.dstDeviceId = static_cast<uint32_t>(work.to_device), record.dstContextId = context_id(work.to_device);
    record.graphNodeId = work.node;
    record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    put(record);
}

void record_fill(const DeviceWork &work) {
    auto record = record_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, work);
    record.value = work.value;
    record.bytes = work.bytes;
    record.flags = work.is_async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
    record.memoryKind = memory_kind(work.to);
    record.graphNodeId = work.node;
    record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    put(record);
}

void record_graph(const DeviceWork &work) {
    auto record = record_of<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, work);
    record.endDeviceId = record.deviceId, record.endContextId = record.contextId;
    put(record);
}

// External ids come before the record of the call that they are for.
void record_external_ids(const ApiCall &call) {
    if (!kind_is_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
    for (const ExternalId &id : external_ids()) {
        CUpti_ActivityExternalCorrelation record{};
        record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        record.externalKind = id.kind;
        record.externalId = id.id;
        record.correlationId = call.correlation;
        put(record);
    }
}

void record_api(CUpti_ActivityKind kind, CUpti_CallbackId cbid, const ApiCall &call, uint64_t end) {
    CUpti_ActivityAPI record{};
    record.kind = kind;
    record.cbid = cbid;
    record.start = call.begin, record.end = end;
    record.processId = process_id(), record.threadId = thread_id();
    record.correlationId = call.correlation;
    record.returnValue = static_cast<uint32_t>(call.result);
    put(record);
}

void record_synchronization(const ApiCall &call, const Synchronization &what, uint64_t end) {
    uint64_t stream = 0;
    int device = vgpu_current_device();
    if (what.has_stream) vgpu_stream(what.stream, what.is_per_thread, &stream, &device);
    CUpti_ActivitySynchronization2 record{};
    record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.type = what.type;
    record.start = call.begin, record.end = end;
    record.correlationId = call.correlation;
    record.contextId = context_id(device);
    record.streamId =
        what.has_stream ? static_cast<uint32_t>(stream) : static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    // Handles are numbers: see the runtime's handles.h.
    record.cudaEventId = what.event != nullptr ? static_cast<uint32_t>(reinterpret_cast<uint64_t>(what.event) >> 4)
                                               : static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    record.returnValue = static_cast<uint32_t>(call.result);
    put(record);
}

CUpti_ActivityDevice5 device_record(int device, const char *name, const cudaDeviceProp &properties) {
    CUpti_ActivityDevice5 record{};
    record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    record.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
    record.globalMemorySize = properties.totalGlobalMem;
    record.constantMemorySize = static_cast<uint32_t>(properties.totalConstMem);
    record.l2CacheSize = static_cast<uint32_t>(properties.l2CacheSize);
    record.numThreadsPerWarp = static_cast<uint32_t>(properties.warpSize);
    record.numMemcpyEngines = static_cast<uint32_t>(properties.asyncEngineCount);
    record.numMultiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
    record.maxWarpsPerMultiprocessor =
        static_cast<uint32_t>(properties.maxThreadsPerMultiProcessor / properties.warpSize);
    record.maxBlocksPerMultiprocessor = static_cast<uint32_t>(properties.maxBlocksPerMultiProcessor);
    record.maxSharedMemoryPerMultiprocessor = static_cast<uint32_t>(properties.sharedMemPerMultiprocessor);
    record.maxRegistersPerMultiprocessor = static_cast<uint32_t>(properties.regsPerMultiprocessor);
    record.maxRegistersPerBlock = static_cast<uint32_t>(properties.regsPerBlock);
    record.maxSharedMemoryPerBlock = static_cast<uint32_t>(properties.sharedMemPerBlock);
    record.maxThreadsPerBlock = static_cast<uint32_t>(properties.maxThreadsPerBlock);
    record.maxBlockDimX = static_cast<uint32_t>(properties.maxThreadsDim[0]);
    record.maxBlockDimY = static_cast<uint32_t>(properties.maxThreadsDim[1]);
    record.maxBlockDimZ = static_cast<uint32_t>(properties.maxThreadsDim[2]);
    record.maxGridDimX = static_cast<uint32_t>(properties.maxGridSize[0]);
    record.maxGridDimY = static_cast<uint32_t>(properties.maxGridSize[1]);
    record.maxGridDimZ = static_cast<uint32_t>(properties.maxGridSize[2]);
    record.computeCapabilityMajor = static_cast<uint32_t>(properties.major);
    record.computeCapabilityMinor = static_cast<uint32_t>(properties.minor);
    record.id = static_cast<uint32_t>(device);
    record.eccEnabled = static_cast<uint32_t>(properties.ECCEnabled);
    std::copy_n(properties.uuid.bytes, sizeof record.uuid.bytes, record.uuid.bytes);
    record.name = name;
    record.isCudaVisible = 1;
    return record;
}

} // namespace

void record_work(const DeviceWork &work) {
    bool has_graph_records = kind_is_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    if (work.kind == DeviceWork::Kind::graph) {
        if (has_graph_records) record_graph(work);
        return;
    }
    if (work.graph != 0 && has_graph_records) return;
    switch (work.kind) {
    case DeviceWork::Kind::kernel:
        for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL}) {
            if (kind_is_on(kind)) record_kernel(kind, work);
        }
        break;
    case DeviceWork::Kind::copy:
        if (copy_kind(work) == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP) {
            if (kind_is_on(CUPTI_ACTIVITY_KIND_MEMCPY2)) record_peer_copy(work);
        } else if (kind_is_on(CUPTI_ACTIVITY_KIND_MEMCPY)) {
            record_copy(work);
        }
        break;
    case DeviceWork::Kind::fill:
        if (kind_is_on(CUPTI_ACTIVITY_KIND_MEMSET)) record_fill(work);
        break;
    case DeviceWork::Kind::graph:
        break;
    }
}

bool call_has_records(const ApiCall &call) {
    CUpti_CallbackId driver = driver_call(call);
    return (driver != CUPTI_DRIVER_TRACE_CBID_INVALID && driver_call_is_on(driver)) ||
           (kind_is_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) && synchronization_of(call).has_value()) ||
           call_has_memory_records(call);
}

bool call_has_work(const ApiCall &call) {
    return kind_is_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) && launched_name(call) != nullptr;
}

void record_call(const ApiCall &call, uint64_t end) {
    CUpti_CallbackId driver = driver_call(call);
    bool has_driver = driver != CUPTI_DRIVER_TRACE_CBID_INVALID && driver_call_is_on(driver);
    bool has_runtime = runtime_call_is_on(call.cbid);
    if (has_driver || has_runtime) record_external_ids(call);
    if (has_driver) record_api(CUPTI_ACTIVITY_KIND_DRIVER, driver, call, end);
    if (has_runtime) record_api(CUPTI_ACTIVITY_KIND_RUNTIME, call.cbid, call, end);
    if (kind_is_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
        if (auto what = synchronization_of(call)) record_synchronization(call, *what, end);
    }
    record_memory(call, end);
}

void record_overhead(CUpti_ActivityOverheadKind kind, uint64_t begin, uint64_t end) {
    if (!kind_is_on(CUPTI_ACTIVITY_KIND_OVERHEAD)) return;
    CUpti_ActivityOverhead3 record{};
    record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    record.overheadKind = kind;
    record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    record.objectId.pt.processId = process_id(), record.objectId.pt.threadId = thread_id();
    record.start = begin, record.end = end;
    put(record);
}

void record_devices() {
    for (int device = 0; device < vgpu_device_count(); device++) {
        cudaDeviceProp properties{};
        if (vgpu_device_properties(device, &properties))
            put(device_record(device, keep_name(properties.name), properties));
    }
}

void record_contexts() {
    for (int device = 0; device < vgpu_device_count(); device++) {
        cudaDeviceProp properties{};
        if (!vgpu_device_properties(device, &properties)) continue;
        CUpti_ActivityContext3 record{};
        record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
        record.contextId = context_id(device);
        record.deviceId = static_cast<uint32_t>(device);
        record.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
        record.numMultiprocessors = static_cast<uint16_t>(properties.multiProcessorCount);
        put(record);
    }
}

void set_latency_timestamps(bool is_on) { has_latency_timestamps = is_on; }

} // namespace vgpu
