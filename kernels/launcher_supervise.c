// The supervisor that --workers, --bind-address or --scale-hook makes of the process that was called: the command lines
// of the others, the run's secret, what the hook is told.
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/address.h"
#include "host/payload.h"
#include "host/plural.h"
#include "host/supervise.h"
#include "kernels/launcher_arguments.h"
#include "kernels/launcher_ranks.h"

// How many cores each worker gets for itself (0: they share, also with other ranks), and how many threads.
static int share_cores(const LaunchRun *run, int *threads) {
    int workers = (int)host_config_int(&run->config, "workers"), allowed = launch_rank_cores(run);
    int each = allowed / workers > 1 ? allowed / workers : 1;
    *threads = run->options.threads > 0 ? run->options.threads : each;
    bool are_own = allowed == host_cpu_allowed();
    return are_own && *threads <= each && workers <= allowed ? *threads : 0;
}

enum { PLAN_COMMANDS = 5 };

typedef struct Plan {
    LaunchArguments master, trainer, trainer_again, follower, evaluator;
    char endpoint[HOST_ENDPOINT_MAX];
    int threads; // of each worker
} Plan;

const char *const launch_of_helpers[] = {"device", "gpu", "isa", "lanes", "patience", NULL};

void launch_add_helper(const LaunchRun *run, LaunchArguments *arguments, const char *where, const char *follower_at) {
    char value[64];
    launch_add(arguments, "join", where);
    if (follower_at != NULL) {
        launch_add(arguments, "role", "follower");
        launch_add(arguments, "bind_address", follower_at);
    }
    for (const char *const *name = launch_of_helpers; *name != NULL; name++)
        if (host_config_layer(&run->config, *name) == CONFIG_ARGS)
            launch_add(arguments, *name, host_config_text(&run->config, *name, value, sizeof value));
    launch_add(arguments, "quiet", "true");
}

void launch_add_profile(const LaunchRun *run, LaunchArguments *arguments, const char *folder) {
    static const char *const names[] = {"profile", "profile_window", "profile_detail", NULL};
    char value[HOST_TEXT_MAX];
    if (!run->options.profile) return;
    launch_add(arguments, "out", folder);
    for (int i = 0; names[i] != NULL; i++)
        launch_add(arguments, names[i], host_config_text(&run->config, names[i], value, sizeof value));
}

static void plan_commands(const LaunchRun *run, Plan *plan, int threads, int cores) {
    static const char *const for_master[] = {"hang_limit",     "min_workers", "max_workers", "scale_hook",
                                             "scale_interval", "collectives", NULL};
    static const char *const not_trainer[] = {
        "workers",    "out",         "resume",     "threads",        "bind",        "secret",
        "hang_limit", "max_workers", "scale_hook", "scale_interval", "collectives", NULL};
    static const char *const not_again[] = {"workers",        "out",         "resume",     "threads",     "bind",
                                            "secret",         "config",      "hang_limit", "max_workers", "scale_hook",
                                            "scale_interval", "collectives", NULL};
    LaunchArguments *all[] = {&plan->master, &plan->trainer, &plan->trainer_again, &plan->follower, &plan->evaluator};
    char number_text[32], bind[16], value[HOST_TEXT_MAX];
    snprintf(number_text, sizeof number_text, "%d", threads);
    host_config_text(&run->config, "bind", bind, sizeof bind);
    for (int i = 0; i < PLAN_COMMANDS; i++) {
        memset(all[i], 0, sizeof *all[i]);
        launch_add_word(all[i], run->trainer->tool);
        if (i == 0) continue;
        launch_add(all[i], "threads", number_text);
        launch_add(all[i], "bind", cores > 0 ? bind : "none"); // pinned to one and the same core they would only wait
    }
    launch_add(&plan->master, "join", plan->endpoint);
    launch_add(&plan->master, "role", "master");
    for (int i = 0; for_master[i] != NULL; i++)
        launch_add(&plan->master, for_master[i], host_config_text(&run->config, for_master[i], value, sizeof value));
    snprintf(value, sizeof value, "%lld", (long long)launch_workers(run));
    launch_add(&plan->master, "workers", value);
    if (launch_has_evaluators(run))
        launch_add(&plan->master, "trainers", host_config_text(&run->config, "trainers", value, sizeof value));
    launch_add_helper(run, &plan->follower, plan->endpoint, launch_text(run, "bind_address"));
    launch_add_helper(run, &plan->evaluator, plan->endpoint, NULL);
    launch_add_profile(run, &plan->follower, run->dir.path);
    launch_add_profile(run, &plan->evaluator, run->dir.path);
    launch_add(&plan->trainer, "join", plan->endpoint);
    launch_add(&plan->trainer, "role", "trainer");
    launch_add(&plan->trainer, run->options.resume[0] != '\0' ? "resume" : "out", run->dir.path);
    launch_add_given(run, &plan->trainer, LAUNCH_SETTINGS | LAUNCH_COMMANDS, not_trainer);
    launch_add(&plan->trainer_again, "join", plan->endpoint);
    launch_add(&plan->trainer_again, "role", "trainer");
    launch_add(&plan->trainer_again, "resume", run->dir.path);
    // A run that goes on may have been given other settings, which it does not have until its first life has begun.
    unsigned kinds = run->options.resume[0] != '\0' ? LAUNCH_SETTINGS | LAUNCH_COMMANDS : LAUNCH_COMMANDS;
    launch_add_given(run, &plan->trainer_again, kinds, not_again);
}

