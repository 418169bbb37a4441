#include "kernels/launcher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"
#include "host/signals.h"
#include "host/supervise.h"
#include "host/trace.h"
#include "kernels/launcher_emit.h"
#include "kernels/launcher_ranks.h"

enum { CHECKPOINTS_KEPT = 2 };

static void look(LaunchRun *run) { run->trainer->describe(run->trainer->state, &run->at); }

static void set_outcome(LaunchRun *run, const char *outcome) {
    snprintf(run->outcome, sizeof run->outcome, "%s", outcome);
}

static void set_stopped(LaunchRun *run) {
    run->is_stopped = true;
    set_outcome(run, "stopped");
}

// ---- training ------------------------------------------------------------------------------------------------------

static Status write_more(const LaunchRun *run) {
    const KernTrainer *trainer = run->trainer;
    bool is_tested = run->has_test && run->tested_at == run->at.done;
    if (trainer->write == NULL) return STATUS_OK;
    return trainer->write(trainer->state, run->dir.path, is_tested ? &run->test : NULL);
}

static Status save(LaunchRun *run) {
    if (run->saved == run->at.done) return STATUS_OK;
    char path[HOST_PATH_MAX];
    TRY(host_run_checkpoint_path(run->dir.path, run->at.done, path));
    TRY(run->trainer->save(run->trainer->state, path));
    run->saved = run->at.done;
    if (run->trainers != NULL) kern_trainers_saved(run->trainers, run->saved);
    TRY(write_more(run));
    return host_run_dir_prune(&run->dir, CHECKPOINTS_KEPT);
}

static Status open_metrics(LaunchRun *run, bool resume) {
    const char *columns[HOST_METRICS_COLUMNS_MAX];
    int count = run->trainer->column_count;
    memcpy(columns, run->trainer->columns, (size_t)count * sizeof *columns);
    columns[count++] = "test_return_mean";
    columns[count++] = "test_return_std";
    char path[HOST_PATH_MAX];
    TRY(host_run_metrics_path(run->dir.path, path));
    run->written = run->at.done;
    if (resume) return host_metrics_resume(&run->metrics, path, columns, count, run->at.done);
    return host_metrics_create(&run->metrics, path, columns, count);
}

static Status write_metrics(LaunchRun *run, bool tested) {
    double row[HOST_METRICS_COLUMNS_MAX];
    int count = run->trainer->column_count;
    run->trainer->row(run->trainer->state, row);
    row[count++] = tested ? run->test.return_mean : (double)NAN;
    row[count] = tested ? run->test.return_std : (double)NAN;
    run->written = run->at.done;
    return host_metrics_row(&run->metrics, row);
}

// Rows of steps before the present one, which other trainers have done meanwhile.
static Status write_past_rows(LaunchRun *run) {
    for (; run->written < run->at.done - 1; run->written++) {
        KernTested tested;
        const void *report = kern_trainers_report(run->trainers, run->written + 1, &tested);
        if (report == NULL) continue;
        double row[HOST_METRICS_COLUMNS_MAX];
        run->trainer->workers->report_row(report, row);
        row[run->trainer->column_count] = tested.mean;
        row[run->trainer->column_count + 1] = tested.std;
        TRY(host_metrics_row(&run->metrics, row));
    }
    return STATUS_OK;
}

static Status test(LaunchRun *run, uint32_t round, KernTest *result) {
    host_trace_phase(HOST_PHASE_EVALUATE);
    Status status = run->trainer->test(run->trainer->state, round, (int32_t)run->options.test_episodes, result);
    host_trace_phase(HOST_PHASE_TRAIN);
    look(run); // it took time
    return status;
}

static Status test_state(LaunchRun *run, uint32_t round) {
    run->has_test = false; // one that is stopped is none
    TRY(test(run, round, &run->test));
    run->has_test = true;
    run->tested_at = run->at.done;
    return STATUS_OK;
}

