// A GPU as NVML shows it, which is what nvidia-smi prints: opened at run time, and left alone where it is missing.
//
// Ownership: the caller closes what it opened. Errors: none: without NVML there are no samples. Thread safety: open and
// close on one thread; samples on one thread at a time.
#ifndef SHOAL_PROFILER_PROF_NVML_H
#define SHOAL_PROFILER_PROF_NVML_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// nvidia-smi's figure is of a period of 1/6 s to 1 s, by the model of the GPU.
enum { PROF_NVML_EVERY_NS = 1000000000 / 6 };

typedef struct ProfNvml ProfNvml;

typedef struct ProfNvmlSample {
    uint32_t busy_percent; // of the last period, in which at least one kernel ran
    uint64_t memory_bytes; // in use, by all processes
} ProfNvmlSample;

// The GPU with this PCI bus id, as CUDA writes it. NULL: NVML is missing, or does not know the GPU.
ProfNvml *prof_nvml_open(const char *bus_id);
void prof_nvml_close(ProfNvml *nvml); // NULL is fine

// False: it is not time for the next one yet, or there is none. NULL is fine.
bool prof_nvml_sample(ProfNvml *nvml, ProfNvmlSample *sample);

#ifdef __cplusplus
}
#endif

#endif
