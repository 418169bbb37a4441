// The API of allocating memory, and of what is known of an address.
#include <cstring>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/runtime_memory.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

uint64_t address_of(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

// A request of no bytes gives a null pointer.
void *allocate(size_t bytes, MemoryKind kind, unsigned flags) {
    forbid_during_capture();
    if (bytes == 0) return nullptr;
    uint64_t base = memory_alloc(current_device().index, bytes, kind);
    require(base != 0, cudaErrorMemoryAllocation);
    AllocationNote note;
    note.flags = flags;
    note_add(base, note);
    return reinterpret_cast<void *>(base);
}

// The live allocation of that base.
Allocation find_base(const void *pointer) {
    Allocation allocation;
    bool is_base =
        memory_find(address_of(pointer), &allocation) && !allocation.is_freed && allocation.base == address_of(pointer);
    require(is_base);
    return allocation;
}

// Before memory goes: what may use it has to be done. Memory of the host is every device's.
void wait_for_users(const Allocation &allocation) {
    if (allocation.kind == MemoryKind::device) {
        device_synchronize(allocation.device);
        return;
    }
    devices_wait();
    current_device().surface_fault();
}

void free_memory(void *pointer) {
    forbid_during_capture();
    if (pointer == nullptr) return;
    Allocation allocation = find_base(pointer);
    require(allocation.kind == MemoryKind::device || allocation.kind == MemoryKind::managed);
    std::optional<AllocationNote> note = note_find(allocation.base);
    require(note && !note->is_being_freed);
    wait_for_users(allocation);
    allocation_release(allocation.base);
}

void free_pinned(void *pointer) {
    forbid_during_capture();
    if (pointer == nullptr) return;
    Allocation allocation = find_base(pointer);
    std::optional<AllocationNote> note = note_find(allocation.base);
    require(allocation.kind == MemoryKind::pinned && note && !note->is_registered);
    wait_for_users(allocation);
    allocation_release(allocation.base);
}

void allocate_rows(void **pointer, size_t *pitch, size_t width, size_t rows) {
    require(pointer != nullptr && pitch != nullptr);
    require(width <= SIZE_MAX - PITCH_ALIGN_BYTES);
    size_t padded = (width + PITCH_ALIGN_BYTES - 1) / PITCH_ALIGN_BYTES * PITCH_ALIGN_BYTES;
    require(rows == 0 || padded <= SIZE_MAX / rows, cudaErrorMemoryAllocation);
    *pointer = allocate(padded * rows, MemoryKind::device, 0);
    *pitch = padded;
}

void require_managed(const void *pointer, size_t bytes) {
    require(bytes > 0 && locate(pointer).place == Place::managed);
    require_range(pointer, bytes);
}

void require_location(const cudaMemLocation &location) {
    if (location.type == cudaMemLocationTypeDevice) device_at(location.id);
    bool is_known = location.type == cudaMemLocationTypeDevice || location.type == cudaMemLocationTypeHost ||
                    location.type == cudaMemLocationTypeHostNuma || location.type == cudaMemLocationTypeHostNumaCurrent;
    require(is_known);
}

} // namespace
} // namespace vgpu

using namespace vgpu;

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    return api([&] {
        require(pointer != nullptr);
        *pointer = allocate(bytes, MemoryKind::device, 0);
    });
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    return api([&] { allocate_rows(pointer, pitch, width, height); });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
    return api([&] {
        require(pointer != nullptr);
        require(extent.depth == 0 || extent.height <= SIZE_MAX / extent.depth, cudaErrorMemoryAllocation);
        allocate_rows(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
        pointer->xsize = extent.width, pointer->ysize = extent.height;
    });
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    return api([&] {
        require(pointer != nullptr && bytes > 0);
        require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost);
        *pointer = allocate(bytes, MemoryKind::managed, flags);
    });
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    return api([&] {
        require(pointer != nullptr);
        *pointer = allocate(bytes, MemoryKind::pinned, cudaHostAllocDefault);
    });
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    return api([&] {
        constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
        require(pointer != nullptr && (flags & ~known) == 0);
        *pointer = allocate(bytes, MemoryKind::pinned, flags);
    });
}

cudaError_t cudaFree(void *pointer) {
    return api([&] { free_memory(pointer); });
}

cudaError_t cudaFreeHost(void *pointer) {
    return api([&] { free_pinned(pointer); });
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    return api([&] {
        constexpr unsigned known =
            cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
        require(pointer != nullptr && bytes > 0 && (flags & ~known) == 0);
        forbid_during_capture();
        bool is_free = locate(pointer).place == Place::pageable && memory_register(pointer, bytes);
        require(is_free, cudaErrorHostMemoryAlreadyRegistered);
        AllocationNote note;
        note.flags = flags;
        note.is_registered = true;
        note_add(address_of(pointer), note);
    });
}

cudaError_t cudaHostUnregister(void *pointer) {
    return api([&] {
        require(pointer != nullptr);
        forbid_during_capture();
        std::optional<AllocationNote> note = note_find(address_of(pointer));
        require(note && note->is_registered, cudaErrorHostMemoryNotRegistered);
        wait_for_users(find_base(pointer));
        allocation_release(address_of(pointer));
    });
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned flags) {
    return api([&] {
        require(device_pointer != nullptr && host_pointer != nullptr && flags == 0);
        Place place = locate(host_pointer).place;
        require(place == Place::pinned || place == Place::managed);
        *device_pointer = host_pointer;
    });
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host_pointer) {
    return api([&] {
        require(flags != nullptr);
        Location location = locate(host_pointer);
        require(location.place == Place::pinned);
        std::optional<AllocationNote> note = note_find(location.allocation.base);
        require(note.has_value());
        *flags = note->flags | cudaHostAllocMapped;
    });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    return api([&] {
        require(free != nullptr && total != nullptr);
        int device = current_device().index;
        *total = memory_limit(device);
        *free = *total - memory_used(device);
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    return api([&] {
        require(attributes != nullptr);
        *attributes = {};
        Location location;
        if (Allocation found; !memory_find(address_of(pointer), &found) || !found.is_freed) location = locate(pointer);
        auto *own = const_cast<void *>(pointer);
        // Memory that the program registered is of no device.
        attributes->device = location.allocation.device >= 0 ? location.allocation.device : current_device().index;
        switch (location.place) {
        case Place::pageable:
            attributes->type = cudaMemoryTypeUnregistered;
            attributes->device = cudaInvalidDeviceId;
            attributes->hostPointer = own;
            return;
        case Place::device:
            attributes->type = cudaMemoryTypeDevice;
            break;
        case Place::pinned:
            attributes->type = cudaMemoryTypeHost;
            break;
        case Place::managed:
            attributes->type = cudaMemoryTypeManaged;
            break;
        }
        attributes->devicePointer = own;
        if (location.place != Place::device) attributes->hostPointer = own;
    });
}

// It describes texels, and needs no texture.
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

// ---- hints for managed memory, which is on the host here -----------------------------------------------------------

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
    return api([&] {
        require(flags == 0);
        require_managed(pointer, bytes);
        require_location(location);
        submit(*stream_find(stream), Empty{});
    });
}

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location) {
    return api([&] {
        require(advice >= cudaMemAdviseSetReadMostly && advice <= cudaMemAdviseUnsetAccessedBy);
        require_managed(pointer, bytes);
        bool has_location = advice == cudaMemAdviseSetPreferredLocation || advice == cudaMemAdviseSetAccessedBy ||
                            advice == cudaMemAdviseUnsetAccessedBy;
        if (has_location) require_location(location);
    });
}
