// Instructions and their operands.
#include <algorithm>
#include <utility>

#include "tests/vgpu/ptx/body.h"

namespace vgpu::ptx {

namespace {

constexpr uint64_t WARP_SIZE = 32; // WARP_SZ

// Each has components x, y, z and w.
const char *const SPECIAL_VECTORS[] = {
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
};

const char *const SPECIAL_SCALARS[] = {
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%total_smem_size",
    "%aggr_smem_size",
    "%dynamic_smem_size",
    "%is_explicit_cluster",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%current_graph_exec",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%envreg1",
    "%envreg2",
};

bool is_special_register(std::string_view name) {
    for (const std::string_view scalar : SPECIAL_SCALARS) {
        if (name == scalar) return true;
    }
    const size_t dot = name.find('.');
    const bool is_component = dot != std::string_view::npos && dot + 2 == name.size() &&
                              std::string_view("xyzw").find(name[dot + 1]) != std::string_view::npos;
    if (dot != std::string_view::npos && !is_component) return false;
    for (const std::string_view vector : SPECIAL_VECTORS) {
        if (name.substr(0, dot) == vector) return true;
    }
    return false;
}

} // namespace

void BodyParser::parse_instruction() {
    Instruction instruction;
    instruction.line = tokens_.line();
    instruction.file = file_;
    instruction.file_line = file_line_;
    instruction.used_bytes = std::exchange(used_bytes_, ~uint64_t{0});
    const Token first = tokens_.current();
    parse_guard(&instruction);
    parse_opcode(&instruction);
    parse_operands(&instruction);
    instruction.text = on_one_line(first, tokens_.last());
    tokens_.expect(";");
    function_.code.push_back(std::move(instruction));
}

// "@%p1" or "@!%p1"
void BodyParser::parse_guard(Instruction *instruction) {
    if (!tokens_.accept("@")) return;
    instruction->guard_negated = tokens_.accept("!");
    const Binding *guard = find(std::string(tokens_.current().text), scope_);
    if (guard == nullptr || guard->kind != Binding::Kind::reg ||
        function_.registers[static_cast<size_t>(guard->index)].type != Type::pred) {
        tokens_.fail("no predicate has this name");
    }
    instruction->guard = guard->index;
    tokens_.take();
}

void BodyParser::parse_opcode(Instruction *instruction) {
    if (!tokens_.at_word() || tokens_.current().text[0] < 'a' || tokens_.current().text[0] > 'z') {
        tokens_.fail("expected an instruction");
    }
    std::string_view rest = tokens_.take().text;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
        instruction->opcode.emplace_back(rest.substr(0, dot));
        rest.remove_prefix(dot + 1);
    }
    instruction->opcode.emplace_back(rest);
    while (tokens_.at_directive()) { // "add .s32"
        instruction->opcode.emplace_back(tokens_.take().text.substr(1));
    }
}

void BodyParser::parse_operands(Instruction *instruction) {
    const std::string &name = instruction->opcode[0];
    if (name == "bra") return parse_branch_target(instruction);
    if (name == "brx") {
        instruction->operands.push_back(parse_operand());
        tokens_.expect(",");
        return parse_branch_target(instruction);
    }
    if (tokens_.at(";")) return;
    do {
        Operand operand;
        const bool is_name = name == "call" && take_foreign_name(&operand);
        instruction->operands.push_back(is_name ? std::move(operand) : parse_operand());
    } while (tokens_.accept(","));
}

// A call may name what no module defines, such as vprintf, and prototypes.
bool BodyParser::take_foreign_name(Operand *operand) {
    const std::string name(tokens_.current().text);
    if (!tokens_.at_word() || name[0] == '%' || name.find('.') != std::string::npos) return false;
    const Binding *binding = find(name, scope_);
    const bool is_known = binding != nullptr ? binding->kind != Binding::Kind::callees : symbols_.count(name) > 0;
    if (is_known) return false;
    operand->kind = Operand::Kind::name;
    operand->name = tokens_.take_name("a name");
    return true;
}

// The label of a bra, the table of a brx.idx; it ends the instruction.
void BodyParser::parse_branch_target(Instruction *instruction) {
    const int line = tokens_.line();
    const std::string name(tokens_.take_name("a label"));
    branches_.push_back({function_.code.size(), {name, scope_, line}, instruction->opcode[0] == "brx"});
}

