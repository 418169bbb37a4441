// Control flow and calls, against plain C++.

#include "tests/vgpu/conformance/ptx_test.h"

namespace {

constexpr uint32_t THREADS = 256;

class ControlTest : public PtxTest {
  protected:
    // Runs kernel(inputs, outputs) of `body` in blocks of 64, one word in and one out a thread.
    std::vector<uint32_t> run(const std::string &body, const std::vector<uint32_t> &inputs) {
        load_body(body);
        DeviceArray<uint32_t> in(inputs), out(inputs.size(), 0xA5A5A5A5);
        if (!HasFatalFailure()) {
            launch("kernel", {static_cast<unsigned>(inputs.size() / 64)}, {64}, 0, in.data(), out.data());
        }
        return out.read();
    }

    void check(const std::string &body, const std::vector<uint32_t> &inputs, uint32_t (*reference)(uint32_t)) {
        std::vector<uint32_t> got = run(body, inputs);
        for (size_t i = 0; i < inputs.size(); i++)
            ASSERT_EQ(got[i], reference(inputs[i])) << "thread " << i << " input " << inputs[i];
    }
};

// The beginning of every kernel: the thread's word in %x, where its result goes in %out.
const std::string KERNEL_BEGIN = R"(
.visible .entry kernel(.param .u64 inputs, .param .u64 outputs)
{
    .reg .pred %p<8>;
    .reg .b32 %x, %y, %z, %i, %t<8>;
    .reg .b64 %in, %out, %f;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    mov.u32 %t0, %ctaid.x;
    mov.u32 %t1, %ntid.x;
    mov.u32 %t2, %tid.x;
    mad.lo.u32 %t3, %t0, %t1, %t2;
    mad.wide.u32 %in, %t3, 4, %in;
    mad.wide.u32 %out, %t3, 4, %out;
    ld.global.u32 %x, [%in];
)";
const std::string KERNEL_END = R"(
    st.global.u32 [%out], %y;
    ret;
}
)";

// ---- branches ----

uint32_t nested_branches(uint32_t x) {
    uint32_t y = 1;
    if ((x & 1) != 0) {
        y = y * 3 + x;
        if ((x & 2) != 0) {
            y ^= 0x55;
            if ((x & 4) != 0) {
                y += 1000;
            } else {
                y -= 7;
            }
        }
    } else if ((x & 8) != 0) {
        y = x >> 3;
    } else {
        y = ~x;
    }
    return y + 1;
}

TEST_F(ControlTest, NestedBranches) {
    TestRandom random(1);
    check(KERNEL_BEGIN + R"(
    mov.u32 %y, 1;
    and.b32 %t0, %x, 1;
    setp.eq.u32 %p0, %t0, 0;
    @%p0 bra EVEN;
    mad.lo.u32 %y, %y, 3, %x;
    and.b32 %t0, %x, 2;
    setp.ne.u32 %p1, %t0, 0;
    @!%p1 bra JOIN;
    xor.b32 %y, %y, 0x55;
    and.b32 %t0, %x, 4;
    setp.ne.u32 %p2, %t0, 0;
    @%p2 bra ADD;
    sub.u32 %y, %y, 7;
    bra.uni JOIN;
ADD:
    add.u32 %y, %y, 1000;
    bra JOIN;
EVEN:
    and.b32 %t0, %x, 8;
    setp.ne.u32 %p3, %t0, 0;
    @%p3 shr.u32 %y, %x, 3;
    @!%p3 not.b32 %y, %x;
JOIN:
    add.u32 %y, %y, 1;
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), nested_branches);
}

// How often until the number is 1, at most 200 times: every lane leaves the loop at its own time.
uint32_t collatz_steps(uint32_t x) {
    uint32_t value = x % 1000 + 1, steps = 0;
    while (value != 1 && steps < 200) {
        value = value % 2 != 0 ? 3 * value + 1 : value / 2;
        steps++;
    }
    return steps * 10000 + value;
}

TEST_F(ControlTest, LoopsOfDifferentLength) {
    TestRandom random(2);
    check(KERNEL_BEGIN + R"(
    rem.u32 %z, %x, 1000;
    add.u32 %z, %z, 1;
    mov.u32 %i, 0;
LOOP:
    setp.eq.u32 %p0, %z, 1;
    setp.ge.or.u32 %p1, %i, 200, %p0;
    @%p1 bra END;
    and.b32 %t0, %z, 1;
    setp.ne.u32 %p2, %t0, 0;
    @%p2 bra ODD;
    shr.u32 %z, %z, 1;
    bra NEXT;
ODD:
    mad.lo.u32 %z, %z, 3, 1;
NEXT:
    add.u32 %i, %i, 1;
    bra LOOP;
END:
    mad.lo.u32 %y, %i, 10000, %z;
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), collatz_steps);
}

