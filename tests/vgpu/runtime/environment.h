// The hash that turns a seed into a sequence.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_ENVIRONMENT_H
#define SHOAL_TESTS_VGPU_RUNTIME_ENVIRONMENT_H

#include <cstdint>

namespace vgpu {

// A bijection of 64 bits that scatters neighbours (the finaliser of SplitMix64).
inline uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

} // namespace vgpu

#endif
