// Where the addresses of a warp's accesses lead, and whether they may.
#include <algorithm>
#include <cstring>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu {
namespace {

bool is_in(uint64_t window, uint64_t address) { return address - window < WINDOW_BYTES; }

// What a report calls an access, and of which space.
std::string access_name(const char *space, Access access, uint32_t bytes) {
    const char *names[] = {"load", "store", "atomic"};
    return std::string(space) + " " + names[int(access)] + " of " + std::to_string(bytes) + " bytes";
}

Trap misaligned(const char *space, Access access, uint32_t bytes, uint64_t address, int lane) {
    char where[40];
    const char *format = space == std::string_view("global") ? ": address 0x%llx" : ": offset %llu";
    snprintf(where, sizeof where, format, (unsigned long long)address);
    return {Fault::misaligned_address, "misaligned " + access_name(space, access, bytes) + where, lane};
}

Trap out_of_bounds(const char *space, Access access, uint32_t bytes, const std::string &where, int lane) {
    return {Fault::illegal_address, "out-of-bounds " + access_name(space, access, bytes) + ": " + where, lane};
}

Trap outside_allocation(int device, Access access, uint64_t address, uint32_t bytes, int lane) {
    char text[64];
    snprintf(text, sizeof text, "address 0x%llx: ", (unsigned long long)address);
    Allocation near;
    std::string where = text + memory_describe(address, bytes);
    if (memory_find(address, &near) && near.is_freed && address < near.base + near.size_bytes) {
        return {Fault::illegal_address, "use of freed memory: " + access_name("global", access, bytes) + ", " + where,
                lane};
    }
    if (memory_holds(address, bytes)) {
        return {Fault::illegal_address,
                "no peer access: " + access_name("global", access, bytes) + ", " + where + " on device " +
                    std::to_string(near.device) + ", by device " + std::to_string(device),
                lane};
    }
    return out_of_bounds("global", access, bytes, where, lane);
}

// Of an instruction that names the space or, if it does not, of the space that the address is in.
Trap misaligned_generic(const Instr &in, Access access, uint32_t bytes, uint64_t address, int lane) {
    const Windows &windows = memory_windows();
    if (in.form->has("local") || is_in(windows.local, address))
        return misaligned("local", access, bytes, address - windows.local, lane);
    if (is_in(windows.shared, address)) return misaligned("shared", access, bytes, address - windows.shared, lane);
    return misaligned("global", access, bytes, address, lane);
}

struct Range {
    uint64_t low = ~uint64_t{0}, high = 0, bits = 0; // of the active lanes' addresses; bits: all of them together
};

Range range_of(const uint64_t *address, Mask active) {
    Range range;
    if (active == ALL_LANES) {
        for (int l = 0; l < LANES; l++) {
            range.low = std::min(range.low, address[l]);
            range.high = std::max(range.high, address[l]);
            range.bits |= address[l];
        }
        return range;
    }
    for (Mask left = active; left != 0; left &= left - 1) {
        uint64_t a = address[__builtin_ctz(left)];
        range.low = std::min(range.low, a);
        range.high = std::max(range.high, a);
        range.bits |= a;
    }
    return range;
}

int first_misaligned(const uint64_t *address, Mask active, uint32_t bytes) {
    for (Mask left = active; left != 0; left &= left - 1) {
        if (address[__builtin_ctz(left)] % bytes != 0) return __builtin_ctz(left);
    }
    return 0;
}

} // namespace

bool reads_ahead(const Frame &frame, const Instr &in) {
    const std::vector<std::string> &files = frame.code->module->source->files;
    size_t file = size_t(in.form->source->file);
    if (file >= files.size()) return false;
    return files[file].find("/cub/") != std::string::npos || files[file].find("/thrust/") != std::string::npos;
}

