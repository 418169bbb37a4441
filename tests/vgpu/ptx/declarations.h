// Declarations of variables and parameters: "<space> .align 8 .b8 name[2][24] = {...}".
#ifndef SHOAL_TESTS_VGPU_PTX_DECLARATIONS_H
#define SHOAL_TESTS_VGPU_PTX_DECLARATIONS_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/vgpu/ptx/module.h"
#include "tests/vgpu/ptx/tokens.h"

namespace vgpu::ptx {

// What a name at module level stands for: `kind` is module_variable or function.
struct Symbol {
    SymbolKind kind;
    int index;
};

using Symbols = std::unordered_map<std::string, Symbol>;

// What stands before the names of a declaration and holds for all of them.
struct Specifiers {
    Type type = Type::none;
    uint64_t vector_width = 1; // .v2, .v4
    uint64_t align = 0;        // 0: not given
    bool is_managed = false;

    uint64_t element_bytes() const { return type_bytes(type); }
    uint64_t natural_align() const { return align != 0 ? align : element_bytes() * vector_width; }
};

struct Declarator {
    std::string name;
    std::vector<uint64_t> extents; // of an array, a vector's width at last; 0: given as []
    bool is_unsized() const { return !extents.empty() && extents[0] == 0; }
    uint64_t count_elements(size_t from = 0) const; // in extents[from..]
};

// Of a variable and of a function's parameters together.
constexpr uint64_t BYTES_MAX = uint64_t{1} << 40;

// Behind the state space. A type that has no size in memory fails. The name may be "_".
Specifiers parse_specifiers(Tokens *tokens);
Declarator parse_declarator(Tokens *tokens, const Specifiers &specifiers);

// "(.param .u64 .ptr .global .align 4 x, .param .align 8 .b8 y[24])" or "()"; lays the parameters out and returns their
// bytes.
uint64_t parse_parameters(Tokens *tokens, std::vector<Parameter> *parameters);

// What follows the "=" of a variable; gives an array without a size its size.
void parse_initial_value(Tokens *tokens, const Symbols &symbols, Type type, Declarator *declarator, Variable *variable);

} // namespace vgpu::ptx

#endif
