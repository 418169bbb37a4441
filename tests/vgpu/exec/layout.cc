// Lays out the variables of a function.
#include "tests/vgpu/exec/layout.h"

#include <algorithm>
#include <set>

namespace vgpu {
namespace {

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint64_t place(uint64_t *end, uint64_t size_bytes, uint64_t align) {
    uint64_t at = round_up(*end, std::max<uint64_t>(align, 1));
    *end = at + size_bytes;
    return at;
}

void add_symbols(const ptx::Operand &operand, std::set<int> *found) {
    if (operand.kind == ptx::Operand::Kind::symbol && operand.symbol == ptx::SymbolKind::module_variable) {
        found->insert(operand.index);
    }
    for (const ptx::Operand &part : operand.parts)
        add_symbols(part, found);
}

// The module's shared variables of static size that a function names.
void add_shared_variables(const ptx::Module &module, const ptx::Function &function, std::set<int> *found) {
    std::set<int> symbols;
    for (const ptx::Instruction &instruction : function.code) {
        for (const ptx::Operand &operand : instruction.operands)
            add_symbols(operand, &symbols);
    }
    for (int index : symbols) {
        const ptx::Variable &variable = module.variables[size_t(index)];
        if (variable.space == ptx::Space::shared && !variable.is_extern) found->insert(index);
    }
}

void place_shared(const ptx::Module &module, const std::set<int> &variables, Code &code) {
    for (int index : variables) {
        const ptx::Variable &variable = module.variables[size_t(index)];
        if (code.shared_offsets.count(index) == 0) {
            code.shared_offsets[index] = place(&code.static_shared_bytes, variable.size_bytes, variable.align);
        }
    }
}

} // namespace

void place_variables(const Module &module, const ptx::Function &function, Code &code) {
    const ptx::Module &source = *module.source;
    std::set<int> of_functions, own;
    for (const auto &other : source.functions) {
        if (!other->is_entry) add_shared_variables(source, *other, &of_functions);
    }
    place_shared(source, of_functions, code);
    add_shared_variables(source, function, &own);
    place_shared(source, own, code);

    if (!function.is_entry) {
        code.results_at = round_up(function.parameters_bytes, 16);
        code.local_bytes = code.results_at + function.results_bytes;
    }
    for (const ptx::Variable &variable : function.variables) {
        uint64_t *end = variable.space == ptx::Space::shared ? &code.static_shared_bytes : &code.local_bytes;
        code.variable_offsets.push_back(variable.is_extern ? 0 : place(end, variable.size_bytes, variable.align));
    }
}

} // namespace vgpu
