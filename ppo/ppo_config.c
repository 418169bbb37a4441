#include "ppo/ppo_config.h"

#include <stdio.h>
#include <string.h>

#include "kernels/launcher.h"

enum { SHARDS_DEFAULT_MAX = 64 };

static const ConfigOption options[] = {
#define OPTION(type, name, ...)  HOST_CONFIG_ROW(PpoConfig, false, type, name, __VA_ARGS__)
#define COMMAND(type, name, ...) HOST_CONFIG_ROW(PpoConfig, true, type, name, __VA_ARGS__)
#include "ppo/ppo_config.def"
};

static const ConfigTable table = {"pporun", options, sizeof options / sizeof options[0], sizeof(PpoConfig)};

const ConfigTable *ppo_config_table(void) { return &table; }

// What differs from ppo_config.def for a simulator. Found by `./dev soak learning`, which also shows what they reach.
// Pendulum's target is higher than the simulator's, which a policy that only just swings up meets.
static const KernSimulatorDefault simulator_defaults[] = {
    {"cartpole", "steps", "100000"},
    {"cartpole", "rollout", "32"},
    {"cartpole", "minibatches", "4"},
    {"cartpole", "hidden", "32,32"},
    {"mountain_car", "steps", "2000000"},
    {"mountain_car", "envs", "16"},
    {"mountain_car", "rollout", "64"},
    {"mountain_car", "epochs", "4"},
    {"mountain_car", "minibatches", "4"},
    {"mountain_car", "lr", "0.003"},
    {"mountain_car", "lambda", "0.98"},
    {"mountain_car", "hidden", "32,32"},
    {"mountain_car_continuous", "hidden", "32,32"},
    {"mountain_car_continuous", "log_std", "0.5"},
    {"acrobot", "rollout", "64"},
    {"acrobot", "minibatches", "4"},
    {"acrobot", "hidden", "32,32"},
    {"pendulum", "envs", "16"},
    {"pendulum", "epochs", "2"},
    {"pendulum", "lr", "0.005"},
    {"pendulum", "gamma", "0.95"},
    {"pendulum", "hidden", "16,16"},
    {"pendulum", "activation", "relu"},
    {"pendulum", "target", "-175"},
    {"parking", "steps", "300000"},
    {"parking", "envs", "16"},
    {"parking", "rollout", "64"},
    {"parking", "minibatches", "4"},
    {"parking", "lr", "0.003"},
    {"parking", "hidden", "32,32"},
    {"lunar_lander", "steps", "2000000"},
    {"lunar_lander", "gamma", "0.999"},
    {"lunar_lander", "lambda", "0.98"},
    {"lunar_lander", "entropy", "0.01"},
    {"lunar_lander_continuous", "steps", "2000000"},
    {"lunar_lander_continuous", "gamma", "0.999"},
    {"lunar_lander_continuous", "lambda", "0.98"},
    {"bipedal_walker", "steps", "3000000"},
    {"bipedal_walker", "rollout", "256"},
    {"bipedal_walker", "minibatches", "16"},
    {"bipedal_walker", "log_std", "-0.7"},
    {"bipedal_walker", "test_every", "10"},
    {"bipedal_walker_hardcore", "steps", "20000000"},
    {"bipedal_walker_hardcore", "rollout", "256"},
    {"bipedal_walker_hardcore", "minibatches", "16"},
    {"bipedal_walker_hardcore", "log_std", "-0.7"},
    {"bipedal_walker_hardcore", "test_every", "10"},
    {"position_only_cartpole", "steps", "300000"},
    {"position_only_cartpole", "envs", "16"},
    {"position_only_cartpole", "rollout", "64"},
    {"position_only_cartpole", "minibatches", "4"},
    {"position_only_cartpole", "hidden", "32"},
    {"position_only_cartpole", "recurrent", "32"},
};

Status ppo_config_simulator_defaults(HostConfig *config, const SimSpec *sim) {
    TRY(kern_simulator_defaults(config, sim, simulator_defaults,
                                sizeof simulator_defaults / sizeof simulator_defaults[0]));
    int64_t envs = host_config_int(config, "envs"), shards = 1;
    // Of a shard's envs, recurrent policies need some for each minibatch.
    int64_t parts = host_config_int(config, "recurrent") > 0 ? host_config_int(config, "minibatches") : 1;
    while (shards < SHARDS_DEFAULT_MAX && envs % (2 * shards * parts) == 0)
        shards *= 2;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)shards);
    return host_config_set(config, CONFIG_SIMULATOR, "shards", text);
}

int64_t ppo_config_update_steps(const PpoConfig *config) { return config->envs * config->rollout; }

int64_t ppo_config_updates(const PpoConfig *config) { return config->steps / ppo_config_update_steps(config); }

