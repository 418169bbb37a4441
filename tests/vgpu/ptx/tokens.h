// The place in the PTX text where the parser is: takes what the grammar expects there or fails.
#ifndef SHOAL_TESTS_VGPU_PTX_TOKENS_H
#define SHOAL_TESTS_VGPU_PTX_TOKENS_H

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/vgpu/ptx/lexer.h"

namespace vgpu::ptx {

class Tokens {
  public:
    explicit Tokens(std::string_view text) : lexer_(text), current_(lexer_.next()), ahead_(lexer_.next()) {}

    const Token &current() const { return current_; }
    const Token &ahead() const { return ahead_; } // the one behind it
    int line() const { return current_.line; }
    const Token &last() const { return last_; } // the one that was taken last

    // Of a word or punctuation.
    bool at(std::string_view text) const { return current_.text == text && current_.kind != TokenKind::string; }
    bool at_end() const { return current_.kind == TokenKind::end; }
    bool at_word() const { return current_.kind == TokenKind::word; }
    bool at_directive() const { return at_word() && current_.text[0] == '.'; }

    Token take();
    bool accept(std::string_view text); // takes it if it is there
    void expect(std::string_view text);

    // These fail where something else is; `what` names for the message what it should be.
    std::string_view take_name(const char *what); // an identifier, without dots
    std::string_view take_string(const char *what);
    uint64_t take_unsigned(const char *what, uint64_t max);
    Literal take_literal(); // with its sign; a negative integer is in two's complement
    uint64_t take_offset(); // "+4", "+-4" or "-4" as take_literal() gives it; nothing: 0
    uint64_t take_align();  // what follows .align

    void skip_pragma(); // what follows .pragma: hints to ptxas

    // Something is wrong with the current token, or with the last.
    [[noreturn]] void fail(const std::string &what) const;
    [[noreturn]] void fail_last(const std::string &what) const { fail_at(last_.line, what, last_.text); }

  private:
    Lexer lexer_;
    Token last_, current_, ahead_;
};

} // namespace vgpu::ptx

#endif
