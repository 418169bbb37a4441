// How a function of the API ends: it throws ApiError where the real one returns an error, and api() turns that into the
// code, which becomes the thread's last error.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_ERRORS_H
#define SHOAL_TESTS_VGPU_RUNTIME_ERRORS_H

#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

#include "tests/vgpu/runtime/cuda_api.h"

namespace vgpu {

struct ApiError {
    cudaError_t code;
};

[[noreturn]] inline void fail(cudaError_t code) { throw ApiError{code}; }

inline void require(bool condition, cudaError_t code = cudaErrorInvalidValue) {
    if (!condition) fail(code);
}

// Makes `code` the calling thread's last error, unless it is none; returns it.
cudaError_t record_error(cudaError_t code);

// Throws what the current device failed with, once a synchronising call has brought it to light, and
// cudaErrorNotPermitted inside a host function that a stream calls.
void require_usable_device();

// Runs the body of a function that needs no working device.
template <typename Body> cudaError_t api_without_device(Body &&body) noexcept {
    try {
        body();
        return cudaSuccess;
    } catch (const ApiError &error) {
        return record_error(error.code);
    } catch (const std::bad_alloc &) {
        return record_error(cudaErrorMemoryAllocation);
    } catch (const std::system_error &error) {
        fprintf(stderr, "vgpu: %s\n", error.what());
        return record_error(cudaErrorOperatingSystem);
    }
}

template <typename Body> cudaError_t api(Body &&body) noexcept {
    return api_without_device([&] {
        require_usable_device();
        body();
    });
}

} // namespace vgpu

#endif
