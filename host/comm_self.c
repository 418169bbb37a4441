#include "host/comm.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The group of one process. No call ever waits, so deadlines are met by themselves.
typedef struct CommSelf {
    HostComm base;
    atomic_bool is_aborted;
} CommSelf;

static Status check_alive(HostComm *comm, const char *call) {
    if (atomic_load(&((CommSelf *)comm)->is_aborted))
        return host_fail(STATUS_STOPPED, "self %s: the group was aborted", call);
    return STATUS_OK;
}

static Status self_all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s) {
    (void)deadline_s;
    TRY(check_alive(comm, "all_gather"));
    if (part != all && part_bytes > 0) memcpy(all, part, part_bytes);
    return STATUS_OK;
}

static Status self_broadcast(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s) {
    (void)data, (void)size_bytes, (void)root, (void)deadline_s;
    return check_alive(comm, "broadcast");
}

static Status self_send(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s) {
    (void)data, (void)deadline_s;
    TRY(check_alive(comm, "send"));
    return host_fail(STATUS_SYSTEM, "self send: %zu bytes to rank %d, which is the sender itself", size_bytes, to);
}

static Status self_recv(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s) {
    (void)data, (void)deadline_s;
    TRY(check_alive(comm, "recv"));
    return host_fail(STATUS_SYSTEM, "self recv: %zu bytes from rank %d, which is the receiver itself", size_bytes,
                     from);
}

static Status self_barrier(HostComm *comm, double deadline_s) {
    (void)deadline_s;
    return check_alive(comm, "barrier");
}

static void self_abort(HostComm *comm) { atomic_store(&((CommSelf *)comm)->is_aborted, true); }

static void self_free(HostComm *comm) { free(comm); }

static const HostCommOps self_ops = {
    .name = "self",
    .all_gather = self_all_gather,
    .broadcast = self_broadcast,
    .send = self_send,
    .recv = self_recv,
    .barrier = self_barrier,
    .abort = self_abort,
    .free = self_free,
};

Status host_comm_self(HostComm **comm) {
    CommSelf *self = calloc(1, sizeof *self);
    if (self == NULL) return host_fail(STATUS_MEMORY, "no memory for a group of one");
    self->base = (HostComm){.ops = &self_ops, .rank = 0, .size = 1};
    *comm = &self->base;
    return STATUS_OK;
}
