// esrun: trains a policy by evolution strategies.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "es/es.h"
#include "es/es_report.h"
#include "host/clock.h"
#include "host/metrics.h"
#include "host/progress.h"
#include "host/run_dir.h"
#include "host/signals.h"

enum { CHECKPOINTS_KEPT = 2 };

// Everything one call of esrun holds.
typedef struct EsRun {
    EsConfig values;
    HostConfig config;
    ConfigArgs args;
    HostPool *pool;
    KernBackend *backend;
    char device[128];
    Es es;
    HostRunDir dir;
    HostMetrics metrics;
    HostProgress progress;
    double start_s;
    int64_t saved_generation; // of the newest checkpoint; -1: none
    EsTest test;              // the latest
    const char *outcome;
} EsRun;

// M(column of metrics.csv, value)
#define METRICS(M)                                                    \
    M(generation, (double)report->generation)                         \
    M(env_steps, (double)run->es.env_steps)                           \
    M(train_s, run->es.train_s)                                       \
    M(env_steps_per_s, (double)report->env_steps / report->wall_s)    \
    M(return_mean, report->return_mean)                               \
    M(return_min, report->return_min)                                 \
    M(return_max, report->return_max)                                 \
    M(length_mean_steps, report->length_mean)                         \
    M(sigma, report->sigma)                                           \
    M(learning_rate, report->lr)                                      \
    M(test_return_mean, tested ? run->test.return_mean : (double)NAN) \
    M(test_return_std, tested ? run->test.return_std : (double)NAN)

#define METRICS_NAME(name, value) #name,
static const char *const metrics_columns[] = {METRICS(METRICS_NAME)};
enum { METRICS_COUNT = sizeof metrics_columns / sizeof metrics_columns[0] };

// ---- settings ------------------------------------------------------------------------------------------------------

