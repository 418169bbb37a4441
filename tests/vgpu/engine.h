// What the engine, which runs PTX, offers to the stand-in libraries, which speak CUDA's interfaces. Every function may
// be called from any thread.
#ifndef SHOAL_TESTS_VGPU_ENGINE_H
#define SHOAL_TESTS_VGPU_ENGINE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

// ---- memory --------------------------------------------------------------------------------------------------------
//
// Addresses are those that kernels use. Device memory is in a range of addresses where nothing is mapped, so that host
// code that touches it ends as on a real machine; its bytes are elsewhere, and memory_bytes() finds them. Pinned and
// managed memory is at its own host address.

enum class MemoryKind : uint8_t {
    device,
    pinned,  // on the host, for every device
    managed, // on the host, for every device
    module,  // a module's variables and a launch's workspace, in device memory
    heap,    // of the kernels' own malloc, in device memory
};

struct Allocation {
    uint64_t base = 0, size_bytes = 0;
    int device = 0;
    MemoryKind kind = MemoryKind::device;
    bool is_freed = false;
    uint64_t number = 0;   // counted from 1 over the process's life
    uint32_t visitors = 0; // other devices that have access to it alone: see memory_share()
};

// Devices have to be given their size before the first allocation.
void memory_set_limit(int device, uint64_t bytes);
uint64_t memory_limit(int device);
uint64_t memory_used(int device); // bytes of live allocations in device memory

// Aligned to 512 bytes, undefined contents. 0: the device has no room for it. bytes > 0.
uint64_t memory_alloc(int device, uint64_t bytes, MemoryKind kind);
// false: not the base of a live allocation. What is freed stays unreachable for as long as the addresses last.
bool memory_free(uint64_t base);
// The allocation, live or freed, that `address` is in (or just behind the end of, where nothing follows); false: none.
bool memory_find(uint64_t address, Allocation *found);
// All live allocations of a kind, in the order of their numbers.
std::vector<Allocation> memory_live(MemoryKind kind);
// Registers host memory that is the caller's (cudaHostRegister); memory_free() takes it out again without freeing it.
bool memory_register(void *host, uint64_t bytes);
// Whether [address, address + bytes) lies in one live allocation.
bool memory_holds(uint64_t address, uint64_t bytes);
// Device memory is its own device's. Whether `device` has access to all of that of `owner`, its peer:
void memory_set_peer(int device, int owner, bool has_access);
// Devices, a bit for each, that have access to an allocation even so.
void memory_share(uint64_t base, uint32_t devices);
// Where the bytes of device memory are for code that runs on the host; other addresses are returned as they are.
uint8_t *memory_bytes(uint64_t address);

// Copies and fills for the runtime; addresses are the devices' or the host's own. They keep account of which bytes were
// written. The caller has checked the ranges.
void memory_copy(uint64_t to, uint64_t from, uint64_t bytes);
void memory_fill(uint64_t to, uint8_t value, uint64_t bytes);

// ---- modules and kernels -------------------------------------------------------------------------------------------

struct Dim3 {
    uint32_t x = 1, y = 1, z = 1;
    uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Module; // of one device
struct Kernel;

struct KernelParameter {
    uint64_t offset, size_bytes;
};

struct KernelInfo {
    std::string name; // as mangled
    std::vector<KernelParameter> parameters;
    uint64_t parameters_bytes = 0;
    uint64_t static_shared_bytes = 0, local_bytes = 0, constant_bytes = 0;
    uint32_t max_threads = 0;       // of a block: .maxntid, 0: not given
    Dim3 required_threads{0, 0, 0}; // .reqntid, zeros: not given
    int ptx_version = 0;            // 90 for sm_90's
};

// Parses the text and places its variables. nullptr: it cannot be; `error` says why and where. A kernel is decoded when
// it is launched first: what the engine does not know fails the launch, and not what a program never runs.
Module *module_load(int device, const std::string &ptx, std::string *error);
void module_unload(Module *module);
Kernel *module_kernel(Module *module, const std::string &name); // nullptr: none
std::vector<Kernel *> module_kernels(Module *module);
bool module_variable(Module *module, const std::string &name, uint64_t *address, uint64_t *size_bytes);
const KernelInfo &kernel_info(const Kernel *kernel);

// ---- launches ------------------------------------------------------------------------------------------------------

enum class Fault : uint8_t {
    none,
    illegal_address,
    misaligned_address,
    illegal_instruction,
    trap,    // trap, brkpt
    assert_, // a device assert
    timeout, // the instruction budget was used up: an endless loop
    failure, // anything else that a checker found: a race, a deadlock, memory read before it was written
};

struct LaunchConfig {
    Dim3 grid, block;
    uint64_t dynamic_shared_bytes = 0;
    bool is_cooperative = false;   // every block resident at once
    uint64_t stack_bytes = 0;      // of a thread, for recursion and calls through addresses; 16 KiB at least
    uint64_t heap_bytes = 8 << 20; // of the device, for malloc in kernels
};

// Runs a kernel to its end. `parameters` is the block of kernel_info().parameters_bytes. What went wrong has been
// written to stderr when this returns. `executed`, if not null, is set to the thread-instructions of the blocks that
// ended.
Fault launch(const Kernel *kernel, const LaunchConfig &config, const std::vector<uint8_t> &parameters,
             uint64_t *executed = nullptr);

// What every device of this process is like, to the engine.
struct EngineModel {
    int processors = 132;                     // %nsmid
    uint64_t shared_per_block_bytes = 232448; // opted in
    uint64_t shared_per_processor_bytes = 233472;
    int threads_per_processor = 2048;
    int blocks_per_processor = 32;
};
void engine_set_model(const EngineModel &model);

// Whether VGPU_CHECK asks for memory that is not freed at exit; the engine does the other checks itself.
bool engine_checks_leaks();

// Thread-instructions executed in this process so far: an instruction of a warp counts once for each active lane.
uint64_t engine_instructions();

} // namespace vgpu

#endif
