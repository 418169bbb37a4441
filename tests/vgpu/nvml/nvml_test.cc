// NVML by its interface: who the devices are, and how busy they are.
#include "tests/vgpu/nvml/nvml_api.h"

#include <thread>

#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

class Nvml : public RuntimeTest {
  protected:
    void SetUp() override {
        ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
        RuntimeTest::SetUp();
    }
    void TearDown() override {
        RuntimeTest::TearDown();
        EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
    }
};

nvmlDevice_t device_handle(unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
    return device;
}

TEST(NvmlLibrary, NeedsToBeInitialized) {
    unsigned count = 0;
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS); // it is counted
    EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    EXPECT_STREQ(nvmlErrorString(NVML_ERROR_UNINITIALIZED), "Uninitialized");
}

TEST_F(Nvml, DevicesAreFoundByNumberBusAndUuid) {
    unsigned count = 0;
    ASSERT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    int visible = 0;
    ASSERT_CUDA(cudaGetDeviceCount(&visible));
    ASSERT_GE(count, unsigned(visible));
    for (int i = 0; i < visible; i++) {
        char bus[32], uuid[96], name[96];
        ASSERT_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, i));
        nvmlDevice_t device = nullptr, same = nullptr;
        ASSERT_EQ(nvmlDeviceGetHandleByPciBusId_v2(bus, &device), NVML_SUCCESS);
        ASSERT_EQ(nvmlDeviceGetHandleByPciBusId_v2((std::string("0000") + bus).c_str(), &same), NVML_SUCCESS);
        EXPECT_EQ(device, same);
        ASSERT_EQ(nvmlDeviceGetUUID(device, uuid, sizeof uuid), NVML_SUCCESS);
        EXPECT_EQ(strlen(uuid), 40u);
        ASSERT_EQ(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
        EXPECT_EQ(device, same);
        unsigned index = 99;
        ASSERT_EQ(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
        EXPECT_EQ(device, device_handle(index));
        cudaDeviceProp properties{};
        ASSERT_CUDA(cudaGetDeviceProperties(&properties, i));
        ASSERT_EQ(nvmlDeviceGetName(device, name, sizeof name), NVML_SUCCESS);
        EXPECT_STREQ(name, properties.name);
        EXPECT_EQ(nvmlDeviceGetName(device, name, 3), NVML_ERROR_INSUFFICIENT_SIZE);
    }
    nvmlDevice_t none = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(count, &none), NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:FF:00.0", &none), NVML_ERROR_NOT_FOUND);
    EXPECT_EQ(nvmlDeviceGetUtilizationRates(nullptr, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, MemoryIsWhatTheProcessUses) {
    nvmlMemory_t before{}, with{}, after{};
    nvmlDevice_t device = device_handle(0);
    ASSERT_EQ(nvmlDeviceGetMemoryInfo(device, &before), NVML_SUCCESS);
    {
        DeviceWords words(1 << 20);
        ASSERT_EQ(nvmlDeviceGetMemoryInfo(device, &with), NVML_SUCCESS);
    }
    ASSERT_EQ(nvmlDeviceGetMemoryInfo(device, &after), NVML_SUCCESS);
    EXPECT_EQ(before.total, before.used + before.free);
    EXPECT_GE(with.used, before.used + (4 << 20));
    EXPECT_EQ(after.used, before.used);
}

// One kernel of one thread is enough for all of the device to be busy: what makes the figure flatter.
TEST_F(Nvml, OneSmallKernelIsWholeUtilisation) {
    if (!is_virtual()) GTEST_SKIP() << "kernels take as long as the cost model says";
    DeviceWords words(1);
    nvmlDevice_t device = device_handle(0), other = device_handle(1);
    nvmlUtilization_t idle{}, busy{}, elsewhere{}, later{};
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // two periods
    ASSERT_EQ(nvmlDeviceGetUtilizationRates(device, &idle), NVML_SUCCESS);
    ASSERT_CUDA(launch("fill", words.get(), 1, 1, nullptr)); // of 250 ms
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    ASSERT_EQ(nvmlDeviceGetUtilizationRates(device, &busy), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetUtilizationRates(other, &elsewhere), NVML_SUCCESS);
    ASSERT_CUDA(cudaDeviceSynchronize());

    unsigned count = 200;
    nvmlSample_t samples[200];
    nvmlValueType_t type{};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_EQ(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, samples), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetUtilizationRates(device, &later), NVML_SUCCESS);
    EXPECT_EQ(idle.gpu, 0u);
    EXPECT_EQ(busy.gpu, 100u);
    EXPECT_EQ(elsewhere.gpu, 0u);
    EXPECT_EQ(later.gpu, 0u);
    // The kernel's 250 ms, in samples of 50 ms, rounded each: as long, wherever it began.
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += samples[i].sampleValue.uiVal;
    EXPECT_NEAR(sum, 500, 3);
    EXPECT_EQ(samples[count - 1].timeStamp - samples[count - 2].timeStamp, 50'000u);
    unsigned newer = 200;
    EXPECT_EQ(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, samples[count - 2].timeStamp, &type, &newer,
                                   samples),
              NVML_SUCCESS);
    EXPECT_LT(newer, count);
}

} // namespace
