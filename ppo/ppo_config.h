// pporun's options, the defaults that suit each simulator, and what follows from them for the kernels.
//
// Ownership: plain data. Errors: STATUS_USAGE, naming option, value and range. Thread safety: none.
#ifndef SHOAL_PPO_PPO_CONFIG_H
#define SHOAL_PPO_PPO_CONFIG_H

#include "host/config.h"
#include "kernels/ppo_kern.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PpoConfig {
#define OPTION  HOST_CONFIG_FIELD
#define COMMAND HOST_CONFIG_FIELD
#include "ppo/ppo_config.def"
} PpoConfig;

const ConfigTable *ppo_config_table(void);

// Applies the defaults that suit the simulator, and as many shards as suit the envs, below whatever was given.
Status ppo_config_simulator_defaults(HostConfig *config, const SimSpec *sim) HOST_MUST_CHECK;

// Checks what no single range can (shards that divide the envs, at least one update, ...) and makes the kernels'
// specification.
Status ppo_config_spec(const PpoConfig *config, KernPpoSpec *spec) HOST_MUST_CHECK;

// Env steps of one update, and updates of the run.
int64_t ppo_config_update_steps(const PpoConfig *config);
int64_t ppo_config_updates(const PpoConfig *config);

// What update `update` (counted from 0) is made with. A pure function of the two, so that a resumed run gets the same
// bits.
void ppo_config_step(const PpoConfig *config, int64_t update, KernPpoStep *step);

// Whether a run that was made with the settings `then` may go on with `now`: a run that anneals may not change its
// length.
Status ppo_config_check_resume(const void *now, const void *then) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
