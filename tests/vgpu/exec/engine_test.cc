// What ends a launch, with its report, and what only the engine's own numbers show. It launches kernels by itself, so
// that one that fails does not spoil the device for the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/vgpu/engine.h"
#include "tests/vgpu/exec/report.h"

namespace vgpu {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

const std::string HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n";

// Of a kernel whose parameters are 64-bit words a and b: its thread's number in %tid.
const std::string BEGIN = R"(
.visible .entry kernel(.param .u64 a, .param .u64 b)
{
    .reg .pred %p;
    .reg .b32 %tid, %r<8>;
    .reg .b64 %a, %b, %x, %y;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    mov.u32 %tid, %tid.x;
)";
const std::string END = "    ret;\n}\n";

class LoadedModule {
  public:
    explicit LoadedModule(const std::string &text) {
        std::string error;
        module_ = module_load(0, HEADER + text, &error);
        EXPECT_NE(module_, nullptr) << error;
    }
    ~LoadedModule() { module_unload(module_); }
    LoadedModule(const LoadedModule &) = delete;
    LoadedModule &operator=(const LoadedModule &) = delete;

    // The fault, with the report in `said`.
    Fault run(LaunchConfig config, const std::vector<uint64_t> &words, std::string *said) {
        const Kernel *kernel = module_ == nullptr ? nullptr : module_kernel(module_, "kernel");
        if (kernel == nullptr) return Fault::failure;
        std::vector<uint8_t> parameters(kernel_info(kernel).parameters_bytes);
        memcpy(parameters.data(), words.data(), std::min(parameters.size(), words.size() * sizeof words[0]));
        CaptureStderr();
        Fault fault = launch(kernel, config, parameters);
        *said = GetCapturedStderr();
        return fault;
    }

    uint64_t variable(const std::string &name) {
        uint64_t address = 0, bytes = 0;
        EXPECT_TRUE(module_variable(module_, name, &address, &bytes)) << name;
        return address;
    }

  private:
    Module *module_ = nullptr;
};

class EngineTest : public testing::Test {
  protected:
    static void SetUpTestSuite() { memory_set_limit(0, uint64_t{1} << 30); }

    void SetUp() override {
        for (uint64_t &array : arrays_) {
            array = memory_alloc(0, ARRAY_BYTES, MemoryKind::device);
            memory_fill(array, 0, ARRAY_BYTES);
        }
    }
    void TearDown() override {
        for (uint64_t array : arrays_)
            memory_free(array);
    }

    static LaunchConfig threads(uint32_t count) {
        LaunchConfig config;
        config.block.x = count;
        return config;
    }

    Fault run_text(const std::string &text, const LaunchConfig &config) {
        return LoadedModule(text).run(config, {arrays_[0], arrays_[1]}, &said_);
    }
    Fault run(const std::string &body, uint32_t count = 32) { return run_text(BEGIN + body + END, threads(count)); }

    bool has_said(const std::string &what) const { return said_.find(what) != std::string::npos; }

    uint32_t word(size_t index) const {
        uint32_t value;
        memcpy(&value, memory_bytes(arrays_[0]) + sizeof value * index, sizeof value);
        return value;
    }

