// The address space of the devices, as the executing kernels see it.
#ifndef SHOAL_TESTS_VGPU_EXEC_MEMORY_H
#define SHOAL_TESTS_VGPU_EXEC_MEMORY_H

#include <cstdint>
#include <string>

#include "tests/vgpu/engine.h"

namespace vgpu {

// Windows of generic addresses that mean something else to every thread, block or kernel. Nothing is mapped there.
struct Windows {
    uint64_t shared; // + the offset in the block's shared memory
    uint64_t local;  // + the offset in the thread's local memory
    uint64_t param;  // + the offset in the kernel's parameters
    uint64_t code;   // + CODE_BYTES x the number of a function among those of all modules
};
constexpr uint64_t WINDOW_BYTES = uint64_t{1} << 30;
constexpr uint64_t CODE_BYTES = 16;
const Windows &memory_windows();

// For malloc in kernels: all its live allocations on a device have `limit` bytes at most. 0: they would have more.
uint64_t memory_alloc_heap(int device, uint64_t bytes, uint64_t limit);

// A live allocation, as a kernel may use it: address + to_host is where its bytes are.
struct Reach {
    uint64_t first = 1, end = 0;
    uint64_t to_host = 0;
    bool is_tracked = false; // device memory, whose bytes have shadows
    bool covers(uint64_t address, uint64_t bytes) const {
        return address >= first && address < end && bytes <= end - address;
    }
};

// The live allocation that `address` is in, where `device` has access to it; false: none.
bool memory_reach(int device, uint64_t address, Reach *reach);
// All device memory, allocated or not, if `address` is in it.
bool memory_reach_anywhere(uint64_t address, Reach *reach);
// Grows with every allocation that is freed or that a device loses access to: a Reach is good for as long as this
// stays.
uint64_t memory_epoch();
// What lies at an address, for a report: "4 bytes behind the end of an allocation of 256 bytes".
std::string memory_describe(uint64_t address, uint64_t bytes);

// A byte for each byte of device memory: 1 where it was written since it was allocated. Zero where it was never
// touched.
uint8_t *memory_shadow(uint64_t address);
// RACE_CELL_BYTES for each 4 bytes of device memory, zero in a fresh allocation. See races.h.
constexpr uint64_t RACE_CELL_BYTES = 32;
uint8_t *memory_race_cell(uint64_t address);

} // namespace vgpu

#endif
