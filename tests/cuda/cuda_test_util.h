// What the tests of the CUDA backend share: both backends open, random inputs, and batches read env by env.
#ifndef SHOAL_TESTS_CUDA_CUDA_TEST_UTIL_H
#define SHOAL_TESTS_CUDA_CUDA_TEST_UTIL_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "host/pool.h"
#include "kernels/kern.h"
#include "sim/sim_rng.h"
#include "tests/kernels/test_sim.h"

#define ASSERT_OK(expr) ASSERT_EQ(expr, STATUS_OK) << host_message()

// Both backends. Without a GPU the test is skipped, unless SHOAL_TEST_CUDA=required says that there must be one (a
// virtual one, say).
class CudaTest : public ::testing::Test {
  protected:
    void SetUp() override { open_backends(0); }

    void TearDown() override {
        close_backends();
        unsetenv("SHOAL_CUDA_SLICE_STEPS");
    }

    // slice_steps: steps in each slice of an evaluation, 0: as the backend likes.
    void open_backends(int slice_steps) {
        close_backends();
        setenv("SHOAL_CUDA_SLICE_STEPS", std::to_string(slice_steps).c_str(), 1);
        Status status = kern_cuda_open(0, &cuda);
        if (status != STATUS_OK) {
            const char *required = getenv("SHOAL_TEST_CUDA");
            ASSERT_FALSE(required != nullptr && strcmp(required, "required") == 0) << host_message();
            ASSERT_EQ(status, STATUS_DEVICE);
            GTEST_SKIP() << host_message();
        }
        ASSERT_OK(host_pool_create(2, HOST_BIND_NONE, &pool));
        KernCpuOptions options = {pool, "auto", 0};
        ASSERT_OK(kern_cpu_open(&options, &cpu));
    }

    void close_backends() {
        if (cpu != nullptr) cpu->ops->close(cpu);
        if (cuda != nullptr) cuda->ops->close(cuda);
        host_pool_free(pool);
        cpu = cuda = nullptr;
        pool = nullptr;
    }

    HostPool *pool = nullptr;
    KernBackend *cpu = nullptr, *cuda = nullptr;
};

// Uniform random numbers in [0, 1) that depend on (stream, index) only.
inline float test_uniform(uint32_t stream, uint32_t index) {
    return sim_uniform_from(sim_philox(index, stream, 0, 0, 1234, 5678).x0);
}

#endif
