// A launcher's other processes: the master, evaluators and followers, the trainer's part in that, and asking a master
// for its status.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/address.h"
#include "host/master.h"
#include "host/payload.h"
#include "host/plural.h"
#include "host/supervise.h"
#include "kernels/launcher_emit.h"
#include "kernels/launcher_ranks.h"

enum { ROLE_AUTO, ROLE_MASTER, ROLE_TRAINER, ROLE_FOLLOWER };

#define STATUS_WAIT_S 5.0

static bool has_workers(const LaunchRun *run) { return run->trainer->workers != NULL; }

static int role(const LaunchRun *run) { return host_config_choice(&run->config, "role"); }

bool launch_has_evaluators(const LaunchRun *run) { return run->trainer->workers->evaluate != NULL; }

// Where there are no evaluators, whoever joins is a trainer.
static bool follows(const LaunchRun *run) { return role(run) == ROLE_FOLLOWER || !launch_has_evaluators(run); }

int launch_trainers(const LaunchRun *run) {
    return launch_has_evaluators(run) ? (int)host_config_int(&run->config, "trainers") : (int)launch_workers(run);
}

// Whether there are several trainers, or may come to be.
static bool has_trainers(const LaunchRun *run) { return launch_trainers(run) > 1 || !launch_has_evaluators(run); }

bool launch_is_helper(const LaunchRun *run) {
    if (!has_workers(run)) return false;
    return role(run) == ROLE_MASTER || launch_text(run, "status")[0] != '\0' ||
           (launch_text(run, "join")[0] != '\0' && role(run) != ROLE_TRAINER);
}

bool launch_is_supervisor(const LaunchRun *run) {
    if (!has_workers(run) || role(run) != ROLE_AUTO || run->options.dry_run || run->options.eval[0] != '\0')
        return false;
    return launch_workers(run) > 1 || launch_text(run, "bind_address")[0] != '\0' ||
           launch_text(run, "scale_hook")[0] != '\0';
}

// Whether the command line has an option, which not every program does.
static bool is_given(const LaunchRun *run, const char *name) {
    return host_config_find(run->trainer->table, name) != NULL && host_config_layer(&run->config, name) == CONFIG_ARGS;
}

// What bounds the number of workers.
static Status check_bounds(const LaunchRun *run) {
    long long workers = (long long)launch_workers(run), trainers = launch_trainers(run);
    long long least = (long long)host_config_int(&run->config, "min_workers");
    long long most = (long long)host_config_int(&run->config, "max_workers");
    bool has_hook = launch_text(run, "scale_hook")[0] != '\0';
    bool brings_hook = launch_emit_scales(run);
    bool may_join = has_hook || brings_hook || launch_text(run, "bind_address")[0] != '\0';
    if (least > workers && !may_join) {
        return host_fail(STATUS_USAGE, "--min-workers %lld: the run has %lld worker%s; --bind-address lets others join",
                         least, workers, host_plural(workers));
    }
    if (most > 0 && most < least)
        return host_fail(STATUS_USAGE, "--max-workers %lld is less than --min-workers %lld", most, least);
    if (most > 0 && most < workers)
        return host_fail(STATUS_USAGE, "--max-workers %lld: the run starts with %lld worker%s", most, workers,
                         host_plural(workers));
    if (most > 0 && most < trainers)
        return host_fail(STATUS_USAGE, "--max-workers %lld is less than --trainers %lld", most, trainers);
    if (has_hook && most == 0)
        return host_fail(STATUS_USAGE, "--scale-hook needs --max-workers: how many workers it may bring the run to");
    if (has_hook && !launch_has_evaluators(run) && most > HOST_GROUP_MAX) {
        return host_fail(STATUS_USAGE, "--max-workers %lld: all workers are trainers, of which there are at most %d",
                         most, HOST_GROUP_MAX);
    }
    if (!has_hook && !brings_hook && is_given(run, "scale_interval"))
        return host_fail(STATUS_USAGE, "--scale-interval is for --scale-hook, which is not there");
    return STATUS_OK;
}

// Where NCCL is asked for there must be trainers that can exchange by it.
static Status check_collectives(const LaunchRun *run) {
    bool has_others = launch_trainers(run) > 1 || (!launch_has_evaluators(run) && launch_is_supervisor(run));
    if (host_config_choice(&run->config, "collectives") != HOST_COLLECTIVES_NCCL) return STATUS_OK;
    if (!has_others) {
        return host_fail(STATUS_USAGE, "--collectives nccl: one trainer exchanges with nobody; --%s N makes several",
                         launch_has_evaluators(run) ? "trainers" : "workers");
    }
    if (host_config_choice(&run->config, "device") != KERN_DEVICE_CPU) return STATUS_OK;
    return host_fail(STATUS_USAGE, "--collectives nccl is between GPUs: not with --device cpu");
}