// Tests the policy; `held` when it meets the target, and then again on other seeds.
static Status test_target(LaunchRun *run, bool *held) {
    uint32_t round = 2 * (uint32_t)run->at.done;
    TRY(test_state(run, round));
    if (run->trainers != NULL)
        kern_trainers_tested(run->trainers, (KernTested){run->test.return_mean, run->test.return_std});
    *held = run->options.target < KERN_TARGET_NONE && run->test.return_mean >= run->options.target;
    if (!*held || !run->options.stop_at_target) return STATUS_OK;
    KernTest again;
    TRY(test(run, round + 1, &again));
    *held = again.return_mean >= run->options.target;
    return STATUS_OK;
}

static bool is_test_due(const LaunchRun *run) {
    return run->at.done > 0 && run->at.done % run->options.test_every == 0;
}

static void show_progress(LaunchRun *run, const KernStepReport *report) {
    char test_text[48] = "", return_text[48] = "", text[160];
    bool is_objective = launch_is_objective(run);
    const char *form = is_objective ? " (test %.6g)" : " (test %.1f)";
    double per_s = (double)report->env_steps / report->wall_s;
    if (run->has_test) snprintf(test_text, sizeof test_text, form, run->test.return_mean);
    if (isfinite(report->return_mean))
        snprintf(return_text, sizeof return_text, is_objective ? " %.6g" : " %.1f", report->return_mean);
    if (is_objective) {
        snprintf(text, sizeof text, "fitness%s%s, %.0f evaluations/s", return_text, test_text, per_s);
    } else {
        snprintf(text, sizeof text, "return%s%s, %.1fM env steps/s", return_text, test_text, per_s * 1e-6);
    }
    host_progress_update(&run->progress, run->at.done, text);
}

// Tests the policy if it is time to, and brings metrics.csv up to the present step.
static Status record_step(LaunchRun *run, bool *held) {
    bool tested = is_test_due(run);
    Status status = tested ? test_target(run, held) : STATUS_OK;
    if (status != STATUS_OK && status != STATUS_STOPPED) return status;
    TRY(write_past_rows(run));
    TRY(write_metrics(run, tested && status == STATUS_OK)); // the step is done, stopped or not
    return status;
}

// What is left of the steps that are done already.
static Status catch_up(LaunchRun *run, bool *held) {
    if (run->written < run->at.done) return record_step(run, held); // others did them
    // A run that was stopped within a test, or after its last one, is tested again: else it would train on where an
    // unbroken run ends.
    return run->options.stop_at_target && is_test_due(run) ? test_target(run, held) : STATUS_OK;
}

static bool is_checkpoint_due(const LaunchRun *run) {
    if (run->at.done % run->options.checkpoint_every == 0) return true;
    return run->trainers != NULL && run->at.done - run->saved >= KERN_ROWS_MAX;
}

static Status train(LaunchRun *run) {
    const LaunchOptions *options = &run->options;
    bool held = false;
    TRY(catch_up(run, &held));
    held = held && options->stop_at_target;
    snprintf(run->outcome, sizeof run->outcome, held ? "target held" : "%ss done", run->trainer->step);
    if (held && !options->quiet) {
        host_progress_note(&run->progress, "%s: the target is held already; --no-stop-at-target trains on",
                           run->trainer->tool);
    }
    while (!held && run->at.done < run->at.total) {
        KernStepReport report;
        if (host_stop_requested()) return host_fail(STATUS_STOPPED, "stopped between two %ss", run->trainer->step);
        TRY(launch_profile_begin(run));
        host_trace_phase(run->has_stepped ? HOST_PHASE_TRAIN : HOST_PHASE_WARM_UP);
        TRY(run->trainer->advance(run->trainer->state, &report));
        run->has_stepped = true;
        look(run);
        if (run->member != NULL) run->figures = host_member_figures(run->member);
        TRY(record_step(run, &held));
        show_progress(run, &report);
        held = held && options->stop_at_target;
        if (held) set_outcome(run, "target held");
        if (is_checkpoint_due(run)) TRY(save(run));
        if (run->at.done >= options->profile_last) launch_profile_end(run);
    }
    return STATUS_OK;
}

static Status final_test(LaunchRun *run) {
    TRY(test_state(run, KERN_TEST_FINAL));
    run->is_tested = true;
    return STATUS_OK;
}

static Status finish(LaunchRun *run) {
    TRY(save(run));
    Status status = run->is_stopped ? STATUS_OK : final_test(run);
    if (status == STATUS_STOPPED) {
        set_stopped(run);
        status = STATUS_OK;
    }
    if (status == STATUS_OK && run->is_tested) status = write_more(run);
    return status;
}

