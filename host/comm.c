#include "host/comm.h"

#include "host/trace.h"

static Status check_rank(const HostComm *comm, const char *call, int rank) {
    if (rank < 0 || rank >= comm->size)
        return host_fail(STATUS_SYSTEM, "%s %s: rank %d of a group of %d", comm->ops->name, call, rank, comm->size);
    return STATUS_OK;
}

Status host_comm_all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s) {
    HOST_TRACE_SCOPE(COMMUNICATION, "all_gather");
    TRY(comm->ops->all_gather(comm, part, all, part_bytes, deadline_s));
    comm->traffic_bytes += (int64_t)comm->size * (comm->size - 1) * (int64_t)part_bytes;
    return STATUS_OK;
}

Status host_comm_broadcast(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s) {
    HOST_TRACE_SCOPE(COMMUNICATION, "broadcast");
    TRY(check_rank(comm, "broadcast", root));
    TRY(comm->ops->broadcast(comm, data, size_bytes, root, deadline_s));
    comm->traffic_bytes += (int64_t)(comm->size - 1) * (int64_t)size_bytes;
    return STATUS_OK;
}

Status host_comm_send(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s) {
    HOST_TRACE_SCOPE(COMMUNICATION, "send");
    TRY(check_rank(comm, "send", to));
    return comm->ops->send(comm, data, size_bytes, to, deadline_s);
}

Status host_comm_recv(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s) {
    HOST_TRACE_SCOPE(COMMUNICATION, "recv");
    TRY(check_rank(comm, "recv", from));
    return comm->ops->recv(comm, data, size_bytes, from, deadline_s);
}

Status host_comm_barrier(HostComm *comm, double deadline_s) {
    HOST_TRACE_SCOPE(COMMUNICATION, "barrier");
    return comm->ops->barrier(comm, deadline_s);
}

void host_comm_abort(HostComm *comm) { comm->ops->abort(comm); }

void host_comm_free(HostComm *comm) {
    if (comm != NULL) comm->ops->free(comm);
}
