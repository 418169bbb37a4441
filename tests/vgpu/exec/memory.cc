// The address space: where allocations are, where their bytes and shadows are.
//
// One range of addresses is reserved for what kernels see; nothing is ever mapped there. Its bytes are in a second
// range, at a fixed distance; shadows and race cells are in two more. All four are reserved and not committed, so that
// only pages that are touched take memory.
#include "tests/vgpu/exec/memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace vgpu {
namespace {

constexpr int DEVICES_MAX = 16;
constexpr uint64_t DEVICE_SPAN = uint64_t{1} << 39; // addresses of a device; more than any has memory
constexpr uint64_t WINDOWS_SPAN = 4 * WINDOW_BYTES;
constexpr uint64_t SPAN = WINDOWS_SPAN + DEVICES_MAX * DEVICE_SPAN;
constexpr uint64_t ALIGN = 512; // of allocations, as cudaMalloc's are; at least as much is left free between them

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint64_t reserve(uint64_t bytes, int protection) {
    void *base = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        perror("vgpu: cannot reserve addresses");
        abort();
    }
    madvise(base, bytes, MADV_DONTDUMP);
    return reinterpret_cast<uint64_t>(base);
}

struct Arena {
    uint64_t limit = 0, used = 0;
    uint64_t heap_used = 0; // of what is used
    uint64_t next = 0;      // where the next allocation goes, from the arena's base
    uint32_t visitors = 0;  // devices that have access to all of it, a bit for each
};

class AddressSpace {
  public:
    AddressSpace()
        : seen_(reserve(SPAN, PROT_NONE)), bytes_(reserve(SPAN, PROT_READ | PROT_WRITE)),
          shadow_(reserve(SPAN, PROT_READ | PROT_WRITE)),
          cells_(reserve(SPAN / 4 * RACE_CELL_BYTES, PROT_READ | PROT_WRITE)) {
        windows_ = {seen_, seen_ + WINDOW_BYTES, seen_ + 2 * WINDOW_BYTES, seen_ + 3 * WINDOW_BYTES};
    }

    bool is_device(uint64_t address) const { return address - seen_ < SPAN; }
    uint64_t to_host() const { return bytes_ - seen_; }
    uint8_t *shadow(uint64_t address) const { return reinterpret_cast<uint8_t *>(address - seen_ + shadow_); }
    uint8_t *cell(uint64_t address) const {
        return reinterpret_cast<uint8_t *>((address - seen_) / 4 * RACE_CELL_BYTES + cells_);
    }
    const Windows &windows() const { return windows_; }

    Arena &arena(int device) { return arenas_[device]; }
    uint64_t arena_base(int device) const { return seen_ + WINDOWS_SPAN + uint64_t(device) * DEVICE_SPAN; }

    // The next place for so many bytes; freed allocations in the way are forgotten. 0: none.
    uint64_t place(int device, uint64_t bytes) {
        Arena &at = arenas_[device];
        uint64_t span = round_up(bytes, ALIGN) + ALIGN;
        for (int round = 0; round < 2; round++) {
            uint64_t base = arena_base(device) + at.next;
            while (base + span <= arena_base(device) + DEVICE_SPAN) {
                uint64_t in_the_way = clear_freed(base, span);
                if (in_the_way == 0) {
                    at.next = base + span - arena_base(device);
                    return base;
                }
                base = round_up(in_the_way + ALIGN, ALIGN);
            }
            at.next = 0; // from the start again, where much was freed
        }
        return 0;
    }

    // What is read there is zeros.
    void forget(uint64_t base, uint64_t bytes) {
        drop(reinterpret_cast<uint8_t *>(base + to_host()), bytes);
        drop(shadow(base), bytes);
        drop(cell(base), bytes / 4 * RACE_CELL_BYTES);
    }

    std::map<uint64_t, Allocation> allocations;
    std::shared_mutex mutex;
    std::atomic<uint64_t> epoch{1};
    uint64_t count = 0;

  private:
    // Forgets freed allocations in [base, base + span); the end of the first live one there, 0: none.
    uint64_t clear_freed(uint64_t base, uint64_t span) {
        auto at = allocations.lower_bound(base);
        if (at != allocations.begin()) {
            auto before = std::prev(at);
            if (before->first + before->second.size_bytes > base) at = before;
        }
        while (at != allocations.end() && at->first < base + span) {
            if (!at->second.is_freed) return at->first + at->second.size_bytes;
            at = allocations.erase(at);
        }
        return 0;
    }

