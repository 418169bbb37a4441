// Kernels and libraries: what launches refuse, parameters, shared memory, attributes, occupancy.
#include <memory>
#include <numeric>
#include <set>

#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

class LaunchTest : public RuntimeTest {
  protected:
    cudaError_t launch_shape(dim3 grid, dim3 block, const char *name = "bounded", size_t shared_bytes = 0) {
        uint32_t *out = word_->get();
        void *arguments[] = {&out};
        return cudaLaunchKernel(kernel(name), grid, block, arguments, shared_bytes, nullptr);
    }

    void SetUp() override {
        RuntimeTest::SetUp();
        if (!IsSkipped()) word_ = std::make_unique<DeviceWords>(1024);
    }

    void TearDown() override {
        word_.reset();
        RuntimeTest::TearDown();
    }

    std::unique_ptr<DeviceWords> word_;
};

TEST_F(LaunchTest, ShapesThatAreRefused) {
    struct Shape {
        dim3 grid, block;
        cudaError_t expected;
    } const rows[] = {
        {dim3(1), dim3(32), cudaSuccess},
        {dim3(1), dim3(128), cudaSuccess},
        {dim3(0), dim3(32), cudaErrorInvalidConfiguration},
        {dim3(1, 0), dim3(32), cudaErrorInvalidConfiguration},
        {dim3(1), dim3(0), cudaErrorInvalidConfiguration},
        {dim3(1), dim3(1, 1, 0), cudaErrorInvalidConfiguration},
        {dim3(1), dim3(1025), cudaErrorInvalidConfiguration},
        {dim3(1), dim3(1, 1, 65), cudaErrorInvalidConfiguration},
        {dim3(1), dim3(32, 33), cudaErrorInvalidConfiguration},
        {dim3(1, 65536), dim3(32), cudaErrorInvalidConfiguration},
        {dim3(1, 1, 65536), dim3(32), cudaErrorInvalidConfiguration},
        {dim3(0x80000000u), dim3(32), cudaErrorInvalidConfiguration},
    };
    for (const Shape &row : rows) {
        EXPECT_EQ(launch_shape(row.grid, row.block), row.expected)
            << row.grid.x << " " << row.grid.y << " " << row.grid.z << ", " << row.block.x << " " << row.block.y << " "
            << row.block.z;
        EXPECT_EQ(cudaGetLastError(), row.expected);
    }
    EXPECT_CUDA_ERROR(launch_shape(dim3(1), dim3(129)), cudaErrorInvalidValue); // .maxntid
}

