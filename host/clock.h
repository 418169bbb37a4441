// Monotonic time, and a thread's own. Errors: none. Thread safety: any thread.
#ifndef SHOAL_HOST_CLOCK_H
#define SHOAL_HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int64_t host_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

// The processor time that the calling thread has taken; a system call.
static inline int64_t host_thread_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + (int64_t)used.tv_nsec;
}

static inline double host_now_s(void) { return 1e-9 * (double)host_now_ns(); }

#ifdef __cplusplus
}
#endif

#endif
