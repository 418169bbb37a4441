// The module level of PTX: variables, functions and the directives around them.
#include <algorithm>
#include <map>
#include <utility>

#include "tests/vgpu/ptx/body.h"
#include "tests/vgpu/ptx/declarations.h"
#include "tests/vgpu/ptx/module.h"
#include "tests/vgpu/ptx/tokens.h"

namespace vgpu::ptx {

namespace {

constexpr uint64_t FILES_MAX = 65535;
constexpr size_t REGISTERS_MAX = size_t{1} << 20;
constexpr size_t INITIAL_BYTES_MAX = size_t{1} << 27;

bool are_alike(const std::vector<Parameter> &a, const std::vector<Parameter> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Parameter &x, const Parameter &y) {
        return x.size_bytes == y.size_bytes && x.offset == y.offset;
    });
}

// Whether calls of one may be calls of the other.
bool are_alike(const Function &a, const Function &b) {
    return a.is_entry == b.is_entry && are_alike(a.parameters, b.parameters) && are_alike(a.results, b.results);
}

class ModuleParser {
  public:
    explicit ModuleParser(std::string_view text) : tokens_(text) {}

    std::unique_ptr<Module> parse();

  private:
    struct Alias {
        int function, target;
        Token name;
    };

    void parse_version();
    void parse_target();
    void parse_address_size();
    void parse_file();
    void parse_section();
    void parse_alias();
    int parse_function_name();
    void parse_declaration();
    void parse_variables(Space space, bool is_extern);
    void add_variable(Variable variable);
    void parse_function(bool is_entry, bool is_extern);
    void parse_body(Function *function);
    bool skip_body();
    void parse_function_directives(Function *function);
    void parse_extents(uint32_t extents[3]);
    Function *add_function(Function function);
    void check_files() const;
    void resolve_aliases();

    Tokens tokens_;
    std::unique_ptr<Module> module_ = std::make_unique<Module>();
    Symbols symbols_;
    std::vector<Alias> aliases_;
    std::map<int, int> located_files_; // see BodyParser; of all functions
    size_t registers_ = 0, initial_bytes_ = 0;
};

std::unique_ptr<Module> ModuleParser::parse() {
    module_->files.emplace_back();
    parse_version();
    parse_target();
    while (!tokens_.at_end()) {
        if (tokens_.accept(".address_size")) {
            parse_address_size();
        } else if (tokens_.accept(".file")) {
            parse_file();
        } else if (tokens_.accept(".section")) {
            parse_section();
        } else if (tokens_.accept(".pragma")) {
            tokens_.skip_pragma();
        } else if (tokens_.accept(".alias")) {
            parse_alias();
        } else if (!tokens_.accept(";")) {
            parse_declaration();
        }
    }
    check_files();
    resolve_aliases();
    return std::move(module_);
}

// ---- directives ----------------------------------------------------------------------------------------------------

// ".version 9.0"
void ModuleParser::parse_version() {
    tokens_.expect(".version");
    const std::string_view text = tokens_.current().text;
    const size_t dot = text.find('.');
    Literal major, minor;
    const bool is_version = tokens_.current().kind == TokenKind::number && dot != std::string_view::npos &&
                            parse_literal(text.substr(0, dot), &major) && parse_literal(text.substr(dot + 1), &minor) &&
                            major.value < 100 && minor.value < 10;
    if (!is_version) tokens_.fail("expected a version");
    module_->version = static_cast<int>(major.value * 10 + minor.value);
    tokens_.take();
}