TEST_F(LaunchTest, UnknownFunctionsAreRefused) {
    int local = 0;
    EXPECT_CUDA_ERROR(cudaLaunchKernel(&local, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
    cudaFuncAttributes attributes;
    EXPECT_CUDA_ERROR(cudaFuncGetAttributes(&attributes, &local), cudaErrorInvalidDeviceFunction);
    cudaKernel_t found = nullptr;
    EXPECT_CUDA_ERROR(cudaLibraryGetKernel(&found, library_, "absent"), cudaErrorSymbolNotFound);
    void *pointer = nullptr;
    EXPECT_CUDA_ERROR(cudaLibraryGetGlobal(&pointer, nullptr, library_, "absent"), cudaErrorSymbolNotFound);
    EXPECT_CUDA_ERROR(cudaGetSymbolAddress(&pointer, &local), cudaErrorInvalidSymbol);
}

TEST_F(LaunchTest, ParametersAreCopiedAtTheCall) {
    uint64_t *out = reinterpret_cast<uint64_t *>(word_->get());
    uint8_t a = 200;
    uint64_t b = uint64_t{1} << 40;
    uint32_t c = 3000000000u;
    uint16_t d = 60000;
    void *arguments[] = {&out, &a, &b, &c, &d};
    Stream stream;
    ASSERT_CUDA(cudaLaunchKernel(kernel("sum"), dim3(1), dim3(1), arguments, 0, stream));
    a = 0, b = 0, c = 0, d = 0, out = nullptr;
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    uint64_t sum = 0;
    ASSERT_CUDA(cudaMemcpy(&sum, word_->get(), sizeof sum, cudaMemcpyDeviceToHost));
    EXPECT_EQ(sum, 200u + (uint64_t{1} << 40) + 3000000000u + 60000u);

    struct Place {
        size_t offset, size;
    } const places[] = {{0, 8}, {8, 1}, {16, 8}, {24, 4}, {28, 2}};
    for (size_t i = 0; i < 5; i++) {
        size_t offset = 99, size = 99;
        ASSERT_CUDA(cudaFuncGetParamInfo(kernel("sum"), i, &offset, &size));
        EXPECT_EQ(offset, places[i].offset) << i;
        EXPECT_EQ(size, places[i].size) << i;
    }
    size_t offset = 0;
    EXPECT_CUDA_ERROR(cudaFuncGetParamInfo(kernel("sum"), 5, &offset, nullptr), cudaErrorInvalidValue);
}

TEST_F(LaunchTest, DynamicSharedMemoryHasALimitThatCanBeRaised) {
    cudaDeviceProp properties;
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
    int most = static_cast<int>(properties.sharedMemPerBlockOptin);
    auto launch_shared = [this](size_t bytes) { return launch_shape(dim3(1), dim3(256), "shared", bytes); };
    EXPECT_CUDA(launch_shared(1024));
    std::vector<uint32_t> reversed(1024);
    std::iota(reversed.rbegin() + 768, reversed.rend(), 0u);
    EXPECT_EQ(word_->read(), reversed);
    EXPECT_CUDA(launch_shared(49152));
    EXPECT_CUDA_ERROR(launch_shared(49153), cudaErrorInvalidValue);
    cudaFuncAttributes attributes;
    ASSERT_CUDA(cudaFuncGetAttributes(&attributes, kernel("shared")));
    EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 49152);
    ASSERT_CUDA(cudaFuncSetAttribute(kernel("shared"), cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    EXPECT_CUDA(launch_shared(properties.sharedMemPerBlockOptin));
    EXPECT_CUDA_ERROR(launch_shared(properties.sharedMemPerBlockOptin + 1), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaFuncSetAttribute(kernel("shared"), cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
                      cudaErrorInvalidValue);
    ASSERT_CUDA(cudaFuncGetAttributes(&attributes, kernel("shared")));
    EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, most);
}

TEST_F(LaunchTest, StaticSharedMemoryCounts) {
    cudaFuncAttributes attributes;
    ASSERT_CUDA(cudaFuncGetAttributes(&attributes, kernel("large")));
    EXPECT_EQ(attributes.sharedSizeBytes, 40000u);
    EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
    EXPECT_CUDA(launch_shape(dim3(1), dim3(1), "large", 9152));
    EXPECT_CUDA_ERROR(launch_shape(dim3(1), dim3(1), "large", 9153), cudaErrorInvalidValue);
    EXPECT_EQ(word_->read()[0], 5u);
    ASSERT_CUDA(cudaFuncGetAttributes(&attributes, kernel("bounded")));
    EXPECT_EQ(attributes.maxThreadsPerBlock, 128);
    EXPECT_EQ(attributes.sharedSizeBytes, 0u);
}

TEST_F(LaunchTest, OccupancyIsWhatThreadsBlocksAndSharedMemoryAllow) {
    cudaDeviceProp properties;
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
    auto blocks = [this](const char *name, int threads, size_t shared_bytes) {
        int count = -1;
        EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel(name), threads, shared_bytes));
        return count;
    };
    EXPECT_EQ(blocks("fill", 1024, 0), properties.maxThreadsPerMultiProcessor / 1024);
    EXPECT_EQ(blocks("fill", 256, 0), properties.maxThreadsPerMultiProcessor / 256);
    EXPECT_EQ(blocks("fill", 255, 0), properties.maxThreadsPerMultiProcessor / 256); // whole warps
    EXPECT_EQ(blocks("fill", 1, 0), properties.maxBlocksPerMultiProcessor);
    size_t third = properties.sharedMemPerMultiprocessor / 3 / 1024 * 1024 - properties.reservedSharedMemPerBlock;
    EXPECT_EQ(blocks("shared", 32, third), 3);
    EXPECT_EQ(blocks("shared", 32, properties.sharedMemPerBlockOptin), 1);
    int count = 0;
    EXPECT_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel("fill"), 0, 0),
                      cudaErrorInvalidValue);

    size_t available = 0;
    ASSERT_CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&available, kernel("shared"), 2, 128));
    EXPECT_GE(available, third);
    EXPECT_GE(blocks("shared", 128, available), 2);
}

