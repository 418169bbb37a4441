// The API of copying and setting memory.
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/runtime_memory.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

Fill fill_of(void *to, size_t pitch, int value, size_t width, size_t height) {
    Fill fill;
    fill.to = reinterpret_cast<uint64_t>(to);
    fill.pitch = pitch, fill.width = width, fill.height = height;
    fill.value = static_cast<uint8_t>(value);
    return fill;
}

Fill fill_of_box(const cudaPitchedPtr &to, int value, const cudaExtent &extent) {
    Fill fill = fill_of(to.ptr, to.pitch, value, extent.width, extent.height);
    require(extent.depth <= 1 || extent.height <= to.ysize);
    fill.depth = extent.depth;
    fill.slice = to.pitch * to.ysize;
    return fill;
}

// Only what a variable's copies have.
void require_direction(cudaMemcpyKind kind, cudaMemcpyKind wanted) {
    bool is_possible = kind == wanted || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    require(is_possible, cudaErrorInvalidMemcpyDirection);
}

void copy_peer(cudaStream_t stream, void *to, int to_device, const void *from, int from_device, size_t bytes,
               bool is_async) {
    device_at(to_device), device_at(from_device);
    copy_submit(stream, copy_of_bytes(to, from, bytes), cudaMemcpyDeviceToDevice, is_async);
}

} // namespace

cudaError_t copy_on(cudaStream_t stream, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return api([&] { copy_submit(stream, copy_of_bytes(to, from, bytes), kind, false); });
}

cudaError_t copy_2d_on(cudaStream_t stream, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                       size_t width, size_t height, cudaMemcpyKind kind) {
    return api([&] { copy_submit(stream, copy_of_rows(to, to_pitch, from, from_pitch, width, height), kind, false); });
}

cudaError_t copy_3d_on(cudaStream_t stream, const cudaMemcpy3DParms *parameters) {
    return api([&] {
        require(parameters != nullptr);
        copy_submit(stream, copy_of_box(*parameters), parameters->kind, false);
    });
}

cudaError_t copy_to_symbol_on(cudaStream_t stream, const void *symbol, const void *from, size_t bytes, size_t offset,
                              cudaMemcpyKind kind) {
    return api([&] {
        require_direction(kind, cudaMemcpyHostToDevice);
        copy_submit(stream, copy_of_bytes(symbol_range(symbol, bytes, offset), from, bytes), kind, false);
    });
}

cudaError_t copy_from_symbol_on(cudaStream_t stream, void *to, const void *symbol, size_t bytes, size_t offset,
                                cudaMemcpyKind kind) {
    return api([&] {
        require_direction(kind, cudaMemcpyDeviceToHost);
        copy_submit(stream, copy_of_bytes(to, symbol_range(symbol, bytes, offset), bytes), kind, false);
    });
}

cudaError_t fill_on(cudaStream_t stream, void *to, int value, size_t bytes) {
    return api([&] { fill_submit(stream, fill_of(to, bytes, value, bytes, 1), false); });
}

cudaError_t fill_2d_on(cudaStream_t stream, void *to, size_t pitch, int value, size_t width, size_t height) {
    return api([&] { fill_submit(stream, fill_of(to, pitch, value, width, height), false); });
}

cudaError_t fill_3d_on(cudaStream_t stream, cudaPitchedPtr to, int value, cudaExtent extent) {
    return api([&] { fill_submit(stream, fill_of_box(to, value, extent), false); });
}

} // namespace vgpu

using namespace vgpu;

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return copy_on(cudaStreamLegacy, to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return api([&] { copy_submit(stream, copy_of_bytes(to, from, bytes), kind, true); });
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
    return copy_2d_on(cudaStreamLegacy, to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return api([&] { copy_submit(stream, copy_of_rows(to, to_pitch, from, from_pitch, width, height), kind, true); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *parameters) { return copy_3d_on(cudaStreamLegacy, parameters); }

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *parameters, cudaStream_t stream) {
    return api([&] {
        require(parameters != nullptr);
        copy_submit(stream, copy_of_box(*parameters), parameters->kind, true);
    });
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    return api([&] { copy_peer(cudaStreamLegacy, to, to_device, from, from_device, bytes, false); });
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    return api([&] { copy_peer(stream, to, to_device, from, from_device, bytes, true); });
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) { return fill_on(cudaStreamLegacy, to, value, bytes); }

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    return api([&] { fill_submit(stream, fill_of(to, bytes, value, bytes, 1), true); });
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    return fill_2d_on(cudaStreamLegacy, to, pitch, value, width, height);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    return api([&] { fill_submit(stream, fill_of(to, pitch, value, width, height), true); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    return fill_3d_on(cudaStreamLegacy, to, value, extent);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
    return api([&] { fill_submit(stream, fill_of_box(to, value, extent), true); });
}

// ---- variables -----------------------------------------------------------------------------------------------------

cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    return api([&] {
        require(pointer != nullptr);
        *pointer = reinterpret_cast<void *>(variable_find(symbol).address);
    });
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    return api([&] {
        require(bytes != nullptr);
        *bytes = variable_find(symbol).size_bytes;
    });
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return copy_to_symbol_on(cudaStreamLegacy, symbol, from, bytes, offset, kind);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return copy_from_symbol_on(cudaStreamLegacy, to, symbol, bytes, offset, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    return api([&] {
        require_direction(kind, cudaMemcpyHostToDevice);
        copy_submit(stream, copy_of_bytes(symbol_range(symbol, bytes, offset), from, bytes), kind, true);
    });
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return api([&] {
        require_direction(kind, cudaMemcpyDeviceToHost);
        copy_submit(stream, copy_of_bytes(to, symbol_range(symbol, bytes, offset), bytes), kind, true);
    });
}
