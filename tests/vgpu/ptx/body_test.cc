// The parser in the bodies of functions: declarations, scopes, labels, instructions and operands.
#include <gtest/gtest.h>

#include "tests/vgpu/ptx/show.h"

namespace vgpu::ptx {
namespace {

using Words = std::vector<std::string>;
using Targets = std::vector<int>;

TEST(RegisterTest, RangesAndLists) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .entry k { .reg .b32 %r<3>, x; .reg .pred P_OUT; .reg .b128 %rq<1>; .reg .bf16x2 %h<0>; }
    )");
    std::string registers;
    for (const Register &reg : module->functions.at(0)->registers) {
        registers += reg.name + " " + type_name(reg.type) + ", ";
    }
    EXPECT_EQ(registers, "%r0 b32, %r1 b32, %r2 b32, x b32, P_OUT pred, %rq0 b128, ");
}

TEST(BodyVariableTest, OfAllScopes) {
    const std::unique_ptr<Module> module = parse_kernel(R"(
        .local .align 8 .b8 __local_depot0[24];
        .shared .align 4 .b8 tile[32][33];
        { .param .b64 param0; .param .align 8 .b8 retval0[16]; }
        { .param .f32 param0; .local .u16 a, b[3]; st.param.f32 [param0], 0f00000000; }
    )");
    const Function &k = *module->functions.at(0);
    struct Expected {
        const char *name;
        Space space;
        uint64_t size_bytes, align;
    };
    const Expected expected[] = {
        {"__local_depot0", Space::local, 24, 8},
        {"tile", Space::shared, 1056, 4},
        {"param0", Space::param, 8, 8},
        {"retval0", Space::param, 16, 8},
        {"param0", Space::param, 4, 4},
        {"a", Space::local, 2, 2},
        {"b", Space::local, 6, 2},
    };
    ASSERT_EQ(k.variables.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++) {
        EXPECT_EQ(k.variables[i].name, expected[i].name);
        EXPECT_EQ(k.variables[i].space, expected[i].space) << i;
        EXPECT_EQ(k.variables[i].size_bytes, expected[i].size_bytes) << i;
        EXPECT_EQ(k.variables[i].align, expected[i].align) << i;
    }
    EXPECT_EQ(show(k, k.code.at(0)), "[variable 4 +0 +0]; f32 0");
}

TEST(ScopeTest, InnerNamesHideOuterOnes) {
    const std::unique_ptr<Module> module = parse_kernel(R"(
        .reg .b32 a;
        mov.u32 a, 0;
        { .reg .b64 a; mov.u64 a, 1; { .reg .f32 a; mov.f32 a, 0f00000000; } mov.u64 a, 2; }
        { .reg .u16 a; mov.u16 a, 3; }
        mov.u32 a, 4;
        { .reg .b64 x; mov.u64 x, 5; }
        mov.u64 %rd0, x;
    )");
    const Function &k = *module->functions.at(0);
    const Type expected[] = {Type::b32, Type::b64, Type::f32, Type::b64, Type::u16, Type::b32, Type::b64};
    ASSERT_EQ(k.code.size(), std::size(expected) + 1);
    for (size_t i = 0; i < std::size(expected); i++) {
        EXPECT_EQ(k.registers.at(static_cast<size_t>(k.code[i].operands.at(0).index)).type, expected[i]) << i;
    }
    EXPECT_EQ(k.code[1].operands[0].index, k.code[3].operands[0].index);
    EXPECT_EQ(show(k, k.code.back()), "%rd0; parameter 0 +0");
}

TEST(BranchTest, LabelsOfTheInnermostScope) {
    const std::unique_ptr<Module> module = parse_kernel(R"(
        start: bra done;                                  // 0
        @%p1 bra.uni start;                               // 1
        { again: bra again; bra start; { bra again; } }   // 2 3 4
        { again: @!%p2 bra again; }                       // 5
        { { again: bra again; } again: bra again; }       // 6 7
        { bra inner; inner: also_inner: bra also_inner; } // 8 9
        done:
    )");
    const std::vector<Instruction> &code = module->functions.at(0)->code;
    const int expected[] = {10, 0, 2, 0, 2, 5, 6, 7, 9, 9};
    ASSERT_EQ(code.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++) {
        EXPECT_EQ(code[i].targets, Targets{expected[i]}) << i;
        EXPECT_TRUE(code[i].operands.empty()) << i;
    }
}

