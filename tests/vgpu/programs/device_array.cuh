// Errors of the runtime as exceptions, and arrays in device memory.
#ifndef SHOAL_TESTS_VGPU_PROGRAMS_DEVICE_ARRAY_CUH
#define SHOAL_TESTS_VGPU_PROGRAMS_DEVICE_ARRAY_CUH

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace program {

// GoogleTest reports an exception as the failure of the test that let it through.
inline void throw_unless_success(cudaError_t error, const char *call, int line) {
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string(cudaGetErrorName(error)) + " from " + call + ", line " + std::to_string(line));
}
#define CUDA_OK(call) program::throw_unless_success(call, #call, __LINE__)

// After a launch: it was accepted, and the kernel ran to its end.
#define LAUNCH_OK()                       \
    do {                                  \
        CUDA_OK(cudaGetLastError());      \
        CUDA_OK(cudaDeviceSynchronize()); \
    } while (0)

// An array in device memory. Its contents are undefined unless it is made from values.
template <class T> class DeviceArray {
  public:
    explicit DeviceArray(size_t size) : size_(size) {
        if (size > 0) CUDA_OK(cudaMalloc(&data_, size * sizeof(T)));
    }
    explicit DeviceArray(const std::vector<T> &values) : DeviceArray(values.size()) {
        if (size_ > 0) CUDA_OK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    DeviceArray(size_t size, T value) : DeviceArray(std::vector<T>(size, value)) {}
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray &) = delete;
    DeviceArray &operator=(const DeviceArray &) = delete;

    T *data() const { return data_; }
    size_t size() const { return size_; }

    // The first `count` values.
    std::vector<T> values(size_t count) const {
        std::vector<T> copy(count);
        if (count > 0) CUDA_OK(cudaMemcpy(copy.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }
    std::vector<T> values() const { return values(size_); }

  private:
    size_t size_;
    T *data_ = nullptr;
};

} // namespace program

#endif