// What means nothing to one process that works by itself is no option of it. A number of workers that is given may be
// one, so that a script need not mind.
static Status check_alone(const LaunchRun *run) {
    static const char *const ways[] = {"workers", "bind_address", "scale_hook", NULL};
    static const char *const of_several[] = {"trainers", "min_workers", "max_workers", "hang_limit",
                                             "patience", "collectives", "secret",      NULL};
    bool is_test = run->options.eval[0] != '\0', may_be_several = run->rank.count > 1 || launch_emits(run);
    char name[HOST_CONFIG_NAME_MAX];
    for (const char *const *way = ways; *way != NULL; way++) {
        if (!is_given(run, *way)) continue;
        if (is_test)
            return host_fail(STATUS_USAGE, "--eval tests in one process: leave out --%s",
                             host_config_spell(*way, true, name));
        may_be_several = true;
    }
    for (const char *const *option = of_several; *option != NULL && !may_be_several; option++) {
        if (!is_given(run, *option)) continue;
        return host_fail(STATUS_USAGE,
                         "--%s is for runs of several workers: --workers N starts them, --bind-address lets them join",
                         host_config_spell(*option, true, name));
    }
    return STATUS_OK;
}

Status launch_check_workers(LaunchRun *run) {
    if (!has_workers(run)) return STATUS_OK;
    if (role(run) != ROLE_AUTO && launch_text(run, "join")[0] == '\0')
        return host_fail(STATUS_USAGE, "--role is for a worker that joins: --join ENDPOINT");
    if (is_given(run, "dismissal_status") && launch_text(run, "join")[0] == '\0')
        return host_fail(STATUS_USAGE, "--dismissal-status is for a worker that joins: --join ENDPOINT");
    if (role(run) != ROLE_AUTO) return STATUS_OK;
    TRY(launch_find_rank(run));
    TRY(check_bounds(run));
    TRY(check_collectives(run));
    int64_t workers = launch_workers(run), trainers = launch_trainers(run);
    if (trainers > workers && launch_text(run, "bind_address")[0] == '\0') {
        return host_fail(STATUS_USAGE, "--trainers %lld: the run has %lld worker%s; --bind-address lets others join",
                         (long long)trainers, (long long)workers, host_plural(workers));
    }
    if (trainers > HOST_GROUP_MAX)
        return host_fail(STATUS_USAGE, "%lld workers: at most %d are trainers", (long long)trainers, HOST_GROUP_MAX);
    TRY(check_alone(run));
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
    if (strncmp(where, "tcp://", 6) == 0) TRY(host_address_check(where));
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
        .max_workers = (int)host_config_int(&run->config, "max_workers"),
        .scales = launch_text(run, "scale_hook")[0] != '\0',
        .scale_interval_s = host_config_real(&run->config, "scale_interval"),
        .has_evaluators = launch_has_evaluators(run),
        .trainers = launch_trainers(run),
        .collectives = (HostCollectives)host_config_choice(&run->config, "collectives"),
        .workers = (int)host_config_int(&run->config, "workers"),
        .hang_limit_s = host_config_real(&run->config, "hang_limit"),
        .out_s = HOST_MASTER_OUT_S,
    };
    TRY(file_number(HOST_LISTEN_FD_ENVIRONMENT, &options.listen_fd));
    TRY(file_number(HOST_SUPERVISOR_FD_ENVIRONMENT, &options.supervisor_fd));
    TRY(launch_find_master(run, launch_text(run, "join"), endpoint, &keys));
    return host_master_run(&options);
}

// The address at which collectives listen: the run's, if that is one; else other hosts cannot reach them. NULL:
// loopback.
static Status collectives_address(const LaunchRun *run, char host[HOST_ADDRESS_MAX], const char **address) {
    const char *bind = launch_text(run, "bind_address");
    bool everywhere = true;
    if (bind[0] != '\0') TRY(host_address_host(bind, host, &everywhere));
    *address = everywhere ? NULL : host;
    return STATUS_OK;
}

