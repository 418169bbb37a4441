// A pool of threads for data-parallel loops.
//
// host_pool_for() cuts [0, count) into pieces of `grain` and hands them out through one atomic counter; the caller
// takes part as worker 0. Which worker gets which piece is not deterministic: results must depend on the piece only,
// and `worker` may choose nothing but scratch memory.
//
// With a profiler attached, threads that help are in the caller's innermost scope meanwhile, and else in a wait.
//
// Ownership: the pool owns its threads until host_pool_free(). Errors: STATUS_USAGE (thread count), STATUS_SYSTEM
// (thread or binding refused). Thread safety: one loop at a time; starting one while another runs on the same pool,
// from inside or from another thread, is a programmer's mistake and aborts. The floating-point state is left alone:
// subnormals stay.
#ifndef SHOAL_HOST_POOL_H
#define SHOAL_HOST_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_THREADS_MAX = 1024 };

typedef struct HostPool HostPool;

// NONE leaves placement to the system; CORE pins worker i (the caller as worker 0 too) to the i-th allowed core,
// one thread per core before the second hardware thread of any.
typedef enum HostBind { HOST_BIND_NONE, HOST_BIND_CORE } HostBind;

typedef void HostPoolBody(void *context, int64_t begin, int64_t end, int worker);

// threads = 0 takes as many as host_cpu_allowed() says.
Status host_pool_create(int threads, HostBind bind, HostPool **pool) HOST_MUST_CHECK;
void host_pool_free(HostPool *pool); // NULL is fine

int host_pool_threads(const HostPool *pool);

// More threads than allowed cores: it runs, but the caller should warn.
bool host_pool_is_oversubscribed(const HostPool *pool);

// Calls body for pieces that cover [0, count) exactly once, and returns when all are done; everything the pieces wrote
// is then visible to the caller. grain >= 1.
void host_pool_for(HostPool *pool, int64_t count, int64_t grain, HostPoolBody *body, void *context);

// Processors the calling thread may use: its affinity mask, cut by the cgroup's CPU quota (v1 or v2, rounded up). At
// least 1; and 1 while the caller is pinned as worker 0 of a pool.
int host_cpu_allowed(void);

// The same of another process, by its own cpuset and this one's quota; 0: this one.
int host_cpu_allowed_to(pid_t pid);

#ifdef __cplusplus
}
#endif

#endif
