// Fat binaries: containers of PTX and machine code for several architectures, as nvcc puts them into programs.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_FATBIN_H
#define SHOAL_TESTS_VGPU_RUNTIME_FATBIN_H

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

// What a program hands over: PTX text, a fat binary, the wrapper that points to one, or machine code (an ELF file).
enum class ImageKind : uint8_t { ptx, fatbin, wrapper, elf, unknown };
ImageKind image_kind(const void *image);

// Bytes of an image in memory, from its own headers: PTX text ends with a zero.
uint64_t image_bytes(const void *image);

// The PTX of the newest architecture that a device of `capability` (90 for 9.0) can run; text for one architecture
// alone (sm_90a) or for one family (sm_100f) counts only there. Empty: there is none, and `error` says why.
std::string image_ptx(const void *image, int capability, std::string *error);

// Whether a device of `capability` runs PTX with this .target line's architecture, such as "sm_90a".
bool target_fits(const std::string &target, int capability);
// The architecture of the text's .target line; empty: it has none.
std::string ptx_target(const std::string &ptx);

// One LZ4 block. False: it is not one, or not of `size` bytes once unpacked.
bool lz4_unpack(const uint8_t *packed, size_t packed_bytes, size_t size, std::string *text);

} // namespace vgpu

#endif
