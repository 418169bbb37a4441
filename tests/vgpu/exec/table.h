// The instruction table: one row for each form of an instruction, written as the PTX ISA's manual writes its syntax.
// The decoder takes the first row that an instruction matches; an instruction that matches none is an error. Nothing is
// ever ignored: a modifier that has no effect here still stands in its row.
#ifndef SHOAL_TESTS_VGPU_EXEC_TABLE_H
#define SHOAL_TESTS_VGPU_EXEC_TABLE_H

#include <string_view>
#include <vector>

#include "tests/vgpu/exec/instr.h"
#include "tests/vgpu/ptx/module.h"

namespace vgpu {

// Picks the function that executes a form; nullptr: the row's pattern allows it, but it does not exist.
using Select = Run (*)(const Form &form);

struct Row {
    const char *name; // "add"

    // The words after the name, in their order, separated by spaces. "a|b" is either, a trailing ? makes it optional;
    // types are words too:  "rn|rz|rm|rp? ftz? sat? f32"
    const char *modifiers;

    // The operands in their order, separated by spaces, a trailing ? makes one optional:
    //   t, t2, t3    a register or immediate of the form's first, second, third type; t1 is t
    //   w            a register or immediate twice as wide as the first type
    //   u32, f16 ..  one of this type
    //   x            a register or immediate of any width: see Instr::width
    //   p            a predicate, which may be negated
    //   p|p, t|p     a pair; the second may be left out or be a sink
    //   m            an address
    //   v            a register of any width, or as many in braces as v2, v4 or v8 say: fills that many operands
    //   c            what a call names: a function, or the register of its address, with its arguments
    //   clock        a special register that changes while the kernel runs
    //   {x}          registers in braces, of any width and number: fills that many operands
    // A destination may be a sink (_). Instr::at holds them in order.
    const char *operands;

    Select select;
};

// An instruction as a row matched it.
struct Form {
    const Row *row = nullptr;
    ptx::Type types[4] = {};             // in their order; none where there are fewer
    std::vector<std::string_view> words; // the modifiers that are not types, in their order
    uint8_t widths[OPERANDS_MAX] = {};   // bytes of a lane of each operand's register, where the row says x or v
    const ptx::Instruction *source = nullptr;
    const ptx::Function *function = nullptr;

    ptx::Type type() const { return types[0]; }
    bool has(std::string_view word) const;
    // The first of the form's words that is in "a|b|c"; empty if there is none.
    std::string_view one_of(std::string_view alternatives) const;
};

struct Rows {
    const Row *first;
    size_t count;
};

// The groups of the table, each in a file of its own; they are compiled for several instruction sets of the CPU, and
// the widest that this one has is taken, or the one that VGPU_ISA names: baseline, v3 or v4 (x86-64-v3 and -v4).
std::vector<Rows> instruction_table();

} // namespace vgpu

#endif
