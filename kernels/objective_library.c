#include "kernels/objective_library.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stddef.h>
#include <string.h>

// A library that was linked with fast-math makes the thread that loads it flush subnormals to zero: not here.
static void *load(const char *path) {
    fenv_t kept;
    bool is_kept = fegetenv(&kept) == 0;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (is_kept) fesetenv(&kept);
    return handle;
}

// ISO C has no conversion from what dlsym() gives to a pointer to a function.
static bool find(void *handle, const char *name, void *function) {
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static Status load_library(const KernObjective *objective, KernLibrary *library) {
    *library = (KernLibrary){0};
    library->handle = load(kern_objective_argument(objective));
    if (library->handle == NULL) return host_fail(STATUS_USAGE, "%s: cannot be loaded: %s", objective->name, dlerror());
    if (find(library->handle, "shoal_objective", &library->call)) return STATUS_OK;
    kern_library_close(library);
    return host_fail(STATUS_USAGE, "%s: has no function shoal_objective(), with C's linkage: see shoal_objective.h",
                     objective->name);
}

Status kern_library_check(const KernObjective *objective) {
    KernLibrary library;
    TRY(load_library(objective, &library));
    kern_library_close(&library);
    return STATUS_OK;
}

Status kern_library_open(const KernObjective *objective, int32_t dim, int32_t threads, uint64_t seed,
                         KernLibrary *library) {
    int32_t (*begin)(int32_t dim, int32_t threads, uint64_t seed);
    TRY(load_library(objective, library));
    int32_t number = find(library->handle, "shoal_objective_open", &begin) ? begin(dim, threads, seed) : 0;
    if (number == 0) {
        find(library->handle, "shoal_objective_close", &library->end);
        return STATUS_OK;
    }
    kern_library_close(library);
    return host_fail(STATUS_SYSTEM, "%s: its shoal_objective_open() gave %d", objective->name, number);
}

void kern_library_close(KernLibrary *library) {
    if (library->end != NULL) library->end();
    if (library->handle != NULL) dlclose(library->handle);
    *library = (KernLibrary){0};
}
