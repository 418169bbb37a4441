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
    int threads; // 0: as many as allowed
    HostPool *pool;
    KernBackend *backend;
    char device[128];
    Es es;
    HostRunDir dir;
    HostMetrics metrics;
    HostProgress progress;
    double start_s;
    int64_t saved_generation; // of the newest checkpoint; -1: none
    EsTest test;              // the latest, if there was one
    bool has_test;
    bool is_tested; // the final test was made
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

// Settings of a run that a later call may be given anew. With --resume, those that do not change what the run computes,
// only how far it goes; with --eval, those that say what the policy is tested on.
static bool may_change(const char *name, bool resume) {
    static const struct {
        const char *name;
        bool resume, eval;
    } settings[] = {
        {"env", true, true},
        {"generations", true, false},
        {"target", true, true},
        {"stop_at_target", true, false},
        {"test_every", true, false},
        {"test_episodes", true, true},
        {"checkpoint_every", true, false},
        {"set", false, true},
        {"randomize", false, true},
        {"time_limit", false, true},
        {"seed", false, true},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].name, name) == 0) return resume ? settings[i].resume : settings[i].eval;
    }
    return false;
}

static bool may_change_on_resume(const char *name) { return may_change(name, true); }

// What --resume and --eval do not go with.
static Status check_given(const EsRun *run) {
    bool resume = run->values.resume[0] != '\0';
    const char *command = resume ? "--resume" : "--eval";
    if (resume && run->values.eval[0] != '\0') return host_fail(STATUS_USAGE, "--resume and --eval: one of them");
    if (run->values.out[0] != '\0' || run->values.config[0] != '\0') {
        return host_fail(STATUS_USAGE, "%s takes folder and settings from the run: leave out --%s", command,
                         run->values.out[0] != '\0' ? "out" : "config");
    }
    const ConfigTable *table = es_config_table();
    for (int i = 0; i < table->count; i++) {
        const ConfigOption *option = &table->options[i];
        if (option->command || host_config_layer(&run->config, option->name) != CONFIG_ARGS) continue;
        if (may_change(option->name, resume)) continue;
        char name[HOST_CONFIG_NAME_MAX];
        return host_fail(STATUS_USAGE, "--%s cannot be changed with %s: it is the run's",
                         host_config_spell(option->name, true, name), command);
    }
    return STATUS_OK;
}

// Reads the settings of the run or of the file that was named; `source` is what messages call it, "" if there is none.
static Status read_file(EsRun *run, const char **source) {
    EsConfig *values = &run->values;
    *source = values->resume[0] != '\0' ? values->resume : values->eval;
    if ((*source)[0] != '\0') {
        char path[HOST_PATH_MAX];
        TRY(check_given(run));
        TRY(host_run_config_path(*source, path));
        return host_config_from_file(&run->config, CONFIG_FILE, path);
    }
    *source = values->config;
    if ((*source)[0] == '\0') return STATUS_OK;
    return host_config_from_file(&run->config, CONFIG_FILE, values->config);
}

