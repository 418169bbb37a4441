// A user's shared library (kernels/shoal_objective.h), opened.
//
// Ownership: kern_library_open()/kern_library_close(). Errors: STATUS_USAGE where it is no library or lacks
// shoal_objective(), STATUS_SYSTEM where its own shoal_objective_open() fails. Thread safety: one thread at a time, but
// for `call`.
#ifndef SHOAL_KERNELS_OBJECTIVE_LIBRARY_H
#define SHOAL_KERNELS_OBJECTIVE_LIBRARY_H

#include "kernels/objective.h"

#ifdef __cplusplus
extern "C" {
#endif

// Zeros: none is open.
typedef struct KernLibrary {
    void *handle;
    double (*call)(const float *x, int32_t dim, int32_t thread);
    void (*end)(void); // NULL: nothing to be called
} KernLibrary;

// Only loads it, and looks for what it must have.
Status kern_library_check(const KernObjective *objective) HOST_MUST_CHECK;

Status kern_library_open(const KernObjective *objective, int32_t dim, int32_t threads, uint64_t seed,
                         KernLibrary *library) HOST_MUST_CHECK;
void kern_library_close(KernLibrary *library);

#ifdef __cplusplus
}
#endif

#endif
