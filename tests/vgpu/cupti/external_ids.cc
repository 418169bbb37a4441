#include "tests/vgpu/cupti/external_ids.h"

namespace vgpu {
namespace {

struct Stacks {
    std::vector<uint64_t> of[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
};

Stacks &stacks() {
    thread_local Stacks own;
    return own;
}

bool is_kind(CUpti_ExternalCorrelationKind kind) {
    return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

} // namespace

std::vector<ExternalId> external_ids() {
    std::vector<ExternalId> ids;
    for (int kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; kind++) {
        const auto &stack = stacks().of[kind];
        if (!stack.empty()) ids.push_back({static_cast<CUpti_ExternalCorrelationKind>(kind), stack.back()});
    }
    return ids;
}

} // namespace vgpu

using namespace vgpu;

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
    if (!is_kind(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
    stacks().of[kind].push_back(id);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last) {
    if (last != nullptr) *last = 0;
    if (!is_kind(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
    auto &stack = stacks().of[kind];
    if (stack.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    if (last != nullptr) *last = stack.back();
    stack.pop_back();
    return CUPTI_SUCCESS;
}
