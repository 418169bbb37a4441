// PPO's rollout on one CPU thread: some blocks of envs for all its steps; then their advantages and statistics, which
// need nothing of other envs. Compiled for each instruction set (ISA is defined).
#include <string.h>

#include "host/signals.h"
#include "kernels/cpu/ppo_cpu.h"
#include "kernels/cpu/wide.h"
#include "kernels/policy_math.h"
#include "kernels/ppo_random.h"

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

enum { STOP_STEPS = 64 }; // between two looks at whether to stop

// The envs of one piece on their way.
typedef struct Rollout {
    CpuPpo *ppo;
    const PpoKernels *kernels;
    const PpoScratch *scratch;
    LanesBatch batch; // of all envs; this copy notes what is infinite in these
    int64_t first_block, end_block, first_env;
    int rows, step;
    int lane_bits; // lanes are 1 << lane_bits
} Rollout;

// Where an env's value number `k` of `count` is in a buffer of blocks of lanes.
WIDE_FN int64_t lane_at(const Rollout *w, int64_t env, int count, int k) {
    int64_t block = env >> w->lane_bits, lane = env - (block << w->lane_bits);
    return ((block * count + k) << w->lane_bits) + lane;
}

WIDE_FN int64_t sample_at(const Rollout *w, int row, int step) {
    return (w->first_env + row) * w->ppo->spec.rollout + step;
}

static void put_input(const Rollout *w, int64_t env, const float *obs, int row) {
    const KernNormalizer *normalizer = &w->ppo->normalizer;
    int count = w->ppo->spec.sim.spec->obs;
    float *input = w->scratch->input + row * w->ppo->net.layer[0].in_pad;
    for (int k = 0; k < count; k++)
        input[k] = policy_input(obs[lane_at(w, env, count, k)], normalizer->mean[k], normalizer->scale[k],
                                w->ppo->net.shape.actor.precision);
}

// Recurrent states of an env, into and out of a row of the scratch.
static void put_state(const Rollout *w, int64_t env, int row) {
    const PpoNet *net = &w->ppo->net;
    const float *state = w->ppo->state + env * net->state_pad;
    for (int32_t k = 0; k < net->network.states; k++) {
        int width = net->layer[net->network.state[k]].out_pad;
        memcpy(w->scratch->before[k] + row * width, state, (size_t)width * sizeof *state);
        state += width;
    }
}

static void take_state(const Rollout *w, int64_t env, int row) {
    const PpoNet *net = &w->ppo->net;
    float *state = w->ppo->state + env * net->state_pad;
    for (int32_t k = 0; k < net->network.states; k++) {
        int width = net->layer[net->network.state[k]].out_pad;
        memcpy(state, w->scratch->output[net->network.state[k]] + row * width, (size_t)width * sizeof *state);
        state += width;
    }
}

static void look(const Rollout *w) {
    int count = w->ppo->spec.sim.spec->obs;
    for (int r = 0; r < w->rows; r++) {
        float *keep = w->ppo->samples.obs + sample_at(w, r, w->step) * count;
        for (int k = 0; k < count; k++)
            keep[k] = w->batch.view.obs[lane_at(w, w->first_env + r, count, k)];
        put_input(w, w->first_env + r, w->batch.view.obs, r);
        put_state(w, w->first_env + r, r);
    }
}

// One block of each row's noise, side by side: the numbers of four actions.
typedef struct RowNoise {
    float of[4][PPO_ROWS];
} RowNoise;

// Whole vectors of rows that there are.
static uint32_t noise_rows(const Rollout *w) { return (uint32_t)(w->rows + WIDE - 1) / WIDE * WIDE; }

static void draw_uniforms(const Rollout *w, uint32_t block, RowNoise *noise) {
    uint64_t seed = w->ppo->spec.seed;
    uint32_t update = w->ppo->update, env = (uint32_t)w->first_env, step = (uint32_t)w->step;
    uint32_t rows = noise_rows(w);
    for (uint32_t r = 0; r < rows; r++) { // vectorises
        SimWords4 words = ppo_noise(seed, update, env + r, step, block);
        noise->of[0][r] = sim_uniform_from(words.x0);
        noise->of[1][r] = sim_uniform_from(words.x1);
        noise->of[2][r] = sim_uniform_from(words.x2);
        noise->of[3][r] = sim_uniform_from(words.x3);
    }
}

static void draw_normals(const Rollout *w, uint32_t block, RowNoise *noise) {
    uint64_t seed = w->ppo->spec.seed;
    uint32_t update = w->ppo->update, env = (uint32_t)w->first_env, step = (uint32_t)w->step;
    uint32_t rows = noise_rows(w);
    for (uint32_t r = 0; r < rows; r++) { // vectorises
        SimNormal4 n = sim_normal4_from(ppo_noise(seed, update, env + r, step, block));
        noise->of[0][r] = n.x0;
        noise->of[1][r] = n.x1;
        noise->of[2][r] = n.x2;
        noise->of[3][r] = n.x3;
    }
}

