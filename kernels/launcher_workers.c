// A launcher's other processes: the supervisor that --workers makes of the one that was called, the master, evaluators,
// and asking a master for its status.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/address.h"
#include "host/master.h"
#include "host/payload.h"
#include "host/supervise.h"
#include "kernels/launcher_emit.h"
#include "kernels/launcher_ranks.h"

enum { ROLE_AUTO, ROLE_MASTER, ROLE_TRAINER, ROLE_FOLLOWER };

#define STATUS_WAIT_S 5.0

static bool has_workers(const LaunchRun *run) { return run->trainer->workers != NULL; }

static int role(const LaunchRun *run) { return host_config_choice(&run->config, "role"); }

static bool has_evaluators(const LaunchRun *run) { return run->trainer->workers->evaluate != NULL; }

// Where there are no evaluators, whoever joins is a trainer.
static bool follows(const LaunchRun *run) { return role(run) == ROLE_FOLLOWER || !has_evaluators(run); }

int launch_trainers(const LaunchRun *run) {
    return has_evaluators(run) ? (int)host_config_int(&run->config, "trainers") : (int)launch_workers(run);
}

// Whether there are several trainers, or may come to be.
static bool has_trainers(const LaunchRun *run) { return launch_trainers(run) > 1 || !has_evaluators(run); }

bool launch_is_helper(const LaunchRun *run) {
    if (!has_workers(run)) return false;
    return role(run) == ROLE_MASTER || launch_text(run, "status")[0] != '\0' ||
           (launch_text(run, "join")[0] != '\0' && role(run) != ROLE_TRAINER);
}

bool launch_is_supervisor(const LaunchRun *run) {
    if (!has_workers(run) || role(run) != ROLE_AUTO || run->options.dry_run || run->options.eval[0] != '\0')
        return false;
    return launch_workers(run) > 1 || launch_text(run, "bind_address")[0] != '\0';
}

Status launch_check_workers(LaunchRun *run) {
    if (!has_workers(run)) return STATUS_OK;
    if (role(run) != ROLE_AUTO && launch_text(run, "join")[0] == '\0')
        return host_fail(STATUS_USAGE, "--role is for a worker that joins: --join ENDPOINT");
    if (role(run) != ROLE_AUTO) return STATUS_OK;
    TRY(launch_find_rank(run));
    int64_t workers = launch_workers(run), least = host_config_int(&run->config, "min_workers");
    if (least > workers && launch_text(run, "bind_address")[0] == '\0') {
        return host_fail(STATUS_USAGE, "--min-workers %lld: there are %lld workers; --bind-address lets others join",
                         (long long)least, (long long)workers);
    }
    int64_t trainers = launch_trainers(run);
    if (trainers > workers && launch_text(run, "bind_address")[0] == '\0') {
        return host_fail(STATUS_USAGE, "--trainers %lld: there are %lld workers; --bind-address lets others join",
                         (long long)trainers, (long long)workers);
    }
    if (trainers > HOST_GROUP_MAX)
        return host_fail(STATUS_USAGE, "%lld workers: at most %d are trainers", (long long)trainers, HOST_GROUP_MAX);
    bool needs_gloo = launch_is_supervisor(run) && has_trainers(run);
    return needs_gloo && !launch_emits(run) ? host_comm_gloo_check() : STATUS_OK; // a text may be for elsewhere
}

// ---- where a master is ---------------------------------------------------------------------------------------------

static Status read_line(const char *path, char *line, size_t size) {
    char *data;
    size_t bytes;
    TRY(host_file_read(path, size - 1, &data, &bytes));
    snprintf(line, size, "%.*s", (int)strcspn(data, "\r\n"), data);
    free(data);
    return STATUS_OK;
}

Status launch_find_master(const LaunchRun *run, const char *where, char endpoint[HOST_ENDPOINT_MAX], HostKeys *keys) {
    char path[HOST_PATH_MAX], secret_path[HOST_PATH_MAX];
    snprintf(secret_path, sizeof secret_path, "%s", launch_text(run, "secret"));
    snprintf(endpoint, HOST_ENDPOINT_MAX, "%s", where);
    if (strstr(where, "://") == NULL) {
        TRY(host_run_master_path(where, path));
        if (!host_file_exists(path)) {
            return host_fail(STATUS_USAGE,
                             "'%s' is neither an endpoint (tcp://host:5555) nor the folder of a run that "
                             "is going on with --workers or --bind-address",
                             where);
        }
        TRY(read_line(path, endpoint, HOST_ENDPOINT_MAX));
        if (secret_path[0] == '\0' && getenv(HOST_SECRET_ENVIRONMENT) == NULL)
            TRY(host_run_secret_path(where, secret_path));
    }
    HostSecret secret;
    Status status = host_secret_find(&secret, secret_path);
    if (status == STATUS_OK) status = host_secret_keys(&secret, keys);
    host_secret_wipe(&secret);
    return status;
}

