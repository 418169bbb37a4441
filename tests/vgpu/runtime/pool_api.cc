// Memory pools: allocation in the order of a stream.
#include <algorithm>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/runtime_memory.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

struct Pools {
    std::mutex mutex;
    PoolPtr defaults[MAX_DEVICES], current[MAX_DEVICES];
};

Pools &pools() {
    static auto *const only = new Pools;
    return *only;
}

PoolPtr make_pool(int device) {
    auto pool = std::make_shared<Pool>();
    pool->device = device;
    pool->handle = pool_handles().add(pool);
    return pool;
}

PoolPtr current_pool(int device) {
    PoolPtr own = pool_default(device);
    std::lock_guard lock(pools().mutex);
    return pools().current[device] != nullptr ? pools().current[device] : own;
}

// Where the device is full, what is waiting to be freed is freed first.
uint64_t allocate_from(Pool &pool, size_t bytes) {
    uint64_t base = memory_alloc(pool.device, bytes, MemoryKind::device);
    if (base != 0) return base;
    device_synchronize(pool.device);
    return memory_alloc(pool.device, bytes, MemoryKind::device);
}

// false: it would be more than the pool may have.
bool account(Pool &pool, uint64_t bytes) {
    std::lock_guard lock(pool.mutex);
    if (pool.most_bytes != 0 && pool.used_bytes + bytes > pool.most_bytes) return false;
    pool.used_bytes += bytes;
    pool.used_high_bytes = std::max(pool.used_high_bytes, pool.used_bytes);
    pool.reserved_bytes = std::max(pool.reserved_bytes, pool.used_bytes);
    pool.reserved_high_bytes = std::max(pool.reserved_high_bytes, pool.reserved_bytes);
    return true;
}

// The address is there at once; who uses it in another stream has to wait for `handle` as for any other operation.
void *allocate(const PoolPtr &pool, size_t bytes, cudaStream_t handle) {
    StreamPtr stream = stream_find(handle);
    require(!stream_is_capturing(*stream), cudaErrorNotSupported);
    if (bytes == 0) return nullptr;
    submit(*stream, Empty{}); // first, because a capture may forbid it
    uint64_t base = allocate_from(*pool, bytes);
    require(base != 0, cudaErrorMemoryAllocation);
    if (!account(*pool, bytes)) {
        memory_free(base);
        fail(cudaErrorMemoryAllocation);
    }
    AllocationNote note;
    note.pool = pool;
    note_add(base, note);
    std::lock_guard lock(pool->mutex);
    if (pool->devices != 0) memory_share(base, pool->devices);
    return reinterpret_cast<void *>(base);
}

void trim(Pool &pool, uint64_t keep_bytes) {
    std::lock_guard lock(pool.mutex);
    pool.reserved_bytes = std::min(pool.reserved_bytes, std::max(pool.used_bytes, keep_bytes));
}

// The four that are figures of 64 bits and can be set only to zero; null: not one of them.
uint64_t *figure(Pool &pool, cudaMemPoolAttr attribute) {
    switch (attribute) {
    case cudaMemPoolAttrReservedMemCurrent:
        return &pool.reserved_bytes;
    case cudaMemPoolAttrReservedMemHigh:
        return &pool.reserved_high_bytes;
    case cudaMemPoolAttrUsedMemCurrent:
        return &pool.used_bytes;
    case cudaMemPoolAttrUsedMemHigh:
        return &pool.used_high_bytes;
    default:
        return nullptr;
    }
}

bool is_reuse(cudaMemPoolAttr attribute) {
    return attribute >= cudaMemPoolReuseFollowEventDependencies &&
           attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

void give_access(Pool &pool, int device, bool has_access) {
    std::lock_guard lock(pool.mutex);
    uint32_t bit = uint32_t{1} << device;
    pool.devices = has_access ? pool.devices | bit : pool.devices & ~bit;
    for (const Allocation &allocation : memory_live(MemoryKind::device)) {
        std::optional<AllocationNote> note = note_find(allocation.base);
        if (note && note->pool.get() == &pool) memory_share(allocation.base, pool.devices);
    }
}

PoolPtr find_pool(cudaMemPool_t pool) { return pool_handles().find(pool, cudaErrorInvalidValue); }

int location_device(const cudaMemLocation *location, cudaMemAllocationType type) {
    require(location != nullptr && type == cudaMemAllocationTypePinned);
    require(location->type == cudaMemLocationTypeDevice, cudaErrorNotSupported);
    return device_at(location->id).index;
}

} // namespace

HandleTable<Pool, cudaMemPool_t> &pool_handles() {
    static auto *const table = new HandleTable<Pool, cudaMemPool_t>(HandleKind::pool);
    return *table;
}

PoolPtr pool_default(int device) {
    std::lock_guard lock(pools().mutex);
    PoolPtr &pool = pools().defaults[device];
    if (pool == nullptr) {
        pool = make_pool(device);
        pool->is_default = true;
    }
    return pool;
}

