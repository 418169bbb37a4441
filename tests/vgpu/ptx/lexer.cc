// Tokens and numbers of PTX text.
#include "tests/vgpu/ptx/lexer.h"

#include <charconv>
#include <cstring>

namespace vgpu::ptx {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_word_char(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

bool is_punctuation(char c) { return c != '\0' && std::strchr(",;:{}[]()<>=+-|!@", c) != nullptr; }

// The character at `at`; 0 behind the end.
char char_at(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }

// An opcode and a special register are one word with all their parts ("mbarrier::complete_tx" too), whereas directives
// that are not separated by blanks are several words (".param.b32").
size_t word_length(std::string_view text) {
    const bool is_directive = text[0] == '.';
    size_t length = 1;
    for (;;) {
        if (is_word_char(char_at(text, length))) {
            length++;
        } else if (!is_directive && char_at(text, length) == '.' && is_word_char(char_at(text, length + 1))) {
            length += 2;
        } else if (!is_directive && char_at(text, length) == ':' && char_at(text, length + 1) == ':' &&
                   is_word_char(char_at(text, length + 2))) {
            length += 3;
        } else {
            return length;
        }
    }
}

// "0x", "0f" and the like, where e is no exponent.
bool has_prefix(std::string_view text) { return text.size() > 1 && text[0] == '0' && is_letter(text[1]); }

size_t number_length(std::string_view text) {
    const bool may_have_exponent = !has_prefix(text);
    size_t length = 1;
    for (;; length++) {
        const char c = char_at(text, length);
        if (is_word_char(c) || (c == '.' && !is_letter(char_at(text, length + 1)))) continue;
        const bool is_after_e = text[length - 1] == 'e' || text[length - 1] == 'E';
        if ((c == '+' || c == '-') && may_have_exponent && is_after_e) continue;
        return length;
    }
}

bool parse_digits(std::string_view digits, int base, uint64_t *value) {
    const char *end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, *value, base);
    return result.ec == std::errc() && result.ptr == end;
}

bool parse_integer(std::string_view text, uint64_t *value) {
    if (text.back() == 'U') text.remove_suffix(1);
    if (text.empty()) return false;
    if (text.size() == 1 || text[0] != '0') return parse_digits(text, 10, value);
    if (text[1] == 'x' || text[1] == 'X') return parse_digits(text.substr(2), 16, value);
    if (text[1] == 'b' || text[1] == 'B') return parse_digits(text.substr(2), 2, value);
    return parse_digits(text.substr(1), 8, value);
}

bool parse_decimal(std::string_view text, uint64_t *bits) {
    double value = 0;
    const char *end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) return false;
    std::memcpy(bits, &value, sizeof value);
    return true;
}

} // namespace

void fail_at(int line, const std::string &what, std::string_view near) {
    constexpr size_t NEAR_MAX = 60;
    std::string shown;
    for (const char c : near.substr(0, NEAR_MAX))
        shown += c >= ' ' && c <= '~' ? c : '?';
    if (near.size() > NEAR_MAX) shown += "...";
    throw Error("PTX line " + std::to_string(line) + ": " + what + " near '" + shown + "'");
}

void Lexer::skip_blanks_and_comments() {
    for (;;) {
        size_t length = 0;
        if (is_blank(char_at(rest_, 0))) {
            length = 1;
        } else if (rest_.substr(0, 2) == "//") {
            length = rest_.find('\n');
            if (length == std::string_view::npos) length = rest_.size();
        } else if (rest_.substr(0, 2) == "/*") {
            const size_t end = rest_.find("*/", 2);
            if (end == std::string_view::npos) fail_at(line_, "a comment does not end", rest_);
            length = end + 2;
        } else {
            return;
        }
        for (const char c : rest_.substr(0, length))
            line_ += c == '\n';
        rest_.remove_prefix(length);
    }
}

Token Lexer::take(TokenKind kind, size_t length) {
    const Token token{kind, rest_.substr(0, length), line_};
    rest_.remove_prefix(length);
    return token;
}

Token Lexer::take_string() {
    for (size_t at = 1; at < rest_.size() && rest_[at] != '\n'; at++) {
        if (rest_[at] == '\\' && char_at(rest_, at + 1) != '\n') {
            at++; // whatever it escapes
        } else if (rest_[at] == '"') {
            Token token = take(TokenKind::string, at + 1);
            token.text = token.text.substr(1, at - 1);
            return token;
        }
    }
    fail_at(line_, "a string does not end on its line", rest_);
}

Token Lexer::next() {
    skip_blanks_and_comments();
    if (rest_.empty()) return {TokenKind::end, rest_, line_};
    const char first = rest_[0], second = char_at(rest_, 1);
    if (is_digit(first) || (first == '.' && is_digit(second))) return take(TokenKind::number, number_length(rest_));
    if (is_word_char(first) || ((first == '.' || first == '%') && is_word_char(second))) {
        return take(TokenKind::word, word_length(rest_));
    }
    if (first == '"') return take_string();
    if (is_punctuation(first)) return take(TokenKind::punctuation, 1);
    fail_at(line_, "a character that PTX does not have", rest_.substr(0, 1));
}

std::string on_one_line(const Token &first, const Token &last) {
    std::string line;
    const char *end = first.text.data();
    Lexer lexer(std::string_view(end, static_cast<size_t>(last.text.data() - end) + last.text.size()));
    for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next()) {
        if (token.text.data() != end) line += ' ';
        line += token.text;
        end = token.text.data() + token.text.size();
    }
    return line;
}

bool parse_literal(std::string_view text, Literal *literal) {
    if (text.empty()) return false;
    if (has_prefix(text)) {
        const bool is_f32 = text[1] == 'f' || text[1] == 'F', is_f64 = text[1] == 'd' || text[1] == 'D';
        if (is_f32 || is_f64) {
            literal->type = is_f32 ? Type::f32 : Type::f64;
            const size_t digits = is_f32 ? 8 : 16;
            return text.size() == 2 + digits && parse_digits(text.substr(2), 16, &literal->value);
        }
    } else if (text.find_first_of(".eE") != std::string_view::npos) {
        literal->type = Type::f64;
        return parse_decimal(text, &literal->value);
    }
    literal->type = Type::none;
    return parse_integer(text, &literal->value);
}

} // namespace vgpu::ptx
