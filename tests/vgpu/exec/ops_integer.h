// The multiplications that both plain arithmetic and arithmetic with a carry use.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_INTEGER_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_INTEGER_H

#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

// The type to compute a T in so that overflow wraps: unsigned, and not narrower than int, to which C promotes.
template <class T> using Modular = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <class T> struct WideOf;
template <> struct WideOf<uint16_t> { using Type = uint32_t; };
template <> struct WideOf<int16_t> { using Type = int32_t; };
template <> struct WideOf<uint32_t> { using Type = uint64_t; };
template <> struct WideOf<int32_t> { using Type = int64_t; };
template <> struct WideOf<uint64_t> { __extension__ using Type = unsigned __int128; };
template <> struct WideOf<int64_t> { __extension__ using Type = __int128; };
template <class T> using Wide = typename WideOf<T>::Type; // twice as wide

struct MulLow {
    template <class T> static T run(T a, T b) { return (T)((Modular<T>)a * (Modular<T>)b); }
};
struct MulHigh {
    template <class T> static T run(T a, T b) { return (T)((Wide<T>)a * (Wide<T>)b >> 8 * sizeof(T)); }
};

} // namespace
} // namespace vgpu::VGPU_ISA

#endif
