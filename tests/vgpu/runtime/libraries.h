// Modules of device code: what a program registers before main() and what it loads as a library, their kernels and
// variables, and, for each device, the engine's module, loaded when it is first needed.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_LIBRARIES_H
#define SHOAL_TESTS_VGPU_RUNTIME_LIBRARIES_H

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/vgpu/engine.h"
#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/handles.h"
#include "tests/vgpu/runtime/model.h"

namespace vgpu {

class Library;

// A kernel of a library, on whichever device. What cudaFuncSetAttribute() sets is each device's own.
struct KernelEntry {
    std::string name;
    std::weak_ptr<Library> library;
    cudaKernel_t handle = nullptr;

    std::mutex mutex; // of what follows
    int dynamic_shared_limit[MAX_DEVICES];
    int carveout[MAX_DEVICES];

    KernelEntry();
};
using KernelEntryPtr = std::shared_ptr<KernelEntry>;

class Library : public std::enable_shared_from_this<Library> {
  public:
    // The image has to stay where it is, unless `copy` holds it.
    explicit Library(const void *image) : image_(image) {}
    explicit Library(std::vector<char> copy) : copy_(std::move(copy)), image_(copy_.data()) {}
    ~Library();

    cudaLibrary_t handle = nullptr;

    // Loads it where it is not yet. `wanted` is what the message says is missing where that fails.
    Module *module(int device, const std::string &wanted);
    // The entry of a name, made when it is first asked for: whether a device has such a kernel is another question.
    KernelEntryPtr kernel(const std::string &name);
    // Writes the addresses of managed variables to where host code has its pointers to them.
    void place_managed(int device);
    void add_managed(void **host_pointer, const std::string &name);
    void forget_kernels();

  private:
    std::vector<char> copy_;
    const void *image_;
    std::mutex mutex_;
    Module *modules_[MAX_DEVICES] = {};
    cudaError_t errors_[MAX_DEVICES] = {}; // of a load that failed
    std::map<std::string, KernelEntryPtr> kernels_;
    std::vector<std::pair<void **, std::string>> managed_;
};
using LibraryPtr = std::shared_ptr<Library>;

// A kernel's code on a device, and what keeps it loaded.
struct KernelCode {
    LibraryPtr library;
    const Kernel *kernel = nullptr;
};

// By the address of the host function that stands for it, or by its handle. Throws cudaErrorInvalidDeviceFunction.
KernelEntryPtr kernel_find(const void *function);
KernelCode kernel_code(const KernelEntry &entry, int device);

// What host code knows under an address: kernels and variables.
void register_kernel(const void *host_function, const KernelEntryPtr &entry);
void register_variable(const void *host_variable, const LibraryPtr &library, const std::string &name);
void forget_registered(const LibraryPtr &library);

// Address and size on the current device. Throws cudaErrorInvalidSymbol.
struct VariablePlace {
    uint64_t address = 0, size_bytes = 0;
};
VariablePlace variable_find(const void *host_variable);

HandleTable<Library, cudaLibrary_t> &library_handles();
HandleTable<KernelEntry, cudaKernel_t> &kernel_handles();

} // namespace vgpu

#endif