// ---- roles ---------------------------------------------------------------------------------------------------------

static Status file_number(const char *variable, int *fd) {
    const char *value = getenv(variable);
    int64_t number = -1;
    if (value == NULL) return host_fail(STATUS_USAGE, "--role master is for --workers to use: %s is not set", variable);
    TRY(host_parse_int(variable, value, 0, 1 << 20, "", &number));
    *fd = (int)number;
    return STATUS_OK;
}

static Status be_master(LaunchRun *run) {
    char endpoint[HOST_ENDPOINT_MAX];
    HostKeys keys;
    HostMasterOptions options = {
        .endpoint = endpoint,
        .keys = &keys,
        .build = kern_build_id(),
        .min_workers = (int)host_config_int(&run->config, "min_workers"),
        .trainers = launch_trainers(run),
        .collectives = (HostCollectives)host_config_choice(&run->config, "collectives"),
        .workers = (int)host_config_int(&run->config, "workers"),
        .hang_limit_s = host_config_real(&run->config, "hang_limit"),
    };
    TRY(file_number(HOST_LISTEN_FD_ENVIRONMENT, &options.listen_fd));
    TRY(file_number(HOST_SUPERVISOR_FD_ENVIRONMENT, &options.supervisor_fd));
    TRY(launch_find_master(run, launch_text(run, "join"), endpoint, &keys));
    return host_master_run(&options);
}

static Status open_member(LaunchRun *run, HostRole as, const char *endpoint, const HostKeys *keys,
                          const char *settings) {
    KernBackend *backend = run->device.backend;
    HostCommGpu gpu = {0};
    if (backend->ops->comm_describe != NULL && as != HOST_ROLE_EVALUATOR &&
        (as != HOST_ROLE_TRAINER || has_trainers(run)))
        backend->ops->comm_describe(backend, &gpu);
    HostMemberOptions options = {
        .endpoint = endpoint,
        .keys = keys,
        .role = as,
        .build = kern_build_id(),
        .device = run->device.text,
        .gpu = &gpu,
        .settings = settings,
        .threads = run->device.pool != NULL ? host_pool_threads(run->device.pool) : 1,
        .min_workers = (int)host_config_int(&run->config, "min_workers"),
        .patience_s = host_config_real(&run->config, "patience"),
        .asks_clock = run->options.profile,
        .on_work = as != HOST_ROLE_TRAINER && run->options.profile ? launch_profile_work : NULL,
        .context = run,
    };
    return host_member_open(&options, &run->member);
}

static int64_t steps_done(const void *state) {
    const LaunchRun *run = state;
    KernRunState at;
    run->trainer->describe(run->trainer->state, &at);
    return at.done;
}

static uint64_t params_hash(const void *state) {
    const LaunchRun *run = state;
    return run->trainer->params_hash(run->trainer->state).state;
}

static uint64_t state_hash(const void *state) {
    const LaunchRun *run = state;
    return run->trainer->workers->hash(run->trainer->state);
}

static Status pack_state(const void *state, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes) {
    const LaunchRun *run = state;
    return run->trainer->workers->pack(run->trainer->state, more, more_count, bytes, size_bytes);
}

static Status take_state(void *state, const HostCheckpoint *file, const char *name) {
    const LaunchRun *run = state;
    return run->trainer->workers->take(run->trainer->state, file, name);
}

// Whether collectives can listen there at all: later it would only look as if the network failed.
static Status check_collectives(const char *host) {
    char address[HOST_ADDRESS_MAX + 16], endpoint[HOST_ENDPOINT_MAX];
    int fd;
    bool is_v6 = strchr(host, ':') != NULL;
    snprintf(address, sizeof address, "tcp://%s%s%s:*", is_v6 ? "[" : "", host, is_v6 ? "]" : "");
    TRY(host_listen(address, &fd, endpoint, sizeof endpoint));
    close(fd);
    return STATUS_OK;
}

