// The API of launches.
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/kernel_launch.h"
#include "tests/vgpu/runtime/streams.h"
#include "tests/vgpu/runtime/work.h"

namespace vgpu {
namespace {

void launch_on(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t handle,
               bool is_cooperative) {
    KernelEntryPtr entry = kernel_find(function);
    StreamPtr stream = stream_find(handle);
    require(stream->device == current_device_index(), cudaErrorInvalidResourceHandle);
    submit(*stream, launch_prepare(entry, stream->device, grid, block, arguments, shared_bytes, is_cooperative));
}

// Sets `is_cooperative`; refuses what would change what a kernel does and is not there. Hints are passed over.
void read_attribute(const cudaLaunchAttribute &attribute, bool *is_cooperative) {
    switch (attribute.id) {
    case cudaLaunchAttributeCooperative:
        *is_cooperative = attribute.val.cooperative != 0;
        break;
    case cudaLaunchAttributeClusterDimension: {
        const auto &cluster = attribute.val.clusterDim;
        bool is_single = uint64_t{cluster.x} * cluster.y * cluster.z == 1;
        require(is_single, cudaErrorNotSupported);
        break;
    }
    // An attribute that only lets the next kernel begin early may be passed over: it never has to.
    case cudaLaunchAttributeProgrammaticStreamSerialization:
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
        break;
    default:
        fail(cudaErrorNotSupported);
    }
}

} // namespace
} // namespace vgpu

using namespace vgpu;

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream) {
    return api([&] { launch_on(function, grid, block, arguments, shared_bytes, stream, false); });
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
    return api([&] { launch_on(function, grid, block, arguments, shared_bytes, stream, true); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
    return api([&] {
        require(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr));
        bool is_cooperative = false;
        for (unsigned i = 0; i < config->numAttrs; i++)
            read_attribute(config->attrs[i], &is_cooperative);
        launch_on(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream,
                  is_cooperative);
    });
}