// What whole rollouts of envs need, which are a recurrent policy's samples.
static Status check_sequences(const PpoConfig *c) {
    long long envs = c->envs, shards = c->shards, rollout = c->rollout, minibatches = c->minibatches;
    if (envs / shards % minibatches != 0) {
        return host_fail(STATUS_USAGE,
                         "--minibatches %lld: must divide a shard's %lld envs (--envs %lld / --shards %lld) with "
                         "--recurrent",
                         minibatches, envs / shards, envs, shards);
    }
    if (rollout > PPO_SEQUENCE_MAX) {
        return host_fail(STATUS_USAGE, "--rollout %lld: at most %d steps with --recurrent", rollout, PPO_SEQUENCE_MAX);
    }
    return STATUS_OK;
}

static Status check_sizes(const PpoConfig *c) {
    long long envs = c->envs, shards = c->shards, rollout = c->rollout, minibatches = c->minibatches;
    if ((shards & (shards - 1)) != 0) return host_fail(STATUS_USAGE, "--shards %lld: must be a power of two", shards);
    if (envs % shards != 0) {
        return host_fail(STATUS_USAGE, "--envs %lld: must be a multiple of --shards %lld", envs, shards);
    }
    if (envs * rollout > INT32_MAX) {
        return host_fail(STATUS_USAGE, "--envs %lld x --rollout %lld: at most %d steps in an update", envs, rollout,
                         INT32_MAX);
    }
    if (c->recurrent > 0) TRY(check_sequences(c));
    if (envs / shards * rollout % minibatches != 0) {
        return host_fail(STATUS_USAGE,
                         "--minibatches %lld: must divide a shard's %lld steps (--envs %lld / --shards %lld x "
                         "--rollout %lld)",
                         minibatches, envs / shards * rollout, envs, shards, rollout);
    }
    if (c->steps < envs * rollout) {
        return host_fail(STATUS_USAGE, "--steps %lld: an update takes %lld (--envs %lld x --rollout %lld)",
                         (long long)c->steps, envs * rollout, envs, rollout);
    }
    // The counters of random numbers have 28 bits for the update.
    if (ppo_config_updates(c) >= 1 << 27) {
        return host_fail(STATUS_USAGE, "--steps %lld: at most %d updates (of --envs %lld x --rollout %lld)",
                         (long long)c->steps, (1 << 27) - 1, envs, rollout);
    }
    return STATUS_OK;
}

Status ppo_config_spec(const PpoConfig *config, KernPpoSpec *spec) {
    memset(spec, 0, sizeof *spec);
    TRY(check_sizes(config));
    TRY(kern_sim_of_settings(&spec->sim, config->env, config->time_limit, &config->set, &config->randomize));
    TRY(ppo_shape(&spec->policy, spec->sim.spec, config->hidden.at, config->hidden.count, (int32_t)config->recurrent,
                  config->activation == 0 ? POLICY_TANH : POLICY_RELU, config->shared));
    spec->policy.actor.precision = config->precision == 0 ? POLICY_FLOAT32 : POLICY_BF16;
    spec->seed = (uint64_t)config->seed;
    spec->envs = (int32_t)config->envs;
    spec->shards = (int32_t)config->shards;
    spec->rollout = (int32_t)config->rollout;
    spec->minibatches = (int32_t)config->minibatches;
    spec->normalize_obs = config->normalize_obs;
    spec->normalize_reward = config->normalize_reward;
    spec->gamma = (float)config->gamma;
    spec->lambda = (float)config->lambda;
    return STATUS_OK;
}

void ppo_config_step(const PpoConfig *config, int64_t update, KernPpoStep *step) {
    // From 1 down to 1 / updates.
    double left = 1.0 - (double)update / (double)ppo_config_updates(config);
    *step = (KernPpoStep){
        .update = (uint32_t)update,
        .epochs = (int32_t)config->epochs,
        .learning_rate = (float)(config->lr_anneal ? config->lr * left : config->lr),
        .clip = (float)(config->clip_anneal ? config->clip * left : config->clip),
        .entropy_weight = (float)config->entropy,
        .value_weight = (float)config->value_weight,
        .max_grad_norm = (float)config->max_grad_norm,
        .target_kl = (float)config->target_kl,
        .clip_value = config->clip_value,
        .normalize_advantage = config->normalize_advantage,
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .epsilon = (float)config->adam_epsilon,
    };
}

Status ppo_config_check_resume(const void *now, const void *then) {
    const PpoConfig *a = now, *b = then;
    if (ppo_config_updates(a) == ppo_config_updates(b) || !(b->lr_anneal || b->clip_anneal)) return STATUS_OK;
    return host_fail(STATUS_USAGE, "--steps %lld: the run anneals its %s over %lld steps, and would be another run",
                     (long long)a->steps, b->lr_anneal ? "learning rate" : "clip", (long long)b->steps);
}
