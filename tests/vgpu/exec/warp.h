// A warp: 32 lanes that share a program and, where they have not diverged, each instruction.
//
// Lanes that are at the same place form a group, which executes as one. A branch that lanes take differently splits the
// group; groups that arrive at the same place become one again. Of several ready groups the one that is deepest in
// calls and then the furthest behind runs, so that those ahead are met at the end of a branch or loop; one that keeps
// the others waiting for long has to take turns, so that a lane may spin on what another lane will do.
#ifndef SHOAL_TESTS_VGPU_EXEC_WARP_H
#define SHOAL_TESTS_VGPU_EXEC_WARP_H

#include <memory>
#include <vector>

#include "tests/vgpu/exec/code.h"
#include "tests/vgpu/exec/instr.h"
#include "tests/vgpu/exec/report.h"

namespace vgpu {

class Block;

// The registers of a function that lanes have entered.
struct Frame {
    const Code *code = nullptr;
    std::unique_ptr<uint8_t[]> storage;
    uint8_t *registers = nullptr; // aligned, in storage
    Frame *caller = nullptr;
    const Instr *call = nullptr;
    uint32_t return_to = 0;
    int depth = 0;
    uint64_t local_base = 0; // in each lane's local memory
    Mask lanes = 0;          // that are in it or in what it called
};

enum class Wait : uint8_t {
    none,
    members, // for the other lanes of a warp instruction's membermask
    barrier,
};

struct Group {
    Frame *frame = nullptr;
    uint32_t pc = 0; // of the next instruction; of the instruction itself where it waits for members
    Mask mask = 0;
    Wait wait = Wait::none;
    Mask members = 0;
    int barrier = -1;
    uint64_t ran_at = 0; // when it was last chosen

    // As if it had never waited, so that it can become one with others.
    void go_on() {
        wait = Wait::none;
        members = 0;
        barrier = -1;
    }
};

// Lanes that execute a warp instruction together; they may do so at different places in the program.
struct Part {
    uint8_t *registers;
    const Instr *in;
    Mask mask;
};

enum class Access : uint8_t { load, store, atomic };
constexpr uint32_t MAX_ACCESS_BYTES = 32; // of one lane, with all elements of a vector

// CUB and Thrust read elements of shared memory behind the last one and shuffle from lanes that are not there, which
// they then do not use. They are known by the folders of their source files.
bool reads_ahead(const Frame &frame, const Instr &in);

class Warp : public WarpRegisters {
  public:
    Warp(Block &block, int index, Mask lanes);

    // Puts all lanes at the start of the kernel.
    void start();
    // Executes until no group is ready, or about `slice` thread-instructions. A Trap leaves the place in the running
    // group.
    void run(uint64_t slice);
    bool is_ready() const;
    bool has_exited() const { return live_ == 0; }

    Block &block() const { return block_; }
    int index() const { return index_; }
    Mask lanes_at_start() const { return lanes_; }
    Mask live() const { return live_; }
    uint64_t executed() const { return executed_; }
    bool has_yielded() const { return has_yielded_; }
    int thread(int lane) const { return index_ * LANES + lane; } // in the block
    const std::vector<Group> &groups() const { return groups_; }
    const Frame &frame() const { return *running_.frame; }
    // The instruction that is being executed, and the lanes that are there.
    const Instr &current() const { return running_.frame->code->instrs[running_.pc - 1]; }
    Mask running_lanes() const { return running_.mask; }

    // ---- for instructions that control the flow ----
    void branch(uint32_t target, Mask active);
    void branch_indexed(const Instr &in, Mask active);
    void call(const Instr &in, Mask active);
    void ret(Mask active);
    void exit(Mask active);
    void yield(); // others go first

