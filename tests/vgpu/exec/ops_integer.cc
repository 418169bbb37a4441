// Integer arithmetic. Overflow wraps, as the PTX ISA says; division by zero gives all ones.
#include <type_traits>

#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;

struct Add {
    template <class T> static T run(T a, T b) { return (T)((Unsigned<T>)a + (Unsigned<T>)b); }
};
struct Sub {
    template <class T> static T run(T a, T b) { return (T)((Unsigned<T>)a - (Unsigned<T>)b); }
};

const Row rows[] = {
    {"add", "u16|u32|u64|s16|s32|s64", "t t t", integer2<Add>},
    {"sub", "u16|u32|u64|s16|s32|s64", "t t t", integer2<Sub>},
};

} // namespace

extern const Rows integer_rows;
const Rows integer_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
