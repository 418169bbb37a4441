// What observing costs, as planted by the environment: it shows where the settings say, and can be found out by a
// comparison with and without.
#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

class CuptiCosts : public CuptiTest {
  protected:
    // The least time of a call, in ns, over many.
    static uint64_t call_ns() {
        uint64_t least = UINT64_MAX;
        for (int i = 0; i < 300; i++) {
            int device = 0;
            uint64_t begin = monotonic_ns();
            EXPECT_CUDA(cudaGetDevice(&device));
            least = std::min(least, monotonic_ns() - begin);
        }
        return least;
    }

    // A kernel's time on the device by the model's events, in ns.
    double kernel_ns(uint32_t *words) {
        Stream stream;
        Event first(cudaEventDefault), second(cudaEventDefault);
        Gate gate(stream);
        EXPECT_CUDA(launch("fill", words, 256, 1, stream));
        EXPECT_CUDA(cudaEventRecord(first, stream));
        EXPECT_CUDA(launch("fill", words, 256, 1, stream));
        EXPECT_CUDA(cudaEventRecord(second, stream));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        gate.open();
        EXPECT_CUDA(cudaStreamSynchronize(stream));
        float elapsed_ms = 0;
        EXPECT_CUDA(cudaEventElapsedTime(&elapsed_ms, first, second));
        return double(elapsed_ms) * 1e6;
    }
};

TEST_F(CuptiCosts, ARecordedCallCostsWhatTheSettingsSay) {
    ASSERT_GT(cost("CALL_BEFORE"), 0u);
    uint64_t without = call_ns();
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    uint64_t with = call_ns();
    flush();
    double planted = double(cost("CALL_BEFORE") + cost("CALL_INSIDE"));
    EXPECT_NEAR(double(with - without), planted, planted * 0.05);
    uint64_t inside = UINT64_MAX;
    for (const CUpti_ActivityAPI &call : Records::get().calls()) {
        EXPECT_GE(call.end - call.start, cost("CALL_INSIDE"));
        inside = std::min(inside, call.end - call.start);
    }
    EXPECT_NEAR(double(inside), double(cost("CALL_INSIDE")), double(cost("CALL_INSIDE")) * 0.05);
    ASSERT_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
    EXPECT_LT(call_ns(), cost("CALL_INSIDE"));
}

TEST_F(CuptiCosts, ACallWithACallbackCostsTheSame) {
    subscribe([](void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}, nullptr);
    uint64_t without = call_ns();
    ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
    uint64_t with = call_ns();
    double planted = double(cost("CALL_BEFORE") + cost("CALL_INSIDE"));
    EXPECT_NEAR(double(with - without), planted, planted * 0.05);
}

TEST_F(CuptiCosts, ARecordedKernelTakesLonger) {
    DeviceWords words(256);
    enable({CUPTI_ACTIVITY_KIND_MEMCPY}); // the model counts, and kernels are not recorded
    double without = kernel_ns(words.get());
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    double with = kernel_ns(words.get());
    EXPECT_NEAR(without, double(cost("KERNEL") + 2 * cost("BLOCK")), 1);
    EXPECT_NEAR(with - without, double(cost("TRACED_KERNEL")), 1);
    flush();
    for (const CUpti_ActivityKernel10 &kernel : Records::get().kernels())
        EXPECT_EQ(kernel.end - kernel.start, cost("KERNEL") + 2 * cost("BLOCK") + cost("TRACED_KERNEL"));
}

} // namespace