// Settings that do not change what a run computes, only how far it goes: a resumed run may be given others.
static bool may_change_on_resume(const char *name) {
    static const char *const names[] = {"env",        "generations",   "target",          "stop_at_target",
                                        "test_every", "test_episodes", "checkpoint_every"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static Status check_resume(const EsRun *run) {
    const ConfigTable *table = es_config_table();
    for (int i = 0; i < table->count; i++) {
        const ConfigOption *option = &table->options[i];
        if (option->command || host_config_layer(&run->config, option->name) != CONFIG_ARGS) continue;
        if (!may_change_on_resume(option->name)) {
            return host_fail(STATUS_USAGE, "--%s cannot be changed with --resume: it would be another run",
                             option->name);
        }
    }
    if (run->values.out[0] != '\0' || run->values.config[0] != '\0') {
        return host_fail(STATUS_USAGE, "--resume takes folder and settings from the run: leave out --%s",
                         run->values.out[0] != '\0' ? "out" : "config");
    }
    return STATUS_OK;
}

// Puts the layers together: simulator defaults < config file (or the resumed run's) < command line.
static Status read_settings(EsRun *run, int argc, char **argv) {
    host_config_init(&run->config, es_config_table(), &run->values);
    TRY(host_config_parse_args(&run->config, argc, argv, &run->args));
    if (run->args.help || run->args.version || run->values.list) return STATUS_OK;
    if (run->args.count > 1) {
        return host_fail(STATUS_USAGE, "one simulator at a time: '%s' and '%s'", run->args.positional[0],
                         run->args.positional[1]);
    }
    const char *folder = run->values.resume[0] != '\0' ? run->values.resume : run->values.eval;
    char path[HOST_PATH_MAX];
    if (run->values.resume[0] != '\0' && run->values.eval[0] != '\0') {
        return host_fail(STATUS_USAGE, "--resume and --eval: one of them");
    }
    if (folder[0] != '\0') {
        TRY(check_resume(run));
        TRY(host_run_config_path(folder, path));
        TRY(host_config_from_file(&run->config, CONFIG_FILE, path));
    } else if (run->values.config[0] != '\0') {
        TRY(host_config_from_file(&run->config, CONFIG_FILE, run->values.config));
    }
    if (run->args.count == 1) {
        const SimSpec *named = sim_spec_find(run->args.positional[0]);
        if (named == NULL) return es_report_unknown(run->args.positional[0]);
        if (folder[0] != '\0' && strcmp(named->name, run->values.env) != 0) {
            return host_fail(STATUS_USAGE, "%s is a run of %s, not of %s", folder, run->values.env, named->name);
        }
        TRY(host_config_set(&run->config, CONFIG_ARGS, "env", named->name));
    }
    if (run->values.env[0] == '\0') return host_fail(STATUS_USAGE, "which simulator? esrun ENV; --list shows them");
    const SimSpec *sim = sim_spec_find(run->values.env);
    if (sim == NULL) return es_report_unknown(run->values.env);
    return es_config_simulator_defaults(&run->config, sim);
}

// ---- device --------------------------------------------------------------------------------------------------------

static Status open_cpu(EsRun *run) {
    static const char *const isas[] = {"auto", "baseline", "v3", "v4"};
    int64_t threads = 0;
    if (strcmp(run->values.threads, "auto") != 0) {
        TRY(host_parse_int("--threads", run->values.threads, 1, HOST_THREADS_MAX, "threads", &threads));
    }
    TRY(host_pool_create((int)threads, run->values.bind == 0 ? HOST_BIND_NONE : HOST_BIND_CORE, &run->pool));
    if (host_pool_is_oversubscribed(run->pool)) {
        fprintf(stderr, "esrun: warning: %d threads on %d allowed cores: slower than %d threads would be\n",
                host_pool_threads(run->pool), host_cpu_allowed(), host_cpu_allowed());
    }
    KernCpuOptions options = {run->pool, isas[run->values.isa], (int)run->values.lanes};
    return kern_cpu_open(&options, &run->backend);
}

static Status open_device(EsRun *run) {
    enum { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };
    if (run->values.device != DEVICE_CPU) {
        Status status = kern_cuda_open((int)run->values.gpu, &run->backend);
        if (status != STATUS_OK && run->values.device == DEVICE_CUDA) return status;
        if (status != STATUS_OK && !run->values.quiet) fprintf(stderr, "esrun: on the CPU: %s\n", host_message());
    }
    if (run->backend == NULL) TRY(open_cpu(run));
    run->backend->ops->describe(run->backend, run->device, sizeof run->device);
    return STATUS_OK;
}

// ---- training ------------------------------------------------------------------------------------------------------

static Status save(EsRun *run) {
    if (run->saved_generation == run->es.generation) return STATUS_OK;
    char path[HOST_PATH_MAX];
    TRY(host_run_checkpoint_path(run->dir.path, run->es.generation, path));
    TRY(es_save(&run->es, path));
    run->saved_generation = run->es.generation;
    return host_run_dir_prune(&run->dir, CHECKPOINTS_KEPT);
}

static Status write_metrics(EsRun *run, const EsReport *report, bool tested) {
#define METRICS_VALUE(name, value) value,
    const double row[] = {METRICS(METRICS_VALUE)};
    return host_metrics_row(&run->metrics, row);
}

// Tests the policy; `held` when it meets the target, and then again on other seeds.
static Status test_target(EsRun *run, bool *held) {
    uint32_t round = 2 * (uint32_t)run->es.generation;
    int32_t episodes = (int32_t)run->values.test_episodes;
    TRY(es_test(&run->es, round, episodes, &run->test));
    *held = run->test.return_mean >= run->values.target;
    if (!*held || !run->values.stop_at_target) return STATUS_OK;
    EsTest again;
    TRY(es_test(&run->es, round + 1, episodes, &again));
    *held = again.return_mean >= run->values.target;
    return STATUS_OK;
}

static Status train(EsRun *run) {
    run->outcome = "generations done";
    while (run->es.generation < run->values.generations) {
        EsReport report;
        TRY(es_generation(&run->es, &report));
        bool tested = report.generation % run->values.test_every == 0, held = false;
        if (tested) TRY(test_target(run, &held));
        TRY(write_metrics(run, &report, tested));
        char text[96];
        snprintf(text, sizeof text, "return %.1f (test %.1f), %.1fM env steps/s", report.return_mean,
                 run->test.return_mean, (double)report.env_steps / report.wall_s * 1e-6);
        host_progress_update(&run->progress, report.generation, text);
        if (held && run->values.stop_at_target) {
            run->outcome = "target held";
            break;
        }
        if (report.generation % run->values.checkpoint_every == 0) TRY(save(run));
    }
    return STATUS_OK;
}

static Status finish(EsRun *run) {
    host_progress_finish(&run->progress);
    TRY(save(run));
    if (strcmp(run->outcome, "stopped") != 0) {
        TRY(es_test(&run->es, ES_TEST_FINAL, (int32_t)run->values.test_episodes, &run->test));
    }
    return STATUS_OK;
}

static void print_result(const EsRun *run, const char *folder) {
    char hash[17];
    EsResult result = {
        .outcome = run->outcome,
        .run = folder,
        .device = run->device,
        .params_hash = host_hash_text(es_params_hash(&run->es), hash),
        .wall_s = host_now_s() - run->start_s,
        .test = run->test,
        .test_episodes = (int32_t)run->values.test_episodes,
    };
    es_report_result(&run->es, &result, run->values.json, stdout);
}

// Opens the run's folder and brings the state to where it left off.
static Status open_run(EsRun *run) {
    bool resume = run->values.resume[0] != '\0';
    char path[HOST_PATH_MAX], *json = NULL;
    run->saved_generation = -1;
    if (resume) {
        TRY(host_run_dir_resume(&run->dir, run->values.resume));
        TRY(host_run_newest_checkpoint(run->dir.path, &run->saved_generation, path));
        if (run->saved_generation >= 0) TRY(es_load(&run->es, path));
    } else {
        TRY(host_run_dir_create(&run->dir, run->values.out, run->values.env));
    }
    TRY(host_config_to_json(&run->config, &json));
    Status status = host_run_dir_write_config(&run->dir, json);
    free(json);
    TRY(status);
    TRY(host_run_metrics_path(run->dir.path, path));
    if (resume) return host_metrics_resume(&run->metrics, path, metrics_columns, METRICS_COUNT, run->es.generation);
    return host_metrics_create(&run->metrics, path, metrics_columns, METRICS_COUNT);
}

static Status run_training(EsRun *run) {
    TRY(es_open(run->backend, &run->values, &run->es));
    TRY(open_run(run));
    if (!run->values.quiet) {
        fprintf(stderr, "esrun: %s on %s, run folder %s\n", run->values.env, run->device, run->dir.path);
    }
    host_progress_init(&run->progress, run->values.quiet ? HOST_PROGRESS_QUIET : HOST_PROGRESS_AUTO, stderr,
                       "generation", run->es.generation, run->values.generations);
    Status status = train(run);
    if (status == STATUS_STOPPED) {
        run->outcome = "stopped";
        status = STATUS_OK;
    }
    if (status == STATUS_OK) status = finish(run);
    if (status != STATUS_OK) return status;
    print_result(run, run->dir.path);
    if (strcmp(run->outcome, "stopped") == 0) {
        fprintf(stderr, "esrun: stopped after a checkpoint; go on with: esrun --resume %s\n", run->dir.path);
    }
    return STATUS_OK;
}

// ---- the other things esrun does -----------------------------------------------------------------------------------

static Status run_eval(EsRun *run) {
    char path[HOST_PATH_MAX];
    int64_t generation = -1;
    TRY(host_run_newest_checkpoint(run->values.eval, &generation, path));
    if (generation < 0) return host_fail(STATUS_IO, "%s: holds no checkpoint yet", run->values.eval);
    TRY(es_open(run->backend, &run->values, &run->es));
    TRY(es_load(&run->es, path));
    TRY(es_test(&run->es, ES_TEST_FINAL, (int32_t)run->values.test_episodes, &run->test));
    run->outcome = "tested";
    print_result(run, run->values.eval);
    return STATUS_OK;
}

static Status run_dry(EsRun *run) {
    KernEsSpec spec;
    HostPlan plan;
    host_plan_init(&plan);
    TRY(es_config_spec(&run->values, &spec));
    TRY(es_plan(run->backend, &run->values, &plan));
    es_report_plan(&run->values, &spec, &plan, run->device, run->values.json, stdout);
    return STATUS_OK;
}

static void print_help(void) {
    printf("esrun ENV [options]        train a policy for a simulator by evolution strategies\n"
           "esrun --resume DIR         go on with a run\n"
           "esrun --eval RUN           test the policy of a run\n"
           "esrun --list | --list ENV  the simulators; one simulator's parameters and defaults\n\n");
    host_config_help(es_config_table(), stdout);
}

static Status run_command(EsRun *run, int argc, char **argv) {
    TRY(host_signals_install());
    TRY(read_settings(run, argc, argv));
    if (run->args.help) {
        print_help();
        return STATUS_OK;
    }
    if (run->args.version) {
        printf("esrun %s\n", SHOAL_VERSION);
        return STATUS_OK;
    }
    if (run->values.list) {
        return es_report_list(run->args.count > 0 ? run->args.positional[0] : NULL, run->values.json, stdout);
    }
    KernEsSpec spec;
    TRY(es_config_spec(&run->values, &spec)); // before anything is opened or written
    TRY(open_device(run));
    if (run->values.dry_run) return run_dry(run);
    return run->values.eval[0] != '\0' ? run_eval(run) : run_training(run);
}

int main(int argc, char **argv) {
    static EsRun run = {.metrics = {.fd = -1}, .dir = {.lock_fd = -1}};
    run.start_s = host_now_s();
    Status status = run_command(&run, argc, argv);
    if (status != STATUS_OK) fprintf(stderr, "esrun: %s\n", host_message());
    host_metrics_close(&run.metrics);
    host_run_dir_close(&run.dir);
    es_close(&run.es);
    if (run.backend != NULL) run.backend->ops->close(run.backend);
    host_pool_free(run.pool);
    return status == STATUS_OK ? 0 : status == STATUS_USAGE ? 2 : 1;
}
