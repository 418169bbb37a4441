#include "es/es_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/launcher.h"

static const ConfigOption options[] = {
#define OPTION(type, name, ...)  HOST_CONFIG_ROW(EsConfig, false, type, name, __VA_ARGS__)
#define COMMAND(type, name, ...) HOST_CONFIG_ROW(EsConfig, true, type, name, __VA_ARGS__)
#include "es/es_config.def"
};

static const ConfigTable table = {"esrun", options, sizeof options / sizeof options[0], sizeof(EsConfig)};

const ConfigTable *es_config_table(void) { return &table; }

// What differs from es_config.def for a simulator. Found by `./dev soak learning`, which also shows what they reach.
static const KernSimulatorDefault simulator_defaults[] = {
    {"cartpole", "pop", "128"},
    {"cartpole", "hidden", "16"},
    {"mountain_car", "hidden", "16"},
    {"mountain_car", "sigma", "0.5"},
    {"mountain_car", "lr", "0.2"},
    {"mountain_car_continuous", "pop", "128"},
    {"mountain_car_continuous", "hidden", "16"},
    {"mountain_car_continuous", "sigma", "0.3"},
    {"mountain_car_continuous", "weight_decay", "0.0"},
    {"acrobot", "hidden", "16"},
    {"pendulum", "hidden", "32"},
    {"pendulum", "activation", "relu"},
    {"pendulum", "episodes", "2"},
    {"lunar_lander", "hidden", "none"},
    {"lunar_lander", "pop", "64"},
    {"lunar_lander_continuous", "hidden", "none"},
    {"lunar_lander_continuous", "pop", "64"},
    {"lunar_lander_continuous", "episodes", "2"},
    {"lunar_lander_continuous", "lr", "0.1"},
    {"bipedal_walker", "hidden", "none"},
    {"bipedal_walker", "pop", "64"},
    {"bipedal_walker_hardcore", "hidden", "none"},
    {"bipedal_walker_hardcore", "pop", "64"},
    {"position_only_cartpole", "hidden", "none"},
    {"position_only_cartpole", "recurrent", "16"},
    // All objectives, and then one.
    {"objective:", "episodes", "1"},
    {"objective:", "test_episodes", "1"},
    {"objective:", "normalize", "false"},
    {"objective:", "weight_decay", "0"},
    {"objective:sphere", "lr", "0.1"},
    {"objective:rastrigin", "pop", "512"},
    {"objective:rastrigin", "sigma", "2.0"},
    {"objective:rastrigin", "sigma_decay", "0.995"},
    {"objective:rastrigin", "sigma_min", "0.02"},
    {"objective:rastrigin", "lr", "0.2"},
    {"objective:rastrigin", "lr_decay", "0.99"},
    {"objective:rastrigin", "lr_min", "0.002"},
    {"objective:rosenbrock", "sigma_decay", "0.99"},
    {"objective:rosenbrock", "lr_decay", "0.999"},
};

enum { DEFAULTS = sizeof simulator_defaults / sizeof simulator_defaults[0] };

static const char *const of_objectives[] = {"dim", "init", "lib_hash", NULL};
static const char *const of_simulators[] = {"episodes",   "hidden",    "recurrent",     "activation",
                                            "precision",  "normalize", "common_random", "test_episodes",
                                            "time_limit", "set",       "randomize",     NULL};

bool es_config_applies(const char *name, KernObjectiveKind to) {
    const char *const *other = to != KERN_OBJECTIVE_NONE ? of_simulators : of_objectives;
    if (strcmp(name, "lib_hash") == 0) return to == KERN_OBJECTIVE_LIB;
    while (*other != NULL && strcmp(*other, name) != 0)
        other++;
    return *other == NULL;
}

// Refuses options of the command line that are for something else.
static Status refuse_given(const HostConfig *config, const char *const *names, const char *what, const char *env) {
    for (; *names != NULL; names++) {
        char name[HOST_CONFIG_NAME_MAX];
        if (host_config_layer(config, *names) != CONFIG_ARGS) continue;
        return host_fail(STATUS_USAGE, "--%s is for %s: leave it out for %.200s", host_config_spell(*names, true, name),
                         what, env);
    }
    return STATUS_OK;
}

Status es_config_simulator_defaults(HostConfig *config, const SimSpec *sim) {
    TRY(refuse_given(config, of_objectives, "objectives", sim->name));
    return kern_simulator_defaults(config, sim, simulator_defaults, DEFAULTS);
}