// Brings the state to where a resumed run left off.
static Status load_newest(LaunchRun *run) {
    const KernTrainer *trainer = run->trainer;
    char path[HOST_PATH_MAX];
    TRY(host_run_dir_resume(&run->dir, run->options.resume));
    TRY(host_run_newest_checkpoint(run->dir.path, &run->saved, path));
    if (run->saved >= 0) {
        TRY(trainer->load(trainer->state, path));
        TRY(launch_check_resumed(run, path));
    }
    look(run);
    int64_t length = host_config_int(&run->config, trainer->length);
    if (length < run->at.length_done) {
        return host_fail(STATUS_USAGE, "--%s %lld: the run has done %lld already", trainer->length, (long long)length,
                         (long long)run->at.length_done);
    }
    return STATUS_OK;
}

// Opens the run's folder and brings the state to where it left off.
static Status open_run(LaunchRun *run) {
    bool resume = run->options.resume[0] != '\0';
    char *json = NULL;
    run->saved = -1;
    char label[KERN_OBJECTIVE_LABEL_MAX];
    TRY(resume ? load_newest(run) : host_run_dir_create(&run->dir, run->options.out, launch_label(run, label)));
    look(run);
    TRY(host_config_to_json(&run->config, &json));
    Status status = host_run_dir_write_config(&run->dir, json);
    free(json);
    TRY(status);
    return open_metrics(run, resume);
}

static Status run_training(LaunchRun *run) {
    const KernTrainer *trainer = run->trainer;
    TRY(trainer->open(trainer->state, run->device.backend, trainer->values));
    TRY(open_run(run));
    TRY(launch_join_as_trainer(run));
    look(run); // the other trainers may be further
    run->begun = run->at.done;
    run->begun_items = run->at.items;
    if (!run->options.quiet) {
        fprintf(stderr, "%s: %s on %s, run folder %s\n", trainer->tool, run->options.env, run->device.text,
                run->dir.path);
    }
    host_progress_init(&run->progress, run->options.quiet ? HOST_PROGRESS_QUIET : HOST_PROGRESS_AUTO, stderr,
                       trainer->step, run->at.done, run->at.total);
    Status status = train(run);
    if (status == STATUS_STOPPED) {
        set_stopped(run);
        status = STATUS_OK;
    }
    host_progress_finish(&run->progress);
    if (status == STATUS_OK) status = finish(run);
    if (status != STATUS_OK) return status;
    launch_profile_end(run);
    launch_profile_missed(run);
    launch_print_result(run, run->dir.path, stdout);
    if (run->is_stopped) {
        fprintf(stderr, "%s: stopped after a checkpoint; go on with: %s --resume %s\n", trainer->tool, trainer->tool,
                run->dir.path);
    }
    return STATUS_OK;
}

// ---- the other things a launcher does ------------------------------------------------------------------------------

// The page of --html. It is made on the host, whatever the test ran on: the steps are the same bits.
static Status write_html(const LaunchRun *run) {
    const LaunchOptions *o = &run->options;
    KernFrozen frozen;
    KernViewInfo info = {.tool = run->trainer->tool,
                         .run = o->eval,
                         .device = run->device.text,
                         .test_episodes = o->test_episodes,
                         .test = run->test};
    host_hash_text(run->trainer->params_hash(run->trainer->state), info.params_hash);
    run->trainer->frozen(run->trainer->state, &frozen);
    int64_t count = o->html_episodes < o->test_episodes ? o->html_episodes : o->test_episodes;
    return kern_view_write(&frozen, KERN_TEST_FINAL, (int32_t)count, &info, o->html);
}

static Status run_eval(LaunchRun *run) {
    const KernTrainer *trainer = run->trainer;
    char path[HOST_PATH_MAX];
    TRY(host_run_newest_checkpoint(run->options.eval, &run->saved, path));
    if (run->saved < 0) return host_fail(STATUS_IO, "%s: holds no checkpoint yet", run->options.eval);
    TRY(trainer->open(trainer->state, run->device.backend, trainer->values));
    TRY(trainer->load(trainer->state, path));
    look(run);
    double train_s = run->at.train_s;
    TRY(final_test(run));
    run->at.train_s = train_s; // a test alone is no training
    if (run->options.html[0] != '\0') TRY(write_html(run));
    set_outcome(run, "tested");
    launch_print_result(run, run->options.eval, stdout);
    return STATUS_OK;
}

