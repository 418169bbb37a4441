// What the threads of a block do together: barriers, transaction barriers with bulk copies, and atomic operations on
// the same words.

#include <algorithm>
#include <numeric>

#include "tests/vgpu/conformance/ptx_test.h"

namespace {

using BarrierTest = PtxTest;

// ---- barriers of the block ----

// Each thread adds up what all the others have written, in several rounds.
TEST_F(BarrierTest, Rounds) {
    const std::string begin = R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p;
    .reg .b32 %x, %y, %i, %n, %t<6>;
    .reg .b64 %in, %out;
    .shared .align 4 .b32 words[128];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.wide.u32 %out, %t0, 4, %out;
    ld.global.u32 %x, [%in];
    mov.u32 %t1, words;
    mad.lo.u32 %t2, %t0, 4, %t1;
    mov.u32 %n, 0;
ROUND:
    st.shared.u32 [%t2], %x;
)";
    const std::string end = R"(
    mov.u32 %i, 0;
    mov.u32 %y, 0;
SUM:
    mad.lo.u32 %t3, %i, 4, %t1;
    ld.shared.u32 %t4, [%t3];
    mad.lo.u32 %y, %y, 3, %t4;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 128;
    @%p bra SUM;
    xor.b32 %x, %x, %y;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 3;
    barrier.cta.sync 1;
    @%p bra ROUND;
    st.global.u32 [%out], %x;
    ret;
}
)";
    TestRandom random(1);
    std::vector<uint32_t> values = random.vector<uint32_t>(128), expected = values;
    for (int round = 0; round < 3; round++) {
        uint32_t sum = 0;
        for (uint32_t value : expected)
            sum = sum * 3 + value;
        for (uint32_t &value : expected)
            value ^= sum;
    }
    for (const char *barrier : {"bar.sync 0;", "bar.cta.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 0;",
                                "barrier.cta.sync 0, 128;", "bar.sync 15, 128;"}) {
        SCOPED_TRACE(barrier);
        load_body(begin + ("    " + std::string(barrier)) + end);
        DeviceArray<uint32_t> in(values), out(128, 0);
        launch("kernel", {1}, {128}, 0, in.data(), out.data());
        EXPECT_EQ(out.read(), expected);
    }
}

// Each half of the block meets at a barrier of its own, whose number is in a register.
TEST_F(BarrierTest, NumberedForPartsOfABlock) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .b32 %x, %half, %place, %t<6>;
    .reg .b64 %in, %out;
    .shared .align 4 .b32 words[128];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.wide.u32 %out, %t0, 4, %out;
    ld.global.u32 %x, [%in];
    shr.u32 %half, %t0, 6;
    add.u32 %half, %half, 1;
    mov.u32 %t1, words;
    mad.lo.u32 %place, %t0, 4, %t1;
    st.shared.u32 [%place], %x;
    bar.sync %half, 64;
    xor.b32 %t2, %t0, 63;
    mad.lo.u32 %place, %t2, 4, %t1;
    ld.shared.u32 %x, [%place];
    st.global.u32 [%out], %x;
    ret;
}
)");
    TestRandom random(2);
    std::vector<uint32_t> values = random.vector<uint32_t>(128), expected(128);
    for (size_t i = 0; i < 128; i++)
        expected[i] = values[i ^ 63];
    DeviceArray<uint32_t> in(values), out(128, 0);
    launch("kernel", {1}, {128}, 0, in.data(), out.data());
    EXPECT_EQ(out.read(), expected);
}

// A warp that produces arrives and goes on; the one that consumes waits for it.
TEST_F(BarrierTest, ArriveAndSync) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p;
    .reg .b32 %x, %place, %i, %t<6>;
    .reg .b64 %in, %out;
    .shared .align 4 .b32 words[32];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mov.u32 %t1, words;
    mov.u32 %i, 0;
    setp.ge.u32 %p, %t0, 32;
    @%p bra CONSUME;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.lo.u32 %place, %t0, 4, %t1;
PRODUCE:
    ld.global.u32 %x, [%in];
    add.u64 %in, %in, 128;
    st.shared.u32 [%place], %x;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 4;
    @%p bra PRODUCE;
    ret;
CONSUME:
    sub.u32 %t0, %t0, 32;
    mad.wide.u32 %out, %t0, 4, %out;
    sub.u32 %t2, 31, %t0;
    mad.lo.u32 %place, %t2, 4, %t1;
