// What the virtual GPUs are like: the figures that the real cards report.
//
//   VGPU_MODEL=h200     one of the names in model.cc, the default being h200
//   VGPU_DEVICES=1      how many of them, up to 16
//   VGPU_MEMORY=256M    of each; bytes, or with K, M or G
//   CUDA_VISIBLE_DEVICES is respected: which of the devices the program sees, and in which order
#ifndef SHOAL_TESTS_VGPU_RUNTIME_MODEL_H
#define SHOAL_TESTS_VGPU_RUNTIME_MODEL_H

#include <cstdint>
#include <string>
#include <vector>

#include "tests/vgpu/runtime/cuda_api.h"

namespace vgpu {

constexpr int MAX_DEVICES = 16;
constexpr int WARP_THREADS = 32;
constexpr unsigned MAX_BLOCK_THREADS = 1024;
constexpr unsigned MAX_BLOCK_DIM[3] = {1024, 1024, 64};
constexpr unsigned MAX_GRID_DIM[3] = {0x7fffffff, 65535, 65535};
constexpr uint64_t SHARED_PER_BLOCK_BYTES = 49152; // not opted in
constexpr uint64_t CONSTANT_BYTES = 65536;
constexpr size_t UUID_BYTES = 16;
constexpr uint64_t PITCH_ALIGN_BYTES = 512;
constexpr int GREATEST_PRIORITY = -5; // stream priorities go from 0, the least, to this

struct Model {
    const char *key, *name;
    int major, minor;
    int processors;
    uint64_t memory_bytes;
    uint64_t shared_per_block_bytes; // opted in
    uint64_t shared_per_processor_bytes;
    uint64_t reserved_shared_bytes; // of each block, for the system
    int threads_per_processor, blocks_per_processor;
    uint64_t l2_bytes, persisting_l2_bytes;
    int clock_khz, memory_clock_khz, bus_bits;
    int single_to_double_ratio, copy_engines;
    bool has_ecc, has_clusters;
    int pci_device_id; // with the vendor's, as cudaDevAttrGpuPciDeviceId

    int capability() const { return major * 10 + minor; }
};

// Of this process, read from the environment once. A setting that makes no sense ends the process with a message.
const Model &model();
void model_check_settings();             // reads them, and no more
int device_count();                      // that the program sees
int device_physical_index(int device);   // the device's number without CUDA_VISIBLE_DEVICES
int physical_count();                    // without CUDA_VISIBLE_DEVICES
std::string device_pci_text(int device); // "0000:07:00.0"
std::string physical_pci_text(int physical);
// A device's uuid is its number and the model's name; 16 bytes.
void physical_uuid(int physical, char *bytes);

// "256M" and the like; false: not such a text.
bool parse_bytes(const std::string &text, uint64_t *bytes);
// Which of `count` devices CUDA_VISIBLE_DEVICES names: up to the first that does not exist.
std::vector<int> parse_visible(const std::string &text, int count);

// False: an attribute that is not known.
bool model_attribute(cudaDeviceAttr attribute, int device, int *value);
void model_properties(int device, cudaDeviceProp *properties);

} // namespace vgpu

#endif
