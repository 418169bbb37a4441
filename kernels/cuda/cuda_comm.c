// Groups of GPUs by NCCL, as host/comm.h has them. Communicators do not block, and one thread alone, that of the calls,
// is ever in NCCL: it waits by asking for the communicator's state and the stream's, and an abort is a flag that it
// sees meanwhile. So, when a member dies and all of the group are aborted, none is stuck within NCCL when it aborts.
//
// It is here, and not in host/, because it needs the device's streams and memory.
#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/clock.h"
#include "kernels/cuda/cuda_backend.h"

#define LOOK_S 0.05 // between two looks whether a group that is being formed is still wanted
enum { STAGE_BYTES = 4 << 20, SPINS = 64, NAP_NS = 50000 };

typedef struct CudaComm {
    HostComm base;
    CudaBackend *backend;
    NcclHandle handle; // NULL: there is none yet
    atomic_bool is_aborted;
    char *d_stage; // [STAGE_BYTES] for what lies in host memory
} CudaComm;

static const NcclLibrary *nccl(const CudaComm *c) { return &c->backend->nccl; }

static Status fail(const CudaComm *c, const char *call, NcclResult result) {
    const char *more = c->handle != NULL ? nccl(c)->last_error(c->handle) : NULL;
    bool has_more = more != NULL && more[0] != '\0';
    return cuda_fail(c->backend, STATUS_SYSTEM, "nccl %s, rank %d of %d: %s%s%s", call, c->base.rank, c->base.size,
                     nccl(c)->error_string(result), has_more ? ": " : "", has_more ? more : "");
}

// ---- waiting -------------------------------------------------------------------------------------------------------

// Between two looks; count: of those so far.
static void pause_briefly(int *count) {
    if (++*count < SPINS) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
}

static NcclResult state_of(const CudaComm *c) {
    NcclResult state = NCCL_SUCCESS, result = nccl(c)->async_error(c->handle, &state);
    return result != NCCL_SUCCESS ? result : state;
}

// Whether what was put into the stream is done. Only where NCCL's state is a success does the stream hold all of it.
static Status look(const CudaComm *c, const char *call, bool *is_done) {
    NcclResult state = state_of(c);
    if (state == NCCL_IN_PROGRESS) return STATUS_OK;
    if (state != NCCL_SUCCESS) return fail(c, call, state);
    cudaError_t error = cudaStreamQuery(c->backend->stream);
    *is_done = error == cudaSuccess;
    if (error == cudaSuccess || error == cudaErrorNotReady) return STATUS_OK;
    return cuda_failed(c->backend, (int)error, "cudaStreamQuery", __FILE__, __LINE__);
}