static Status run_dry(LaunchRun *run) {
    KernRunPlan plan = {0};
    host_plan_init(&plan.memory);
    TRY(run->trainer->plan(run->device.backend, run->trainer->values, &plan));
    return launch_print_plan(run, &plan, stdout);
}

// Workers of one supervisor take turns, unless a GPU was named.
static int choose_gpu(const HostConfig *config) {
    const char *place = getenv(HOST_PLACE_ENVIRONMENT);
    int64_t number = 0;
    if (host_config_layer(config, "gpu") == CONFIG_ARGS) return (int)host_config_int(config, "gpu");
    if (place != NULL && host_parse_int(HOST_PLACE_ENVIRONMENT, place, 0, HOST_PLACE_MAX, "", &number) != STATUS_OK)
        number = 0;
    return kern_cuda_in_turn((int)number);
}

Status launch_open_device(LaunchRun *run) {
    const HostConfig *config = &run->config;
    char isa[16];
    KernDeviceOptions options = {
        .tool = run->trainer->tool,
        .kind = (KernDeviceKind)host_config_choice(config, "device"),
        .gpu = choose_gpu(config),
        .threads = run->options.threads,
        .bind = host_config_choice(config, "bind") == 0 ? HOST_BIND_NONE : HOST_BIND_CORE,
        .isa = host_config_text(config, "isa", isa, sizeof isa),
        .lanes = (int)host_config_int(config, "lanes"),
        .quiet = run->options.quiet,
        .not_cuda = launch_is_objective(run) ? "objectives without a simulator run on CPUs" : NULL,
    };
    return kern_device_open(&options, &run->device);
}

// exit_status: set where it is not what the status says.
static Status run_command(LaunchRun *run, int argc, char **argv, int *exit_status) {
    const KernTrainer *trainer = run->trainer;
    TRY(host_file_hold_standard());
    TRY(host_signals_install());
    TRY(launch_read_settings(run, argc, argv));
    if (run->args.help) {
        printf("%s\n", trainer->help);
        host_config_help(trainer->table, stdout);
        return STATUS_OK;
    }
    if (run->args.version) {
        printf("%s %s\n", trainer->tool, trainer->version);
        return STATUS_OK;
    }
    if (run->options.list) return launch_print_list(run, run->args.count > 0 ? run->args.positional[0] : NULL, stdout);
    if (launch_is_helper(run)) return launch_help_run(run, exit_status);
    TRY(trainer->check(trainer->values)); // before anything is opened or written
    if (launch_emits(run)) return launch_emit(run, stdout);
    bool is_over;
    TRY(launch_take_rank(run, &is_over));
    if (is_over) return STATUS_OK;
    if (launch_is_supervisor(run)) return launch_supervise(run, exit_status);
    TRY(launch_open_device(run));
    if (run->options.dry_run) return run_dry(run);
    return run->options.eval[0] != '\0' ? run_eval(run) : run_training(run);
}

int kern_launch(const KernTrainer *trainer, int argc, char **argv) {
    static LaunchRun run; // large
    run = (LaunchRun){.trainer = trainer, .metrics = {.fd = -1}, .dir = {.lock_fd = -1}, .start_s = host_now_s()};
    int exit_status = 0;
    Status status = run_command(&run, argc, argv, &exit_status);
    if (status == STATUS_OK) status = host_file_check_stdout();
    if (status != STATUS_OK) fprintf(stderr, "%s: %s\n", trainer->tool, host_message());
    launch_profile_end(&run);
    host_metrics_close(&run.metrics);
    host_run_dir_close(&run.dir);
    trainer->close(trainer->state);
    kern_trainers_close(run.trainers);
    host_group_close(run.group);
    if (run.member != NULL) host_member_close(run.member, !launch_is_helper(&run));
    kern_device_close(&run.device);
    return status == STATUS_OK ? exit_status : status == STATUS_USAGE ? 2 : 1;
}
