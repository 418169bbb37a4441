// The runtime's notes on allocations, and the rules that copies and fills follow.
#include "tests/vgpu/runtime/runtime_memory.h"

#include <cinttypes>
#include <cstring>
#include <map>

#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/report.h"
#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"

namespace vgpu {
namespace {

// What the real runtime stages: a copy of so many bytes from pageable memory has read them when the call returns.
constexpr size_t STAGED_BYTES = 64 * 1024;

struct Notes {
    std::mutex mutex;
    std::map<uint64_t, AllocationNote> by_base;
};

Notes &notes() {
    static auto *const only = new Notes;
    return *only;
}

bool is_host(Place place) { return place == Place::pageable || place == Place::pinned; }

// The bytes from the first to the last of a box.
size_t extent_bytes(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
    return width + (height - 1) * pitch + (depth - 1) * slice;
}

size_t to_bytes(const Copy &copy) {
    return extent_bytes(copy.width, copy.height, copy.depth, copy.to_pitch, copy.to_slice);
}

size_t from_bytes(const Copy &copy) {
    return extent_bytes(copy.width, copy.height, copy.depth, copy.from_pitch, copy.from_slice);
}

size_t to_bytes(const Fill &fill) {
    return extent_bytes(fill.width * fill.element_bytes, fill.height, fill.depth, fill.pitch, fill.slice);
}

bool is_nothing(const Copy &copy) { return copy.width == 0 || copy.height == 0 || copy.depth == 0; }

bool is_nothing(const Fill &fill) { return fill.width == 0 || fill.height == 0 || fill.depth == 0; }

const void *pointer(uint64_t address) { return reinterpret_cast<const void *>(address); }

// `is_device_side`: what the copy's kind says of this end.
void check_end(Place place, bool is_device_side, const void *address, size_t bytes) {
    require(address != nullptr);
    require(is_device_side ? place != Place::pageable : place != Place::device);
    if (place != Place::pageable) require_range(address, bytes);
}

// `what`: "read by a copy"
bool is_in_memory(const char *what, uint64_t address, size_t bytes) {
    if (memory_holds(address, bytes)) return true;
    char text[160];
    snprintf(text, sizeof text, "vgpu: ERROR: out-of-bounds %s of %zu bytes: address 0x%" PRIx64 ": ", what, bytes,
             address);
    report(text + memory_describe(address, bytes) + "\n");
    return false;
}

} // namespace

void note_add(uint64_t base, AllocationNote note) {
    std::lock_guard lock(notes().mutex);
    notes().by_base[base] = std::move(note);
}

std::optional<AllocationNote> note_find(uint64_t base) {
    std::lock_guard lock(notes().mutex);
    auto found = notes().by_base.find(base);
    if (found == notes().by_base.end()) return std::nullopt;
    return found->second;
}

void note_remove(uint64_t base) {
    std::lock_guard lock(notes().mutex);
    notes().by_base.erase(base);
}

void note_begin_free(uint64_t base) {
    std::lock_guard lock(notes().mutex);
    auto found = notes().by_base.find(base);
    require(found != notes().by_base.end() && found->second.pool != nullptr && !found->second.is_being_freed);
    found->second.is_being_freed = true;
}

void allocation_release(uint64_t base) {
    Allocation allocation;
    std::optional<AllocationNote> note = note_find(base);
    if (note && note->pool != nullptr && memory_find(base, &allocation)) {
        std::lock_guard lock(note->pool->mutex);
        note->pool->used_bytes -= allocation.size_bytes;
    }
    note_remove(base);
    memory_free(base);
}

Location locate(const void *address) {
    Location location;
    uint64_t value = reinterpret_cast<uint64_t>(address);
    Allocation &found = location.allocation;
    if (!memory_find(value, &found) || value - found.base >= found.size_bytes) return location;
    require(!found.is_freed);
    switch (found.kind) {
    case MemoryKind::device:
    case MemoryKind::module:
        location.place = Place::device;
        break;
    case MemoryKind::pinned:
        location.place = Place::pinned;
        break;
    case MemoryKind::managed:
        location.place = Place::managed;
        break;
    case MemoryKind::heap:
        fail(cudaErrorInvalidValue); // of no use to the host, as on a real machine
    }
    return location;
}

void require_range(const void *address, size_t bytes) {
    require(memory_holds(reinterpret_cast<uint64_t>(address), bytes));
}

// ---- copies --------------------------------------------------------------------------------------------------------

Copy copy_of_bytes(void *to, const void *from, size_t bytes) {
    Copy copy;
    copy.to = reinterpret_cast<uint64_t>(to), copy.from = reinterpret_cast<uint64_t>(from);
    copy.width = copy.to_pitch = copy.from_pitch = copy.to_slice = copy.from_slice = bytes;
    return copy;
}

Copy copy_of_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
    require(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
    Copy copy = copy_of_bytes(to, from, width);
    copy.height = height;
    copy.to_pitch = to_pitch, copy.from_pitch = from_pitch;
    copy.to_slice = to_pitch * height, copy.from_slice = from_pitch * height;
    return copy;
}

Copy copy_of_box(const cudaMemcpy3DParms &parameters) {
    const cudaPitchedPtr &to = parameters.dstPtr, &from = parameters.srcPtr;
    const cudaExtent &extent = parameters.extent;
    require(parameters.srcArray == nullptr && parameters.dstArray == nullptr, cudaErrorNotSupported);
    bool is_flat = extent.height <= 1 && extent.depth <= 1;
    require(is_flat || (extent.width <= to.pitch && extent.width <= from.pitch), cudaErrorInvalidPitchValue);
    require(extent.depth <= 1 || (extent.height <= to.ysize && extent.height <= from.ysize));
    Copy copy;
    copy.width = extent.width, copy.height = extent.height, copy.depth = extent.depth;
    copy.to_pitch = to.pitch, copy.from_pitch = from.pitch;
    copy.to_slice = to.pitch * to.ysize, copy.from_slice = from.pitch * from.ysize;
    const cudaPos &to_pos = parameters.dstPos, &from_pos = parameters.srcPos;
    copy.to = reinterpret_cast<uint64_t>(to.ptr) + to_pos.x + to_pos.y * copy.to_pitch + to_pos.z * copy.to_slice;
    copy.from =
        reinterpret_cast<uint64_t>(from.ptr) + from_pos.x + from_pos.y * copy.from_pitch + from_pos.z * copy.from_slice;
    copy.parameters = parameters;
    return copy;
}

void copy_check(Copy &copy, cudaMemcpyKind kind) {
    require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
    if (is_nothing(copy)) return;
    const void *to = pointer(copy.to), *from = pointer(copy.from);
    Place to_place = locate(to).place, from_place = locate(from).place;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault) to_device = !is_host(to_place), from_device = !is_host(from_place);
    check_end(to_place, to_device, to, to_bytes(copy));
    check_end(from_place, from_device, from, from_bytes(copy));
    copy.to_pageable = to_place == Place::pageable, copy.from_pageable = from_place == Place::pageable;
}

