// A simulator on rigid bodies under Gymnasium's own heuristic, a batch on one core: the first episode of each env, its
// return on a line of its own, then steps per second of CPU time. perf/peers/gymnasium_box2d.py runs it beside
// Gymnasium and compares both.
//
// usage: perf_box2d lunar_lander|bipedal_walker|bipedal_walker_hardcore [EPISODES [SEED [LANES]]]
#include <string.h>
#include <time.h>

#include "kernels/kern.h"
#include "perf/lander_pilot.h"
#include "perf/perf.h"
#include "perf/walker_pilot.h"

typedef struct Flight {
    KernBackend *backend;
    KernBatch *batch;
    KernBatchView view;
    WalkerPilot *walker; // [envs]; NULL for the lander
    float *first;        // [envs] return of the first episode
    unsigned char *done; // [envs] whether that has ended
} Flight;

static void *need(void *memory) {
    if (memory != NULL) return memory;
    fprintf(stderr, "no memory\n");
    exit(1);
}

static void act(Flight *f) {
    const int lanes = f->view.lanes, obs = f->walker != NULL ? 24 : 8;
    for (int64_t env = 0; env < f->view.envs; env++) {
        const float *of_env = f->view.obs + env / lanes * obs * lanes + env % lanes;
        if (f->walker == NULL) {
            f->view.discrete[env] = lander_pilot(of_env, lanes);
            continue;
        }
        float action[4];
        walker_pilot_act(&f->walker[env], of_env, lanes, action);
        for (int k = 0; k < 4; k++)
            f->view.continuous[env / lanes * 4 * lanes + k * lanes + env % lanes] = action[k];
    }
}

// Until every env has ended its first episode; returns the steps that were made.
static int64_t fly(Flight *f) {
    int64_t steps = 0, envs = f->view.envs;
    for (int64_t left = envs; left > 0; steps += envs) {
        act(f);
        perf_check(f->backend->ops->batch_step(f->batch));
        for (int64_t env = 0; env < envs; env++) {
            if (!(f->view.terminated[env] | f->view.truncated[env])) continue;
            if (f->walker != NULL) walker_pilot_start(&f->walker[env]);
            if (f->done[env]) continue;
            f->done[env] = 1;
            f->first[env] = f->view.final_return[env];
            left--;
        }
    }
    return steps;
}

int main(int argc, char **argv) {
    const SimSpec *sim = argc > 1 ? sim_spec_find(argv[1]) : NULL;
    if (sim == NULL || (strcmp(sim->name, "lunar_lander") != 0 && strncmp(sim->name, "bipedal_walker", 14) != 0)) {
        fprintf(stderr, "usage: perf_box2d lunar_lander|bipedal_walker|bipedal_walker_hardcore "
                        "[EPISODES [SEED [LANES]]]\n");
        return 2;
    }
    int64_t episodes = argc > 2 ? atol(argv[2]) : 600;
    HostPool *pool = NULL;
    perf_check(host_pool_create(1, HOST_BIND_CORE, &pool));
    KernCpuOptions options = {pool, "auto", argc > 4 ? atoi(argv[4]) : 0};
    KernBatchSpec spec = {
        .envs = episodes, .seed = argc > 3 ? (uint64_t)atol(argv[3]) : 1, .autoreset = KERN_AUTORESET_SAME_STEP};
    kern_sim_default(&spec.sim, sim);
    Flight f = {.first = need(malloc((size_t)episodes * sizeof *f.first)), .done = need(calloc((size_t)episodes, 1))};
    if (sim->continuous > 0) f.walker = need(malloc((size_t)episodes * sizeof *f.walker));
    for (int64_t env = 0; f.walker != NULL && env < episodes; env++)
        walker_pilot_start(&f.walker[env]);
    perf_check(kern_cpu_open(&options, &f.backend));
    perf_check(f.backend->ops->batch_open(f.backend, &spec, &f.batch));
    f.view = f.backend->ops->batch_view(f.batch);
    clock_t start = clock();
    int64_t steps = fly(&f);
    double rate = (double)steps / ((double)(clock() - start) / CLOCKS_PER_SEC);
    for (int64_t env = 0; env < episodes; env++)
        printf("%.6g\n", (double)f.first[env]);
    printf("%.6g\n", rate);
    free(f.first);
    free(f.done);
    free(f.walker);
    f.backend->ops->batch_close(f.batch);
    f.backend->ops->close(f.backend);
    host_pool_free(pool);
    return 0;
}