    // Zeroes bytes: whole pages by giving them back.
    static void drop(uint8_t *first, uint64_t bytes) {
        constexpr uint64_t PAGE = 4096;
        uint64_t low = reinterpret_cast<uint64_t>(first), high = low + bytes;
        uint64_t page_low = round_up(low, PAGE), page_high = high / PAGE * PAGE;
        if (page_low >= page_high) {
            memset(first, 0, bytes);
            return;
        }
        memset(first, 0, page_low - low);
        madvise(reinterpret_cast<void *>(page_low), page_high - page_low, MADV_DONTNEED);
        memset(reinterpret_cast<void *>(page_high), 0, high - page_high);
    }

    uint64_t seen_, bytes_, shadow_, cells_;
    Windows windows_;
    Arena arenas_[DEVICES_MAX];
};

// Never destroyed: programs free memory in their own destructors.
AddressSpace &space() {
    static AddressSpace *instance = new AddressSpace;
    return *instance;
}

bool is_on_device(MemoryKind kind) { return kind != MemoryKind::pinned && kind != MemoryKind::managed; }

// With the mutex held: the last allocation that begins at or before the address; nullptr: none.
const Allocation *at_or_before(uint64_t address) {
    auto at = space().allocations.upper_bound(address);
    return at == space().allocations.begin() ? nullptr : &std::prev(at)->second;
}

// With the mutex held: the live allocation that the address is in; nullptr: none.
const Allocation *live_at(uint64_t address) {
    const Allocation *before = at_or_before(address);
    bool is_in = before != nullptr && !before->is_freed && address < before->base + before->size_bytes;
    return is_in ? before : nullptr;
}

// With the mutex held.
bool has_access(int device, const Allocation &to) {
    if (!is_on_device(to.kind) || to.device == device) return true;
    return ((to.visitors | space().arena(to.device).visitors) >> device & 1) != 0;
}

void mark_written(uint64_t address, uint64_t bytes) {
    if (space().is_device(address)) memset(space().shadow(address), 1, bytes);
}

void add(uint64_t base, uint64_t bytes, int device, MemoryKind kind) {
    space().allocations[base] = {base, bytes, device, kind, false, ++space().count, 0};
}

// With the mutex held. 0: there is no room.
uint64_t alloc_on_device(int device, uint64_t bytes, MemoryKind kind) {
    Arena &arena = space().arena(device);
    if (bytes > arena.limit || arena.used > arena.limit - bytes) return 0;
    uint64_t base = space().place(device, bytes);
    if (base == 0) return 0;
    arena.used += bytes;
    if (kind == MemoryKind::heap) arena.heap_used += bytes;
    add(base, bytes, device, kind);
    return base;
}

} // namespace

const Windows &memory_windows() { return space().windows(); }

void memory_set_limit(int device, uint64_t bytes) {
    std::unique_lock lock(space().mutex);
    space().arena(device).limit = bytes;
}

uint64_t memory_limit(int device) {
    std::shared_lock lock(space().mutex);
    return space().arena(device).limit;
}

uint64_t memory_used(int device) {
    std::shared_lock lock(space().mutex);
    return space().arena(device).used;
}

uint64_t memory_alloc(int device, uint64_t bytes, MemoryKind kind) {
    std::unique_lock lock(space().mutex);
    if (!is_on_device(kind)) {
        void *host = aligned_alloc(ALIGN, round_up(bytes, ALIGN));
        if (host == nullptr) return 0;
        add(reinterpret_cast<uint64_t>(host), bytes, device, kind);
        return reinterpret_cast<uint64_t>(host);
    }
    return alloc_on_device(device, bytes, kind);
}

uint64_t memory_alloc_heap(int device, uint64_t bytes, uint64_t limit) {
    std::unique_lock lock(space().mutex);
    uint64_t used = space().arena(device).heap_used;
    return used > limit || bytes > limit - used ? 0 : alloc_on_device(device, bytes, MemoryKind::heap);
}

bool memory_register(void *host, uint64_t bytes) {
    std::unique_lock lock(space().mutex);
    uint64_t base = reinterpret_cast<uint64_t>(host);
    const Allocation *before = at_or_before(base + bytes - 1);
    if (before != nullptr && !before->is_freed && before->base + before->size_bytes > base) return false;
    add(base, bytes, -1, MemoryKind::pinned);
    return true;
}

bool memory_free(uint64_t base) {
    AddressSpace &all = space();
    std::unique_lock lock(all.mutex);
    auto at = all.allocations.find(base);
    if (at == all.allocations.end() || at->second.is_freed) return false;
    Allocation &freed = at->second;
    all.epoch++;
    if (!is_on_device(freed.kind)) {
        bool is_callers = freed.device < 0;
        all.allocations.erase(at);
        if (!is_callers) free(reinterpret_cast<void *>(base));
        return true;
    }
    freed.is_freed = true;
    Arena &arena = all.arena(freed.device);
    arena.used -= freed.size_bytes;
    if (freed.kind == MemoryKind::heap) arena.heap_used -= freed.size_bytes;
    all.forget(base, round_up(freed.size_bytes, ALIGN));
    return true;
}

