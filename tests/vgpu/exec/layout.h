// Where the variables of a function are: in its local memory and in the block's shared memory.
#ifndef SHOAL_TESTS_VGPU_EXEC_LAYOUT_H
#define SHOAL_TESTS_VGPU_EXEC_LAYOUT_H

#include "tests/vgpu/exec/code.h"

namespace vgpu {

// Fills the offsets and sizes of `code`. In shared memory come first the variables that the module's functions use,
// at the same place for every kernel, then the kernel's own.
void place_variables(const Module &module, const ptx::Function &function, Code &code);

// What the functions take that `function` calls.
CallStack call_stack(const ptx::Module &module, const ptx::Function &function);

} // namespace vgpu

#endif
