#include "tests/vgpu/cupti/subscriber.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tests/vgpu/cupti/watcher.h"

// What a handle points to.
struct CUpti_Subscriber_st {
    std::atomic<CUpti_CallbackFunc> callback{nullptr}; // null: nobody has subscribed
    std::atomic<void *> data{nullptr};
    std::string name;
};

namespace vgpu {
namespace {

constexpr CUpti_CallbackDomain DOMAINS[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                            CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                            CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
// Enough for every domain.
constexpr uint32_t CALLBACKS_MOST = std::max<uint32_t>(CUPTI_DRIVER_TRACE_CBID_SIZE, CUPTI_RUNTIME_TRACE_CBID_SIZE);

std::mutex mutex; // of subscribing
CUpti_Subscriber_st only;
std::atomic<bool> enabled[CUPTI_CB_DOMAIN_SIZE][CALLBACKS_MOST];

// How many ids a domain has; 0: no such domain.
uint32_t callbacks_of(CUpti_CallbackDomain domain) {
    switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
        return CUPTI_DRIVER_TRACE_CBID_SIZE;
    case CUPTI_CB_DOMAIN_RUNTIME_API:
        return CUPTI_RUNTIME_TRACE_CBID_SIZE;
    case CUPTI_CB_DOMAIN_RESOURCE:
        return CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
        return CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_NVTX:
        return 1;
    case CUPTI_CB_DOMAIN_STATE:
        return CUPTI_CBID_STATE_SIZE;
    default:
        return 0;
    }
}

void set_domain(CUpti_CallbackDomain domain, bool is_enabled) {
    for (uint32_t i = 0; i < callbacks_of(domain); i++)
        enabled[domain][i] = is_enabled;
}

bool is_subscribed(CUpti_SubscriberHandle subscriber) { return subscriber == &only && only.callback != nullptr; }

bool is_callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) { return cbid < callbacks_of(domain); }

CUptiResult subscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data, const char *name) {
    if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (only.callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    only.name = "CUPTI for " + std::string(name != nullptr ? name : "").substr(0, CUPTI_SUBSCRIBER_NAME_MAX_LEN);
    only.data = data;
    only.callback = callback;
    *subscriber = &only;
    watch();
    return CUPTI_SUCCESS;
}

} // namespace

bool callback_is_on(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
    return enabled[domain][cbid].load(std::memory_order_relaxed) && only.callback != nullptr;
}

void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    CUpti_CallbackFunc callback = only.callback;
    if (callback != nullptr) callback(only.data, domain, cbid, data);
}

void subscriber_reset() {
    std::lock_guard lock(mutex);
    only.callback = nullptr;
    for (CUpti_CallbackDomain domain : DOMAINS)
        set_domain(domain, false);
}

} // namespace vgpu

using namespace vgpu;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data) {
    std::lock_guard lock(mutex);
    return subscribe(subscriber, callback, data, nullptr);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data,
                              CUpti_SubscriberParams *parameters) {
    if (parameters != nullptr && parameters->structSize < CUpti_SubscriberParams_STRUCT_SIZE) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    std::lock_guard lock(mutex);
    CUptiResult result =
        subscribe(subscriber, callback, data, parameters != nullptr ? parameters->subscriberName : nullptr);
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && parameters != nullptr &&
        parameters->oldSubscriberName != nullptr && parameters->oldSubscriberSize > 0) {
        snprintf(parameters->oldSubscriberName, parameters->oldSubscriberSize, "%s", only.name.c_str());
    }
    return result;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    if (!is_subscribed(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber_reset();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                  CUpti_CallbackId cbid) {
    if (enable == nullptr || !is_subscribed(subscriber) || !is_callback(domain, cbid)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *enable = enabled[domain][cbid] ? 1 : 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                CUpti_CallbackId cbid) {
    if (!is_subscribed(subscriber) || !is_callback(domain, cbid)) return CUPTI_ERROR_INVALID_PARAMETER;
    enabled[domain][cbid] = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
    if (!is_subscribed(subscriber) || callbacks_of(domain) == 0) return CUPTI_ERROR_INVALID_PARAMETER;
    set_domain(domain, enable != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
    if (!is_subscribed(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
    for (CUpti_CallbackDomain domain : DOMAINS)
        set_domain(domain, enable != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSupportedDomains(size_t *count, CUpti_DomainTable *domains) {
    static std::vector<CUpti_CallbackDomain> all(std::begin(DOMAINS), std::end(DOMAINS));
    if (count == nullptr || domains == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *count = all.size();
    *domains = all.data();
    return CUPTI_SUCCESS;
}
