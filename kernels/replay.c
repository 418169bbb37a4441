#include "kernels/replay.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/policy_math.h"
#include "kernels/sim_param.h"

Status kern_replay_open(KernReplay *replay, const KernFrozen *frozen) {
    const SimSpec *spec = frozen->sim->spec;
    memset(replay, 0, sizeof *replay);
    replay->frozen = frozen;
    replay->state = calloc((size_t)spec->state_words, 4);
    replay->params = calloc((size_t)spec->param_count + 1, 4);
    replay->recurrent = calloc((size_t)frozen->policy->recurrent + 1, sizeof(float));
    if (replay->state != NULL && replay->params != NULL && replay->recurrent != NULL) return STATUS_OK;
    kern_replay_close(replay);
    return host_fail(STATUS_MEMORY, "no memory for an env of %s", spec->name);
}

void kern_replay_close(KernReplay *replay) {
    free(replay->state);
    free(replay->params);
    free(replay->recurrent);
    memset(replay, 0, sizeof *replay);
}

void kern_replay_begin(KernReplay *replay, uint32_t round, int32_t episode) {
    const KernFrozen *frozen = replay->frozen;
    const SimSpec *spec = frozen->sim->spec;
    replay->rng = (SimRng){.seed_low = (uint32_t)frozen->seed,
                           .seed_high = (uint32_t)(frozen->seed >> 32),
                           .c1 = (uint32_t)episode,
                           .c3 = SIM_RNG_EVALUATE | round};
    for (int k = 0; k < spec->param_count; k++) {
        float value = kern_sim_param(frozen->sim, replay->rng, k);
        memcpy((char *)replay->params + 4 * k, &value, 4);
    }
    memset(replay->state, 0, (size_t)spec->state_words * 4);
    memset(replay->recurrent, 0, (size_t)frozen->policy->recurrent * sizeof(float));
    SimRng rng = replay->rng;
    spec->play->reset(replay->state, replay->params, &rng);
    spec->play->observe(replay->state, replay->params, replay->obs);
    replay->reward = replay->episode_return = 0.0f;
    replay->length = 0;
    replay->is_terminated = replay->is_truncated = false;
}

static void act(KernReplay *replay) {
    const KernFrozen *frozen = replay->frozen;
    const PolicyShape *shape = frozen->policy;
    const KernNormalizer *normalizer = &frozen->normalizer;
    float input[POLICY_OBS_MAX], outputs[POLICY_OUTPUTS_MAX];
    for (int k = 0; k < shape->size[0]; k++)
        input[k] = policy_normalize(replay->obs[k], normalizer->mean[k], normalizer->scale[k]);
    policy_forward(shape, frozen->params, input, replay->recurrent, outputs);
    policy_act(shape, outputs, shape->size[shape->layers] - shape->continuous, shape->discrete, shape->continuous,
               replay->discrete, replay->continuous);
}

bool kern_replay_step(KernReplay *replay) {
    if (replay->is_terminated || replay->is_truncated) return false;
    const SimPlay *play = replay->frozen->sim->spec->play;
    act(replay);
    SimRng rng = replay->rng;
    rng.c0 = (uint32_t)(replay->length + 1) << 8;
    SimStep out = play->step(replay->state, replay->params, replay->discrete, replay->continuous, &rng);
    play->observe(replay->state, replay->params, replay->obs);
    replay->reward = out.reward;
    replay->episode_return = replay->episode_return + out.reward;
    replay->length++;
    replay->is_terminated = out.terminated != 0;
    replay->is_truncated = replay->length >= replay->frozen->sim->time_limit;
    return true;
}
