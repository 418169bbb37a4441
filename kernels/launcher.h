// What every launcher does, once for all algorithms: reads settings, opens device and run folder, trains, tests, saves,
// goes on with a run, tests a run's policy, lists, plans, prints. A launcher is a KernTrainer and a main that calls
// kern_launch().
//
// A run goes on in steps: generations of ES, updates of PPO. After each the policy may be tested on unused seeds, a row
// goes to metrics.csv, and now and then the state to a checkpoint. A run that was interrupted at any moment goes on to
// the state that an unbroken one reaches.
//
// The settings' table must have: env, seed, target, stop_at_target, test_every, test_episodes, checkpoint_every, and
// what kernels/launcher.def adds.
//
// Ownership: a trainer's pointers are borrowed. Errors: kern_launch() prints them and gives the exit status. Thread
// safety: none.
#ifndef SHOAL_KERNELS_LAUNCHER_H
#define SHOAL_KERNELS_LAUNCHER_H

#include "host/config.h"
#include "host/hash.h"
#include "host/member.h"
#include "host/plan.h"
#include "host/trace.h"
#include "kernels/frozen.h"
#include "kernels/kern.h"
#include "kernels/trainers.h"

#ifdef __cplusplus
extern "C" {
#endif

// The simulator as the settings have it: its time limit, parameters that are set, and those drawn anew (set wins).
Status kern_sim_of_settings(KernSim *sim, const char *env, int64_t time_limit, const HostTextList *set,
                            const HostTextList *randomize) HOST_MUST_CHECK;

// One default that suits a simulator, or an objective, better than the option table's.
typedef struct KernSimulatorDefault {
    const char *sim, *option, *value;
} KernSimulatorDefault;

// Applies those of a name below whatever was given.
Status kern_apply_defaults(HostConfig *config, const char *name, const KernSimulatorDefault *defaults,
                           int count) HOST_MUST_CHECK;

// The same, with the simulator's own target and time limit.
Status kern_simulator_defaults(HostConfig *config, const SimSpec *sim, const KernSimulatorDefault *defaults,
                               int count) HOST_MUST_CHECK;

// Where a run stands.
typedef struct KernRunState {
    int64_t done, total; // steps
    int64_t length_done; // as the option counts that says how long a run is
    int64_t env_steps;   // of all steps done
    int64_t items;       // of all steps done, what evaluators help with: members; 0: they help with nothing
    double train_s;      // spent in steps and tests, over all calls of a resumed run
    int64_t envs;        // in flight: environments, or members of a population
    int32_t params;      // number of parameters
    double best_return;  // of an objective: of its best member; -infinity: none yet
} KernRunState;

// What a step did, for the line of progress.
typedef struct KernStepReport {
    int64_t env_steps;
    double wall_s;
    double return_mean; // NaN: no episode ended
} KernStepReport;

// --dry-run. The backend's part of the memory is included.
typedef struct KernRunPlan {
    HostPlan memory;
    int32_t params;
    char work[256];            // "population: 256 members x 1 episodes, ..."
    const char *env_steps_key; // in JSON: "env_steps_per_generation_max"
    int64_t env_steps;
} KernRunPlan;

// What records a profile of a run, in its folder: kern_launch() says when.
typedef struct KernProfiler {
    // From now on. `text` receives a warning for people, or "".
    Status (*start)(void *self, const HostTraceRun *run, char *text, size_t size);
    // No longer. env_steps: done meanwhile, tests apart. `text` receives a line for people.
    Status (*stop)(void *self, int64_t env_steps, char *text, size_t size);
    void *self; // lasts as long as the program's threads
} KernProfiler;

// What a trainer does that works with others; its table has what kernels/workers.def adds.
typedef struct KernWorkers {
    // The lead's part: from now on steps are shared with whoever is there. `member` and `trainers` outlive the state.
    // trainers: NULL, or several of them, which the state may come from: it may be further than it was.
    Status (*attach)(void *state, HostMember *member, KernTrainers *trainers);
    // An evaluator's whole life, in which it computes what the master leases it. NULL: all workers are trainers.
    Status (*evaluate)(void *state, HostMember *member);
    // That of a trainer which follows the lead.
    Status (*follow)(void *state, HostMember *member, KernTrainers *trainers);
    // kernels/trainers.h says what these are.
    uint64_t (*hash)(const void *state);
    Status (*pack)(const void *state, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes);
    Status (*take)(void *state, const HostCheckpoint *file, const char *name);
    size_t report_bytes;
    void (*report_row)(const void *report, double *row); // of metrics.csv, [column_count]
} KernWorkers;

// Steps between two checkpoints of a run of several trainers, at most: so many rows are kept in memory.
enum { KERN_ROWS_MAX = 4096 };

typedef struct KernTrainer {
    const char *tool;    // "esrun"
    const char *version; // "1.2.3"
    const char *help;    // what --help prints above the options
    const char *step;    // "generation"; messages and the JSON result add an s where they count them
    const char *length;  // the option that says how long a run is: "generations"
    const ConfigTable *table;
    void *values;               // the table's struct
    void *state;                // the trainer's own; zeros: not open
    KernProfiler profiler;      // of --profile
    const char *const *columns; // of metrics.csv, [column_count]; those of the test follow
    int column_count;
    const KernWorkers *workers; // NULL: it works alone

    // Applies the defaults that suit the simulator, below whatever was given.
    Status (*defaults)(HostConfig *config, const SimSpec *sim);
    // The same of an objective without a simulator. NULL: it trains on simulators alone.
    Status (*objective_defaults)(HostConfig *config, const KernObjective *objective);
    // Whether a setting means anything for an objective, or for a simulator (KERN_OBJECTIVE_NONE). NULL: all do.
    bool (*applies)(const char *name, KernObjectiveKind to);
    // Checks what no single range can.
    Status (*check)(const void *values);
    // Whether a run made with the settings `then` may go on with `now`; of those that may change at all. NULL: it may.
    Status (*check_resume)(const void *now, const void *then);
    Status (*plan)(KernBackend *backend, const void *values, KernRunPlan *plan);

    Status (*open)(void *state, KernBackend *backend, const void *values);
    void (*close)(void *state);
    // One step, or several where other trainers are further. What is stopped or fails leaves the state that save()
    // writes as it was.
    Status (*advance)(void *state, KernStepReport *report);
    Status (*test)(void *state, uint32_t round, int32_t episodes, KernTest *test);
    // What was tested last, borrowed until the state changes.
    void (*frozen)(const void *state, KernFrozen *out);
    void (*describe)(const void *state, KernRunState *out);
    HostHash (*params_hash)(const void *state);
    void (*row)(const void *state, double *row); // of metrics.csv after a step, [column_count]
    Status (*save)(const void *state, const char *path);
    Status (*load)(void *state, const char *path);
    // What goes to the run's folder besides, with every checkpoint and at the end. test: of the present state; NULL:
    // none was made. NULL: nothing does.
    Status (*write)(const void *state, const char *folder, const KernTest *test);
} KernTrainer;

// The whole program; gives its exit status: 0 done, 1 the run failed, 2 bad usage.
int kern_launch(const KernTrainer *trainer, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