// Discrete actions; adds the logarithms of their probabilities.
static void act_discrete(const Rollout *w, float *log_prob) {
    CpuPpo *ppo = w->ppo;
    const PolicyShape *actor = &ppo->net.shape.actor;
    const float *logits = w->scratch->output[ppo->net.network.actor_head];
    RowNoise noise;
    for (int k = 0; k < actor->discrete; k++) {
        int choices = actor->choices[k];
        if (k % 4 == 0) draw_uniforms(w, (uint32_t)(k / 4), &noise);
        for (int r = 0; r < w->rows; r++) {
            float prob[POLICY_OUTPUTS_MAX], log_probs[POLICY_OUTPUTS_MAX] = {0.0f};
            (void)ppo_categorical(logits + r * 16, 1, choices, prob, log_probs);
            int32_t action = ppo_categorical_draw(prob, choices, noise.of[k % 4][r]);
            ppo->samples.action[sample_at(w, r, w->step) * ppo->net.actions + k] = (uint32_t)action;
            log_prob[r] = log_prob[r] + log_probs[action];
            w->batch.view.discrete[lane_at(w, w->first_env + r, actor->discrete, k)] = action;
        }
        logits += choices;
    }
}

static void act_continuous(const Rollout *w, float *log_prob) {
    CpuPpo *ppo = w->ppo;
    const PolicyShape *actor = &ppo->net.shape.actor;
    const float *log_std = ppo->params + ppo->net.shape.params - ppo->net.shape.log_std_params;
    const float *means = w->scratch->output[ppo->net.network.actor_head] + ppo->net.outputs - actor->continuous;
    uint32_t first_block = (uint32_t)(actor->discrete + 3) / 4;
    RowNoise noise;
    for (int k = 0; k < actor->continuous; k++) {
        if (k % 4 == 0) draw_normals(w, first_block + (uint32_t)(k / 4), &noise);
        for (int r = 0; r < w->rows; r++) {
            float mean = means[r * 16 + k], action = ppo_gaussian_draw(mean, log_std[k], noise.of[k % 4][r]);
            PpoLikelihood sum = ppo_gaussian_add((PpoLikelihood){log_prob[r], 0.0f}, mean, log_std[k], action);
            log_prob[r] = sum.log_prob;
            int64_t at = sample_at(w, r, w->step) * ppo->net.actions + actor->discrete + k;
            ppo->samples.action[at] = sim_bits_from_float(action);
            w->batch.view.continuous[lane_at(w, w->first_env + r, actor->continuous, k)] =
                policy_clamped(action, actor->action_low, actor->action_high);
        }
    }
}

static void act(const Rollout *w) {
    float log_prob[PPO_ROWS] = {0.0f};
    act_discrete(w, log_prob);
    act_continuous(w, log_prob);
    for (int r = 0; r < w->rows; r++)
        w->ppo->samples.log_prob[sample_at(w, r, w->step)] = log_prob[r];
}

// Values of the final observations of episodes that were only cut off.
static void value_truncated(const Rollout *w) {
    CpuPpo *ppo = w->ppo;
    int row[PPO_ROWS], count = 0;
    for (int r = 0; r < w->rows; r++) {
        if (ppo->samples.ended[sample_at(w, r, w->step)] != PPO_TRUNCATED) continue;
        put_input(w, w->first_env + r, w->batch.view.final_obs, count);
        put_state(w, w->first_env + r, count);
        row[count++] = r;
    }
    if (count == 0) return;
    w->kernels->forward(&ppo->net, ppo->packed, w->scratch, count);
    for (int i = 0; i < count; i++)
        ppo->final_value[sample_at(w, row[i], w->step)] = w->scratch->output[ppo->net.network.critic_head][i * 16];
}

// What a step yields. Until the advantages are there, their place holds the discounted returns.
static void take_rewards(const Rollout *w) {
    CpuPpo *ppo = w->ppo;
    const KernBatchView *view = &w->batch.view;
    for (int r = 0; r < w->rows; r++) {
        int64_t env = w->first_env + r, at = sample_at(w, r, w->step);
        float reward = view->reward[env], discounted = sim_fmaf(ppo->spec.gamma, ppo->discounted[env], reward);
        int32_t ended = view->terminated[env] ? PPO_TERMINATED : view->truncated[env] ? PPO_TRUNCATED : 0;
        ppo->reward[at] = ppo->spec.normalize_reward
                              ? sim_clamp(reward * ppo->reward_scale, -PPO_REWARD_CLIP, PPO_REWARD_CLIP)
                              : reward;
        ppo->samples.advantage[at] = discounted;
        ppo->samples.ended[at] = ended;
        ppo->discounted[env] = ended ? 0.0f : discounted;
        if (!ended) continue;
        PpoOutcome *of_env = &ppo->of_env[env];
        of_env->episodes++;
        of_env->episode_steps += view->final_length[env];
        of_env->episode_return += (double)view->final_return[env];
    }
    value_truncated(w);
    for (int r = 0; r < w->rows; r++) {
        float *state = ppo->state + (w->first_env + r) * ppo->net.state_pad;
        if (ppo->samples.ended[sample_at(w, r, w->step)]) memset(state, 0, (size_t)ppo->net.state_pad * sizeof *state);
    }
}