TAKE:
    barrier.cta.sync.aligned 1, 64;
    ld.shared.u32 %x, [%place];
    st.global.u32 [%out], %x;
    add.u64 %out, %out, 128;
    barrier.cta.arrive 2, 64;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 4;
    @%p bra TAKE;
    ret;
}
)");
    TestRandom random(3);
    std::vector<uint32_t> values = random.vector<uint32_t>(128), expected(128);
    for (size_t i = 0; i < 128; i++)
        expected[i] = values[i / 32 * 32 + 31 - i % 32];
    DeviceArray<uint32_t> in(values), out(128, 0);
    launch("kernel", {1}, {64}, 0, in.data(), out.data());
    EXPECT_EQ(out.read(), expected);
}

// Runs a reduction of whether each thread's word is not zero; %all, %any and %count hold the results.
class BarrierReductionTest : public PtxTest {
  protected:
    void check(const std::string &instructions) {
        SCOPED_TRACE(instructions);
        load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %all, %any, %c;
    .reg .b32 %x, %count, %t<6>;
    .reg .b64 %in, %out;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.wide.u32 %out, %t0, 16, %out;
    ld.global.u32 %x, [%in];
    setp.ne.u32 %c, %x, 0;
)" + instructions +
                  R"(
    selp.u32 %t2, 1, 0, %all;
    selp.u32 %t3, 1, 0, %any;
    st.global.v4.u32 [%out], {%count, %t2, %t3, %x};
    ret;
}
)");
        TestRandom random(4);
        for (uint32_t sparse = 0; sparse < 4 && !HasFatalFailure(); sparse++) {
            std::vector<uint32_t> values(96), expected;
            for (uint32_t &value : values)
                value = sparse == 0 ? 0 : sparse == 1 ? 1 : random.below(sparse);
            auto zeros = static_cast<uint32_t>(std::count(values.begin(), values.end(), 0u));
            for (uint32_t value : values)
                expected.insert(expected.end(), {96 - zeros, zeros == 0, zeros != 0, value});
            DeviceArray<uint32_t> in(values), out(size_t{4} * 96, 9);
            launch("kernel", {1}, {96}, 0, in.data(), out.data());
            EXPECT_EQ(out.read(), expected) << "of 96 words " << zeros << " are zero";
        }
    }
};

TEST_F(BarrierReductionTest, WholeBlock) {
    check(R"(
    bar.red.popc.u32 %count, 0, %c;
    bar.red.and.pred %all, 0, %c;
    bar.red.or.pred %any, 0, !%c;
)");
    check(R"(
    barrier.red.popc.aligned.u32 %count, 1, %c;
    barrier.cta.red.and.aligned.pred %all, 1, %c;
    barrier.red.or.pred %any, 1, !%c;
)");
}

TEST_F(BarrierReductionTest, CountOfThreadsGiven) {
    check(R"(
    bar.red.popc.u32 %count, 3, 96, %c;
    bar.cta.red.and.pred %all, 3, 96, %c;
    bar.cta.red.or.pred %any, 4, 96, !%c;
)");
    check(R"(
    barrier.cta.red.popc.u32 %count, 2, 96, %c;
    barrier.red.and.pred %all, 2, 96, %c;
    barrier.cta.red.or.aligned.pred %any, 2, 96, !%c;
)");
}

// ---- atomic operations on words that all threads share ----

constexpr uint32_t BLOCKS = 6, THREADS = 96, ALL = BLOCKS * THREADS;

// Runs `instructions` in every thread: %x is its input, %i its number, %m the words in global memory, %s those in
// shared memory, of which the first block-thread writes the first four behind those in global memory (block * 4 + 4).
std::string atomic_kernel(const std::string &instructions) {
    return R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 words, .param .u64 olds)
{
    .reg .pred %p;
    .reg .b32 %x, %i, %s, %d, %t<6>;
    .reg .b64 %in, %m, %old, %b;
    .shared .align 16 .b32 shared_words[4];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %m, [words];
    ld.param.u64 %old, [olds];
    mov.u32 %t0, %tid.x;
    mov.u32 %t1, %ctaid.x;
    mad.lo.u32 %i, %t1, 96, %t0;
    mad.wide.u32 %in, %i, 4, %in;
    mad.wide.u32 %old, %i, 4, %old;
    ld.global.u32 %x, [%in];
    mov.u32 %s, shared_words;
    setp.ne.u32 %p, %t0, 0;
    @!%p st.shared.v4.u32 [%s], {0, 0, 0, 0};
    bar.sync 0;
    mov.u32 %d, 0;
)" + instructions +
           R"(
    st.global.u32 [%old], %d;
    bar.sync 0;
    @%p bra END;
    ld.shared.v4.u32 {%t2, %t3, %t4, %t5}, [%s];
    mad.wide.u32 %b, %t1, 16, %m;
    st.global.v4.u32 [%b+16], {%t2, %t3, %t4, %t5};