// ".target sm_90a, debug"
void ModuleParser::parse_target() {
    tokens_.expect(".target");
    std::string_view name = tokens_.current().text;
    Literal number;
    bool is_target = name.size() > 4 && name.substr(0, 3) == "sm_";
    if (is_target && (name.back() == 'a' || name.back() == 'f')) name.remove_suffix(1);
    is_target = is_target && parse_literal(name.substr(3), &number) && number.value < 1000;
    if (!is_target) tokens_.fail("expected a target");
    module_->target = static_cast<int>(number.value);
    tokens_.take();
    while (tokens_.accept(",")) {
        const bool is_option =
            tokens_.accept("debug") || tokens_.accept("texmode_independent") || tokens_.accept("texmode_unified");
        if (!is_option) tokens_.fail("a target's option that is not supported");
    }
}

void ModuleParser::parse_address_size() {
    if (!tokens_.at("64")) tokens_.fail("only addresses of 64 bits are supported");
    tokens_.take();
}

// ".file 1 "name"" and, in some files, ", timestamp, size"
void ModuleParser::parse_file() {
    const auto number = static_cast<size_t>(tokens_.take_unsigned("a file's number", FILES_MAX));
    if (number == 0) tokens_.fail_last("a file that has the number 0");
    if (module_->files.size() <= number) module_->files.resize(number + 1);
    module_->files[number] = tokens_.take_string("a file's name");
    for (int i = 0; i < 2 && tokens_.accept(","); i++)
        tokens_.take_unsigned("a number", UINT64_MAX);
}

// ".section .debug_str { ... }" is for debuggers.
void ModuleParser::parse_section() {
    if (!tokens_.at_directive()) tokens_.fail("expected a section's name");
    tokens_.take();
    tokens_.expect("{");
    while (!tokens_.accept("}")) {
        if (tokens_.at_end() || tokens_.at("{")) tokens_.fail("expected '}' of a section");
        tokens_.take();
    }
}

// ".alias name, function;"
void ModuleParser::parse_alias() {
    Alias alias;
    alias.name = tokens_.current();
    alias.function = parse_function_name();
    tokens_.expect(",");
    alias.target = parse_function_name();
    tokens_.expect(";");
    aliases_.push_back(alias);
}

int ModuleParser::parse_function_name() {
    const auto symbol = symbols_.find(std::string(tokens_.current().text));
    if (symbol == symbols_.end() || symbol->second.kind != SymbolKind::function) {
        tokens_.fail("no function has this name");
    }
    tokens_.take();
    return symbol->second.index;
}

void ModuleParser::check_files() const {
    for (const auto &[file, line] : located_files_) {
        const auto number = static_cast<size_t>(file);
        const bool is_known = number < module_->files.size() && !module_->files[number].empty();
        if (!is_known) fail_at(line, "a .loc of a file that no .file names", std::to_string(file));
    }
}

// ---- variables -----------------------------------------------------------------------------------------------------

void ModuleParser::parse_declaration() {
    bool is_extern = false;
    for (;;) {
        if (tokens_.accept(".extern")) {
            is_extern = true;
        } else if (!tokens_.accept(".visible") && !tokens_.accept(".weak") && !tokens_.accept(".common")) {
            break;
        }
    }
    if (tokens_.accept(".global")) return parse_variables(Space::global, is_extern);
    if (tokens_.accept(".const")) return parse_variables(Space::constant, is_extern);
    if (tokens_.accept(".shared")) return parse_variables(Space::shared, is_extern);
    if (tokens_.accept(".entry")) return parse_function(true, is_extern);
    if (tokens_.accept(".func")) return parse_function(false, is_extern);
    tokens_.fail("expected a directive of a module");
}

void ModuleParser::parse_variables(Space space, bool is_extern) {
    const Specifiers specifiers = parse_specifiers(&tokens_);
    do {
        Declarator declarator = parse_declarator(&tokens_, specifiers);
        Variable variable;
        variable.name = declarator.name;
        variable.space = space;
        variable.align = specifiers.natural_align();
        variable.is_extern = is_extern;
        variable.is_managed = specifiers.is_managed;
        if (tokens_.at("=") && (is_extern || space == Space::shared)) tokens_.fail("no initial value can be here");
        if (tokens_.accept("=")) parse_initial_value(&tokens_, symbols_, specifiers.type, &declarator, &variable);
        if (declarator.is_unsized() && !is_extern) tokens_.fail_last("an array without a size");
        variable.size_bytes = specifiers.element_bytes() * declarator.count_elements();
        initial_bytes_ += variable.initial.size();
        if (initial_bytes_ > INITIAL_BYTES_MAX) tokens_.fail_last("initial values that are too large together");
        add_variable(std::move(variable));
    } while (tokens_.accept(","));
    tokens_.expect(";");
}

