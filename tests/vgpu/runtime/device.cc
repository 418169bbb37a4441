// The devices, made when they are first asked for, and which of them is current in a thread.
#include "tests/vgpu/runtime/device.h"

#include <array>

#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/exit_status.h"

namespace vgpu {
namespace {

// Without destructors, so that both can be used from a program's last ones.
thread_local int current_index = 0;
thread_local int host_function_depth = 0;

} // namespace

Device::Device(int number) : index(number) { set_default_limits(); }

void Device::set_default_limits() {
    const size_t defaults[LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};
    for (int i = 0; i < LIMITS; i++)
        limits[i] = defaults[i];
}

void Device::set_fault(cudaError_t error) {
    cudaError_t none = cudaSuccess;
    fault.compare_exchange_strong(none, error);
    exit_after_fault();
}

void Device::surface_fault() {
    cudaError_t error = fault;
    if (error == cudaSuccess) return;
    sticky = error;
    fail(error);
}

Device &device_at(int index) {
    static const auto *const devices = [] {
        auto *made = new std::array<std::unique_ptr<Device>, MAX_DEVICES>;
        for (int i = 0; i < device_count(); i++)
            (*made)[static_cast<size_t>(i)] = std::make_unique<Device>(i);
        return made;
    }();
    require(device_count() > 0, cudaErrorNoDevice);
    require(index >= 0 && index < device_count(), cudaErrorInvalidDevice);
    return *(*devices)[static_cast<size_t>(index)];
}

int current_device_index() { return current_index; }

Device &current_device() { return device_at(current_index); }

void set_current_device(int index) { current_index = index; }

bool thread_is_in_host_function() { return host_function_depth > 0; }

HostFunctionScope::HostFunctionScope() { host_function_depth++; }

HostFunctionScope::~HostFunctionScope() { host_function_depth--; }

} // namespace vgpu
