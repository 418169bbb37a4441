// What the environment says.
#include "tests/vgpu/runtime/environment.h"

#include <cstdio>
#include <cstdlib>

namespace vgpu {

uint64_t environment_seed() {
    const char *text = getenv("VGPU_SEED");
    if (text == nullptr || *text == '\0') return 0;
    char *end = nullptr;
    uint64_t seed = strtoull(text, &end, 0);
    if (*end != '\0') {
        fprintf(stderr, "vgpu: VGPU_SEED=%s: not a number\n", text);
        _Exit(2);
    }
    return seed;
}

} // namespace vgpu
