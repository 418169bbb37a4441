// The types of PTX: their names, sizes and families.
#include "tests/vgpu/ptx/types.h"

namespace vgpu::ptx {

namespace {

struct TypeRow {
    const char *name;
    size_t bytes;
};

// In the order of Type.
constexpr TypeRow TYPES[] = {{"none", 0},
#define X(name, bytes) {#name, bytes},
                             VGPU_TYPES(X)
#undef X
};

} // namespace

Type type_named(std::string_view name) {
    for (size_t i = 1; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (name == TYPES[i].name) return static_cast<Type>(i);
    }
    return Type::none;
}

const char *type_name(Type type) { return TYPES[static_cast<size_t>(type)].name; }

size_t type_bytes(Type type) { return TYPES[static_cast<size_t>(type)].bytes; }

bool is_signed(Type type) { return (type >= Type::s8 && type <= Type::s64) || type == Type::s16x2; }

bool is_floating(Type type) { return type >= Type::f16 && type <= Type::bf16x2; }

} // namespace vgpu::ptx
