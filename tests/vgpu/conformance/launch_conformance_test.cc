// A kernel's parameters and the special registers.

#include "tests/vgpu/conformance/ptx_test.h"

namespace {

using LaunchTest = PtxTest;

// ---- a kernel's parameters ----

struct Vector {
    alignas(16) uint32_t word[4];
};

TEST_F(LaunchTest, KernelParameters) {
    TestRandom random(11);
    load_body(R"(
.visible .entry kernel(.param .u64 outputs, .param .u8 byte, .param .u16 half, .param .s8 small, .param .f32 single,
                       .param .f64 double, .param .align 16 .b8 vector[16], .param .s16 last)
{
    .reg .b16 %h;
    .reg .b32 %r<4>;
    .reg .b64 %out, %d;
    ld.param.u64 %out, [outputs];
    ld.param.u8 %r0, [byte];
    st.global.u32 [%out], %r0;
    ld.param.u16 %h, [half];
    cvt.u32.u16 %r0, %h;
    st.global.u32 [%out+4], %r0;
    ld.param.s8 %r0, [small];
    st.global.u32 [%out+8], %r0;
    ld.param.f32 %r0, [single];
    st.global.f32 [%out+12], %r0;
    ld.param.f64 %d, [double];
    st.global.f64 [%out+16], %d;
    ld.param.v4.u32 {%r0, %r1, %r2, %r3}, [vector];
    st.global.v4.u32 [%out+32], {%r3, %r2, %r1, %r0};
    ld.param.v2.u32 {%r0, %r1}, [vector+8];
    st.global.v2.u32 [%out+48], {%r0, %r1};
    ld.param.u8 %r0, [vector+5];
    st.global.u32 [%out+24], %r0;
    ld.param.s16 %r0, [last];
    st.global.u32 [%out+28], %r0;
    ret;
}
)");
    for (int i = 0; i < 16 && !HasFatalFailure(); i++) {
        auto byte = static_cast<uint8_t>(random.bits32());
        auto half = static_cast<uint16_t>(random.bits32());
        auto small = static_cast<int8_t>(random.bits32());
        auto last = static_cast<int16_t>(random.bits32());
        auto single = static_cast<float>(random.bits32());
        auto twice = static_cast<double>(random.bits64());
        Vector vector = {{random.bits32(), random.bits32(), random.bits32(), random.bits32()}};
        DeviceArray<uint32_t> out(14, 0);
        launch("kernel", {1}, {1}, 0, out.data(), byte, half, small, single, twice, vector, last);
        uint32_t single_bits = 0, twice_bits[2] = {};
        memcpy(&single_bits, &single, 4);
        memcpy(twice_bits, &twice, 8);
        const uint32_t *word = vector.word;
        const std::vector<uint32_t> expected = {byte,
                                                half,
                                                static_cast<uint32_t>(int32_t{small}),
                                                single_bits,
                                                twice_bits[0],
                                                twice_bits[1],
                                                word[1] >> 8 & 0xFF,
                                                static_cast<uint32_t>(int32_t{last}),
                                                word[3],
                                                word[2],
                                                word[1],
                                                word[0],
                                                word[2],
                                                word[3]};
        EXPECT_EQ(out.read(), expected);
    }
}

// ---- special registers ----

TEST_F(LaunchTest, PlacesInTheGrid) {
    const dim3 grid(3, 2, 2), block(5, 4, 3);
    load_body(R"(
.visible .entry kernel(.param .u64 outputs)
{
    .reg .b32 %r<16>, %thread, %block;
    .reg .b64 %out;
    ld.param.u64 %out, [outputs];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %tid.y;
    mov.u32 %r2, %tid.z;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %ntid.y;
    mov.u32 %r5, %ntid.z;
    mov.u32 %r6, %ctaid.x;
    mov.u32 %r7, %ctaid.y;
    mov.u32 %r8, %ctaid.z;
    mov.u32 %r9, %nctaid.x;
    mov.u32 %r10, %nctaid.y;
    mov.u32 %r11, %nctaid.z;
    mov.u32 %r12, %laneid;
    mad.lo.u32 %thread, %r2, %r4, %r1;
    mad.lo.u32 %thread, %thread, %r3, %r0;
    mad.lo.u32 %block, %r8, %r10, %r7;
    mad.lo.u32 %block, %block, %r9, %r6;
    mad.lo.u32 %thread, %block, 60, %thread;
    mad.wide.u32 %out, %thread, 64, %out;
    st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
    st.global.v4.u32 [%out+16], {%r4, %r5, %r6, %r7};
    st.global.v4.u32 [%out+32], {%r8, %r9, %r10, %r11};
    st.global.u32 [%out+48], %r12;
    ret;
}
)");
    const uint32_t threads = block.x * block.y * block.z, blocks = grid.x * grid.y * grid.z;
    DeviceArray<uint32_t> out(size_t{16} * threads * blocks, 0);
    launch("kernel", grid, block, 0, out.data());
    std::vector<uint32_t> got = out.read();
    for (uint32_t b = 0; b < blocks; b++) {
        for (uint32_t t = 0; t < threads; t++) {
            const uint32_t expected[13] = {t % 5, t / 5 % 4, t / 20, 5, 4, 3, b % 3, b / 3 % 2, b / 6, 3, 2, 2, t % 32};
            for (uint32_t k = 0; k < 13; k++)
                ASSERT_EQ(got[16 * (b * threads + t) + k], expected[k])
                    << "block " << b << " thread " << t << " word " << k;
        }
    }
}

TEST_F(LaunchTest, LaneMasks) {
    load_body(R"(
.visible .entry kernel(.param .u64 outputs)
{
    .reg .b32 %r<6>, %thread;
    .reg .b64 %out;
    ld.param.u64 %out, [outputs];
    mov.u32 %thread, %tid.x;
    mad.wide.u32 %out, %thread, 32, %out;
    mov.u32 %r0, %lanemask_eq;
    mov.u32 %r1, %lanemask_le;
    mov.u32 %r2, %lanemask_lt;
    mov.u32 %r3, %lanemask_ge;
    mov.u32 %r4, %lanemask_gt;
    st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
    st.global.u32 [%out+16], %r4;
    ret;
}
)");
    DeviceArray<uint32_t> out(size_t{8} * 64, 0);
    launch("kernel", {1}, {64}, 0, out.data());
    std::vector<uint32_t> got = out.read();
    for (uint32_t t = 0; t < 64; t++) {
        const uint32_t equal = 1u << t % 32, less = equal - 1;
        const uint32_t expected[5] = {equal, equal | less, less, ~less, ~less & ~equal};
        for (uint32_t k = 0; k < 5; k++)
            ASSERT_EQ(got[8 * t + k], expected[k]) << "thread " << t << " word " << k;
    }
}

TEST_F(LaunchTest, SharedMemorySizesAndClocks) {
    load_body(R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(.param .u64 outputs)
{
    .reg .pred %p;
    .reg .b32 %r<10>;
    .reg .b64 %out, %c<4>;
    .shared .align 16 .b8 fixed[512];
    ld.param.u64 %out, [outputs];
    mov.u64 %c0, %clock64;
    mov.u64 %c2, %globaltimer;
    mov.u32 %r0, %dynamic_smem_size;
    mov.u32 %r1, %total_smem_size;
    mov.u32 %r2, %smid;
    mov.u32 %r3, %nsmid;
    mov.u32 %r4, %warpid;
    mov.u32 %r5, %nwarpid;
    mov.u32 %r6, fixed;
    mov.u32 %r7, dynamic;
    st.shared.u32 [%r6], 123;
    st.shared.u32 [%r7], 456;
    ld.shared.u32 %r8, [%r6];
    ld.shared.u32 %r9, [%r7];
    add.u32 %r8, %r8, %r9;
    mov.u64 %c1, %clock64;
    mov.u64 %c3, %globaltimer;
    setp.ge.u64 %p, %c1, %c0;
    setp.ge.and.u64 %p, %c3, %c2, %p;
    selp.u32 %r9, 1, 0, %p;
    st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
    st.global.v4.u32 [%out+16], {%r4, %r5, %r8, %r9};
    ret;
}
)");
    DeviceArray<uint32_t> out(8, 0);
    launch("kernel", {1}, {1}, 1024, out.data());
    std::vector<uint32_t> got = out.read();
    EXPECT_EQ(got[0], 1024u);
    EXPECT_GE(got[1], 1024u + 512u); // the system may take some for itself
    EXPECT_LT(got[2], got[3]);
    EXPECT_LT(got[4], got[5]);
    EXPECT_EQ(got[6], 579u);
    EXPECT_EQ(got[7], 1u);
}

// Behind a static word, which leaves a gap.
TEST_F(LaunchTest, AlignmentOfDynamicSharedMemory) {
    load_body(R"(
.extern .shared .align 128 .b8 dynamic[];
.visible .entry kernel(.param .u64 outputs)
{
    .reg .b32 %r<4>;
    .reg .b64 %out;
    .shared .align 4 .b8 fixed[4];
    ld.param.u64 %out, [outputs];
    mov.u32 %r0, dynamic;
    mov.u32 %r1, fixed;
    st.shared.u32 [%r1], 123;
    st.shared.u32 [%r0], 456;
    ld.shared.u32 %r1, [%r1];
    ld.shared.u32 %r2, [%r0];
    and.b32 %r0, %r0, 127;
    st.global.v2.u32 [%out], {%r0, %r1};
    st.global.u32 [%out+8], %r2;
    ret;
}
)");
    DeviceArray<uint32_t> out(3, 0);
    launch("kernel", {1}, {1}, 256, out.data());
    EXPECT_EQ(out.read(), (std::vector<uint32_t>{0, 123, 456}));
}

// The heap has room for one array of three quarters of it, and none for a second one.
TEST_F(LaunchTest, HeapOfTheKernels) {
    load_body(R"(
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
.visible .entry kernel(.param .u64 bytes, .param .u64 outputs)
{
    .reg .b64 %bytes, %out, %first, %second;
    ld.param.u64 %bytes, [bytes];
    ld.param.u64 %out, [outputs];
    {
        .param .b64 size;
        .param .b64 got;
        st.param.b64 [size], %bytes;
        call (got), malloc, (size);
        ld.param.b64 %first, [got];
    }
    {
        .param .b64 size;
        .param .b64 got;
        st.param.b64 [size], %bytes;
        call (got), malloc, (size);
        ld.param.b64 %second, [got];
    }
    st.global.v2.u64 [%out], {%first, %second};
    {
        .param .b64 given;
        st.param.b64 [given], %first;
        call free, (given);
    }
    ret;
}
)");
    size_t heap = 0;
    ASSERT_CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    for (int round = 0; round < 2; round++) {
        DeviceArray<uint64_t> out(2, 1);
        launch("kernel", {1}, {1}, 0, uint64_t{heap / 4 * 3}, out.data());
        EXPECT_NE(out.read().at(0), 0u);
        EXPECT_EQ(out.read().at(1), 0u);
    }
}

// ---- the machine ----

// What is discarded may be anything until it is written again.
TEST_F(LaunchTest, Discard) {
    load_body(R"(
.visible .entry kernel(.param .u64 outputs)
{
    .reg .b64 %out;
    ld.param.u64 %out, [outputs];
    discard.global.L2 [%out], 128;
    st.global.u32 [%out], 5;
    st.global.u32 [%out+124], 6;
    ret;
}
)");
    DeviceArray<uint32_t> out(33, 1);
    launch("kernel", {1}, {1}, 0, out.data());
    std::vector<uint32_t> got = out.read();
    EXPECT_EQ(got[0], 5u);
    EXPECT_EQ(got[31], 6u);
    EXPECT_EQ(got[32], 1u);
}

// The compiler reads whole vectors and says which bytes mean something: the others may never have been written.
TEST_F(LaunchTest, UnusedBytesOfVectors) {
    load_body(R"(
.visible .entry kernel(.param .u64 outputs)
{
    .reg .b32 %r<4>;
    .reg .b64 %out;
    .shared .align 16 .b8 vector[16];
    ld.param.u64 %out, [outputs];
    mov.u32 %r0, 17;
    st.shared.u32 [vector], %r0;
    st.shared.u32 [vector+12], %r0;
    .pragma "used_bytes_mask 61455";
    ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [vector];
    add.u32 %r0, %r0, %r3;
    st.global.u32 [%out], %r0;
    ret;
}
)");
    DeviceArray<uint32_t> out(1);
    launch("kernel", {1}, {1}, 0, out.data());
    EXPECT_EQ(out.read().at(0), 34u);
}

// The registers of a group of four warps; only sm_90a has it.
TEST_F(LaunchTest, RegisterCount) {
    load(R"(.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 outputs) .maxntid 128, 1, 1 .maxnreg 64
{
    .reg .b32 %x;
    .reg .b64 %out;
    ld.param.u64 %out, [outputs];
    mov.u32 %x, %tid.x;
    mad.wide.u32 %out, %x, 4, %out;
    setmaxnreg.dec.sync.aligned.u32 40;
    add.u32 %x, %x, 1;
    setmaxnreg.inc.sync.aligned.u32 64;
    st.global.u32 [%out], %x;
    ret;
}
)");
    DeviceArray<uint32_t> out(128, 0);
    launch("kernel", {1}, {128}, 0, out.data());
    std::vector<uint32_t> got = out.read();
    for (uint32_t i = 0; i < 128; i++)
        ASSERT_EQ(got[i], i + 1);
}

// A kernel that gives up, and a new start after it.
TEST_F(LaunchTest, TrapAndBreakpointEndTheKernel) {
    for (const char *instruction : {"trap;", "brkpt;"}) {
        SCOPED_TRACE(instruction);
        load_body(std::string(".visible .entry kernel()\n{\n    ") + instruction + "\n    ret;\n}\n");
        cudaKernel_t kernel = nullptr;
        ASSERT_CUDA(cudaLibraryGetKernel(&kernel, library_, "kernel"));
        ASSERT_CUDA(cudaLaunchKernel(reinterpret_cast<const void *>(kernel), {1}, {1}, nullptr, 0, nullptr));
        EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
        library_ = nullptr; // it ended with the context
        cudaDeviceReset();
        ASSERT_CUDA(cudaFree(nullptr));
    }
}

} // namespace
