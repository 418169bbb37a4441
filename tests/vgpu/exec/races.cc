#include "tests/vgpu/exec/races.h"
namespace vgpu {
void Races::start() {}
void Races::shared_access(Warp &, const Instr &, Mask, uint32_t, Access, const uint64_t *) {}
void Races::global_access(Warp &, const Instr &, Mask, uint32_t, Access, const uint64_t *) {}
void Races::block_barrier() {}
void Races::warp_barrier(Warp &, Mask) {}
void Races::fence(Warp &, Mask) {}
} // namespace vgpu
