#include "kernels/launcher_emit.h"
#include "host/plural.h"

#include <ctype.h>
#include <string.h>

#include "kernels/launcher_ranks.h"

enum { EMIT_NONE, EMIT_SLURM, EMIT_K8S, NAME_TAG = 9, K8S_PORT = 5555 };

static int kind(const LaunchRun *run) {
    bool has_option = host_config_find(run->trainer->table, "emit") != NULL;
    return has_option ? host_config_choice(&run->config, "emit") : EMIT_NONE;
}

bool launch_emits(const LaunchRun *run) { return kind(run) != EMIT_NONE; }

bool launch_emit_scales(const LaunchRun *run) {
    bool has_hook = launch_text(run, "scale_hook")[0] != '\0',
         is_bounded = host_config_int(&run->config, "max_workers") > 0;
    // An Indexed Job of no pods is done, and cannot be scaled.
    bool has_job = kind(run) == EMIT_SLURM || launch_workers(run) > launch_trainers(run);
    return launch_emits(run) && launch_has_evaluators(run) && is_bounded && !has_hook && has_job;
}

void launch_put_shell(FILE *stream, const char *word) {
    fputc('\'', stream);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", stream);
        } else {
            fputc(*word, stream);
        }
    }
    fputc('\'', stream);
}

// "shoal-", and the last part of the folder's path, as far as it is a name everywhere. Whether nothing of the folder is
// lost by that: it is runs/NAME, or NAME.
static bool name_job(LaunchJob *job) {
    const char *folder = job->folder, *last = folder;
    for (const char *at = folder; at[0] != '\0'; at++)
        if (at[0] == '/' && at[1] != '/' && at[1] != '\0') last = at + 1;
    bool is_whole = last == folder || (strncmp(folder, "runs/", 5) == 0 && last == folder + 5);
    size_t length = (size_t)snprintf(job->name, sizeof job->name, "shoal"), most = sizeof job->name - NAME_TAG - 2;
    const char *at = last;
    bool is_gap = true;
    for (; *at != '\0' && length < most; at++) {
        bool fits = isalnum((unsigned char)*at) != 0 && (unsigned char)*at < 128;
        is_whole = is_whole && (fits ? !isupper((unsigned char)*at) : *at == '-' && !is_gap);
        if (fits && is_gap) job->name[length++] = '-';
        if (fits) job->name[length++] = (char)tolower((unsigned char)*at);
        is_gap = !fits;
    }
    job->name[length] = '\0';
    return is_whole && *at == '\0' && at > last && !is_gap;
}

// Where two runs might have the same name: a tag that follows from the folder.
static void tell_apart(LaunchJob *job) {
    char tag[17];
    HostHash hash = host_hash_start();
    host_hash_add(&hash, job->folder, strlen(job->folder));
    size_t length = strlen(job->name);
    snprintf(job->name + length, sizeof job->name - length, "-%.*s", NAME_TAG - 1, host_hash_text(hash, tag) + 8);
}

static Status check(const LaunchRun *run) {
    static const char *const not_these[] = {"eval", "html", "resume", "config", "secret", NULL};
    for (int i = 0; not_these[i] != NULL; i++) {
        bool is_file = i >= 2; // which a container does not have
        if (launch_text(run, not_these[i])[0] == '\0' || (is_file && kind(run) == EMIT_SLURM)) continue;
        return host_fail(STATUS_USAGE, "--emit %s: leave out --%s%s", kind(run) == EMIT_K8S ? "k8s" : "slurm",
                         not_these[i], is_file ? ": what it names is not in a container" : "");
    }
    if (run->options.dry_run) return host_fail(STATUS_USAGE, "--emit runs nothing: leave out --dry-run");
    return STATUS_OK;
}

// Pods listen at addresses of their own, and all at one port.
static Status find_port(LaunchJob *job) {
    const char *address = launch_text(job->run, "bind_address");
    char host[HOST_ADDRESS_MAX];
    bool everywhere = true;
    job->port = 0;
    if (address[0] != '\0') TRY(host_address_host(address, host, &everywhere));
    if (address[0] != '\0') TRY(host_address_port(address, &job->port));
    if (job->port == 0) job->port = K8S_PORT;
    if (everywhere) return STATUS_OK;
    return host_fail(STATUS_USAGE, "--emit k8s: --bind-address %s: pods have addresses of their own: tcp://*:%d",
                     address, job->port);
}