    static constexpr uint64_t ARRAY_BYTES = 4096;
    uint64_t arrays_[2];
    std::string said_;
};

// ---- modules --------------------------------------------------------------------------------------------------------

// Another kernel of the module, and a function that nobody calls.
TEST_F(EngineTest, WhatCannotBeParsedFailsWhoRunsIt) {
    const std::string bad = "{\n    tex.1d.v4.f32.s32 {%f1}, [%rd1, {%r1}];\n}\n";
    LoadedModule sound(".func f() " + bad + ".visible .entry other() " + bad + BEGIN + END);
    EXPECT_EQ(sound.run(threads(1), {}, &said_), Fault::none);
    LoadedModule broken(BEGIN + "    tex.1d.v4.f32.s32 {%r1}, [%a, {%r2}];\n" + END);
    EXPECT_EQ(broken.run(threads(1), {}, &said_), Fault::illegal_instruction);
    EXPECT_TRUE(has_said("PTX line 13: ")) << said_;
    EXPECT_TRUE(has_said("in kernel kernel")) << said_;
}

// ---- memory --------------------------------------------------------------------------------------------------------

// Just below the null pointer, where an address and the access's bytes add up to zero.
TEST_F(EngineTest, WildLaneBesideOthers) {
    const struct { const char *type, *address; } rows[] = {{"u8", "-1"}, {"u32", "-4"}, {"u64", "-8"}};
    for (const auto &row : rows) {
        SCOPED_TRACE(row.type);
        Fault fault = run("    mad.wide.u32 %x, %tid, 8, %a;\n    setp.eq.u32 %p, %tid, 5;\n    selp.b64 %x, " +
                          std::string(row.address) + ", %x, %p;\n    ld.global." + row.type + " %y, [%x];\n");
        EXPECT_EQ(fault, Fault::illegal_address);
        EXPECT_TRUE(has_said("out-of-bounds global load")) << said_;
        EXPECT_TRUE(has_said("thread (5,0,0)")) << said_;
    }
}

// ---- asynchronous copies -------------------------------------------------------------------------------------------

const std::string SHARED_BYTES = "    .shared .align 16 .b8 there[64];\n    mov.u32 %r0, there;\n";

TEST_F(EngineTest, MisalignedCopies) {
    const char *const copies[] = {
        "cp.async.ca.shared.global [%r0+4], [%a], 16;",
        "cp.async.ca.shared.global [%r0], [%a+8], 16;",
        "cp.async.cg.shared.global [%r0+8], [%a], 16;",
        "cp.async.ca.shared.global [%r0+4], [%a], 8;",
        "cp.async.ca.shared.global [%r0], [%a+3], 4;",
        "mbarrier.init.shared.b64 [%r0+32], 1;\n"
        "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%a], 16, [%r0+36];",
    };
    for (const char *copy : copies) {
        SCOPED_TRACE(copy);
        EXPECT_EQ(run(SHARED_BYTES + "    " + copy + "\n", 1), Fault::misaligned_address);
        EXPECT_TRUE(has_said("misaligned")) << said_;
    }
    EXPECT_EQ(run(SHARED_BYTES + "    cp.async.ca.shared.global [%r0+4], [%a+8], 4;\n", 1), Fault::none) << said_;
    EXPECT_EQ(run(SHARED_BYTES + "    cp.async.ca.shared.global [%r0+8], [%a+24], 8;\n", 1), Fault::none) << said_;
}

TEST_F(EngineTest, SizesOfCopiesThatDoNotExist) {
    const char *const copies[] = {
        "cp.async.ca.shared.global [%r0], [%a], 2;",
        "cp.async.ca.shared.global [%r0], [%a], 32;",
        "cp.async.cg.shared.global [%r0], [%a], 8;",
        "cp.async.ca.shared.global [%r0], [%a], %r1;",
    };
    for (const char *copy : copies) {
        SCOPED_TRACE(copy);
        EXPECT_EQ(run(SHARED_BYTES + "    mov.u32 %r1, 4;\n    " + copy + "\n", 1), Fault::illegal_instruction);
        EXPECT_TRUE(has_said("this form of the instruction is not known")) << said_;
    }
}

// ---- barriers ------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, BarriersThatThreadsOfAWarpDisagreeOn) {
    const char *const barriers[] = {
        "bar.sync %r0;",       "barrier.sync %r0;",      "bar.sync 0, %r1;",
        "bar.arrive %r0, 64;", "barrier.arrive 0, %r1;", "bar.red.popc.u32 %r2, %r0, 32, %p;",
    };
    for (const char *barrier : barriers) {
        SCOPED_TRACE(barrier);
        Fault fault = run(R"(
    setp.lt.u32 %p, %tid, 16;
    selp.u32 %r0, 1, 2, %p;
    selp.u32 %r1, 32, 64, %p;
    )" + std::string(barrier) +
                          "\n");
        EXPECT_EQ(fault, Fault::failure);
        EXPECT_TRUE(has_said("barrier divergence: threads of a warp give")) << said_;
    }
}

TEST_F(EngineTest, CountsOfThreadsThatNoBarrierHas) {
    for (const char *barrier : {"bar.sync 1, 33;", "barrier.sync 1, 16;", "bar.arrive 1, 40;", "bar.arrive 1, 0;",
                                "bar.red.popc.u32 %r0, 1, 31, %p;"}) {
        SCOPED_TRACE(barrier);
        EXPECT_EQ(run("    setp.ge.u32 %p, %tid, 0;\n    " + std::string(barrier) + "\n"), Fault::illegal_instruction);
    }
}

// One warp of four comes to a barrier with a count, the others without one.
const std::string TWO_COUNTS = R"(
    setp.lt.u32 %p, %tid, 32;
    @%p bra FIRST;
    bar.sync 1;
    bra DONE;