    // ---- for instructions that involve other lanes ----
    // The parts that execute it now, at least `active` of this one; null: the lanes were made to wait for the others.
    const std::vector<Part> *meet(const Instr &in, int members_operand, Mask active);
    void wait_at_barrier(int barrier, Mask active);
    Mask waiting_at(int barrier) const;
    // Lets the lanes that wait at a barrier go on; done(group, in) sets their results first.
    template <class Done> void release(int barrier, Done &&done) {
        for (Group &group : groups_) {
            if (group.wait != Wait::barrier || group.barrier != barrier) continue;
            done(group, group.frame->code->instrs[group.pc - 1]);
            group.go_on();
        }
    }

    // ---- for instructions that access memory (access.cc) ----
    // Where the bytes of each active lane are. Addresses are those of operand `operand` plus the instruction's offset,
    // in the space that the function is named for. Throws Trap.
    void locate_generic(const Instr &in, int operand, Mask active, uint32_t bytes, Access access, uint8_t **where);
    void locate_shared(const Instr &in, int operand, Mask active, uint32_t bytes, Access access, uint8_t **where);

    uint64_t address_of(const Instr &in, int operand, int lane) const;
    // `bytes` of shared memory at an offset or at a generic address.
    uint8_t *shared_span(int lane, uint64_t offset, uint64_t bytes);
    // Copies between shared and global memory; what is `filled` beyond the `bytes` becomes zero.
    void copy_to_shared(const Instr &in, int lane, uint64_t to, uint64_t from, uint64_t bytes, uint64_t filled);
    // The mbarrier in shared memory that counts a copy.
    uint8_t *barrier_of_copy(const Instr &in, int lane, uint64_t offset);
    void copy_from_shared(const Instr &in, int lane, uint64_t to, uint64_t from, uint64_t bytes);

  private:
    Frame *new_frame(const Code &code, Frame *caller, uint64_t local_base);
    void release_frame(Frame *frame, Mask lanes);
    void fill_special(Frame &frame);
    bool pick();
    void merge_groups();
    int choose();
    void execute();
    void park(Group group);
    void leave(Mask lanes);     // the running group goes on without them
    void stop() { limit_ = 0; } // leaves execute() after this instruction
    void set_running(const Group &group);
    void begin_turn();
    bool is_turn_over();
    void update_limit();
    void copy_arguments(const Instr &in, const Code &callee, uint64_t callee_base, Mask active);
    void copy_results(const Frame &callee, Mask active);
    const Code &callee(const Instr &in, Mask active, Mask *same);

    void gather_addresses(const Instr &in, int operand, uint64_t *address) const;
    void locate_each(const Instr &in, const uint64_t *address, Mask active, uint32_t bytes, Access access,
                     uint8_t **where);
    uint8_t *locate_local(const Instr &in, int lane, uint64_t offset, uint32_t bytes, Access access);
    uint8_t *locate_shared_window(int lane, uint64_t offset, uint32_t bytes, Access access);
    void copy_span(const Instr &in, int lane, uint64_t shared, uint64_t global, uint64_t bytes, bool to_shared);
    void check_copy(const Instr &in, int lane, uint64_t offset, uint64_t shared_bytes, Access shared_access,
                    uint64_t global, uint64_t global_bytes, Access global_access);
    void check_shared(const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *offset);
    void check_global(const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *address);
    void check_host(const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *address);
    void check_written(const char *space, const Instr &in, Mask active, uint32_t bytes, Access access,
                       uint8_t **shadow);

    Block &block_;
    int index_;
    Mask lanes_, live_ = 0;
    Group running_;
    uint32_t limit_ = 0;         // execute() goes on below it
    uint64_t running_count_ = 0; // lanes in running_.mask
    std::vector<Group> groups_;  // all but the running one
    std::vector<Part> parts_;
    std::vector<std::unique_ptr<Frame>> frames_;
    std::vector<Frame *> free_frames_;
    uint64_t executed_ = 0, slice_end_ = 0, picks_ = 0;
    uint64_t turn_begin_ = 0, turn_end_ = 0, changes_ = 0; // of the running group's turn
    bool has_yielded_ = false, rotate_ = false;
};

} // namespace vgpu

#endif