END:
    ret;
}
)";
}

class AtomicTest : public PtxTest {
  protected:
    void run(const std::string &instructions, const std::vector<uint32_t> &inputs) {
        load_body(atomic_kernel(instructions));
        DeviceArray<uint32_t> in(inputs), words(size_t{4} + 4 * BLOCKS, 0), olds(ALL, 0);
        launch("kernel", {BLOCKS}, {THREADS}, 0, in.data(), words.data(), olds.data());
        words_ = words.read();
        olds_ = olds.read();
    }

    // Word k of a block's shared memory.
    uint32_t shared_word(uint32_t block, uint32_t k) const { return words_[4 + 4 * block + k]; }

    std::vector<uint32_t> words_, olds_;
};

float float_of(uint32_t bits) {
    float value = 0;
    memcpy(&value, &bits, 4);
    return value;
}

TEST_F(AtomicTest, SumsOfAllThreads) {
    TestRandom random(7);
    std::vector<uint32_t> inputs = random.vector<uint32_t>(ALL);
    run(R"(
    atom.global.add.u32 %d, [%m], %x;
    red.shared.add.u32 [%s], %x;
    and.b32 %t2, %x, 255;
    cvt.rn.f32.u32 %t2, %t2;
    red.global.add.f32 [%m+4], %t2;
    atom.shared.add.f32 %t3, [%s+4], %t2;
    red.global.max.s32 [%m+8], %x;
    red.shared.xor.b32 [%s+8], %x;
    red.global.or.b32 [%m+12], %x;
    atom.shared.min.u32 %t3, [%s+12], %x;
)",
        inputs);
    uint32_t sum = 0, small = 0, bits = 0;
    int32_t largest = 0;
    for (uint32_t x : inputs) {
        sum += x;
        small += x & 255;
        bits |= x;
        largest = std::max(largest, static_cast<int32_t>(x));
    }
    EXPECT_EQ(words_[0], sum);
    EXPECT_EQ(float_of(words_[1]), static_cast<float>(small));
    EXPECT_EQ(static_cast<int32_t>(words_[2]), largest);
    EXPECT_EQ(words_[3], bits);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t block_sum = 0, block_small = 0, block_xor = 0;
        for (uint32_t i = 0; i < THREADS; i++) {
            uint32_t x = inputs[block * THREADS + i];
            block_sum += x;
            block_small += x & 255;
            block_xor ^= x;
        }
        EXPECT_EQ(shared_word(block, 0), block_sum);
        EXPECT_EQ(float_of(shared_word(block, 1)), static_cast<float>(block_small));
        EXPECT_EQ(shared_word(block, 2), block_xor);
        EXPECT_EQ(shared_word(block, 3), 0u);
    }
}

// Every old value is one that some other thread left: counted up they are all different.
TEST_F(AtomicTest, CountersGiveEveryThreadItsOwn) {
    run("atom.global.inc.u32 %d, [%m], 0xffffffff;", std::vector<uint32_t>(ALL, 0));
    std::sort(olds_.begin(), olds_.end());
    std::vector<uint32_t> numbers(ALL);
    std::iota(numbers.begin(), numbers.end(), 0u);
    EXPECT_EQ(olds_, numbers);
    EXPECT_EQ(words_[0], ALL);
}

TEST_F(AtomicTest, CountersWrap) {
    run("atom.global.inc.u32 %d, [%m], 6;\n    atom.global.dec.u32 %t2, [%m+4], 4;", std::vector<uint32_t>(ALL, 0));
    EXPECT_EQ(words_[0], ALL % 7);
    EXPECT_EQ(words_[1], (5 - ALL % 5) % 5);
    for (uint32_t value = 0; value < 7; value++) {
        auto count = static_cast<uint32_t>(std::count(olds_.begin(), olds_.end(), value));
        EXPECT_EQ(count, ALL / 7 + (value < ALL % 7 ? 1 : 0)) << value;
    }
}

