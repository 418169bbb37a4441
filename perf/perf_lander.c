// LunarLander under Gymnasium's own heuristic, a batch on one core: the first episode of each env, its return on a line
// of its own, then steps per second of CPU time. perf/peers/gymnasium_lander.py runs it beside Gymnasium and compares
// both.
//
// usage: perf_lander [EPISODES [SEED]]
#include <time.h>

#include "kernels/kern.h"
#include "perf/lander_pilot.h"
#include "perf/perf.h"

static void act(KernBatchView *view) {
    for (int64_t env = 0; env < view->envs; env++) {
        int64_t at = env / view->lanes * 8 * view->lanes + env % view->lanes;
        view->discrete[env] = lander_pilot(view->obs + at, view->lanes);
    }
}

int main(int argc, char **argv) {
    int64_t episodes = argc > 1 ? atol(argv[1]) : 600, left = episodes;
    HostPool *pool = NULL;
    KernBackend *backend;
    KernBatch *batch;
    perf_check(host_pool_create(1, HOST_BIND_CORE, &pool));
    KernCpuOptions options = {pool, "auto", 0};
    KernBatchSpec spec = {
        .envs = episodes, .seed = argc > 2 ? (uint64_t)atol(argv[2]) : 1, .autoreset = KERN_AUTORESET_SAME_STEP};
    kern_sim_default(&spec.sim, sim_spec_find("lunar_lander"));
    perf_check(kern_cpu_open(&options, &backend));
    perf_check(backend->ops->batch_open(backend, &spec, &batch));
    KernBatchView view = backend->ops->batch_view(batch);
    float *first = malloc((size_t)episodes * sizeof *first);
    unsigned char *done = calloc((size_t)episodes, 1);
    if (first == NULL || done == NULL) {
        free(first);
        free(done);
        return 1;
    }
    clock_t start = clock();
    int64_t steps = 0;
    while (left > 0) {
        act(&view);
        perf_check(backend->ops->batch_step(batch));
        steps += episodes;
        for (int64_t env = 0; env < episodes; env++) {
            if (done[env] || !(view.terminated[env] | view.truncated[env])) continue;
            done[env] = 1;
            first[env] = view.final_return[env];
            left--;
        }
    }
    double rate = (double)steps / ((double)(clock() - start) / CLOCKS_PER_SEC);
    for (int64_t env = 0; env < episodes; env++)
        printf("%.6g\n", (double)first[env]);
    printf("%.6g\n", rate);
    free(first);
    free(done);
    backend->ops->batch_close(batch);
    backend->ops->close(backend);
    host_pool_free(pool);
    return 0;
}