FIRST:
    bar.sync 1, COUNT;
DONE:
)";

TEST_F(EngineTest, BarrierWithAndWithoutACount) {
    std::string body = TWO_COUNTS;
    body.replace(body.find("COUNT"), 5, "64");
    EXPECT_EQ(run(body, 128), Fault::failure);
    EXPECT_TRUE(has_said("barrier divergence: threads wait for different numbers of threads")) << said_;
    body = TWO_COUNTS;
    body.replace(body.find("COUNT"), 5, "128"); // which is all of them
    EXPECT_EQ(run(body, 128), Fault::none) << said_;
}

// Half of each warp is not one warp.
TEST_F(EngineTest, HalvesOfWarpsAreNoWarp) {
    Fault fault = run(R"(
    and.b32 %r0, %tid, 16;
    setp.eq.u32 %p, %r0, 0;
    @%p bra FIRST;
    barrier.sync 2, 32;
    bra DONE;
FIRST:
    barrier.sync 1, 32;
DONE:
)",
                      64);
    EXPECT_EQ(fault, Fault::failure);
    EXPECT_TRUE(has_said("deadlock")) << said_;
}

// Groups that met at different places become one where their ways meet.
TEST_F(EngineTest, GroupsThatMetBecomeOne) {
    if (shuffle_seed() != 0) GTEST_SKIP() << "shuffled, they may part at any time";
    for (const char *barrier : {"bar.warp.sync -1;", "barrier.sync 0;"}) {
        SCOPED_TRACE(barrier);
        const std::string meet = "    " + std::string(barrier) + "\n";
        EXPECT_EQ(
            run("    setp.lt.u32 %p, %tid, 16;\n    @%p bra FIRST;\n" + meet + "    bra DONE;\nFIRST:\n" + meet + R"(
DONE:
    activemask.b32 %r0;
    mad.wide.u32 %a, %tid, 4, %a;
    st.global.u32 [%a], %r0;
)"),
            Fault::none)
            << said_;
        EXPECT_EQ(word(0), ~0u);
        EXPECT_EQ(word(31), ~0u);
    }
}

// An instruction at which each eight lanes meet apart.
TEST_F(EngineTest, GroupsThatMetApartBecomeOne) {
    if (shuffle_seed() != 0) GTEST_SKIP() << "shuffled, they may part at any time";
    EXPECT_EQ(run(R"(
    and.b32 %r0, %tid, 24;
    shl.b32 %r1, 255, %r0;
    shfl.sync.bfly.b32 %r2, %tid, 3, 31, %r1;
    activemask.b32 %r3;
    mad.wide.u32 %a, %tid, 4, %a;
    st.global.u32 [%a], %r3;
)"),
              Fault::none)
        << said_;
    EXPECT_EQ(word(0), ~0u);
    EXPECT_EQ(word(31), ~0u);
}

// ---- calls ---------------------------------------------------------------------------------------------------------

const std::string GIVE_SEVEN = R"(
.func (.param .b32 result) seven()
{
    .reg .b32 %r;
    mov.u32 %r, 7;
    st.param.b32 [result], %r;
    ret;
}
)";
const std::string CALL_A = R"(
    {
        .param .b32 returned;
        PROTOTYPE: .callprototype (.param .b32 _) _ ();
        call (returned), %a, (), PROTOTYPE;
        ld.param.b32 %r0, [returned];
    }
    st.global.u32 [%b], %r0;
)";

// Its address is in a variable of another module.
TEST_F(EngineTest, FunctionsAreWhereTheirModuleIs) {
    const std::string caller = GIVE_SEVEN + BEGIN + CALL_A + END;
    uint64_t function = 0;
    LoadedModule module(caller);
    {
        LoadedModule other(".func other() { ret; }\n" + GIVE_SEVEN + ".global .u64 pointer = seven;\n");
        memcpy(&function, memory_bytes(other.variable("pointer")), sizeof function);
        EXPECT_EQ(module.run(threads(1), {function, arrays_[0]}, &said_), Fault::none) << said_;
        EXPECT_EQ(word(0), 7u);
        EXPECT_EQ(module.run(threads(1), {function + 4, arrays_[0]}, &said_), Fault::illegal_instruction);
        EXPECT_EQ(module.run(threads(1), {function + 4096, arrays_[0]}, &said_), Fault::illegal_instruction);
    }
    EXPECT_EQ(module.run(threads(1), {function, arrays_[0]}, &said_), Fault::illegal_instruction); // unloaded
    EXPECT_TRUE(has_said("a call of something that is not a function")) << said_;
}

