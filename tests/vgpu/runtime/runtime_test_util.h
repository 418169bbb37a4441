// What the tests of the CUDA runtime share. They use its API only, and kernels written here as PTX text, so that they
// run on the virtual GPU and, with LD_LIBRARY_PATH naming the toolkit's folder, on a real one.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_RUNTIME_TEST_UTIL_H
#define SHOAL_TESTS_VGPU_RUNTIME_RUNTIME_TEST_UTIL_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

inline bool is_virtual() { return dlsym(RTLD_DEFAULT, "vgpu_is_virtual") != nullptr; }

// Whether operations wait until something waits for them: what a program may not rely on shows then.
inline bool is_lazy() {
    const char *schedule = getenv("VGPU_STREAMS");
    return is_virtual() && schedule != nullptr && strcmp(schedule, "lazy") == 0;
}

#define EXPECT_CUDA(expression) EXPECT_EQ(expression, cudaSuccess)
#define ASSERT_CUDA(expression) ASSERT_EQ(expression, cudaSuccess)

// An error that is expected, and that is then the thread's last one and no longer.
#define EXPECT_CUDA_ERROR(expression, error)  \
    do {                                      \
        EXPECT_EQ(expression, error);         \
        EXPECT_EQ(cudaGetLastError(), error); \
    } while (false)

// Kernels of one thread for each word:
//   fill(out, n, value)     out[i] = value
//   mix(out, n, value)      out[i] = out[i] * 3 + value: the order of several shows
//   copy(out, in, n)        out[i] = in[i]
//   slow(out, rounds, value)  one thread counts to `rounds`, then out[0] = value
//   sum(out, a, b, c, d)    out[0] = a + b + c + d, of 1, 8, 4 and 2 bytes
//   shared(out)             through dynamic shared memory: out[i] = threads - 1 - i
//   large(out)              40000 bytes of static shared memory
//   bounded(out)            out[0] = 9, by every thread, of which a block has at most 128
//   count(out)              out[0] = counter++; counter begins at 7
//   wild()                  writes to address 64
inline const char *const TEST_PTX = R"(
.version 7.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.extern .shared .align 16 .b8 dynamic[];

.visible .entry fill(.param .u64 out, .param .u32 n, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [value];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r2;
DONE:
    ret;
}

.visible .entry mix(.param .u64 out, .param .u32 n, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [value];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4];
    mad.lo.s32 %r8, %r7, 3, %r2;
    st.global.u32 [%rd4], %r8;
DONE:
    ret;
}

.visible .entry copy(.param .u64 out, .param .u64 in, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    ld.param.u32 %r1, [n];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r6, 4;
    add.s64 %rd6, %rd3, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.u32 %r7, [%rd7];
    st.global.u32 [%rd6], %r7;
DONE:
    ret;
}

.visible .entry slow(.param .u64 out, .param .u32 rounds, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    ld.param.u32 %r2, [value];
    mov.u32 %r3, 0;
LOOP:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra LOOP;
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry sum(.param .u64 out, .param .u8 a, .param .u64 b, .param .u32 c, .param .u16 d)
{
    .reg .b16 %h<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [out];
    ld.param.u8 %h1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u32 %r1, [c];
    ld.param.u16 %h2, [d];
    cvt.u64.u16 %rd3, %h1;
    cvt.u64.u32 %rd4, %r1;
    cvt.u64.u16 %rd5, %h2;
    add.u64 %rd6, %rd2, %rd3;
    add.u64 %rd7, %rd6, %rd4;
    add.u64 %rd8, %rd7, %rd5;
    cvta.to.global.u64 %rd9, %rd1;
    st.global.u64 [%rd9], %rd8;
    ret;
}

.visible .entry shared(.param .u64 out)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, dynamic;
    shl.b32 %r3, %r1, 2;
    add.u32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    mov.u32 %r5, %ntid.x;
    sub.u32 %r5, %r5, 1;
    sub.u32 %r5, %r5, %r1;
    shl.b32 %r6, %r5, 2;
    add.u32 %r7, %r2, %r6;
    ld.shared.u32 %r8, [%r7];
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r8;
    ret;
}