TEST(BranchTest, Tables) {
    const std::unique_ptr<Module> module = parse_kernel(R"(
        brx.idx.uni %r1, late;
        { one: table : .branchtargets one, two, one, three; brx.idx %r2, table; }
        { two: late: .branchtargets two; }
        two: ret;
        three: late: .branchtargets three, two;
    )");
    const Function &k = *module->functions.at(0);
    EXPECT_EQ(k.code.at(0).targets, (Targets{3, 2}));
    EXPECT_EQ(k.code.at(1).targets, (Targets{1, 2, 1, 3}));
    EXPECT_EQ(k.code.at(1).opcode, (Words{"brx", "idx"}));
    EXPECT_EQ(show(k, k.code[1]), "%r2");
}

TEST(InstructionTest, OpcodesAreSplitAtDots) {
    const auto opcode = [](const std::string &text) { return parse_kernel(text)->functions.at(0)->code.at(0).opcode; };
    EXPECT_EQ(opcode("ret;"), Words{"ret"});
    EXPECT_EQ(opcode("ld.global.v4.f32 %f1, [x];"), (Words{"ld", "global", "v4", "f32"}));
    EXPECT_EQ(opcode("add .s32 %r1, %r2, %r3;"), (Words{"add", "s32"}));
    EXPECT_EQ(opcode("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];"),
              (Words{"cp", "async", "bulk", "shared::cluster", "global", "mbarrier::complete_tx::bytes"}));
}

TEST(InstructionTest, Guards) {
    const std::unique_ptr<Module> module = parse_kernel("ret; @%p1 ret; @!%p2 ret; { .reg .pred %p2; @ ! %p2 ret; }");
    const Function &k = *module->functions.at(0);
    ASSERT_EQ(k.code.size(), 4u);
    EXPECT_EQ(k.code[0].guard, -1);
    const auto guard = [&](size_t i) { return k.registers.at(static_cast<size_t>(k.code[i].guard)).name; };
    EXPECT_EQ(guard(1), "%p1");
    EXPECT_FALSE(k.code[1].guard_negated);
    EXPECT_EQ(guard(2), "%p2");
    EXPECT_TRUE(k.code[2].guard_negated);
    EXPECT_EQ(guard(3), "%p2");
    EXPECT_TRUE(k.code[3].guard_negated);
    EXPECT_NE(k.code[2].guard, k.code[3].guard);
}

TEST(InstructionTest, TextIsOneLine) {
    const std::unique_ptr<Module> module = parse_kernel("\t@%p1\tadd.s32 \t%r1, %r2 ,\n\n  // nothing\n -1 ;;\n"
                                                        "mov.u32 /* to */ %r1,%r2; call (x), \nvprintf,\r\n(\nx\n)\n;");
    const std::vector<Instruction> &code = module->functions.at(0)->code;
    ASSERT_EQ(code.size(), 3u);
    EXPECT_EQ(code[0].text, "@%p1 add.s32 %r1, %r2 , -1");
    EXPECT_EQ(code[1].text, "mov.u32 %r1,%r2");
    EXPECT_EQ(code[2].text, "call (x), vprintf, ( x )");
    EXPECT_EQ(code[0].line, 4);
    EXPECT_EQ(code[1].line, 8);
    EXPECT_EQ(code[2].line, 8);
}

TEST(InstructionTest, SourceLines) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .entry k {
            ret;
            .loc 1 23 5
            ret;
            { .loc	2 8 0, function_name $L__info_string0, inlined_at 1 23 5
            ret; }
            ret;
            .loc 1 9 1, function_name $L__info_string1+16, inlined_at 2 1 1
            ret;
        }
        .entry next { ret; }
        .file 1 "a.cu"
        .file 2 "b.h"
    )");
    std::vector<int> places;
    for (const auto &function : module->functions) {
        for (const Instruction &in : function->code)
            places.push_back(100 * in.file + in.file_line);
    }
    EXPECT_EQ(places, (std::vector<int>{0, 123, 208, 208, 109, 0}));
}

