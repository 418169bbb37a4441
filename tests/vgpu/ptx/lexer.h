// Cuts PTX text into tokens.
#ifndef SHOAL_TESTS_VGPU_PTX_LEXER_H
#define SHOAL_TESTS_VGPU_PTX_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/vgpu/ptx/module.h"
#include "tests/vgpu/ptx/types.h"

namespace vgpu::ptx {

enum class TokenKind : uint8_t {
    word,        // "%r1", "$L__BB0_5", "_"; whole with its dots: "ld.global.u32", "%tid.x"; one directive: ".reg"
    number,      // "12", "0x1F", "0f3F800000", "1.5e-3"; a sign is a token of its own
    string,      // the text between the quotes
    punctuation, // one character
    end,
};

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text; // a part of the PTX text
    int line = 0;
};

// "PTX line N: <what> near '<near>'", with what cannot be printed in `near` replaced and its end cut off.
[[noreturn]] void fail_at(int line, const std::string &what, std::string_view near);

class Lexer {
  public:
    explicit Lexer(std::string_view text) : rest_(text) {}

    // The next token; of kind end, again and again, where the text ends.
    Token next();

  private:
    void skip_blanks_and_comments();
    Token take(TokenKind kind, size_t length);
    Token take_string();

    std::string_view rest_;
    int line_ = 1;
};

// The text from one token to another, without comments and with single spaces for line ends and blanks.
std::string on_one_line(const Token &first, const Token &last);

// The value of a number's text. Type none: an integer; f32 and f64: their bits.
struct Literal {
    Type type = Type::none;
    uint64_t value = 0;
};

// false: no number, or one that does not fit into 64 bits.
bool parse_literal(std::string_view text, Literal *literal);

} // namespace vgpu::ptx

#endif
