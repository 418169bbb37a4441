// All settings are looked at when the library is loaded: a wrong one ends the process before anything has run, and one
// of a name that there is none of, which may be misspelt, is told.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unistd.h>

#include "tests/vgpu/exec/report.h"
#include "tests/vgpu/runtime/model.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

constexpr std::string_view PREFIX = "VGPU_";
constexpr std::string_view KNOWN[] = {"VGPU_BUDGET",
                                      "VGPU_CHECK",
                                      "VGPU_COST_ALWAYS",
                                      "VGPU_COST_BANDWIDTH",
                                      "VGPU_COST_BLOCK",
                                      "VGPU_COST_CALL_BEFORE",
                                      "VGPU_COST_CALL_INSIDE",
                                      "VGPU_COST_COPY",
                                      "VGPU_COST_INSTRUCTION",
                                      "VGPU_COST_KERNEL",
                                      "VGPU_COST_LATENCY",
                                      "VGPU_COST_RECORD",
                                      "VGPU_COST_TRACED_KERNEL",
                                      "VGPU_DEVICES",
                                      "VGPU_EXIT",
                                      "VGPU_ISA",
                                      "VGPU_MEMORY",
                                      "VGPU_MODEL",
                                      "VGPU_NCCL_ABORT",
                                      "VGPU_NCCL_ERROR",
                                      "VGPU_NVML_PERIOD",
                                      "VGPU_SEED",
                                      "VGPU_STATS",
                                      "VGPU_STREAMS",
                                      "VGPU_THREADS"};

void name_unknown_settings() {
    for (char **entry = environ; *entry != nullptr; entry++) {
        std::string_view name = *entry;
        name = name.substr(0, name.find('='));
        if (name.substr(0, PREFIX.size()) != PREFIX) continue;
        if (std::find(std::begin(KNOWN), std::end(KNOWN), name) != std::end(KNOWN)) continue;
        fprintf(stderr, "vgpu: warning: there is no setting %.*s\n", int(name.size()), name.data());
    }
}

__attribute__((constructor)) void check_environment() {
    name_unknown_settings();
    check_settings();
    model_check_settings();
    streams_check_settings();
    timeline_check_settings();
}

} // namespace
} // namespace vgpu