static Status open_member(LaunchRun *run, HostRole as, const char *endpoint, const HostKeys *keys,
                          const char *settings) {
    KernBackend *backend = run->device.backend;
    HostCommGpu gpu = {0};
    char host[HOST_ADDRESS_MAX];
    const char *address;
    TRY(collectives_address(run, host, &address));
    if (backend->ops->comm_describe != NULL && as != HOST_ROLE_EVALUATOR &&
        (as != HOST_ROLE_TRAINER || has_trainers(run)))
        backend->ops->comm_describe(backend, address, &gpu);
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
static Status check_listening(const char *host) {
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

static Status open_trainers(LaunchRun *run) {
    char host[HOST_ADDRESS_MAX];
    const char *address;
    TRY(collectives_address(run, host, &address));
    if (address != NULL) TRY(check_listening(address));
    HostGroupOptions among = {.address = address, .on_group = tell_group, .context = run};
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
    static const char *const not_joining[] = {"workers",       "trainers",       "min_workers", "max_workers",
                                              "scale_hook",    "scale_interval", "collectives", "hang_limit",
                                              "resume",        "eval",           "config",      "html",
                                              "html_episodes", "dry_run",        NULL};
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
        if (!is_given(run, not_joining[i])) continue;
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

static Status join_run(LaunchRun *run, const char *endpoint, const HostKeys *keys) {
    TRY(open_member(run, follows(run) ? HOST_ROLE_FOLLOWER : HOST_ROLE_EVALUATOR, endpoint, keys, NULL));
    if (run->options.profile) launch_await_clock(run);
    return STATUS_OK;
}

// A worker learns what it is to compute when it has joined, and an objective is nothing for a GPU: it joins again, as
// what it is then.
static Status leave_gpu(LaunchRun *run, const char *endpoint, const HostKeys *keys) {
    if (!launch_is_objective(run) || run->device.pool != NULL) return STATUS_OK;
    host_member_close(run->member, false);
    run->member = NULL;
    kern_device_close(&run->device);
    TRY(launch_open_device(run));
    return join_run(run, endpoint, keys);
}

static bool is_over(const LaunchRun *run) { return host_member_settings(run->member)[0] == '\0'; }

static void tell_end(const LaunchRun *run, Status status) {
    HostMemberFigures figures = host_member_figures(run->member);
    const char *dismissal = host_member_dismissal(run->member);
    fprintf(stderr, "%s: ", run->trainer->tool);
    if (status == STATUS_OK) {
        fputs("the run is over", stderr);
    } else if (dismissal[0] != '\0') {
        fprintf(stderr, "asked to leave: %s;", dismissal);
    } else {
        fputs("stopped", stderr);
    }
    if (launch_has_evaluators(run))
        fprintf(stderr, " after %lld member%s", (long long)figures.own_items, host_plural(figures.own_items));
    fputc('\n', stderr);
}

// An evaluator, or a trainer that follows another one.
static Status be_helper(LaunchRun *run, int *exit_status) {
    const KernTrainer *trainer = run->trainer;
    char endpoint[HOST_ENDPOINT_MAX];
    HostKeys keys;
    TRY(check_helper(run));
    TRY(launch_find_master(run, launch_text(run, "join"), endpoint, &keys));
    TRY(launch_open_device(run));
    TRY(join_run(run, endpoint, &keys));
    if (is_over(run)) return STATUS_OK;
    const char *settings = host_member_settings(run->member);
    TRY(host_config_from_json(&run->config, CONFIG_FILE, "the master's settings", settings, strlen(settings)));
    TRY(trainer->check(trainer->values));
    TRY(leave_gpu(run, endpoint, &keys));
    if (is_over(run)) return STATUS_OK;
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
    if (!run->options.quiet && (status == STATUS_OK || status == STATUS_STOPPED)) tell_end(run, status);
    if (status == STATUS_STOPPED && host_member_dismissal(run->member)[0] != '\0')
        *exit_status = (int)host_config_int(&run->config, "dismissal_status");
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
        printf("  %-9s %2s %-5s %-16s %8.0f %3.0f thread%-1s ", word(w, "role"), rank, word(w, "state"),
               word(w, "host"), number(w, "pid"), number(w, "threads"), host_plural((int64_t)number(w, "threads")));
        if (launch_has_evaluators(run))
            printf("%12.0f members %12.0f members/s  ", number(w, "items"), number(w, "items_per_s"));
        printf("%s\n", word(w, "device"));
    }
}

// "1 crash, ", "2 crashes, "
static void print_count(const json_t *object, const char *key, const char *noun, const char *plural, const char *then) {
    double count = number(object, key);
    printf("%.0f %s%s%s", count, noun, count == 1 ? "" : plural, then);
}

static void print_counts(const json_t *all) {
    const json_t *f = json_object_get(all, "failures"), *t = json_object_get(all, "traffic");
    printf("failures: ");
    print_count(f, "deaths", "death", "s", ", ");
    print_count(f, "crashes", "crash", "es", ", ");
    print_count(f, "hangs", "hang", "s", ", ");
    print_count(f, "refusals", "refused", "", ", ");
    print_count(f, "strangers", "stranger", "s", "; ");
    print_count(f, "repeated_items", "member", "s", " computed again, ");
    print_count(f, "lost_items", "lost", "", "\ntraffic: ");
    print_count(t, "payload_messages", "payload", "s", " of ");
    print_count(t, "payload_bytes", "byte", "s", ", ");
    print_count(t, "result_messages", "result", "s", " of ");
    print_count(t, "result_bytes", "byte", "s", "; ");
    print_count(all, "leases", "lease", "s", "; ");
    print_count(t, "collective_bytes", "byte", "s", " between trainers\n");
}

// How many workers there may be, are missing and are wanted.
static void print_bounds(const json_t *all) {
    double least = number(all, "min_workers"), most = number(all, "max_workers"), there = number(all, "present");
    printf(" (at least %.0f", least);
    if (most > 0) printf(", at most %.0f", most);
    if (there < least) printf(", waits for %.0f more", least - there);
    if (strcmp(word(all, "wants"), "none") != 0) printf(", %.0f wanted: %s", number(all, "wanted"), word(all, "wants"));
    puts(")");
}

static Status print_status(const LaunchRun *run, const char *json) {
    json_t *all = json_loads(json, 0, NULL);
    if (all == NULL) return host_fail(STATUS_CORRUPT, "the master's status is no JSON");
    const json_t *m = json_object_get(all, "master"), *workers = json_object_get(all, "workers");
    printf("%s at %s: %s %.0f", word(all, "env"), word(all, "endpoint"), run->trainer->step, number(all, "generation"));
    if (launch_has_evaluators(run))
        printf(", %.0f of %.0f members to go", number(all, "items_left"), number(all, "items"));
    printf("; epoch %.0f, %zu worker%s", number(all, "epoch"), json_array_size(workers),
           host_plural((int64_t)json_array_size(workers)));
    print_bounds(all);
    if (number(all, "trainers") > 1) {
        printf("%.0f trainers by %s: %s\n", number(all, "trainers"), word(all, "collectives"),
               word(all, "collectives_why"));
    }
    print_workers(run, workers);
    print_counts(all);
    printf("master: %.1f s old, %.2f s of CPU time, %.1f MiB; hangs are noticed after %g s\n", number(m, "age_s"),
           number(m, "cpu_s"), number(m, "memory_bytes") / 1048576.0, number(all, "hang_limit_s"));
    json_decref(all);
    return STATUS_OK;
}

static Status check_status(const LaunchRun *run) {
    static const char *const needed[] = {"status", "secret", "json", "quiet", NULL};
    const ConfigTable *table = run->trainer->table;
    char name[HOST_CONFIG_NAME_MAX];
    if (run->args.count > 0)
        return host_fail(STATUS_USAGE, "--status asks a run's master: leave out '%s'", run->args.positional[0]);
    for (int i = 0; i < table->count; i++) {
        bool is_needed = false;
        for (const char *const *option = needed; *option != NULL; option++)
            is_needed = is_needed || strcmp(*option, table->options[i].name) == 0;
        if (is_needed || !is_given(run, table->options[i].name)) continue;
        return host_fail(STATUS_USAGE, "--status asks a run's master: leave out --%s",
                         host_config_spell(table->options[i].name, true, name));
    }
    return STATUS_OK;
}

static Status show_status(const LaunchRun *run) {
    char endpoint[HOST_ENDPOINT_MAX], *json = NULL;
    HostKeys keys;
    TRY(check_status(run));
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

Status launch_help_run(LaunchRun *run, int *exit_status) {
    if (launch_emits(run)) return host_fail(STATUS_USAGE, "--emit is for a run's own command line");
    if (launch_text(run, "status")[0] != '\0') return show_status(run);
    return role(run) == ROLE_MASTER ? be_master(run) : be_helper(run, exit_status);
}
