#include "tests/vgpu/exec/races.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "tests/vgpu/exec/block.h"

namespace vgpu {
namespace {

constexpr uint64_t WORD = 4; // bytes of a cell
constexpr uint32_t LINE_BITS = 19;
constexpr uint32_t WARPS_MOST = 32; // of a block

// Blocks run on several threads of the host, which have to take turns at a line of memory's cells.
constexpr uint64_t LINE_BYTES = 128;
constexpr size_t LOCKS = 4096;

class LineLock {
  public:
    LineLock() = default;
    LineLock(const LineLock &) = delete;
    LineLock &operator=(const LineLock &) = delete;
    ~LineLock() { unlock(); }

    void move_to(uint64_t address) {
        std::atomic<bool> *lock = &locks_[address / LINE_BYTES % LOCKS];
        if (lock == held_) return;
        unlock();
        for (int tries = 0; lock->exchange(true, std::memory_order_acquire); tries++) {
            if (tries > 100) sched_yield();
        }
        held_ = lock;
    }

  private:
    void unlock() {
        if (held_ != nullptr) held_->store(false, std::memory_order_release);
    }

    static std::atomic<bool> locks_[LOCKS];
    std::atomic<bool> *held_ = nullptr;
};
std::atomic<bool> LineLock::locks_[LOCKS];

bool is_enabled() { return (checks_enabled() & CHECK_RACES) != 0; }

Scope scope_of(uint8_t order) { return order & ORDER_DEVICE ? Scope::device : Scope::block; }

// The byte that a lane of a store writes at `offset` of what it writes in all.
uint8_t stored_byte(const Warp &warp, const Instr &in, uint64_t bytes, int lane, uint64_t offset) {
    uint64_t element = bytes / in.vector;
    size_t value = 1 + size_t(offset / element); // operand 0 is the address
    return warp.lanes<uint8_t>(in.at[value])[size_t(lane) * in.width[value] + offset % element];
}

// The instruction at a line of the PTX of which only the last bits are known.
std::string instruction_at(const Module &module, uint32_t line) {
    for (const auto &function : module.source->functions) {
        for (const ptx::Instruction &in : function->code) {
            if ((uint32_t(in.line) & ((1u << LINE_BITS) - 1)) != line) continue;
            return "PTX line " + std::to_string(in.line) + ": " + in.text;
        }
    }
    return "PTX line " + std::to_string(line);
}

} // namespace

void Races::start() {
    if (!is_enabled()) return;
    const LaunchState &launch = block_.launch();
    clocks_.start(launch.first_block + uint32_t(block_.index()), size_t(block_.warps()));
    shared_cells_.resize((block_.shared_bytes() + WORD - 1) / WORD);
    released_.clear();
    reads_.lanes = 0;
    found_ = {};
    seen_ = nullptr;
}

// ---- accesses ------------------------------------------------------------------------------------------------------

Races::Event Races::event(const Warp &warp, const Instr &in, uint8_t order, Mask active, uint64_t bytes, Access access,
                          const uint64_t *address) const {
    Event event = {warp, in, access, order, active, bytes, address};
    event.now.block = clocks_.block();
    event.now.time = clocks_.time(warp.index());
    event.block_barrier = clocks_.barrier();
    event.warp_barrier = std::max(clocks_.barrier(), clocks_.barrier(warp.index()));
    event.now.warp = uint32_t(warp.index()) & (WARPS_MOST - 1);
    event.now.line = uint32_t(in.form->source->line) & ((1u << LINE_BITS) - 1);
    event.now.order = order & 3u;
    return event;
}

void Races::shared_access(Warp &warp, const Instr &in, uint8_t order, Mask active, uint64_t bytes, Access access,
                          const uint64_t *offset) {
    learn();
    Event event = this->event(warp, in, order, active, bytes, access, offset);
    event.is_shared = true;
    event.first_block = clocks_.block();
    event.blocks = 1;
    check_lanes(event, [&](uint64_t word) -> Cell & { return shared_cells_[word]; });
    if (order & ORDER_STRONG) synchronise(event);
}

void Races::global_access(Warp &warp, const Instr &in, uint8_t order, Mask active, uint64_t bytes, Access access,
                          const uint64_t *address) {
    learn();
    Event event = this->event(warp, in, order, active, bytes, access, address);
    event.first_block = block_.launch().first_block;
    event.blocks = uint32_t(block_.config().grid.count());
    {
        LineLock lock;
        check_lanes(event, [&](uint64_t word) -> Cell & {
            lock.move_to(word * WORD);
            return *reinterpret_cast<Cell *>(memory_race_cell(word * WORD));
        });
    }
    if (order & ORDER_STRONG) synchronise(event);
}

void Races::host_access(Warp &warp, const Instr &in, Mask active, uint64_t bytes, Access access,
                        const uint64_t *address) {
    learn();
    if (in.order & ORDER_STRONG) synchronise(event(warp, in, in.order, active, bytes, access, address));
}

template <class CellAt> void Races::check_lanes(Event &event, CellAt &&cell_at) {
    for (Mask left = event.active; left != 0; left &= left - 1) {
        event.lane = __builtin_ctz(left);
        event.now.lanes = left & -left;
        uint64_t first = event.address[event.lane], end = first + event.bytes;
        for (uint64_t word = first / WORD; word * WORD < end; word++) {
            uint64_t from = std::max(first, word * WORD) - word * WORD, to = std::min(end - word * WORD, WORD);
            event.now.bytes = ((1u << to) - (1u << from)) & 15;
            check(cell_at(word), word, event);
        }
    }
}

void Races::check(Cell &cell, uint64_t word, const Event &event) {
    Mask writers = is_before(cell.write, event) ? 0 : unordered(cell.write, event);
    bool is_disputed = false;
    if (writers != 0 && clash(cell.write, writers, event) && !is_same_store(cell.write, writers, word, event)) {
        // Lanes of a warp may dispute a word of shared memory that nobody reads: CUB puts there what it discards.
        is_disputed = event.is_shared && event.access == Access::store && cell.write.warp == event.now.warp;
        if (!is_disputed) fail(cell.write, writers, event, "writes");
    }
    if (cell.write.is_disputed && event.access != Access::store && is_live(cell.write, event) &&
        (cell.write.bytes & event.now.bytes) != 0) {
        fail(cell.write, cell.write.lanes, event, "and others of its warp write in no order");
    }
    Mask readers = is_before(cell.read, event) ? 0 : unordered(cell.read, event);
    if (event.access == Access::load) {
        remember(cell.read, event, readers == 0);
        return;
    }
    if (readers != 0 && has_depended(cell.read, event)) readers = 0;
    // An atomic operation may be the one that such a load guessed for.
    bool is_checked_guess = !event.is_shared && event.access == Access::atomic;
    if (readers != 0 && !is_checked_guess && clash(cell.read, readers, event)) {
        fail(cell.read, readers, event, "reads");
    }
    remember(cell.write, event, writers == 0);
    if (is_disputed) cell.write.is_disputed = 1;
    if (readers == 0) cell.read.lanes = 0; // who is ordered behind this write is ordered behind those reads
}

// Whether the record is of this launch and, in shared memory, of this block.
bool Races::is_live(const Record &record, const Event &event) {
    return record.lanes != 0 && record.block - event.first_block < event.blocks;
}

// Whether barriers order the record's access before the event, or it is of no account.
bool Races::is_before(const Record &record, const Event &event) {
    if (!is_live(record, event)) return true;
    if (record.block != event.now.block) return false;
    if (record.warp != event.now.warp) return record.time <= event.block_barrier;
    return record.time <= event.warp_barrier || record.lanes == event.now.lanes;
}

// The lanes of a record whose accesses are not known to be ordered before the event.
Mask Races::unordered(const Record &record, const Event &event) const {
    if (are_strong(record, event)) return record.lanes; // no race, so that nobody needs to know
    return clocks_.unordered(record.block, int(record.warp), record.lanes, record.time, int(event.now.warp),
                             event.lane);
}

bool Races::are_strong(const Record &record, const Event &event) {
    const Record &now = event.now;
    return (record.order & now.order & (record.block == now.block ? ORDER_STRONG : ORDER_DEVICE)) != 0;
}

// Whether accesses that nothing orders are a race.
bool Races::clash(const Record &record, Mask others, const Event &event) {
    if ((record.bytes & event.now.bytes) == 0 || are_strong(record, event)) return false;
    // A plain load may be the guess that a loop around an atomic operation begins with, which the operation checks.
    if (!event.is_shared && event.access == Access::load && (record.order & ORDER_STRONG) != 0) return false;
    return !record.is_split || others == record.lanes; // else the bytes may be those of the other lanes
}

// Whether what another block read is before this block's write because this one waited for what that one wrote
// afterwards. No fence is needed: what it wrote cannot have depended on what was not read yet.
bool Races::has_depended(const Record &read, const Event &event) const {
    return read.block != event.now.block && seen_ != nullptr && seen_->time(read.block, 0, 0) >= read.time;
}

// Whether the record is of what other lanes do by the very same store, and they write the same.
bool Races::is_same_store(const Record &record, Mask others, uint64_t word, const Event &event) {
    const Record &now = event.now;
    if (event.access != Access::store || event.in.form->row->name != std::string_view("st") ||
        record.block != now.block || record.warp != now.warp || record.time != now.time || record.line != now.line ||
        (others & ~event.active) != 0) {
        return false;
    }
    for (Mask left = others; left != 0; left &= left - 1) {
        int other = __builtin_ctz(left);
        uint64_t mine = event.address[event.lane], theirs = event.address[other];
        uint64_t first = std::max({mine, theirs, word * WORD});
        uint64_t end = std::min({mine + event.bytes, theirs + event.bytes, (word + 1) * WORD});
        for (uint64_t at = first; at < end; at++) {
            uint8_t my_byte = stored_byte(event.warp, event.in, event.bytes, event.lane, at - mine);
            if (my_byte != stored_byte(event.warp, event.in, event.bytes, other, at - theirs)) return false;
        }
    }
    return true;
}

// Of accesses that nothing orders the first is kept, since it is rather the later ones' threads that go on.
void Races::remember(Record &record, const Event &event, bool is_before) {
    const Record &now = event.now;
    if (record.lanes != 0 && record.block == now.block && record.warp == now.warp && record.time == now.time) {
        if (record.bytes != now.bytes && record.lanes != now.lanes) record.is_split = 1;
        if (now.order == 0 || record.order != 0) record.line = now.line;
        record.lanes |= now.lanes;
        record.bytes |= now.bytes;
        record.order &= now.order;
    } else if (is_before) {
        record = now;
    }
}

void Races::fail(const Record &record, Mask others, const Event &event, const char *what) const {
    const LaunchState &launch = block_.launch();
    const char *names[] = {"load", "store", "atomic operation"};
    char where[64];
    snprintf(where, sizeof where, event.is_shared ? " bytes at offset %llu" : " bytes at address 0x%llx",
             (unsigned long long)event.address[event.lane]);
    std::string text = event.is_shared ? "race in shared memory: " : "race in global memory: ";
    text += names[int(event.access)] + std::string(" of ") + std::to_string(event.bytes) + where;
    if (!event.is_shared) text += " (" + memory_describe(event.address[event.lane], event.bytes) + ")";
    text += ", which";
    if (!event.is_shared) text += " block " + place_text(launch.config.grid, record.block - launch.first_block) + ",";
    uint64_t thread = uint64_t(record.warp) * LANES + uint64_t(__builtin_ctz(others));
    text += " thread " + place_text(launch.config.block, thread) + " " + what + " at " +
            instruction_at(*launch.kernel->module, record.line);
    throw Trap{Fault::failure, text, event.lane};
}

// ---- what strong accesses order ------------------------------------------------------------------------------------

void Races::synchronise(const Event &event) {
    if (event.access != Access::load) release(event);
    if (event.access == Access::store) {
        if (!event.is_shared) pass_on(event);
        return;
    }
    reads_.warp = event.warp.index();
    reads_.lanes = event.active;
    reads_.is_shared = event.is_shared;
    // An atomic operation acquires by itself: programs rely on that where the last of several blocks goes on.
    reads_.is_acquire = event.access == Access::atomic || (event.order & ORDER_ACQUIRE) != 0;
    reads_.bytes = event.bytes;
    std::copy_n(event.address, LANES, reads_.address);
}

void Races::release(const Event &event) {
    int warp = event.warp.index();
    if (event.order & ORDER_RELEASE) clocks_.release(warp, event.active, event.warp.live(), scope_of(event.order));
    if (!clocks_.has_released()) return;
    for (Mask left = event.active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        View::Pointer in_block = clocks_.released(warp, lane, Scope::block), everywhere;
        if (!event.is_shared && (event.order & ORDER_DEVICE) != 0)
            everywhere = clocks_.released(warp, lane, Scope::device);
        uint64_t first = event.address[lane], end = first + event.bytes;
        for (uint64_t word = first / WORD; word * WORD < end; word++) {
            if (everywhere != nullptr) block_.launch().released.add(word, everywhere);
            if (in_block != everywhere) released_.add(word, in_block);
        }
    }
}

// What the block has done so far and has seen is before what others do that see the written value.
void Races::pass_on(const Event &event) {
    auto own = std::make_shared<View>(std::vector<View::Entry>{{clocks_.block(), WHOLE_BLOCK, clocks_.now()}});
    View::Pointer view = View::join(seen_, own);
    for (Mask left = event.active; left != 0; left &= left - 1) {
        uint64_t first = event.address[__builtin_ctz(left)];
        for (uint64_t word = first / WORD; word * WORD < first + event.bytes; word++)
            block_.launch().passed_on.add(word, view);
    }
}

// The lanes that made strong reads have got their values: they learn what was released before these were written.
void Races::learn() {
    if (reads_.lanes == 0) return;
    Mask lanes = std::exchange(reads_.lanes, 0);
    const Released &everywhere = block_.launch().released, &passed_on = block_.launch().passed_on;
    if (everywhere.is_empty() && released_.is_empty() && passed_on.is_empty()) return;
    for (Mask left = lanes; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        look_up(reads_.address[lane]);
        if (found_.view == nullptr) continue;
        if (reads_.is_acquire) {
            clocks_.acquire(reads_.warp, lane, found_.view);
        } else {
            clocks_.see(reads_.warp, lane, found_.view);
        }
    }
}

// What was released before the words there were written. Who waits looks up the same again and again.
void Races::look_up(uint64_t address) {
    const Released &everywhere = block_.launch().released, &passed_on = block_.launch().passed_on;
    uint64_t version = everywhere.version() + released_.version() + passed_on.version();
    if (address == found_.address && version == found_.version) return;
    found_ = {address, version, nullptr};
    for (uint64_t word = address / WORD; word * WORD < address + reads_.bytes; word++) {
        found_.view = View::join(found_.view, released_.find(word));
        if (reads_.is_shared) continue;
        found_.view = View::join(found_.view, everywhere.find(word));
        seen_ = View::join(seen_, passed_on.find(word));
    }
}

void Races::block_barrier() {
    if (!is_enabled()) return;
    learn();
    clocks_.block_barrier();
}

void Races::warp_barrier(const Warp &warp, Mask lanes) {
    if (!is_enabled()) return;
    learn();
    clocks_.warp_barrier(warp.index(), lanes, warp.live());
}

void Races::fence(const Warp &warp, const Instr &in, Mask lanes) {
    if (!is_enabled()) return;
    learn();
    clocks_.fence(warp.index(), lanes, warp.live(), scope_of(in.order));
}

} // namespace vgpu