static Status open_comm(void *self, const HostCommOptions *options, double deadline_s, HostComm **comm) {
    KernBackend *backend = self;
    return backend->ops->comm_open(backend, options, deadline_s, comm);
}

// What the trainers exchange by, which the lead says for all.
static void tell_group(void *context, const char *text) {
    LaunchRun *run = context;
    if (run->options.quiet || launch_is_helper(run)) return;
    if (run->progress.stream != NULL) { // training has begun
        host_progress_note(&run->progress, "%s: %s", run->trainer->tool, text);
    } else {
        fprintf(stderr, "%s: %s\n", run->trainer->tool, text);
    }
}

// Collectives listen where the run does, if that is one address; else other hosts cannot reach them.
static Status open_trainers(LaunchRun *run) {
    char host[HOST_ADDRESS_MAX];
    const char *address = launch_text(run, "bind_address");
    bool everywhere = true;
    if (address[0] != '\0') TRY(host_address_host(address, host, &everywhere));
    if (!everywhere) TRY(check_collectives(host));
    HostGroupOptions among = {.address = everywhere ? NULL : host, .on_group = tell_group, .context = run};
    if (run->device.backend->ops->comm_open != NULL) among.device = (HostCommDevice){run->device.backend, open_comm};
    TRY(host_group_open(run->member, &among, &run->group));
    KernTrainersOptions options = {.state = run,
                                   .group = run->group,
                                   .done = steps_done,
                                   .hash = state_hash,
                                   .params_hash = params_hash,
                                   .pack = pack_state,
                                   .take = take_state,
                                   .report_bytes = run->trainer->workers->report_bytes};
    return kern_trainers_open(&options, &run->trainers);
}

Status launch_join_as_trainer(LaunchRun *run) {
    if (!has_workers(run) || role(run) != ROLE_TRAINER) return STATUS_OK;
    char *settings = NULL, endpoint[HOST_ENDPOINT_MAX];
    HostKeys keys;
    TRY(launch_find_master(run, launch_text(run, "join"), endpoint, &keys));
    TRY(host_config_to_json(&run->config, &settings));
    Status status = open_member(run, HOST_ROLE_TRAINER, endpoint, &keys, settings);
    free(settings);
    if (status == STATUS_OK && has_trainers(run)) status = open_trainers(run);
    TRY(status);
    return run->trainer->workers->attach(run->trainer->state, run->member, run->trainers);
}

// Who joins has the run's settings, and none of its own.
static Status check_helper(const LaunchRun *run) {
    static const char *const not_joining[] = {"workers", "trainers", "resume",  "eval",
                                              "config",  "html",     "dry_run", NULL};
    const ConfigTable *table = run->trainer->table;
    char name[HOST_CONFIG_NAME_MAX];
    if (run->options.profile && run->options.out[0] == '\0')
        return host_fail(STATUS_USAGE, "--profile of a worker that joins: --out says where its trace goes");
    if (run->args.count > 0) {
        return host_fail(STATUS_USAGE, "--join takes the simulator from the run: leave out '%s'",
                         run->args.positional[0]);
    }
    if (!run->options.profile && run->options.out[0] != '\0')
        return host_fail(STATUS_USAGE, "--join: leave out --out, which the run has; it is for --profile");
    for (int i = 0; not_joining[i] != NULL; i++) {
        bool is_there = host_config_find(table, not_joining[i]) != NULL;
        if (!is_there || host_config_layer(&run->config, not_joining[i]) != CONFIG_ARGS) continue;
        return host_fail(STATUS_USAGE, "--join makes one worker of a run: leave out --%s",
                         host_config_spell(not_joining[i], true, name));
    }
    for (int i = 0; i < table->count; i++) {
        const ConfigOption *option = &table->options[i];
        if (option->command || host_config_layer(&run->config, option->name) != CONFIG_ARGS) continue;
        return host_fail(STATUS_USAGE, "--join takes its settings from the run: leave out --%s",
                         host_config_spell(option->name, true, name));
    }
    return STATUS_OK;
}

