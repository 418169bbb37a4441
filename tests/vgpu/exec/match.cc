// Reads the patterns of the table's rows, and matches opcodes against them.
#include "tests/vgpu/exec/match.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace vgpu {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        size_t end = std::min(text.find(separator), text.size());
        if (end > 0) parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

bool contains(const std::vector<std::string_view> &words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool take_suffix(std::string_view *text, char suffix) {
    if (text->empty() || text->back() != suffix) return false;
    text->remove_suffix(1);
    return true;
}

[[noreturn]] void bad_row(const Row &row, std::string_view item) {
    fprintf(stderr, "vgpu: the instruction table has a row that cannot be read: %s %s %s, at '%.*s'\n", row.name,
            row.modifiers, row.operands, int(item.size()), item.data());
    abort();
}

// "t", "t2", "w", "u32": the type of a typed operand; false: none of them.
bool read_type(std::string_view item, OperandPattern *pattern) {
    if (item == "t" || item == "w") {
        pattern->form_type = 0;
        pattern->is_double = item == "w";
    } else if (item.size() == 2 && item[0] == 't' && item[1] >= '1' && item[1] <= '3') {
        pattern->form_type = item[1] - '1';
    } else {
        pattern->fixed = ptx::type_named(item);
        return pattern->fixed != ptx::Type::none;
    }
    return true;
}

OperandPattern read_operand(const Row &row, std::string_view item) {
    using Kind = OperandPattern::Kind;
    OperandPattern pattern;
    pattern.is_optional = take_suffix(&item, '?');
    if (item == "x") {
        pattern.kind = Kind::any;
    } else if (item == "p") {
        pattern.kind = Kind::predicate;
    } else if (item == "m") {
        pattern.kind = Kind::address;
    } else if (item == "v") {
        pattern.kind = Kind::vector;
    } else if (item == "{x}") {
        pattern.kind = Kind::braces;
    } else if (item == "c") {
        pattern.kind = Kind::call;
    } else if (item == "clock") {
        pattern.kind = Kind::clock;
    } else if (item == "p|p") {
        pattern.kind = Kind::predicate_pair;
    } else if (item.size() > 2 && item.substr(item.size() - 2) == "|p") {
        pattern.kind = Kind::typed_pair;
        if (!read_type(item.substr(0, item.size() - 2), &pattern)) bad_row(row, item);
    } else if (!read_type(item, &pattern)) {
        bad_row(row, item);
    }
    return pattern;
}

using RowsByName = std::unordered_map<std::string_view, std::vector<RowPattern>>;

const RowsByName &rows_by_name() {
    static const RowsByName *rows = [] {
        auto *map = new RowsByName;
        for (const RowPattern &pattern : all_rows())
            (*map)[pattern.row->name].push_back(pattern);
        return map;
    }();
    return *rows;
}

} // namespace

RowPattern read_row(const Row &row) {
    RowPattern pattern;
    pattern.row = &row;
    for (std::string_view item : split(row.modifiers, ' ')) {
        ModifierPattern modifier;
        modifier.is_optional = take_suffix(&item, '?');
        modifier.alternatives = split(item, '|');
        if (modifier.alternatives.empty()) bad_row(row, item);
        pattern.modifiers.push_back(modifier);
    }
    for (std::string_view item : split(row.operands, ' '))
        pattern.operands.push_back(read_operand(row, item));
    return pattern;
}

const std::vector<RowPattern> &all_rows() {
    static const std::vector<RowPattern> *rows = [] {
        auto *list = new std::vector<RowPattern>;
        for (const Rows &group : instruction_table()) {
            for (size_t i = 0; i < group.count; i++)
                list->push_back(read_row(group.first[i]));
        }
        return list;
    }();
    return *rows;
}

const std::vector<RowPattern> *rows_named(std::string_view name) {
    auto found = rows_by_name().find(name);
    return found == rows_by_name().end() ? nullptr : &found->second;
}

bool match_modifiers(const RowPattern &pattern, const std::vector<std::string> &opcode, WordOrder order, Form *form) {
    std::vector<bool> is_taken(opcode.size());
    size_t first = 1; // of the words that are not taken
    int types = 0;
    form->words.clear();
    std::fill(std::begin(form->types), std::end(form->types), ptx::Type::none);
    for (const ModifierPattern &modifier : pattern.modifiers) {
        size_t at = first;
        while (at < opcode.size() && (is_taken[at] || !contains(modifier.alternatives, opcode[at]))) {
            at = order == WordOrder::any ? at + 1 : opcode.size();
        }
        if (at == opcode.size() && modifier.is_optional) continue;
        if (at == opcode.size()) return false;
        is_taken[at] = true;
        while (first < opcode.size() && is_taken[first])
            first++;
        ptx::Type type = ptx::type_named(opcode[at]);
        if (type == ptx::Type::none) {
            form->words.push_back(opcode[at]);
        } else if (types < int(sizeof form->types / sizeof form->types[0])) {
            form->types[types++] = type;
        }
    }
    return first == opcode.size();
}

bool Form::has(std::string_view word) const { return std::find(words.begin(), words.end(), word) != words.end(); }

std::string_view Form::one_of(std::string_view alternatives) const {
    for (std::string_view alternative : split(alternatives, '|')) {
        if (has(alternative)) return alternative;
    }
    return {};
}

} // namespace vgpu
