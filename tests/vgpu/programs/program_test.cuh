// What the test programs share: random inputs, comparisons and a fixture that needs a GPU, real or virtual.
#ifndef SHOAL_TESTS_VGPU_PROGRAMS_PROGRAM_TEST_CUH
#define SHOAL_TESTS_VGPU_PROGRAMS_PROGRAM_TEST_CUH

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/vgpu/programs/device_array.cuh"

namespace program {

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
