// Sums that sixteen lanes make together: number i of many goes to lane i % 16, and the lanes' sums are folded by
// halves, as kernels/policy.h says of narrow layers, and ppo_fold16() in kernels/ppo_math.h of sums in double.
#ifndef SHOAL_KERNELS_CUDA_FOLD16_CUH
#define SHOAL_KERNELS_CUDA_FOLD16_CUH

#include "kernels/cuda/names.cuh"

// The sum, in the first of each sixteen lanes. lanes: those that call it, whole groups of sixteen.
DEVICE_FN float fold_lanes16(float partial, unsigned lanes) {
    partial = partial + __shfl_down_sync(lanes, partial, 8, 16);
    partial = partial + __shfl_down_sync(lanes, partial, 4, 16);
    partial = partial + __shfl_down_sync(lanes, partial, 2, 16);
    return partial + __shfl_down_sync(lanes, partial, 1, 16);
}

DEVICE_FN double fold_lanes16(double partial, unsigned lanes) {
    partial = partial + __shfl_down_sync(lanes, partial, 8, 16);
    partial = partial + __shfl_down_sync(lanes, partial, 4, 16);
    partial = partial + __shfl_down_sync(lanes, partial, 2, 16);
    return partial + __shfl_down_sync(lanes, partial, 1, 16);
}

#endif
