// The names of all callbacks: cupti_callbacks.inc, which the build makes from CUPTI's headers, has a line for each.
#include "tests/vgpu/cupti/cupti_headers.h"

namespace {

struct CallbackName {
    CUpti_CallbackDomain domain;
    uint32_t cbid;
    const char *name;
};

constexpr CallbackName NAMES[] = {
#define CALLBACK(domain, name) {CUPTI_CB_DOMAIN_##domain##_API, CUPTI_##domain##_TRACE_CBID_##name, #name},
#include "cupti_callbacks.inc"
#undef CALLBACK
};

} // namespace

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name) {
    for (const CallbackName &row : NAMES) {
        if (name == nullptr || row.domain != domain || row.cbid != cbid) continue;
        *name = row.name;
        return CUPTI_SUCCESS;
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