static Status await(CudaComm *c, const char *call, NcclResult begun, double deadline_s) {
    if (begun != NCCL_SUCCESS && begun != NCCL_IN_PROGRESS) return fail(c, call, begun);
    bool is_done = false;
    for (int pauses = 0; !is_done; pause_briefly(&pauses)) {
        if (atomic_load(&c->is_aborted))
            return cuda_fail(c->backend, STATUS_STOPPED, "nccl %s: the group was aborted", call);
        TRY(look(c, call, &is_done));
        if (!is_done && host_now_s() > deadline_s)
            return cuda_fail(c->backend, STATUS_SYSTEM, "nccl %s, rank %d of %d: not all members came in time", call,
                             c->base.rank, c->base.size);
    }
    return STATUS_OK;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

typedef enum Call { CALL_ALL_GATHER, CALL_BROADCAST, CALL_SEND, CALL_RECV, CALLS } Call;

static const char *const call_names[CALLS] = {"all_gather", "broadcast", "send", "recv"};

// One call with buffers on the device. part: of an all-gather, or the data; peer: the other rank, or the root.
static Status call_device(CudaComm *c, Call call, const void *part, void *all, size_t bytes, int peer,
                          double deadline_s) {
    const NcclLibrary *n = nccl(c);
    struct CUstream_st *stream = c->backend->stream;
    NcclResult begun = NCCL_SUCCESS;
    if (call == CALL_ALL_GATHER) begun = n->all_gather(part, all, bytes, NCCL_BYTES, c->handle, stream);
    if (call == CALL_BROADCAST) begun = n->broadcast(all, all, bytes, NCCL_BYTES, peer, c->handle, stream);
    if (call == CALL_SEND) begun = n->send(part, bytes, NCCL_BYTES, peer, c->handle, stream);
    if (call == CALL_RECV) begun = n->recv(all, bytes, NCCL_BYTES, peer, c->handle, stream);
    return await(c, call_names[call], begun, deadline_s);
}

// The same from and to host memory, piece by piece.
static Status call_host(CudaComm *c, Call call, const char *part, char *all, size_t bytes, int peer,
                        double deadline_s) {
    const CudaBackend *backend = c->backend;
    bool gathers = call == CALL_ALL_GATHER;
    size_t rows = gathers ? (size_t)c->base.size : 1, most = STAGE_BYTES / rows,
           row = gathers ? (size_t)c->base.rank : 0;
    bool gives = gathers || call == CALL_SEND || (call == CALL_BROADCAST && peer == c->base.rank);
    bool takes = gathers || call == CALL_RECV || (call == CALL_BROADCAST && peer != c->base.rank);
    for (size_t at = 0; at < bytes; at += most) {
        size_t piece = bytes - at < most ? bytes - at : most;
        char *own = c->d_stage + row * piece;
        if (gives) CUDA_TRY(backend, cudaMemcpyAsync(own, part + at, piece, cudaMemcpyHostToDevice, backend->stream));
        TRY(call_device(c, call, own, c->d_stage, piece, peer, deadline_s));
        if (!takes) continue;
        CUDA_TRY(backend, cudaMemcpy2DAsync(all + at, bytes, c->d_stage, piece, piece, rows, cudaMemcpyDeviceToHost,
                                            backend->stream));
        CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    }
    return STATUS_OK;
}

static Status is_on_device(const CudaComm *c, const void *data, bool *is_there) {
    struct cudaPointerAttributes attributes;
    CUDA_TRY(c->backend, cudaPointerGetAttributes(&attributes, data));
    *is_there = attributes.type == cudaMemoryTypeDevice;
    return STATUS_OK;
}

static Status make_call(HostComm *comm, Call call, const void *part, void *all, size_t bytes, int peer,
                        double deadline_s) {
    CudaComm *c = (CudaComm *)comm;
    if (bytes == 0) return STATUS_OK;
    TRY(cuda_enter(c->backend));
    bool is_there = false;
    TRY(is_on_device(c, part, &is_there));
    return is_there ? call_device(c, call, part, all, bytes, peer, deadline_s)
                    : call_host(c, call, part, all, bytes, peer, deadline_s);
}

static Status comm_all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s) {
    return make_call(comm, CALL_ALL_GATHER, part, all, part_bytes, 0, deadline_s);
}

static Status comm_broadcast(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s) {
    return make_call(comm, CALL_BROADCAST, data, data, size_bytes, root, deadline_s);
}

static Status check_other(const HostComm *comm, const char *call, int rank) {
    const CudaComm *c = (const CudaComm *)comm;
    if (rank != comm->rank) return STATUS_OK;
    return cuda_fail(c->backend, STATUS_SYSTEM, "nccl %s: rank %d is the caller itself", call, rank);
}

static Status comm_send(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s) {
    TRY(check_other(comm, "send", to));
    return make_call(comm, CALL_SEND, data, NULL, size_bytes, to, deadline_s);
}

static Status comm_recv(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s) {
    TRY(check_other(comm, "recv", from));
    return make_call(comm, CALL_RECV, data, data, size_bytes, from, deadline_s);
}

static Status comm_barrier(HostComm *comm, double deadline_s) {
    const CudaComm *c = (const CudaComm *)comm;
    return make_call(comm, CALL_ALL_GATHER, c->d_stage + comm->rank, c->d_stage, 1, 0, deadline_s);
}

static void comm_abort(HostComm *comm) { atomic_store(&((CudaComm *)comm)->is_aborted, true); }

// ---- the end -------------------------------------------------------------------------------------------------------

// An abort, always: what was called is over, and to go in good order NCCL would wait for the others, who may not go
// yet.
static void comm_free(HostComm *comm) {
    CudaComm *c = (CudaComm *)comm;
    const CudaBackend *backend = c->backend;
    // Nobody to tell where something fails: after a fault every call does.
    (void)cudaSetDevice(backend->device);
    if (c->handle != NULL) (void)nccl(c)->abort(c->handle);
    if (c->d_stage != NULL) (void)cudaFree(c->d_stage);
    free(c);
}

// ---- the beginning -------------------------------------------------------------------------------------------------

static const HostCommOps comm_ops = {
    .name = "nccl",
    .all_gather = comm_all_gather,
    .broadcast = comm_broadcast,
    .send = comm_send,
    .recv = comm_recv,
    .barrier = comm_barrier,
    .abort = comm_abort,
    .free = comm_free,
};