static void add_where_given(const LaunchRun *run, LaunchArguments *arguments, const char *const *names) {
    char value[HOST_TEXT_MAX];
    for (; *names != NULL; names++) {
        if (host_config_layer(&run->config, *names) != CONFIG_ARGS) continue;
        launch_add(arguments, *names, host_config_text(&run->config, *names, value, sizeof value));
    }
}

static void list_arguments(LaunchJob *job) {
    static const char *const not_start[] = {"env", NULL};
    static const char *const not_always[] = {"workers",      "out",     "resume", "config", "emit",
                                             "bind_address", "threads", "bind",   "ranks",  NULL};
    static const char *const here_too[] = {"secret", "quiet", NULL};
    const LaunchRun *run = job->run;
    char value[HOST_TEXT_MAX];
    const char *bind = host_config_text(&run->config, "bind", value, sizeof value);
    // What allots cores to a worker keeps it to them; pinned to the first ones, two workers might share one.
    if (host_config_layer(&run->config, "bind") != CONFIG_ARGS) bind = "none";
    launch_add(&job->always, "bind", bind);
    launch_add(&job->helper, "bind", bind);
    if (run->options.resume[0] == '\0') launch_add_word(&job->start, run->options.env);
    if (run->options.config[0] != '\0') launch_add(&job->start, "config", run->options.config);
    launch_add_given(run, &job->start, LAUNCH_SETTINGS, not_start);
    launch_add_given(run, &job->always, LAUNCH_COMMANDS, not_always);
    add_where_given(run, &job->helper, launch_of_helpers);
    add_where_given(run, &job->helper, here_too);
    if (kind(run) == EMIT_SLURM) launch_add_profile(run, &job->helper, job->folder); // pods have no common disk
}

static void describe(LaunchJob *job) {
    const LaunchRun *run = job->run;
    int workers = (int)launch_workers(run);
    job->trainers = launch_trainers(run);
    job->has_evaluators = launch_has_evaluators(run);
    job->evaluators = workers > job->trainers ? workers - job->trainers : 0;
    job->cores = run->options.threads > 0 ? run->options.threads : 1;
    job->scales = launch_emit_scales(run);
    job->needs_gpu = host_config_choice(&run->config, "device") == KERN_DEVICE_CUDA;
    char label[KERN_OBJECTIVE_LABEL_MAX];
    snprintf(job->what, sizeof job->what, "%s by %s %s: %d trainer%s, %d evaluator%s", launch_label(run, label),
             run->trainer->tool, run->trainer->version, job->trainers, host_plural(job->trainers), job->evaluators,
             host_plural(job->evaluators));
}

Status launch_emit(const LaunchRun *run, FILE *stream) {
    const LaunchOptions *o = &run->options;
    char folder[HOST_TEXT_MAX], label[KERN_OBJECTIVE_LABEL_MAX];
    TRY(check(run));
    snprintf(folder, sizeof folder, "runs/%s", launch_label(run, label));
    LaunchJob job = {.run = run, .folder = o->resume[0] != '\0' ? o->resume : o->out[0] != '\0' ? o->out : folder};
    describe(&job);
    if (kind(run) == EMIT_K8S) TRY(find_port(&job));
    bool is_whole = name_job(&job);
    if (!is_whole && kind(run) == EMIT_K8S) tell_apart(&job);
    list_arguments(&job);
    Status status = STATUS_OK;
    if (job.start.is_short || job.always.is_short || job.helper.is_short) {
        status = host_fail(STATUS_MEMORY, "the command line is too long to be passed on");
    } else if (kind(run) == EMIT_K8S) {
        status = launch_emit_k8s(&job, stream);
    } else {
        launch_emit_slurm(&job, stream);
    }
    launch_free_arguments(&job.start);
    launch_free_arguments(&job.always);
    launch_free_arguments(&job.helper);
    return status;
}