// Puts the layers together: simulator defaults < config file (or the resumed run's) < command line.
static Status read_settings(EsRun *run, int argc, char **argv) {
    host_config_init(&run->config, es_config_table(), &run->values);
    TRY(host_config_parse_args(&run->config, argc, argv, &run->args));
    if (run->args.help || run->args.version) return STATUS_OK;
    if (run->args.count > 1) {
        return host_fail(STATUS_USAGE, "one simulator at a time: '%s' and '%s'", run->args.positional[0],
                         run->args.positional[1]);
    }
    if (run->values.list) return STATUS_OK;
    if (run->values.lanes != 0 && run->values.lanes != 1 && run->values.lanes != 8 && run->values.lanes != 16) {
        return host_fail(STATUS_USAGE, "--lanes %lld: 1, 8 or 16 (0: the instruction set's own)",
                         (long long)run->values.lanes);
    }
    if (strcmp(run->values.threads, "auto") != 0) {
        int64_t threads = 0;
        TRY(host_parse_int("--threads", run->values.threads, 1, HOST_THREADS_MAX, "threads, or auto", &threads));
        run->threads = (int)threads;
    }
    const char *source = "";
    TRY(read_file(run, &source));
    if (run->args.count == 1) {
        const SimSpec *named = sim_spec_find(run->args.positional[0]);
        if (named == NULL) return es_report_unknown(run->args.positional[0]);
        if (source[0] == '\0' && run->values.env[0] != '\0' && strcmp(named->name, run->values.env) != 0) {
            return host_fail(STATUS_USAGE, "one simulator at a time: '%s' and --env %s", named->name, run->values.env);
        }
        if (source[0] != '\0' && run->values.env[0] != '\0' && strcmp(named->name, run->values.env) != 0) {
            return host_fail(STATUS_USAGE, "%s is of %s, not of %s", source, run->values.env, named->name);
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
    int allowed = host_cpu_allowed(); // before the pool binds this thread to one of them
    TRY(host_pool_create(run->threads, run->values.bind == 0 ? HOST_BIND_NONE : HOST_BIND_CORE, &run->pool));
    if (host_pool_is_oversubscribed(run->pool)) {
        fprintf(stderr, "esrun: warning: %d threads, but this process may use %d core%s: fewer would be faster\n",
                host_pool_threads(run->pool), allowed, allowed == 1 ? "" : "s");
    }
    KernCpuOptions options = {run->pool, isas[run->values.isa], (int)run->values.lanes};
    return kern_cpu_open(&options, &run->backend);
}

static Status open_device(EsRun *run) {
    enum { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };
    char reason[512] = "";
    if (run->values.device != DEVICE_CPU) {
        Status status = kern_cuda_open((int)run->values.gpu, &run->backend);
        if (status != STATUS_OK && run->values.device == DEVICE_CUDA) return status;
        if (status != STATUS_OK) snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, host_message());
    }
    if (run->backend == NULL) TRY(open_cpu(run));
    if (reason[0] != '\0' && !run->values.quiet) fprintf(stderr, "esrun: on the CPU: %s\n", reason);
    if (run->backend == NULL) return host_fail(STATUS_DEVICE, "no device was opened"); // no open function does that
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
    run->has_test = true;
    *held = run->test.return_mean >= run->values.target;
    if (!*held || !run->values.stop_at_target) return STATUS_OK;
    EsTest again;
    TRY(es_test(&run->es, round + 1, episodes, &again));
    *held = again.return_mean >= run->values.target;
    return STATUS_OK;
}

static bool is_test_due(const EsRun *run) {
    return run->es.generation > 0 && run->es.generation % run->values.test_every == 0;
}

static void show_progress(EsRun *run, const EsReport *report) {
    char test[48] = "", text[128];
    if (run->has_test) snprintf(test, sizeof test, " (test %.1f)", run->test.return_mean);
    snprintf(text, sizeof text, "return %.1f%s, %.1fM env steps/s", report->return_mean, test,
             (double)report->env_steps / report->wall_s * 1e-6);
    host_progress_update(&run->progress, report->generation, text);
}

static Status train(EsRun *run) {
    bool held = false;
    // A run that was stopped within a test, or after its last one, is tested again: else it would train on where an
    // unbroken run ends.
    if (run->values.stop_at_target && is_test_due(run)) TRY(test_target(run, &held));
    run->outcome = held ? "target held" : "generations done";
    if (held && !run->values.quiet) {
        host_progress_note(&run->progress, "esrun: the target is held already; --no-stop-at-target trains on");
    }
    while (!held && run->es.generation < run->values.generations) {
        EsReport report;
        TRY(es_generation(&run->es, &report));
        bool tested = is_test_due(run);
        Status status = tested ? test_target(run, &held) : STATUS_OK;
        if (status != STATUS_OK && status != STATUS_STOPPED) return status;
        TRY(write_metrics(run, &report, tested && status == STATUS_OK)); // the generation is done, stopped or not
        TRY(status);
        show_progress(run, &report);
        held = held && run->values.stop_at_target;
        if (held) run->outcome = "target held";
        if (report.generation % run->values.checkpoint_every == 0) TRY(save(run));
    }
    return STATUS_OK;
}

static bool is_stopped(const EsRun *run) { return run->outcome != NULL && strcmp(run->outcome, "stopped") == 0; }

static Status final_test(EsRun *run) {
    TRY(es_test(&run->es, ES_TEST_FINAL, (int32_t)run->values.test_episodes, &run->test));
    run->is_tested = true;
    return STATUS_OK;
}

static Status finish(EsRun *run) {
    TRY(save(run));
    Status status = is_stopped(run) ? STATUS_OK : final_test(run);
    if (status == STATUS_STOPPED) {
        run->outcome = "stopped";
        status = STATUS_OK;
    }
    return status;
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
        .test_episodes = run->is_tested ? (int32_t)run->values.test_episodes : 0,
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
        if (run->saved_generation >= 0) {
            TRY(es_load(&run->es, path));
            TRY(es_check_settings(path, &run->values, may_change_on_resume));
        }
        if (run->values.generations < run->es.generation) {
            return host_fail(STATUS_USAGE, "--generations %lld: the run has done %lld already",
                             (long long)run->values.generations, (long long)run->es.generation);
        }
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
    host_progress_finish(&run->progress);
    if (status == STATUS_OK) status = finish(run);
    if (status != STATUS_OK) return status;
    print_result(run, run->dir.path);
    if (is_stopped(run)) {
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
    TRY(final_test(run));
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
    return es_report_plan(&run->values, &spec, &plan, run->device, run->values.json, stdout);
}

static void print_help(void) {
    printf("esrun ENV [options]        train a policy for a simulator by evolution strategies\n"
           "esrun --resume DIR         go on with a run\n"
           "esrun --eval RUN           test the policy of a run\n"
           "esrun --list | --list ENV  the simulators; one simulator's parameters and defaults\n\n");
    host_config_help(es_config_table(), stdout);
}

static Status run_command(EsRun *run, int argc, char **argv) {
    TRY(host_file_hold_standard());
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
    if (status == STATUS_OK) status = host_file_check_stdout();
    if (status != STATUS_OK) fprintf(stderr, "esrun: %s\n", host_message());
    host_metrics_close(&run.metrics);
    host_run_dir_close(&run.dir);
    es_close(&run.es);
    if (run.backend != NULL) run.backend->ops->close(run.backend);
    host_pool_free(run.pool);
    return status == STATUS_OK ? 0 : status == STATUS_USAGE ? 2 : 1;
}
