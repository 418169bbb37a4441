// Fresh random inputs for a test, from a seed that is printed.
#ifndef SHOAL_TESTS_KERNELS_FRESH_SEED_H
#define SHOAL_TESTS_KERNELS_FRESH_SEED_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

// A fresh seed for each run; a failure's output names it.
inline uint64_t fresh_seed() {
    std::random_device device;
    uint64_t seed = (static_cast<uint64_t>(device()) << 32) | device();
    const char *forced = std::getenv("SHOAL_TEST_SEED");
    if (forced != nullptr) seed = std::strtoull(forced, nullptr, 0);
    std::printf("seed: SHOAL_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

#endif
