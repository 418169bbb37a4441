// The API of devices, and versions.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/runtime_memory.h"
#include "tests/vgpu/runtime/streams.h"

using namespace vgpu;

cudaError_t cudaGetDeviceCount(int *count) {
    return api_without_device([&] {
        require(count != nullptr);
        *count = device_count();
        require(*count > 0, cudaErrorNoDevice);
    });
}

cudaError_t cudaSetDevice(int device) {
    return api_without_device([&] {
        set_current_device(device_at(device).index);
        require(current_device().sticky == cudaSuccess, current_device().sticky);
    });
}

cudaError_t cudaGetDevice(int *device) {
    return api_without_device([&] {
        require(device != nullptr);
        *device = current_device().index;
    });
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    return api_without_device([&] {
        Device &found = device_at(device);
        require((flags & ~static_cast<unsigned>(cudaInitDeviceFlagsAreValid)) == 0);
        std::lock_guard lock(found.mutex);
        if (flags != 0) found.flags = device_flags;
    });
}

// Schedules of the host's waiting and the like: kept to be given back.
cudaError_t cudaSetDeviceFlags(unsigned flags) {
    return api_without_device([&] {
        require((flags & ~static_cast<unsigned>(cudaDeviceMask)) == 0);
        Device &device = current_device();
        std::lock_guard lock(device.mutex);
        device.flags = flags;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    return api_without_device([&] {
        require(flags != nullptr);
        Device &device = current_device();
        std::lock_guard lock(device.mutex);
        *flags = device.flags | cudaDeviceMapHost;
    });
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
    return api_without_device([&] {
        require(count >= 0 && (devices != nullptr || count == 0));
        for (int i = 0; i < count; i++)
            device_at(devices[i]);
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    return api_without_device([&] {
        require(properties != nullptr);
        model_properties(device_at(device).index, properties);
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return api_without_device([&] {
        require(value != nullptr);
        device_at(device);
        require(model_attribute(attribute, device, value));
    });
}

// The first device that has what is asked for, else the first.
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *wanted) {
    return api_without_device([&] {
        require(device != nullptr && wanted != nullptr);
        device_at(0);
        *device = 0;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    return api_without_device([&] {
        require(text != nullptr);
        std::string id = device_pci_text(device_at(device).index);
        require(length > static_cast<int>(id.size()));
        memcpy(text, id.c_str(), id.size() + 1);
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
    return api_without_device([&] {
        require(device != nullptr && text != nullptr);
        for (int i = 0; i < device_count(); i++) {
            std::string id = device_pci_text(i);
            if (id != text && id.substr(5) != text) continue;
            *device = i;
            return;
        }
        fail(cudaErrorInvalidDevice);
    });
}

cudaError_t cudaDeviceSynchronize() {
    return api([&] {
        int device = current_device().index;
        forbid_on_capturing_device(device);
        device_synchronize(device);
        pools_trim(device);
    });
}

// Frees what was allocated on the device and takes an error away. Streams and events that are left keep their handles.
cudaError_t cudaDeviceReset() {
    return api_without_device([&] {
        Device &device = current_device();
        try {
            device_synchronize(device.index);
        } catch (const ApiError &) {
            // What the work failed with is what the reset is for.
        }
        for (const Allocation &allocation : memory_live(MemoryKind::device)) {
            if (allocation.device == device.index) allocation_release(allocation.base);
        }
        device.fault = device.sticky = cudaSuccess;
        std::lock_guard lock(device.mutex);
        for (int peer : device.peers)
            memory_set_peer(device.index, peer, false);
        device.peers.clear();
        device.set_default_limits();
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return api([&] {
        if (least != nullptr) *least = 0;
        if (greatest != nullptr) *greatest = GREATEST_PRIORITY;
    });
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    return api([&] {
        require(value != nullptr);
        require(limit >= 0 && limit < LIMITS, cudaErrorUnsupportedLimit);
        Device &device = current_device();
        std::lock_guard lock(device.mutex);
        *value = device.limits[limit];
    });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return api([&] {
        require(limit >= 0 && limit < LIMITS, cudaErrorUnsupportedLimit);
        Device &device = current_device();
        std::lock_guard lock(device.mutex);
        device.limits[limit] = value;
    });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    return api([&] {
        require(config != nullptr);
        *config = cudaFuncCachePreferNone;
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return api([] {});
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
    return api([&] {
        require(config != nullptr);
        *config = cudaSharedMemBankSizeFourByte;
    });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    return api([] {});
}

cudaError_t cudaCtxResetPersistingL2Cache() {
    return api([] {});
}

// ---- devices among each other --------------------------------------------------------------------------------------

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return api_without_device([&] {
        require(can != nullptr);
        *can = device_at(device).index != device_at(peer).index ? 1 : 0;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return api([&] {
        require(flags == 0);
        Device &device = current_device();
        require(device_at(peer).index != device.index, cudaErrorInvalidDevice);
        std::lock_guard lock(device.mutex);
        require(device.peers.insert(peer).second, cudaErrorPeerAccessAlreadyEnabled);
        memory_set_peer(device.index, peer, true);
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return api([&] {
        device_at(peer);
        Device &device = current_device();
        std::lock_guard lock(device.mutex);
        require(device.peers.erase(peer) == 1, cudaErrorPeerAccessNotEnabled);
        memory_set_peer(device.index, peer, false);
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int from, int to) {
    return api_without_device([&] {
        require(value != nullptr && device_at(from).index != device_at(to).index);
        switch (attribute) {
        case cudaDevP2PAttrPerformanceRank:
        case cudaDevP2PAttrCudaArrayAccessSupported:
        case cudaDevP2PAttrOnlyPartialNativeAtomicSupported:
            *value = 0;
            return;
        case cudaDevP2PAttrAccessSupported:
        case cudaDevP2PAttrNativeAtomicSupported:
            *value = 1;
            return;
        }
        fail(cudaErrorInvalidValue);
    });
}

// ---- versions, profiling, the driver -------------------------------------------------------------------------------

cudaError_t cudaDriverGetVersion(int *version) {
    return api_without_device([&] {
        require(version != nullptr);
        *version = CUDART_VERSION;
    });
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    return api_without_device([&] {
        require(version != nullptr);
        *version = CUDART_VERSION;
    });
}

VGPU_EXPORT cudaError_t cudaProfilerStart() {
    return api([] {});
}

VGPU_EXPORT cudaError_t cudaProfilerStop() {
    return api([] {});
}

// There is no driver behind this runtime.
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
    return api([&] {
        require(symbol != nullptr && function != nullptr);
        *function = nullptr;
        if (status == nullptr) fail(cudaErrorSymbolNotFound);
        *status = cudaDriverEntryPointSymbolNotFound;
    });
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