// An evaluator, or a trainer that follows another one.
static Status be_helper(LaunchRun *run) {
    const KernTrainer *trainer = run->trainer;
    char endpoint[HOST_ENDPOINT_MAX];
    HostKeys keys;
    TRY(check_helper(run));
    TRY(launch_find_master(run, launch_text(run, "join"), endpoint, &keys));
    TRY(launch_open_device(run));
    TRY(open_member(run, follows(run) ? HOST_ROLE_FOLLOWER : HOST_ROLE_EVALUATOR, endpoint, &keys, NULL));
    const char *settings = host_member_settings(run->member);
    if (settings[0] == '\0') return STATUS_OK; // the run was over already
    TRY(host_config_from_json(&run->config, CONFIG_FILE, "the master's settings", settings, strlen(settings)));
    TRY(trainer->check(trainer->values));
    if (!run->options.quiet) {
        fprintf(stderr, "%s: %s %s on %s for the run at %s\n", trainer->tool, follows(run) ? "trains" : "evaluates",
                launch_text(run, "env"), run->device.text, launch_text(run, "join"));
    }
    TRY(trainer->open(trainer->state, run->device.backend, trainer->values));
    trainer->describe(trainer->state, &run->at);
    host_progress_init(&run->progress, HOST_PROGRESS_QUIET, stderr, trainer->step, 0, run->at.total); // for notes
    Status status = STATUS_OK;
    if (follows(run)) {
        TRY(open_trainers(run));
        status = trainer->workers->follow(trainer->state, run->member, run->trainers);
    } else {
        status = trainer->workers->evaluate(trainer->state, run->member);
    }
    if (!run->options.quiet && (status == STATUS_OK || status == STATUS_STOPPED)) {
        HostMemberFigures figures = host_member_figures(run->member);
        fprintf(stderr, "%s: %s", trainer->tool, status == STATUS_OK ? "the run is over" : "stopped");
        if (has_evaluators(run)) fprintf(stderr, " after %lld members", (long long)figures.own_items);
        fputc('\n', stderr);
    }
    return status == STATUS_STOPPED ? STATUS_OK : status;
}

// ---- status --------------------------------------------------------------------------------------------------------