.visible .entry large(.param .u64 out)
{
    .shared .align 16 .b8 block[40000];
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 5;
    st.shared.u32 [block+39996], %r1;
    ld.shared.u32 %r2, [block+39996];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry bounded(.param .u64 out)
.maxntid 128, 1, 1
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 9;
    cvta.to.global.u64 %rd2, %rd1;
    st.relaxed.gpu.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry count(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [counter];
    add.u32 %r2, %r1, 1;
    st.global.u32 [counter], %r2;
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry wild()
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 64;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
)";

// Loads the kernels, and takes care that a test leaves no error behind.
class RuntimeTest : public testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
            (void)cudaGetLastError();
            GTEST_SKIP() << "no GPU";
        }
        ASSERT_CUDA(cudaSetDevice(0));
        ASSERT_CUDA(cudaLibraryLoadData(&library_, TEST_PTX, nullptr, nullptr, 0, nullptr, nullptr, 0));
    }

    void TearDown() override {
        if (library_ == nullptr) return;
        EXPECT_CUDA(cudaSetDevice(0));
        EXPECT_CUDA(cudaDeviceSynchronize());
        EXPECT_CUDA(cudaGetLastError());
        EXPECT_CUDA(cudaLibraryUnload(library_));
    }

    const void *kernel(const char *name) {
        cudaKernel_t found = nullptr;
        EXPECT_CUDA(cudaLibraryGetKernel(&found, library_, name));
        return found;
    }

    // fill or mix, over n words.
    cudaError_t launch(const char *name, uint32_t *out, uint32_t n, uint32_t value, cudaStream_t stream) {
        void *arguments[] = {&out, &n, &value};
        return cudaLaunchKernel(kernel(name), dim3((n + 127) / 128), dim3(128), arguments, 0, stream);
    }

    // One thread that takes its time.
    cudaError_t launch_slow(uint32_t *out, uint32_t value, cudaStream_t stream) {
        uint32_t rounds = 20000;
        void *arguments[] = {&out, &rounds, &value};
        return cudaLaunchKernel(kernel("slow"), dim3(1), dim3(1), arguments, 0, stream);
    }

    cudaLibrary_t library_ = nullptr;
};

// Words of device memory, freed at the end.
class DeviceWords {
  public:
    explicit DeviceWords(uint32_t n) : n_(n) {
        EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&words_), n * sizeof(uint32_t)));
        EXPECT_CUDA(cudaMemset(words_, 0, n * sizeof(uint32_t)));
        EXPECT_CUDA(cudaDeviceSynchronize());
    }
    ~DeviceWords() { EXPECT_CUDA(cudaFree(words_)); }
    DeviceWords(const DeviceWords &) = delete;
    DeviceWords &operator=(const DeviceWords &) = delete;

    uint32_t *get() const { return words_; }
    size_t bytes() const { return n_ * sizeof(uint32_t); }

    // Waits for the whole device first.
    std::vector<uint32_t> read() const {
        std::vector<uint32_t> host(n_);
        EXPECT_CUDA(cudaDeviceSynchronize());
        EXPECT_CUDA(cudaMemcpy(host.data(), words_, bytes(), cudaMemcpyDeviceToHost));
        return host;
    }

  private:
    uint32_t n_;
    uint32_t *words_ = nullptr;
};

// The same of pinned memory.
class PinnedWords {
  public:
    PinnedWords(uint32_t n, uint32_t value) {
        EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&words_), n * sizeof(uint32_t)));
        for (uint32_t i = 0; i < n; i++)
            words_[i] = value;
    }
    ~PinnedWords() { EXPECT_CUDA(cudaFreeHost(words_)); }
    PinnedWords(const PinnedWords &) = delete;
    PinnedWords &operator=(const PinnedWords &) = delete;

    uint32_t *get() const { return words_; }

  private:
    uint32_t *words_ = nullptr;
};

class Stream {
  public:
    explicit Stream(unsigned flags = cudaStreamNonBlocking) { EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, flags)); }
    ~Stream() { EXPECT_CUDA(cudaStreamDestroy(stream_)); }
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

class Event {
  public:
    explicit Event(unsigned flags = cudaEventDisableTiming) { EXPECT_CUDA(cudaEventCreateWithFlags(&event_, flags)); }
    ~Event() { EXPECT_CUDA(cudaEventDestroy(event_)); }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    operator cudaEvent_t() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

inline std::vector<uint32_t> words_of(size_t n, uint32_t value) { return std::vector<uint32_t>(n, value); }

#endif
