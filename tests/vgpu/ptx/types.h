// The types and state spaces of PTX.
#ifndef SHOAL_TESTS_VGPU_PTX_TYPES_H
#define SHOAL_TESTS_VGPU_PTX_TYPES_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vgpu::ptx {

// clang-format off
#define VGPU_TYPES(X)                                                                                             \
    X(pred, 0)                                                                                                    \
    X(b8, 1)                                                                                                      \
    X(b16, 2)                                                                                                     \
    X(b32, 4) X(b64, 8) X(b128, 16) X(u8, 1) X(u16, 2) X(u32, 4) X(u64, 8) X(s8, 1) X(s16, 2) X(s32, 4) X(s64, 8) \
        X(f16, 2) X(bf16, 2) X(f32, 4) X(f64, 8) X(f16x2, 4) X(bf16x2, 4) X(u16x2, 4) X(s16x2, 4) X(tf32, 4)      \
            X(e4m3, 1) X(e5m2, 1) X(e4m3x2, 2) X(e5m2x2, 2)
// clang-format on

enum class Type : uint8_t {
    none,
#define X(name, bytes) name,
    VGPU_TYPES(X)
#undef X
};

enum class Space : uint8_t { generic, constant, global, local, param, shared };

Type type_named(std::string_view name); // none: no type's name
const char *type_name(Type type);
size_t type_bytes(Type type); // in memory and in a register; pred and none: 0
bool is_signed(Type type);    // s8 to s64, s16x2
bool is_floating(Type type);  // f16, bf16, f32, f64 and their pairs

} // namespace vgpu::ptx

#endif
