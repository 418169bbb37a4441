#include "profiler/prof_nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"

// Source of these declarations: NVIDIA's NVML API reference. A function returns 0 where it did what it was to do.
typedef struct NvmlDevice *NvmlHandle;
typedef struct NvmlUtilization {
    unsigned gpu, memory; // percent
} NvmlUtilization;
typedef struct NvmlMemory {
    unsigned long long total, free, used;
} NvmlMemory;

struct ProfNvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*find)(const char *bus_id, NvmlHandle *device);
    int (*utilization)(NvmlHandle device, NvmlUtilization *utilization);
    int (*memory)(NvmlHandle device, NvmlMemory *memory);
    NvmlHandle device;
    int64_t next_ns;
};

static bool load(void *library, const char *name, void *function, size_t size) {
    void *found = dlsym(library, name);
    memcpy(function, &found, size); // ISO C has no cast from void * to a function
    return found != NULL;
}
#define LOAD(library, name, member) load(library, name, &(member), sizeof(member))

ProfNvml *prof_nvml_open(const char *bus_id) {
    void *library = bus_id[0] != '\0' ? dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    ProfNvml *n = library != NULL ? calloc(1, sizeof *n) : NULL;
    if (n == NULL) return NULL;
    bool ok = LOAD(library, "nvmlInit_v2", n->init) && LOAD(library, "nvmlShutdown", n->shutdown) &&
              LOAD(library, "nvmlDeviceGetHandleByPciBusId_v2", n->find) &&
              LOAD(library, "nvmlDeviceGetUtilizationRates", n->utilization) &&
              LOAD(library, "nvmlDeviceGetMemoryInfo", n->memory);
    if (ok && n->init() == 0) {
        n->next_ns = host_now_ns() + PROF_NVML_EVERY_NS;
        if (n->find(bus_id, &n->device) == 0) return n;
        n->shutdown();
    }
    free(n);
    return NULL;
}

void prof_nvml_close(ProfNvml *n) {
    if (n == NULL) return;
    n->shutdown();
    free(n);
}

bool prof_nvml_sample(ProfNvml *n, ProfNvmlSample *sample) {
    int64_t now = host_now_ns();
    NvmlUtilization utilization;
    NvmlMemory memory;
    if (n == NULL || now < n->next_ns) return false;
    n->next_ns = now + PROF_NVML_EVERY_NS;
    if (n->utilization(n->device, &utilization) != 0 || n->memory(n->device, &memory) != 0) return false;
    *sample = (ProfNvmlSample){utilization.gpu <= 100 ? utilization.gpu : 100, memory.used};
    return true;
}