// 100 frames of 1000 bytes.
TEST_F(EngineTest, RecursionTakesTheStackThatTheLaunchGives) {
    const std::string text = R"(
.func deep(.param .b32 left)
{
    .reg .pred %q;
    .reg .b32 %n;
    .reg .b64 %k;
    .local .align 8 .b8 kept[1000];
    mov.u64 %k, kept;
    ld.param.b32 %n, [left];
    st.local.u32 [%k], %n;
    setp.eq.u32 %q, %n, 0;
    @%q ret;
    sub.u32 %n, %n, 1;
    {
        .param .b32 next;
        st.param.b32 [next], %n;
        call deep, (next);
    }
    ret;
}
)" + BEGIN + R"(
    {
        .param .b32 first;
        st.param.b32 [first], 100;
        call deep, (first);
    }
)" + END;
    LaunchConfig config = threads(1);
    EXPECT_EQ(run_text(text, config), Fault::illegal_address);
    EXPECT_TRUE(has_said("stack overflow")) << said_;
    config.stack_bytes = 128 << 10;
    EXPECT_EQ(run_text(text, config), Fault::none) << said_;
}

// ---- what kernels call ---------------------------------------------------------------------------------------------

const std::string HEAP = R"(
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
)";
std::string malloc_to_x(const std::string &bytes) {
    return R"(
    {
        .param .b64 size;
        .param .b64 got;
        st.param.b64 [size], )" +
           bytes + R"(;
        call (got), malloc, (size);
        ld.param.b64 %x, [got];
    }
)";
}
std::string free_of(const std::string &address) {
    return "    {\n        .param .b64 given;\n        st.param.b64 [given], " + address +
           ";\n        call free, (given);\n    }\n";
}

TEST_F(EngineTest, MallocGivesWhatTheHeapHas) {
    const std::string text = HEAP + BEGIN + malloc_to_x("60000") +
                             "    st.global.u64 [%a], %x;\n    mov.u64 %y, %x;\n" + malloc_to_x("60000") +
                             "    st.global.u64 [%a+8], %x;\n" + free_of("%y") + malloc_to_x("60000") +
                             "    st.global.u64 [%a+16], %x;\n" + free_of("%x") + END;
    LaunchConfig config = threads(1);
    config.heap_bytes = 100000;
    EXPECT_EQ(run_text(text, config), Fault::none) << said_;
    EXPECT_NE(word(0), 0u);
    EXPECT_EQ(word(2) | word(3), 0u) << "the null pointer, as there is no room for two";
    EXPECT_NE(word(4), 0u);
}

TEST_F(EngineTest, FreeTakesWhatMallocGave) {
    for (const char *address : {"%a", "%y", "16"}) {
        SCOPED_TRACE(address);
        std::string body = malloc_to_x("256") + "    add.u64 %y, %x, 16;\n" + free_of(address);
        EXPECT_EQ(run_text(HEAP + BEGIN + body + END, threads(1)), Fault::illegal_address);
        EXPECT_TRUE(has_said("free of something that malloc did not give")) << said_;
    }
}

struct Argument {
    int bytes;
    std::string value;
};

std::string text_variable(const std::string &name, const std::string &text) {
    std::string line = ".global .align 1 .b8 " + name + "[" + std::to_string(text.size() + 1) + "] = {";
    for (char c : text)
        line += std::to_string(int(c)) + ", ";
    return line + "0};\n";
}

class PrintTest : public EngineTest {
  protected:
    std::string print(const std::string &format, const std::vector<Argument> &arguments) {
        std::string stores;
        int at = 0;
        for (const Argument &argument : arguments) {
            at = (at + argument.bytes - 1) / argument.bytes * argument.bytes;
            std::string bits = std::to_string(8 * argument.bytes), reg = argument.bytes == 4 ? "%r0" : "%x";
            stores += "    mov.b" + bits + " " + reg + ", " + argument.value + ";\n    st.local.b" + bits + " [%y+" +
                      std::to_string(at) + "], " + reg + ";\n";
            at += argument.bytes;
        }
        std::string text = text_variable("format", format) + text_variable("word", "word") +
                           text_variable("essay", std::string(1000, 'e')) +
                           ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n" +
                           BEGIN + "    .local .align 8 .b8 arguments[64];\n    mov.u64 %y, arguments;\n" + stores + R"(
    mov.u64 %x, format;
    {
        .param .b64 first;
        .param .b64 second;
        .param .b32 count;
        st.param.b64 [first], %x;
        st.param.b64 [second], %y;
        call (count), vprintf, (first, second);
        ld.param.b32 %r0, [count];
    }
    st.global.u32 [%a], %r0;
)" + END;
        CaptureStdout();
        Fault fault = run_text(text, threads(1));
        fflush(stdout);
        std::string printed = GetCapturedStdout();
        EXPECT_EQ(fault, Fault::none) << said_;
        EXPECT_EQ(word(0), arguments.size());
        return printed;
    }
};

