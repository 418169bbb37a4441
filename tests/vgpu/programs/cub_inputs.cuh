// Operators, random inputs and host-side references for the tests of CUB and Thrust.
#ifndef SHOAL_TESTS_VGPU_PROGRAMS_CUB_INPUTS_CUH
#define SHOAL_TESTS_VGPU_PROGRAMS_CUB_INPUTS_CUH

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace program {

struct IsOdd {
    __host__ __device__ bool operator()(int value) const { return (value & 1) != 0; }
};
struct Square {
    __host__ __device__ long long operator()(int value) const { return static_cast<long long>(value) * value; }
};
struct LargerMagnitude { // commutative: of two equal magnitudes the positive value
    __host__ __device__ float operator()(float a, float b) const {
        float x = a < 0 ? -a : a, y = b < 0 ? -b : b;
        return x > y || (x == y && a > b) ? a : b;
    }
};
struct Maximum {
    __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct Plus {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
struct Minus {
    __host__ __device__ int operator()(int a, int b) const { return a - b; }
};
struct Increment {
    __host__ __device__ void operator()(int &value) const { value++; }
};
struct ByLastDigit { // many ties, so that a sort's stability shows
    __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};
struct Less {
    __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

// Keys in runs of 1 to 9 equal ones; neighbouring runs have different keys.
inline std::vector<int> random_runs(std::mt19937 &random, int size) {
    std::vector<int> keys;
    int key = 0;
    while (keys.size() < static_cast<size_t>(size)) {
        key = (key + 1 + static_cast<int>(random() % 5)) % 100;
        keys.insert(keys.end(), 1 + random() % 9, key);
    }
    keys.resize(static_cast<size_t>(size));
    return keys;
}

// Offsets of segments that cover [0, size): empty, short and long ones.
inline std::vector<int> random_segments(std::mt19937 &random, int size) {
    std::vector<int> offsets = {0};
    while (offsets.back() < size) {
        int length = static_cast<int>(random() % 16 == 0 ? random() % 12000 : random() % 80);
        offsets.push_back(std::min(size, offsets.back() + length));
    }
    offsets.push_back(size); // at least one segment, the last one empty
    return offsets;
}

inline std::vector<int> iota(int size) {
    std::vector<int> values(static_cast<size_t>(size));
    std::iota(values.begin(), values.end(), 0);
    return values;
}

// What the runs of `keys` are, as the "by key" algorithms number them.
struct Runs {
    std::vector<int> keys, starts, lengths;
};
inline Runs runs_of(const std::vector<int> &keys) {
    Runs runs;
    for (size_t i = 0; i < keys.size(); i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            runs.keys.push_back(keys[i]);
            runs.starts.push_back(static_cast<int>(i));
            runs.lengths.push_back(0);
        }
        runs.lengths.back()++;
    }
    return runs;
}

} // namespace program

#endif