TEST(OperandTest, Registers) {
    EXPECT_EQ(show_last("add.s32 %r1, %r2, %r7;"), "%r1; %r2; %r7");
    EXPECT_EQ(show_last("and.pred %p0, !%p1, %p2;"), "%p0; !%p1; %p2");
    EXPECT_EQ(show_last("mov.b64 {_, %r1}, %rd1;"), "{_, %r1}; %rd1");
    EXPECT_EQ(show_last("st.global.v4.u32 [%rd1], {%r1,%r2, 7, 0f3F800000};"),
              "[%rd1 +0]; {%r1, %r2, 7, f32 3f800000}");
    EXPECT_EQ(show_last("setp.lt.s32 %p0|%p1, %r1, 0;"), "%p0|%p1; %r1; 0");
    EXPECT_EQ(show_last("elect.sync _|%p1, %r1;"), "_|%p1; %r1");
    EXPECT_EQ(show_last("elect.sync %r1 | _, %r1;"), "%r1|_; %r1");
    EXPECT_EQ(show_last("atom.global.add.u32 _, [%rd1], 1;"), "_; [%rd1 +0]; 1");
    EXPECT_EQ(show_last("ret;"), "");
}

TEST(OperandTest, SpecialRegisters) {
    for (const char *name : {"%tid", "%tid.x", "%ctaid.y", "%ntid.z", "%nctaid.w", "%cluster_ctaid.x", "%laneid",
                             "%clock64", "%lanemask_lt", "%dynamic_smem_size", "%globaltimer_hi"}) {
        EXPECT_EQ(show_last("mov.u32 %r1, " + std::string(name) + ";"), "%r1; special " + std::string(name));
    }
    EXPECT_EQ(show_last("mov.u32 %r1, WARP_SZ;"), "%r1; 32");
}

TEST(OperandTest, Numbers) {
    const auto number = [](const std::string &text) { return show_last("mov.b64 %rd1, " + text + ";").substr(6); };
    const char *const expected[][2] = {
        {"0", "0"},
        {"0U", "0"},
        {"17", "17"},
        {"017", "15"},
        {"0x1F", "31"},
        {"0Xe", "14"},
        {"0b101U", "5"},
        {"0B11", "3"},
        {"-858993459", "-858993459"},
        {"-0x10", "-16"},
        {"9223372036854775807", "9223372036854775807"},
        {"0xFFFFFFFFFFFFFFFF", "-1"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"0f3F800000", "f32 3f800000"},
        {"0Fff800000", "f32 ff800000"},
        {"-0f3F800000", "f32 bf800000"},
        {"0d3FF0000000000000", "f64 3ff0000000000000"},
        {"-0D3FF0000000000000", "f64 bff0000000000000"},
        {"1.5", "f64 3ff8000000000000"},
        {"-1.5", "f64 bff8000000000000"},
        {"1e3", "f64 408f400000000000"},
        {"25E-1", "f64 4004000000000000"},
        {"2.5e+0", "f64 4004000000000000"},
        {".5", "f64 3fe0000000000000"},
        {"1.", "f64 3ff0000000000000"},
    };
    for (const auto &[text, shown] : expected)
        EXPECT_EQ(number(text), shown) << text;
}