// The run's folder is made or found here, so that a trainer that is started again has the same one.
static Status prepare_folder(LaunchRun *run) {
    bool resume = run->options.resume[0] != '\0';
    char label[KERN_OBJECTIVE_LABEL_MAX];
    TRY(resume ? host_run_dir_resume(&run->dir, run->options.resume)
               : host_run_dir_create(&run->dir, run->options.out, launch_label(run, label)));
    host_run_dir_close(&run->dir); // the trainer holds it
    return STATUS_OK;
}

// The secret that was given, that of a run that goes on, or a fresh one; into the folder and the environment.
static Status prepare_secret(const LaunchRun *run, HostKeys *keys) {
    char path[HOST_PATH_MAX];
    HostSecret secret;
    TRY(host_run_secret_path(run->dir.path, path));
    bool is_given = getenv(HOST_SECRET_ENVIRONMENT) != NULL || launch_text(run, "secret")[0] != '\0';
    Status status;
    if (is_given) {
        status = host_secret_find(&secret, launch_text(run, "secret"));
    } else {
        status = host_file_exists(path) ? host_secret_read(&secret, path) : host_secret_make(&secret);
    }
    if (status == STATUS_OK) status = host_secret_write(&secret, path);
    if (status == STATUS_OK) status = host_secret_keys(&secret, keys);
    if (status == STATUS_OK && setenv(HOST_SECRET_ENVIRONMENT, secret.text, 1) != 0)
        status = host_fail(STATUS_MEMORY, "no memory for the environment");
    host_secret_wipe(&secret);
    return status;
}

static Status write_endpoint(const LaunchRun *run, const char *endpoint) {
    char path[HOST_PATH_MAX], line[HOST_ENDPOINT_MAX + 1];
    TRY(host_run_master_path(run->dir.path, path));
    int length = snprintf(line, sizeof line, "%s\n", endpoint);
    HostFilePart part = {line, (size_t)length};
    return host_file_replace(path, &part, 1);
}

// ---- the hook ------------------------------------------------------------------------------------------------------

enum { HOOK_VARIABLES = 7 };

typedef struct Hook {
    char text[HOOK_VARIABLES][PATH_MAX + 32];
    const char *at[HOOK_VARIABLES + 1];
} Hook;

// The folder as other programs find it, wherever they are called.
static void find_folder(const LaunchRun *run, char path[PATH_MAX]) {
    if (realpath(run->dir.path, path) == NULL) snprintf(path, PATH_MAX, "%s", run->dir.path);
}

