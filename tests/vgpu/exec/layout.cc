// Lays out the variables of a function.
#include "tests/vgpu/exec/layout.h"

#include <algorithm>
#include <map>
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

// The module's shared variables that a function names.
void add_shared_variables(const ptx::Module &module, const ptx::Function &function, std::set<int> *found) {
    std::set<int> symbols;
    for (const ptx::Instruction &instruction : function.code) {
        for (const ptx::Operand &operand : instruction.operands)
            add_symbols(operand, &symbols);
    }
    for (int index : symbols) {
        const ptx::Variable &variable = module.variables[size_t(index)];
        if (variable.space == ptx::Space::shared) found->insert(index);
    }
}

void place_shared(const ptx::Module &module, const std::set<int> &variables, Code &code) {
    for (int index : variables) {
        const ptx::Variable &variable = module.variables[size_t(index)];
        if (variable.is_extern) {
            code.dynamic_shared_align = std::max(code.dynamic_shared_align, variable.align);
        } else if (code.shared_offsets.count(index) == 0) {
            code.shared_offsets[index] = place(&code.static_shared_bytes, variable.size_bytes, variable.align);
        }
    }
}

// Parameters, results and variables of the function itself.
void place_own(const ptx::Function &function, Code &code) {
    if (!function.is_entry) {
        for (const auto *list : {&function.parameters, &function.results}) {
            for (const ptx::Parameter &parameter : *list)
                code.local_align = std::max(code.local_align, parameter.align);
        }
        code.results_at = round_up(function.parameters_bytes, code.local_align);
        code.local_bytes = code.results_at + function.results_bytes;
    }
    for (const ptx::Variable &variable : function.variables) {
        bool is_shared = variable.space == ptx::Space::shared;
        uint64_t *align = is_shared ? &code.dynamic_shared_align : &code.local_align;
        if (!is_shared || variable.is_extern) *align = std::max(*align, variable.align);
        code.names_shared = code.names_shared || (is_shared && !variable.is_extern);
        uint64_t *end = is_shared ? &code.static_shared_bytes : &code.local_bytes;
        code.variable_offsets.push_back(variable.is_extern ? 0 : place(end, variable.size_bytes, variable.align));
    }
}

// Follows the calls of functions, each function once.
class CallWalk {
  public:
    explicit CallWalk(const ptx::Module &module) : module_(module) {}

    CallStack below(const ptx::Function &function) {
        auto [known, is_new] = known_.try_emplace(&function, CallStack{0, true}); // where it is met within itself
        if (!is_new) return known->second;
        CallStack deepest;
        for (const ptx::Instruction &instruction : function.code) {
            if (instruction.opcode[0] != "call") continue;
            CallStack one = called(instruction);
            deepest.bytes = std::max(deepest.bytes, one.bytes);
            deepest.is_unbounded = deepest.is_unbounded || one.is_unbounded;
        }
        return known_[&function] = deepest;
    }

  private:
    CallStack called(const ptx::Instruction &call) {
        for (const ptx::Operand &operand : call.operands) {
            if (operand.kind == ptx::Operand::Kind::reg) return {0, true};
            if (operand.kind != ptx::Operand::Kind::symbol) continue;
            const ptx::Function &function = *module_.functions[size_t(operand.index)];
            if (!function.is_defined) break; // the runtime's
            Code frame;
            place_own(function, frame);
            CallStack stack = below(function);
            stack.bytes += round_up(frame.local_bytes, STACK_ALIGN) + frame.local_align - STACK_ALIGN;
            return stack;
        }
        return {};
    }

    const ptx::Module &module_;
    std::map<const ptx::Function *, CallStack> known_;
};

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
    code.names_shared =
        std::any_of(own.begin(), own.end(), [&](int index) { return code.shared_offsets.count(index) != 0; });
    place_own(function, code);
}

CallStack call_stack(const ptx::Module &module, const ptx::Function &function) {
    return CallWalk(module).below(function);
}

} // namespace vgpu