void Warp::gather_addresses(const Instr &in, int operand, uint64_t *address) const {
    if (in.width[operand] == sizeof(uint64_t)) {
        const uint64_t *base = lanes<uint64_t>(in.at[operand]);
        for (int l = 0; l < LANES; l++)
            address[l] = base[l] + uint64_t(in.offset[operand]);
    } else {
        const uint32_t *base = lanes<uint32_t>(in.at[operand]);
        for (int l = 0; l < LANES; l++)
            address[l] = base[l] + uint32_t(in.offset[operand]);
    }
}

void Warp::locate_shared(const Instr &in, int operand, Mask active, uint32_t bytes, Access access, uint8_t **where) {
    uint64_t address[LANES];
    gather_addresses(in, operand, address);
    Range range = range_of(address, active);
    uint64_t size = block_.shared_bytes();
    if ((range.bits & (bytes - 1)) != 0) {
        int lane = first_misaligned(address, active, bytes);
        throw misaligned("shared", access, bytes, address[lane], lane);
    }
    if (range.high > size || bytes > size - range.high) {
        for (Mask left = active; left != 0; left &= left - 1) {
            int lane = __builtin_ctz(left);
            if (address[lane] <= size && bytes <= size - address[lane]) continue;
            throw out_of_bounds("shared", access, bytes,
                                "offset " + std::to_string(address[lane]) + " of " + std::to_string(size) + " bytes",
                                lane);
        }
    }
    uint8_t *base = block_.shared();
    for (int l = 0; l < LANES; l++)
        where[l] = base + address[l];
    check_shared(in, active, bytes, access, address);
}

void Warp::locate_generic(const Instr &in, int operand, Mask active, uint32_t bytes, Access access, uint8_t **where) {
    uint64_t address[LANES];
    gather_addresses(in, operand, address);
    Range range = range_of(address, active);
    if ((range.bits & (bytes - 1)) != 0) {
        int lane = first_misaligned(address, active, bytes);
        throw misaligned_generic(in, access, bytes, address[lane], lane);
    }
    const Reach *reach = block_.reach(in, range.low);
    if (reach != nullptr && reach->covers(range.high, bytes)) {
        for (int l = 0; l < LANES; l++)
            where[l] = reinterpret_cast<uint8_t *>(address[l] + reach->to_host);
        if (reach->is_tracked) {
            check_global(in, active, bytes, access, address);
        } else {
            check_host(in, active, bytes, access, address);
        }
        return;
    }
    locate_each(in, address, active, bytes, access, where);
}

// Lanes that are in different allocations or spaces, or where they must not be.
void Warp::locate_each(const Instr &in, const uint64_t *address, Mask active, uint32_t bytes, Access access,
                       uint8_t **where) {
    const Windows &windows = memory_windows();
    uint64_t offset[LANES];
    Mask in_shared = 0, on_device = 0, on_host = 0;
    bool names_local = in.form->has("local");
    for (Mask left = active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t a = address[lane];
        Mask only = Mask{1} << lane;
        if (names_local || is_in(windows.local, a)) {
            where[lane] = locate_local(in, lane, a - windows.local, bytes, access);
        } else if (is_in(windows.shared, a)) {
            where[lane] = locate_shared_window(lane, a - windows.shared, bytes, access);
            offset[lane] = a - windows.shared;
            in_shared |= only;
        } else if (is_in(windows.param, a)) {
            uint64_t size = block_.kernel().info.parameters_bytes, at = a - windows.param;
            if (access != Access::load || at > size || bytes > size - at) {
                throw out_of_bounds("parameter", access, bytes, "offset " + std::to_string(at), lane);
            }
            where[lane] = const_cast<uint8_t *>(block_.parameter(at)); // loads only
        } else {
            const Reach *reach = block_.reach(in, a);
            if (reach == nullptr || !reach->covers(a, bytes))
                throw outside_allocation(block_.device(), access, a, bytes, lane);
            where[lane] = reinterpret_cast<uint8_t *>(a + reach->to_host);
            (reach->is_tracked ? on_device : on_host) |= only;
        }
    }
    if (in_shared != 0) check_shared(in, in_shared, bytes, access, offset);
    if (on_device != 0) check_global(in, on_device, bytes, access, address);
    if (on_host != 0) check_host(in, on_host, bytes, access, address);
}

