// Races: two threads access the same bytes, one of them writes, not both by atomic or other strong operations, and
// nothing orders them.
//
// Every 4 bytes of shared and device memory have a cell that tells who wrote and who read them last; an access is
// compared with it. What orders threads is in clocks.h.
//
// What is not found: races in memory of the host, and between kernels that run at the same time; all but one of several
// accesses to a cell that nothing orders (the first is kept); some of those to different bytes of a cell; a missing
// fence behind an atomic operation that acquires; too narrow a scope of a fence that acquires. Barriers that only some
// of a block's threads take part in order all of it. Asynchronous copies count as made when they are issued.
#ifndef SHOAL_TESTS_VGPU_EXEC_RACES_H
#define SHOAL_TESTS_VGPU_EXEC_RACES_H

#include <cstdint>
#include <vector>

#include "tests/vgpu/exec/clocks.h"
#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu {

// A read or write that later accesses to its cell are compared with. Of several lanes of a warp at the same time, all.
struct Record {
    uint32_t block;     // counted over all launches
    uint32_t time;      // of the warp: see Clocks
    Mask lanes;         // 0: there was none
    uint32_t line : 19; // in the PTX, its last bits
    uint32_t warp : 5;
    uint32_t bytes : 4;       // those of the cell
    uint32_t order : 2;       // ORDER_STRONG, ORDER_DEVICE
    uint32_t is_split : 1;    // the lanes accessed different bytes
    uint32_t is_disputed : 1; // nothing orders what the lanes wrote
};

struct Cell {
    Record write, read;
};
static_assert(sizeof(Cell) == RACE_CELL_BYTES);

// The race checker of a block.
class Races {
  public:
    explicit Races(Block &block) : block_(block) {}

    void start(); // a new block begins
    // Before the active lanes access `bytes` each: at an offset in shared memory, or at an address in device memory.
    // `order` is mostly the instruction's.
    void shared_access(Warp &warp, const Instr &in, uint8_t order, Mask active, uint64_t bytes, Access access,
                       const uint64_t *offset);
    void global_access(Warp &warp, const Instr &in, uint8_t order, Mask active, uint64_t bytes, Access access,
                       const uint64_t *address);
    // Before they access memory of the host, where races are not looked for but flags may be.
    void host_access(Warp &warp, const Instr &in, Mask active, uint64_t bytes, Access access, const uint64_t *address);

    // What orders threads.
    void block_barrier();                                      // threads of the block met
    void warp_barrier(const Warp &warp, Mask lanes);           // lanes of a warp met
    void fence(const Warp &warp, const Instr &in, Mask lanes); // membar, fence

  private:
    // What an instruction does, and which of its lanes is looked at.
    struct Event {
        const Warp &warp;
        const Instr &in;
        Access access;
        uint8_t order;
        Mask active;
        uint64_t bytes;          // of each lane
        const uint64_t *address; // of each lane, or its offset in shared memory
        bool is_shared = false;
        uint32_t first_block = 0, blocks = 0;         // records of others are old
        uint32_t block_barrier = 0, warp_barrier = 0; // when the last ones were
        int lane = 0;                                 // that is being looked at
        Record now = {};                              // what it does to the cell
    };
    // Strong reads that are being made. Once they have got their values, which is when the block does anything else,
    // their lanes learn what was released before these were written.
    struct Reads {
        int warp = 0;
        Mask lanes = 0;
        bool is_shared = false, is_acquire = false;
        uint64_t bytes = 0;
        uint64_t address[LANES];
    };
    struct Found {
        uint64_t address = 0, version = 0;
        View::Pointer view;
    };

    Event event(const Warp &warp, const Instr &in, uint8_t order, Mask active, uint64_t bytes, Access access,
                const uint64_t *address) const;
    template <class CellAt> void check_lanes(Event &event, CellAt &&cell_at);
    void check(Cell &cell, uint64_t word, const Event &event);
    static bool is_before(const Record &record, const Event &event);
    Mask unordered(const Record &record, const Event &event) const;
    static bool are_strong(const Record &record, const Event &event);
    static bool clash(const Record &record, Mask others, const Event &event);
    static bool is_live(const Record &record, const Event &event);
    bool has_depended(const Record &read, const Event &event) const;
    static bool is_same_store(const Record &record, Mask others, uint64_t word, const Event &event);
    static void remember(Record &record, const Event &event, bool is_before);
    [[noreturn]] void fail(const Record &record, Mask others, const Event &event, const char *what) const;
    void synchronise(const Event &event);
    void release(const Event &event);
    void pass_on(const Event &event);
    void learn();
    void look_up(uint64_t address);

    Block &block_;
    Clocks clocks_;
    std::vector<Cell> shared_cells_;
    Released released_; // through shared memory, and to this block only
    Reads reads_;
    Found found_;        // by the last look_up()
    View::Pointer seen_; // what other blocks had done before they wrote what this one has read by strong loads
};

} // namespace vgpu

#endif
