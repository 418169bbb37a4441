// Checks and occupancy of launches.
#include "tests/vgpu/runtime/kernel_launch.h"

#include <algorithm>
#include <cstring>

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"

namespace vgpu {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// What shared memory comes in, for a block.
uint64_t shared_unit_bytes() { return model().major >= 8 ? 128 : 256; }

void check_shape(const KernelInfo &info, dim3 grid, dim3 block) {
    const unsigned grid_dims[3] = {grid.x, grid.y, grid.z}, block_dims[3] = {block.x, block.y, block.z};
    for (int i = 0; i < 3; i++) {
        bool is_possible = grid_dims[i] > 0 && grid_dims[i] <= MAX_GRID_DIM[i] && block_dims[i] > 0 &&
                           block_dims[i] <= MAX_BLOCK_DIM[i];
        require(is_possible, cudaErrorInvalidConfiguration);
    }
    uint64_t threads = uint64_t{block.x} * block.y * block.z;
    require(threads <= MAX_BLOCK_THREADS, cudaErrorInvalidConfiguration);
    // More than the launch bounds that the kernel was compiled for, or another shape than it requires.
    require(threads <= max_block_threads(info), cudaErrorInvalidValue);
    const Dim3 &required = info.required_threads;
    bool is_required = required.x == 0 || (required.x == block.x && required.y == block.y && required.z == block.z);
    require(is_required, cudaErrorInvalidValue);
}

std::vector<uint8_t> copy_parameters(const KernelInfo &info, void **arguments) {
    std::vector<uint8_t> block(info.parameters_bytes);
    require(info.parameters.empty() || arguments != nullptr);
    for (size_t i = 0; i < info.parameters.size(); i++) {
        const KernelParameter &parameter = info.parameters[i];
        if (parameter.size_bytes > 0) memcpy(&block[parameter.offset], arguments[i], parameter.size_bytes);
    }
    return block;
}

cudaError_t fault_error(Fault fault) {
    switch (fault) {
    case Fault::none:
        return cudaSuccess;
    case Fault::illegal_address:
        return cudaErrorIllegalAddress;
    case Fault::misaligned_address:
        return cudaErrorMisalignedAddress;
    case Fault::illegal_instruction:
        return cudaErrorIllegalInstruction;
    case Fault::assert_:
        return cudaErrorAssert;
    case Fault::timeout:
        return cudaErrorLaunchTimeout;
    case Fault::trap:
    case Fault::failure:
        break;
    }
    return cudaErrorLaunchFailure;
}

} // namespace

uint32_t max_block_threads(const KernelInfo &info) {
    if (info.required_threads.x > 0) return static_cast<uint32_t>(info.required_threads.count());
    return info.max_threads > 0 ? std::min(info.max_threads, MAX_BLOCK_THREADS) : MAX_BLOCK_THREADS;
}

uint64_t dynamic_shared_limit(KernelEntry &entry, const KernelInfo &info, int device) {
    std::lock_guard lock(entry.mutex);
    int limit = entry.dynamic_shared_limit[device];
    if (limit >= 0) return static_cast<uint64_t>(limit);
    return SHARED_PER_BLOCK_BYTES - std::min(info.static_shared_bytes, SHARED_PER_BLOCK_BYTES);
}

int resident_blocks(const KernelInfo &info, int block_threads, uint64_t dynamic_shared_bytes) {
    uint64_t threads = round_up(static_cast<uint64_t>(block_threads), WARP_THREADS);
    uint64_t shared = info.static_shared_bytes + dynamic_shared_bytes;
    if (static_cast<uint32_t>(block_threads) > max_block_threads(info)) return 0;
    if (shared > model().shared_per_block_bytes) return 0;
    uint64_t blocks = std::min(static_cast<uint64_t>(model().threads_per_processor) / threads,
                               static_cast<uint64_t>(model().blocks_per_processor));
    uint64_t taken = round_up(shared + model().reserved_shared_bytes, shared_unit_bytes());
    if (taken > 0) blocks = std::min(blocks, model().shared_per_processor_bytes / taken);
    return static_cast<int>(blocks);
}

Launch launch_prepare(const KernelEntryPtr &entry, int device, dim3 grid, dim3 block, void **arguments,
                      size_t shared_bytes, bool is_cooperative) {
    Launch launch;
    launch.entry = entry;
    launch.code = kernel_code(*entry, device);
    const KernelInfo &info = kernel_info(launch.code.kernel);
    check_shape(info, grid, block);
    require(shared_bytes <= dynamic_shared_limit(*entry, info, device));
    launch.config.grid = {grid.x, grid.y, grid.z};
    launch.config.block = {block.x, block.y, block.z};
    launch.config.dynamic_shared_bytes = shared_bytes;
    launch.config.is_cooperative = is_cooperative;
    {
        Device &on = device_at(device);
        std::lock_guard lock(on.mutex);
        launch.config.stack_bytes = on.limits[cudaLimitStackSize];
        launch.config.heap_bytes = on.limits[cudaLimitMallocHeapSize];
    }
    if (is_cooperative) {
        int resident = resident_blocks(info, static_cast<int>(launch.config.block.count()), shared_bytes);
        uint64_t most = static_cast<uint64_t>(resident) * static_cast<uint64_t>(model().processors);
        require(launch.config.grid.count() <= most, cudaErrorCooperativeLaunchTooLarge);
    }
    launch.parameters = copy_parameters(info, arguments);
    return launch;
}

cudaError_t launch_run(const Launch &launch, uint64_t *instructions) {
    return fault_error(vgpu::launch(launch.code.kernel, launch.config, launch.parameters, instructions));
}

} // namespace vgpu
