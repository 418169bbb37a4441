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

TEST_F(BarrierTest, Reductions) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p, %all, %any, %c;
    .reg .b32 %x, %t<6>;
    .reg .b64 %in, %out;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.wide.u32 %out, %t0, 16, %out;
    ld.global.u32 %x, [%in];
    setp.ne.u32 %c, %x, 0;
    bar.red.popc.u32 %t1, 0, %c;
    bar.red.and.pred %all, 0, %c;
    bar.cta.red.or.pred %any, 1, 96, !%c;
    barrier.cta.red.popc.u32 %t4, 2, 96, !%c;
    selp.u32 %t2, 1, 0, %all;
    selp.u32 %t3, 1, 0, %any;
    st.global.v4.u32 [%out], {%t1, %t2, %t3, %t4};
    ret;
}
)");
    TestRandom random(4);
    for (uint32_t sparse = 0; sparse < 4; sparse++) {
        std::vector<uint32_t> values(96);
        for (uint32_t &value : values)
            value = sparse == 0 ? 0 : sparse == 1 ? 1 : random.below(sparse);
        auto set =
            static_cast<uint32_t>(std::count_if(values.begin(), values.end(), [](uint32_t v) { return v != 0; }));
        std::vector<uint32_t> expected;
        for (int i = 0; i < 96; i++)
            expected.insert(expected.end(), {set, set == 96, set != 96, 96 - set});
        DeviceArray<uint32_t> in(values), out(size_t{4} * 96, 9);
        launch("kernel", {1}, {96}, 0, in.data(), out.data());
        EXPECT_EQ(out.read(), expected) << "of 96 votes " << set << " are set";
    }
}

// ---- transaction barriers ----

// Every thread arrives in each phase; what was written before is seen after. The phases' parity alternates.
TEST_F(BarrierTest, TransactionBarrierPhases) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p, %first;
    .reg .b32 %x, %y, %place, %bar, %n, %parity, %t<6>;
    .reg .b64 %in, %out, %state;
    .shared .align 8 .b64 barrier;
    .shared .align 4 .b32 words[64];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mov.u32 %bar, barrier;
    mov.u32 %t1, words;
    setp.eq.u32 %first, %t0, 0;
    @%first mbarrier.init.shared.b64 [%bar], 64;
    bar.sync 0;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.wide.u32 %out, %t0, 4, %out;
    ld.global.u32 %x, [%in];
    mov.u32 %n, 0;
PHASE:
    mad.lo.u32 %place, %t0, 4, %t1;
    st.shared.u32 [%place], %x;
    mbarrier.arrive.shared.b64 %state, [%bar];
WAIT_STATE:
    mbarrier.test_wait.shared.b64 %p, [%bar], %state;
    @!%p bra WAIT_STATE;
    xor.b32 %t2, %t0, 37;
    mad.lo.u32 %place, %t2, 4, %t1;
    ld.shared.u32 %y, [%place];
    mad.lo.u32 %x, %x, 5, %y;
    mbarrier.arrive.release.cta.shared::cta.b64 _, [%bar];
WAIT_PARITY:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 1;
    @!%p bra WAIT_PARITY;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 3;
    @%p bra PHASE;
    st.global.u32 [%out], %x;
    bar.sync 0;
    @%first mbarrier.inval.shared.b64 [%bar];
    ret;
}
)");
    TestRandom random(5);
    std::vector<uint32_t> values = random.vector<uint32_t>(64), expected = values;
    for (int round = 0; round < 3; round++) {
        std::vector<uint32_t> before = expected;
        for (size_t i = 0; i < 64; i++)
            expected[i] = before[i] * 5 + before[i ^ 37];
    }
    DeviceArray<uint32_t> in(values), out(64, 0);
    launch("kernel", {1}, {64}, 0, in.data(), out.data());
    EXPECT_EQ(out.read(), expected);
}

// One thread stands for several arrivals, and pending counts are read from the state.
TEST_F(BarrierTest, TransactionBarrierCounts) {
    load_body(R"(
.visible .entry kernel(.param .u64 outputs)
{
    .reg .pred %p, %q;
    .reg .b32 %bar, %t<8>;
    .reg .b64 %out, %state;
    .shared .align 8 .b64 barrier;
    ld.param.u64 %out, [outputs];
    mov.u32 %bar, barrier;
    mbarrier.init.shared::cta.b64 [%bar], 10;
    mbarrier.arrive.shared.b64 %state, [%bar], 4;
    mbarrier.pending_count.b64 %t0, %state;
    mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;
    selp.u32 %t1, 1, 0, %p;
    mbarrier.arrive.shared.b64 %state, [%bar], 6;
    mbarrier.pending_count.b64 %t2, %state;
    mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;
    mbarrier.test_wait.parity.shared.b64 %q, [%bar], 1;
    selp.u32 %t3, 1, 0, %p;
    selp.u32 %t4, 1, 0, %q;
    mbarrier.arrive_drop.shared.b64 %state, [%bar];
    mbarrier.arrive.shared.b64 %state, [%bar], 9;
    mbarrier.test_wait.parity.shared.b64 %p, [%bar], 1;
    selp.u32 %t5, 1, 0, %p;
    mbarrier.arrive.shared.b64 %state, [%bar], 9;
    mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;
    selp.u32 %t6, 1, 0, %p;
    st.global.v4.u32 [%out], {%t0, %t1, %t2, %t3};
    st.global.v4.u32 [%out+16], {%t4, %t5, %t6, 0};
    ret;
}
)");
    DeviceArray<uint32_t> out(8, 9);
    launch("kernel", {1}, {1}, 0, out.data());
    // The state of an arrival is that before it: 10 and 6 arrivals are pending. Dropped, one fewer is expected later.
    const std::vector<uint32_t> expected = {10, 0, 6, 1, 0, 1, 1, 0};
    EXPECT_EQ(out.read(), expected);
}

// A bulk copy into shared memory completes a barrier's transaction; another goes back to global memory.
TEST_F(BarrierTest, BulkCopies) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p, %first;
    .reg .b32 %x, %place, %bar, %t<6>;
    .reg .b64 %in, %out, %state;
    .shared .align 8 .b64 barrier;
    .shared .align 128 .b8 bytes[1024];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mov.u32 %bar, barrier;
    mov.u32 %t1, bytes;
    setp.eq.u32 %first, %t0, 0;
    @!%first bra READY;
    mbarrier.init.shared.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%bar], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t1], [%in], 256, [%bar];
    add.u64 %in, %in, 256;
    add.u32 %t2, %t1, 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t2], [%in], 768, [%bar];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
    @!%p bra WAIT;
    mad.lo.u32 %place, %t0, 16, %t1;
    ld.shared.u32 %x, [%place];
    not.b32 %x, %x;
    st.shared.u32 [%place], %x;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%first bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [%t1], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:
    ret;
}
)");
    TestRandom random(6);
    std::vector<uint32_t> values = random.vector<uint32_t>(256), expected = values;
    for (size_t i = 0; i < 256; i += 4)
        expected[i] = ~expected[i];
    DeviceArray<uint32_t> in(values), out(256, 0);
    launch("kernel", {1}, {64}, 0, in.data(), out.data());
    EXPECT_EQ(out.read(), expected);
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

} // namespace
