// What the parser refuses, and with which message.
#include <gtest/gtest.h>

#include "tests/vgpu/ptx/show.h"

namespace vgpu::ptx {
namespace {

std::string error_of(const std::string &text) {
    try {
        const auto module = parse(text);
        for (const auto &function : module->functions)
            if (!function->error.empty()) return function->error;
    } catch (const Error &error) {
        return error.what();
    }
    return "no error";
}

struct Case {
    std::string text;
    int line;
    std::string what, near;

    std::string message() const { return "PTX line " + std::to_string(line) + ": " + what + " near '" + near + "'"; }
};

void expect_errors(const std::vector<Case> &cases) {
    for (const Case &c : cases)
        EXPECT_EQ(error_of(c.text), c.message()) << c.text;
}

// Line 1 is the first of what follows the header.
void expect_module_errors(std::vector<Case> cases) {
    for (Case &c : cases)
        c = {HEADER + c.text, c.line + 1, c.what, c.near};
    expect_errors(cases);
}

// Line 1 is the first of what kernel_text() is given.
void expect_body_errors(std::vector<Case> cases) {
    for (Case &c : cases)
        c = {kernel_text(c.text), c.line + 3, c.what, c.near};
    expect_errors(cases);
}

const std::string END = "the end of the text";

TEST(ErrorTest, OfTheHeader) {
    expect_errors({
        {"", 1, "expected '.version'", END},
        {"\n\nhello", 3, "expected '.version'", "hello"},
        {"\".version\" 9.0", 1, "expected '.version'", ".version"},
        {".version", 1, "expected a version", END},
        {".version 9\n", 1, "expected a version", "9"},
        {".version 9.10\n", 1, "expected a version", "9.10"},
        {".version 9.0\n.global .u32 a;", 2, "expected '.target'", ".global"},
        {".version 9.0\n.target compute_90", 2, "expected a target", "compute_90"},
        {".version 9.0\n.target sm_", 2, "expected a target", "sm_"},
        {".version 9.0\n.target sm_9x", 2, "expected a target", "sm_9x"},
        {".version 9.0 .target sm_90, map_f64_to_f32", 1, "a target's option that is not supported", "map_f64_to_f32"},
        {".version 9.0 .target sm_90\n.address_size 32", 2, "only addresses of 64 bits are supported", "32"},
    });
}

TEST(ErrorTest, OfTokens) {
    expect_module_errors({
        {"\n#pragma once", 2, "a character that PTX does not have", "#"},
        {".global .u32 \xC3\xA4;", 1, "a character that PTX does not have", "?"},
        {std::string(".global\0 .u32", 13), 1, "a character that PTX does not have", "?"},
        {".global .u32 a;\n/* never\nends", 2, "a comment does not end", "/* never?ends"},
        {".file 1 \"a.cu\n\"", 1, "a string does not end on its line", "\"a.cu?\""},
        {".file 1 \"a\\\n\"", 1, "a string does not end on its line", "\"a\\?\""},
        {"%", 1, "a character that PTX does not have", "%"},
        {std::string(100, 'a'), 1, "expected a directive of a module", std::string(60, 'a') + "..."},
    });
}

TEST(ErrorTest, OfDirectives) {
    expect_module_errors({
        {"\n.texref t;", 2, "expected a directive of a module", ".texref"},
        {".visible", 1, "expected a directive of a module", END},
        {"mov.u32 %r1, 1;", 1, "expected a directive of a module", "mov.u32"},
        {"}", 1, "expected a directive of a module", "}"},
        {".file 0 \"a\"", 1, "a file that has the number 0", "0"},
        {".file 65536 \"a\"", 1, "a file's number that is too large", "65536"},
        {".file 1 a", 1, "expected a file's name", "a"},
        {".section .debug_str {\n.b8 1", 2, "expected '}' of a section", END},
        {".section .debug_str { { } }", 1, "expected '}' of a section", "{"},
        {".pragma nounroll;", 1, "expected a pragma's text", "nounroll"},
        {".pragma \"nounroll\"\n.global .u32 a;", 2, "expected ';'", ".global"},
        {".alias a, b;", 1, "no function has this name", "a"},
        {".func f();\n.func g();\n.alias f, g;", 3, "an alias of a function without a body", "f"},
        {".func f() { ret; } .func g() { ret; } .alias f, g;", 1, "an alias with a body", "f"},
        {".func f(.param .b32 a); .func g() { ret; } .alias f, g;", 1, "an alias of a function with other parameters",
         "f"},
        {".func f(); .func g() { ret; } .alias f, g;\n.alias f, g;", 2, "an alias that has a target already", "f"},
    });
}

TEST(ErrorTest, OfVariables) {
    expect_module_errors({
        {".global a;", 1, "expected a type", "a"},
        {".global .pred a;", 1, "not a type that a variable can have", ".pred"},
        {".global .v3 .u32 a;", 1, "not a type that a variable can have", ".v3"},
        {".global .u32 .u32 a;", 1, "a second type or an unknown word in a declaration", ".u32"},
        {".global .align 3 .u32 a;", 1, "an alignment that is no power of two", "3"},
        {".global .align 0 .u32 a;", 1, "an alignment that is no power of two", "0"},
        {".global .align 2097152 .u32 a;", 1, "an alignment that is too large", "2097152"},
        {".global .align .u32 a;", 1, "expected an alignment", ".u32"},
        {".global .attribute(.other) .u32 a;", 1, "expected '.unified'", ".other"},
        {".global .u32 _;", 1, "_ is no name here", "_"},
        {".global .u32 a.b;", 1, "expected a name", "a.b"},
        {".global .u32 5;", 1, "expected a name", "5"},
        {".global .u32 a\n", 2, "expected ';'", END},
        {".global .u32 a[];", 1, "an array without a size", "]"},
        {".global .u32 a[2][];", 1, "expected an array's size", "]"},
        {".global .u32 a[0];", 1, "an array of size 0", "0"},
        {".global .u32 a[1099511627777];", 1, "an array's size that is too large", "1099511627777"},
        {".global .u32 a[1048576][1048576];", 1, "an array that is too large", "]"},
        {".global .u8 a[1][1][1][1][1][1][1][1][1];", 1, "an array of too many dimensions", "1"},
        {".global .u32 a;\n.const .u32 a;", 2, "a is defined twice", "a"},
        {".extern .global .u32 a;\n.const .u32 a;", 2, "a is declared differently before", "a"},
        {".extern .global .u32 a[3];\n.global .u32 a[2];", 2, "a is declared differently before", "]"},
        {".func f();\n.global .u32 f;", 2, "f is declared twice", "f"},
    });
}

TEST(ErrorTest, OfInitialValues) {
    expect_module_errors({
        {".shared .u32 a = 1;", 1, "no initial value can be here", "="},
        {".extern .global .u32 a = 1;", 1, "no initial value can be here", "="},
        {".global .u8 a[2] = {1, 2, 3};", 1, "more initial values than the array has elements", "3"},
        {".global .u8 a[2][2] = {{1, 2, 3}};", 1, "more initial values than the array has elements", "3"},
        {".global .u8 a[2] = {{1}};", 1, "braces in an initial value that match no dimension", "{"},
        {".global .u8 a[2][2] = {1, {2}};", 1, "braces in an initial value that match no dimension", "{"},
        {".global .u8 a[2] = {1 2};", 1, "expected ','", "2"},
        {".global .u8 a[2] = {1,", 1, "expected a number", END},
        {".global .u8 a[2] = 1;", 1, "expected '{'", "1"},
        {".global .u8 a[2] = \"a\";", 1, "expected '{'", "a"},
        {".global .u8 a[] = {};", 1, "an array without a size and without initial values", "}"},
        {".global .u8 a = 256;", 1, "an initial value that does not fit into the variable's type", "256"},
        {".global .s8 a = -129;", 1, "an initial value that does not fit into the variable's type", "129"},
        {".global .u32 a = 4294967296;", 1, "an initial value that does not fit into the variable's type",
         "4294967296"},
        {".global .u64 a = 18446744073709551616;", 1, "not a number, or one that does not fit into 64 bits",
         "18446744073709551616"},
        {".global .s64 a = -9223372036854775809;", 1, "a negative number that does not fit into 64 bits",
         "9223372036854775809"},
        {".global .f32 a = 1;", 1, "an integer as initial value of a floating-point variable", "1"},
        {".global .b64 a = 0f3F800000;", 1, "a floating-point number as initial value of a variable of another size",
         "0f3F800000"},
        {".global .u16 a = 1.5;", 1, "a floating-point number as initial value of a variable of another size", "1.5"},
        {".global .f16 a = 1;", 1, "a variable of this type has no initial value", "1"},
        {".global .b128 a = 1;", 1, "a variable of this type has no initial value", "1"},
        {".global .u64 a = b;", 1, "no variable or function has this name", "b"},
        {".global .u64 a = generic(b);", 1, "no variable or function has this name", "b"},
        {".global .u32 b; .global .u32 a = b;", 1, "an address as initial value of a type that is not 64 bits wide",
         "b"},
        {".global .u32 b; .global .f64 a = b;", 1, "an address as initial value of a type that is not 64 bits wide",
         "b"},
        {".global .u32 b; .global .u64 a = b+1.5;", 1, "an offset that is no integer", "1.5"},
        {".global .u32 b;\n.global .u8 a[2] = {0xFF(b), 0xFF00(b)};", 2,
         "a part of an address as initial value is not supported", "0xFF"},
        {".global .u8 a[2][67108865] = {{}, {1}};", 1, "an initial value that is too large", "1"},
    });
}

TEST(ErrorTest, OfFunctions) {
    expect_module_errors({
        {".entry", 1, "expected a function's name", END},
        {".func f(.reg .b32 a);", 1, "parameters in registers are not supported", ".reg"},
        {".func f(.b32 a);", 1, "expected '.param'", ".b32"},
        {".func f(.param .b32 a .param .b32 b);", 1, "expected ','", ".param"},
        {".func f(.param .b32 a,);", 1, "expected '.param'", ")"},
        {".func f(.param .b8 a[]);", 1, "a parameter without a size", "]"},
        {".func f(.param .b32 a\n", 2, "expected ','", END},
        {".func f(.param .b32 _) { ret; }", 1, "_ is no name here", ")"},
        {".func f(.param .b32 a, .param .b32 a) { ret; }", 1, "a is declared twice in a scope", ")"},
        {".func f()\n.entry k() { ret; }", 2, "a directive that is unknown before a function's body", ".entry"},
        {".entry k() .maxntid 0 { ret; }", 1, "a size of 0", "0"},
        {".entry k() .maxntid { ret; }", 1, "expected a size", "{"},
        {".entry k() .maxntid 4294967296 { ret; }", 1, "a size that is too large", "4294967296"},
        {".extern .func f() { ret; }", 1, "a function with .extern has a body", "{"},
        {".func .attribute(.unified(1, 2)) f();", 1, "attributes of functions are not supported", ".attribute"},
        {".entry k { ret; }\n.entry k { ret; }", 2, "k is defined twice", "k"},
        {".func k();\n.entry k() { ret; }", 2, "k is declared differently before", ")"},
        {".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }", 2, "f is declared differently before", ")"},
        {".func f(.param .b32 a);\n.func f { ret; }", 2, "f is declared differently before", "f"},
        {".func (.param .b32 a) f;\n.func f { ret; }", 2, "f is declared differently before", "f"},
        {".global .u32 f;\n.func f();", 2, "f is declared twice", ")"},
        {".entry k {\nret;\n", 3, "the body of k is not closed", END},
        {".entry k { {\nret; }", 2, "the body of k is not closed", END},
        {".entry k { ret; } }", 1, "expected a directive of a module", "}"},
    });
}

TEST(ErrorTest, OfDeclarationsInBodies) {
    expect_body_errors({
        {"\n.global .u32 a;", 2, "a directive that is unknown in a function", ".global"},
        {".reg a;", 1, "expected a register's type", "a"},
        {".reg .v2 .b32 a;", 1, "not a type that a register can have", ".v2"},
        {".reg .b32 %r<3>;", 1, "%r0 is declared twice in a scope", ">"},
        {".reg .b32 a, a;", 1, "a is declared twice in a scope", "a"},
        {".reg .b32 a;\n.reg .f32 a\n;", 2, "a is declared twice in a scope", "a"},
        {".reg .b32 a; a: ret;", 1, "a is declared twice in a scope", ":"},
        {".reg .b32 _;", 1, "expected a register's name", "_"},
        {".reg .b32 a<3;", 1, "expected '>'", ";"},
        {".reg .b32 a<-1>;", 1, "expected a number of registers", "-"},
        {".reg .b32 a<4000000000>;", 1, "a number of registers that is too large", "4000000000"},
        {".reg .b32 a<100000>; .reg .b32 b<100000>;", 1, "too many registers", ">"},
        {".local .b8 a[];", 1, "an array without a size", "]"},
        {".local .b8 a; .local .b8 a;", 1, "a is declared twice in a scope", "a"},
        {".pragma \"a\" ret;", 1, "expected ';'", "ret"},
        {".pragma \"used_bytes_mask ff\";", 1, "a mask that is no integer", "used_bytes_mask ff"},
        {".pragma \"used_bytes_mask 1.5\";", 1, "a mask that is no integer", "used_bytes_mask 1.5"},
        {".loc 1 2", 2, "expected a number of a .loc", "}"},
        {".loc 1 2 3, inlined 4", 1, "expected 'inlined_at'", "inlined"},
        {".loc 7 2 3\nret;", 1, "a .loc of a file that no .file names", "7"},
        {"a: a: ret;", 1, "a is declared twice in a scope", ":"},
        {"p: .callprototype (.param .b32 _) f (.param .b32 _);", 1, "expected '_'", "f"},
        {"p: .calltargets f;", 1, "no function has this name", "f"},
        {"t: .branchtargets ;", 1, "expected a label", ";"},
    });
}

TEST(ErrorTest, OfBranches) {
    expect_body_errors({
        {"ret;\n@%p1 bra away;\nret;", 2, "no label has this name", "away"},
        {"{ inner: ret; }\nbra inner;", 2, "no label has this name", "inner"},
        {"bra %r1;", 1, "no label has this name", "%r1"},
        {"bra 5;", 1, "expected a label", "5"},
        {"bra a, b; a: b:", 1, "expected ';'", ","},
        {"brx.idx %r1, away;", 1, "no .branchtargets has this name", "away"},
        {"a: brx.idx %r1, a;", 1, "no .branchtargets has this name", "a"},
        {"brx.idx %r1;", 1, "expected ','", ";"},
        {"brx.idx %r1, t;\nt: .branchtargets\naway;", 3, "no label has this name", "away"},
        {"t: .branchtargets a; a: bra t;", 1, "no label has this name", "t"},
    });
}

TEST(ErrorTest, OfInstructions) {
    expect_body_errors({
        {"@%p9 ret;", 1, "no predicate has this name", "%p9"},
        {"@%r1 ret;", 1, "no predicate has this name", "%r1"},
        {"@!! %p1 ret;", 1, "no predicate has this name", "!"},
        {"@%p1 { ret; }", 1, "expected an instruction", "{"},
        {"@%p1 @%p2 ret;", 1, "expected an instruction", "@"},
        {"%r1 = 5;", 1, "expected an instruction", "%r1"},
        {"5;", 1, "expected an instruction", "5"},
        {"ret", 2, "expected an operand", "}"},
        {"add.s32 %r1, %r2", 2, "expected ';'", "}"},
        {"add.s32 %r1 %r2;", 1, "expected ';'", "%r2"},
        {"add.s32 %r1, ;", 1, "expected an operand", ";"},
        {"add.s32 , %r1;", 1, "expected an operand", ","},
    });
}

TEST(ErrorTest, OfOperands) {
    expect_body_errors({
        {"mov.u32 %r1, %r8;", 1, "nothing that is declared has this name", "%r8"},
        {"mov.u32 %r1, %tid.v;", 1, "components of vectors are not supported", "%tid.v"},
        {"mov.u32 %r1, %r2.x;", 1, "components of vectors are not supported", "%r2.x"},
        {"mov.u64 %rd1, unknown;", 1, "nothing that is declared has this name", "unknown"},
        {"a: mov.u64 %rd1, a;", 1, "a label is no operand of this instruction", "a"},
        {"mov.u32 %r1, -%r2;", 1, "expected a number", "%r2"},
        {"mov.u32 %r1, !%r2;", 1, "what is negated is no predicate", "%r2"},
        {"mov.u32 %r1, !5;", 1, "expected an operand", "5"},
        {"mov.u32 %r1, (1+2);", 1, "expected ')'", "+"},
        {"mov.u32 %r1, 1+2;", 1, "expected ';'", "+"},
        {"mov.u32 %r1, \"a\";", 1, "expected an operand", "a"},
        {"setp.eq.s32 %p1|5, %r1, %r2;", 1, "only registers can stand in a pair", "5"},
        {"setp.eq.s32 5|%p1, %r1, %r2;", 1, "only registers can stand in a pair", "5"},
        {"setp.eq.s32 %p1|!%p2, %r1, %r2;", 1, "only registers can stand in a pair", "%p2"},
        {"mov.b64 {}, %rd1;", 1, "expected an operand", "}"},
        {"mov.b64 {%r1, {%r2}}, %rd1;", 1, "expected an operand", "{"},
        {"mov.b64 {%r1, %r2, %rd1;", 1, "expected '}'", ";"},
        {"ld.u32 %r1, [];", 1, "expected an operand", "]"},
        {"ld.u32 %r1, [unknown+4];", 1, "nothing that is declared has this name", "unknown"},
        {"ld.u32 %r1, [%tid.x];", 1, "the base of an address has to be a register, a variable or a number", "%tid.x"},
        {"ld.u32 %r1, [_];", 1, "the base of an address has to be a register, a variable or a number", "_"},
        {"ld.u32 %r1, [1.5];", 1, "the base of an address has to be a register, a variable or a number", "1.5"},
        {"ld.u32 %r1, [%rd1+%rd2];", 1, "expected a number", "%rd2"},
        {"ld.u32 %r1, [%rd1+1.5];", 1, "an offset that is no integer", "1.5"},
        {"ld.u32 %r1, [%rd1;", 1, "expected ']'", ";"},
        {"ret;\ncp.async.bulk.tensor [%r1],\n[%rd1, {%r2, %r3}], [%r4];", 3,
         "addresses with coordinates are not supported", ","},
        {"call (x), f, (unknown);", 1, "nothing that is declared has this name", "unknown"},
        {"call %unknown, (x);", 1, "nothing that is declared has this name", "%unknown"},
        {"a: call a;", 1, "a label is no operand of this instruction", "a"},
    });
}

TEST(ErrorTest, InABodyAreOnlyItsOwn) {
    std::unique_ptr<Module> module = parse_after_header(
        ".entry bad() { .reg .b32 r; { mov.u32 r, [; } }\n.global .u32 a;\n.entry good() { ret; }\n");
    ASSERT_EQ(module->functions.size(), 2u);
    EXPECT_NE(module->functions[0]->error, "");
    EXPECT_TRUE(module->functions[0]->code.empty());
    EXPECT_EQ(module->functions[1]->error, "");
    EXPECT_EQ(module->functions[1]->code.size(), 1u);
    EXPECT_EQ(module->variables.size(), 1u);
}

TEST(ErrorTest, OfNumbers) {
    for (const char *number :
         {"18446744073709551616", "0x10000000000000000", "0x", "0b", "0b2", "08", "12a", "0xg", "5u", "1_000",
          "0f3F80000", "0f3F8000000", "0d3FF00000", "0fXYZXYZXY", "1.2.3", "1e", "1e+", "1e999", "1.5U"}) {
        EXPECT_EQ(error_of(kernel_text("mov.u32 %r1, " + std::string(number) + ";")),
                  "PTX line 4: not a number, or one that does not fit into 64 bits near '" + std::string(number) + "'");
    }
    EXPECT_EQ(error_of(kernel_text("mov.u32 %r1, -9223372036854775809;")),
              "PTX line 4: a negative number that does not fit into 64 bits near '9223372036854775809'");
    EXPECT_EQ(error_of(kernel_text("mov.u32 %r1, --1;")), "PTX line 4: expected a number near '-'");
}

} // namespace
} // namespace vgpu::ptx