uint8_t *Warp::locate_local(const Instr &in, int lane, uint64_t offset, uint32_t bytes, Access access) {
    uint8_t *found = block_.local_bytes(thread(lane), offset, bytes);
    if (found == nullptr) {
        throw out_of_bounds("local", access, bytes,
                            "offset " + std::to_string(int64_t(offset)) + " of " +
                                std::to_string(block_.local_bytes_per_thread()) + " bytes",
                            lane);
    }
    if (checks_enabled() & CHECK_INIT) {
        uint8_t *shadow[LANES];
        shadow[lane] = block_.local_shadow(thread(lane), offset);
        check_written("local", in, Mask{1} << lane, bytes, access, shadow);
    }
    return found;
}

uint8_t *Warp::locate_shared_window(int lane, uint64_t offset, uint32_t bytes, Access access) {
    uint64_t size = block_.shared_bytes();
    if (offset > size || bytes > size - offset) {
        throw out_of_bounds("shared", access, bytes,
                            "offset " + std::to_string(offset) + " of " + std::to_string(size) + " bytes", lane);
    }
    return block_.shared() + offset;
}

uint64_t Warp::address_of(const Instr &in, int operand, int lane) const {
    uint64_t address[LANES];
    gather_addresses(in, operand, address);
    return address[lane];
}

uint8_t *Warp::shared_span(int lane, uint64_t offset, uint64_t bytes) {
    uint64_t size = block_.shared_bytes();
    if (offset - memory_windows().shared < WINDOW_BYTES) offset -= memory_windows().shared;
    if (offset > size || bytes > size - offset) {
        throw out_of_bounds("shared", Access::store, uint32_t(bytes),
                            "offset " + std::to_string(offset) + " of " + std::to_string(size) + " bytes", lane);
    }
    return block_.shared() + offset;
}

void Warp::copy_span(const Instr &in, int lane, uint64_t shared, uint64_t global, uint64_t bytes, bool to_shared) {
    if (bytes == 0) return;
    uint8_t *inside = shared_span(lane, shared, bytes);
    const Reach *reach = block_.reach(in, global);
    if (reach == nullptr || !reach->covers(global, bytes)) {
        throw outside_allocation(block_.device(), to_shared ? Access::load : Access::store, global, uint32_t(bytes),
                                 lane);
    }
    uint8_t *outside = reinterpret_cast<uint8_t *>(global + reach->to_host);
    memcpy(to_shared ? inside : outside, to_shared ? outside : inside, bytes);
    if ((checks_enabled() & CHECK_INIT) == 0) return;
    // What was never written stays so in the copy, and is found where it is used.
    uint8_t *inner = block_.shared_shadow() + (inside - block_.shared());
    if (!reach->is_tracked) {
        if (to_shared) memset(inner, 1, bytes);
        return;
    }
    uint8_t *outer = memory_shadow(global);
    memcpy(to_shared ? inner : outer, to_shared ? outer : inner, bytes);
}

void Warp::copy_to_shared(const Instr &in, int lane, uint64_t to, uint64_t from, uint64_t bytes, uint64_t filled) {
    copy_span(in, lane, to, from, bytes, true);
    uint8_t *first = shared_span(lane, to, filled);
    check_copy(in, lane, uint64_t(first - block_.shared()), filled, Access::store, from, bytes, Access::load);
    memset(first + bytes, 0, filled - bytes);
    if (checks_enabled() & CHECK_INIT)
        memset(block_.shared_shadow() + (first - block_.shared()) + bytes, 1, filled - bytes);
}

void Warp::copy_from_shared(const Instr &in, int lane, uint64_t to, uint64_t from, uint64_t bytes) {
    copy_span(in, lane, from, to, bytes, false);
    uint8_t *first = shared_span(lane, from, bytes);
    check_copy(in, lane, uint64_t(first - block_.shared()), bytes, Access::load, to, bytes, Access::store);
}

