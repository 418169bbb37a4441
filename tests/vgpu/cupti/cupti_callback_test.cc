// Callbacks: who is called, when and with what.
#include <generated_cuda_runtime_api_meta.h>

#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

struct Seen {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId cbid;
    CUpti_ApiCallbackSite site;
    std::string name, symbol;
    uint32_t correlation, context;
    int result;  // -1: none yet
    size_t size; // cudaMalloc's
};

class CuptiCallbacks : public CuptiTest {
  protected:
    static void note(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *callback_data) {
        auto &all = *static_cast<std::vector<Seen> *>(data);
        const auto *call = static_cast<const CUpti_CallbackData *>(callback_data);
        Seen seen{};
        seen.domain = domain, seen.cbid = cbid;
        seen.site = call->callbackSite;
        seen.name = call->functionName;
        seen.symbol = call->symbolName != nullptr ? call->symbolName : "";
        seen.correlation = call->correlationId;
        seen.context = call->contextUid;
        seen.result = call->callbackSite == CUPTI_API_EXIT
                          ? int(*static_cast<const cudaError_t *>(call->functionReturnValue))
                          : -1;
        if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020) {
            seen.size = static_cast<const cudaMalloc_v3020_params *>(call->functionParams)->size;
        }
        // What the entry leaves is there at the exit.
        if (call->callbackSite == CUPTI_API_ENTER) {
            *call->correlationData = 1000 + all.size();
        } else {
            EXPECT_EQ(*call->correlationData, 1000 + all.size() - 1);
        }
        all.push_back(seen);
    }

    void enable_domain() { ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API)); }

    std::vector<Seen> seen_;
};

