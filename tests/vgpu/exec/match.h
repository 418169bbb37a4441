// Rows of the instruction table, read: their patterns, and which of them an instruction matches.
#ifndef SHOAL_TESTS_VGPU_EXEC_MATCH_H
#define SHOAL_TESTS_VGPU_EXEC_MATCH_H

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/vgpu/exec/table.h"

namespace vgpu {

// One place among a row's operands.
struct OperandPattern {
    enum class Kind : uint8_t {
        typed,
        any,
        predicate,
        typed_pair,
        predicate_pair,
        address,
        vector,
        braces,
        call,
        clock
    };
    Kind kind = Kind::typed;
    bool is_optional = false;
    int form_type = -1;     // typed: the type is the form's first, second ..; -1: `fixed`
    bool is_double = false; // typed: twice as wide as the form's type
    ptx::Type fixed = ptx::Type::none;
};

// One place among a row's modifiers.
struct ModifierPattern {
    std::vector<std::string_view> alternatives;
    bool is_optional = false;
};

struct RowPattern {
    const Row *row = nullptr;
    std::vector<ModifierPattern> modifiers;
    std::vector<OperandPattern> operands;
};

// Reads a row; aborts with a message if it is not written as table.h says.
RowPattern read_row(const Row &row);
// The rows of an instruction's name, in the table's order; null: no instruction has that name.
const std::vector<RowPattern> *rows_named(std::string_view name);
// Every row, in order.
const std::vector<RowPattern> &all_rows();
// The assembler takes modifiers in any order, and some of NVIDIA's headers write them in another than the manual.
enum class WordOrder : uint8_t { manual, any };
// Matches the words of an opcode after its name; fills the form's types and words.
bool match_modifiers(const RowPattern &pattern, const std::vector<std::string> &opcode, WordOrder order, Form *form);

} // namespace vgpu

#endif
