// The memory consistency model, as far as single instructions have a part in it.
#ifndef SHOAL_TESTS_VGPU_EXEC_ORDER_H
#define SHOAL_TESTS_VGPU_EXEC_ORDER_H

#include "tests/vgpu/exec/table.h"

namespace vgpu {

// Bits of MemoryOrder.
uint8_t memory_order(const Form &form);

} // namespace vgpu

#endif
