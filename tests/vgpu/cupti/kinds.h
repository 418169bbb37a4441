// Which kinds of records are collected.
#ifndef SHOAL_TESTS_VGPU_CUPTI_KINDS_H
#define SHOAL_TESTS_VGPU_CUPTI_KINDS_H

#include "tests/vgpu/cupti/cupti_headers.h"

namespace vgpu {

bool kind_is_on(CUpti_ActivityKind kind);
// Whether any kind has ever been enabled.
bool kinds_were_used();
// Of calls: by kind, and by cuptiActivityEnableRuntimeApi() and its like.
bool runtime_call_is_on(CUpti_CallbackId cbid);
bool driver_call_is_on(CUpti_CallbackId cbid);
// Bytes of a record; 0: no such is ever made.
size_t record_size(CUpti_ActivityKind kind);
// Turns everything off.
void kinds_reset();

} // namespace vgpu

#endif
