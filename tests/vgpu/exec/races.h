// Races: two threads access the same bytes, one of them writes, and nothing orders them.
#ifndef SHOAL_TESTS_VGPU_EXEC_RACES_H
#define SHOAL_TESTS_VGPU_EXEC_RACES_H

#include <cstdint>
#include <vector>

#include "tests/vgpu/exec/instr.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu {

// The race checker of a block.
class Races {
  public:
    explicit Races(Block &block) : block_(block) {}

    void start(); // a new block begins
    // Before the active lanes access `bytes` each: at an offset in shared memory, or at an address in device memory.
    void shared_access(Warp &warp, const Instr &in, Mask active, uint32_t bytes, Access access, const uint64_t *offset);
    void global_access(Warp &warp, const Instr &in, Mask active, uint32_t bytes, Access access,
                       const uint64_t *address);

    // What orders threads.
    void block_barrier();                      // threads of the block met
    void warp_barrier(Warp &warp, Mask lanes); // lanes of a warp met
    void fence(Warp &warp, Mask lanes);        // membar, fence

  private:
    Block &block_;
};

} // namespace vgpu

#endif
