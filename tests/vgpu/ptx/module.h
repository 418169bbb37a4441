// What the parser makes of PTX text: variables and functions, and instructions still spelled as in the text, with their
// registers, labels and symbols resolved. It knows the grammar of PTX and no instruction.
#ifndef SHOAL_TESTS_VGPU_PTX_MODULE_H
#define SHOAL_TESTS_VGPU_PTX_MODULE_H

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/vgpu/ptx/types.h"

namespace vgpu::ptx {

// Something that the parser or the decoder does not know or that is not PTX: the message names the PTX line.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a name in an operand stands for.
enum class SymbolKind : uint8_t {
    variable,        // Function::variables
    parameter,       // Function::parameters
    result,          // Function::results
    module_variable, // Module::variables
    function,        // Module::functions
};

struct Operand {
    enum class Kind : uint8_t {
        reg,      // index: in Function::registers
        special,  // name: "%tid.x"
        integer,  // value
        floating, // value: the bits of an f32 or f64, as `type` says ("1.5" without a type is f64)
        symbol,   // symbol, index; value: the offset of "name+4"
        name,     // a name that is nothing declared: vprintf, a call prototype's label
        address,  // [parts[0] + value]
        vector,   // {parts}
        list,     // (parts), of a call
        pair,     // parts[0] | parts[1]
        sink,     // _
    };
    Kind kind = Kind::sink;
    bool negated = false; // !p
    Type type = Type::none;
    SymbolKind symbol = SymbolKind::variable;
    int index = -1;
    uint64_t value = 0;
    std::string name;
    std::vector<Operand> parts;
};

struct Instruction {
    int guard = -1; // index in Function::registers, -1: none
    bool guard_negated = false;
    std::vector<std::string> opcode;    // "ld.global.v4.f32": {"ld", "global", "v4", "f32"}
    std::vector<Operand> operands;      // without a branch's label and a brx.idx's table, which are in targets
    std::vector<int> targets;           // indices in Function::code
    int line = 0;                       // in the PTX text, from 1
    int file = 0, file_line = 0;        // of the last .loc, in Module::files; 0: none
    uint64_t used_bytes = ~uint64_t{0}; // a bit for each byte that it loads: .pragma "used_bytes_mask 15" before it
    std::string text;                   // as written, for messages
};

struct Register {
    std::string name;
    Type type;
};

// `size_bytes` of the initial value, which is zero where `initial` ends; addresses are added in at `relocations`.
struct Relocation {
    uint64_t offset;
    int size_bytes;
    SymbolKind symbol; // module_variable or function
    int index;
    uint64_t addend;
};

struct Variable {
    std::string name;
    Space space = Space::global; // global, constant, shared, local, param (of a call)
    uint64_t size_bytes = 0, align = 1;
    bool is_extern = false;  // defined elsewhere; in shared: the dynamic shared memory
    bool is_managed = false; // .attribute(.managed)
    std::vector<uint8_t> initial;
    std::vector<Relocation> relocations;
};

struct Parameter {
    std::string name;
    uint64_t size_bytes = 0, align = 1;
    uint64_t offset = 0; // in the parameters' block, laid out in order, each aligned
};

struct Function {
    std::string name;
    bool is_entry = false, is_defined = false;
    std::vector<Parameter> parameters, results;
    uint64_t parameters_bytes = 0, results_bytes = 0;
    std::vector<Register> registers;
    std::vector<Variable> variables; // of all its scopes, shared ones too
    std::vector<Instruction> code;
    uint32_t max_threads[3] = {0, 0, 0};      // .maxntid, zeros: not given
    uint32_t required_threads[3] = {0, 0, 0}; // .reqntid
    uint32_t required_cluster[3] = {0, 0, 0}; // .reqnctapercluster
    int line = 0;
    std::string error; // why the body could not be parsed; it is empty then. Only who runs the function minds
};

struct Module {
    int version = 0; // 90 for .version 9.0
    int target = 0;  // 90 for sm_90, sm_90a
    std::vector<Variable> variables;
    std::vector<std::unique_ptr<Function>> functions; // a declaration and its definition are one
    std::vector<std::string> files;                   // by .file number; files[0] is empty
    int find_function(std::string_view name) const;   // -1: none
    int find_variable(std::string_view name) const;
};

// Throws Error, but for what is wrong in the body of a function, which the function keeps.
std::unique_ptr<Module> parse(std::string_view text);

} // namespace vgpu::ptx

#endif