bool copy_is_in_memory(const Copy &copy) {
    if ((checks_enabled() & CHECK_BOUNDS) == 0 || is_nothing(copy)) return true;
    return (copy.to_pageable || is_in_memory("write by a copy", copy.to, to_bytes(copy))) &&
           (copy.from_pageable || is_in_memory("read by a copy", copy.from, from_bytes(copy)));
}

// The rules are those of the runtime's documentation, "API synchronization behavior", and no call synchronises more
// than they promise:
//   from pageable memory   the bytes have been read at the return: staged where they are few, else it is synchronous
//   to pageable memory     from a device, by an Async function, it may be either: see copies_to_pageable_wait();
//                          else synchronous
//   host to host           synchronous
//   device to device       asynchronous, even by cudaMemcpy()
//   pinned, managed        as the function's name says
void copy_submit(cudaStream_t handle, Copy copy, cudaMemcpyKind kind, bool is_async) {
    copy.is_async = is_async;
    copy_check(copy, kind);
    StreamPtr stream = stream_find(handle);
    if (!is_async) forbid_on_capturing(*stream);
    if (is_nothing(copy)) return;
    if (stream_is_capturing(*stream)) {
        submit(*stream, std::move(copy));
        return;
    }
    Place to = locate(pointer(copy.to)).place, from = locate(pointer(copy.from)).place;
    bool is_staged =
        from == Place::pageable && !is_host(to) && copy.width <= STAGED_BYTES && copy.height == 1 && copy.depth == 1;
    if (is_staged) {
        if (!is_async) stream_synchronize(*stream);
        const auto *bytes = static_cast<const uint8_t *>(pointer(copy.from));
        copy.staged = std::make_shared<std::vector<uint8_t>>(bytes, bytes + copy.width);
    }
    bool is_on_devices = to == Place::device && from == Place::device;
    bool waits_for_pageable =
        from == Place::pageable || (to == Place::pageable && (from != Place::device || copies_to_pageable_wait()));
    bool is_on_host = is_host(to) && is_host(from);
    OperationPtr operation = submit(*stream, std::move(copy));
    if (is_staged || is_on_devices || (is_async && !waits_for_pageable && !is_on_host)) return;
    operation_wait(operation);
    device_at(stream->device).surface_fault();
}

// ---- fills ---------------------------------------------------------------------------------------------------------

void fill_check(const Fill &fill) {
    require(fill.element_bytes == 1 || fill.element_bytes == 2 || fill.element_bytes == 4);
    if (is_nothing(fill)) return;
    require(fill.height * fill.depth == 1 || fill.width * fill.element_bytes <= fill.pitch);
    const void *to = pointer(fill.to);
    require(to != nullptr && fill.to % fill.element_bytes == 0 && locate(to).place != Place::pageable);
    require_range(to, to_bytes(fill));
}

bool fill_is_in_memory(const Fill &fill) {
    if ((checks_enabled() & CHECK_BOUNDS) == 0 || is_nothing(fill)) return true;
    return is_in_memory("write by a fill", fill.to, to_bytes(fill));
}

// Asynchronous even by cudaMemset(), unless it is pinned memory.
void fill_submit(cudaStream_t handle, Fill fill, bool is_async) {
    fill.is_async = is_async;
    fill_check(fill);
    StreamPtr stream = stream_find(handle);
    if (!is_async) forbid_on_capturing(*stream);
    if (is_nothing(fill)) return;
    Place place = locate(pointer(fill.to)).place;
    OperationPtr operation = submit(*stream, fill);
    if (is_async || place != Place::pinned || operation == nullptr) return;
    operation_wait(operation);
    device_at(stream->device).surface_fault();
}

void *symbol_range(const void *symbol, size_t count, size_t offset) {
    VariablePlace place = variable_find(symbol);
    require(offset <= place.size_bytes && count <= place.size_bytes - offset);
    return reinterpret_cast<void *>(place.address + offset);
}

} // namespace vgpu