TEST_F(LaunchTest, CooperativeLaunchesHaveToFit) {
    cudaDeviceProp properties;
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
    uint32_t *out = word_->get();
    void *arguments[] = {&out};
    unsigned most = 0;
    int resident = 0;
    ASSERT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel("bounded"), 128, 0));
    most = static_cast<unsigned>(resident * properties.multiProcessorCount);
    auto launch_blocks = [&](unsigned count) {
        return cudaLaunchCooperativeKernel(kernel("bounded"), dim3(count), dim3(128), arguments, 0, nullptr);
    };
    EXPECT_CUDA(launch_blocks(4));
    EXPECT_CUDA_ERROR(launch_blocks(most + 1), cudaErrorCooperativeLaunchTooLarge);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(most + 1);
    config.blockDim = dim3(128);
    config.attrs = &attribute;
    config.numAttrs = 1;
    EXPECT_CUDA_ERROR(cudaLaunchKernelExC(&config, kernel("bounded"), arguments), cudaErrorCooperativeLaunchTooLarge);
    config.numAttrs = 0;
    EXPECT_CUDA(cudaLaunchKernelExC(&config, kernel("bounded"), arguments));
    EXPECT_EQ(word_->read()[0], 9u);
}

// ---- libraries -----------------------------------------------------------------------------------------------------

TEST_F(LaunchTest, KernelsOfALibrary) {
    unsigned count = 0;
    ASSERT_CUDA(cudaLibraryGetKernelCount(&count, library_));
    ASSERT_EQ(count, 10u);
    std::vector<cudaKernel_t> kernels(count);
    ASSERT_CUDA(cudaLibraryEnumerateKernels(kernels.data(), count, library_));
    std::set<std::string> names;
    for (cudaKernel_t each : kernels) {
        const char *name = nullptr;
        ASSERT_CUDA(cudaFuncGetName(&name, each));
        names.insert(name);
    }
    std::set<std::string> expected{"fill", "mix", "copy", "slow", "sum", "shared", "large", "bounded", "count", "wild"};
    EXPECT_EQ(names, expected);
}

TEST_F(LaunchTest, VariablesOfALibrary) {
    void *counter = nullptr;
    size_t bytes = 0;
    ASSERT_CUDA(cudaLibraryGetGlobal(&counter, &bytes, library_, "counter"));
    EXPECT_EQ(bytes, 4u);
    for (uint32_t expected : {7u, 8u}) {
        ASSERT_CUDA(launch_shape(dim3(1), dim3(1), "count"));
        EXPECT_EQ(word_->read()[0], expected);
    }
    uint32_t value = 100;
    ASSERT_CUDA(cudaMemcpy(counter, &value, 4, cudaMemcpyHostToDevice));
    ASSERT_CUDA(launch_shape(dim3(1), dim3(1), "count"));
    EXPECT_EQ(word_->read()[0], 100u);
}

TEST_F(LaunchTest, ImagesThatAreRefused) {
    cudaLibrary_t library = nullptr;
    auto load = [&](const char *image) {
        return cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    };
    EXPECT_CUDA_ERROR(load(".version 7.0\n.target sm_75\n.address_size 64\n.entry k( { ret; }\n"), cudaErrorInvalidPtx);
    EXPECT_CUDA_ERROR(load(nullptr), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaLibraryLoadFromFile(&library, "/nowhere.ptx", nullptr, nullptr, 0, nullptr, nullptr, 0),
                      cudaErrorFileNotFound);
    if (!is_virtual()) GTEST_SKIP() << "what follows depends on the device";
    EXPECT_CUDA_ERROR(load(".version 9.0\n.target sm_121a\n.address_size 64\n.entry k() { ret; }\n"),
                      cudaErrorNoKernelImageForDevice);
    EXPECT_CUDA_ERROR(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
}

} // namespace
