// Transaction barriers (mbarrier), and the asynchronous copies that complete their phases.

#include "tests/vgpu/conformance/ptx_test.h"

namespace {

using TransactionTest = PtxTest;

// Every thread arrives in each phase; what was written before is seen after. The phases' parity alternates.
TEST_F(TransactionTest, Phases) {
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
TEST_F(TransactionTest, Counts) {
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
TEST_F(TransactionTest, BulkCopies) {
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

// Every thread copies a word and lets the barrier know when it is there, as an arrival of its own or one that the
// barrier expects already.
TEST_F(TransactionTest, AsynchronousCopiesArrive) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p, %first;
    .reg .b32 %x, %place, %bar, %own, %t<6>;
    .reg .b64 %in, %out, %state;
    .shared .align 8 .b64 barriers[2];
    .shared .align 16 .b32 words[64];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %tid.x;
    mov.u32 %bar, barriers;
    mov.u32 %t1, words;
    setp.eq.u32 %first, %t0, 0;
    @%first mbarrier.init.shared.b64 [%bar], 64;
    @%first mbarrier.init.shared.b64 [%bar+8], 64;
    bar.sync 0;
    mad.wide.u32 %in, %t0, 4, %in;
    mad.wide.u32 %out, %t0, 4, %out;
    mad.lo.u32 %place, %t0, 4, %t1;
    cp.async.ca.shared.global [%place], [%in], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];
    cp.async.mbarrier.arrive.shared.b64 [%bar+8];
    mbarrier.arrive.shared.b64 %state, [%bar+8];
WAIT_FIRST:
    mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0;
    @!%p bra WAIT_FIRST;
WAIT_SECOND:
    mbarrier.try_wait.shared.b64 %p, [%bar+8], %state;
    @!%p bra WAIT_SECOND;
    xor.b32 %t2, %t0, 21;
    mad.lo.u32 %place, %t2, 4, %t1;
    ld.shared.u32 %x, [%place];
    st.global.u32 [%out], %x;
    ret;
}
)");
    TestRandom random(7);
    std::vector<uint32_t> values = random.vector<uint32_t>(64), expected(64);
    for (size_t i = 0; i < 64; i++)
        expected[i] = values[i ^ 21];
    DeviceArray<uint32_t> in(values), out(64, 0);
    launch("kernel", {1}, {64}, 0, in.data(), out.data());
    EXPECT_EQ(out.read(), expected);
}

// Bytes that are expected apart from any arrival; arrivals that must not complete a phase.
TEST_F(TransactionTest, ExpectedBytes) {
    load_body(R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p;
    .reg .b32 %bar, %t<8>;
    .reg .b64 %in, %out, %state;
    .shared .align 8 .b64 barrier;
    .shared .align 16 .b8 bytes[32];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %bar, barrier;
    mov.u32 %t0, bytes;
    mbarrier.init.shared.b64 [%bar], 4;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 32;
    mbarrier.arrive.noComplete.shared.b64 %state, [%bar], 2;
    mbarrier.arrive_drop.noComplete.shared.b64 %state, [%bar], 1;
    mbarrier.arrive.shared.b64 %state, [%bar];
    mbarrier.test_wait.shared.b64 %p, [%bar], %state;
    selp.u32 %t1, 1, 0, %p;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t0], [%in], 32, [%bar];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0, 1000;
    @!%p bra WAIT;
    ld.shared.v4.u32 {%t2, %t3, %t4, %t5}, [%t0+16];
    mbarrier.arrive.shared.b64 %state, [%bar], 3;
    mbarrier.test_wait.parity.shared.b64 %p, [%bar], 1;
    selp.u32 %t6, 1, 0, %p;
    st.global.v4.u32 [%out], {%t2, %t3, %t4, %t5};
    st.global.v2.u32 [%out+16], {%t1, %t6};
    ret;
}
)");
    TestRandom random(8);
    std::vector<uint32_t> values = random.vector<uint32_t>(8);
    DeviceArray<uint32_t> in(values), out(6, 9);
    launch("kernel", {1}, {1}, 0, in.data(), out.data());
    // Not complete without the bytes; one fewer arrival is expected after the drop.
    const std::vector<uint32_t> expected = {values[4], values[5], values[6], values[7], 0, 1};
    EXPECT_EQ(out.read(), expected);
}

} // namespace