TEST_F(CuptiCallbacks, EveryCallIsEnteredAndLeft) {
    DeviceWords words(256);
    subscribe(note, &seen_);
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    enable_domain();
    void *pointer = nullptr;
    ASSERT_CUDA(cudaMalloc(&pointer, 1234));
    ASSERT_CUDA(cudaFree(pointer));
    const void *fill = kernel("fill"); // cudaLibraryGetKernel()
    uint32_t *out = words.get(), n = 256, value = 3;
    void *arguments[] = {&out, &n, &value};
    ASSERT_CUDA(cudaLaunchKernel(fill, dim3(2), dim3(128), arguments, 0, nullptr));
    EXPECT_EQ(cudaFree(&pointer), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    ASSERT_CUPTI(cuptiEnableDomain(0, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
    flush();
    const std::pair<const char *, uint32_t> expected[] = {
        {"cudaMalloc", CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020},
        {"cudaFree", CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020},
        {"cudaLibraryGetKernel", CUPTI_RUNTIME_TRACE_CBID_cudaLibraryGetKernel_v12060},
        {"cudaLaunchKernel", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000},
        {"cudaFree", CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020},
        {"cudaGetLastError", CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020}};
    ASSERT_EQ(seen_.size(), 2 * std::size(expected));
    auto calls = Records::get().calls();
    for (size_t i = 0; i < std::size(expected); i++) {
        const Seen &enter = seen_[2 * i], &leave = seen_[2 * i + 1];
        EXPECT_EQ(enter.site, CUPTI_API_ENTER);
        EXPECT_EQ(leave.site, CUPTI_API_EXIT);
        EXPECT_EQ(enter.domain, CUPTI_CB_DOMAIN_RUNTIME_API);
        EXPECT_EQ(enter.name, expected[i].first);
        EXPECT_EQ(enter.cbid, expected[i].second) << enter.name;
        EXPECT_EQ(leave.cbid, expected[i].second);
        EXPECT_EQ(enter.correlation, leave.correlation);
        const CUpti_ActivityAPI *record = find_correlated(calls, enter.correlation);
        ASSERT_NE(record, nullptr) << enter.name;
        EXPECT_EQ(record->cbid, enter.cbid);
        EXPECT_EQ(int(record->returnValue), leave.result);
    }
    EXPECT_EQ(seen_[0].size, 1234u);
    EXPECT_EQ(seen_[7].result, int(cudaSuccess));
    EXPECT_EQ(seen_[9].result, int(cudaErrorInvalidValue));
    EXPECT_EQ(seen_[6].symbol, "fill");
    EXPECT_EQ(seen_[0].symbol, "");
}

TEST_F(CuptiCallbacks, OnlyWhatIsEnabledIsCalled) {
    subscribe(note, &seen_);
    int device = 0;
    ASSERT_CUDA(cudaGetDevice(&device));
    EXPECT_TRUE(seen_.empty());
    auto set = [&](uint32_t is_on) {
        return cuptiEnableCallback(is_on, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
    };
    ASSERT_CUPTI(set(1));
    uint32_t is_on = 0;
    EXPECT_CUPTI(cuptiGetCallbackState(&is_on, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API,
                                       CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020));
    EXPECT_NE(is_on, 0u);
    ASSERT_CUDA(cudaGetDevice(&device));
    ASSERT_CUDA(cudaSetDevice(device));
    EXPECT_EQ(seen_.size(), 2u);
    ASSERT_CUPTI(set(0));
    ASSERT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(seen_.size(), 2u);
}

TEST_F(CuptiCallbacks, ThereIsOneSubscriber) {
    CUpti_SubscriberParams mine{}, theirs{};
    mine.structSize = theirs.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    mine.subscriberName = "first";
    ASSERT_CUPTI(cuptiSubscribe_v2(&subscriber_, note, &seen_, &mine));
    CUpti_SubscriberHandle second = nullptr;
    char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
    theirs.oldSubscriberName = name, theirs.oldSubscriberSize = sizeof name;
    EXPECT_EQ(cuptiSubscribe_v2(&second, note, &seen_, &theirs), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_NE(strstr(name, "first"), nullptr) << name;
    EXPECT_EQ(cuptiSubscribe(&second, note, &seen_), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    enable_domain();
    ASSERT_CUPTI(cuptiUnsubscribe(subscriber_));
    int device = 0;
    ASSERT_CUDA(cudaGetDevice(&device));
    EXPECT_TRUE(seen_.empty());
    EXPECT_EQ(cuptiUnsubscribe(subscriber_), CUPTI_ERROR_INVALID_PARAMETER);
    ASSERT_CUPTI(cuptiSubscribe(&subscriber_, note, &seen_));
    ASSERT_CUDA(cudaGetDevice(&device)); // nothing is left enabled
    EXPECT_TRUE(seen_.empty());
}

TEST_F(CuptiCallbacks, BadRequestsAreRefused) {
    subscribe(note, &seen_);
    EXPECT_EQ(cuptiSubscribe(nullptr, note, nullptr), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_INVALID), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiEnableDomain(1, nullptr, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiActivityRegisterCallbacks(nullptr, nullptr), CUPTI_ERROR_INVALID_PARAMETER);
    const char *text = nullptr;
    ASSERT_CUPTI(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text));
    EXPECT_STREQ(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
    EXPECT_EQ(cuptiGetResultString(static_cast<CUptiResult>(500), &text), CUPTI_ERROR_INVALID_PARAMETER);
}

// The calls that a subscriber makes itself are seen as others are; what comes after belongs to the outer one again.
TEST_F(CuptiCallbacks, ASubscriberMayCallTheRuntime) {
    struct Nested {
        std::vector<std::string> names;
        uint32_t launch = 0;
    } nested;
    DeviceWords words(256);
    subscribe(
        [](void *data, CUpti_CallbackDomain, CUpti_CallbackId cbid, const void *callback_data) {
            auto *all = static_cast<Nested *>(data);
            const auto *call = static_cast<const CUpti_CallbackData *>(callback_data);
            if (call->callbackSite == CUPTI_API_EXIT) return;
            all->names.emplace_back(call->functionName);
            if (cbid != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) return;
            all->launch = call->correlationId;
            int device = 0;
            EXPECT_CUDA(cudaGetDevice(&device));
        },
        &nested);
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    const void *fill = kernel("fill");
    enable_domain();
    uint32_t *out = words.get(), n = 256, value = 3;
    void *arguments[] = {&out, &n, &value};
    ASSERT_CUDA(cudaLaunchKernel(fill, dim3(2), dim3(128), arguments, 0, nullptr));
    ASSERT_CUPTI(cuptiEnableDomain(0, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
    flush();
    EXPECT_EQ(nested.names, (std::vector<std::string>{"cudaLaunchKernel", "cudaGetDevice"}));
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].correlationId, nested.launch);
}

TEST_F(CuptiCallbacks, StreamsComeAndGo) {
    struct Streams {
        std::vector<std::pair<CUpti_CallbackId, CUstream>> seen;
    } streams;
    subscribe(
        [](void *data, CUpti_CallbackDomain, CUpti_CallbackId cbid, const void *callback_data) {
            const auto *resource = static_cast<const CUpti_ResourceData *>(callback_data);
            static_cast<Streams *>(data)->seen.emplace_back(cbid, resource->resourceHandle.stream);
        },
        &streams);
    for (CUpti_CallbackId cbid : {CUPTI_CBID_RESOURCE_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING})
        ASSERT_CUPTI(cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, cbid));
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreate(&stream));
    ASSERT_CUDA(cudaStreamDestroy(stream));
    ASSERT_EQ(streams.seen.size(), 2u);
    EXPECT_EQ(streams.seen[0].first, CUpti_CallbackId(CUPTI_CBID_RESOURCE_STREAM_CREATED));
    EXPECT_EQ(streams.seen[1].first, CUpti_CallbackId(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING));
    EXPECT_EQ(streams.seen[0].second, stream);
    EXPECT_EQ(streams.seen[1].second, stream);
}

TEST_F(CuptiCallbacks, WaitsAreToldOnceTheyAreOver) {
    static std::vector<std::pair<CUpti_CallbackId, CUstream>> seen;
    seen.clear();
    subscribe(
        [](void *, CUpti_CallbackDomain, CUpti_CallbackId cbid, const void *callback_data) {
            seen.emplace_back(cbid, static_cast<const CUpti_SynchronizeData *>(callback_data)->stream);
        },
        nullptr);
    ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    Stream stream;
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUPTI(cuptiEnableDomain(0, subscriber_, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].first, CUpti_CallbackId(CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED));
    EXPECT_EQ(seen[0].second, stream);
    EXPECT_EQ(seen[1].first, CUpti_CallbackId(CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED));
}

TEST_F(CuptiCallbacks, FinalizeEndsEverything) {
    DeviceWords words(256);
    subscribe(note, &seen_);
    enable_domain();
    ASSERT_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUPTI(cuptiFinalize());
    size_t calls = seen_.size();
    EXPECT_GT(calls, 0u);
    EXPECT_EQ(Records::get().kernels().size(), 1u); // it was given back
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(seen_.size(), calls);
    // And it can begin again.
    ASSERT_CUPTI(cuptiActivityRegisterTimestampCallback(monotonic_ns));
    ASSERT_CUPTI(cuptiActivityRegisterCallbacks(Records::request, Records::complete));
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, nullptr));
    flush();
    EXPECT_EQ(Records::get().kernels().size(), 2u);
    subscriber_ = nullptr;
    subscribe(note, &seen_);
}

} // namespace
