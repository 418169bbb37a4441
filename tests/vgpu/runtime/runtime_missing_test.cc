// Functions of the runtime that the virtual GPU does not have: programs that name them start, and are told.
#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

class MissingTest : public RuntimeTest {};

TEST_F(MissingTest, EveryFunctionOfTheToolkitsLibraryIsThere) {
    const char *const functions[] = {
#define FUNCTION(name) #name,
#include "cudart_functions.inc"
    };
    EXPECT_GT(std::size(functions), 300u);
    for (const char *function : functions)
        EXPECT_NE(dlsym(RTLD_DEFAULT, function), nullptr) << function;
}

TEST_F(MissingTest, TheyFailAndSaySo) {
    if (!is_virtual()) GTEST_SKIP() << "a real GPU has them";
    testing::internal::CaptureStderr();
    cudaArray_t array = nullptr;
    cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    EXPECT_CUDA_ERROR(cudaMallocArray(&array, &format, 16, 16, 0), cudaErrorNotSupported);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "vgpu: cudaMallocArray() is not supported\n");
    EXPECT_EQ(format.x, 8);
    EXPECT_EQ(format.w, 0);
    EXPECT_EQ(format.f, cudaChannelFormatKindUnsigned);
}

} // namespace
