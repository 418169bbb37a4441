// The few functions of NCCL that Shoal calls, from libnccl.so.2, which is opened at run time. nccl.h comes with NCCL
// and not with every toolkit, so they are declared here. Source: NVIDIA's NCCL API reference, 2.14 and later, the first
// with communicators that do not block.
//
// Ownership: what is opened stays open. Errors: an NcclResult. Thread safety: one thread at a time for each
// communicator.
#ifndef SHOAL_KERNELS_CUDA_NCCL_LIBRARY_H
#define SHOAL_KERNELS_CUDA_NCCL_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_LIBRARY "libnccl.so.2"

struct CUstream_st;

typedef struct NcclCommunicator *NcclHandle;

typedef enum NcclResult {
    NCCL_SUCCESS = 0,
    NCCL_IN_PROGRESS = 7, // what was begun is not done; nccl.comm_async_error() says when it is
} NcclResult;

typedef struct NcclId {
    char bytes[128];
} NcclId;

// As of 2.14: of a newer library what it knows beyond that has its defaults.
typedef struct NcclConfig {
    size_t size;
    unsigned magic, version;
    int is_blocking;
} NcclConfig;

#define NCCL_VERSION_MIN 21400
#define NCCL_NONBLOCKING \
    { sizeof(NcclConfig), 0xcafebeef, NCCL_VERSION_MIN, false }

enum { NCCL_BYTES = 0 }; // ncclInt8: counts are of bytes

// N(member, NCCL's name, parameters, what it gives)
#define NCCL_FUNCTIONS(N)                                                                                             \
    N(get_version, "ncclGetVersion", (int *version), NcclResult)                                                      \
    N(get_unique_id, "ncclGetUniqueId", (NcclId * id), NcclResult)                                                    \
    N(init_rank, "ncclCommInitRankConfig",                                                                            \
      (NcclHandle * comm, int size, NcclId id, int rank, const NcclConfig *config), NcclResult)                       \
    N(abort, "ncclCommAbort", (NcclHandle comm), NcclResult)                                                          \
    N(async_error, "ncclCommGetAsyncError", (NcclHandle comm, NcclResult * state), NcclResult)                        \
    N(error_string, "ncclGetErrorString", (NcclResult result), const char *)                                          \
    N(last_error, "ncclGetLastError", (NcclHandle comm), const char *)                                                \
    N(all_gather, "ncclAllGather",                                                                                    \
      (const void *part, void *all, size_t count, int type, NcclHandle comm, struct CUstream_st *stream), NcclResult) \
    N(broadcast, "ncclBroadcast",                                                                                     \
      (const void *from, void *to, size_t count, int type, int root, NcclHandle comm, struct CUstream_st *stream),    \
      NcclResult)                                                                                                     \
    N(send, "ncclSend",                                                                                               \
      (const void *data, size_t count, int type, int to, NcclHandle comm, struct CUstream_st *stream), NcclResult)    \
    N(recv, "ncclRecv", (void *data, size_t count, int type, int from, NcclHandle comm, struct CUstream_st *stream),  \
      NcclResult)

typedef struct NcclLibrary {
    bool is_open;
    int version;                                                                  // as NCCL numbers itself: 22809
#define NCCL_MEMBER(member, name, parameters, result) result(*member) parameters; // NOLINT(bugprone-macro-parentheses)
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
} NcclLibrary;

// Opens `file` (NCCL_LIBRARY), unless it is open. False: it cannot be used, and `missing` says why.
bool nccl_library_open(NcclLibrary *library, const char *file, char *missing, size_t size);

// Before the first group: NCCL listens at the interface of that address, NULL: loopback, and nowhere else, unless
// NCCL_SOCKET_IFNAME says otherwise. An address that is no interface's leaves the choice to NCCL. It sets that
// variable, which NCCL reads once: to be called before the process has threads that may look at the environment.
void nccl_choose_interface(const char *address);

#ifdef __cplusplus
}
#endif

#endif