static void tell_hook(const LaunchRun *run, const char *elsewhere, Hook *hook) {
    char folder[PATH_MAX], program[HOST_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    find_folder(run, folder);
    const char *name = strrchr(folder, '/');
    long long least = (long long)host_config_int(&run->config, "min_workers");
    long long most = (long long)host_config_int(&run->config, "max_workers");
    size_t size = sizeof hook->text[0];
    snprintf(hook->text[0], size, "SHOAL_MIN_WORKERS=%lld", least);
    snprintf(hook->text[1], size, "SHOAL_MAX_WORKERS=%lld", most);
    snprintf(hook->text[2], size, "SHOAL_JOIN=%s", elsewhere);
    snprintf(hook->text[3], size, "SHOAL_RUN=%s", folder);
    snprintf(hook->text[4], size, "SHOAL_RUN_NAME=%s", name != NULL ? name + 1 : folder);
    snprintf(hook->text[5], size, "SHOAL_SECRET_FILE=%s/secret", folder);
    snprintf(hook->text[6], size, "SHOAL_PROGRAM=%s", length > 0 ? program : run->trainer->tool);
    for (int i = 0; i < HOOK_VARIABLES; i++)
        hook->at[i] = hook->text[i];
}

// ---- supervising ---------------------------------------------------------------------------------------------------

static Status plan_all(const LaunchRun *run, Plan *plan, HostSupervision *supervision) {
    int threads, workers = (int)host_config_int(&run->config, "workers"), trainers = launch_trainers(run);
    if (trainers > workers) trainers = workers; // the others join from elsewhere
    supervision->cores = share_cores(run, &threads);
    supervision->followers = trainers - 1;
    supervision->evaluators = workers - trainers;
    plan_commands(run, plan, threads, supervision->cores);
    LaunchArguments *all[] = {&plan->master, &plan->trainer, &plan->trainer_again, &plan->follower, &plan->evaluator};
    for (int i = 0; i < PLAN_COMMANDS; i++)
        if (all[i]->is_short) return host_fail(STATUS_MEMORY, "the command line is too long to be passed on");
    supervision->master = plan->master.at;
    supervision->trainer = plan->trainer.at;
    supervision->trainer_again = plan->trainer_again.at;
    supervision->follower = plan->follower.at;
    supervision->evaluator = plan->evaluator.at;
    plan->threads = threads;
    return STATUS_OK;
}

static void tell_start(const LaunchRun *run, const char *elsewhere, int threads) {
    int workers = (int)host_config_int(&run->config, "workers");
    if (run->options.quiet) return;
    fprintf(stderr, "%s: %d worker%s of %d thread%s; others join with: %s --join %s --secret %s/secret\n",
            run->trainer->tool, workers, host_plural(workers), threads, host_plural(threads), run->trainer->tool,
            elsewhere, run->dir.path);
}

static Status supervise(LaunchRun *run, Plan *commands, int fd, int *exit_status) {
    static Hook hook; // large
    HostSupervision supervision = {
        .tool = run->trainer->tool,
        .run = run->dir.path,
        .listen_fd = fd,
        .min_workers = (int)host_config_int(&run->config, "min_workers"),
        .hang_limit_s = host_config_real(&run->config, "hang_limit"),
        .master_silence_s = HOST_SUPERVISE_SILENCE_S,
        .hook = {.tool = run->trainer->tool,
                 .command = launch_text(run, "scale_hook"),
                 .variables = hook.at,
                 .interval_s = host_config_real(&run->config, "scale_interval"),
                 .quiet = run->options.quiet},
        .quiet = run->options.quiet,
    };
    TRY(plan_all(run, commands, &supervision));
    HostKeys keys;
    TRY(prepare_secret(run, &keys));
    host_payload_sweep(host_secret_tag(&keys)); // of this run when it was killed, all of it
    char elsewhere[HOST_ENDPOINT_MAX];
    const char *address = launch_text(run, "bind_address");
    TRY(host_address_elsewhere(address[0] != '\0' ? address : commands->endpoint, commands->endpoint, elsewhere,
                               sizeof elsewhere));
    TRY(write_endpoint(run, elsewhere));
    tell_hook(run, elsewhere, &hook);
    tell_start(run, elsewhere, commands->threads);
    Status status = host_supervise(&supervision, exit_status);
    host_payload_sweep(host_secret_tag(&keys));
    char path[HOST_PATH_MAX];
    if (host_run_master_path(run->dir.path, path) == STATUS_OK) unlink(path); // there is no master any more
    return status;
}

Status launch_supervise(LaunchRun *run, int *exit_status) {
    static Plan plan; // large
    int fd;
    const char *address = launch_text(run, "bind_address");
    TRY(host_listen(address[0] != '\0' ? address : "tcp://127.0.0.1:*", &fd, plan.endpoint, sizeof plan.endpoint));
    Status status = prepare_folder(run);
    if (status == STATUS_OK) status = supervise(run, &plan, fd, exit_status);
    close(fd);
    launch_free_arguments(&plan.master);
    launch_free_arguments(&plan.trainer);
    launch_free_arguments(&plan.trainer_again);
    launch_free_arguments(&plan.follower);
    launch_free_arguments(&plan.evaluator);
    return status;
}
