// Scopes, declarations and labels of a function's body.
#include "tests/vgpu/ptx/body.h"

namespace vgpu::ptx {

namespace {

constexpr int DEPTH_MAX = 64;
constexpr size_t REGISTERS_MAX = size_t{1} << 17;
constexpr size_t TARGETS_MAX = size_t{1} << 20;

} // namespace

void BodyParser::parse() {
    open_scope();
    for (size_t i = 0; i < function_.parameters.size(); i++) {
        declare(function_.parameters[i].name, {Binding::Kind::symbol, static_cast<int>(i), SymbolKind::parameter});
    }
    for (size_t i = 0; i < function_.results.size(); i++) {
        declare(function_.results[i].name, {Binding::Kind::symbol, static_cast<int>(i), SymbolKind::result});
    }
    const int outermost = depth_;
    do {
        if (tokens_.at_end()) tokens_.fail("the body of " + function_.name + " is not closed");
        parse_statement();
    } while (depth_ > outermost);
    close_scope();
    resolve_branches();
}

void BodyParser::parse_statement() {
    if (tokens_.at("{")) {
        open_scope();
        tokens_.take();
    } else if (tokens_.at("}")) {
        close_scope();
        tokens_.take();
    } else if (tokens_.at_directive()) {
        parse_directive();
    } else if (tokens_.at_word() && tokens_.ahead().text == ":") {
        parse_label();
    } else if (!tokens_.accept(";")) {
        parse_instruction();
    }
}

void BodyParser::parse_directive() {
    if (tokens_.accept(".loc")) {
        parse_location();
    } else if (tokens_.accept(".pragma")) {
        parse_pragma();
    } else if (tokens_.accept(".reg")) {
        parse_registers();
    } else if (tokens_.accept(".local")) {
        parse_variables(Space::local);
    } else if (tokens_.accept(".shared")) {
        parse_variables(Space::shared);
    } else if (tokens_.accept(".param")) {
        parse_variables(Space::param);
    } else {
        tokens_.fail("a directive that is unknown in a function");
    }
}

// "used_bytes_mask 15" is of the next instruction; what else there is are hints to ptxas.
void BodyParser::parse_pragma() {
    constexpr std::string_view USED_BYTES = "used_bytes_mask ";
    do {
        const std::string_view text = tokens_.take_string("a pragma's text");
        if (text.substr(0, USED_BYTES.size()) != USED_BYTES) continue;
        Literal mask;
        if (!parse_literal(text.substr(USED_BYTES.size()), &mask) || mask.type != Type::none) {
            tokens_.fail_last("a mask that is no integer");
        }
        used_bytes_ = mask.value;
    } while (tokens_.accept(","));
    tokens_.expect(";");
}

// ".loc file line column" and, for inlined code, ", function_name label[+4], inlined_at file line column".
void BodyParser::parse_location() {
    const int line = tokens_.line();
    const auto take = [&] { return static_cast<int>(tokens_.take_unsigned("a number of a .loc", INT32_MAX)); };
    file_ = take();
    file_line_ = take();
    take();
    while (tokens_.accept(",")) {
        if (tokens_.accept("function_name")) {
            tokens_.take_name("a label");
            tokens_.take_offset();
        } else {
            tokens_.expect("inlined_at");
            take();
            take();
            take();
        }
    }
    located_files_.emplace(file_, line);
}

// ".reg .b32 %r<100>, x;"
void BodyParser::parse_registers() {
    if (!tokens_.at_directive()) tokens_.fail("expected a register's type");
    const Type type = type_named(tokens_.current().text.substr(1));
    if (type == Type::none) tokens_.fail("not a type that a register can have");
    tokens_.take();
    const auto add = [&](const std::string &name) {
        if (function_.registers.size() == REGISTERS_MAX) tokens_.fail_last("too many registers");
        declare(name, {Binding::Kind::reg, static_cast<int>(function_.registers.size())});
        function_.registers.push_back({name, type});
    };
    do {
        const std::string name(tokens_.take_name("a register's name"));
        if (tokens_.accept("<")) {
            const uint64_t count = tokens_.take_unsigned("a number of registers", REGISTERS_MAX);
            tokens_.expect(">");
            for (uint64_t i = 0; i < count; i++)
                add(name + std::to_string(i));
        } else {
            add(name);
        }
    } while (tokens_.accept(","));
    tokens_.expect(";");
}

void BodyParser::parse_variables(Space space) {
    const Specifiers specifiers = parse_specifiers(&tokens_);
    do {
        const Declarator declarator = parse_declarator(&tokens_, specifiers);
        if (declarator.is_unsized()) tokens_.fail_last("an array without a size");
        Variable variable;
        variable.name = declarator.name;
        variable.space = space;
        variable.size_bytes = specifiers.element_bytes() * declarator.count_elements();
        variable.align = specifiers.natural_align();
        declare(variable.name, {Binding::Kind::symbol, static_cast<int>(function_.variables.size())});
        function_.variables.push_back(std::move(variable));
    } while (tokens_.accept(","));
    tokens_.expect(";");
}

// "name:" of code, or of what a brx.idx or an indirect call needs to know.
void BodyParser::parse_label() {
    const std::string name(tokens_.take_name("a label"));
    tokens_.expect(":");
    if (tokens_.accept(".branchtargets")) {
        parse_branch_table(name);
    } else if (tokens_.accept(".callprototype")) {
        parse_call_prototype(name);
    } else if (tokens_.accept(".calltargets")) {
        parse_call_targets(name);
    } else {
        declare(name, {Binding::Kind::label, static_cast<int>(function_.code.size())});
    }
}

void BodyParser::parse_branch_table(const std::string &name) {
    declare(name, {Binding::Kind::targets, static_cast<int>(branch_tables_.size())});
    BranchTable table;
    do {
        const int line = tokens_.line();
        table.labels.push_back({std::string(tokens_.take_name("a label")), scope_, line});
    } while (tokens_.accept(","));
    tokens_.expect(";");
    branch_tables_.push_back(std::move(table));
}

// "(.param .b32 _) _ (.param .b32 _) .noreturn;": calls go by the function's own parameters.
void BodyParser::parse_call_prototype(const std::string &name) {
    declare(name, {Binding::Kind::callees});
    std::vector<Parameter> results, parameters;
    if (tokens_.at("(")) parse_parameters(&tokens_, &results);
    tokens_.expect("_");
    if (tokens_.at("(")) parse_parameters(&tokens_, &parameters);
    tokens_.accept(".noreturn");
    tokens_.expect(";");
}

void BodyParser::parse_call_targets(const std::string &name) {
    declare(name, {Binding::Kind::callees});
    do {
        const auto symbol = symbols_.find(std::string(tokens_.current().text));
        if (symbol == symbols_.end() || symbol->second.kind != SymbolKind::function) {
            tokens_.fail("no function has this name");
        }
        tokens_.take();
    } while (tokens_.accept(","));
    tokens_.expect(";");
}

void BodyParser::open_scope() {
    if (depth_ == DEPTH_MAX) tokens_.fail("too many nested scopes");
    scopes_.push_back({scope_, {}});
    scope_ = static_cast<int>(scopes_.size()) - 1;
    depth_++;
}

void BodyParser::close_scope() {
    scope_ = scopes_[static_cast<size_t>(scope_)].parent;
    depth_--;
}

void BodyParser::declare(const std::string &name, const Binding &binding) {
    if (name == "_") tokens_.fail_last("_ is no name here");
    const bool is_new = scopes_[static_cast<size_t>(scope_)].names.emplace(name, binding).second;
    if (!is_new) tokens_.fail_last(name + " is declared twice in a scope");
}

const BodyParser::Binding *BodyParser::find(const std::string &name, int scope) const {
    while (scope >= 0) {
        const Scope &in = scopes_[static_cast<size_t>(scope)];
        const auto found = in.names.find(name);
        if (found != in.names.end()) return &found->second;
        scope = in.parent;
    }
    return nullptr;
}

void BodyParser::resolve_branches() {
    size_t targets = 0;
    for (const PendingBranch &branch : branches_) {
        std::vector<int> &to = function_.code[branch.instruction].targets;
        if (!branch.is_table) {
            to.push_back(resolve_label(branch.use));
            continue;
        }
        const Binding *table = find(branch.use.name, branch.use.scope);
        if (table == nullptr || table->kind != Binding::Kind::targets) {
            fail_at(branch.use.line, "no .branchtargets has this name", branch.use.name);
        }
        const std::vector<LabelUse> &labels = branch_tables_[static_cast<size_t>(table->index)].labels;
        targets += labels.size();
        if (targets > TARGETS_MAX) fail_at(branch.use.line, "too many branch targets", branch.use.name);
        for (const LabelUse &label : labels)
            to.push_back(resolve_label(label));
    }
}

int BodyParser::resolve_label(const LabelUse &use) const {
    const Binding *label = find(use.name, use.scope);
    if (label == nullptr || label->kind != Binding::Kind::label) {
        fail_at(use.line, "no label has this name", use.name);
    }
    return label->index;
}

} // namespace vgpu::ptx
