// What a fused kernel's time consists of, while a profiler is attached: one block of 64 reads its SM's clock between
// the phases of its work, and adds what each took to counters in the device's memory. The host hands them to the
// profiler (host_trace_split()). The counters decide nothing.
#ifndef SHOAL_KERNELS_CUDA_PROBE_CUH
#define SHOAL_KERNELS_CUDA_PROBE_CUH

#include "kernels/cuda/names.cuh"

enum { CUDA_PROBE_EVERY = 64 };

// In every thread; it is on in thread 0 of the blocks that are timed.
typedef struct CudaProbe {
    CudaProbeTicks *ticks; // NULL: off
    uint32_t since;        // laps are far shorter than 2^32 ticks
} CudaProbe;

// ticks: NULL where no profiler is attached.
DEVICE_FN CudaProbe cuda_probe(CudaProbeTicks *ticks) {
    CudaProbe probe = {NULL, 0};
    if (ticks == NULL || threadIdx.x != 0 || blockIdx.x % CUDA_PROBE_EVERY != 0) return probe;
    probe.ticks = ticks;
    probe.since = (uint32_t)clock();
    return probe;
}

// The time since the lap before goes to a category.
DEVICE_FN void cuda_probe_lap(CudaProbe &probe, HostTraceCategory category) {
    if (probe.ticks == NULL) return;
    uint32_t now = (uint32_t)clock();
    atomicAdd((unsigned long long *)&probe.ticks->of[category], (unsigned long long)(now - probe.since));
    probe.since = now;
}

#endif
