// How the warps of a block take turns, and meet at barriers.
#include "tests/vgpu/exec/block.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/vgpu/exec/engine_model.h"

namespace vgpu {
namespace {

constexpr uint64_t WARP_SLICE = 200000;  // thread-instructions that a warp takes in one go
constexpr uint64_t BLOCK_SLICE = 500000; // and a block, before it is asked whether it changes anything
constexpr int SLICES_MOST = 400;         // of a block, before another one may go on
constexpr uint64_t LEAST_STACK = 16384;  // of a thread, for calls of which it is not known how deep they go
constexpr uint8_t POISON = 0xcd;         // in memory that nothing was written to

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

Dim3 position_in(const Dim3 &size, uint64_t index) {
    return {uint32_t(index % size.x), uint32_t(index / size.x % size.y), uint32_t(index / size.x / size.y)};
}

// The result of a reduction over the threads that met at a barrier, of whose predicates `votes` were true.
void set_barrier_result(const Instr &in, uint8_t *registers, Mask lanes, uint32_t votes, uint32_t voters) {
    const Form &form = *in.form;
    if (!form.has("red")) return;
    if (form.has("popc")) {
        auto *d = reinterpret_cast<uint32_t *>(registers + in.at[0]);
        for (Mask left = lanes; left != 0; left &= left - 1)
            d[__builtin_ctz(left)] = votes;
        return;
    }
    bool result = form.has("and") ? votes == voters : votes != 0;
    auto *p = reinterpret_cast<Mask *>(registers + in.at[0]);
    *p = (*p & ~lanes) | (result ? lanes : 0);
}

// The instruction that a group executes next, or waits at.
const Instr &next_instruction(const Group &group) {
    return group.frame->code->instrs[group.wait == Wait::barrier ? group.pc - 1 : group.pc];
}

std::string instruction_text(const Instr &in) {
    return "PTX line " + std::to_string(in.form->source->line) + ": " + in.form->source->text;
}

} // namespace

std::string place_text(const Dim3 &size, uint64_t index) {
    Dim3 at = position_in(size, index);
    return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) + ")";
}

Block::Block(const LaunchState &launch) : launch_(launch) {
    const Code &code = *launch.code;
    uint64_t threads = launch.config.block.count();
    dynamic_shared_at_ = round_up(code.static_shared_bytes, code.dynamic_shared_align);
    shared_bytes_ = dynamic_shared_at_ + launch.config.dynamic_shared_bytes;
    local_bytes_ = round_up(code.local_bytes, STACK_ALIGN) + code.calls.bytes;
    if (code.calls.is_unbounded) local_bytes_ += std::max(LEAST_STACK, launch.config.stack_bytes);
    shared_.resize(shared_bytes_ + sizeof(uint64_t) * 2);
    local_.resize(local_bytes_ * threads);
    if (checks_enabled() & CHECK_INIT) {
        shared_shadow_.resize(shared_.size());
        local_shadow_.resize(local_.size());
    }
    for (uint64_t first = 0; first < threads; first += LANES) {
        uint64_t count = std::min<uint64_t>(threads - first, LANES);
        Mask lanes = count == LANES ? ALL_LANES : (Mask{1} << count) - 1;
        warps_.push_back(std::make_unique<Warp>(*this, int(first / LANES), lanes));
    }
}

void Block::start(uint64_t index) {
    index_ = index;
    position_ = position_in(launch_.config.grid, index);
    random_ =
        shuffle_seed() == 0 ? 0 : (shuffle_seed() * 0x9e3779b97f4a7c15ull ^ (index + 1) * 0xd1342543de82ef95ull) | 1;
    std::fill(shared_.begin(), shared_.end(), POISON);
    std::fill(local_.begin(), local_.end(), POISON);
    std::fill(shared_shadow_.begin(), shared_shadow_.end(), uint8_t{0});
    std::fill(local_shadow_.begin(), local_shadow_.end(), uint8_t{0});
    for (Barrier &barrier : barriers_)
        barrier = {};
    races_.start();
    for (auto &warp : warps_)
        warp->start();
}

bool Block::run() {
    uint64_t slice_end = executed() + BLOCK_SLICE, changes = changes_;
    int slices = 0;
    while (launch_.fault.load(std::memory_order_relaxed) == Fault::none) {
        Round round = run_warps();
        if (round.has_exited) return true;
        if (!round.has_progressed) fail_stuck();
        uint64_t total = executed();
        if ((checks_enabled() & CHECK_LOOPS) != 0 && total > block_budget()) {
            fail_whole(Fault::timeout, "endless loop: a block took more than " + std::to_string(block_budget()) +
                                           " instructions; VGPU_BUDGET=n allows more");
        }
        if (round.has_yielded) return false;
        if (total < slice_end) continue;
        if (changes == changes_ || ++slices == SLICES_MOST) return false;
        changes = changes_;
        slice_end = total + BLOCK_SLICE;
    }
    return true;
}

