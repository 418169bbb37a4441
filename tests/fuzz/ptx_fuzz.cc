// libFuzzer target: any bytes given to the PTX parser, as a module and as the body of a function, are refused with a
// message that names a line or taken; what is taken refers to nothing that is not there.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/vgpu/ptx/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using namespace vgpu::ptx;

void check(bool holds) {
    if (!holds) abort();
}

template <class T> void check_index(int index, const std::vector<T> &of) {
    check(index >= 0 && static_cast<size_t>(index) < of.size());
}

void check_symbol(const Module &module, const Function &function, SymbolKind kind, int index) {
    switch (kind) {
    case SymbolKind::variable:
        return check_index(index, function.variables);
    case SymbolKind::parameter:
        return check_index(index, function.parameters);
    case SymbolKind::result:
        return check_index(index, function.results);
    case SymbolKind::module_variable:
        return check_index(index, module.variables);
    case SymbolKind::function:
        return check_index(index, module.functions);
    }
    abort();
}

void check_operand(const Module &module, const Function &function, const Operand &operand) {
    if (operand.kind == Operand::Kind::reg) check_index(operand.index, function.registers);
    if (operand.kind == Operand::Kind::symbol) check_symbol(module, function, operand.symbol, operand.index);
    for (const Operand &part : operand.parts)
        check_operand(module, function, part);
}

void check_function(const Module &module, const Function &function) {
    for (const Instruction &instruction : function.code) {
        check(!instruction.opcode.empty() && !instruction.text.empty() && instruction.line > 0);
        check_index(instruction.file, module.files);
        if (instruction.guard != -1) check_index(instruction.guard, function.registers);
        for (const Operand &operand : instruction.operands)
            check_operand(module, function, operand);
        for (const int target : instruction.targets) {
            check(target >= 0 && static_cast<size_t>(target) <= function.code.size());
        }
    }
}

void check_variable(const Module &module, const Variable &variable) {
    check(variable.initial.size() <= variable.size_bytes);
    for (const Relocation &relocation : variable.relocations) {
        check(relocation.offset + static_cast<uint64_t>(relocation.size_bytes) <= variable.initial.size());
        check_symbol(module, Function(), relocation.symbol, relocation.index);
    }
}

void check_text(std::string_view text) {
    try {
        const std::unique_ptr<Module> module = parse(text);
        for (const Variable &variable : module->variables)
            check_variable(*module, variable);
        for (const auto &function : module->functions)
            check_function(*module, *function);
    } catch (const Error &error) {
        check(std::string_view(error.what()).substr(0, 9) == "PTX line ");
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    check_text(text);
    check_text(".version 9.0 .target sm_90 .entry k(.param .u64 x) {\n.reg .b32 %r<4>; .reg .pred %p<2>;\n" +
               std::string(text) + "}");
    return 0;
}
