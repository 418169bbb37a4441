#define _GNU_SOURCE
#include "kernels/launcher_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/address.h"
#include "host/clock.h"
#include "host/master.h"
#include "host/signals.h"
#include "kernels/launcher_emit.h"

#define ASK_S 1.0 // that a master has for an answer
enum { LOOK_EVERY_MS = 50, RANKS_MAX = 4096, RANKS_NONE = 1 };

// ---- the environment -----------------------------------------------------------------------------------------------

// What launchers say to the processes they start. Those that may run within another one come first. srun's variables
// are those of a step: a job script has the job's, and is not one of several. srun may set PMI_RANK and PMI_SIZE, too.
static const struct {
    const char *tool, *rank, *count, *hosts, *local; // local: processes on this host
    const char *cpus;                                // of this host, for all of them; "": what the launcher may use
} launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "", "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "", "MPI_LOCALNRANKS", ""},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "", "SLURM_CPUS_ON_NODE"},
};

static Status read_number(const char *variable, int64_t min, int64_t max, int *value) {
    const char *given = variable[0] != '\0' ? getenv(variable) : NULL;
    int64_t number = 0;
    if (given != NULL) TRY(host_parse_int(variable, given, min, max, "", &number));
    *value = (int)number;
    return STATUS_OK;
}

static Status read_environment(LaunchRank *rank) {
    *rank = (LaunchRank){0};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *needed[] = {launchers[i].rank, launchers[i].count, launchers[i].local};
        bool is_there = true;
        for (int k = 0; k < 3; k++)
            is_there = is_there && (needed[k][0] == '\0' || getenv(needed[k]) != NULL);
        if (!is_there) continue;
        int local;
        rank->tool = launchers[i].tool;
        TRY(read_number(launchers[i].count, 1, RANKS_MAX, &rank->count));
        TRY(read_number(launchers[i].rank, 0, rank->count - 1, &rank->rank));
        TRY(read_number(launchers[i].hosts, 1, RANKS_MAX, &rank->hosts));
        TRY(read_number(launchers[i].local, 1, RANKS_MAX, &local));
        if (local > 0) rank->hosts = (rank->count + local - 1) / local;
        TRY(read_number(launchers[i].cpus, 1, HOST_THREADS_MAX, &rank->cpus));
        if (rank->cpus == 0) rank->cpus = host_cpu_allowed_to(getppid());
        if (rank->count == 1) *rank = (LaunchRank){0};
        return STATUS_OK;
    }
    return STATUS_OK;
}

static Status check_rank(const LaunchRun *run) {
    const LaunchRank *r = &run->rank;
    const char *address = launch_text(run, "bind_address");
    char host[HOST_ADDRESS_MAX];
    bool everywhere = true;
    if (host_config_layer(&run->config, "workers") == CONFIG_ARGS) {
        return host_fail(STATUS_USAGE,
                         "--workers: the %d processes of %s are the workers; leave it out, or give --ranks none",
                         r->count, r->tool);
    }
    if (r->hosts > 1 && address[0] == '\0') {
        return host_fail(STATUS_USAGE, "%d processes on %d hosts: --bind-address 'tcp://*:*' lets those elsewhere join",
                         r->count, r->hosts);
    }
    if (address[0] != '\0') TRY(host_address_host(address, host, &everywhere));
    if (r->hosts > 1 && everywhere && launch_trainers(run) > 1) {
        return host_fail(STATUS_USAGE,
                         "several trainers on %d hosts: --bind-address is to name the first host's address, such as "
                         "\"tcp://$(hostname):*\" in a job script",
                         r->hosts);
    }
    return STATUS_OK;
}

Status launch_find_rank(LaunchRun *run) {
    const LaunchOptions *o = &run->options;
    bool runs_nothing = o->dry_run || o->eval[0] != '\0' || launch_emits(run);
    if (runs_nothing || host_config_choice(&run->config, "ranks") == RANKS_NONE) return STATUS_OK;
    TRY(read_environment(&run->rank));
    return run->rank.count > 1 ? check_rank(run) : STATUS_OK;
}

int64_t launch_workers(const LaunchRun *run) {
    return run->rank.count > 1 ? run->rank.count : host_config_int(&run->config, "workers");
}

int launch_rank_cores(const LaunchRun *run) {
    const LaunchRank *r = &run->rank;
    int allowed = host_cpu_allowed(), local = r->hosts > 0 ? (r->count + r->hosts - 1) / r->hosts : r->count;
    if (r->count <= 1 || r->cpus == 0 || (int64_t)allowed * local <= r->cpus) return allowed; // its own, or so it seems
    int part = r->cpus / local;
    return part < 1 ? 1 : part < allowed ? part : allowed;
}

// ---- meeting -------------------------------------------------------------------------------------------------------