// A definition may follow or precede a declaration with .extern.
void ModuleParser::add_variable(Variable variable) {
    if (variable.name == "_") tokens_.fail_last("_ is no name here");
    const Symbol symbol{SymbolKind::module_variable, static_cast<int>(module_->variables.size())};
    const auto [known, is_new] = symbols_.emplace(variable.name, symbol);
    if (is_new) {
        module_->variables.push_back(std::move(variable));
        return;
    }
    if (known->second.kind != SymbolKind::module_variable) tokens_.fail_last(variable.name + " is declared twice");
    Variable &first = module_->variables[static_cast<size_t>(known->second.index)];
    if (!first.is_extern && !variable.is_extern) tokens_.fail_last(variable.name + " is defined twice");
    const bool has_sizes = first.size_bytes > 0 && variable.size_bytes > 0;
    if (first.space != variable.space || (has_sizes && first.size_bytes != variable.size_bytes)) {
        tokens_.fail_last(variable.name + " is declared differently before");
    }
    if (first.is_extern) first = std::move(variable);
}

// ---- functions -----------------------------------------------------------------------------------------------------

void ModuleParser::parse_function(bool is_entry, bool is_extern) {
    Function header;
    header.is_entry = is_entry;
    header.line = tokens_.line();
    if (tokens_.at(".attribute")) tokens_.fail("attributes of functions are not supported");
    if (!is_entry && tokens_.at("(")) header.results_bytes = parse_parameters(&tokens_, &header.results);
    header.name = tokens_.take_name("a function's name");
    if (tokens_.at("(")) header.parameters_bytes = parse_parameters(&tokens_, &header.parameters);
    parse_function_directives(&header);
    header.is_defined = tokens_.at("{");
    if (is_extern && header.is_defined) tokens_.fail("a function with .extern has a body");
    Function *function = add_function(std::move(header));
    if (!tokens_.at("{")) return tokens_.expect(";");
    parse_body(function);
    registers_ += function->registers.size();
    if (registers_ > REGISTERS_MAX) tokens_.fail_last("too many registers");
}

void ModuleParser::parse_body(Function *function) {
    const Tokens begin = tokens_;
    try {
        BodyParser body(&tokens_, symbols_, function);
        body.parse();
        located_files_.insert(body.located_files().begin(), body.located_files().end());
    } catch (const Error &error) {
        function->error = error.what();
        function->registers.clear();
        function->variables.clear();
        function->code.clear();
        tokens_ = begin;
        if (!skip_body()) throw;
    }
}

// From "{" to the "}" that closes it; false: nothing does.
bool ModuleParser::skip_body() {
    int depth = 0;
    do {
        if (tokens_.at_end()) return false;
        if (tokens_.at("{")) depth++;
        if (tokens_.at("}")) depth--;
        tokens_.take();
    } while (depth > 0);
    return true;
}

void ModuleParser::parse_function_directives(Function *function) {
    while (tokens_.at_directive()) {
        if (tokens_.accept(".maxntid")) {
            parse_extents(function->max_threads);
        } else if (tokens_.accept(".reqntid")) {
            parse_extents(function->required_threads);
        } else if (tokens_.accept(".reqnctapercluster")) {
            parse_extents(function->required_cluster);
        } else if (tokens_.accept(".maxnreg") || tokens_.accept(".minnctapersm") || tokens_.accept(".maxnctapersm") ||
                   tokens_.accept(".maxclusterrank")) { // for ptxas and for what a launch may ask for
            tokens_.take_unsigned("a number", UINT32_MAX);
        } else if (tokens_.accept(".pragma")) {
            tokens_.skip_pragma();
        } else if (!tokens_.accept(".noreturn") && !tokens_.accept(".explicitcluster")) {
            tokens_.fail("a directive that is unknown before a function's body");
        }
    }
}

