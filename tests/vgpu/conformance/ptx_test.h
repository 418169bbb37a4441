// What the tests of PTX share: a device that can run it, modules loaded from text, arrays in device memory. They use
// the CUDA runtime's public functions only, so that they run on a GPU as well.
#ifndef SHOAL_TESTS_VGPU_CONFORMANCE_PTX_TEST_H
#define SHOAL_TESTS_VGPU_CONFORMANCE_PTX_TEST_H

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess) << cudaGetErrorString(cudaGetLastError()) << " in " << #call

constexpr int PTX_TARGET = 90; // sm_90: what the tests' PTX is written for

// Random inputs from a seed that is printed with failures.
class TestRandom {
  public:
    explicit TestRandom(uint32_t seed) : trace_(__FILE__, __LINE__, "seed " + std::to_string(seed)), engine_(seed) {}

    uint64_t bits64() { return engine_(); }
    uint32_t bits32() { return static_cast<uint32_t>(engine_() >> 32); }
    uint32_t below(uint32_t bound) { return bits32() % bound; }

    template <class T> std::vector<T> vector(size_t count) {
        std::vector<T> values(count);
        for (T &value : values) {
            uint64_t bits = bits64();
            memcpy(&value, &bits, sizeof value);
        }
        return values;
    }

  private:
    testing::ScopedTrace trace_;
    std::mt19937_64 engine_;
};

// A launch that fails leaves an error that every later call in the process gives, too.
inline bool has_launch_failed() { return cudaDeviceSynchronize() != cudaSuccess; }

// An array in device memory.
template <class T> class DeviceArray {
  public:
    explicit DeviceArray(const std::vector<T> &values) : count_(values.size()) {
        EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data_), count_ * sizeof(T)), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
    }
    explicit DeviceArray(size_t count, T value = T{}) : DeviceArray(std::vector<T>(count, value)) {}
    ~DeviceArray() { EXPECT_TRUE(cudaFree(data_) == cudaSuccess || has_launch_failed()); }
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;

    T *data() const { return data_; }

    std::vector<T> read() const {
        std::vector<T> values(count_);
        EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return values;
    }

  private:
    T *data_ = nullptr;
    size_t count_;
};

class PtxTestBase {
  protected:
    // Without a GPU that runs the PTX the test is skipped, unless SHOAL_TEST_CUDA=required says that there is one.
    static void require_device() {
        std::string missing = missing_device();
        ASSERT_FALSE(is_required() && !missing.empty()) << missing;
        if (!missing.empty()) GTEST_SKIP() << missing;
        if (has_launch_failed()) GTEST_FAIL() << "an earlier launch failed";
    }

    // Why the tests cannot run, empty: they can.
    static std::string missing_device() {
        int count = 0, major = 0, minor = 0;
        cudaError_t error = cudaGetDeviceCount(&count);
        if (error != cudaSuccess || count == 0) {
            return std::string("no CUDA device: ") + cudaGetErrorString(error);
        }
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
        if (10 * major + minor >= PTX_TARGET) return "";
        return "compute capability " + std::to_string(major) + "." + std::to_string(minor) +
               ", and the PTX is for sm_" + std::to_string(PTX_TARGET);
    }

    static bool is_required() {
        const char *required = getenv("SHOAL_TEST_CUDA");
        return required != nullptr && strcmp(required, "required") == 0;
    }

    void load(const std::string &ptx) {
        unload();
        ASSERT_CUDA(cudaLibraryLoadData(&library_, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    }

    void unload() {
        if (library_ == nullptr) return;
        EXPECT_TRUE(cudaLibraryUnload(library_) == cudaSuccess || has_launch_failed());
        library_ = nullptr;
    }

    // Runs a kernel of the module to its end.
    template <class... Arguments>
    void launch(const std::string &name, dim3 grid, dim3 block, size_t shared_bytes, Arguments... arguments) {
        cudaKernel_t kernel = nullptr;
        ASSERT_CUDA(cudaLibraryGetKernel(&kernel, library_, name.c_str()));
        void *pointers[] = {static_cast<void *>(&arguments)...};
        ASSERT_CUDA(
            cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, pointers, shared_bytes, nullptr));
        ASSERT_CUDA(cudaDeviceSynchronize());
    }

    cudaLibrary_t library_ = nullptr;
};

class PtxTest : public testing::Test, protected PtxTestBase {
  protected:
    void SetUp() override { require_device(); }
    void TearDown() override { unload(); }

    // Loads a module of `body`, which has the functions and the module's variables.
    void load_body(const std::string &body) { load(".version 8.3\n.target sm_90\n.address_size 64\n" + body); }
};

#endif
