// What orders the threads of a launch, as vector clocks.
//
// Each block counts a time of its own, which moves on whenever threads of it synchronise. An access bears the time of
// the warp that makes it, and what a thread knows is up to which time the accesses of others are ordered before its
// own. Two numbers tell nearly all of that: the time of the last barrier of the block, and of the last one of the
// warp. What threads learn through memory, by flags and fences, is in views, which most threads never have.
#ifndef SHOAL_TESTS_VGPU_EXEC_CLOCKS_H
#define SHOAL_TESTS_VGPU_EXEC_CLOCKS_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tests/vgpu/exec/instr.h"

namespace vgpu {

// One or many threads of a block: all of it, one of its warps, or a lane of that.
using Threads = uint16_t;
constexpr Threads WHOLE_BLOCK = 0;
constexpr Threads threads_of(int warp) { return Threads(1 + warp * (LANES + 1)); }
constexpr Threads threads_of(int warp, int lane) { return Threads(threads_of(warp) + 1 + lane); }
constexpr bool is_warp(Threads threads) { return threads % (LANES + 1) == 1; }

// Up to when what others did is ordered before something: a sparse vector clock. It never changes.
class View {
  public:
    struct Entry {
        uint32_t block;
        Threads threads;
        uint32_t time;
        bool operator==(const Entry &o) const { return block == o.block && threads == o.threads && time == o.time; }
    };

    // Entries in any order.
    explicit View(std::vector<Entry> entries);
    // The time up to which the accesses of a lane are known.
    uint32_t time(uint32_t block, int warp, int lane) const;

    using Pointer = std::shared_ptr<const View>; // null: nothing is known
    static Pointer join(const Pointer &a, const Pointer &b);
    static Pointer without(uint32_t block, const Pointer &view);

  private:
    void append(const Entry &entry);
    uint32_t find(uint32_t block, Threads threads) const;

    std::vector<Entry> entries_;              // by block and threads; none that is implied by one for more threads
    uint32_t whole_time_ = 0, warp_time_ = 0; // while entries are appended: of the last one's block and warp
    bool is_everything_ = false;              // of a thread that has learnt so much that it is not kept
};

// What was released, by the words of memory that were written afterwards: who reads one of them learns it.
class Released {
  public:
    void add(uint64_t word, const View::Pointer &view);
    View::Pointer find(uint64_t word) const;
    bool is_empty() const;
    // Grows with every change: what find() returned is good for as long as this stays.
    uint64_t version() const { return version_.load(std::memory_order_acquire); }
    void clear();

  private:
    mutable std::mutex mutex_;
    std::atomic<bool> is_empty_{true};
    std::atomic<uint64_t> version_{0};
    std::unordered_map<uint64_t, View::Pointer> views_;
};

// Whom a fence or a strong access reaches.
enum class Scope : uint8_t { block, device };

// The clocks of a block's threads.
class Clocks {
  public:
    void start(uint32_t block, size_t warps);

    uint32_t block() const { return block_; }
    uint32_t now() const { return now_; }
    uint32_t time(int warp) const { return warps_[size_t(warp)].time; }
    // What the block, or a warp, did up to then is ordered before what its threads do now.
    uint32_t barrier() const { return barrier_; }
    uint32_t barrier(int warp) const { return warps_[size_t(warp)].barrier; }
    // Those of a warp's lanes whose accesses at `time` are not ordered before what a lane of this block does now.
    Mask unordered(uint32_t block, int warp, Mask lanes, uint32_t time, int now_warp, int now_lane) const;

    // `live`: the warp's lanes that have not exited.
    void block_barrier();
    void warp_barrier(int warp, Mask lanes, Mask live);
    // What the lanes have seen they know from now on, and what they know is what they will release.
    void fence(int warp, Mask lanes, Mask live, Scope scope);
    void release(int warp, Mask lanes, Mask live, Scope scope);
    void see(int warp, int lane, const View::Pointer &view);
    void acquire(int warp, int lane, const View::Pointer &view);
    // What a lane's next strong write releases to others; null: nothing.
    View::Pointer released(int warp, int lane, Scope scope) const;
    bool has_released() const { return has_released_; }

  private:
    struct WarpClock {
        uint32_t time = 1;
        uint32_t barrier = 0; // the last one of all its lanes
        // Where only some lanes met: [lane][other], up to when the lane knows of the other.
        std::vector<uint32_t> met;
    };
    struct Learnt {
        View::Pointer known;       // what is ordered before this thread, besides barriers
        View::Pointer seen;        // what will be known after a fence
        View::Pointer released[2]; // by scope
    };

    Learnt &learnt(int warp, int lane) { return learnt_[size_t(warp * LANES + lane)]; }
    const Learnt &learnt(int warp, int lane) const { return learnt_[size_t(warp * LANES + lane)]; }
    View::Pointer known_to(int warp, Mask lanes, Mask live) const;
    void exchange(int warp, Mask lanes);
    View::Pointer join(const View::Pointer &a, const View::Pointer &b);

    uint32_t block_ = 0;
    uint32_t now_ = 1;
    uint32_t barrier_ = 0; // the last one of the block
    std::vector<WarpClock> warps_;
    Learnt all_; // what every thread of the block has learnt
    std::vector<Learnt> learnt_;
    bool has_learnt_ = false; // since the last barrier of the block
    bool has_released_ = false;
    struct {
        View::Pointer a, b, both;
    } last_join_;
};

} // namespace vgpu

#endif