static double number(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static const char *word(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "?";
}

static void print_workers(const LaunchRun *run, const json_t *workers) {
    size_t i;
    const json_t *w;
    json_array_foreach(workers, i, w) {
        char rank[16] = "";
        if (number(w, "rank") >= 0) snprintf(rank, sizeof rank, "%.0f", number(w, "rank"));
        printf("  %-9s %2s %-5s %-16s %8.0f %3.0f threads ", word(w, "role"), rank, word(w, "state"), word(w, "host"),
               number(w, "pid"), number(w, "threads"));
        if (has_evaluators(run))
            printf("%12.0f members %12.0f members/s  ", number(w, "items"), number(w, "items_per_s"));
        printf("%s\n", word(w, "device"));
    }
}

static Status print_status(const LaunchRun *run, const char *json) {
    json_t *all = json_loads(json, 0, NULL);
    if (all == NULL) return host_fail(STATUS_CORRUPT, "the master's status is no JSON");
    const json_t *f = json_object_get(all, "failures"), *t = json_object_get(all, "traffic");
    const json_t *m = json_object_get(all, "master"), *workers = json_object_get(all, "workers");
    printf("%s at %s: %s %.0f", word(all, "env"), word(all, "endpoint"), run->trainer->step, number(all, "generation"));
    if (has_evaluators(run)) printf(", %.0f of %.0f members to go", number(all, "items_left"), number(all, "items"));
    printf("; epoch %.0f, %zu workers (at least %.0f wanted)\n", number(all, "epoch"), json_array_size(workers),
           number(all, "min_workers"));
    if (number(all, "trainers") > 1) {
        printf("%.0f trainers by %s: %s\n", number(all, "trainers"), word(all, "collectives"),
               word(all, "collectives_why"));
    }
    print_workers(run, workers);
    printf(
        "failures: %.0f deaths, %.0f crashes, %.0f hangs, %.0f refused, %.0f strangers; %.0f members computed again, "
        "%.0f lost\n",
        number(f, "deaths"), number(f, "crashes"), number(f, "hangs"), number(f, "refusals"), number(f, "strangers"),
        number(f, "repeated_items"), number(f, "lost_items"));
    printf(
        "traffic: %.0f payloads of %.0f bytes, %.0f results of %.0f bytes; %.0f leases; %.0f bytes between trainers\n",
        number(t, "payload_messages"), number(t, "payload_bytes"), number(t, "result_messages"),
        number(t, "result_bytes"), number(all, "leases"), number(t, "collective_bytes"));
    printf("master: %.1f s old, %.2f s of CPU time, %.1f MiB\n", number(m, "age_s"), number(m, "cpu_s"),
           number(m, "memory_bytes") / 1048576.0);
    json_decref(all);
    return STATUS_OK;
}

static Status show_status(const LaunchRun *run) {
    char endpoint[HOST_ENDPOINT_MAX], *json = NULL;
    HostKeys keys;
    TRY(launch_find_master(run, launch_text(run, "status"), endpoint, &keys));
    TRY(host_master_ask(endpoint, &keys, STATUS_WAIT_S, &json));
    Status status = STATUS_OK;
    if (run->options.json) {
        puts(json);
    } else {
        status = print_status(run, json);
    }
    free(json);
    return status;
}

Status launch_help_run(LaunchRun *run) {
    if (launch_emits(run)) return host_fail(STATUS_USAGE, "--emit is for a run's own command line");
    if (launch_text(run, "status")[0] != '\0') return show_status(run);
    return role(run) == ROLE_MASTER ? be_master(run) : be_helper(run);
}

// ---- the supervisor ------------------------------------------------------------------------------------------------

// How many cores each worker gets for itself (0: they share), and how many threads.
static int share_cores(const LaunchRun *run, int *threads) {
    int workers = (int)host_config_int(&run->config, "workers"), allowed = host_cpu_allowed();
    int each = allowed / workers > 1 ? allowed / workers : 1;
    *threads = run->options.threads > 0 ? run->options.threads : each;
    return *threads <= each && workers <= allowed ? *threads : 0;
}

enum { PLAN_COMMANDS = 5 };

typedef struct Plan {
    LaunchArguments master, trainer, trainer_again, follower, evaluator;
    char endpoint[HOST_ENDPOINT_MAX];
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
    static const char *const for_master[] = {"hang_limit", "min_workers", "collectives", NULL};
    static const char *const not_trainer[] = {"workers", "out",        "resume",      "threads", "bind",
                                              "secret",  "hang_limit", "collectives", NULL};
    static const char *const not_again[] = {"workers", "out",    "resume",     "threads",     "bind",
                                            "secret",  "config", "hang_limit", "collectives", NULL};
    LaunchArguments *all[] = {&plan->master, &plan->trainer, &plan->trainer_again, &plan->follower, &plan->evaluator};
    char number_text[32], bind[16], value[64];
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
    if (has_evaluators(run))
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
    TRY(resume ? host_run_dir_resume(&run->dir, run->options.resume)
               : host_run_dir_create(&run->dir, run->options.out, run->options.env));
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

static Status supervise(LaunchRun *run, Plan *plan, int fd, int *exit_status) {
    int threads, cores = share_cores(run, &threads), workers = (int)host_config_int(&run->config, "workers");
    int trainers = launch_trainers(run);
    if (trainers > workers) trainers = workers; // the others join from elsewhere
    plan_commands(run, plan, threads, cores);
    if (plan->master.is_short || plan->trainer.is_short || plan->trainer_again.is_short || plan->follower.is_short ||
        plan->evaluator.is_short)
        return host_fail(STATUS_MEMORY, "the command line is too long to be passed on");
    HostKeys keys;
    TRY(prepare_secret(run, &keys));
    host_payload_sweep(host_secret_tag(&keys)); // of this run when it was killed, all of it
    char elsewhere[HOST_ENDPOINT_MAX];
    const char *address = launch_text(run, "bind_address");
    TRY(host_address_elsewhere(address[0] != '\0' ? address : plan->endpoint, plan->endpoint, elsewhere,
                               sizeof elsewhere));
    TRY(write_endpoint(run, elsewhere));
    if (!run->options.quiet) {
        fprintf(stderr, "%s: %d worker%s of %d thread%s; others join with: %s --join %s --secret %s/secret\n",
                run->trainer->tool, workers, workers == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
                run->trainer->tool, elsewhere, run->dir.path);
    }
    HostSupervision supervision = {
        .tool = run->trainer->tool,
        .run = run->dir.path,
        .master = plan->master.at,
        .trainer = plan->trainer.at,
        .trainer_again = plan->trainer_again.at,
        .follower = plan->follower.at,
        .evaluator = plan->evaluator.at,
        .followers = trainers - 1,
        .evaluators = workers - trainers,
        .listen_fd = fd,
        .cores = cores,
        .quiet = run->options.quiet,
    };
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
