// Work of devices as observers are told of it.
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/work.h"

namespace vgpu {
namespace {

struct End {
    MemoryPlace place = MemoryPlace::pageable;
    int device = 0;
};

// What is at an address. Memory of the host is given the device whose work it is.
End end_of(uint64_t address, bool is_pageable) {
    End end;
    end.device = current_device_index();
    Allocation allocation;
    if (is_pageable || !memory_find(address, &allocation)) return end;
    switch (allocation.kind) {
    case MemoryKind::pinned:
        end.place = MemoryPlace::pinned;
        return end;
    case MemoryKind::managed:
        end.place = MemoryPlace::managed;
        break;
    case MemoryKind::module:
        end.place = MemoryPlace::variable;
        break;
    case MemoryKind::device:
    case MemoryKind::heap:
        end.place = MemoryPlace::device;
        break;
    }
    end.device = allocation.device;
    return end;
}

} // namespace

DeviceWork device_work(const Launch &launch) {
    const KernelInfo &info = kernel_info(launch.code.kernel);
    DeviceWork work;
    work.kind = DeviceWork::Kind::kernel;
    work.name = info.name.c_str();
    const Dim3 &grid = launch.config.grid, &block = launch.config.block;
    work.grid[0] = grid.x, work.grid[1] = grid.y, work.grid[2] = grid.z;
    work.block[0] = block.x, work.block[1] = block.y, work.block[2] = block.z;
    work.static_shared_bytes = info.static_shared_bytes;
    work.dynamic_shared_bytes = launch.config.dynamic_shared_bytes;
    work.local_bytes = info.local_bytes;
    work.registers = ASSUMED_REGISTERS;
    work.is_cooperative = launch.config.is_cooperative;
    return work;
}

DeviceWork device_work(const Copy &copy) {
    DeviceWork work;
    work.kind = DeviceWork::Kind::copy;
    work.bytes = copy.width * copy.height * copy.depth;
    End from = end_of(copy.from, copy.from_pageable), to = end_of(copy.to, copy.to_pageable);
    work.from = from.place, work.from_device = from.device;
    work.to = to.place, work.to_device = to.device;
    work.is_async = copy.is_async;
    return work;
}

DeviceWork device_work(const Fill &fill) {
    DeviceWork work;
    work.kind = DeviceWork::Kind::fill;
    work.bytes = fill.width * fill.element_bytes * fill.height * fill.depth;
    End to = end_of(fill.to, false);
    work.to = to.place, work.to_device = to.device;
    work.value = fill.value;
    work.is_async = fill.is_async;
    return work;
}

} // namespace vgpu
