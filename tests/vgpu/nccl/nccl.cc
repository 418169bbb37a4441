// The stand-in for NCCL: communicators between processes and threads of one machine. It has the real library's rules:
// two ranks on one device are refused, calls are in the order of a stream, a rank that is gone is noticed by nobody and
// what waits for it hangs until it is aborted, communicators that do not block say how far they are when they are
// asked.
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/vgpu/nccl/communicator.h"

using namespace vgpu;

namespace {

struct Queued {
    ncclComm_t comm;
    cudaStream_t stream;
    Task task;
};

thread_local int group_depth = 0;
thread_local std::vector<Queued> queued; // until the group's end

size_t size_of(ncclDataType_t type) {
    static const size_t sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < ncclNumTypes ? sizes[type] : 0;
}

// NCCL itself does not look, and ends in an illegal address.
bool is_of_device(const void *data, int device) {
    cudaPointerAttributes attributes;
    return cudaPointerGetAttributes(&attributes, data) == cudaSuccess && attributes.type == cudaMemoryTypeDevice &&
           attributes.device == device;
}

// What all calls check. `data` is in the memory of the communicator's device.
ncclResult_t check(ncclComm_t comm, ncclDataType_t type, int peer, std::initializer_list<const void *> data) {
    if (comm == nullptr || size_of(type) == 0 || peer < 0 || peer >= comm->place().ranks) return ncclInvalidArgument;
    ncclResult_t result = comm->ready();
    for (const void *at : data)
        if (result == ncclSuccess && !is_of_device(at, comm->device())) result = ncclInvalidArgument;
    return result;
}

ncclResult_t submit(ncclComm_t comm, cudaStream_t stream, Task task) {
    if (group_depth == 0) return comm->launch(std::move(task), stream);
    for (Queued &other : queued) {
        if (other.comm != comm || other.stream != stream) continue;
        other.task.pieces.insert(other.task.pieces.end(), task.pieces.begin(), task.pieces.end());
        other.task.copies.insert(other.task.copies.end(), task.copies.begin(), task.copies.end());
        return ncclSuccess;
    }
    queued.push_back({comm, stream, std::move(task)});
    return ncclSuccess;
}

Place place_here(int ranks, int rank, int device) {
    Place place;
    char machine[40] = "", bus[20] = "";
    if (FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r")) {
        if (fscanf(file, "%39s", machine) != 1) machine[0] = '\0';
        fclose(file);
    }
    place.ranks = ranks;
    place.rank = rank;
    cudaDeviceGetPCIBusId(bus, sizeof bus, device);
    snprintf(place.device, sizeof place.device, "%s %s", machine, bus);
    return place;
}

} // namespace

// ---- the library ---------------------------------------------------------------------------------------------------

ncclResult_t ncclGetVersion(int *version) {
    if (version == nullptr) return ncclInvalidArgument;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) { return id == nullptr ? ncclInvalidArgument : bootstrap_make(id); }

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
        return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
        return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
        return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
        return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
        return "remote process exited or there was a network error";
    case ncclInProgress:
        return "NCCL operation in progress";
    }
    return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) { return comm != nullptr ? comm->link().error() : ""; }

// ---- communicators -------------------------------------------------------------------------------------------------

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
    if (comm == nullptr) return ncclInvalidArgument;
    *comm = nullptr;
    bool has_config = config != nullptr;
    if (has_config && (config->size < sizeof *config || config->magic != NCCL_CONFIG_MAGIC)) return ncclInvalidArgument;
    if (group_depth > 0) return ncclInvalidUsage; // the stand-in has no groups of these
    if (ranks < 1 || ranks > RANKS_MOST || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaFree(nullptr) != cudaSuccess) return ncclUnhandledCudaError;
    bool is_blocking = !has_config || config->blocking != 0; // INT_MIN: not said
    auto made = std::make_unique<ncclComm>(id, place_here(ranks, rank, device), device, is_blocking);
    ncclResult_t state = made->link().state;
    if (!is_blocking || state == ncclSuccess) *comm = made.release();
    return state;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    ncclResult_t result = comm->ready();
    if (result != ncclSuccess) return result;
    return comm->is_finalized() ? ncclInvalidArgument : comm->finalize();
}

// Waits, whatever the communicator does otherwise.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    ncclResult_t result = comm->ready();
    if (result != ncclSuccess) return result;
    if (!comm->is_finalized()) comm->finalize();
    comm->wait();
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    comm->abort();
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
    if (comm == nullptr || state == nullptr) return ncclInvalidArgument;
    *state = comm->link().state;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count) {
    if (comm == nullptr || count == nullptr) return ncclInvalidArgument;
    *count = comm->place().ranks;
    return comm->ready();
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
    if (comm == nullptr || rank == nullptr) return ncclInvalidArgument;
    *rank = comm->place().rank;
    return comm->ready();
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device) {
    if (comm == nullptr || device == nullptr) return ncclInvalidArgument;
    *device = comm->device();
    return comm->ready();
}

// ---- calls ---------------------------------------------------------------------------------------------------------

ncclResult_t ncclGroupStart(void) {
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    if (group_depth == 0) return ncclInvalidUsage;
    if (--group_depth > 0) return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    for (Queued &call : std::exchange(queued, {})) {
        ncclResult_t one = call.comm->ready();
        if (one == ncclSuccess) one = call.comm->launch(std::move(call.task), call.stream);
        if (one != ncclSuccess && (result == ncclSuccess || result == ncclInProgress)) result = one;
    }
    return result;
}

ncclResult_t ncclAllGather(const void *part, void *all, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    ncclResult_t result = check(comm, type, 0, {part, all});
    if (result != ncclSuccess || count == 0) return result;
    size_t bytes = count * size_of(type);
    Task task;
    for (int peer = 0; peer < comm->place().ranks; peer++) {
        uint8_t *theirs = static_cast<uint8_t *>(all) + static_cast<size_t>(peer) * bytes;
        if (peer != comm->place().rank) {
            task.pieces.push_back({peer, const_cast<void *>(part), bytes, true});
            task.pieces.push_back({peer, theirs, bytes, false});
        } else if (theirs != part) {
            task.copies.push_back({theirs, part, bytes});
        }
    }
    return submit(comm, stream, std::move(task));
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
    ncclResult_t result = check(comm, type, root, {to});
    if (result != ncclSuccess || count == 0) return result;
    size_t bytes = count * size_of(type);
    Task task;
    if (comm->place().rank != root) {
        task.pieces.push_back({root, to, bytes, false});
        return submit(comm, stream, std::move(task));
    }
    if (!is_of_device(from, comm->device())) return ncclInvalidArgument;
    for (int peer = 0; peer < comm->place().ranks; peer++)
        if (peer != root) task.pieces.push_back({peer, const_cast<void *>(from), bytes, true});
    if (from != to) task.copies.push_back({to, from, bytes});
    return submit(comm, stream, std::move(task));
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    ncclResult_t result = check(comm, type, peer, {data});
    if (result != ncclSuccess || count == 0) return result;
    Task task;
    task.pieces.push_back({peer, const_cast<void *>(data), count * size_of(type), true});
    return submit(comm, stream, std::move(task));
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    ncclResult_t result = check(comm, type, peer, {data});
    if (result != ncclSuccess || count == 0) return result;
    Task task;
    task.pieces.push_back({peer, data, count * size_of(type), false});
    return submit(comm, stream, std::move(task));
}
