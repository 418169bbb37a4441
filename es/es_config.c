#include "es/es_config.h"

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
};

Status es_config_simulator_defaults(HostConfig *config, const SimSpec *sim) {
    return kern_simulator_defaults(config, sim, simulator_defaults,
                                   sizeof simulator_defaults / sizeof simulator_defaults[0]);
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
    TRY(kern_sim_of_settings(&spec->sim, config->env, config->time_limit, &config->set, &config->randomize));
    TRY(policy_shape(&spec->policy, spec->sim.spec, config->hidden.at, config->hidden.count,
                     config->activation == 0 ? POLICY_TANH : POLICY_RELU));
    TRY(policy_set_recurrent(&spec->policy, (int32_t)config->recurrent));
    spec->policy.precision = config->precision == 0 ? POLICY_FLOAT32 : POLICY_BF16;
    spec->seed = (uint64_t)config->seed;
    spec->members = (int32_t)config->pop;
    spec->episodes = (int32_t)config->episodes;
    spec->common = config->common_random;
    return set_noise(config, spec);
}