uint8_t *Warp::barrier_of_copy(const Instr &in, int lane, uint64_t offset) {
    uint64_t offsets[LANES];
    if (offset % sizeof(uint64_t) != 0) throw misaligned("shared", Access::atomic, sizeof(uint64_t), offset, lane);
    uint8_t *where = shared_span(lane, offset, sizeof(uint64_t));
    offsets[lane] = uint64_t(where - block_.shared());
    check_shared(in, Mask{1} << lane, sizeof(uint64_t), Access::atomic, offsets);
    return where;
}

// A copy is of the thread that issues it.
void Warp::check_copy(const Instr &in, int lane, uint64_t offset, uint64_t shared_bytes, Access shared_access,
                      uint64_t global, uint64_t global_bytes, Access global_access) {
    if ((checks_enabled() & CHECK_RACES) == 0) return;
    uint64_t offsets[LANES], addresses[LANES];
    offsets[lane] = offset;
    addresses[lane] = global;
    Mask only = Mask{1} << lane;
    block_.races().shared_access(*this, in, 0, only, shared_bytes, shared_access, offsets);
    const Reach *reach = global_bytes == 0 ? nullptr : block_.reach(in, global);
    if (reach != nullptr && reach->is_tracked)
        block_.races().global_access(*this, in, 0, only, global_bytes, global_access, addresses);
}

void Warp::check_shared(const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *offset) {
    if (checks_enabled() & CHECK_INIT) {
        uint8_t *shadow[LANES];
        for (Mask left = active; left != 0; left &= left - 1)
            shadow[__builtin_ctz(left)] = block_.shared_shadow() + offset[__builtin_ctz(left)];
        check_written("shared", in, active, bytes, access, shadow);
    }
    if (checks_enabled() & CHECK_RACES)
        block_.races().shared_access(*this, in, in.order, active, bytes, access, offset);
}

void Warp::check_global(const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *address) {
    if (checks_enabled() & CHECK_INIT) {
        uint8_t *shadow[LANES];
        for (Mask left = active; left != 0; left &= left - 1) {
            int lane = __builtin_ctz(left);
            shadow[lane] = memory_shadow(address[lane]);
        }
        check_written("global", in, active, bytes, access, shadow);
    }
    if (checks_enabled() & CHECK_RACES)
        block_.races().global_access(*this, in, in.order, active, bytes, access, address);
}

void Warp::check_host(const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *address) {
    if (in.order != 0 && (checks_enabled() & CHECK_RACES) != 0)
        block_.races().host_access(*this, in, active, bytes, access, address);
}

// A load of an element of which no byte was ever written is an error; what is stored is written from now on. Elements
// that the compiler says it does not use (padding inside a vector) may be anything.
void Warp::check_written(const char *space, const Instr &in, Mask active, uint32_t bytes, Access access,
                         uint8_t **shadow) {
    static const uint8_t written[MAX_ACCESS_BYTES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const uint8_t unwritten[MAX_ACCESS_BYTES] = {};
    uint32_t element = bytes / in.vector;
    for (Mask left = active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (access == Access::store) {
            memcpy(shadow[lane], written, bytes);
            continue;
        }
        if (memcmp(shadow[lane], written, bytes) == 0) continue;
        for (uint32_t at = 0; at < bytes; at += element) {
            bool is_used = (in.form->source->used_bytes >> at & ((uint64_t{1} << element) - 1)) != 0;
            if (!is_used || memcmp(shadow[lane] + at, unwritten, element) != 0) continue;
            if (space == std::string_view("shared") && reads_ahead(frame(), in)) continue;
            throw Trap{Fault::failure,
                       std::string("read of ") + space + " memory that was never written: " + std::to_string(element) +
                           " bytes",
                       lane};
        }
    }
}

} // namespace vgpu
