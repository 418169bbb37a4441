// The API of libraries: device code that is loaded at run time.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/fatbin.h"
#include "tests/vgpu/runtime/libraries.h"

namespace vgpu {
namespace {

// Loads it for the current device at once, so that code that is wrong is refused here.
cudaLibrary_t load(std::vector<char> image) {
    auto library = std::make_shared<Library>(std::move(image));
    library->module(current_device_index(), "cudaLibraryLoadData");
    library->handle = library_handles().add(library);
    return library->handle;
}

std::vector<char> copy_image(const void *image) {
    const auto *bytes = static_cast<const char *>(image);
    switch (image_kind(image)) {
    case ImageKind::wrapper: {
        const void *inner = nullptr;
        memcpy(&inner, bytes + 8, sizeof inner);
        return copy_image(inner);
    }
    case ImageKind::elf:
        fprintf(stderr, "vgpu: cudaLibraryLoadData: machine code alone, and PTX is needed\n");
        fail(cudaErrorNoKernelImageForDevice);
    case ImageKind::unknown:
        fail(cudaErrorInvalidKernelImage);
    case ImageKind::ptx:
    case ImageKind::fatbin:
        break;
    }
    return std::vector<char>(bytes, bytes + image_bytes(image));
}

void find_variable(void **pointer, size_t *bytes, cudaLibrary_t handle, const char *name) {
    LibraryPtr library = library_handles().find(handle);
    require(name != nullptr);
    uint64_t address = 0, size_bytes = 0;
    Module *module = library->module(current_device_index(), name);
    require(module_variable(module, name, &address, &size_bytes), cudaErrorSymbolNotFound);
    if (pointer != nullptr) *pointer = reinterpret_cast<void *>(address);
    if (bytes != nullptr) *bytes = size_bytes;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

// The options are the just-in-time compiler's and of no meaning here.
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned,
                                cudaLibraryOption *, void **, unsigned) {
    return api([&] {
        require(library != nullptr && code != nullptr);
        *library = load(copy_image(code));
    });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path, cudaJitOption *, void **, unsigned,
                                    cudaLibraryOption *, void **, unsigned) {
    return api([&] {
        require(library != nullptr && path != nullptr);
        std::ifstream file(path, std::ios::binary);
        require(file.is_open(), cudaErrorFileNotFound);
        std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        bytes.resize(bytes.size() + 64, '\0'); // text ends with a zero, and a header may be cut short
        *library = load(copy_image(bytes.data()));
    });
}

// What was launched goes on.
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    return api([&] { library_handles().remove(library)->forget_kernels(); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    return api([&] {
        require(kernel != nullptr && name != nullptr);
        LibraryPtr found = library_handles().find(library);
        Module *module = found->module(current_device_index(), name);
        require(module_kernel(module, name) != nullptr, cudaErrorSymbolNotFound);
        *kernel = found->kernel(name)->handle;
    });
}

cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
    return api([&] {
        require(count != nullptr);
        Module *module = library_handles().find(library)->module(current_device_index(), "the library");
        *count = static_cast<unsigned>(module_kernels(module).size());
    });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned count, cudaLibrary_t library) {
    return api([&] {
        LibraryPtr found = library_handles().find(library);
        require(kernels != nullptr || count == 0);
        unsigned given = 0;
        for (const Kernel *kernel : module_kernels(found->module(current_device_index(), "the library"))) {
            if (given == count) break;
            kernels[given++] = found->kernel(kernel_info(kernel).name)->handle;
        }
    });
}

cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *bytes, cudaLibrary_t library, const char *name) {
    return api([&] { find_variable(pointer, bytes, library, name); });
}

cudaError_t cudaLibraryGetManaged(void **pointer, size_t *bytes, cudaLibrary_t library, const char *name) {
    return api([&] {
        void *found = nullptr;
        find_variable(&found, bytes, library, name);
        uint64_t address = reinterpret_cast<uint64_t>(found);
        require(reinterpret_cast<uint64_t>(memory_bytes(address)) == address, cudaErrorSymbolNotFound);
        if (pointer != nullptr) *pointer = found;
    });
}

cudaError_t cudaLibraryGetUnifiedFunction(void **, cudaLibrary_t library, const char *) {
    return api([&] {
        library_handles().find(library);
        fail(cudaErrorSymbolNotFound);
    });
}