// The folder that all ranks know: the one that was given, else one named after the job.
static Status name_folder(LaunchRun *run) {
    LaunchOptions *o = &run->options;
    if (o->resume[0] != '\0' || o->out[0] != '\0') return STATUS_OK;
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    if (strcmp(run->rank.tool, "srun") != 0 || job == NULL || step == NULL) {
        return host_fail(STATUS_USAGE, "the processes of %s meet in the run's folder: name it, --out DIR",
                         run->rank.tool);
    }
    char folder[HOST_TEXT_MAX];
    char label[KERN_OBJECTIVE_LABEL_MAX];
    snprintf(folder, sizeof folder, "runs/%s-job%s.%s", launch_label(run, label), job, step);
    TRY(host_config_set(&run->config, CONFIG_ARGS, "out", folder));
    o->out = launch_text(run, "out");
    return STATUS_OK;
}

// Whether the run that rank 0 has begun in this folder is over: it has its settings, and no master any more. A run that
// is gone on with has its settings before.
static bool has_ended(const LaunchRun *run, const char *config, const char *master) {
    return run->options.resume[0] == '\0' && host_file_exists(config) && !host_file_exists(master);
}

static void pause_a_moment(void) { nanosleep(&(struct timespec){0, LOOK_EVERY_MS * 1000000L}, NULL); }

// Waits for a master that answers: the folder may still have the place of one that was killed.
static Status await_master(const LaunchRun *run, const char *folder, char endpoint[HOST_ENDPOINT_MAX], bool *is_over) {
    char config[HOST_PATH_MAX], master[HOST_PATH_MAX], reason[HOST_PATH_MAX + 64];
    double patience_s = host_config_real(&run->config, "patience"), until_s = host_now_s() + patience_s;
    TRY(host_run_config_path(folder, config));
    TRY(host_run_master_path(folder, master));
    snprintf(reason, sizeof reason, "%s is not there", master);
    for (;; pause_a_moment()) {
        HostKeys keys;
        char *json = NULL;
        if (host_stop_requested()) return host_fail(STATUS_STOPPED, "stopped while waiting for the run's master");
        *is_over = !host_file_exists(master) && has_ended(run, config, master);
        if (*is_over) return STATUS_OK;
        if (host_file_exists(master)) {
            Status status = launch_find_master(run, folder, endpoint, &keys);
            if (status == STATUS_OK) status = host_master_ask(endpoint, &keys, ASK_S, &json);
            free(json);
            if (status == STATUS_OK) return STATUS_OK;
            snprintf(reason, sizeof reason, "%s", host_message());
        }
        if (host_now_s() > until_s) break;
    }
    return host_fail(STATUS_SYSTEM, "rank %d of %d waited %g s for the run in %s: %s (--ranks none: no ranks)",
                     run->rank.rank, run->rank.count, patience_s, folder, reason);
}

// Becomes a worker of the run; returns only if it cannot.
static Status become_worker(const LaunchRun *run, const char *folder, const char *endpoint) {
    LaunchArguments arguments = {0};
    char address[HOST_ENDPOINT_MAX], bind[16], number[16];
    int threads = run->options.threads > 0 ? run->options.threads : launch_rank_cores(run);
    // Cores that others may have, too, are not to be shared with them for good.
    bool are_all_its_own = threads == host_cpu_allowed();
    bool is_bound = are_all_its_own || host_config_layer(&run->config, "bind") == CONFIG_ARGS;
    bool follows = run->rank.rank < launch_trainers(run);
    TRY(host_address_towards(endpoint, address, sizeof address));
    launch_add_word(&arguments, run->trainer->tool);
    launch_add_helper(run, &arguments, folder, follows ? address : NULL);
    launch_add_profile(run, &arguments, folder);
    snprintf(number, sizeof number, "%d", threads);
    launch_add(&arguments, "threads", number);
    launch_add(&arguments, "bind", is_bound ? host_config_text(&run->config, "bind", bind, sizeof bind) : "none");
    if (launch_text(run, "secret")[0] != '\0') launch_add(&arguments, "secret", launch_text(run, "secret"));
    Status status = host_fail(STATUS_MEMORY, "the command line is too long to be passed on");
    if (!arguments.is_short) {
        execv("/proc/self/exe", arguments.at);
        status = host_fail(STATUS_SYSTEM, "cannot become a worker: %s", strerror(errno));
    }
    launch_free_arguments(&arguments);
    return status;
}

Status launch_take_rank(LaunchRun *run, bool *is_over) {
    *is_over = false;
    if (run->rank.count <= 1) return STATUS_OK;
    TRY(name_folder(run));
    if (run->rank.rank == 0) return STATUS_OK;
    const char *folder = run->options.resume[0] != '\0' ? run->options.resume : run->options.out;
    char endpoint[HOST_ENDPOINT_MAX];
    TRY(await_master(run, folder, endpoint, is_over));
    if (!*is_over) return become_worker(run, folder, endpoint);
    if (!run->options.quiet)
        fprintf(stderr, "%s: rank %d: the run in %s is over\n", run->trainer->tool, run->rank.rank, folder);
    return STATUS_OK;
}
