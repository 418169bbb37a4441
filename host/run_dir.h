// A run's folder: config.json, metrics.csv, checkpoint/, held by one process at a time.
//
// Ownership: HostRunDir holds the lock until host_run_dir_close() or the process ends. Errors: STATUS_USAGE (the folder
// holds a run already, or none to resume), STATUS_IO (cannot be made, is not a folder, is in use). Thread safety: none.
#ifndef SHOAL_HOST_RUN_DIR_H
#define SHOAL_HOST_RUN_DIR_H

#include <stdint.h>

#include "host/file.h"
#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostRunDir {
    char path[HOST_PATH_MAX];
    int lock_fd; // -1 when closed
} HostRunDir;

// Makes the folder and locks it. `out` is the folder itself; "" or NULL picks a fresh runs/<env>-<date>-<counter>.
// A folder that holds a run is refused.
Status host_run_dir_create(HostRunDir *run, const char *out, const char *env) HOST_MUST_CHECK;

// Locks a folder that holds a run, and clears temporary files that a killed process left there.
Status host_run_dir_resume(HostRunDir *run, const char *path) HOST_MUST_CHECK;

void host_run_dir_close(HostRunDir *run);

// Paths within a run's folder; `run_path` need not be locked (--eval reads a run that may still be going on).
Status host_run_config_path(const char *run_path, char path[HOST_PATH_MAX]) HOST_MUST_CHECK;
Status host_run_secret_path(const char *run_path, char path[HOST_PATH_MAX]) HOST_MUST_CHECK;
Status host_run_master_path(const char *run_path, char path[HOST_PATH_MAX]) HOST_MUST_CHECK; // where its master is
Status host_run_metrics_path(const char *run_path, char path[HOST_PATH_MAX]) HOST_MUST_CHECK;
Status host_run_checkpoint_path(const char *run_path, int64_t generation, char path[HOST_PATH_MAX]) HOST_MUST_CHECK;

// The newest checkpoint and its generation; generation = -1 and path = "" if there is none.
Status host_run_newest_checkpoint(const char *run_path, int64_t *generation, char path[HOST_PATH_MAX]) HOST_MUST_CHECK;

// Writes config.json (atomically); from then on the folder "holds a run".
Status host_run_dir_write_config(const HostRunDir *run, const char *json) HOST_MUST_CHECK;

// Removes all checkpoints but the `keep` newest. Call it after a new one is committed.
Status host_run_dir_prune(const HostRunDir *run, int keep) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
