// Records of memory that is allocated and released, and of pools.
#ifndef SHOAL_TESTS_VGPU_CUPTI_MEMORY_RECORDS_H
#define SHOAL_TESTS_VGPU_CUPTI_MEMORY_RECORDS_H

#include "tests/vgpu/cupti/cupti_headers.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

bool call_has_memory_records(const ApiCall &call);
void record_memory(const ApiCall &call, uint64_t end);

} // namespace vgpu

#endif
