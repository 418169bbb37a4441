// What the program and libshoal_cuda.so know of each other: one entry of the library, and the functions of host/ and
// kernels/ that the library calls back. They are handed over in a table because the library is opened with dlopen and a
// program does not export its symbols; a copy of host/ inside the library would keep messages, the stop flag and the
// profiler's hooks to itself.
//
// Ownership: the library copies the table. Errors: as in kernels/kern.h. Thread safety: the functions' own.
#ifndef SHOAL_KERNELS_CUDA_CUDA_HOST_H
#define SHOAL_KERNELS_CUDA_CUDA_HOST_H

#include <stdbool.h>

#include "host/plan.h"
#include "host/status.h"
#include "host/trace.h"
#include "kernels/kern.h"
#include "kernels/ppo_group.h"
#include "kernels/ppo_kern.h"

#ifdef __cplusplus
extern "C" {
#endif

// Raised whenever this table, or a struct of host/comm.h, kernels/kern.h, policy.h, ppo_kern.h or ppo_group.h, changes:
// a library from another build is refused.
enum { CUDA_HOST_VERSION = 9 };

#define CUDA_LIBRARY "libshoal_cuda.so"
#define CUDA_ENTRY   "shoal_cuda_backend_open"

typedef struct CudaHost {
    // These two stay first, for good: a library of any version can read the one and say so through the other.
    int version;
    Status (*fail_at)(const char *file, int line, Status status, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
    // Sizes of CudaHost, KernOps, KernEsSpec, KernBatchSpec, KernPpoSpec, KernPpoStep, KernPpoState, KernPpoReport,
    // PpoNetwork and PpoGroup.
    size_t table_bytes, ops_bytes, es_bytes, batch_bytes, ppo_bytes, ppo_step_bytes, ppo_state_bytes, ppo_report_bytes,
        ppo_network_bytes, ppo_group_bytes;
    // Steps of each slice of an evaluation and of a rollout, and PPO's gradients of one chunk a round; 0: as many as
    // fit the time of a slice, and as many as fit the memory.
    int slice_steps;
    bool (*stop_requested)(void);
    void (*plan_init)(HostPlan *plan);
    Status (*plan_add)(HostPlan *plan, const char *purpose, size_t count, size_t item_bytes, int *item);
    Status (*plan_alloc)(const HostPlan *plan, const HostMemory *memory, HostBlock *block);
    void (*block_free)(HostBlock *block);
    const char *(*bytes_text)(size_t size_bytes, char text[16]);
    const HostTraceHooks *(*trace_begin)(HostTraceCategory category, const char *name);
    void (*trace_end)(const HostTraceHooks *hooks);
    const HostTraceHooks *(*trace_hooks)(void); // NULL: off
    void (*trace_split)(const uint64_t weight[HOST_TRACE_CATEGORIES]);
    int (*policy_layers)(const PolicyShape *shape, PolicyLayer layers[POLICY_DENSE_MAX]);
    Status (*ppo_check)(const KernPpoSpec *spec);
    void (*ppo_network)(const PpoShape *shape, PpoNetwork *network);
    int (*ppo_tensor)(const PpoShape *shape, int index, PpoTensor *tensor);
    int32_t (*ppo_env_words)(const KernPpoSpec *spec);
    void (*ppo_normalizer)(const KernPpoSpec *spec, const KernPpoState *state, KernNormalizer *normalizer);
    Status (*comm_all_gather)(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s);
    Status (*ppo_group_init)(PpoGroup *group, const KernPpoSpec *spec, HostComm *comm);
    Status (*ppo_group_gather)(const PpoGroup *group, size_t bytes);
    Status (*ppo_group_infinite)(const PpoGroup *group, const KernPpoSpec *spec, uint32_t update,
                                 const PpoInfinite *own);
} CudaHost;

// The type of the library's entry, CUDA_ENTRY.
typedef Status CudaBackendOpen(const CudaHost *host, int device, KernBackend **backend);

#ifdef __cplusplus
}
#endif

#endif
