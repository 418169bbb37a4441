// The parser at module level: header, variables with initial values, functions and the directives around them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/vgpu/ptx/show.h"

namespace vgpu::ptx {
namespace {

using Bytes = std::vector<uint8_t>;

// The only variable of a declaration.
Variable parse_variable(const std::string &text) {
    const std::unique_ptr<Module> module = parse_after_header(text);
    EXPECT_EQ(module->variables.size(), 1u) << text;
    return module->variables.at(0);
}

template <class T> std::vector<T> initial_values(const Variable &variable) {
    std::vector<T> values(variable.initial.size() / sizeof(T));
    std::memcpy(values.data(), variable.initial.data(), values.size() * sizeof(T));
    return values;
}

TEST(TypesTest, NamesAndSizesBelongTogether) {
    EXPECT_EQ(type_named("b8"), Type::b8);
    EXPECT_EQ(type_named("e5m2x2"), Type::e5m2x2);
    for (const char *name : {"", "none", "b9", "f32 ", "xf32"})
        EXPECT_EQ(type_named(name), Type::none) << name;
#define X(name, bytes)                          \
    EXPECT_EQ(type_named(#name), Type::name);   \
    EXPECT_STREQ(type_name(Type::name), #name); \
    EXPECT_EQ(type_bytes(Type::name), size_t{bytes});
    VGPU_TYPES(X)
#undef X
    EXPECT_EQ(type_bytes(Type::none), 0u);
}

TEST(TypesTest, Families) {
    std::string signed_types, floating_types;
    for (int i = 0; i <= static_cast<int>(Type::e5m2x2); i++) {
        const Type type = static_cast<Type>(i);
        if (is_signed(type)) signed_types += std::string(type_name(type)) + " ";
        if (is_floating(type)) floating_types += std::string(type_name(type)) + " ";
    }
    EXPECT_EQ(signed_types, "s8 s16 s32 s64 s16x2 ");
    EXPECT_EQ(floating_types, "f16 bf16 f32 f64 f16x2 bf16x2 ");
}

TEST(HeaderTest, VersionAndTarget) {
    std::unique_ptr<Module> module = parse(".version 8.7\n.target sm_90a, debug, texmode_independent\n");
    EXPECT_EQ(module->version, 87);
    EXPECT_EQ(module->target, 90);
    EXPECT_EQ(module->files, std::vector<std::string>{""});
    module = parse("// a comment\n/* another\n*/.version 9.0 .target sm_75 .address_size 64");
    EXPECT_EQ(module->version, 90);
    EXPECT_EQ(module->target, 75);
    EXPECT_EQ(parse(".version 9.0 .target sm_103f")->target, 103);
}

TEST(HeaderTest, ZeroBytesMayFillTheTextUp) {
    const std::string text = HEADER + ".global .u32 a;" + std::string(7, '\0');
    EXPECT_EQ(parse(text)->variables.size(), 1u);
}

TEST(VariableTest, SpacesSizesAndAlignments) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .visible .global .align 16 .b8 a[3];
        .weak .const .u16 b, c[5];
        .shared .v4 .f32 d[2][3];
        .extern .shared .align 128 .b8 e[];
        .extern .global .f64 f;
        .global .attribute(.managed) .align 4 .u32 g;
        .common .global .attribute(.unified(1, 2)) .b128 h;
    )");
    struct Expected {
        const char *name;
        Space space;
        bool is_extern, is_managed;
        uint64_t size_bytes, align;
    };
    const Expected expected[] = {
        {"a", Space::global, false, false, 3, 16},   {"b", Space::constant, false, false, 2, 2},
        {"c", Space::constant, false, false, 10, 2}, {"d", Space::shared, false, false, 96, 16},
        {"e", Space::shared, true, false, 0, 128},   {"f", Space::global, true, false, 8, 8},
        {"g", Space::global, false, true, 4, 4},     {"h", Space::global, false, false, 16, 16},
    };
    ASSERT_EQ(module->variables.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++) {
        const Variable &variable = module->variables[i];
        EXPECT_EQ(variable.name, expected[i].name);
        EXPECT_EQ(variable.space, expected[i].space) << variable.name;
        EXPECT_EQ(variable.size_bytes, expected[i].size_bytes) << variable.name;
        EXPECT_EQ(variable.align, expected[i].align) << variable.name;
        EXPECT_EQ(variable.is_extern, expected[i].is_extern) << variable.name;
        EXPECT_EQ(variable.is_managed, expected[i].is_managed) << variable.name;
        EXPECT_TRUE(variable.initial.empty()) << variable.name;
        EXPECT_EQ(module->find_variable(variable.name), static_cast<int>(i));
    }
    EXPECT_EQ(module->find_variable("i"), -1);
    EXPECT_EQ(module->find_function("a"), -1);
}

TEST(VariableTest, DirectivesNeedNoBlanks) {
    const Variable variable = parse_variable(".global.align 8.v2.b32 a;");
    EXPECT_EQ(variable.size_bytes, 8u);
    EXPECT_EQ(variable.align, 8u);
}

TEST(VariableTest, DeclarationAndDefinitionAreOne) {
    for (const char *text : {".extern .global .u32 a[]; .global .u32 a[2] = {7, 8};",
                             ".global .u32 a[2] = {7, 8}; .extern .global .u32 a[2];"}) {
        const Variable variable = parse_variable(text);
        EXPECT_FALSE(variable.is_extern);
        EXPECT_EQ(variable.size_bytes, 8u);
        EXPECT_EQ(initial_values<uint32_t>(variable), (std::vector<uint32_t>{7, 8}));
    }
}

TEST(InitialValueTest, Integers) {
    EXPECT_EQ(initial_values<uint32_t>(parse_variable(".global .u32 a = 5;")), std::vector<uint32_t>{5});
    EXPECT_EQ(parse_variable(".global .b8 a[8] = {1, -1, 0xFF, 0b101, 017, -128, 255U};").initial,
              (Bytes{1, 255, 255, 5, 15, 128, 255}));
    EXPECT_EQ(initial_values<uint16_t>(parse_variable(".const .s16 a[2] = {-32768, 65535};")),
              (std::vector<uint16_t>{32768, 65535}));
    EXPECT_EQ(initial_values<uint64_t>(
                  parse_variable(".global .s64 a[3] = {-9223372036854775808, 18446744073709551615, -1};")),
              (std::vector<uint64_t>{uint64_t{1} << 63, UINT64_MAX, UINT64_MAX}));
}

TEST(InitialValueTest, FloatingPoint) {
    EXPECT_EQ(
        initial_values<float>(parse_variable(".global .f32 a[6] = {0f3F800000, -1.5, 1e3, 25e-1, 0d4000000000000000,"
                                             " -0f3F800000};")),
        (std::vector<float>{1, -1.5f, 1000, 2.5f, 2, -1}));
    EXPECT_EQ(initial_values<double>(parse_variable(".const .f64 a[3] = {0.1, 0f3F800000, -0d4000000000000000};")),
              (std::vector<double>{0.1, 1, -2}));
    EXPECT_EQ(initial_values<uint32_t>(parse_variable(".global .b32 a = 0F3f800000;")),
              std::vector<uint32_t>{0x3f800000});
    EXPECT_EQ(initial_values<uint64_t>(parse_variable(".global .b64 a = 0D3FF0000000000000;")),
              std::vector<uint64_t>{0x3ff0000000000000});
}

TEST(InitialValueTest, BracesFollowTheDimensions) {
    const char *const same[] = {"{{1, 2, 3}, {4, 5, 6}}", "{1, 2, 3, 4, 5, 6}", "{{1, 2, 3}, 4, 5, 6}",
                                "{1, 2, 3, {4, 5, 6}}", "{{1, 2, 3,}, {4, 5, 6},}"};
    for (const char *values : same) {
        const Variable variable = parse_variable(".global .u8 a[2][3] = " + std::string(values) + ";");
        EXPECT_EQ(variable.initial, (Bytes{1, 2, 3, 4, 5, 6})) << values;
    }
    EXPECT_EQ(parse_variable(".global .u8 a[3][2] = {{1}, {}, {2}};").initial, (Bytes{1, 0, 0, 0, 2}));
    EXPECT_EQ(parse_variable(".global .u8 a[2][2][2] = {{{1}, {2}}, {{3, 4}}};").initial, (Bytes{1, 0, 2, 0, 3, 4}));
    EXPECT_EQ(initial_values<float>(parse_variable(".global .v4 .f32 a[2] = {{1.0, 2.0}, {3.0, 4.0, 5.0, 6.0}};")),
              (std::vector<float>{1, 2, 0, 0, 3, 4, 5, 6}));
}

TEST(InitialValueTest, GivesAnArrayItsSize) {
    Variable variable = parse_variable(".global .u32 a[] = {1, 2, 3};");
    EXPECT_EQ(variable.size_bytes, 12u);
    EXPECT_EQ(initial_values<uint32_t>(variable), (std::vector<uint32_t>{1, 2, 3}));
    variable = parse_variable(".global .s32 a[][2] = { {-1, 0}, {0, -1}, {1, 0}, {0, 1} };");
    EXPECT_EQ(variable.size_bytes, 32u);
    EXPECT_EQ(initial_values<int32_t>(variable), (std::vector<int32_t>{-1, 0, 0, -1, 1, 0, 0, 1}));
    EXPECT_EQ(parse_variable(".global .s32 a[][2] = {1, 2, 3};").size_bytes, 16u);
}

TEST(InitialValueTest, AddressesAreRelocations) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .global .u32 a[4];
        .func f() { ret; }
        .global .u64 b[5] = {a, generic(a)+8, 7, f, a+-4};
    )");
    const Variable &b = module->variables.at(1);
    EXPECT_EQ(initial_values<uint64_t>(b), (std::vector<uint64_t>{0, 0, 7, 0, 0}));
    struct Expected {
        uint64_t offset;
        SymbolKind symbol;
        uint64_t addend;
    };
    const Expected expected[] = {{0, SymbolKind::module_variable, 0},
                                 {8, SymbolKind::module_variable, 8},
                                 {24, SymbolKind::function, 0},
                                 {32, SymbolKind::module_variable, static_cast<uint64_t>(-4)}};
    ASSERT_EQ(b.relocations.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++) {
        EXPECT_EQ(b.relocations[i].offset, expected[i].offset);
        EXPECT_EQ(b.relocations[i].size_bytes, 8);
        EXPECT_EQ(b.relocations[i].symbol, expected[i].symbol);
        EXPECT_EQ(b.relocations[i].index, 0);
        EXPECT_EQ(b.relocations[i].addend, expected[i].addend);
    }
}

TEST(FunctionTest, ParametersAreLaidOut) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .visible .entry k(
            .param .u8 a,
            .param .u64 .ptr .global .align 4 b,
            .param .u64 .ptr c,
            .param .align 16 .b8 d[20],
            .param .f32 e[3]
        ) { ret; }
    )");
    const Function &k = *module->functions.at(0);
    EXPECT_TRUE(k.is_entry);
    EXPECT_TRUE(k.is_defined);
    EXPECT_EQ(k.line, 3);
    const uint64_t expected[][3] = {{1, 1, 0}, {8, 8, 8}, {8, 8, 16}, {20, 16, 32}, {12, 4, 52}};
    ASSERT_EQ(k.parameters.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++) {
        EXPECT_EQ(k.parameters[i].name, std::string(1, static_cast<char>('a' + i)));
        EXPECT_EQ(k.parameters[i].size_bytes, expected[i][0]);
        EXPECT_EQ(k.parameters[i].align, expected[i][1]);
        EXPECT_EQ(k.parameters[i].offset, expected[i][2]);
    }
    EXPECT_EQ(k.parameters_bytes, 64u);
    EXPECT_EQ(k.results_bytes, 0u);
}