bool memory_find(uint64_t address, Allocation *found) {
    std::shared_lock lock(space().mutex);
    const Allocation *before = at_or_before(address);
    if (before == nullptr || address > before->base + before->size_bytes) return false;
    *found = *before;
    return true;
}

std::vector<Allocation> memory_live(MemoryKind kind) {
    std::shared_lock lock(space().mutex);
    std::map<uint64_t, Allocation> by_number;
    for (const auto &[base, allocation] : space().allocations) {
        if (!allocation.is_freed && allocation.kind == kind) by_number[allocation.number] = allocation;
    }
    std::vector<Allocation> live;
    for (const auto &[number, allocation] : by_number)
        live.push_back(allocation);
    return live;
}

bool memory_holds(uint64_t address, uint64_t bytes) {
    std::shared_lock lock(space().mutex);
    const Allocation *found = live_at(address);
    return found != nullptr && bytes <= found->base + found->size_bytes - address;
}

void memory_set_peer(int device, int owner, bool has_access) {
    std::unique_lock lock(space().mutex);
    uint32_t bit = uint32_t{1} << device, &visitors = space().arena(owner).visitors;
    visitors = has_access ? visitors | bit : visitors & ~bit;
    space().epoch++;
}

void memory_share(uint64_t base, uint32_t devices) {
    std::unique_lock lock(space().mutex);
    auto at = space().allocations.find(base);
    if (at != space().allocations.end()) at->second.visitors = devices;
    space().epoch++;
}

uint8_t *memory_bytes(uint64_t address) {
    return reinterpret_cast<uint8_t *>(space().is_device(address) ? address + space().to_host() : address);
}

void memory_copy(uint64_t to, uint64_t from, uint64_t bytes) {
    if (bytes == 0) return;
    memmove(memory_bytes(to), memory_bytes(from), bytes);
    if (space().is_device(to) && space().is_device(from)) {
        memmove(space().shadow(to), space().shadow(from), bytes);
    } else {
        mark_written(to, bytes);
    }
}

void memory_fill(uint64_t to, uint8_t value, uint64_t bytes) {
    if (bytes == 0) return;
    memset(memory_bytes(to), value, bytes);
    mark_written(to, bytes);
}

bool memory_reach(int device, uint64_t address, Reach *reach) {
    std::shared_lock lock(space().mutex);
    const Allocation *found = live_at(address);
    if (found == nullptr || !has_access(device, *found)) return false;
    bool on_device = is_on_device(found->kind);
    *reach = {found->base, found->base + found->size_bytes, on_device ? space().to_host() : 0, on_device};
    return true;
}

bool memory_reach_anywhere(uint64_t address, Reach *reach) {
    uint64_t first = space().arena_base(0), end = space().arena_base(DEVICES_MAX);
    if (address < first || address >= end) return false;
    *reach = {first, end, space().to_host(), true};
    return true;
}

uint64_t memory_epoch() { return space().epoch.load(std::memory_order_relaxed); }

std::string memory_describe(uint64_t address, uint64_t bytes) {
    std::shared_lock lock(space().mutex);
    char text[160];
    const Allocation *near = at_or_before(address);
    uint64_t end = near == nullptr ? 0 : near->base + near->size_bytes;
    if (near != nullptr && (address < end || address - end < (1 << 20))) {
        const char *state = near->is_freed ? "a freed allocation" : "an allocation";
        if (address < end) {
            snprintf(text, sizeof text, "%llu bytes at %llu of %s of %llu bytes", (unsigned long long)bytes,
                     (unsigned long long)(address - near->base), state, (unsigned long long)near->size_bytes);
        } else {
            snprintf(text, sizeof text, "%llu bytes behind the end of %s of %llu bytes",
                     (unsigned long long)(address - end), state, (unsigned long long)near->size_bytes);
        }
        return text;
    }
    auto after = space().allocations.upper_bound(address);
    if (after != space().allocations.end() && after->first - address < (1 << 20)) {
        snprintf(text, sizeof text, "%llu bytes before an allocation of %llu bytes",
                 (unsigned long long)(after->first - address), (unsigned long long)after->second.size_bytes);
        return text;
    }
    return address == 0 ? "the null pointer" : "nothing is allocated near it";
}

uint8_t *memory_shadow(uint64_t address) { return space().shadow(address); }

uint8_t *memory_race_cell(uint64_t address) { return space().cell(address); }

} // namespace vgpu