// A loop within a loop whose bounds differ, with an early way out of both.
uint32_t nested_loops(uint32_t x) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < x % 7; i++) {
        for (uint32_t j = 0; j <= i + (x >> 8) % 5; j++) {
            sum += i * j + 1;
            if (sum > 60) return sum;
        }
    }
    return sum | 0x8000;
}

TEST_F(ControlTest, NestedLoopsWithAnEarlyEnd) {
    TestRandom random(3);
    check(KERNEL_BEGIN + R"(
    mov.u32 %y, 0;
    mov.u32 %i, 0;
    rem.u32 %t0, %x, 7;
    shr.u32 %t1, %x, 8;
    rem.u32 %t1, %t1, 5;
OUTER:
    setp.ge.u32 %p0, %i, %t0;
    @%p0 bra NONE;
    add.u32 %t2, %i, %t1;
    mov.u32 %z, 0;
INNER:
    mad.lo.u32 %t3, %i, %z, 1;
    add.u32 %y, %y, %t3;
    setp.gt.u32 %p1, %y, 60;
    @%p1 bra END;
    add.u32 %z, %z, 1;
    setp.le.u32 %p2, %z, %t2;
    @%p2 bra INNER;
    add.u32 %i, %i, 1;
    bra OUTER;
NONE:
    or.b32 %y, %y, 0x8000;
END:
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), nested_loops);
}

uint32_t branch_table(uint32_t x) {
    switch (x % 4) {
    case 0:
        return x + 10;
    case 1:
        return x * 3;
    case 2:
        return x ^ 0xFF;
    default:
        return x + 10 + 1; // falls into the first
    }
}

TEST_F(ControlTest, IndexedBranch) {
    TestRandom random(4);
    check(KERNEL_BEGIN + R"(
    rem.u32 %i, %x, 4;
TABLE: .branchtargets FIRST, SECOND, THIRD, FOURTH;
    brx.idx %i, TABLE;
FOURTH:
    add.u32 %x, %x, 1;
FIRST:
    add.u32 %y, %x, 10;
    bra END;
SECOND:
    mul.lo.u32 %y, %x, 3;
    bra END;
THIRD:
    xor.b32 %y, %x, 0xff;
END:
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), branch_table);
}

TEST_F(ControlTest, ExitOfSomeLanes) {
    TestRandom random(5);
    std::vector<uint32_t> inputs = random.vector<uint32_t>(THREADS);
    std::vector<uint32_t> got = run(KERNEL_BEGIN + R"(
    and.b32 %t0, %x, 3;
    setp.eq.u32 %p0, %t0, 0;
    @%p0 exit;
    setp.eq.u32 %p1, %t0, 1;
    @%p1 ret;
    add.u32 %y, %x, 5;
)" + KERNEL_END,
                                    inputs);
    for (size_t i = 0; i < inputs.size(); i++)
        ASSERT_EQ(got[i], (inputs[i] & 3) < 2 ? 0xA5A5A5A5 : inputs[i] + 5) << "thread " << i;
}

// A barrier of the whole block waits for nobody who is gone.
TEST_F(ControlTest, ExitOfAWarpBeforeABarrier) {
    TestRandom random(12);
    std::vector<uint32_t> inputs = random.vector<uint32_t>(THREADS);
    std::vector<uint32_t> got = run(KERNEL_BEGIN + R"(
    shr.u32 %t3, %t2, 5;
    and.b32 %t0, %t0, 1;
    setp.eq.u32 %p0, %t3, %t0;
    @%p0 exit;
    bar.sync 0;
    add.u32 %y, %x, 6;
)" + KERNEL_END,
                                    inputs);
    for (size_t i = 0; i < inputs.size(); i++)
        ASSERT_EQ(got[i], i / 64 % 2 == i / 32 % 2 ? 0xA5A5A5A5 : inputs[i] + 6) << "thread " << i;
}

// ---- calls ----

