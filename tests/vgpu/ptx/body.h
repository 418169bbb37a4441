// Parses the body of a function: its declarations, labels and instructions, in scopes.
#ifndef SHOAL_TESTS_VGPU_PTX_BODY_H
#define SHOAL_TESTS_VGPU_PTX_BODY_H

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/vgpu/ptx/declarations.h"
#include "tests/vgpu/ptx/module.h"
#include "tests/vgpu/ptx/tokens.h"

namespace vgpu::ptx {

class BodyParser {
  public:
    // `function` has its parameters and results; parse() adds the rest.
    BodyParser(Tokens *tokens, const Symbols &symbols, Function *function)
        : tokens_(*tokens), symbols_(symbols), function_(*function) {}

    void parse(); // from "{" to "}"

    // The number of each file that a .loc names, and the line of the first such .loc.
    const std::map<int, int> &located_files() const { return located_files_; }

  private:
    // What a name declared in the function stands for.
    struct Binding {
        enum class Kind : uint8_t {
            reg,     // index: in Function::registers
            symbol,  // symbol, index
            label,   // index: in Function::code
            targets, // index: in branch_tables_
            callees, // a call's prototype or list of functions
        };
        Kind kind;
        int index = -1;
        SymbolKind symbol = SymbolKind::variable;
    };

    struct Scope {
        int parent; // -1: none
        std::unordered_map<std::string, Binding> names;
    };

    // Labels may follow what names them: they are looked up when the body ends.
    struct LabelUse {
        std::string name;
        int scope, line;
    };

    struct BranchTable {
        std::vector<LabelUse> labels;
    };

    struct PendingBranch {
        size_t instruction;
        LabelUse use;
        bool is_table;
    };

    // body.cc
    void parse_statement();
    void parse_directive();
    void parse_label();
    void parse_location();
    void parse_pragma();
    void parse_registers();
    void parse_variables(Space space);
    void parse_branch_table(const std::string &name);
    void parse_call_prototype(const std::string &name);
    void parse_call_targets(const std::string &name);
    void open_scope();
    void close_scope();
    void declare(const std::string &name, const Binding &binding);
    const Binding *find(const std::string &name, int scope) const; // nullptr: nothing in the function
    void resolve_branches();
    int resolve_label(const LabelUse &use) const;

    // instructions.cc
    void parse_instruction();
    void parse_guard(Instruction *instruction);
    void parse_opcode(Instruction *instruction);
    void parse_operands(Instruction *instruction);
    bool take_foreign_name(Operand *operand);
    void parse_branch_target(Instruction *instruction);
    Operand parse_operand();
    Operand parse_simple(); // what can stand in braces
    Operand parse_word();
    Operand parse_address();
    Operand parse_elements(Operand::Kind kind, const char *open, const char *close);

    Tokens &tokens_;
    const Symbols &symbols_;
    Function &function_;
    std::vector<Scope> scopes_;
    int scope_ = -1, depth_ = 0;
    std::vector<BranchTable> branch_tables_;
    std::vector<PendingBranch> branches_;
    std::map<int, int> located_files_;
    int file_ = 0, file_line_ = 0;       // of the last .loc
    uint64_t used_bytes_ = ~uint64_t{0}; // of the next instruction
};

} // namespace vgpu::ptx

#endif
