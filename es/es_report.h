// What esrun prints: the list of simulators, the plan, the result; for people or as JSON.
//
// Errors: STATUS_USAGE for an unknown simulator, STATUS_MEMORY; whether the stream took everything is the caller's to
// check. Thread safety: none.
#ifndef SHOAL_ES_ES_REPORT_H
#define SHOAL_ES_ES_REPORT_H

#include <stdio.h>

#include "es/es.h"

// How a run or a test ended.
typedef struct EsResult {
    const char *outcome; // "target held", "generations done", "stopped", "tested"
    const char *run;     // its folder
    const char *device;  // what it ran on
    const char *params_hash;
    double wall_s;         // of this call
    EsTest test;           // without noise, on unused seeds
    int32_t test_episodes; // 0: not tested, the run was stopped before
} EsResult;

// `env` NULL: all simulators; else one, with spaces, parameters and defaults for training.
Status es_report_list(const char *env, bool json, FILE *stream) HOST_MUST_CHECK;

// "unknown simulator 'cartpol'; did you mean 'cartpole'?" as STATUS_USAGE.
Status es_report_unknown(const char *env) HOST_MUST_CHECK;

Status es_report_plan(const EsConfig *config, const KernEsSpec *spec, const HostPlan *plan, const char *device,
                      bool json, FILE *stream) HOST_MUST_CHECK;

void es_report_result(const Es *es, const EsResult *result, bool json, FILE *stream);

#endif