Block::Round Block::run_warps() {
    Round round;
    size_t count = warps_.size(), first = size_t(shuffled() >> 8) % count;
    for (size_t i = 0; i < count; i++) {
        Warp &warp = *warps_[(first + i) % count];
        if (warp.is_ready()) {
            try {
                warp.run(turn(WARP_SLICE));
            } catch (const Trap &trap) {
                fail(warp, trap);
            } catch (const ptx::Error &problem) { // in a function that was called for the first time
                fail(warp, {Fault::illegal_instruction, problem.what(), __builtin_ctz(warp.running_lanes())});
            }
            round.has_progressed = true;
            round.has_yielded = round.has_yielded && warp.has_yielded();
        }
        round.has_exited = round.has_exited && warp.has_exited();
    }
    return round;
}

uint64_t Block::executed() const {
    uint64_t total = 0;
    for (const auto &warp : warps_)
        total += warp->executed();
    return total;
}

uint64_t Block::processor() const { return index_ % processors(); }
uint64_t Block::processors() const { return uint64_t(engine_model().processors); }

// ---- memory --------------------------------------------------------------------------------------------------------

uint8_t *Block::local_bytes(int thread, uint64_t offset, uint64_t bytes) {
    if (offset > local_bytes_ || bytes > local_bytes_ - offset) return nullptr;
    return local_.data() + uint64_t(thread) * local_bytes_ + offset;
}

uint8_t *Block::local_shadow(int thread, uint64_t offset) {
    return local_shadow_.data() + uint64_t(thread) * local_bytes_ + offset;
}

void Block::mark_local_written(int thread, uint64_t offset, uint64_t bytes) {
    if (!local_shadow_.empty()) memset(local_shadow(thread, offset), 1, bytes);
}

const Reach *Block::reach(const Instr &in, uint64_t address) {
    if (reaches_epoch_ != memory_epoch()) {
        reaches_epoch_ = memory_epoch();
        std::fill(std::begin(reaches_), std::end(reaches_), Reach{});
    }
    Reach &known = reaches_[(reinterpret_cast<uint64_t>(&in) / sizeof(Instr)) % REACHES];
    if (known.covers(address, 1) || memory_reach(device(), address, &known)) return &known;
    bool is_checked = (checks_enabled() & CHECK_BOUNDS) != 0;
    return !is_checked && memory_reach_anywhere(address, &known) ? &known : nullptr;
}

// ---- barriers ------------------------------------------------------------------------------------------------------

bool Block::is_aligned(const Frame &frame, uint32_t pc) const {
    const Form &form = *frame.code->instrs[pc].form;
    return form.row->name[3] == '\0' || form.has("aligned"); // "bar" is "barrier.aligned"
}

// All that come to a barrier have to expect the same number.
void Block::expect(Barrier &at, uint32_t expected, Mask active) const {
    const uint32_t all = uint32_t(warps()) * LANES;
    bool differs = (at.expected == 0 ? all : at.expected) != (expected == 0 ? all : expected);
    if (at.is_begun && differs) {
        throw Trap{Fault::failure, "barrier divergence: threads wait for different numbers of threads",
                   __builtin_ctz(active)};
    }
    at.is_begun = true;
    at.expected = std::max(at.expected, expected);
}

void Block::arrive_and_wait(Warp &warp, const Instr &in, int barrier, uint32_t expected, Mask active, uint32_t votes) {
    Barrier &at = barriers_[barrier];
    expect(at, expected, active);
    bool aligned = is_aligned(warp.frame(), uint32_t(&in - warp.frame().code->instrs.data()));
    at.votes += votes;
    at.voters += uint32_t(__builtin_popcount(active));
    at.is_aligned = at.is_aligned || aligned;
    warp.wait_at_barrier(barrier, active);
    if (complete(barrier)) release(barrier);
}

void Block::arrive(Warp &warp, int barrier, uint32_t expected, Mask active) {
    Barrier &at = barriers_[barrier];
    expect(at, expected, active);
    // A whole warp counts as 32 threads: its first stands for those that it lacks.
    at.arrived += uint32_t(__builtin_popcount(active));
    if ((active & warp.live() & -warp.live()) != 0) at.arrived += uint32_t(LANES - __builtin_popcount(warp.live()));
    if (complete(barrier)) release(barrier);
}

bool Block::complete(int barrier) {
    const Barrier &at = barriers_[barrier];
    uint32_t arrived = at.arrived;
    bool all = true, any = at.arrived != 0;
    for (const auto &warp : warps_) {
        Mask waiting = warp->waiting_at(barrier);
        any = any || waiting != 0;
        all = all && waiting == warp->live();
        // A thread waits for all of its warp first.
        if (waiting != 0 && waiting == warp->live()) arrived += LANES;
    }
    if (!any) return false;
    return at.expected == 0 ? all : arrived >= at.expected;
}

void Block::release(int barrier) {
    if (barriers_[barrier].is_aligned && (checks_enabled() & CHECK_BARRIERS) != 0) check_reconverged(barrier);
    races_.block_barrier();
    Barrier at = barriers_[barrier];
    barriers_[barrier] = {};
    for (auto &warp : warps_) {
        warp->release(barrier, [&](const Group &group, const Instr &in) {
            set_barrier_result(in, group.frame->registers, group.mask, at.votes, at.voters);
        });
    }
}

