// For the parser's tests: modules from short texts, and instructions as text that says what they were resolved to.
#ifndef SHOAL_TESTS_VGPU_PTX_SHOW_H
#define SHOAL_TESTS_VGPU_PTX_SHOW_H

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/vgpu/ptx/module.h"

namespace vgpu::ptx {

inline const std::string HEADER = ".version 9.0 .target sm_90a .address_size 64\n";

// What follows the header; its first line is line 2 of the text.
inline std::unique_ptr<Module> parse_after_header(const std::string &text) { return parse(HEADER + text); }

// A kernel with some registers; the body's first line is line 4 of the text.
inline std::string kernel_text(const std::string &body) {
    return HEADER +
           ".visible .entry k(.param .u64 x, .param .align 8 .b8 y[24])\n"
           "{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<2>; .reg .pred %p<4>;\n" +
           body + "\n}\n";
}

inline std::unique_ptr<Module> parse_kernel(const std::string &body) { return parse(kernel_text(body)); }

inline std::string show(const Function &function, const Operand &operand);

inline std::string show_parts(const Function &function, const Operand &operand, const char *separator) {
    std::string text;
    for (const Operand &part : operand.parts)
        text += (text.empty() ? "" : separator) + show(function, part);
    return text;
}

// "%r1", "!%p1", "special %tid.x", "-5", "f32 3f800000", "parameter 0 +4", "name vprintf", "[%rd1 +8]", "{%r1, _}",
// "(variable 0 +0)", "%r1|%p1", "_"
inline std::string show(const Function &function, const Operand &operand) {
    static const char *const SYMBOLS[] = {"variable", "parameter", "result", "module_variable", "function"};
    std::string value = std::to_string(static_cast<int64_t>(operand.value));
    const std::string offset = " +" + value;
    switch (operand.kind) {
    case Operand::Kind::reg:
        return (operand.negated ? "!" : "") + function.registers.at(static_cast<size_t>(operand.index)).name;
    case Operand::Kind::special:
        return "special " + operand.name;
    case Operand::Kind::integer:
        return value;
    case Operand::Kind::floating: {
        char bits[24];
        std::snprintf(bits, sizeof bits, " %llx", static_cast<unsigned long long>(operand.value));
        return type_name(operand.type) + std::string(bits);
    }
    case Operand::Kind::symbol:
        return SYMBOLS[static_cast<size_t>(operand.symbol)] + (" " + std::to_string(operand.index)) + offset;
    case Operand::Kind::name:
        return "name " + operand.name;
    case Operand::Kind::address:
        return "[" + show_parts(function, operand, ", ") + offset + "]";
    case Operand::Kind::vector:
        return "{" + show_parts(function, operand, ", ") + "}";
    case Operand::Kind::list:
        return "(" + show_parts(function, operand, ", ") + ")";
    case Operand::Kind::pair:
        return show_parts(function, operand, "|");
    case Operand::Kind::sink:
        return "_";
    }
    return "?";
}

// The operands, separated by "; ".
inline std::string show(const Function &function, const Instruction &instruction) {
    std::string text;
    for (const Operand &operand : instruction.operands)
        text += (text.empty() ? "" : "; ") + show(function, operand);
    return text;
}

// The operands of the last instruction of a kernel's body.
inline std::string show_last(const std::string &body) {
    const std::unique_ptr<Module> module = parse_kernel(body);
    const Function &function = *module->functions.back();
    return show(function, function.code.back());
}

} // namespace vgpu::ptx

#endif
