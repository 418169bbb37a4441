// One call of a launcher, shared by the parts of kern_launch(). Private to kernels/launcher*.c.
//
// Ownership: kern_launch() owns what is opened. Errors: Status. Thread safety: none.
#ifndef SHOAL_KERNELS_LAUNCHER_RUN_H
#define SHOAL_KERNELS_LAUNCHER_RUN_H

#include <stdio.h>

#include "host/address.h"
#include "host/metrics.h"
#include "host/progress.h"
#include "host/run_dir.h"
#include "kernels/kern_device.h"
#include "kernels/launcher.h"
#include "kernels/view.h"

// The settings that launching depends on, as the trainer's struct holds them.
typedef struct LaunchOptions {
    const char *env, *out, *resume, *config, *eval, *html;
    int64_t seed, test_every, test_episodes, checkpoint_every, html_episodes;
    double target;
    bool stop_at_target, list, dry_run, json, quiet, profile, profile_full;
    int64_t profile_first, profile_last; // steps of the run, counted from 1
    int threads;                         // 0: as many as allowed
} LaunchOptions;

// Which one of several processes this is that a job's launcher has started by the same command line.
typedef struct LaunchRank {
    int rank, count;  // count 0: it was started by itself
    int hosts;        // that they are on; 0: unknown
    int cpus;         // of this host that they may use together; 0: unknown
    const char *tool; // "srun", "mpirun": for messages
} LaunchRank;

typedef struct LaunchRun {
    const KernTrainer *trainer;
    HostConfig config;
    ConfigArgs args;
    LaunchOptions options;
    LaunchRank rank;
    KernDevice device;
    KernRunState at;
    HostRunDir dir;
    HostMetrics metrics;
    HostMember *member;     // of a run with several workers; else NULL
    HostGroup *group;       // of a run with several trainers; else NULL
    KernTrainers *trainers; // likewise
    HostProgress progress;
    double start_s;
    int64_t begun, begun_items; // steps, and items of them, that were done before this process came to the run
    HostMemberFigures figures;  // of `member`, by the last step that was done
    int64_t saved;              // steps done in the newest checkpoint; -1: none
    int64_t written;            // rows of metrics.csv
    KernTest test;              // the latest, if there was one
    bool has_test;
    int64_t tested_at;     // steps done at that time
    bool is_profiled;      // now
    bool has_profile;      // since then or earlier
    int64_t profiled_from; // env steps of the run when that began
    bool has_stepped;      // in this process
    bool is_tested;        // the final test was made
    bool is_stopped;       // by a signal
    char outcome[32];      // "target held", "generations done", "stopped", "tested"
} LaunchRun;

// An option's text.
static inline const char *launch_text(const LaunchRun *run, const char *name) {
    return host_config_chars(&run->config, name);
}

// Puts the layers together: simulator defaults < config file (or the resumed run's) < command line.
Status launch_read_settings(LaunchRun *run, int argc, char **argv) HOST_MUST_CHECK;

// --profile: begins before the first step of the window, ends after the last one. What cannot be recorded any more is
// said, and ends no run.
Status launch_profile_begin(LaunchRun *run) HOST_MUST_CHECK;
void launch_profile_end(LaunchRun *run);
void launch_profile_missed(LaunchRun *run); // warns of a run that ended without the profile that was asked for
// The same of a worker that helps, before it computes something of the step behind so many that are done. context: the
// run.
void launch_profile_work(void *context, int64_t label);
// Waits a moment until the master's clock is known: before there is work, which waits for nothing.
void launch_await_clock(LaunchRun *run);

// Checks that a resumed run's settings are those of its checkpoint, but for what may change.
Status launch_check_resumed(LaunchRun *run, const char *checkpoint) HOST_MUST_CHECK;

// Opens the device that the settings name.
Status launch_open_device(LaunchRun *run) HOST_MUST_CHECK;

// Whether this process is none that leads a run: a master, an evaluator, a follower, a look at a master's status; and
// being it.
bool launch_is_helper(const LaunchRun *run);
Status launch_help_run(LaunchRun *run, int *exit_status) HOST_MUST_CHECK;

// Whether the algorithm has workers that are no trainers; of a trainer that works with others.
bool launch_has_evaluators(const LaunchRun *run);

// Whether this process is to start others, one of which trains; and doing so until the run ends.
bool launch_is_supervisor(const LaunchRun *run);
Status launch_supervise(LaunchRun *run, int *exit_status) HOST_MUST_CHECK;

// Checks what the options about workers have to do with each other.
Status launch_check_workers(LaunchRun *run) HOST_MUST_CHECK;

// Where the run's master is, by an endpoint or by the run's folder; and the keys.
Status launch_find_master(const LaunchRun *run, const char *where, char endpoint[HOST_ENDPOINT_MAX],
                          HostKeys *keys) HOST_MUST_CHECK;

// Joins the master as the run's trainer, where this process was started as one.
Status launch_join_as_trainer(LaunchRun *run) HOST_MUST_CHECK;

// "unknown simulator 'cartpol'; did you mean 'cartpole'?" as STATUS_USAGE.
Status launch_unknown_simulator(const LaunchRun *run, const char *env) HOST_MUST_CHECK;

// Whether the trainer knows objectives without a simulator; whether the run is of one; and what folders are called
// after: the simulator, or the objective's kind. Returns `text`.
bool launch_has_objectives(const LaunchRun *run);
bool launch_is_objective(const LaunchRun *run);
const char *launch_label(const LaunchRun *run, char text[KERN_OBJECTIVE_LABEL_MAX]);

// The objective of that name; and the settings that suit it, below what was given. What it has not is refused.
Status launch_find_objective(const LaunchRun *run, const char *name, KernObjective *objective) HOST_MUST_CHECK;
Status launch_objective_settings(LaunchRun *run, const KernObjective *objective) HOST_MUST_CHECK;

// The objectives' lines below those of simulators; and all about one.
void launch_list_objectives(const LaunchRun *run, FILE *stream);
Status launch_list_objective(const LaunchRun *run, const char *name, FILE *stream) HOST_MUST_CHECK;

// The settings that mean anything for a run of a simulator, or of an objective, and what they are by default, as
// config.json writes them; a target that there is not is left out. Free the text.
Status launch_default_settings(const KernTrainer *trainer, const SimSpec *sim, const KernObjective *objective,
                               char **json) HOST_MUST_CHECK;

// `env` NULL: all simulators; else one, with spaces, parameters and defaults for training.
Status launch_print_list(const LaunchRun *run, const char *env, FILE *stream) HOST_MUST_CHECK;
Status launch_print_plan(const LaunchRun *run, const KernRunPlan *plan, FILE *stream) HOST_MUST_CHECK;
void launch_print_result(const LaunchRun *run, const char *folder, FILE *stream);

#endif
