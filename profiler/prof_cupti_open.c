// Finds CUPTI: by its name, then beside the CUDA runtime that the process uses, as toolkits lay it out.
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/file.h"
#include "profiler/prof_cupti_state.h"

// The CUDA runtime that is loaded already; NULL: none.
static void *loaded_runtime(void) {
    for (int major = PROF_CUDA_NEWEST; major >= PROF_CUDA_OLDEST; major--) {
        char name[32];
        snprintf(name, sizeof name, "libcudart.so.%d", major);
        void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) return library;
    }
    return NULL;
}

// The folder of the file that a symbol is in, links followed; false: none.
static bool folder_of(const void *symbol, char folder[HOST_PATH_MAX]) {
    Dl_info info;
    char path[HOST_PATH_MAX];
    if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL) return false;
    char *real = realpath(info.dli_fname, NULL);
    bool fits = real != NULL && (size_t)snprintf(path, sizeof path, "%s", real) < sizeof path;
    free(real);
    char *slash = fits ? strrchr(path, '/') : NULL;
    if (slash == NULL) return false;
    *slash = '\0';
    snprintf(folder, HOST_PATH_MAX, "%s", path);
    return true;
}

static void *open_beside(const char *runtime, const char *name) {
    static const char *const places[] = {"", "/../extras/CUPTI/lib64", "/../../../extras/CUPTI/lib64"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[HOST_PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s%s/%s", runtime, places[i], name) >= sizeof path) continue;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) return library;
    }
    return NULL;
}

// Never closed again: CUPTI's own threads may be in its code.
static void *open_library(char error[256]) {
    void *runtime = loaded_runtime(), *library = NULL;
    char folder[HOST_PATH_MAX];
    bool has_folder = runtime != NULL && folder_of(dlsym(runtime, "cudaRuntimeGetVersion"), folder);
    for (int major = PROF_CUDA_NEWEST; major >= PROF_CUDA_OLDEST && library == NULL; major--) {
        char name[32];
        snprintf(name, sizeof name, "libcupti.so.%d", major);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL && major == PROF_CUDA_NEWEST) snprintf(error, 256, "%s", dlerror());
        if (library == NULL && has_folder) library = open_beside(folder, name);
    }
    if (runtime != NULL) dlclose(runtime);
    return library;
}

Status prof_cupti_find(ProfCuptiCalls *calls) {
    char error[256] = "";
    void *library = open_library(error);
    if (library == NULL) return host_fail(STATUS_DEVICE, "CUPTI cannot be opened: %s", error);
#define LOAD(function)                                                                          \
    do {                                                                                        \
        void *found = dlsym(library, #function);                                                \
        if (found == NULL) return host_fail(STATUS_DEVICE, "this CUPTI has no " #function);     \
        memcpy(&calls->function, &found, sizeof found); /* no cast from void * to a function */ \
    } while (0);
    PROF_CUPTI_LIST(LOAD)
#undef LOAD
    void *newer = dlsym(library, "cuptiSubscribe_v2");
    memcpy(&calls->cuptiSubscribe_v2, &newer, sizeof newer);
    return STATUS_OK;
}

// ---- devices -------------------------------------------------------------------------------------------------------

// From cuda_runtime_api.h: enum cudaDeviceAttr.
enum { THREADS_PER_PROCESSOR = 39, PROCESSORS = 16 };

// Not where the runtime is linked into the program: how many threads a device holds is not known then.
static void ask_runtime(ProfCupti *c, void *runtime, bool asks, char bus_id[32]) {
    typedef int GetInt(int *);
    typedef int GetAttribute(int *, int, int);
    typedef int GetBusId(char *, int, int);
    GetInt *count_devices = NULL, *current = NULL;
    GetAttribute *attribute = NULL;
    GetBusId *get_bus_id = NULL;
    *(void **)&count_devices = dlsym(runtime, "cudaGetDeviceCount");
    *(void **)&current = dlsym(runtime, "cudaGetDevice");
    *(void **)&attribute = dlsym(runtime, "cudaDeviceGetAttribute");
    *(void **)&get_bus_id = dlsym(runtime, "cudaDeviceGetPCIBusId");
    int count = 0, processors = 0, threads = 0;
    if (count_devices != NULL && attribute != NULL && count_devices(&count) != 0) count = 0;
    for (int i = 0; i < count && i < PROF_DEVICES_MAX; i++) {
        if (attribute(&processors, PROCESSORS, i) != 0 || attribute(&threads, THREADS_PER_PROCESSOR, i) != 0) continue;
        c->intervals.capacity_of[i] = (uint64_t)processors * (uint64_t)threads;
    }
    int device = 0;
    if (asks && current != NULL && current(&device) == 0) c->intervals.device = (uint32_t)device;
    if (get_bus_id == NULL || get_bus_id(bus_id, 32, (int)c->intervals.device) != 0) bus_id[0] = '\0';
}

bool prof_cupti_devices(ProfCupti *c, bool asks, char bus_id[32]) {
    const ProfInterval *first = prof_intervals_first(&c->intervals);
    bus_id[0] = '\0';
    if (first == NULL && !asks) return false;
    c->intervals.device = first != NULL ? first->device : 0;
    void *runtime = loaded_runtime();
    if (runtime == NULL) return true;
    ask_runtime(c, runtime, first == NULL, bus_id);
    dlclose(runtime);
    return true;
}
