// esrun: trains a policy by evolution strategies.
#include <stdio.h>

#include "es/es_best.h"
#include "es/es_remote.h"
#include "es/es_trainers.h"
#include "host/plural.h"
#include "kernels/launcher.h"
#include "kernels/objective_library.h"
#include "profiler/prof_launch.h"
#include "profiler/prof_nvtx.h"

typedef struct EsRun {
    Es es;
    EsReport report; // of the last generation
} EsRun;

// M(column of metrics.csv, value)
#define METRICS(M)                                                 \
    M(generation, (double)report->generation)                      \
    M(env_steps, (double)report->env_steps_total)                  \
    M(train_s, report->train_s)                                    \
    M(env_steps_per_s, (double)report->env_steps / report->wall_s) \
    M(return_mean, report->return_mean)                            \
    M(return_min, report->return_min)                              \
    M(return_max, report->return_max)                              \
    M(length_mean_steps, report->length_mean)                      \
    M(sigma, report->sigma)                                        \
    M(learning_rate, report->lr)

#define METRICS_NAME(name, value) #name,
static const char *const columns[] = {METRICS(METRICS_NAME)};

static void report_row(const void *of, double *row) {
    const EsReport *report = of;
#define METRICS_VALUE(name, value) *row++ = value;
    METRICS(METRICS_VALUE)
}

static void metrics_row(const void *state, double *row) {
    const EsRun *run = state;
    EsReport report = run->report;
    report.train_s = run->es.train_s; // with the test
    report_row(&report, row);
}

static Status check(const void *values) {
    KernEsSpec spec;
    TRY(es_config_spec(values, &spec));
    return spec.objective.kind == KERN_OBJECTIVE_LIB ? kern_library_check(&spec.objective) : STATUS_OK;
}

static Status plan_run(KernBackend *backend, const void *values, KernRunPlan *plan) {
    const EsConfig *config = values;
    KernEsSpec spec;
    TRY(es_config_spec(config, &spec));
    TRY(es_plan(backend, config, &plan->memory));
    plan->params = spec.policy.params;
    plan->env_steps = config->pop * config->episodes * config->time_limit;
    plan->env_steps_key = "env_steps_per_generation_max";
    if (spec.objective.kind != KERN_OBJECTIVE_NONE) {
        snprintf(plan->work, sizeof plan->work, "population: %lld members, each evaluated once in a generation",
                 (long long)config->pop);
        return STATUS_OK;
    }
    snprintf(plan->work, sizeof plan->work,
             "population: %lld members x %lld episode%s, at most %lld env steps in a generation",
             (long long)config->pop, (long long)config->episodes, host_plural(config->episodes),
             (long long)plan->env_steps);
    return STATUS_OK;
}

static Status open_run(void *state, KernBackend *backend, const void *values) {
    return es_open(backend, values, &((EsRun *)state)->es);
}

static void close_run(void *state) { es_close(&((EsRun *)state)->es); }

static Status advance(void *state, KernStepReport *step) {
    EsRun *run = state;
    TRY(es_generation(&run->es, &run->report));
    for (int32_t i = run->report.lost; i > 0; i--) {
        const EsLost *lost = &run->es.lost[run->es.lost_count - i];
        fprintf(stderr,
                "esrun: warning: generation %lld: member %lld ends every worker that evaluates it; it ranks last\n",
                (long long)lost->generation, (long long)lost->member);
    }
    *step = (KernStepReport){run->report.env_steps, run->report.wall_s, run->report.return_mean};
    return STATUS_OK;
}

static Status test(void *state, uint32_t round, int32_t episodes, KernTest *result) {
    return es_test(&((EsRun *)state)->es, round, episodes, result);
}

static void frozen(const void *state, KernFrozen *out) { es_frozen(&((const EsRun *)state)->es, out); }