// A sum by compare-and-swap in a loop, whose lanes lose against each other.
TEST_F(AtomicTest, CompareAndSwapLoop) {
    TestRandom random(8);
    std::vector<uint32_t> inputs = random.vector<uint32_t>(ALL);
    run(R"(
    .reg .pred %same;
    ld.global.u32 %t2, [%m];
AGAIN:
    mov.u32 %t3, %t2;
    add.u32 %t4, %t3, %x;
    atom.global.cas.b32 %t2, [%m], %t3, %t4;
    setp.eq.u32 %same, %t2, %t3;
    @!%same bra AGAIN;
)",
        inputs);
    EXPECT_EQ(words_[0], std::accumulate(inputs.begin(), inputs.end(), 0u));
}

// What all threads exchanged and what is left at the end is what they brought and the zero of the beginning.
TEST_F(AtomicTest, ExchangeLosesNothing) {
    TestRandom random(9);
    std::vector<uint32_t> inputs = random.vector<uint32_t>(ALL);
    run("atom.global.exch.b32 %d, [%m], %x;", inputs);
    olds_.push_back(words_[0]);
    inputs.push_back(0);
    std::sort(olds_.begin(), olds_.end());
    std::sort(inputs.begin(), inputs.end());
    EXPECT_EQ(olds_, inputs);
}

// Sums of halves that are exact in any order.
TEST_F(AtomicTest, SumsOfHalves) {
    run(R"(
    and.b32 %t2, %i, 1;
    mul.lo.u32 %t2, %t2, 0x3c00;
    or.b32 %t2, %t2, 0x3c000000;
    red.global.add.noftz.f16x2 [%m], %t2;
    and.b32 %t2, %i, 1;
    mul.lo.u32 %t2, %t2, 0x3f80;
    or.b32 %t2, %t2, 0x3f800000;
    red.shared.add.noftz.bf16x2 [%s], %t2;
)",
        std::vector<uint32_t>(ALL, 0));
    EXPECT_EQ(words_[0], 0x60805C80u); // 576.0 and 288.0 of f16
    for (uint32_t block = 0; block < BLOCKS; block++)
        EXPECT_EQ(shared_word(block, 0), 0x42C04240u); // 96.0 and 48.0 of bf16
}

// The same registers hold the operands, in another order, and take the results.
TEST_F(AtomicTest, VectorsOfTheSameRegisters) {
    load_body(R"(
.visible .entry kernel(.param .u64 values)
{
    .reg .f32 %x, %y;
    .reg .b64 %values;
    ld.param.u64 %values, [values];
    mov.f32 %x, 0f41200000;
    mov.f32 %y, 0f41A00000;
    atom.global.v2.f32.add {%x, %y}, [%values], {%y, %x};
    st.global.v2.f32 [%values+8], {%x, %y};
    ret;
}
)");
    DeviceArray<float> values(std::vector<float>{1, 2, 0, 0});
    launch("kernel", {1}, {1}, 0, values.data());
    EXPECT_EQ(values.read(), (std::vector<float>{21, 12, 1, 2}));
}

// A value and its flag may be one vector: another block sees what it was before a store or after, and no mixture.
TEST_F(AtomicTest, VectorsAreSeenWhole) {
    for (const char *type : {"u32", "u64"}) {
        std::string t(type), kernel = R"(
.visible .entry kernel(.param .u64 vectors, .param .u64 torn)
{
    .reg .pred %p;
    .reg .b32 %block, %i, %t;
    .reg .)" + t + R"( %a, %b;
    .reg .b64 %vector, %torn;
    ld.param.u64 %vector, [vectors];
    ld.param.u64 %torn, [torn];
    mov.u32 %block, %ctaid.x;
    mov.u32 %t, %tid.x;
    mad.wide.u32 %vector, %t, 16, %vector;
    and.b32 %t, %block, 1;
    setp.ne.u32 %p, %t, 0;
    mov.u32 %i, 0;
    @%p bra READ;
WRITE:
    cvt.)" + t + R"(.u32 %a, %i;
    st.relaxed.gpu.global.v2.)" + t + R"( [%vector], {%a, %a};
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 20000;
    @%p bra WRITE;
    ret;
READ:
    ld.relaxed.gpu.global.v2.)" + t + R"( {%a, %b}, [%vector];
    setp.ne.)" + t + R"( %p, %a, %b;
    @%p red.relaxed.gpu.global.add.u32 [%torn], 1;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 20000;
    @%p bra READ;
    ret;
}
)";
        SCOPED_TRACE(type);
        load_body(kernel);
        DeviceArray<uint64_t> vectors(64, 0);
        DeviceArray<uint32_t> torn(1, 0);
        launch("kernel", {4}, {32}, 0, vectors.data(), torn.data());
        if (HasFatalFailure()) return;
        EXPECT_EQ(torn.read().at(0), 0u);
    }
}

} // namespace
