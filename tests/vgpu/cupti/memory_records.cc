#include "tests/vgpu/cupti/memory_records.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <generated_cuda_runtime_api_meta.h>

#include "tests/vgpu/cupti/buffers.h"
#include "tests/vgpu/cupti/identifiers.h"
#include "tests/vgpu/cupti/kinds.h"

namespace vgpu {
namespace {

// What a call did with memory.
struct MemoryChange {
    bool is_release = false, is_async = false, is_per_thread = false;
    CUpti_ActivityMemoryKind kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    uint64_t address = 0, bytes = 0;
    uint64_t pool = 0; // that was named; 0: none
    cudaStream_t stream = nullptr;
};

template <typename Parameters> const Parameters &parameters_of(const ApiCall &call) {
    return *static_cast<const Parameters *>(call.parameters);
}

uint64_t number(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

MemoryChange allocation(CUpti_ActivityMemoryKind kind, void *const *pointer, size_t bytes) {
    MemoryChange change;
    change.kind = kind;
    change.address = number(*pointer), change.bytes = bytes;
    return change;
}

MemoryChange release(const void *pointer) {
    MemoryChange change;
    change.is_release = true;
    change.address = number(pointer);
    return change;
}

MemoryChange from_pool(MemoryChange change, cudaMemPool_t pool) {
    change.pool = number(pool);
    return change;
}

MemoryChange in_stream(MemoryChange change, cudaStream_t stream, bool is_per_thread) {
    change.is_async = true;
    change.stream = stream, change.is_per_thread = is_per_thread;
    return change;
}

// How a call's change is read, once it has ended well: its parameters point to what it set.
struct Reader {
    uint32_t cbid;
    MemoryChange (*read)(const ApiCall &);
};

#define READER(name, expression)                                     \
    {                                                                \
        CUPTI_RUNTIME_TRACE_CBID_##name, [](const ApiCall &call) {   \
            const auto &values = parameters_of<name##_params>(call); \
            return expression;                                       \
        }                                                            \
    }
constexpr auto DEVICE = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, PINNED = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
constexpr Reader READERS[] = {
    READER(cudaMalloc_v3020, allocation(DEVICE, values.devPtr, values.size)),
    READER(cudaMallocPitch_v3020, allocation(DEVICE, values.devPtr, *values.pitch *values.height)),
    READER(cudaMallocManaged_v6000, allocation(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, values.devPtr, values.size)),
    READER(cudaMallocHost_v3020, allocation(PINNED, values.ptr, values.size)),
    READER(cudaHostAlloc_v3020, allocation(PINNED, values.pHost, values.size)),
    READER(cudaMallocAsync_v11020, in_stream(allocation(DEVICE, values.devPtr, values.size), values.hStream, false)),
    READER(cudaMallocAsync_ptsz_v11020,
           in_stream(allocation(DEVICE, values.devPtr, values.size), values.hStream, true)),
    READER(cudaMallocFromPoolAsync_v11020,
           from_pool(in_stream(allocation(DEVICE, values.ptr, values.size), values.stream, false), values.memPool)),
    READER(cudaMallocFromPoolAsync_ptsz_v11020,
           from_pool(in_stream(allocation(DEVICE, values.ptr, values.size), values.stream, true), values.memPool)),
    READER(cudaFree_v3020, release(values.devPtr)),
    READER(cudaFreeHost_v3020, release(values.ptr)),
    READER(cudaFreeAsync_v11020, in_stream(release(values.devPtr), values.hStream, false)),
    READER(cudaFreeAsync_ptsz_v11020, in_stream(release(values.devPtr), values.hStream, true)),
};

const Reader *find_reader(uint32_t cbid) {
    for (const Reader &reader : READERS) {
        if (reader.cbid == cbid) return &reader;
    }
    return nullptr;
}

// A pool's bytes in use, and those that it keeps: the most that were in use, until it is trimmed.
struct Pool {
    uint64_t used = 0, size = 0;
};

// Memory that was allocated while it was recorded: a release says how much, and of what kind.
struct Live {
    std::mutex mutex;
    std::map<uint64_t, MemoryChange> by_address;
    std::map<uint64_t, Pool> pools;
};

Live &live() {
    static auto *const only = new Live;
    return *only;
}

void keep(MemoryChange &change) {
    std::lock_guard lock(live().mutex);
    auto &all = live().by_address;
    if (!change.is_release) {
        all[change.address] = change;
        Pool &pool = live().pools[change.pool];
        pool.used += change.bytes;
        pool.size = std::max(pool.size, pool.used);
        return;
    }
    auto found = all.find(change.address);
    if (found == all.end()) return;
    change.kind = found->second.kind, change.bytes = found->second.bytes;
    live().pools[found->second.pool].used -= change.bytes;
    all.erase(found);
}

void put_memory(const ApiCall &call, const MemoryChange &change, uint64_t time) {
    uint64_t stream = 0;
    int device = vgpu_current_device();
    if (change.is_async) vgpu_stream(change.stream, change.is_per_thread, &stream, &device);
    CUpti_ActivityMemory4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    record.memoryOperationType = change.is_release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                                   : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    record.memoryKind = change.kind;
    record.correlationId = call.correlation;
    record.address = change.address, record.bytes = change.bytes;
    record.timestamp = time;
    record.processId = process_id();
    record.deviceId = static_cast<uint32_t>(device), record.contextId = context_id(device);
    record.streamId = change.is_async ? static_cast<uint32_t>(stream) : CUPTI_INVALID_STREAM_ID;
    record.isAsync = change.is_async ? 1 : 0;
    put(record);
}

std::optional<CUpti_ActivityMemoryPool3> pool_change(const ApiCall &call) {
    CUpti_ActivityMemoryPool3 record{};
    switch (call.cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020:
        record.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED;
        record.address = number(*parameters_of<cudaMemPoolCreate_v11020_params>(call).memPool);
        record.deviceId =
            static_cast<uint32_t>(parameters_of<cudaMemPoolCreate_v11020_params>(call).poolProps->location.id);
        return record;
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020:
        record.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED;
        record.address = number(parameters_of<cudaMemPoolDestroy_v11020_params>(call).memPool);
        return record;
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020:
        record.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED;
        record.address = number(parameters_of<cudaMemPoolTrimTo_v11020_params>(call).memPool);
        record.minBytesToKeep = parameters_of<cudaMemPoolTrimTo_v11020_params>(call).minBytesToKeep;
        return record;
    default:
        return std::nullopt;
    }
}

void follow_pool(CUpti_ActivityMemoryPool3 &record) {
    std::lock_guard lock(live().mutex);
    Pool &pool = live().pools[record.address];
    if (record.memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED)
        pool.size = std::max(pool.used, std::min<uint64_t>(pool.size, record.minBytesToKeep));
    record.size = pool.size, record.utilizedSize = pool.used;
    if (record.memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED)
        live().pools.erase(record.address);
}

bool is_pool_call(uint32_t cbid) {
    return cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020 ||
           cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020 ||
           cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020;
}

} // namespace

bool call_has_memory_records(const ApiCall &call) {
    return (kind_is_on(CUPTI_ACTIVITY_KIND_MEMORY2) && find_reader(call.cbid) != nullptr) ||
           (kind_is_on(CUPTI_ACTIVITY_KIND_MEMORY_POOL) && is_pool_call(call.cbid));
}

void record_memory(const ApiCall &call, uint64_t end) {
    if (call.result != cudaSuccess || !call_has_memory_records(call)) return;
    if (const Reader *reader = find_reader(call.cbid)) {
        MemoryChange change = reader->read(call);
        if (change.address == 0) return; // nothing was asked for, or given back
        keep(change);
        put_memory(call, change, end);
    } else if (auto pool = pool_change(call)) {
        follow_pool(*pool);
        pool->kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
        pool->memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
        pool->correlationId = call.correlation;
        pool->processId = process_id();
        pool->timestamp = end;
        put(*pool);
    }
}

} // namespace vgpu