static void describe(const void *state, KernRunState *out) {
    const Es *es = &((const EsRun *)state)->es;
    *out = (KernRunState){
        .done = es->generation,
        .total = es->config.generations,
        .length_done = es->generation,
        .env_steps = es->env_steps,
        .items = es->generation * es->config.pop,
        .envs = es->config.pop,
        .train_s = es->train_s,
        .params = es->spec.policy.params,
        .best_return = (double)es->best.fitness,
    };
}

static HostHash params_hash(const void *state) { return es_params_hash(&((const EsRun *)state)->es); }

static Status save(const void *state, const char *path) { return es_save(&((const EsRun *)state)->es, path); }
static Status write_best(const void *state, const char *folder, const KernTest *tested) {
    return es_best_write(&((const EsRun *)state)->es, folder, tested);
}
static Status load(void *state, const char *path) { return es_load(&((EsRun *)state)->es, path); }

static Status attach(void *state, HostMember *member, KernTrainers *trainers) {
    EsRun *run = state;
    TRY(es_remote_open(&run->es, member));
    if (trainers == NULL) return STATUS_OK;
    TRY(es_trainers_open(&run->es, trainers));
    TRY(es_trainers_join(&run->es));
    // Where others were further, the report is that of their last generation.
    const EsReport *last = kern_trainers_report(trainers, run->es.generation, NULL);
    if (last != NULL) run->report = *last;
    return STATUS_OK;
}

static Status evaluate(void *state, HostMember *member) { return es_remote_evaluator(&((EsRun *)state)->es, member); }

static Status follow(void *state, HostMember *member, KernTrainers *trainers) {
    Es *es = &((EsRun *)state)->es;
    TRY(es_trainers_open(es, trainers));
    return es_trainers_follow(es, member);
}

static uint64_t state_hash(const void *state) { return es_state_hash(&((const EsRun *)state)->es); }

static Status pack(const void *state, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes) {
    return es_pack(&((const EsRun *)state)->es, more, more_count, bytes, size_bytes);
}

static Status take(void *state, const HostCheckpoint *file, const char *name) {
    return es_load_from(&((EsRun *)state)->es, file, name);
}

int main(int argc, char **argv) {
    static EsRun run;
    static EsConfig values;
    static ProfLaunch profile;
    static const KernWorkers workers = {.attach = attach,
                                        .evaluate = evaluate,
                                        .follow = follow,
                                        .hash = state_hash,
                                        .pack = pack,
                                        .take = take,
                                        .report_bytes = sizeof(EsReport),
                                        .report_row = report_row};
    const KernTrainer trainer = {
        .tool = "esrun",
        .version = SHOAL_VERSION,
        .help = "esrun ENV [options]        train a policy for a simulator by evolution strategies\n"
                "esrun objective:NAME       maximise a function of --dim N parameters, which may be your own\n"
                "esrun --resume DIR         go on with a run\n"
                "esrun --eval RUN           test the policy of a run; --html FILE shows its episodes in a browser\n"
                "esrun --list | --list ENV  the simulators and objectives; one's parameters and defaults\n"
                "esrun ENV --workers N      train with the help of N - 1 evaluators\n"
                "esrun ENV --workers N --trainers T   T of them hold the state and share its update\n"
                "esrun --join ENDPOINT      evaluate for a run elsewhere\n"
                "esrun ENV --emit slurm     print a job script that starts the run; --emit k8s: manifests\n"
                "esrun --status ENDPOINT    what a run's workers do\n",
        .step = "generation",
        .length = "generations",
        .table = es_config_table(),
        .values = &values,
        .state = &run,
        .profiler = {prof_launch_start, prof_launch_stop, &profile},
        .columns = columns,
        .column_count = sizeof columns / sizeof columns[0],
        .workers = &workers,
        .defaults = es_config_simulator_defaults,
        .objective_defaults = es_config_objective_defaults,
        .applies = es_config_applies,
        .check = check,
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
        .write = write_best,
    };
    prof_nvtx_attach();
    int status = kern_launch(&trainer, argc, argv);
    prof_launch_free(&profile);
    return status;
}
