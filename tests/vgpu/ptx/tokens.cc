// What the grammar's smallest parts are made of.
#include "tests/vgpu/ptx/tokens.h"

namespace vgpu::ptx {

namespace {

constexpr uint64_t ALIGN_MAX = uint64_t{1} << 20;
constexpr uint64_t NEGATIVE_MAX = uint64_t{1} << 63;

} // namespace

void Tokens::fail(const std::string &what) const {
    fail_at(current_.line, what, at_end() ? std::string_view("the end of the text") : current_.text);
}

Token Tokens::take() {
    last_ = current_;
    current_ = ahead_;
    ahead_ = lexer_.next();
    return last_;
}

bool Tokens::accept(std::string_view text) {
    if (!at(text)) return false;
    take();
    return true;
}

void Tokens::expect(std::string_view text) {
    if (!accept(text)) fail("expected '" + std::string(text) + "'");
}

std::string_view Tokens::take_name(const char *what) {
    if (!at_word() || current_.text == "_" || current_.text.find_first_of(".:") != std::string_view::npos) {
        fail(std::string("expected ") + what);
    }
    return take().text;
}

std::string_view Tokens::take_string(const char *what) {
    if (current_.kind != TokenKind::string) fail(std::string("expected ") + what);
    return take().text;
}

uint64_t Tokens::take_unsigned(const char *what, uint64_t max) {
    Literal literal;
    if (current_.kind != TokenKind::number || !parse_literal(current_.text, &literal) || literal.type != Type::none) {
        fail(std::string("expected ") + what);
    }
    if (literal.value > max) fail(std::string(what) + " that is too large");
    take();
    return literal.value;
}

Literal Tokens::take_literal() {
    const bool is_negative = accept("-");
    Literal literal;
    if (current_.kind != TokenKind::number) fail("expected a number");
    if (!parse_literal(current_.text, &literal)) fail("not a number, or one that does not fit into 64 bits");
    if (is_negative) {
        if (literal.type == Type::none) {
            if (literal.value > NEGATIVE_MAX) fail("a negative number that does not fit into 64 bits");
            literal.value = 0 - literal.value;
        } else {
            literal.value ^= uint64_t{1} << (literal.type == Type::f32 ? 31 : 63);
        }
    }
    take();
    return literal;
}

uint64_t Tokens::take_offset() {
    if (!accept("+") && !at("-")) return 0;
    const Literal literal = take_literal();
    if (literal.type != Type::none) fail_last("an offset that is no integer");
    return literal.value;
}

uint64_t Tokens::take_align() {
    const uint64_t align = take_unsigned("an alignment", ALIGN_MAX);
    if (align == 0 || (align & (align - 1)) != 0) fail_last("an alignment that is no power of two");
    return align;
}

void Tokens::skip_pragma() {
    do {
        take_string("a pragma's text");
    } while (accept(","));
    expect(";");
}

} // namespace vgpu::ptx