// "128", "16, 8" or "16, 4, 2"; those left out are 1.
void ModuleParser::parse_extents(uint32_t extents[3]) {
    for (int i = 0; i < 3; i++) {
        extents[i] = 1;
        if (i > 0 && !tokens_.accept(",")) continue;
        extents[i] = static_cast<uint32_t>(tokens_.take_unsigned("a size", UINT32_MAX));
        if (extents[i] == 0) tokens_.fail_last("a size of 0");
    }
}

// Makes a declaration and the definition of the same function one.
Function *ModuleParser::add_function(Function function) {
    const Symbol symbol{SymbolKind::function, static_cast<int>(module_->functions.size())};
    const auto [known, is_new] = symbols_.emplace(function.name, symbol);
    if (is_new) {
        module_->functions.push_back(std::make_unique<Function>(std::move(function)));
        return module_->functions.back().get();
    }
    if (known->second.kind != SymbolKind::function) tokens_.fail_last(function.name + " is declared twice");
    Function *first = module_->functions[static_cast<size_t>(known->second.index)].get();
    if (first->is_defined && function.is_defined) tokens_.fail_last(function.name + " is defined twice");
    if (!are_alike(*first, function)) tokens_.fail_last(function.name + " is declared differently before");
    if (function.is_defined) *first = std::move(function);
    return first;
}

// Whatever names an alias names its target from here on.
void ModuleParser::resolve_aliases() {
    std::map<int, int> targets;
    for (const Alias &alias : aliases_) {
        const auto fail = [&alias](const char *what) { fail_at(alias.name.line, what, alias.name.text); };
        const Function &function = *module_->functions[static_cast<size_t>(alias.function)];
        const Function &target = *module_->functions[static_cast<size_t>(alias.target)];
        if (function.is_defined) fail("an alias with a body");
        if (!target.is_defined) fail("an alias of a function without a body");
        if (!are_alike(function, target)) fail("an alias of a function with other parameters");
        if (!targets.emplace(alias.function, alias.target).second) fail("an alias that has a target already");
    }
    if (targets.empty()) return;
    const auto resolve = [&targets](SymbolKind kind, int *index) {
        const auto target = kind == SymbolKind::function ? targets.find(*index) : targets.end();
        if (target != targets.end()) *index = target->second;
    };
    for (Variable &variable : module_->variables) {
        for (Relocation &relocation : variable.relocations)
            resolve(relocation.symbol, &relocation.index);
    }
    for (const auto &function : module_->functions) {
        for (Instruction &instruction : function->code) {
            for (Operand &operand : instruction.operands) {
                if (operand.kind == Operand::Kind::symbol) resolve(operand.symbol, &operand.index);
                for (Operand &part : operand.parts) {
                    if (part.kind == Operand::Kind::symbol) resolve(part.symbol, &part.index);
                }
            }
        }
    }
}

} // namespace

int Module::find_function(std::string_view name) const {
    for (size_t i = 0; i < functions.size(); i++) {
        if (functions[i]->name == name) return static_cast<int>(i);
    }
    return -1;
}

int Module::find_variable(std::string_view name) const {
    for (size_t i = 0; i < variables.size(); i++) {
        if (variables[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

// Fat binaries fill PTX text up with zero bytes.
std::unique_ptr<Module> parse(std::string_view text) {
    while (!text.empty() && text.back() == '\0')
        text.remove_suffix(1);
    return ModuleParser(text).parse();
}

} // namespace vgpu::ptx
