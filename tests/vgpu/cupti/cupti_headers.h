// CUPTI's own headers, read so that the functions they declare are exported from this library.
#ifndef SHOAL_TESTS_VGPU_CUPTI_CUPTI_HEADERS_H
#define SHOAL_TESTS_VGPU_CUPTI_CUPTI_HEADERS_H

#pragma GCC visibility push(default)
#include <cupti_version.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#pragma GCC visibility pop

#endif
