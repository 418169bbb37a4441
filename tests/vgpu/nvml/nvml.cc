// The stand-in for NVML: devices, their memory, and how busy this process keeps them by the cost model, which counts
// from the first nvmlInit_v2() to the last nvmlShutdown().
//
//   VGPU_NVML_PERIOD=166667   us of a sample period
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "tests/vgpu/nvml/nvml_api.h"
#include "tests/vgpu/nvml/utilization.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {
namespace {

constexpr size_t DEVICES_MOST = 16;

uint64_t period_ns() {
    static const uint64_t period = vgpu_number_setting("VGPU_NVML_PERIOD", 166667, 1, 1'000'000'000) * 1000;
    return period;
}

struct DeviceTime {
    BusyTime kernels{period_ns()}, copies{period_ns()};
};

// Devices are those of the process here, as the runtime numbers them.
class Watcher final : public Observer {
  public:
    void begun(const DeviceWork &work) override {
        std::lock_guard lock(mutex_);
        if (users_ > 0) time_of(work).begin(work.stream, work.begin);
    }

    void ended(const DeviceWork &work) override {
        std::lock_guard lock(mutex_);
        if (users_ > 0 && work.kind != DeviceWork::Kind::graph) time_of(work).add(work.stream, work.begin, work.end);
    }

    void start() {
        std::lock_guard lock(mutex_);
        if (users_++ > 0) return;
        devices_ = {};
        vgpu_observe(this);
        vgpu_keep_time(true);
    }

    // False: nobody had started it.
    bool stop() {
        std::lock_guard lock(mutex_);
        if (users_ == 0) return false;
        if (--users_ == 0) vgpu_keep_time(false);
        return true;
    }

    bool is_started() {
        std::lock_guard lock(mutex_);
        return users_ > 0;
    }

    template <typename Body> void with(size_t device, Body &&body) {
        std::lock_guard lock(mutex_);
        body(devices_[device]);
    }

  private:
    BusyTime &time_of(const DeviceWork &work) {
        DeviceTime &time = devices_[static_cast<size_t>(work.device)];
        return work.kind == DeviceWork::Kind::kernel ? time.kernels : time.copies;
    }

    std::mutex mutex_;
    int users_ = 0;
    std::array<DeviceTime, DEVICES_MOST> devices_;
};

Watcher &watcher() {
    static auto *const only = new Watcher;
    return *only;
}

// Addresses that nothing reads: they are the devices' handles.
char handles[DEVICES_MOST];

struct Identity {
    const char *name;
    char uuid_bytes[16] = {};
    char pci[32] = {};
    char uuid[48];

    explicit Identity(int physical) {
        vgpu_physical_identity(physical, &name, uuid_bytes, pci);
        char *at = uuid + sprintf(uuid, "GPU-");
        for (int i = 0; i < 16; i++) {
            bool is_part = i == 4 || i == 6 || i == 8 || i == 10;
            at += sprintf(at, is_part ? "-%02x" : "%02x", static_cast<unsigned char>(uuid_bytes[i]));
        }
    }
};

nvmlDevice_t handle_of(int physical) { return reinterpret_cast<nvmlDevice_t>(handles + physical); }

// Checks what every function of a device does. Returns its number, or less than zero with the result to return.
int find_device(nvmlDevice_t device, const void *output, nvmlReturn_t *result) {
    *result = NVML_ERROR_UNINITIALIZED;
    if (!watcher().is_started()) return -1;
    *result = NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; output != nullptr && i < vgpu_physical_count(); i++) {
        if (device == handle_of(i)) return i;
    }
    return -1;
}

// Under which number the process has a device; -1: it does not see it.
int visible_index(int physical) {
    for (int device = 0; device < vgpu_device_count(); device++) {
        if (vgpu_physical_index(device) == physical) return device;
    }
    return -1;
}

template <typename Matches> nvmlReturn_t find_handle(const char *text, nvmlDevice_t *device, Matches &&matches) {
    if (!watcher().is_started()) return NVML_ERROR_UNINITIALIZED;
    if (text == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < vgpu_physical_count(); i++) {
        if (!matches(Identity(i))) continue;
        *device = handle_of(i);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t give_text(const char *text, char *to, unsigned length) {
    if (strlen(text) + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

nvmlReturn_t nvmlInit_v2(void) {
    watcher().start();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) { return watcher().stop() ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED; }

const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_UNKNOWN:
        break;
    }
    return "Unknown Error";
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    if (!watcher().is_started()) return NVML_ERROR_UNINITIALIZED;
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *count = static_cast<unsigned>(vgpu_physical_count());
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    if (!watcher().is_started()) return NVML_ERROR_UNINITIALIZED;
    bool is_known = device != nullptr && index < static_cast<unsigned>(vgpu_physical_count());
    if (!is_known) return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(static_cast<int>(index));
    return NVML_SUCCESS;
}

// NVML writes the domain with eight digits, the runtime with four.
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    return find_handle(bus_id, device, [&](const Identity &identity) {
        return strcasecmp(bus_id, identity.pci) == 0 ||
               (strncmp(bus_id, "0000", 4) == 0 && strcasecmp(bus_id + 4, identity.pci) == 0);
    });
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    return find_handle(uuid, device, [&](const Identity &identity) { return strcmp(uuid, identity.uuid) == 0; });
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    nvmlReturn_t result;
    int physical = find_device(device, index, &result);
    if (physical < 0) return result;
    *index = static_cast<unsigned>(physical);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    nvmlReturn_t result;
    int physical = find_device(device, name, &result);
    return physical < 0 ? result : give_text(Identity(physical).name, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    nvmlReturn_t result;
    int physical = find_device(device, uuid, &result);
    return physical < 0 ? result : give_text(Identity(physical).uuid, uuid, length);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlReturn_t result;
    int physical = find_device(device, memory, &result);
    if (physical < 0) return result;
    uint64_t used = 0, total = vgpu_physical_memory_bytes();
    int visible = visible_index(physical);
    if (visible >= 0) vgpu_device_memory(visible, &used, &total);
    *memory = {total, total - used, used};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    nvmlReturn_t result;
    int physical = find_device(device, utilization, &result);
    if (physical < 0) return result;
    *utilization = {0, 0};
    int visible = visible_index(physical);
    if (visible < 0) return NVML_SUCCESS;
    watcher().with(static_cast<size_t>(visible), [&](const DeviceTime &time) {
        uint64_t now = vgpu_now();
        *utilization = {time.kernels.last_percent(now), time.copies.last_percent(now)};
    });
    return NVML_SUCCESS;
}

// Of the periods that are over and that ended after `last_seen`, the newest last; a null list asks how many there may
// be.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long last_seen,
                                  nvmlValueType_t *value_type, unsigned *count, nvmlSample_t *samples) {
    nvmlReturn_t result;
    int physical = find_device(device, count, &result);
    if (physical < 0) return result;
    bool is_memory = type == NVML_MEMORY_UTILIZATION_SAMPLES;
    if (type != NVML_GPU_UTILIZATION_SAMPLES && !is_memory) return NVML_ERROR_NOT_SUPPORTED;
    if (value_type == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples == nullptr) {
        *count = BusyTime::PERIODS_KEPT;
        return NVML_SUCCESS;
    }
    unsigned room = *count;
    *count = 0;
    int visible = visible_index(physical);
    if (visible < 0) return NVML_ERROR_NOT_FOUND;
    watcher().with(static_cast<size_t>(visible), [&](const DeviceTime &time) {
        const BusyTime &busy = is_memory ? time.copies : time.kernels;
        uint64_t now = vgpu_now(), last = busy.last_period(now);
        for (uint64_t period = last + 1 - BusyTime::PERIODS_KEPT; period <= last && *count < room; period++) {
            uint64_t end_us = (period + 1) * period_ns() / 1000;
            if (end_us <= last_seen) continue;
            samples[*count].timeStamp = end_us;
            samples[(*count)++].sampleValue.uiVal = busy.percent(period, now);
        }
    });
    return *count > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
