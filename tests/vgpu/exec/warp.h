// A warp.
#ifndef SHOAL_TESTS_VGPU_EXEC_WARP_H
#define SHOAL_TESTS_VGPU_EXEC_WARP_H

#include "tests/vgpu/exec/instr.h"

namespace vgpu {

class Warp : public WarpRegisters {};

} // namespace vgpu

#endif
