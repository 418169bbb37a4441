// Collectives between trainers: one interface for a single process (self, the only one so far), NCCL between GPUs and
// Gloo between CPUs, which later fill in the same table.
//
// All members of a group make the same calls in the same order. Buffers lie in the memory the group was made for (host
// memory for self and Gloo, device memory for NCCL). Every call has a deadline on the host_now_s() clock; a call that
// misses it, or finds a peer gone, fails, and the group is then good for nothing but abort and free.
//
// Ownership: the creator of a HostComm frees it; buffers are borrowed for the call. Errors: STATUS_STOPPED after an
// abort, STATUS_SYSTEM for a missed deadline or a lost peer. Thread safety: one call at a time, except
// host_comm_abort(), which any thread may call to wake one that waits.
#ifndef SHOAL_HOST_COMM_H
#define SHOAL_HOST_COMM_H

#include <stddef.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostComm HostComm;

typedef struct HostCommOps {
    const char *name; // "self", "nccl", "gloo"
    // part: part_bytes of this member; all: [size][part_bytes], by rank. `part` may be this member's place in `all`.
    Status (*all_gather)(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s);
    Status (*broadcast)(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s);
    Status (*send)(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s);
    Status (*recv)(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s);
    Status (*barrier)(HostComm *comm, double deadline_s);
    void (*abort)(HostComm *comm); // wakes every waiting call; idempotent
    void (*free)(HostComm *comm);
} HostCommOps;

struct HostComm {
    const HostCommOps *ops;
    int rank, size;
};

// The group of one: copies. Sending to oneself is a mistake and fails, since nobody could be receiving.
Status host_comm_self(HostComm **comm) HOST_MUST_CHECK;

// The calls themselves; each checks its arguments (ranks in range) and opens a COMMUNICATION scope.
Status host_comm_all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes,
                            double deadline_s) HOST_MUST_CHECK;
Status host_comm_broadcast(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s) HOST_MUST_CHECK;
Status host_comm_send(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s) HOST_MUST_CHECK;
Status host_comm_recv(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s) HOST_MUST_CHECK;
Status host_comm_barrier(HostComm *comm, double deadline_s) HOST_MUST_CHECK;
void host_comm_abort(HostComm *comm);
void host_comm_free(HostComm *comm); // NULL is fine

#ifdef __cplusplus
}
#endif

#endif
