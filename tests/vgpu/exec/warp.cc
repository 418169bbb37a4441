// Groups of lanes: how they run, split, wait and meet.
#include "tests/vgpu/exec/warp.h"

#include <algorithm>

#include "tests/vgpu/exec/block.h"

namespace vgpu {
namespace {

// Thread-instructions that a group may take in one go while others of its warp are ready: one that changes memory and
// one that does not, which may be waiting for what the others will do.
constexpr uint64_t TURN = 200000, IDLE_TURN = 10000;
constexpr uint32_t NO_LIMIT = ~uint32_t{0};

uint64_t lane_count(Mask mask) { return uint64_t(__builtin_popcount(mask)); }

bool at_same_place(const Group &a, const Group &b) {
    return a.frame == b.frame && a.pc == b.pc && a.wait == b.wait && a.members == b.members && a.barrier == b.barrier;
}

} // namespace

Warp::Warp(Block &block, int index, Mask lanes) : block_(block), index_(index), lanes_(lanes) {
    groups_.reserve(LANES);
    parts_.reserve(LANES);
}

void Warp::start() {
    groups_.clear();
    live_ = lanes_;
    carry = 0;
    executed_ = picks_ = 0;
    running_ = {};
    Group all;
    all.frame = new_frame(block_.code(), nullptr, 0);
    all.frame->lanes = lanes_;
    all.mask = lanes_;
    groups_.push_back(all);
}

bool Warp::is_ready() const {
    return std::any_of(groups_.begin(), groups_.end(), [](const Group &g) { return g.wait == Wait::none; });
}

void Warp::run(uint64_t slice) {
    slice_end_ = executed_ + slice;
    has_yielded_ = false;
    while (executed_ < slice_end_ && pick()) {
        execute();
        if (running_.mask != 0) groups_.push_back(running_);
        running_.mask = 0;
    }
}

void Warp::merge_groups() {
    for (size_t i = 0; i < groups_.size(); i++) {
        for (size_t k = groups_.size() - 1; k > i; k--) {
            if (!at_same_place(groups_[i], groups_[k])) continue;
            groups_[i].mask |= groups_[k].mask;
            groups_[k] = groups_.back();
            groups_.pop_back();
        }
    }
}

// The index of the ready group that goes next; -1: none.
int Warp::choose() {
    uint64_t shuffled = block_.shuffled();
    int best = -1, ready = 0;
    for (int i = 0; i < int(groups_.size()); i++) {
        const Group &group = groups_[size_t(i)];
        if (group.wait != Wait::none) continue;
        ready++;
        if (best < 0) {
            best = i;
            continue;
        }
        const Group &other = groups_[size_t(best)];
        bool is_first;
        if (shuffled != 0) {
            is_first = (shuffled >> (i & 31) & 1) != 0;
        } else if (rotate_) {
            is_first = group.ran_at < other.ran_at;
        } else {
            is_first = group.frame->depth != other.frame->depth ? group.frame->depth > other.frame->depth
                                                                : group.pc < other.pc;
        }
        if (is_first) best = i;
    }
    return best;
}

bool Warp::pick() {
    if (groups_.size() > 1) merge_groups();
    int best = choose();
    if (best < 0) return false;
    rotate_ = false;
    Group chosen = groups_[size_t(best)];
    groups_[size_t(best)] = groups_.back();
    groups_.pop_back();
    chosen.ran_at = ++picks_;
    // Shuffled, some lanes of a group may lag behind the others.
    Mask ahead = block_.split(chosen.mask);
    if (ahead != chosen.mask) {
        Group behind = chosen;
        behind.mask &= ~ahead;
        groups_.push_back(behind);
        chosen.mask = ahead;
    }
    set_running(chosen);
    return true;
}

void Warp::set_running(const Group &group) {
    running_ = group;
    running_count_ = lane_count(group.mask);
    frame_ = group.frame->registers;
    bool has_rivals = is_ready(); // the running group is not in groups_
    if (has_rivals) {
        begin_turn();
    } else {
        turn_end_ = ~uint64_t{0};
    }
    update_limit();
}

void Warp::begin_turn() {
    turn_begin_ = executed_;
    turn_end_ = executed_ + block_.turn(IDLE_TURN);
    changes_ = block_.changes();
}

bool Warp::is_turn_over() {
    if (executed_ < turn_end_) return false;
    if (changes_ == block_.changes() || executed_ - turn_begin_ >= block_.turn(TURN)) return true;
    changes_ = block_.changes();
    turn_end_ = executed_ + block_.turn(IDLE_TURN);
    return false;
}

// The running group stops where another one is, to become one with it.
void Warp::update_limit() {
    limit_ = NO_LIMIT;
    for (const Group &group : groups_) {
        if (group.frame == running_.frame && group.wait == Wait::none && group.pc > running_.pc) {
            limit_ = std::min(limit_, group.pc);
        }
    }
}

void Warp::execute() {
    const Instr *code = running_.frame->code->instrs.data();
    while (running_.pc < limit_) {
        const Instr &in = code[running_.pc++];
        Mask active = running_.mask & (*lanes<Mask>(in.guard) ^ in.guard_flip);
        executed_ += running_count_;
        if (active != 0) in.run(*this, in, active);
    }
}

void Warp::park(Group group) { groups_.push_back(group); }

void Warp::leave(Mask lanes) {
    running_.mask &= ~lanes;
    running_count_ = lane_count(running_.mask);
    if (running_.mask == 0) stop();
}

void Warp::yield() {
    has_yielded_ = rotate_ = true;
    slice_end_ = executed_;
    stop();
}

// ---- branches ------------------------------------------------------------------------------------------------------

void Warp::branch(uint32_t target, Mask active) {
    bool is_backward = target < running_.pc;
    if (active == running_.mask) {
        running_.pc = target;
        if (is_backward && executed_ >= std::min(turn_end_, slice_end_)) {
            rotate_ = is_turn_over();
            if (rotate_ || executed_ >= slice_end_) stop();
        }
        return;
    }
    Group taken = running_;
    taken.pc = target;
    taken.mask = active;
    park(taken);
    leave(active);
    if (turn_end_ == ~uint64_t{0}) begin_turn();
    if (is_backward) {
        rotate_ = is_turn_over();
        stop();
    } else if (target > running_.pc) {
        limit_ = std::min(limit_, target);
    }
}

void Warp::branch_indexed(const Instr &in, Mask active) {
    const uint32_t *index = lanes<uint32_t>(in.at[0]);
    const std::vector<int> &targets = in.form->source->targets;
    while (active != 0) {
        int lane = __builtin_ctz(active);
        if (index[lane] >= targets.size()) {
            throw Trap{Fault::illegal_instruction, "a branch beyond its table of " + std::to_string(targets.size()),
                       lane};
        }
        Mask same = 0;
        for (int l = lane; l < LANES; l++)
            same |= Mask{(active >> l & 1) != 0 && index[l] == index[lane]} << l;
        active &= ~same;
        Group group = running_;
        group.pc = uint32_t(targets[index[lane]]);
        group.mask = same;
        park(group);
        leave(same);
    }
    stop();
}

void Warp::exit(Mask active) {
    for (Frame *frame = running_.frame; frame != nullptr;) {
        Frame *caller = frame->caller;
        release_frame(frame, active);
        frame = caller;
    }
    live_ &= ~active;
    leave(active);
    // Those that wait for lanes that are no more look again.
    for (Group &group : groups_) {
        if (group.wait == Wait::members) group.go_on();
    }
    stop();
    block_.lanes_exited();
}

// ---- meeting other lanes -------------------------------------------------------------------------------------------

const std::vector<Part> *Warp::meet(const Instr &in, int members_operand, Mask active) {
    const Mask *wanted = lanes<Mask>(in.at[members_operand]);
    Mask members = wanted[__builtin_ctz(active)];
    Mask same = 0;
    for (int l = 0; l < LANES; l++) {
        if ((active >> l & 1) == 0) continue;
        if ((wanted[l] >> l & 1) == 0) {
            throw Trap{Fault::failure, "a warp instruction whose member mask leaves out the thread itself", l};
        }
        same |= Mask{wanted[l] == members} << l;
    }
    if (same != active) { // the others have a meeting of their own
        Group others = running_;
        others.pc--;
        others.mask = active & ~same;
        park(others);
        leave(others.mask);
        stop(); // they go first, and become one with these behind the instruction
        active = same;
    }

    Mask present = active;
    parts_.assign(1, {frame_, &in, active});
    for (const Group &group : groups_) {
        if (group.wait != Wait::members || group.members != members) continue;
        const Instr &theirs = group.frame->code->instrs[group.pc];
        if (theirs.run != in.run) continue;
        present |= group.mask;
        parts_.push_back({group.frame->registers, &theirs, group.mask});
    }
    if ((members & live_ & ~present) != 0) {
        Group waiting = running_;
        waiting.pc--;
        waiting.mask = active;
        waiting.wait = Wait::members;
        waiting.members = members;
        park(waiting);
        leave(active);
        return nullptr;
    }
    if (parts_.size() > 1) {
        for (Group &group : groups_) {
            if (group.wait != Wait::members || group.members != members) continue;
            if (group.frame->code->instrs[group.pc].run != in.run) continue;
            group.go_on();
            group.pc++;
        }
        stop(); // they may be at the same place now
    }
    return &parts_;
}

void Warp::wait_at_barrier(int barrier, Mask active) {
    Group waiting = running_;
    waiting.mask = active;
    waiting.wait = Wait::barrier;
    waiting.barrier = barrier;
    park(waiting);
    leave(active);
    stop();
}

Mask Warp::waiting_at(int barrier) const {
    Mask waiting = 0;
    for (const Group &group : groups_) {
        if (group.wait == Wait::barrier && group.barrier == barrier) waiting |= group.mask;
    }
    return waiting;
}

} // namespace vgpu
