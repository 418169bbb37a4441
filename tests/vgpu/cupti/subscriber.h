// The one subscriber and the callbacks that it enabled.
#ifndef SHOAL_TESTS_VGPU_CUPTI_SUBSCRIBER_H
#define SHOAL_TESTS_VGPU_CUPTI_SUBSCRIBER_H

#include "tests/vgpu/cupti/cupti_headers.h"

namespace vgpu {

bool callback_is_on(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
// Calls the subscriber, if it still is one.
void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data);
void subscriber_reset();

} // namespace vgpu

#endif