const std::string FUNCTIONS = R"(
.func (.param .b32 result) twice_plus(.param .b32 first, .param .b32 second)
{
    .reg .b32 %a, %b;
    ld.param.b32 %a, [first];
    ld.param.b32 %b, [second];
    mad.lo.u32 %a, %a, 2, %b;
    st.param.b32 [result], %a;
    ret;
}
.func (.param .b32 result) difference(.param .b32 first, .param .b32 second)
{
    .reg .b32 %a, %b;
    ld.param.b32 %a, [first];
    ld.param.b32 %b, [second];
    sub.u32 %a, %a, %b;
    st.param.b32 [result], %a;
    ret;
}
)";

TEST_F(ControlTest, Call) {
    TestRandom random(6);
    check(FUNCTIONS + KERNEL_BEGIN + R"(
    {
        .param .b32 first;
        .param .b32 second;
        .param .b32 returned;
        st.param.b32 [first], %x;
        st.param.b32 [second], 9;
        call.uni (returned), twice_plus, (first, second);
        ld.param.b32 %y, [returned];
    }
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), [](uint32_t x) { return 2 * x + 9; });
}

// Only some lanes call, each branch another function.
TEST_F(ControlTest, CallsInBranches) {
    TestRandom random(7);
    check(FUNCTIONS + KERNEL_BEGIN + R"(
    mov.u32 %y, %x;
    rem.u32 %t0, %x, 3;
    setp.eq.u32 %p0, %t0, 0;
    @%p0 bra END;
    setp.eq.u32 %p1, %t0, 1;
    .param .b32 first;
    .param .b32 second;
    .param .b32 returned;
    st.param.b32 [first], %x;
    st.param.b32 [second], %t0;
    @%p1 bra ONE;
    call (returned), difference, (first, second);
    bra READ;
ONE:
    call (returned), twice_plus, (first, second);
READ:
    ld.param.b32 %y, [returned];
END:
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), [](uint32_t x) { return x % 3 == 0   ? x
                                                                    : x % 3 == 1 ? 2 * x + 1
                                                                                 : x - 2; });
}

// A struct of 16 bytes there and back, in parts of several sizes.
TEST_F(ControlTest, StructParameters) {
    TestRandom random(8);
    check(std::string(R"(
.func (.param .align 8 .b8 result[16]) mix(.param .align 8 .b8 given[16], .param .b8 small)
{
    .reg .b32 %a, %b;
    .reg .b64 %c;
    .reg .b16 %s;
    ld.param.b32 %a, [given];
    ld.param.b16 %s, [given+4];
    ld.param.b64 %c, [given+8];
    cvt.u32.u16 %b, %s;
    add.u32 %a, %a, %b;
    cvt.u32.u64 %b, %c;
    xor.b32 %a, %a, %b;
    st.param.b32 [result+4], %a;
    ld.param.s8 %a, [small];
    st.param.v2.b32 [result+8], {%a, %b};
    ret;
}
)") + KERNEL_BEGIN +
              R"(
    .reg .b16 %h;
    .reg .b64 %w;
    {
        .param .align 8 .b8 given[16];
        .param .b8 small;
        .param .align 8 .b8 returned[16];
        st.param.b32 [given], %x;
        cvt.u16.u32 %h, %x;
        st.param.b16 [given+4], %h;
        mul.wide.u32 %w, %x, 5;
        st.param.b64 [given+8], %w;
        st.param.b8 [small], %h;
        call.uni (returned), mix, (given, small);
        ld.param.b32 %y, [returned+4];
        ld.param.v2.b32 {%t0, %t1}, [returned+8];
    }
    add.u32 %y, %y, %t0;
    add.u32 %y, %y, %t1;
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), [](uint32_t x) {
              uint32_t product = x * 5;
              auto low = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(x & 0xFF)));
              return ((x + (x & 0xFFFF)) ^ product) + low + product;
          });
}

// A function with more local memory than any stack has by default, at an alignment that its caller's does not have.
TEST_F(ControlTest, GreatAlignedFrames) {
    check(std::string(R"(
.func (.param .b32 result) great(.param .b32 given)
{
    .reg .b32 %n, %low;
    .reg .b64 %first, %last;
    .local .align 64 .b8 all[30016];
    ld.param.b32 %n, [given];
    mov.u64 %first, all;
    add.u64 %last, %first, 30012;
    st.local.u32 [%last], %n;
    st.local.u32 [%first], %n;
    cvta.local.u64 %first, %first;
    cvt.u32.u64 %low, %first;
    and.b32 %low, %low, 63;
    ld.local.u32 %n, [%last];
    add.u32 %n, %n, %low;
    st.param.b32 [result], %n;
    ret;
}
.func (.param .b32 result) between(.param .b32 given)
{
    .reg .b32 %n;
    .reg .b64 %own;
    .local .align 4 .b8 own[20];
    ld.param.b32 %n, [given];
    mov.u64 %own, own;
    st.local.u32 [%own+16], %n;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %n;
        call (returned), great, (argument);
        ld.param.b32 %n, [returned];
    }
    st.param.b32 [result], %n;
    ret;
}
)") + KERNEL_BEGIN +
              R"(
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %x;
        call (returned), between, (argument);
        ld.param.b32 %y, [returned];
    }
)" + KERNEL_END,
          TestRandom(11).vector<uint32_t>(THREADS), [](uint32_t x) { return x; });
}

