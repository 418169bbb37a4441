// What CUPTI's numbers and handles stand for here. A device has one context, its primary one, whose number is the
// device's and one.
#ifndef SHOAL_TESTS_VGPU_CUPTI_IDENTIFIERS_H
#define SHOAL_TESTS_VGPU_CUPTI_IDENTIFIERS_H

#include "tests/vgpu/cupti/cupti_headers.h"

namespace vgpu {

constexpr int CONTEXTS = 16;

CUcontext context_of(int device);
inline uint32_t context_id(int device) { return static_cast<uint32_t>(device) + 1; }
// The calling thread, by the type that cuptiSetThreadIdType() chose.
uint32_t thread_id();
uint32_t process_id();

} // namespace vgpu

#endif
