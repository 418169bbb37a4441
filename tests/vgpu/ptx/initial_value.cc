// Initial values of variables: numbers and addresses, in braces as in C.
#include <cstring>

#include "tests/vgpu/ptx/declarations.h"

namespace vgpu::ptx {

namespace {

constexpr uint64_t INITIAL_BYTES_MAX = uint64_t{1} << 26;
constexpr int ADDRESS_BYTES = 8;

// The bits of a floating-point number as the f32 or f64 that `type` says.
uint64_t convert_floating(const Literal &literal, Type type) {
    if (literal.type == type) return literal.value;
    uint64_t bits = 0;
    if (type == Type::f32) {
        double wide;
        std::memcpy(&wide, &literal.value, sizeof wide);
        const float narrow = static_cast<float>(wide);
        std::memcpy(&bits, &narrow, sizeof narrow);
    } else {
        float narrow;
        std::memcpy(&narrow, &literal.value, sizeof narrow);
        const double wide = static_cast<double>(narrow);
        std::memcpy(&bits, &wide, sizeof wide);
    }
    return bits;
}

bool is_integer_or_bits(Type type) { return type >= Type::b8 && type <= Type::s64; }

class InitialValue {
  public:
    InitialValue(Tokens *tokens, const Symbols &symbols, Type type, const Declarator &declarator, Variable *variable)
        : tokens_(*tokens), symbols_(symbols), type_(type), declarator_(declarator), variable_(*variable) {}

    uint64_t parse_braces(size_t dimension, uint64_t first, uint64_t count);
    void parse_element(uint64_t element);

  private:
    void parse_address(uint64_t element);
    void parse_number(uint64_t element);
    void store(uint64_t element, uint64_t bits);

    Tokens &tokens_;
    const Symbols &symbols_;
    const Type type_;
    const Declarator &declarator_;
    Variable &variable_;
};

// The values of elements first to first + count - 1, an array of the dimensions from `dimension` on. What is not given
// stays zero. Returns how many elements were given.
uint64_t InitialValue::parse_braces(size_t dimension, uint64_t first, uint64_t count) {
    const uint64_t row = declarator_.count_elements(dimension + 1);
    uint64_t given = 0;
    tokens_.expect("{");
    while (!tokens_.accept("}")) {
        if (given >= count) tokens_.fail("more initial values than the array has elements");
        if (tokens_.at("{")) {
            const bool is_row = dimension + 1 < declarator_.extents.size() && given % row == 0;
            if (!is_row) tokens_.fail("braces in an initial value that match no dimension");
            parse_braces(dimension + 1, first + given, row);
            given += row;
        } else {
            parse_element(first + given);
            given++;
        }
        if (!tokens_.at("}")) tokens_.expect(",");
    }
    return given;
}

void InitialValue::parse_element(uint64_t element) {
    if (tokens_.at_word()) {
        parse_address(element);
    } else {
        parse_number(element);
    }
}

// "name", "generic(name)" and either with "+4".
void InitialValue::parse_address(uint64_t element) {
    if (type_bytes(type_) != ADDRESS_BYTES || !is_integer_or_bits(type_)) {
        tokens_.fail("an address as initial value of a type that is not 64 bits wide");
    }
    const bool is_generic = tokens_.at("generic") && tokens_.ahead().text == "(";
    if (is_generic) {
        tokens_.take();
        tokens_.expect("(");
    }
    const auto symbol = symbols_.find(std::string(tokens_.current().text));
    if (symbol == symbols_.end()) tokens_.fail("no variable or function has this name");
    tokens_.take();
    if (is_generic) tokens_.expect(")");
    Relocation relocation{element * ADDRESS_BYTES, ADDRESS_BYTES, symbol->second.kind, symbol->second.index, 0};
    relocation.addend = tokens_.take_offset();
    store(element, 0);
    variable_.relocations.push_back(relocation);
}

void InitialValue::parse_number(uint64_t element) {
    const Literal literal = tokens_.take_literal();
    const uint64_t bytes = type_bytes(type_);
    if (tokens_.at("(")) tokens_.fail_last("a part of an address as initial value is not supported");
    if (type_ == Type::f32 || type_ == Type::f64) {
        if (literal.type == Type::none) tokens_.fail_last("an integer as initial value of a floating-point variable");
        return store(element, convert_floating(literal, type_));
    }
    if (bytes > sizeof literal.value || !is_integer_or_bits(type_))
        tokens_.fail_last("a variable of this type has no initial value");
    if (literal.type != Type::none && type_bytes(literal.type) != bytes) {
        tokens_.fail_last("a floating-point number as initial value of a variable of another size");
    }
    if (bytes < sizeof literal.value) {
        const uint64_t values = uint64_t{1} << (8 * bytes);
        const bool fits = literal.value < values || literal.value >= 0 - values / 2;
        if (!fits) tokens_.fail_last("an initial value that does not fit into the variable's type");
    }
    store(element, literal.value);
}

void InitialValue::store(uint64_t element, uint64_t bits) {
    const uint64_t bytes = type_bytes(type_), end = (element + 1) * bytes;
    if (end > INITIAL_BYTES_MAX) tokens_.fail_last("an initial value that is too large");
    if (variable_.initial.size() < end) variable_.initial.resize(end);
    std::memcpy(&variable_.initial[end - bytes], &bits, bytes);
}

} // namespace

void parse_initial_value(Tokens *tokens, const Symbols &symbols, Type type, Declarator *declarator,
                         Variable *variable) {
    InitialValue value(tokens, symbols, type, *declarator, variable);
    if (declarator->extents.empty()) return value.parse_element(0);
    const bool is_unsized = declarator->is_unsized();
    const uint64_t given = value.parse_braces(0, 0, is_unsized ? BYTES_MAX : declarator->count_elements());
    if (!is_unsized) return;
    if (given == 0) tokens->fail_last("an array without a size and without initial values");
    const uint64_t row = declarator->count_elements(1);
    declarator->extents[0] = (given + row - 1) / row;
}

} // namespace vgpu::ptx
