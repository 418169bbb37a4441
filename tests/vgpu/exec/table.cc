// Puts the groups of the instruction table together.
#include "tests/vgpu/exec/table.h"

#include <cstdlib>

#include "tests/vgpu/exec/report.h"

#define ARITHMETIC_ROWS(isa)                                                                               \
    namespace vgpu::isa {                                                                                  \
    extern const Rows integer_rows, carry_rows, bits_rows, float_rows, half_rows, compare_rows, move_rows, \
        convert_rows, pack_rows;                                                                           \
    static std::vector<Rows> arithmetic() {                                                                \
        return {integer_rows, carry_rows, bits_rows,    float_rows, half_rows,                             \
                compare_rows, move_rows,  convert_rows, pack_rows};                                        \
    }                                                                                                      \
    }

ARITHMETIC_ROWS(baseline)
#ifdef VGPU_X86
ARITHMETIC_ROWS(v3)
ARITHMETIC_ROWS(v4)
#endif

namespace vgpu {
namespace baseline {
extern const Rows control_rows, memory_rows, atomic_rows, warp_rows, async_rows;
}

namespace {

std::vector<Rows> arithmetic() {
    const char *asked = getenv("VGPU_ISA");
    const auto is_asked = [&](std::string_view isa) { return asked == nullptr || *asked == '\0' || asked == isa; };
#ifdef VGPU_X86
    __builtin_cpu_init();
    if (is_asked("v4") && __builtin_cpu_supports("x86-64-v4")) return vgpu::v4::arithmetic();
    if (is_asked("v3") && __builtin_cpu_supports("x86-64-v3")) return vgpu::v3::arithmetic();
#endif
    if (!is_asked("baseline")) bad_setting("VGPU_ISA", asked, "baseline, or v3 or v4 on a CPU that has it");
    return baseline::arithmetic();
}

} // namespace

std::vector<Rows> instruction_table() {
    std::vector<Rows> table = {baseline::control_rows, baseline::memory_rows, baseline::atomic_rows,
                               baseline::warp_rows, baseline::async_rows};
    for (const Rows &rows : arithmetic())
        table.push_back(rows);
    return table;
}

} // namespace vgpu