Status es_config_objective_defaults(HostConfig *config, const KernObjective *objective) {
    const KernObjectiveInfo *info = &kern_objective_info[objective->kind];
    char text[32], hash[17], name[KERN_OBJECTIVE_LABEL_MAX];
    TRY(refuse_given(config, of_simulators, "policies in simulators", objective->name));
    TRY(kern_objective_hash(objective, hash));
    TRY(host_config_set(config, CONFIG_SIMULATOR, "lib_hash", hash));
    TRY(host_config_set(config, CONFIG_SIMULATOR, "target", host_real_text(info->target, text)));
    snprintf(name, sizeof name, KERN_OBJECTIVE_PREFIX "%s", info->name);
    TRY(kern_apply_defaults(config, KERN_OBJECTIVE_PREFIX, simulator_defaults, DEFAULTS));
    return kern_apply_defaults(config, name, simulator_defaults, DEFAULTS);
}

// Whether the library is the one that the run began with.
static Status check_hash(const EsConfig *config, const KernObjective *objective) {
    char hash[17];
    TRY(kern_objective_hash(objective, hash));
    if (strcmp(hash, config->lib_hash) == 0) return STATUS_OK;
    if (objective->kind != KERN_OBJECTIVE_LIB)
        return host_fail(STATUS_USAGE, "--lib-hash %s: it is for objective:lib, not for %.200s", config->lib_hash,
                         config->env);
    return host_fail(
        STATUS_USAGE,
        "%s: the library here is another one, of hash %s, not %s, which the run has; to go on with this one: "
        "--lib-hash %s",
        config->env, hash, config->lib_hash, hash);
}

static Status objective_spec(const EsConfig *config, KernEsSpec *spec) {
    KernObjective *o = &spec->objective;
    TRY(kern_objective_parse(config->env, o));
    int32_t least = kern_objective_info[o->kind].least_dim;
    if (config->dim < least) {
        return host_fail(STATUS_USAGE, "--dim %lld: %s takes at least %d parameters", (long long)config->dim, o->name,
                         least);
    }
    if (config->episodes != 1 || config->test_episodes != 1 || config->normalize) {
        return host_fail(STATUS_USAGE,
                         "%s: members are evaluated once, and nothing is normalised: episodes = 1, "
                         "test_episodes = 1, normalize = false",
                         o->name);
    }
    spec->policy.params = (int32_t)config->dim;
    TRY(check_hash(config, o));
    return kern_objective_set_start(o, config->init);
}

static Status policy_spec(const EsConfig *config, KernEsSpec *spec) {
    TRY(kern_sim_of_settings(&spec->sim, config->env, config->time_limit, &config->set, &config->randomize));
    TRY(policy_shape(&spec->policy, spec->sim.spec, config->hidden.at, config->hidden.count,
                     config->activation == 0 ? POLICY_TANH : POLICY_RELU));
    TRY(policy_set_recurrent(&spec->policy, (int32_t)config->recurrent));
    spec->policy.precision = config->precision == 0 ? POLICY_FLOAT32 : POLICY_BF16;
    return STATUS_OK;
}

// Where noise comes from. A test of a policy has none, and needs no table.
static Status set_noise(const EsConfig *config, KernEsSpec *spec) {
    bool is_table = config->noise != 0;
    const char *standard = host_config_find(&table, "noise_table")->default_text;
    int64_t least = ((int64_t)spec->policy.params + KERN_ES_UNIT - 1) / KERN_ES_UNIT * KERN_ES_UNIT;
    if (!is_table && config->noise_table != strtoll(standard, NULL, 10)) {
        return host_fail(STATUS_USAGE, "--noise-table %lld: it needs --noise table", (long long)config->noise_table);
    }
    if (is_table && (config->noise_table < least || config->noise_table % KERN_ES_UNIT != 0)) {
        return host_fail(STATUS_USAGE,
                         "--noise-table %lld: a multiple of %d from %lld, for the policy's %d parameters, to %lld",
                         (long long)config->noise_table, KERN_ES_UNIT, (long long)least, spec->policy.params,
                         (long long)KERN_ES_TABLE_MAX);
    }
    spec->table = is_table && config->eval[0] == '\0' ? config->noise_table : 0;
    return STATUS_OK;
}

Status es_config_spec(const EsConfig *config, KernEsSpec *spec) {
    memset(spec, 0, sizeof *spec);
    if (config->pop % 2 != 0) {
        return host_fail(STATUS_USAGE, "--pop %lld: must be even, members come in antithetic pairs",
                         (long long)config->pop);
    }
    if (config->sigma_min > config->sigma && config->sigma_decay < 1.0) {
        return host_fail(STATUS_USAGE, "--sigma-min %g is above --sigma %g", config->sigma_min, config->sigma);
    }
    if (config->pop * config->episodes > INT32_MAX) {
        return host_fail(STATUS_USAGE, "--pop %lld x --episodes %lld: at most %d episodes in a generation",
                         (long long)config->pop, (long long)config->episodes, INT32_MAX);
    }
    TRY(kern_objective_is(config->env) ? objective_spec(config, spec) : policy_spec(config, spec));
    spec->seed = (uint64_t)config->seed;
    spec->members = (int32_t)config->pop;
    spec->episodes = (int32_t)config->episodes;
    spec->common = config->common_random;
    return set_noise(config, spec);
}