TEST(FunctionTest, ResultsAndNoParameters) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .func (.param .align 8 .b8 r[16]) f { ret; }
        .entry k { ret; }
        .entry m() { ret; }
    )");
    ASSERT_EQ(module->functions.size(), 3u);
    const Function &f = *module->functions[0];
    EXPECT_FALSE(f.is_entry);
    ASSERT_EQ(f.results.size(), 1u);
    EXPECT_EQ(f.results_bytes, 16u);
    EXPECT_EQ(f.results[0].align, 8u);
    EXPECT_EQ(f.parameters_bytes, 0u);
    EXPECT_EQ(module->find_function("m"), 2);
    EXPECT_EQ(module->find_function("n"), -1);
}

TEST(FunctionTest, DeclarationAndDefinitionAreOne) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .func (.param .b32 r) f (.param .b32 f_param_0) ;
        .extern .func g (.param .b32 _) .noreturn ;
        .entry k { .param .b32 p; .param .b32 q; call (q), f, (p); ret; }
        .visible .func (.param .b32 result) f (.param .b32 parameter) { st.param.b32 [result], 1; ret; }
        .func (.param .b32 r) f (.param .b32 f_param_0) ;
    )");
    ASSERT_EQ(module->functions.size(), 3u);
    const Function &f = *module->functions[0], &g = *module->functions[1], &k = *module->functions[2];
    EXPECT_TRUE(f.is_defined);
    EXPECT_EQ(f.parameters.at(0).name, "parameter");
    EXPECT_EQ(f.code.size(), 2u);
    EXPECT_EQ(f.line, 6);
    EXPECT_FALSE(g.is_defined);
    EXPECT_EQ(show(k, k.code[0]), "(variable 1 +0); function 0 +0; (variable 0 +0)");
}

