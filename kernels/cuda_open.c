// Opens the CUDA backend at run time: no program links a CUDA library.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "host/signals.h"
#include "kernels/cuda/cuda_host.h"

// SHOAL_CUDA_SLICE_STEPS=n forces the steps of each slice of an evaluation or a rollout: for tests, which show that the
// cut changes nothing.
static int slice_steps(void) {
    const char *text = getenv("SHOAL_CUDA_SLICE_STEPS");
    long steps = text != NULL ? strtol(text, NULL, 10) : 0;
    return steps > 0 && steps < 1 << 20 ? (int)steps : 0;
}

static Status library_missing(const char *error) {
    if (error == NULL) error = "no reason given";
    if (strstr(error, "libcudart") != NULL) {
        return host_fail(STATUS_DEVICE,
                         "device cuda: the CUDA runtime is missing: %s (install it, or name its folder in "
                         "LD_LIBRARY_PATH)",
                         error);
    }
    return host_fail(STATUS_DEVICE,
                     "device cuda: cannot open " CUDA_LIBRARY ": %s (it is built where nvcc is found, and installed "
                     "in lib/ beside bin/)",
                     error);
}

Status kern_cuda_open(int device, KernBackend **backend) {
    // Never closed again: the CUDA runtime inside does not survive that.
    void *library = dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return library_missing(dlerror());
    CudaBackendOpen *open_backend = NULL;
    void *entry = dlsym(library, CUDA_ENTRY);
    if (entry == NULL) return host_fail(STATUS_DEVICE, "device cuda: " CUDA_LIBRARY " has no " CUDA_ENTRY);
    memcpy(&open_backend, &entry, sizeof entry); // ISO C has no cast from void * to a function
    CudaHost host = {
        .version = CUDA_HOST_VERSION,
        .fail_at = host_fail_at,
        .table_bytes = sizeof(CudaHost),
        .ops_bytes = sizeof(KernOps),
        .es_bytes = sizeof(KernEsSpec),
        .batch_bytes = sizeof(KernBatchSpec),
        .ppo_bytes = sizeof(KernPpoSpec),
        .ppo_step_bytes = sizeof(KernPpoStep),
        .ppo_state_bytes = sizeof(KernPpoState),
        .ppo_report_bytes = sizeof(KernPpoReport),
        .ppo_network_bytes = sizeof(PpoNetwork),
        .ppo_group_bytes = sizeof(PpoGroup),
        .slice_steps = slice_steps(),
        .stop_requested = host_stop_requested,
        .plan_init = host_plan_init,
        .plan_add = host_plan_add,
        .plan_alloc = host_plan_alloc,
        .block_free = host_block_free,
        .bytes_text = host_bytes_text,
        .trace_begin = host_trace_begin,
        .trace_end = host_trace_end,
        .trace_hooks = host_trace_hooks,
        .trace_split = host_trace_split,
        .policy_layers = policy_layers,
        .ppo_check = ppo_check,
        .ppo_network = ppo_network,
        .ppo_tensor = ppo_tensor,
        .ppo_env_words = ppo_env_words,
        .ppo_normalizer = ppo_normalizer,
        .comm_all_gather = host_comm_all_gather,
        .ppo_group_init = ppo_group_init,
        .ppo_group_gather = ppo_group_gather,
        .ppo_group_infinite = ppo_group_infinite,
    };
    return open_backend(&host, device, backend);
}
