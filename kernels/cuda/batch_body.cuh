// Reset and step of a batch of one simulator: one thread an env. Included by kernels/cuda/batch.cu for each simulator.

#include "kernels/cuda/env_body.cuh"

static __global__ void __launch_bounds__(BATCH_THREADS) BODY(batch_reset)(const __grid_constant__ CudaBatchArgs a) {
    int64_t env = (int64_t)blockIdx.x * BATCH_THREADS + threadIdx.x;
    if (env >= a.view.envs || (a.mask != NULL && a.mask[env] == 0)) return;
    a.view.reward[env] = 0.0f;
    a.view.terminated[env] = 0;
    a.view.truncated[env] = 0;
    BODY(begin_episode)(a, env);
}

static __global__ void __launch_bounds__(BATCH_THREADS) BODY(batch_step)(const __grid_constant__ CudaBatchArgs a) {
    int64_t env = (int64_t)blockIdx.x * BATCH_THREADS + threadIdx.x;
    if (env >= a.view.envs) return;
    bool begins;
    if (a.autoreset == KERN_AUTORESET_NEXT_STEP && (a.view.terminated[env] | a.view.truncated[env])) {
        a.view.reward[env] = 0.0f;
        a.view.terminated[env] = 0;
        a.view.truncated[env] = 0;
        begins = true;
    } else {
        begins = BODY(step_env)(a, env, 0) && a.autoreset == KERN_AUTORESET_SAME_STEP;
    }
    if (begins) BODY(begin_episode)(a, env);
}