// The first member makes the group's id, which the others have from it; they say that they have come.
static Status share_id(const CudaComm *c, const HostCommOptions *options, const char *key, double deadline_s,
                       NcclId *id) {
    if (options->rank == 0) {
        NcclResult result = nccl(c)->get_unique_id(id);
        if (result != NCCL_SUCCESS) return fail(c, "id", result);
        if (options->store.set(options->store.self, key, id, sizeof *id)) return STATUS_OK;
        return cuda_fail(c->backend, STATUS_SYSTEM, "nccl group: the store of addresses takes no id");
    }
    char mine[160];
    snprintf(mine, sizeof mine, "%s/%d", key, options->rank);
    if (!options->store.set(options->store.self, mine, "", 0))
        return cuda_fail(c->backend, STATUS_SYSTEM, "nccl group: it is not wanted any more");
    double left_s = deadline_s - host_now_s();
    int64_t size = options->store.get(options->store.self, key, id, sizeof *id, left_s > 0 ? left_s : 0);
    if (size == (int64_t)sizeof *id) return STATUS_OK;
    return cuda_fail(c->backend, STATUS_SYSTEM, "nccl group, rank %d of %d: no id came in time", options->rank,
                     options->size);
}

// Until all members are there. The store holds the id for as long as the group is wanted.
static Status await_members(const CudaComm *c, const HostCommOptions *options, const char *key, double deadline_s) {
    double look_s = host_now_s() + LOOK_S;
    NcclResult state = NCCL_IN_PROGRESS;
    for (int pauses = 0; state == NCCL_IN_PROGRESS; pause_briefly(&pauses)) {
        state = state_of(c);
        double now_s = host_now_s();
        if (now_s > deadline_s)
            return cuda_fail(c->backend, STATUS_SYSTEM, "nccl group, rank %d of %d: not all members came in time",
                             options->rank, options->size);
        if (state != NCCL_IN_PROGRESS || now_s < look_s) continue;
        NcclId id;
        look_s = now_s + LOOK_S;
        if (c->backend->host.stop_requested() ||
            options->store.get(options->store.self, key, &id, sizeof id, 0) != (int64_t)sizeof id)
            return cuda_fail(c->backend, STATUS_STOPPED, "nccl group: it is not wanted any more");
    }
    return state == NCCL_SUCCESS ? STATUS_OK : fail(c, "group", state);
}

static Status connect(CudaComm *c, const HostCommOptions *options, double deadline_s) {
    const CudaBackend *backend = c->backend;
    char key[128];
    NcclId id;
    NcclConfig config = NCCL_NONBLOCKING;
    snprintf(key, sizeof key, "%s/nccl", options->group);
    TRY(cuda_enter(backend));
    void *stage = NULL;
    CUDA_TRY(backend, cudaMalloc(&stage, STAGE_BYTES));
    c->d_stage = stage;
    CUDA_TRY(backend, cudaMemsetAsync(stage, 0, STAGE_BYTES, backend->stream));
    TRY(share_id(c, options, key, deadline_s, &id));
    NcclResult begun = nccl(c)->init_rank(&c->handle, options->size, id, options->rank, &config);
    if (begun != NCCL_SUCCESS && begun != NCCL_IN_PROGRESS) return fail(c, "group", begun);
    return await_members(c, options, key, deadline_s);
}

Status cuda_comm_open(KernBackend *base, const HostCommOptions *options, double deadline_s, HostComm **comm) {
    CudaBackend *backend = (CudaBackend *)base;
    char missing[256];
    *comm = NULL;
    if (options->size < 1 || options->rank < 0 || options->rank >= options->size)
        return cuda_fail(backend, STATUS_SYSTEM, "nccl: rank %d of a group of %d", options->rank, options->size);
    if (!nccl_library_open(&backend->nccl, NCCL_LIBRARY, missing, sizeof missing))
        return cuda_fail(backend, STATUS_SYSTEM, "no groups of several GPUs: %s", missing);
    CudaComm *c = calloc(1, sizeof *c);
    if (c == NULL) return cuda_fail(backend, STATUS_MEMORY, "no memory for a group");
    c->base = (HostComm){.ops = &comm_ops, .rank = options->rank, .size = options->size, .takes_device = true};
    c->backend = backend;
    *comm = &c->base;
    return connect(c, options, deadline_s);
}

// ---- what a GPU has ------------------------------------------------------------------------------------------------

// Parts of one GPU have one bus address, and NCCL takes them for one.
void cuda_comm_describe(KernBackend *base, const char *address, HostCommGpu *gpu) {
    CudaBackend *backend = (CudaBackend *)base;
    char machine[40] = "", bus[24] = "";
    nccl_choose_interface(address);
    memset(gpu, 0, sizeof *gpu);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL && fscanf(file, "%36s", machine) != 1) machine[0] = '\0';
    if (file != NULL) fclose(file);
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, backend->device) != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(bus, sizeof bus, "%d", backend->device);
    }
    snprintf(gpu->id, sizeof gpu->id, "%s %s", machine, bus);
    if (nccl_library_open(&backend->nccl, NCCL_LIBRARY, gpu->missing, sizeof gpu->missing))
        gpu->version = backend->nccl.version;
}
