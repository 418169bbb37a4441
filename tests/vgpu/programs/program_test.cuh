// What the test programs share: errors of the runtime as exceptions, arrays in device memory, random inputs and a
// fixture that needs a GPU, real or virtual.
#ifndef SHOAL_TESTS_VGPU_PROGRAMS_PROGRAM_TEST_CUH
#define SHOAL_TESTS_VGPU_PROGRAMS_PROGRAM_TEST_CUH

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace program {

// GoogleTest reports an exception as the failure of the test that let it through.
inline void throw_unless_success(cudaError_t error, const char *call, int line) {
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string(cudaGetErrorName(error)) + " from " + call + ", line " + std::to_string(line));
}
#define CUDA_OK(call) program::throw_unless_success(call, #call, __LINE__)

// After a launch: it was accepted, and the kernel ran to its end.
#define LAUNCH_OK()                       \
    do {                                  \
        CUDA_OK(cudaGetLastError());      \
        CUDA_OK(cudaDeviceSynchronize()); \
    } while (0)

// An array in device memory. Its contents are undefined unless it is made from values.
template <class T> class DeviceArray {
  public:
    explicit DeviceArray(size_t size) : size_(size) {
        if (size > 0) CUDA_OK(cudaMalloc(&data_, size * sizeof(T)));
    }
    explicit DeviceArray(const std::vector<T> &values) : DeviceArray(values.size()) {
        if (size_ > 0) CUDA_OK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    DeviceArray(size_t size, T value) : DeviceArray(std::vector<T>(size, value)) {}
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;

    T *data() const { return data_; }
    size_t size() const { return size_; }

    // The first `count` values.
    std::vector<T> values(size_t count) const {
        std::vector<T> copy(count);
        if (count > 0) CUDA_OK(cudaMemcpy(copy.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }
    std::vector<T> values() const { return values(size_); }

  private:
    size_t size_;
    T *data_ = nullptr;
};

// Integers in [low, high], each as likely as any other.
template <class T> std::vector<T> random_integers(std::mt19937 &random, size_t size, T low, T high) {
    std::uniform_int_distribution<T> distribution(low, high);
    std::vector<T> values(size);
    for (T &value : values)
        value = distribution(random);
    return values;
}

inline std::vector<float> random_floats(std::mt19937 &random, size_t size, float low, float high) {
    std::uniform_real_distribution<float> distribution(low, high);
    std::vector<float> values(size);
    for (float &value : values)
        value = distribution(random);
    return values;
}

// Equal bit for bit; says where the first difference is.
template <class T> void expect_same(const std::vector<T> &actual, const std::vector<T> &expected, const char *what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (size_t i = 0; i < actual.size(); i++) {
        ASSERT_EQ(memcmp(&actual[i], &expected[i], sizeof(T)), 0)
            << what << "[" << i << "] of " << actual.size() << " is " << ::testing::PrintToString(actual[i]) << ", not "
            << ::testing::PrintToString(expected[i]);
    }
}

// Without a GPU the test is skipped, unless SHOAL_TEST_CUDA=required says that there must be one.
class ProgramTest : public ::testing::Test {
  protected:
    void SetUp() override {
        int devices = 0;
        cudaError_t error = cudaGetDeviceCount(&devices);
        if (error == cudaSuccess && devices > 0) return;
        const char *required = getenv("SHOAL_TEST_CUDA");
        ASSERT_FALSE(required != nullptr && strcmp(required, "required") == 0) << cudaGetErrorString(error);
        GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
    }
};

} // namespace program

#endif
