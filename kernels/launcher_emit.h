// --emit: what another system starts a run from, of the same command line: a job script for Slurm, manifests for
// Kubernetes. Nothing is started, no folder is made, and the run's secret is never in the text.
//
// Ownership: none. Errors: STATUS_USAGE for what goes into no such text; STATUS_MEMORY. Thread safety: none.
#ifndef SHOAL_KERNELS_LAUNCHER_EMIT_H
#define SHOAL_KERNELS_LAUNCHER_EMIT_H

#include "kernels/launcher_arguments.h"

enum { LAUNCH_JOB_NAME_MAX = 48 };

// The job, as both texts say it.
typedef struct LaunchJob {
    const LaunchRun *run;
    const char *folder;             // of the run
    char name[LAUNCH_JOB_NAME_MAX]; // "shoal-cartpole": small letters, digits and dashes; of Kubernetes unlike any
                                    // other's
    char what[128];                 // for people: "cartpole by esrun 0.1.0: 2 trainers, 6 evaluators"
    int trainers, evaluators;
    int cores;           // of each worker
    bool has_evaluators; // or may have: the algorithm knows them
    bool needs_gpu;
    int port;               // where pods find the master
    bool scales;            // evaluators come and go by a hook that the text brings with it
    LaunchArguments start;  // of a run that is not there yet, or that --resume names
    LaunchArguments always; // of the trainers: also where the run is there
    LaunchArguments helper; // of those that join
} LaunchJob;

// Whether the command line has --emit.
bool launch_emits(const LaunchRun *run);

// Whether that text brings a hook by which evaluators come and go.
bool launch_emit_scales(const LaunchRun *run);

// Prints the text that it asks for.
Status launch_emit(const LaunchRun *run, FILE *stream) HOST_MUST_CHECK;

void launch_emit_slurm(const LaunchJob *job, FILE *stream);
Status launch_emit_k8s(const LaunchJob *job, FILE *stream) HOST_MUST_CHECK;

// A word as a shell reads it back, in single quotes.
void launch_put_shell(FILE *stream, const char *word);

#endif
