// What the runtime knows of memory beyond the engine: flags, pools, what kind of memory an address is in.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_RUNTIME_MEMORY_H
#define SHOAL_TESTS_VGPU_RUNTIME_RUNTIME_MEMORY_H

#include <memory>
#include <optional>

#include "tests/vgpu/engine.h"
#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/handles.h"
#include "tests/vgpu/runtime/work.h"

namespace vgpu {

// A memory pool. It hands out the engine's allocations and keeps account of them; memory that it holds on to after a
// free is only counted, as "reserved".
struct Pool {
    int device = 0;
    uint64_t most_bytes = 0; // 0: no limit
    cudaMemPool_t handle = nullptr;
    bool is_default = false;

    std::mutex mutex; // of what follows
    uint64_t release_threshold = 0;
    uint32_t devices = 0; // others that have access to it, a bit for each
    uint64_t used_bytes = 0, used_high_bytes = 0, reserved_bytes = 0, reserved_high_bytes = 0;
    int reuse[3] = {1, 1, 1}; // cudaMemPoolReuse...: without an effect here
};
using PoolPtr = std::shared_ptr<Pool>;

struct AllocationNote {
    unsigned flags = 0;
    bool is_registered = false;  // cudaHostRegister()
    bool is_being_freed = false; // cudaFreeAsync() was called and has not come to pass
    PoolPtr pool;                // null: none
};

void note_add(uint64_t base, AllocationNote note);
std::optional<AllocationNote> note_find(uint64_t base);
void note_remove(uint64_t base);
// Marks it as being freed; throws cudaErrorInvalidValue where it is not memory of a pool or is so already.
void note_begin_free(uint64_t base);

// Frees it in the engine and takes it out of its pool's account.
void allocation_release(uint64_t base);

HandleTable<Pool, cudaMemPool_t> &pool_handles();
PoolPtr pool_default(int device);
// What a synchronising call does to pools: reserved memory above the threshold goes.
void pools_trim(int device);

enum class Place : uint8_t { pageable, pinned, managed, device };
struct Location {
    Place place = Place::pageable;
    Allocation allocation; // where it is not pageable
};
// Throws cudaErrorInvalidValue for an address in memory that was freed.
Location locate(const void *address);
// Whether the whole range is in one live allocation.
void require_range(const void *address, size_t bytes);

// The one way of all copies: checks kinds and ranges, then lets it run as the rules of synchrony say. `is_async`: the
// function's name ends in Async.
void copy_submit(cudaStream_t stream, Copy copy, cudaMemcpyKind kind, bool is_async);
// Throws what the real one refuses, and notes which ends are pageable.
void copy_check(Copy &copy, cudaMemcpyKind kind);
Copy copy_of_bytes(void *to, const void *from, size_t bytes);
// A row of `height` rows. Throws cudaErrorInvalidPitchValue.
Copy copy_of_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height);
Copy copy_of_box(const cudaMemcpy3DParms &parameters);

void fill_submit(cudaStream_t stream, Fill fill, bool is_async);
void fill_check(const Fill &fill);

// When they run: whether the memory is still there. Where it is not, they report it. Always true where VGPU_CHECK does
// not have bounds.
bool copy_is_in_memory(const Copy &copy);
bool fill_is_in_memory(const Fill &fill);

// Where `count` bytes at `offset` of a variable are. Throws cudaErrorInvalidSymbol and cudaErrorInvalidValue.
void *symbol_range(const void *symbol, size_t count, size_t offset);

// The bodies of functions that have a twin for --default-stream per-thread.
cudaError_t copy_on(cudaStream_t stream, void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t copy_2d_on(cudaStream_t stream, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                       size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t copy_3d_on(cudaStream_t stream, const cudaMemcpy3DParms *parameters);
cudaError_t copy_to_symbol_on(cudaStream_t stream, const void *symbol, const void *from, size_t bytes, size_t offset,
                              cudaMemcpyKind kind);
cudaError_t copy_from_symbol_on(cudaStream_t stream, void *to, const void *symbol, size_t bytes, size_t offset,
                                cudaMemcpyKind kind);
cudaError_t fill_on(cudaStream_t stream, void *to, int value, size_t bytes);
cudaError_t fill_2d_on(cudaStream_t stream, void *to, size_t pitch, int value, size_t width, size_t height);
cudaError_t fill_3d_on(cudaStream_t stream, cudaPitchedPtr to, int value, cudaExtent extent);

} // namespace vgpu

#endif