TEST_F(PrintTest, WidthAndPrecisionAsArguments) {
    EXPECT_EQ(print("<%*d>", {{4, "5"}, {4, "42"}}), "<   42>");
    EXPECT_EQ(print("<%*d>", {{4, "-5"}, {4, "42"}}), "<42   >");
    EXPECT_EQ(print("<%0*.*f>", {{4, "8"}, {4, "2"}, {8, "0d400A000000000000"}}), "<00003.25>");
    EXPECT_EQ(print("<%.*s>", {{4, "2"}, {8, "word"}}), "<wo>");
    EXPECT_EQ(print("<%.*s>", {{4, "-1"}, {8, "word"}}), "<word>");
}

TEST_F(PrintTest, NarrowNumbers) {
    EXPECT_EQ(print("%hd %hu %hhd %hhx", {{4, "65535"}, {4, "65537"}, {4, "511"}, {4, "4660"}}), "-1 1 -1 34");
    EXPECT_EQ(print("%ld %lu %lld", {{8, "-3"}, {8, "4294967296"}, {8, "7"}}), "-3 4294967296 7");
}

TEST_F(PrintTest, LongTexts) {
    EXPECT_EQ(print("%s.", {{8, "essay"}}), std::string(1000, 'e') + ".");
    EXPECT_EQ(print("%700d", {{4, "1"}}), std::string(699, ' ') + "1");
}

TEST_F(PrintTest, UnfinishedConversion) { EXPECT_EQ(print("50%", {}), "50%"); }

// ---- the host ------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, MoreMemoryThanTheHostHas) {
    LaunchConfig config = threads(1);
    config.dynamic_shared_bytes = uint64_t{1} << 60;
    EXPECT_EQ(run_text(BEGIN + END, config), Fault::failure);
    EXPECT_TRUE(has_said("vgpu: ERROR: the host cannot run the block")) << said_;
    EXPECT_TRUE(has_said("in kernel kernel")) << said_;
    EXPECT_EQ(run("", 1), Fault::none) << said_;
}

// ---- NaNs of atomic additions --------------------------------------------------------------------------------------

// Those that add gives, whatever the operands' are.
TEST_F(EngineTest, AtomicAdditionsGiveTheNansOfAdd) {
    const struct {
        const char *type, *bits, *nan;
        uint64_t sum;
    } rows[] = {
        {"f32", "b32", "0xffc12345", 0x7fffffff},
        {"f64", "b64", "0x7ff4000000012345", 0x7ffc000000012345},
        {"noftz.f16", "b16", "0xfe12", 0x7fff},
        {"noftz.bf16", "b16", "0xffc1", 0x7fff},
    };
    for (const auto &row : rows) {
        for (bool is_shared : {false, true}) {
            SCOPED_TRACE(row.type + std::string(is_shared ? " shared" : " global"));
            std::string bits = row.bits, space = is_shared ? ".shared" : ".global", at = is_shared ? "[%r1]" : "[%a]";
            EXPECT_EQ(run(SHARED_BYTES + "    .reg ." + bits + " %old, %nan;\n    mov.u32 %r1, there;\n    mov." +
                              bits + " %nan, " + row.nan + ";\n    mov." + bits + " %old, 0;\n    st" + space + "." +
                              bits + " " + at + ", %old;\n    atom" + space + ".add." + row.type + " %old, " + at +
                              ", %nan;\n    ld" + space + "." + bits + " %old, " + at +
                              ";\n    st.global.u64 [%a], 0;\n    st.global." + bits + " [%a], %old;\n",
                          1),
                      Fault::none)
                << said_;
            EXPECT_EQ(word(0) | uint64_t{word(1)} << 32, row.sum);
        }
    }
}

} // namespace
} // namespace vgpu
