// Records of activities: what is in them, what they belong to, and that times are those of the cost model.
#include <set>
#include <thread>

#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

class CuptiActivity : public CuptiTest {};

const CUpti_ActivityAPI *find_call(const std::vector<CUpti_ActivityAPI> &calls, uint32_t correlation) {
    for (const CUpti_ActivityAPI &call : calls) {
        if (call.correlationId == correlation) return &call;
    }
    return nullptr;
}

TEST_F(CuptiActivity, AKernelsRecordIsThatOfTheCallThatLaunchedIt) {
    DeviceWords words(1000);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
    ASSERT_CUDA(launch("fill", words.get(), 1000, 7, stream));
    flush();
    auto kernels = Records::get().kernels();
    auto calls = Records::get().calls();
    ASSERT_EQ(kernels.size(), 1u);
    const CUpti_ActivityKernel10 &kernel = kernels[0];
    EXPECT_STREQ(kernel.name, "fill");
    EXPECT_EQ(kernel.gridX, 8);
    EXPECT_EQ(kernel.gridY, 1);
    EXPECT_EQ(kernel.blockX, 128);
    EXPECT_EQ(kernel.graphId, 0u);
    EXPECT_EQ(kernel.graphNodeId, 0u);
    EXPECT_EQ(kernel.deviceId, 0u);
    uint32_t stream_id = 0;
    EXPECT_CUPTI(cuptiGetStreamIdEx(nullptr, stream, 0, &stream_id));
    EXPECT_EQ(kernel.streamId, stream_id);
    const CUpti_ActivityAPI *call = find_call(calls, kernel.correlationId);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    EXPECT_LT(call->start, call->end);
    EXPECT_LE(call->start, kernel.start);
    EXPECT_LT(kernel.start, kernel.end);
    EXPECT_EQ(call->returnValue, 0u);
}

} // namespace
