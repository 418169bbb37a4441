// What the checkpoints of all algorithms say besides their tensors: which algorithm and policy they are of, the hash of
// the parameters, and the settings they were made with.
//
// Ownership: everything is borrowed. Errors: STATUS_CORRUPT where a checkpoint is of something else, STATUS_USAGE where
// its settings differ, STATUS_IO, STATUS_MEMORY. Thread safety: none.
#ifndef SHOAL_HOST_RUN_STATE_H
#define SHOAL_HOST_RUN_STATE_H

#include "host/checkpoint.h"
#include "host/config.h"
#include "host/hash.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostRunState {
    const char *algorithm; // "es"
    const char *policy;    // "cartpole 4-16-2 tanh": what a checkpoint must agree on with the run that loads it
    HostHash params_hash;
    const ConfigTable *table; // of the settings; its tool is named where a checkpoint is of another
    const void *values;       // the table's struct
} HostRunState;

Status host_run_state_write(const char *path, const HostRunState *state, const HostTensor *tensors,
                            int tensor_count) HOST_MUST_CHECK;

// The same in memory; free the bytes. host_checkpoint_open_memory() takes them back.
Status host_run_state_pack(const HostRunState *state, const HostTensor *tensors, int tensor_count, void **bytes,
                           size_t *size_bytes) HOST_MUST_CHECK;

// Checks algorithm and policy, and reads every tensor of the list: tensors[i] into data[i].
Status host_run_state_read(const HostCheckpoint *file, const char *path, const HostRunState *state,
                           const HostTensor *tensors, void *const *data, int tensor_count) HOST_MUST_CHECK;

// Checks that a checkpoint was made with these settings, but for those that `may_change` names; `agree`, if not NULL,
// then has its say about them. The first setting that differs is named.
Status host_run_state_check_settings(const char *path, const HostConfig *now,
                                     bool (*may_change)(const void *context, const char *name), const void *context,
                                     Status (*agree)(const void *now, const void *then)) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
