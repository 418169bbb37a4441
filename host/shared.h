// Read-only memory that the processes of one user on one host have in common: who comes first fills it, the others wait
// and map it.
//
// It is a file without a name (memfd_create), sealed when it is full. A process that has it open says so by a socket of
// the abstract namespace, whose name holds the memory's, the process's number and the file's; a newcomer finds these
// names in /proc/net/unix, looks what /proc/PID/fd/NUMBER is, and opens it if it is the memory. The one that fills it
// binds another name meanwhile, which is the lock. The kernel takes names away with their process and the memory with
// the last one, however they end: nothing is left, and where the one that fills it dies, the next begins anew. No
// mounted file system has a part in it, so that a small /dev/shm does not matter.
//
// A host is here what shares a network namespace and sees each other's processes. Processes apart, and one that the
// system refuses what is needed, fill memory of their own.
//
// Ownership: host_shared_close() unmaps. Errors: STATUS_MEMORY; STATUS_STOPPED where a stop is asked for on the way;
// those of the function that fills. Thread safety: one thread at a time per HostShared; any number of processes.
#ifndef SHOAL_HOST_SHARED_H
#define SHOAL_HOST_SHARED_H

#include <stddef.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Writes all of `bytes` [size_bytes], which holds zeros; looks for a stop now and then.
typedef Status HostSharedFill(void *context, void *bytes, size_t size_bytes);

typedef struct HostSharedSpec {
    const char *name; // what it holds, and all that decides that; at most 60 characters, no space
    size_t size_bytes;
    double patience_s; // so long it waits for a process that fills it, and then fills memory of its own
    HostSharedFill *fill;
    void *context;
} HostSharedSpec;

typedef struct HostShared {
    const void *bytes; // [size_bytes] aligned to a page
    size_t size_bytes;
    char reason[160]; // why the memory is this process's own; "": it is shared
    int file, sign;   // the memory's, and the socket that says so; -1: none
} HostShared;

Status host_shared_open(HostShared *shared, const HostSharedSpec *spec) HOST_MUST_CHECK;
void host_shared_close(HostShared *shared); // what was not opened holds zeros

#ifdef __cplusplus
}
#endif

#endif
