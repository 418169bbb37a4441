// How many processors a process may use, and pinning to them. Private to host/pool*.c and its test.
//
// Ownership: HostCores owns a hwloc topology until freed. Errors: STATUS_SYSTEM. Thread safety: one thread at a time.
#ifndef SHOAL_HOST_POOL_CPU_H
#define SHOAL_HOST_POOL_CPU_H

#include "host/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// Processors that the cgroup's CPU quota amounts to, rounded up; 0 if there is no quota. `membership` is
// /proc/self/cgroup, `mount` is /sys/fs/cgroup, or a test's imitation of them.
int host_cpu_quota(const char *membership, const char *mount);

// The places threads are pinned to: one hardware thread of each allowed core, then the second ones.
typedef struct HostCores HostCores;

Status host_cores_init(HostCores **cores) HOST_MUST_CHECK;
void host_cores_free(HostCores *cores); // NULL is fine

// Pins the calling thread to place `index` (modulo their number).
Status host_cores_pin(HostCores *cores, int index) HOST_MUST_CHECK;

// Gives the calling thread back the places it had when `cores` was made.
void host_cores_unpin(HostCores *cores);

#ifdef __cplusplus
}
#endif

#endif
