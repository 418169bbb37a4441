// Settings of the checkers, and writing reports.
#include "tests/vgpu/exec/report.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vgpu {
namespace {

constexpr uint64_t DEFAULT_BUDGET = 20000000000; // half a minute and more

struct CheckName {
    const char *name;
    unsigned checks;
};
constexpr CheckName CHECK_NAMES[] = {
    {"bounds", CHECK_BOUNDS},     {"init", CHECK_INIT},   {"races", CHECK_RACES}, {"leaks", CHECK_LEAKS},
    {"barriers", CHECK_BARRIERS}, {"loops", CHECK_LOOPS}, {"all", CHECK_ALL},     {"none", 0},
};

unsigned read_checks() {
    const char *list = getenv("VGPU_CHECK");
    if (list == nullptr) return CHECK_ALL;
    unsigned checks = 0;
    std::string_view rest = list;
    while (!rest.empty()) {
        std::string_view name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        const CheckName *found = nullptr;
        for (const CheckName &known : CHECK_NAMES) {
            if (name == known.name) found = &known;
        }
        if (found == nullptr) {
            bad_setting("VGPU_CHECK", name, "one of bounds, init, races, leaks, barriers, loops, all, none");
        }
        checks |= found->checks;
    }
    return checks;
}

uint64_t read_number(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    if (text == nullptr || *text == '\0') return otherwise;
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*end != '\0' || *text == '-') bad_setting(variable, text, "a number");
    return value;
}

} // namespace

void bad_setting(const char *variable, std::string_view value, const char *allowed) {
    fprintf(stderr, "vgpu: %s: '%.*s' is not %s\n", variable, int(value.size()), value.data(), allowed);
    _Exit(2);
}

unsigned checks_enabled() {
    static const unsigned checks = read_checks();
    return checks;
}

bool engine_checks_leaks() { return (checks_enabled() & CHECK_LEAKS) != 0; }

uint64_t shuffle_seed() {
    static const uint64_t seed = read_number("VGPU_SEED", 0);
    return seed;
}

uint64_t block_budget() {
    static const uint64_t budget = read_number("VGPU_BUDGET", DEFAULT_BUDGET);
    return budget;
}

uint64_t worker_count(uint64_t processors) {
    static const uint64_t count = read_number("VGPU_THREADS", processors);
    return count == 0 ? 1 : count;
}

void report(const std::string &text) {
    fflush(stdout);
    fwrite(text.data(), 1, text.size(), stderr);
}

std::string demangle(const std::string &name) {
    int status = 0;
    char *plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = status == 0 && plain != nullptr ? plain : name;
    free(plain);
    return result;
}

} // namespace vgpu