Operand BodyParser::parse_operand() {
    if (tokens_.at("{")) return parse_elements(Operand::Kind::vector, "{", "}");
    if (tokens_.at("(")) return parse_elements(Operand::Kind::list, "(", ")");
    if (tokens_.at("[")) return parse_address();
    Operand operand = parse_simple();
    if (!tokens_.at("|")) return operand;
    const auto is_half = [](const Operand &half) {
        return (half.kind == Operand::Kind::reg && !half.negated) || half.kind == Operand::Kind::sink;
    };
    if (!is_half(operand)) tokens_.fail_last("only registers can stand in a pair");
    tokens_.take();
    Operand second = parse_simple();
    if (!is_half(second)) tokens_.fail_last("only registers can stand in a pair");
    Operand pair;
    pair.kind = Operand::Kind::pair;
    pair.parts = {std::move(operand), std::move(second)};
    return pair;
}

Operand BodyParser::parse_elements(Operand::Kind kind, const char *open, const char *close) {
    Operand operand;
    operand.kind = kind;
    tokens_.expect(open);
    if (kind == Operand::Kind::list && tokens_.accept(close)) return operand;
    do {
        operand.parts.push_back(parse_simple());
    } while (tokens_.accept(","));
    tokens_.expect(close);
    return operand;
}

// "[base]", "[base+4]", "[base+-4]"
Operand BodyParser::parse_address() {
    Operand address;
    address.kind = Operand::Kind::address;
    tokens_.expect("[");
    const bool is_number = tokens_.current().kind == TokenKind::number;
    Operand base = is_number ? parse_simple() : parse_word();
    const bool is_base = base.kind == Operand::Kind::reg || base.kind == Operand::Kind::symbol ||
                         (base.kind == Operand::Kind::integer && is_number);
    if (!is_base) tokens_.fail_last("the base of an address has to be a register, a variable or a number");
    address.parts.push_back(std::move(base));
    address.value = tokens_.take_offset();
    if (tokens_.at(",")) tokens_.fail("addresses with coordinates are not supported");
    tokens_.expect("]");
    return address;
}

Operand BodyParser::parse_simple() {
    Operand operand;
    if (tokens_.current().kind == TokenKind::number || tokens_.at("-")) {
        const Literal literal = tokens_.take_literal();
        operand.kind = literal.type == Type::none ? Operand::Kind::integer : Operand::Kind::floating;
        operand.type = literal.type;
        operand.value = literal.value;
        return operand;
    }
    if (tokens_.accept("!")) {
        operand = parse_word();
        const bool is_predicate = operand.kind == Operand::Kind::reg &&
                                  function_.registers[static_cast<size_t>(operand.index)].type == Type::pred;
        if (!is_predicate) tokens_.fail_last("what is negated is no predicate");
        operand.negated = true;
        return operand;
    }
    operand = parse_word();
    if (operand.kind == Operand::Kind::symbol) operand.value = tokens_.take_offset();
    return operand;
}

// A register, a special register, a symbol without its offset, WARP_SZ or a sink.
Operand BodyParser::parse_word() {
    if (!tokens_.at_word()) tokens_.fail("expected an operand");
    Operand operand;
    if (tokens_.accept("_")) return operand;
    const std::string name(tokens_.current().text);
    const Binding *binding = find(name, scope_);
    const auto symbol = binding == nullptr ? symbols_.find(name) : symbols_.end();
    if (binding != nullptr && binding->kind == Binding::Kind::reg) {
        operand.kind = Operand::Kind::reg;
        operand.index = binding->index;
    } else if (binding != nullptr && binding->kind == Binding::Kind::symbol) {
        operand.kind = Operand::Kind::symbol;
        operand.symbol = binding->symbol;
        operand.index = binding->index;
    } else if (binding != nullptr) {
        tokens_.fail("a label is no operand of this instruction");
    } else if (symbol != symbols_.end()) {
        operand.kind = Operand::Kind::symbol;
        operand.symbol = symbol->second.kind;
        operand.index = symbol->second.index;
        operand.name = name;
    } else if (name == "WARP_SZ") {
        operand.kind = Operand::Kind::integer;
        operand.value = WARP_SIZE;
    } else if (is_special_register(name)) {
        operand.kind = Operand::Kind::special;
        operand.name = name;
    } else if (name.find('.') != std::string::npos) {
        tokens_.fail("components of vectors are not supported");
    } else {
        tokens_.fail("nothing that is declared has this name");
    }
    tokens_.take();
    return operand;
}

} // namespace vgpu::ptx
