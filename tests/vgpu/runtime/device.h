// The state of each device, and of each thread: its current device.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_DEVICE_H
#define SHOAL_TESTS_VGPU_RUNTIME_DEVICE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/model.h"

namespace vgpu {

constexpr int LIMITS = cudaLimitPersistingL2CacheSize + 1;

struct Device {
    int index = 0;
    // What an operation ended with, and the same once a synchronising call has seen it: from then on every call on this
    // device returns it.
    std::atomic<cudaError_t> fault{cudaSuccess}, sticky{cudaSuccess};

    std::mutex mutex; // of what follows
    unsigned flags = 0;
    std::set<int> peers;
    size_t limits[LIMITS];

    explicit Device(int number);
    void set_default_limits();
    // What an operation failed with, unless one did before.
    void set_fault(cudaError_t error);
    // Brings a fault to light; what every synchronising call ends with.
    void surface_fault();
};

// Throws cudaErrorInvalidDevice, or cudaErrorNoDevice where there is none.
Device &device_at(int index);
int current_device_index();
Device &current_device();
void set_current_device(int index);

// Whether the calling thread is in a host function that a stream calls, where the API is out of bounds.
bool thread_is_in_host_function();
struct HostFunctionScope {
    HostFunctionScope();
    ~HostFunctionScope();
    HostFunctionScope(const HostFunctionScope &) = delete;
    HostFunctionScope &operator=(const HostFunctionScope &) = delete;
};

// Makes a device current for as long as it lives.
class DeviceScope {
  public:
    explicit DeviceScope(int index) : before_(current_device_index()) { set_current_device(index); }
    ~DeviceScope() { set_current_device(before_); }
    DeviceScope(const DeviceScope &) = delete;
    DeviceScope &operator=(const DeviceScope &) = delete;

  private:
    int before_;
};

} // namespace vgpu

#endif