TEST(OperandTest, Addresses) {
    const auto address = [](const std::string &text) {
        return show_last(".shared .b8 tile[64]; ld.shared.u32 %r1, [" + text + "];").substr(5);
    };
    EXPECT_EQ(address("%rd1"), "[%rd1 +0]");
    EXPECT_EQ(address("%rd1+4"), "[%rd1 +4]");
    EXPECT_EQ(address("%rd1 + -4"), "[%rd1 +-4]");
    EXPECT_EQ(address("%rd1-4"), "[%rd1 +-4]");
    EXPECT_EQ(address("%rd1+0x10"), "[%rd1 +16]");
    EXPECT_EQ(address("tile"), "[variable 0 +0 +0]");
    EXPECT_EQ(address("tile+8"), "[variable 0 +0 +8]");
    EXPECT_EQ(address("y+12"), "[parameter 1 +0 +12]");
    EXPECT_EQ(address("1024"), "[1024 +0]");
    EXPECT_EQ(show_last("cp.async.bulk.prefetch [%r1], [%rd1+8], 16, [%r2];"), "[%r1 +0]; [%rd1 +8]; 16; [%r2 +0]");
}

TEST(OperandTest, Symbols) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .global .b8 a[16], b[16];
        .func (.param .b32 r) f (.param .b32 p) {
            .reg .b64 %rd<2>;
            .local .b8 stack[8];
            mov.u64 %rd1, b;
            mov.u64 %rd1, b+4;
            mov.u64 %rd1, stack+-4;
            mov.u64 %rd1, f;
            mov.b64 %rd1, p;
            st.param.b32 [r+0], 1;
        }
    )");
    const Function &f = *module->functions.at(0);
    const char *const expected[] = {"%rd1; module_variable 1 +0", "%rd1; module_variable 1 +4", "%rd1; variable 0 +-4",
                                    "%rd1; function 0 +0",        "%rd1; parameter 0 +0",       "[result 0 +0 +0]; 1"};
    ASSERT_EQ(f.code.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++)
        EXPECT_EQ(show(f, f.code[i]), expected[i]);
}

TEST(OperandTest, Calls) {
    const auto call = [](const std::string &text) { return show_last(".param .b32 a; .param .b32 b;" + text); };
    EXPECT_EQ(call("call k;"), "function 0 +0");
    EXPECT_EQ(call("call.uni vprintf, (a, b, 7, %r1);"), "name vprintf; (variable 0 +0, variable 1 +0, 7, %r1)");
    EXPECT_EQ(call("call (a), k, ();"), "(variable 0 +0); function 0 +0; ()");
    EXPECT_EQ(call("to : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 4 .b8 _[8]) .noreturn;"
                   "call (a), %rd1, (b), to;"),
              "(variable 0 +0); %rd1; (variable 1 +0); name to");
    EXPECT_EQ(call("to: .callprototype _; call %rd1, to;"), "%rd1; name to");
    EXPECT_EQ(call("to: .calltargets k, k; call %rd1, (a), to;"), "%rd1; (variable 0 +0); name to");
}

TEST(PragmaTest, MayStandAnywhere) {
    const std::unique_ptr<Module> module = parse_kernel(R"(
        .pragma "nounroll";
        mov.u32 %r1, 1;
        here: .pragma "used_bytes_mask 61695", "more";
        { .pragma "used_bytes_mask 15"; ret; }
        .pragma "nounroll";
    )");
    EXPECT_EQ(module->functions.at(0)->code.size(), 2u);
}

TEST(PragmaTest, UsedBytesAreOfTheNextInstruction) {
    const std::unique_ptr<Module> module = parse_kernel(R"(
        .reg .b64 a;
        ld.global.u32 %r1, [a];
        .pragma "used_bytes_mask 61695";
        ld.global.v4.u32 {%r1, %r2, %r1, %r2}, [a];
        ld.global.u32 %r1, [a];
        .pragma "nounroll", "used_bytes_mask 0xf0";
        .pragma "nounroll";
        here: { ld.global.v2.u32 {%r1, %r2}, [a]; }
        ret;
    )");
    const std::vector<Instruction> &code = module->functions.at(0)->code;
    const std::vector<uint64_t> expected = {~uint64_t{0}, 61695, ~uint64_t{0}, 0xf0, ~uint64_t{0}};
    ASSERT_EQ(code.size(), expected.size());
    for (size_t i = 0; i < code.size(); i++)
        EXPECT_EQ(code[i].used_bytes, expected[i]) << code[i].text;
}

} // namespace
} // namespace vgpu::ptx
