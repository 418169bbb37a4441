// Types, alignments, sizes and parameters of declarations.
#include "tests/vgpu/ptx/declarations.h"

namespace vgpu::ptx {

namespace {

constexpr size_t EXTENTS_MAX = 8;

// ".attribute(.managed)", ".attribute(.unified(1, 2))"; the latter is a name for tools.
void parse_attributes(Tokens *tokens, Specifiers *specifiers) {
    tokens->expect("(");
    do {
        if (tokens->accept(".managed")) {
            specifiers->is_managed = true;
        } else {
            tokens->expect(".unified");
            tokens->expect("(");
            tokens->take_unsigned("a number", UINT64_MAX);
            tokens->expect(",");
            tokens->take_unsigned("a number", UINT64_MAX);
            tokens->expect(")");
        }
    } while (tokens->accept(","));
    tokens->expect(")");
}

// ".ptr .global .align 4": what a pointer parameter points to, which is a hint.
void parse_pointee(Tokens *tokens) {
    for (const char *space : {".const", ".global", ".local", ".shared"}) {
        if (tokens->accept(space)) break;
    }
    if (tokens->accept(".align")) tokens->take_align();
}

Parameter parse_parameter(Tokens *tokens) {
    if (tokens->at(".reg")) tokens->fail("parameters in registers are not supported");
    tokens->expect(".param");
    const Specifiers specifiers = parse_specifiers(tokens);
    if (tokens->accept(".ptr")) parse_pointee(tokens);
    const Declarator declarator = parse_declarator(tokens, specifiers);
    if (declarator.is_unsized()) tokens->fail_last("a parameter without a size");
    Parameter parameter;
    parameter.name = declarator.name;
    parameter.size_bytes = specifiers.element_bytes() * declarator.count_elements();
    parameter.align = specifiers.natural_align();
    return parameter;
}

} // namespace

uint64_t Declarator::count_elements(size_t from) const {
    uint64_t count = 1;
    for (size_t i = from; i < extents.size(); i++)
        count *= extents[i];
    return count;
}

Specifiers parse_specifiers(Tokens *tokens) {
    Specifiers specifiers;
    while (tokens->at_directive() && !tokens->at(".ptr")) {
        if (tokens->accept(".align")) {
            specifiers.align = tokens->take_align();
        } else if (tokens->accept(".attribute")) {
            parse_attributes(tokens, &specifiers);
        } else if (tokens->accept(".v2")) {
            specifiers.vector_width = 2;
        } else if (tokens->accept(".v4")) {
            specifiers.vector_width = 4;
        } else {
            if (specifiers.type != Type::none) tokens->fail("a second type or an unknown word in a declaration");
            specifiers.type = type_named(tokens->current().text.substr(1));
            if (specifiers.element_bytes() == 0) tokens->fail("not a type that a variable can have");
            tokens->take();
        }
    }
    if (specifiers.type == Type::none) tokens->fail("expected a type");
    return specifiers;
}

Declarator parse_declarator(Tokens *tokens, const Specifiers &specifiers) {
    Declarator declarator;
    declarator.name = tokens->accept("_") ? "_" : tokens->take_name("a name");
    while (tokens->accept("[")) {
        const bool is_first = declarator.extents.empty();
        if (declarator.extents.size() == EXTENTS_MAX) tokens->fail("an array of too many dimensions");
        uint64_t extent = 0;
        if (!is_first || !tokens->at("]")) {
            extent = tokens->take_unsigned("an array's size", BYTES_MAX);
            if (extent == 0) tokens->fail_last("an array of size 0");
        }
        declarator.extents.push_back(extent);
        tokens->expect("]");
    }
    if (specifiers.vector_width > 1) declarator.extents.push_back(specifiers.vector_width);
    uint64_t bytes = specifiers.element_bytes();
    for (const uint64_t extent : declarator.extents) {
        if (extent > BYTES_MAX / bytes) tokens->fail_last("an array that is too large");
        if (extent > 0) bytes *= extent;
    }
    return declarator;
}

uint64_t parse_parameters(Tokens *tokens, std::vector<Parameter> *parameters) {
    uint64_t end = 0;
    tokens->expect("(");
    while (!tokens->accept(")")) {
        if (!parameters->empty()) tokens->expect(",");
        Parameter parameter = parse_parameter(tokens);
        parameter.offset = (end + parameter.align - 1) / parameter.align * parameter.align;
        end = parameter.offset + parameter.size_bytes;
        if (end > BYTES_MAX) tokens->fail_last("parameters that are too large together");
        parameters->push_back(parameter);
    }
    return end;
}

} // namespace vgpu::ptx
