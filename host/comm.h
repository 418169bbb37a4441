// Collectives between trainers: one interface for a single process (self), Gloo between any, and NCCL between GPUs.
//
// All members of a group make the same calls in the same order. Buffers lie in host memory, or, where the group takes
// such, in that of the member's device; then a call comes after what its stream holds, and is over when it returns.
// Every call has a deadline on the host_now_s() clock; a call that misses it, or finds a peer gone, fails, and the
// group is then good for nothing but abort and free: what it left in a stream ends only then. One that waits for a
// living member may not find out about a dead one: whoever fails sees to it that all abort.
//
// Ownership: the creator of a HostComm frees it; buffers are borrowed for the call. Errors: STATUS_STOPPED after an
// abort, STATUS_SYSTEM for a missed deadline or a lost peer. Thread safety: one call at a time, except
// host_comm_abort(), which any thread may call to wake one that waits; it never waits itself.
#ifndef SHOAL_HOST_COMM_H
#define SHOAL_HOST_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostComm HostComm;

// How long calls wait at most where somebody else sees to it that a group with a dead member is aborted.
#define HOST_COMM_PATIENCE_S 120.0

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
    int64_t traffic_bytes; // that all members' all-gathers and broadcasts have moved between them
    bool takes_device;     // buffers may lie in the memory of the member's device
};

// The group of one: copies. Sending to oneself is a mistake and fails, since nobody could be receiving.
Status host_comm_self(HostComm **comm) HOST_MUST_CHECK;

// Where the members of a group find each other: keys with values of some hundred bytes, which all of them can set and
// get.
typedef struct HostCommStore {
    void *self;
    // False: it could not be done. Called by one thread at a time.
    bool (*set)(void *self, const char *key, const void *value, size_t size_bytes);
    // The value's size, at most size_max; -1: the key was not set within timeout_s.
    int64_t (*get)(void *self, const char *key, void *value, size_t size_max, double timeout_s);
} HostCommStore;

typedef struct HostCommOptions {
    int rank, size;
    HostCommStore store;
    const char *group;   // begins the keys: another one for each group that is ever formed
    const char *address; // that this member listens at, a name or a number; NULL: loopback
} HostCommOptions;

// Forms a group of CPUs through Gloo, over TCP: not encrypted, for a network that is trusted. The options are borrowed
// for the call. SIGPIPE has to be ignored (host_signals_install()): else the death of one member ends those that write
// to it. STATUS_SYSTEM where libshoal_gloo.so is missing, or not all members came by the deadline.
Status host_comm_gloo(const HostCommOptions *options, double deadline_s, HostComm **comm) HOST_MUST_CHECK;

// Whether host_comm_gloo() has what it needs: STATUS_SYSTEM where libshoal_gloo.so is missing or of another build.
Status host_comm_gloo_check(void) HOST_MUST_CHECK;

// What a GPU has for collectives with others, as its trainer tells the master, which chooses what all of a group use.
typedef struct HostCommGpu {
    char id[64];       // its machine's and its own: no two GPUs have the same. "": it is a CPU
    int version;       // of NCCL, as NCCL numbers itself (22809); 0: it cannot be used
    char missing[160]; // why not
} HostCommGpu;

// How a group is formed whose members have a GPU each.
typedef struct HostCommDevice {
    void *self;
    // Where it fails *comm may be there all the same, to be freed.
    Status (*open)(void *self, const HostCommOptions *options, double deadline_s, HostComm **comm);
} HostCommDevice;

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
