// pporun: trains a policy by proximal policy optimisation.
#include <stdio.h>

#include "host/plural.h"
#include "kernels/launcher.h"
#include "ppo/ppo_trainers.h"
#include "profiler/prof_launch.h"
#include "profiler/prof_nvtx.h"

typedef struct PpoRun {
    Ppo ppo;
    PpoReport report;       // of the last update
    KernTrainers *trainers; // NULL: there is one
} PpoRun;

// M(column of metrics.csv, value)
#define METRICS(M)                                                 \
    M(update, (double)report->update)                              \
    M(env_steps, (double)report->env_steps_total)                  \
    M(train_s, report->train_s)                                    \
    M(env_steps_per_s, (double)report->env_steps / report->wall_s) \
    M(return_mean, report->return_mean)                            \
    M(length_mean_steps, report->length_mean)                      \
    M(policy_loss, report->kern.policy_loss)                       \
    M(value_loss, report->kern.value_loss)                         \
    M(entropy, report->kern.entropy)                               \
    M(kl, report->kern.kl)                                         \
    M(clip_fraction, report->kern.clip_fraction)                   \
    M(explained_variance, report->kern.explained_variance)         \
    M(grad_norm, report->kern.grad_norm)                           \
    M(epochs, (double)report->kern.epochs)                         \
    M(learning_rate, report->learning_rate)

#define METRICS_NAME(name, value) #name,
static const char *const columns[] = {METRICS(METRICS_NAME)};

static void report_row(const void *of, double *row) {
    const PpoReport *report = of;
#define METRICS_VALUE(name, value) *row++ = value;
    METRICS(METRICS_VALUE)
}

static void metrics_row(const void *state, double *row) {
    const PpoRun *run = state;
    PpoReport report = run->report;
    report.train_s = run->ppo.train_s; // with the test
    report_row(&report, row);
}

static Status check(const void *values) {
    KernPpoSpec spec;
    return ppo_config_spec(values, &spec);
}

static Status plan_run(KernBackend *backend, const void *values, KernRunPlan *plan) {
    const PpoConfig *config = values;
    KernPpoSpec spec;
    TRY(ppo_config_spec(config, &spec));
    TRY(ppo_plan(backend, config, &plan->memory));
    plan->params = spec.policy.params;
    int64_t updates = ppo_config_updates(config);
    plan->env_steps = ppo_config_update_steps(config);
    plan->env_steps_key = "env_steps_per_update";
    snprintf(
        plan->work, sizeof plan->work,
        "%lld update%s of %lld env step%s: %lld env%s (%lld shard%s) x %lld step%s, %lld epoch%s of %lld minibatch%s",
        (long long)updates, host_plural(updates), (long long)plan->env_steps, host_plural(plan->env_steps),
        (long long)config->envs, host_plural(config->envs), (long long)config->shards, host_plural(config->shards),
        (long long)config->rollout, host_plural(config->rollout), (long long)config->epochs,
        host_plural(config->epochs), (long long)config->minibatches, config->minibatches == 1 ? "" : "es");
    return STATUS_OK;
}

static Status open_run(void *state, KernBackend *backend, const void *values) {
    return ppo_open(backend, values, &((PpoRun *)state)->ppo);
}

static void close_run(void *state) { ppo_close(&((PpoRun *)state)->ppo); }

static Status advance(void *state, KernStepReport *step) {
    PpoRun *run = state;
    TRY(run->trainers != NULL ? ppo_trainers_update(&run->ppo, run->trainers, &run->report)
                              : ppo_update(&run->ppo, &run->report));
    *step = (KernStepReport){run->report.env_steps, run->report.wall_s, run->report.return_mean};
    return STATUS_OK;
}

static Status test(void *state, uint32_t round, int32_t episodes, KernTest *result) {
    return ppo_test(&((PpoRun *)state)->ppo, round, episodes, result);
}

static void frozen(const void *state, KernFrozen *out) { ppo_frozen(&((const PpoRun *)state)->ppo, out); }

static void describe(const void *state, KernRunState *out) {
    const Ppo *ppo = &((const PpoRun *)state)->ppo;
    *out = (KernRunState){
        .done = ppo->update,
        .total = ppo_config_updates(&ppo->config),
        .length_done = ppo->env_steps,
        .env_steps = ppo->env_steps,
        .envs = ppo->config.envs,
        .train_s = ppo->train_s,
        .params = ppo->spec.policy.params,
    };
}

static HostHash params_hash(const void *state) { return ppo_params_hash(&((const PpoRun *)state)->ppo); }

static Status save(const void *state, const char *path) { return ppo_save(&((const PpoRun *)state)->ppo, path); }
static Status load(void *state, const char *path) { return ppo_load(&((PpoRun *)state)->ppo, path); }

static Status attach(void *state, HostMember *member, KernTrainers *trainers) {
    PpoRun *run = state;
    (void)member;
    if (trainers == NULL) return STATUS_OK;
    run->trainers = trainers;
    TRY(ppo_trainers_join(&run->ppo, trainers));
    // Where others were further, the report is that of their last update.
    const PpoReport *last = kern_trainers_report(trainers, run->ppo.update, NULL);
    if (last != NULL) run->report = *last;
    return STATUS_OK;
}

static Status follow(void *state, HostMember *member, KernTrainers *trainers) {
    return ppo_trainers_follow(&((PpoRun *)state)->ppo, trainers, member);
}

static uint64_t state_hash(const void *state) { return ppo_state_hash(&((const PpoRun *)state)->ppo); }

static Status pack(const void *state, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes) {
    return ppo_pack(&((const PpoRun *)state)->ppo, more, more_count, bytes, size_bytes);
}

static Status take(void *state, const HostCheckpoint *file, const char *name) {
    return ppo_load_from(&((PpoRun *)state)->ppo, file, name);
}

int main(int argc, char **argv) {
    static PpoRun run;
    static PpoConfig values;
    static ProfLaunch profile;
    static const KernWorkers workers = {.attach = attach,
                                        .follow = follow,
                                        .hash = state_hash,
                                        .pack = pack,
                                        .take = take,
                                        .report_bytes = sizeof(PpoReport),
                                        .report_row = report_row};
    const KernTrainer trainer = {
        .tool = "pporun",
        .version = SHOAL_VERSION,
        .help = "pporun ENV [options]        train a policy for a simulator by proximal policy optimisation\n"
                "pporun --resume DIR         go on with a run\n"
                "pporun --eval RUN           test the policy of a run; --html FILE shows its episodes in a browser\n"
                "pporun --list | --list ENV  the simulators; one simulator's parameters and defaults\n"
                "pporun ENV --workers N      N trainers share the updates\n"
                "pporun --status ENDPOINT    what a run's workers do\n",
        .step = "update",
        .length = "steps",
        .table = ppo_config_table(),
        .values = &values,
        .state = &run,
        .profiler = {prof_launch_start, prof_launch_stop, &profile},
        .columns = columns,
        .column_count = sizeof columns / sizeof columns[0],
        .workers = &workers,
        .defaults = ppo_config_simulator_defaults,
        .check = check,
        .check_resume = ppo_config_check_resume,
        .plan = plan_run,
        .open = open_run,
        .close = close_run,
        .advance = advance,
        .test = test,
        .frozen = frozen,
        .describe = describe,
        .params_hash = params_hash,
        .row = metrics_row,
        .save = save,
        .load = load,
    };
    prof_nvtx_attach();
    int status = kern_launch(&trainer, argc, argv);
    prof_launch_free(&profile);
    return status;
}
