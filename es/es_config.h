// esrun's options, the defaults that suit each simulator, and what follows from them for the kernels.
//
// Ownership: plain data. Errors: STATUS_USAGE, naming option, value and range. Thread safety: none.
#ifndef SHOAL_ES_ES_CONFIG_H
#define SHOAL_ES_ES_CONFIG_H

#include "host/config.h"
#include "kernels/kern.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct EsConfig { // NOLINT(clang-analyzer-optin.performance.Padding): in the order of the options
#define OPTION  HOST_CONFIG_FIELD
#define COMMAND HOST_CONFIG_FIELD
#include "es/es_config.def"
} EsConfig;

const ConfigTable *es_config_table(void);

// Applies the defaults that suit the simulator, below whatever was given.
Status es_config_simulator_defaults(HostConfig *config, const SimSpec *sim) HOST_MUST_CHECK;

// Whether a setting means anything for an objective, or for a simulator (KERN_OBJECTIVE_NONE).
bool es_config_applies(const char *name, KernObjectiveKind to);

// The same of an objective. What is given and has no meaning for it is refused.
Status es_config_objective_defaults(HostConfig *config, const KernObjective *objective) HOST_MUST_CHECK;

// Checks what no single range can (an even population, sigma_min <= sigma, ...) and makes the kernels' specification.
Status es_config_spec(const EsConfig *config, KernEsSpec *spec) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
