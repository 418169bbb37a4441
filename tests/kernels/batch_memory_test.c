// A million CartPole envs in one process of their own, opened and stepped: prints the peak of its resident memory, and
// ends with 1 if that reaches 100 MB. A program, not a GoogleTest case: gtest's own memory is not the batch's.
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "kernels/kern.h"

enum { ENVS = 1000000, STEPS = 50, LIMIT_BYTES = 100000000 };

static Status step_a_million(KernBackend *backend) {
    KernBatchSpec spec = {.envs = ENVS, .seed = 1, .autoreset = KERN_AUTORESET_SAME_STEP};
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    KernBatch *batch = NULL;
    TRY(backend->ops->batch_open(backend, &spec, &batch));
    KernBatchView view = backend->ops->batch_view(batch);
    int64_t ended = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int64_t i = 0; i < view.blocks * view.lanes; i++)
            view.discrete[i] = (int32_t)((i + step / 20) & 1);
        TRY(backend->ops->batch_step(batch));
        for (int64_t i = 0; i < ENVS; i++)
            ended += view.terminated[i] | view.truncated[i];
    }
    printf("%d envs, %d steps: %lld episodes ended\n", ENVS, STEPS, (long long)ended);
    if (ended < ENVS) return host_fail(STATUS_CORRUPT, "only %lld episodes ended", (long long)ended);
    backend->ops->batch_close(batch);
    return STATUS_OK;
}

static Status run(void) {
    HostPool *pool = NULL;
    TRY(host_pool_create(2, HOST_BIND_NONE, &pool));
    KernCpuOptions options = {.pool = pool, .isa = "auto", .lanes = 0};
    KernBackend *backend = NULL;
    TRY(kern_cpu_open(&options, &backend));
    TRY(step_a_million(backend));
    backend->ops->close(backend);
    host_pool_free(pool);
    return STATUS_OK;
}

int main(void) {
    if (run() != STATUS_OK) {
        fprintf(stderr, "%s\n", host_message());
        return 1;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    long long peak_bytes = (long long)usage.ru_maxrss * 1024;
    printf("peak resident memory: %lld bytes, and less than %d are allowed\n", peak_bytes, LIMIT_BYTES);
    return peak_bytes < LIMIT_BYTES ? 0 : 1;
}