void pools_trim(int device) {
    for (const PoolPtr &pool : pool_handles().all()) {
        if (pool->device == device) trim(*pool, pool->release_threshold);
    }
}

} // namespace vgpu

using namespace vgpu;

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
    return api([&] {
        require(pointer != nullptr);
        *pointer = allocate(current_pool(stream_find(stream)->device), bytes, stream);
    });
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return api([&] {
        require(pointer != nullptr);
        *pointer = allocate(find_pool(pool), bytes, stream);
    });
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    return api([&] {
        StreamPtr found = stream_find(stream);
        require(!stream_is_capturing(*found), cudaErrorNotSupported);
        if (pointer == nullptr) return;
        uint64_t base = reinterpret_cast<uint64_t>(pointer);
        note_begin_free(base);
        submit(*found, Free{base});
    });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
    return api([&] {
        require(pool != nullptr && properties != nullptr);
        int device = location_device(&properties->location, properties->allocType);
        require(properties->handleTypes == cudaMemHandleTypeNone, cudaErrorNotSupported);
        PoolPtr made = make_pool(device);
        made->most_bytes = properties->maxSize;
        *pool = made->handle;
    });
}

// Memory that is still in use goes back when it is freed.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return api([&] {
        PoolPtr destroyed = find_pool(pool);
        require(!destroyed->is_default);
        pool_handles().remove(pool);
        std::lock_guard lock(pools().mutex);
        for (PoolPtr &current : pools().current) {
            if (current == destroyed) current = nullptr;
        }
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes) {
    return api([&] { trim(*find_pool(pool), keep_bytes); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    return api([&] {
        require(value != nullptr);
        PoolPtr found = find_pool(pool);
        std::lock_guard lock(found->mutex);
        const uint64_t *counted = figure(*found, attribute);
        if (counted != nullptr) {
            *static_cast<uint64_t *>(value) = *counted;
        } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
            *static_cast<uint64_t *>(value) = found->release_threshold;
        } else {
            require(is_reuse(attribute));
            *static_cast<int *>(value) = found->reuse[attribute - cudaMemPoolReuseFollowEventDependencies];
        }
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    return api([&] {
        require(value != nullptr);
        PoolPtr found = find_pool(pool);
        std::lock_guard lock(found->mutex);
        if (attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh) {
            // A high-water mark can only be reset, to what there is now.
            require(*static_cast<uint64_t *>(value) == 0);
            bool is_used = attribute == cudaMemPoolAttrUsedMemHigh;
            *figure(*found, attribute) = is_used ? found->used_bytes : found->reserved_bytes;
        } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
            found->release_threshold = *static_cast<uint64_t *>(value);
        } else {
            require(is_reuse(attribute));
            found->reuse[attribute - cudaMemPoolReuseFollowEventDependencies] = *static_cast<int *>(value) != 0;
        }
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *accesses, size_t count) {
    return api([&] {
        PoolPtr found = find_pool(pool);
        require(accesses != nullptr || count == 0);
        for (size_t i = 0; i < count; i++) {
            require(accesses[i].location.type == cudaMemLocationTypeDevice);
            int device = device_at(accesses[i].location.id).index;
            // Its own device always has access.
            require(device != found->device || accesses[i].flags == cudaMemAccessFlagsProtReadWrite);
        }
        for (size_t i = 0; i < count; i++)
            give_access(*found, accesses[i].location.id, accesses[i].flags != cudaMemAccessFlagsProtNone);
    });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool, cudaMemLocation *location) {
    return api([&] {
        require(flags != nullptr);
        PoolPtr found = find_pool(pool);
        int device = location_device(location, cudaMemAllocationTypePinned);
        std::lock_guard lock(found->mutex);
        bool has_access = device == found->device || (found->devices >> device & 1) != 0;
        *flags = has_access ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    return api([&] {
        require(pool != nullptr);
        *pool = pool_default(device_at(device).index)->handle;
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return api([&] {
        require(pool != nullptr);
        *pool = current_pool(device_at(device).index)->handle;
    });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return api([&] {
        PoolPtr found = find_pool(pool);
        require(found->device == device_at(device).index);
        std::lock_guard lock(pools().mutex);
        pools().current[device] = found;
    });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, cudaMemLocation *location, cudaMemAllocationType type) {
    return api([&] {
        require(pool != nullptr);
        *pool = pool_default(location_device(location, type))->handle;
    });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, cudaMemLocation *location, cudaMemAllocationType type) {
    return api([&] {
        require(pool != nullptr);
        *pool = current_pool(location_device(location, type))->handle;
    });
}

cudaError_t cudaMemSetMemPool(cudaMemLocation *location, cudaMemAllocationType type, cudaMemPool_t pool) {
    return api([&] {
        PoolPtr found = find_pool(pool);
        int device = location_device(location, type);
        require(found->device == device);
        std::lock_guard lock(pools().mutex);
        pools().current[device] = found;
    });
}
