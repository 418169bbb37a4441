// Which module has a kernel or a variable, and loading it.
#include "tests/vgpu/runtime/libraries.h"

#include <cstdio>

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/fatbin.h"

namespace vgpu {
namespace {

struct Registered {
    std::mutex mutex;
    std::map<const void *, KernelEntryPtr> kernels;
    std::map<const void *, std::pair<LibraryPtr, std::string>> variables;
};

Registered &registered() {
    static auto *const only = new Registered;
    return *only;
}

} // namespace

KernelEntry::KernelEntry() {
    for (int i = 0; i < MAX_DEVICES; i++)
        dynamic_shared_limit[i] = carveout[i] = -1;
}

Library::~Library() {
    for (Module *module : modules_) {
        if (module != nullptr) module_unload(module);
    }
}

Module *Library::module(int device, const std::string &wanted) {
    std::lock_guard lock(mutex_);
    require(errors_[device] == cudaSuccess, errors_[device]);
    if (modules_[device] != nullptr) return modules_[device];
    std::string error;
    std::string ptx = image_ptx(image_, model().capability(), &error);
    if (!error.empty()) {
        fprintf(stderr, "vgpu: %s: %s\n", wanted.c_str(), error.c_str());
        fail(errors_[device] = cudaErrorNoKernelImageForDevice);
    }
    modules_[device] = module_load(device, ptx, &error);
    if (modules_[device] == nullptr) {
        fprintf(stderr, "vgpu: %s: %s\n", wanted.c_str(), error.c_str());
        fail(errors_[device] = cudaErrorInvalidPtx);
    }
    return modules_[device];
}

KernelEntryPtr Library::kernel(const std::string &name) {
    std::lock_guard lock(mutex_);
    KernelEntryPtr &entry = kernels_[name];
    if (entry == nullptr) {
        entry = std::make_shared<KernelEntry>();
        entry->name = name;
        entry->library = weak_from_this();
        entry->handle = kernel_handles().add(entry);
    }
    return entry;
}

void Library::add_managed(void **host_pointer, const std::string &name) {
    std::lock_guard lock(mutex_);
    managed_.emplace_back(host_pointer, name);
}

// Host code follows the pointer that is written here, so that the variable has to be in memory that both sides share.
void Library::place_managed(int device) {
    std::vector<std::pair<void **, std::string>> left;
    {
        std::lock_guard lock(mutex_);
        left.swap(managed_);
    }
    for (const auto &[host_pointer, name] : left) {
        uint64_t address = 0, size_bytes = 0;
        bool is_there = module_variable(module(device, name), name, &address, &size_bytes);
        require(is_there, cudaErrorInvalidSymbol);
        if (reinterpret_cast<uint64_t>(memory_bytes(address)) != address) {
            fprintf(stderr, "vgpu: %s: a managed variable that host code cannot reach\n", name.c_str());
            fail(cudaErrorNotSupported);
        }
        *host_pointer = reinterpret_cast<void *>(address);
    }
}

void Library::forget_kernels() {
    std::lock_guard lock(mutex_);
    for (const auto &[name, entry] : kernels_)
        kernel_handles().remove(entry->handle);
    kernels_.clear();
}

KernelEntryPtr kernel_find(const void *function) {
    if (KernelEntryPtr entry = kernel_handles().lookup(function)) return entry;
    Registered &all = registered();
    std::lock_guard lock(all.mutex);
    auto found = all.kernels.find(function);
    require(found != all.kernels.end(), cudaErrorInvalidDeviceFunction);
    return found->second;
}

KernelCode kernel_code(const KernelEntry &entry, int device) {
    KernelCode code;
    code.library = entry.library.lock();
    require(code.library != nullptr, cudaErrorInvalidResourceHandle);
    code.kernel = module_kernel(code.library->module(device, "kernel " + entry.name), entry.name);
    if (code.kernel == nullptr) {
        fprintf(stderr, "vgpu: kernel %s: not in the PTX that a device of compute capability %d.%d runs\n",
                entry.name.c_str(), model().major, model().minor);
        fail(cudaErrorInvalidDeviceFunction);
    }
    return code;
}

void register_kernel(const void *host_function, const KernelEntryPtr &entry) {
    std::lock_guard lock(registered().mutex);
    registered().kernels[host_function] = entry;
}

void register_variable(const void *host_variable, const LibraryPtr &library, const std::string &name) {
    std::lock_guard lock(registered().mutex);
    registered().variables[host_variable] = {library, name};
}

void forget_registered(const LibraryPtr &library) {
    Registered &all = registered();
    std::lock_guard lock(all.mutex);
    for (auto at = all.kernels.begin(); at != all.kernels.end();) {
        at = at->second->library.lock() == library ? all.kernels.erase(at) : std::next(at);
    }
    for (auto at = all.variables.begin(); at != all.variables.end();) {
        at = at->second.first == library ? all.variables.erase(at) : std::next(at);
    }
}

VariablePlace variable_find(const void *host_variable) {
    LibraryPtr library;
    std::string name;
    {
        std::lock_guard lock(registered().mutex);
        auto found = registered().variables.find(host_variable);
        require(found != registered().variables.end(), cudaErrorInvalidSymbol);
        library = found->second.first;
        name = found->second.second;
    }
    VariablePlace place;
    Module *module = library->module(current_device_index(), "variable " + name);
    require(module_variable(module, name, &place.address, &place.size_bytes), cudaErrorInvalidSymbol);
    return place;
}

HandleTable<Library, cudaLibrary_t> &library_handles() {
    static auto *const table = new HandleTable<Library, cudaLibrary_t>(HandleKind::library);
    return *table;
}

HandleTable<KernelEntry, cudaKernel_t> &kernel_handles() {
    static auto *const table = new HandleTable<KernelEntry, cudaKernel_t>(HandleKind::kernel);
    return *table;
}

} // namespace vgpu
