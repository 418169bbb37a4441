// The API of kernels: attributes, occupancy, and what is known under a host function's address.
#include <algorithm>

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/kernel_launch.h"
#include "tests/vgpu/runtime/libraries.h"

namespace vgpu {
namespace {

struct Found {
    KernelEntryPtr entry;
    KernelCode code;
    const KernelInfo &info;
};

Found find(const void *function) {
    KernelEntryPtr entry = kernel_find(function);
    KernelCode code = kernel_code(*entry, current_device_index());
    const KernelInfo &info = kernel_info(code.kernel);
    return {entry, code, info};
}

void set_attribute(KernelEntry &entry, int device, cudaFuncAttribute attribute, int value) {
    KernelCode code = kernel_code(entry, device);
    uint64_t most = model().shared_per_block_bytes - kernel_info(code.kernel).static_shared_bytes;
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
        require(value >= 0 && static_cast<uint64_t>(value) <= most);
        std::lock_guard lock(entry.mutex);
        entry.dynamic_shared_limit[device] = value;
        return;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout: {
        require(value >= -1 && value <= 100);
        std::lock_guard lock(entry.mutex);
        entry.carveout[device] = value;
        return;
    }
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
    case cudaFuncAttributeClusterDimMustBeSet:
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
        fail(cudaErrorNotSupported);
    case cudaFuncAttributeMax:
        break;
    }
    fail(cudaErrorInvalidValue);
}

} // namespace
} // namespace vgpu

using namespace vgpu;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
    return api([&] {
        require(attributes != nullptr);
        Found found = find(function);
        int device = current_device_index();
        *attributes = {};
        attributes->sharedSizeBytes = found.info.static_shared_bytes;
        attributes->constSizeBytes = found.info.constant_bytes;
        attributes->localSizeBytes = found.info.local_bytes;
        attributes->maxThreadsPerBlock = static_cast<int>(max_block_threads(found.info));
        attributes->numRegs = ASSUMED_REGISTERS;
        attributes->ptxVersion = found.info.ptx_version;
        attributes->binaryVersion = model().capability();
        attributes->maxDynamicSharedSizeBytes =
            static_cast<int>(dynamic_shared_limit(*found.entry, found.info, device));
        std::lock_guard lock(found.entry->mutex);
        attributes->preferredShmemCarveout = found.entry->carveout[device];
    });
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    return api([&] { set_attribute(*kernel_find(function), current_device_index(), attribute, value); });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    return api([&] { set_attribute(*kernel_find(kernel), device_at(device).index, attribute, value); });
}

// Preferences of the caches' split: hints.
cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache) {
    return api([&] { find(function); });
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, cudaSharedMemConfig) {
    return api([&] { find(function); });
}

cudaError_t cudaFuncGetName(const char **name, const void *function) {
    return api([&] {
        require(name != nullptr);
        *name = kernel_find(function)->name.c_str();
    });
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size) {
    return api([&] {
        Found found = find(function);
        require(offset != nullptr && index < found.info.parameters.size());
        *offset = found.info.parameters[index].offset;
        if (size != nullptr) *size = found.info.parameters[index].size_bytes;
    });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) {
    return api([&] {
        require(function != nullptr);
        *function = reinterpret_cast<cudaFunction_t>(kernel_find(symbol)->handle);
    });
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    return api([&] {
        require(kernel != nullptr);
        *kernel = kernel_find(function)->handle;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_threads,
                                                          size_t dynamic_shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_threads, dynamic_shared_bytes,
                                                                  cudaOccupancyDefault);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_threads,
                                                                   size_t dynamic_shared_bytes, unsigned flags) {
    return api([&] {
        require(blocks != nullptr && block_threads > 0);
        require((flags & ~static_cast<unsigned>(cudaOccupancyDisableCachingOverride)) == 0);
        *blocks = resident_blocks(find(function).info, block_threads, dynamic_shared_bytes);
    });
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                                      int block_threads) {
    return api([&] {
        require(bytes != nullptr && blocks > 0 && block_threads > 0);
        const KernelInfo &info = find(function).info;
        require(resident_blocks(info, block_threads, 0) >= blocks);
        // Down from an even share, in the units in which shared memory is given out.
        uint64_t taken = info.static_shared_bytes + model().reserved_shared_bytes;
        uint64_t share = model().shared_per_processor_bytes / static_cast<uint64_t>(blocks);
        uint64_t most = model().shared_per_block_bytes - info.static_shared_bytes;
        uint64_t available = std::min(most, share > taken ? share - taken : 0);
        while (available > 0 && resident_blocks(info, block_threads, available) < blocks)
            available--;
        *bytes = available;
    });
}