uint32_t fibonacci(uint32_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// Two calls at each level; the depth differs from lane to lane, and each level has registers and memory of its own.
TEST_F(ControlTest, Recursion) {
    TestRandom random(9);
    std::vector<uint32_t> inputs = random.vector<uint32_t>(64);
    for (uint32_t &input : inputs)
        input %= 12;
    check(std::string(R"(
.func (.param .b32 result) fibonacci(.param .b32 given)
{
    .reg .pred %p;
    .reg .b32 %n, %a, %b;
    .reg .b64 %address;
    .local .align 4 .b8 kept[4];
    ld.param.b32 %n, [given];
    setp.lt.u32 %p, %n, 2;
    @%p bra SMALL;
    mov.u64 %address, kept;
    st.local.u32 [%address], %n;
    sub.u32 %a, %n, 1;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %a;
        call (returned), fibonacci, (argument);
        ld.param.b32 %a, [returned];
    }
    ld.local.u32 %b, [%address];
    sub.u32 %b, %b, 2;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %b;
        call (returned), fibonacci, (argument);
        ld.param.b32 %b, [returned];
    }
    add.u32 %n, %a, %b;
SMALL:
    st.param.b32 [result], %n;
    ret;
}
)") + KERNEL_BEGIN +
              R"(
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %x;
        call (returned), fibonacci, (argument);
        ld.param.b32 %y, [returned];
    }
)" + KERNEL_END,
          inputs, fibonacci);
}

// 25 frames of more than 1000 bytes, for which the stack has to be made greater.
TEST_F(ControlTest, RecursionWithAGreaterStack) {
    size_t before = 0;
    ASSERT_CUDA(cudaDeviceGetLimit(&before, cudaLimitStackSize));
    ASSERT_CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 32 << 10));
    check(std::string(R"(
.func (.param .b32 result) sum(.param .b32 given)
{
    .reg .pred %p;
    .reg .b32 %n, %s;
    .reg .b64 %kept;
    .local .align 8 .b8 kept[1000];
    mov.u64 %kept, kept;
    ld.param.b32 %n, [given];
    st.local.u32 [%kept+996], %n;
    mov.u32 %s, 0;
    setp.eq.u32 %p, %n, 0;
    @%p bra DONE;
    sub.u32 %n, %n, 1;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %n;
        call (returned), sum, (argument);
        ld.param.b32 %s, [returned];
    }
    ld.local.u32 %n, [%kept+996];
    add.u32 %s, %s, %n;
DONE:
    st.param.b32 [result], %s;
    ret;
}
)") + KERNEL_BEGIN +
              R"(
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument], %x;
        call (returned), sum, (argument);
        ld.param.b32 %y, [returned];
    }
)" + KERNEL_END,
          std::vector<uint32_t>(64, 25), [](uint32_t n) { return n * (n + 1) / 2; });
    EXPECT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, before), cudaSuccess);
}

// Through a table of functions in memory, each lane its own.
TEST_F(ControlTest, FunctionPointers) {
    TestRandom random(10);
    check(FUNCTIONS + R"(
.global .align 8 .u64 table[2] = {twice_plus, difference};
)" + KERNEL_BEGIN +
              R"(
    and.b32 %i, %x, 1;
    mov.u64 %f, table;
    mad.wide.u32 %f, %i, 8, %f;
    ld.global.u64 %f, [%f];
    {
        .param .b32 first;
        .param .b32 second;
        .param .b32 returned;
        st.param.b32 [first], %x;
        st.param.b32 [second], 100;
        PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
        call (returned), %f, (first, second), PROTOTYPE;
        ld.param.b32 %y, [returned];
    }
)" + KERNEL_END,
          random.vector<uint32_t>(THREADS), [](uint32_t x) { return (x & 1) == 0 ? 2 * x + 100 : x - 100; });
}

} // namespace