// Lanes of one warp that wait at different instructions for an aligned barrier.
void Block::check_reconverged(int barrier) {
    for (auto &warp : warps_) {
        const Group *first = nullptr;
        for (const Group &group : warp->groups()) {
            if (group.wait != Wait::barrier || group.barrier != barrier) continue;
            if (first == nullptr) first = &group;
            if (group.pc == first->pc && group.frame == first->frame) continue;
            const Instr &other = group.frame->code->instrs[group.pc - 1];
            fail_whole(Fault::failure, "barrier divergence: threads of warp " + std::to_string(warp->index()) +
                                           " wait at different barriers, one at " + instruction_text(other));
        }
    }
}

void Block::lanes_exited() {
    for (int i = 0; i < BARRIERS; i++) {
        if (complete(i)) release(i);
    }
}

// ---- shuffling -----------------------------------------------------------------------------------------------------

uint64_t Block::shuffled() {
    if (random_ == 0) return 0;
    random_ ^= random_ << 13; // Marsaglia's xorshift64
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
}

Mask Block::split(Mask lanes) {
    uint64_t bits = shuffled();
    if (bits == 0 || (bits >> 60) != 0) return lanes; // one time in sixteen
    Mask ahead = lanes & Mask(bits);
    return ahead == 0 ? lanes : ahead;
}

uint64_t Block::turn(uint64_t most) {
    uint64_t bits = shuffled();
    return bits == 0 ? most : 1 + (bits >> 32) % (uint64_t{1} << (bits % 12));
}

// ---- failing -------------------------------------------------------------------------------------------------------

// Kernel, block, thread and instruction, and the line of the source where the PTX names one.
std::string Block::place(const Warp &warp, int lane, const Frame &frame, const Instr &in) const {
    std::string text = "vgpu:   in kernel " + demangle(kernel().info.name) + ", block " +
                       place_text(config().grid, index_) + ", thread " +
                       place_text(config().block, uint64_t(warp.thread(lane))) + ", " + instruction_text(in) + "\n";
    const ptx::Instruction &source = *in.form->source;
    const auto &files = frame.code->module->source->files;
    if (source.file > 0 && source.file < int(files.size())) {
        text += "vgpu:   at " + files[size_t(source.file)] + ":" + std::to_string(source.file_line) + "\n";
    }
    if (frame.caller != nullptr) text += "vgpu:   in function " + demangle(frame.code->source->name) + "\n";
    return text;
}

void Block::fail(const Warp &warp, const Trap &trap) {
    if (trap.lane < 0) fail_whole(trap.fault, trap.what);
    report_once("vgpu: ERROR: " + trap.what + "\n" + place(warp, trap.lane, warp.frame(), warp.current()));
    throw trap.fault;
}

// One thread stands for all of them: the first that still runs, or else that waits.
void Block::fail_whole(Fault fault, const std::string &what) {
    const Warp *warp = nullptr;
    const Group *chosen = nullptr;
    for (const auto &candidate : warps_) {
        for (const Group &group : candidate->groups()) {
            if (chosen != nullptr && (chosen->wait == Wait::none || group.wait != Wait::none)) continue;
            warp = candidate.get();
            chosen = &group;
        }
    }
    std::string text = "vgpu: ERROR: " + what + "\n";
    if (chosen != nullptr) {
        text += place(*warp, __builtin_ctz(chosen->mask), *chosen->frame, next_instruction(*chosen));
    }
    report_once(text + waiting_threads());
    throw fault;
}

// Of several blocks of a launch that fail, the first is told.
void Block::report_once(const std::string &text) const {
    if (!launch_.is_reported.exchange(true)) report(text);
}

// "vgpu:   32 threads wait at PTX line 12: bar.sync 0" for each place.
std::string Block::waiting_threads() const {
    std::map<std::string, int> at;
    for (const auto &warp : warps_) {
        for (const Group &group : warp->groups()) {
            std::string verb = group.wait == Wait::none ? " at " : " wait at ";
            at[verb + instruction_text(next_instruction(group))] += __builtin_popcount(group.mask);
        }
    }
    std::string text;
    for (const auto &[place, threads] : at)
        text += "vgpu:   " + std::to_string(threads) + " threads" + place + "\n";
    return text;
}

// Nobody can go on, and not all have exited.
void Block::fail_stuck() {
    for (const auto &warp : warps_) {
        for (const Group &group : warp->groups()) {
            bool alone = group.mask != warp->live();
            if (group.wait == Wait::barrier && alone && is_aligned(*group.frame, group.pc - 1) &&
                (checks_enabled() & CHECK_BARRIERS) != 0) {
                fail_whole(Fault::failure, "barrier divergence: only some threads of a warp reach a barrier");
            }
        }
    }
    fail_whole(Fault::failure, "deadlock: every thread of the block waits");
}

} // namespace vgpu
