// Settings of the checkers, and writing reports.
#include "tests/vgpu/exec/report.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace vgpu {
namespace {

constexpr uint64_t DEFAULT_BUDGET = 2000000000; // seconds
constexpr uint64_t WORKERS_MOST = 1024;
constexpr uint64_t FAULT_STATUS = 99;

struct CheckName {
    const char *name;
    unsigned checks;
};
constexpr CheckName CHECK_NAMES[] = {
    {"bounds", CHECK_BOUNDS},     {"init", CHECK_INIT},   {"races", CHECK_RACES}, {"leaks", CHECK_LEAKS},
    {"barriers", CHECK_BARRIERS}, {"loops", CHECK_LOOPS}, {"all", CHECK_ALL},
};

const char CHECKS[] = "a list with commas of bounds, init, races, leaks, barriers, loops, or all, or none";

unsigned read_checks() {
    std::string_view list = text_setting("VGPU_CHECK"), rest = list;
    if (list.empty()) return CHECK_ALL;
    if (list == "none") return 0;
    unsigned checks = 0;
    while (!rest.empty()) {
        std::string_view name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        const CheckName *found = nullptr;
        for (const CheckName &known : CHECK_NAMES) {
            if (name == known.name) found = &known;
        }
        if (found == nullptr) bad_setting("VGPU_CHECK", list, CHECKS);
        checks |= found->checks;
    }
    return checks;
}

} // namespace

std::string_view text_setting(const char *variable) {
    const char *text = getenv(variable);
    return text == nullptr ? "" : text;
}

uint64_t number_setting(const char *variable, uint64_t otherwise, uint64_t least, uint64_t most) {
    std::string_view text = text_setting(variable);
    if (text.empty()) return otherwise;
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
        std::string range = "a number from " + std::to_string(least) + " to " + std::to_string(most);
        bad_setting(variable, text, range.c_str());
    }
    return value;
}

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
    static const uint64_t seed = number_setting("VGPU_SEED", 0, 0, UINT64_MAX);
    return seed;
}

uint64_t block_budget() {
    static const uint64_t budget = number_setting("VGPU_BUDGET", DEFAULT_BUDGET, 1, UINT64_MAX);
    return budget;
}

uint64_t worker_count(uint64_t processors) {
    static const uint64_t count = number_setting("VGPU_THREADS", std::min(processors, WORKERS_MOST), 1, WORKERS_MOST);
    return count;
}

bool prints_stats() {
    static const bool is_on = number_setting("VGPU_STATS", 0, 0, 1) == 1;
    return is_on;
}

int status_after_fault() {
    static const auto status = static_cast<int>(number_setting("VGPU_EXIT", FAULT_STATUS, 0, 255));
    return status;
}

void check_settings() {
    checks_enabled();
    shuffle_seed();
    block_budget();
    worker_count(1);
    prints_stats();
    status_after_fault();
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
