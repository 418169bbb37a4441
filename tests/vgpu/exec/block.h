// A block of threads: its warps, its shared and local memory, its barriers.
#ifndef SHOAL_TESTS_VGPU_EXEC_BLOCK_H
#define SHOAL_TESTS_VGPU_EXEC_BLOCK_H

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/races.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu {

constexpr int BARRIERS = 16;

// What all blocks of a launch share.
struct LaunchState {
    const Kernel *kernel = nullptr;
    const Code *code = nullptr;
    LaunchConfig config;
    std::vector<uint8_t> parameters;
    uint64_t number = 0;        // counted over the process's life
    uint64_t workspace = 0;     // of a cooperative launch: what the blocks' common barrier is in
    uint32_t first_block = 0;   // its number among the blocks of all launches
    mutable Released released;  // by its threads, through memory that all blocks share
    mutable Released passed_on; // by strong stores without a fence
    std::atomic<Fault> fault{Fault::none};
    mutable std::atomic<bool> is_reported{false};
};

// "(1,0,0)": the position of the thread or block `index`.
std::string place_text(const Dim3 &size, uint64_t index);

class Block {
  public:
    explicit Block(const LaunchState &launch);

    // Makes it the block number `index` of the grid, with nothing executed yet.
    void start(uint64_t index);
    // Executes until all its threads have exited: true; or until it only waits for other blocks, or others should have
    // their turn: false. Throws Fault after a report.
    bool run();

    const Kernel &kernel() const { return *launch_.kernel; }
    int device() const { return kernel().module->device; }
    const Code &code() const { return *launch_.code; }
    Races &races() { return races_; }
    const LaunchConfig &config() const { return launch_.config; }
    const Dim3 &position() const { return position_; }
    const LaunchState &launch() const { return launch_; }
    uint64_t index() const { return index_; }
    int warps() const { return int(warps_.size()); }
    uint64_t grid_number() const { return launch_.number; }
    uint64_t workspace() const { return launch_.workspace; }
    uint64_t processor() const;
    uint64_t processors() const;
    uint64_t executed() const;
    // How often memory was changed: one that changes nothing may merely be waiting.
    void note_change() { changes_++; }
    uint64_t changes() const { return changes_; }

    // ---- memory ----
    uint8_t *shared() { return shared_.data(); }
    uint64_t shared_bytes() const { return shared_bytes_; }
    bool is_shared(const uint8_t *where) const {
        return where >= shared_.data() && where < shared_.data() + shared_.size();
    }
    uint64_t dynamic_shared_at() const { return dynamic_shared_at_; }
    uint8_t *shared_shadow() { return shared_shadow_.data(); }
    uint64_t local_bytes_per_thread() const { return local_bytes_; }
    uint8_t *local_bytes(int thread, uint64_t offset, uint64_t bytes);
    void mark_local_written(int thread, uint64_t offset, uint64_t bytes);
    uint8_t *local_shadow(int thread, uint64_t offset);
    const uint8_t *parameter(uint64_t offset) const { return launch_.parameters.data() + offset; }
    // The allocation around an address, remembered by the instruction that asks; nullptr: none is live there.
    const Reach *reach(const Instr &in, uint64_t address);

    // ---- barriers ----
    // `expected`: how many threads make the barrier complete, 0: all of the block. A reduction adds up `votes`.
    void arrive_and_wait(Warp &warp, const Instr &in, int barrier, uint32_t expected, Mask active, uint32_t votes);
    void arrive(Warp &warp, int barrier, uint32_t expected, Mask active);
    void lanes_exited();
    bool is_aligned(const Frame &frame, uint32_t pc) const;

    // ---- shuffling (VGPU_SEED) ----
    uint64_t shuffled();          // random bits, 0: nothing is shuffled
    Mask split(Mask lanes);       // those that go ahead
    uint64_t turn(uint64_t most); // how long a turn is

  private:
    struct Barrier {
        uint32_t expected = 0;
        uint32_t arrived = 0; // threads that did not wait
        uint32_t votes = 0, voters = 0;
        bool is_begun = false, is_aligned = false;
    };

    struct Round {
        bool has_progressed = false, has_yielded = true, has_exited = true;
    };

    Round run_warps();
    void report_once(const std::string &text) const;
    void expect(Barrier &at, uint32_t expected, Mask active) const;
    bool complete(int barrier);
    void release(int barrier);
    void check_reconverged(int barrier);
    [[noreturn]] void fail_stuck();
    std::string place(const Warp &warp, int lane, const Frame &frame, const Instr &in) const;
    std::string waiting_threads() const;
    [[noreturn]] void fail(const Warp &warp, const Trap &trap);
    [[noreturn]] void fail_whole(Fault fault, const std::string &what);

    const LaunchState &launch_;
    std::vector<std::unique_ptr<Warp>> warps_;
    std::vector<uint8_t> shared_, shared_shadow_, local_, local_shadow_;
    uint64_t shared_bytes_, dynamic_shared_at_, local_bytes_;
    Barrier barriers_[BARRIERS];
    Dim3 position_;
    uint64_t index_ = 0, random_ = 0;
    static constexpr int REACHES = 64;
    Reach reaches_[REACHES];
    uint64_t reaches_epoch_ = 0;
    uint64_t changes_ = 0;
    Races races_{*this};
};

} // namespace vgpu

#endif