// ---- after the last step -------------------------------------------------------------------------------------------

// Value and target differ by the advantage.
static void finish_env(const Rollout *w, int row, float last_value) {
    CpuPpo *ppo = w->ppo;
    int steps = ppo->spec.rollout, obs = ppo->spec.sim.spec->obs;
    int64_t env = w->first_env + row, first = sample_at(w, row, 0);
    float *advantage = ppo->samples.advantage + first, *target = ppo->samples.target + first;
    for (int k = 0; k < obs; k++)
        ppo->env_obs[env * obs + k] = ppo_moments_of(ppo->samples.obs + first * obs + k, steps, obs);
    PpoOutcome *of_env = &ppo->of_env[env];
    of_env->discounted = ppo_moments_of(advantage, steps, 1);
    ppo_advantages(ppo->reward + first, ppo->samples.value + first, ppo->samples.ended + first,
                   ppo->final_value + first, last_value, steps, 1, ppo->spec.gamma, ppo->spec.lambda, advantage,
                   target);
    of_env->target = ppo_moments_of(target, steps, 1);
    of_env->residual = ppo_moments_of(advantage, steps, 1);
}

static void finish(const Rollout *w) {
    CpuPpo *ppo = w->ppo;
    for (int r = 0; r < w->rows; r++) {
        put_input(w, w->first_env + r, w->batch.view.obs, r);
        put_state(w, w->first_env + r, r);
    }
    w->kernels->forward(&ppo->net, ppo->packed, w->scratch, w->rows);
    for (int r = 0; r < w->rows; r++)
        finish_env(w, r, w->scratch->output[ppo->net.network.critic_head][r * 16]);
}

// Keeps what became infinite first, by step and then env.
static void record_infinite(const Rollout *w) {
    LanesInfinite *all = &w->ppo->infinite;
    const LanesInfinite *here = &w->batch.infinite;
    while (atomic_flag_test_and_set(&all->lock)) {
    }
    if (all->at < 0 || here->step < all->step || (here->step == all->step && here->at < all->at)) {
        all->at = here->at;
        all->step = here->step;
        all->field = here->field;
    }
    atomic_flag_clear(&all->lock);
}

void ISA_CAT(cpu_ppo_rollout_, ISA)(CpuPpo *ppo, int64_t begin, int64_t end, int worker) {
    Rollout w = {.ppo = ppo,
                 .kernels = ppo->isa->ppo,
                 .scratch = &ppo->scratch[worker],
                 .batch = ppo->batch,
                 .first_block = begin,
                 .end_block = end,
                 .first_env = begin * ppo->sim->lanes,
                 .lane_bits = __builtin_ctz((unsigned)ppo->sim->lanes)};
    int64_t envs = end * ppo->sim->lanes - w.first_env;
    w.rows = (int)(ppo->spec.envs - w.first_env < envs ? ppo->spec.envs - w.first_env : envs);
    memset(ppo->of_env + w.first_env, 0, (size_t)w.rows * sizeof *ppo->of_env);
    w.batch.infinite.at = -1;
    int64_t first_state = w.first_env * ppo->net.state_pad;
    memcpy(ppo->samples.state + first_state, ppo->state + first_state,
           (size_t)(w.rows * ppo->net.state_pad) * sizeof *ppo->state);
    CpuProbe *probe = &ppo->scratch[worker].probe;
    for (w.step = 0; w.step < ppo->spec.rollout; w.step++) {
        if (w.step % STOP_STEPS == 0 && host_stop_requested()) return;
        bool is_measured = cpu_probe_takes(probe);
        if (is_measured) cpu_probe_enter(probe, HOST_TRACE_POLICY, CPU_PROBE_EVERY);
        look(&w);
        w.kernels->forward(&ppo->net, ppo->packed, w.scratch, w.rows);
        for (int r = 0; r < w.rows; r++) {
            ppo->samples.value[sample_at(&w, r, w.step)] = w.scratch->output[ppo->net.network.critic_head][r * 16];
            take_state(&w, w.first_env + r, r);
        }
        act(&w);
        wide_end();
        w.batch.step = w.step;
        if (is_measured) cpu_probe_turn(probe, HOST_TRACE_SIMULATION);
        ppo->sim->batch_step(&w.batch, begin, end);
        if (is_measured) cpu_probe_turn(probe, HOST_TRACE_LEARNING);
        if (w.batch.infinite.at < 0) take_rewards(&w);
        if (is_measured) cpu_probe_leave(probe);
        if (w.batch.infinite.at >= 0) {
            record_infinite(&w);
            return;
        }
        cpu_probe_count(probe, 1);
    }
    bool is_measured = cpu_probe_takes_apart(probe);
    if (is_measured) cpu_probe_enter(probe, HOST_TRACE_LEARNING, 1);
    finish(&w);
    if (is_measured) cpu_probe_leave(probe);
    wide_end();
}