TEST(FunctionTest, LaunchDirectives) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .entry a .maxntid 128 .minnctapersm 2 .maxnreg 64 { ret; }
        .entry b() .maxntid 16, 4 .maxnctapersm 1 .pragma "nounroll"; { ret; }
        .entry c() .reqntid 16, 4, 2 .explicitcluster .reqnctapercluster 2, 1, 1 .maxclusterrank 8 { ret; }
    )");
    const auto expect = [](const uint32_t got[3], uint32_t x, uint32_t y, uint32_t z) {
        EXPECT_EQ(std::vector<uint32_t>(got, got + 3), (std::vector<uint32_t>{x, y, z}));
    };
    expect(module->functions.at(0)->max_threads, 128, 1, 1);
    expect(module->functions.at(0)->required_threads, 0, 0, 0);
    expect(module->functions.at(1)->max_threads, 16, 4, 1);
    expect(module->functions.at(2)->max_threads, 0, 0, 0);
    expect(module->functions.at(2)->required_threads, 16, 4, 2);
    expect(module->functions.at(2)->required_cluster, 2, 1, 1);
    expect(module->functions.at(1)->required_cluster, 0, 0, 0);
}

TEST(FunctionTest, AliasesNameTheirTarget) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .func alias_of_f (.param .b32 p) ;
        .weak .func f (.param .b32 p) { ret; }
        .entry k { .reg .b64 %rd<2>; .param .b32 p; call alias_of_f, (p); mov.b64 %rd1, alias_of_f; ret; }
        .global .u64 table[2] = {alias_of_f, f};
        .alias alias_of_f, f;
    )");
    const Function &k = *module->functions.at(2);
    EXPECT_EQ(show(k, k.code[0]), "function 1 +0; (variable 0 +0)");
    EXPECT_EQ(show(k, k.code[1]), "%rd1; function 1 +0");
    for (const Relocation &relocation : module->variables.at(0).relocations)
        EXPECT_EQ(relocation.index, 1);
}

TEST(DirectiveTest, FilesSectionsAndPragmas) {
    const std::unique_ptr<Module> module = parse_after_header(R"(
        .file 2 "sim/sim.h"
        .file 1 "kernels/update.cu", 1700000000, 1234
        .pragma "nounroll", "other";
        .section .debug_str {
        $L__info_string0:
        .b8 95,90,78
        .b64 $L__info_string0-4
        .b32 .debug_abbrev
        }
    )");
    EXPECT_EQ(module->files, (std::vector<std::string>{"", "kernels/update.cu", "sim/sim.h"}));
}

} // namespace
} // namespace vgpu::ptx
