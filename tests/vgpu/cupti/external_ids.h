// Ids of the client's own that the calling thread's calls are marked with.
#ifndef SHOAL_TESTS_VGPU_CUPTI_EXTERNAL_IDS_H
#define SHOAL_TESTS_VGPU_CUPTI_EXTERNAL_IDS_H

#include <vector>

#include "tests/vgpu/cupti/cupti_headers.h"

namespace vgpu {

struct ExternalId {
    CUpti_ExternalCorrelationKind kind;
    uint64_t id;
};

// The topmost of each kind that has one, of the calling thread.
std::vector<ExternalId> external_ids();

} // namespace vgpu

#endif
