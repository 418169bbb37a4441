// The functions that a kernel calls and that no PTX defines.
#ifndef SHOAL_TESTS_VGPU_EXEC_DEVICE_CALLS_H
#define SHOAL_TESTS_VGPU_EXEC_DEVICE_CALLS_H

#include "tests/vgpu/exec/warp.h"

namespace vgpu {

void device_printf(Warp &warp, const Instr &in, Mask active); // int vprintf(format, arguments)
void device_assert(Warp &warp, const Instr &in, Mask active); // __assertfail(message, file, line, function, char size)
void device_malloc(Warp &warp, const Instr &in, Mask active); // void *malloc(size)
void device_free(Warp &warp, const Instr &in, Mask active);   // free(pointer)

} // namespace vgpu

#endif
