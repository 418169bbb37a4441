#include "host/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/trace.h"

enum { DEFAULT_NAMES_MAX = 100000 };

// The generation in "gen-00000012.safetensors"; -1 for any other name.
static int64_t generation_of(const char *name) {
    if (strncmp(name, "gen-", 4) != 0) return -1;
    size_t digits = strspn(name + 4, "0123456789");
    if (digits < 8 || digits > 18 || strcmp(name + 4 + digits, ".safetensors") != 0) return -1;
    return strtoll(name + 4, NULL, 10);
}

Status host_run_config_path(const char *run_path, char path[HOST_PATH_MAX]) {
    return host_file_join(run_path, "config.json", path);
}

Status host_run_secret_path(const char *run_path, char path[HOST_PATH_MAX]) {
    return host_file_join(run_path, "secret", path);
}

Status host_run_master_path(const char *run_path, char path[HOST_PATH_MAX]) {
    return host_file_join(run_path, "master", path);
}

Status host_run_metrics_path(const char *run_path, char path[HOST_PATH_MAX]) {
    return host_file_join(run_path, "metrics.csv", path);
}

Status host_run_checkpoint_path(const char *run_path, int64_t generation, char path[HOST_PATH_MAX]) {
    char name[64];
    snprintf(name, sizeof name, "checkpoint/gen-%08" PRId64 ".safetensors", generation);
    return host_file_join(run_path, name, path);
}

// Calls visit for each entry of a folder; a folder that is not there has none.
typedef Status VisitEntry(void *context, const char *folder, const char *name);
static Status visit_folder(const char *folder, VisitEntry *visit, void *context) {
    DIR *stream = opendir(folder);
    if (stream == NULL && errno == ENOENT) return STATUS_OK;
    if (stream == NULL) return host_fail(STATUS_IO, "cannot list %s: %s", folder, strerror(errno));
    Status status = STATUS_OK;
    const struct dirent *entry;
    while (status == STATUS_OK && (errno = 0, entry = readdir(stream)) != NULL)
        status = visit(context, folder, entry->d_name);
    if (status == STATUS_OK && errno != 0) status = host_fail(STATUS_IO, "cannot list %s: %s", folder, strerror(errno));
    closedir(stream);
    return status;
}

static Status visit_checkpoints(const char *run_path, VisitEntry *visit, void *context) {
    char folder[HOST_PATH_MAX];
    TRY(host_file_join(run_path, "checkpoint", folder));
    return visit_folder(folder, visit, context);
}

static Status take_newest(void *context, const char *folder, const char *name) {
    (void)folder;
    int64_t *newest = context, generation = generation_of(name);
    if (generation > *newest) *newest = generation;
    return STATUS_OK;
}

Status host_run_newest_checkpoint(const char *run_path, int64_t *generation, char path[HOST_PATH_MAX]) {
    *generation = -1;
    path[0] = '\0';
    TRY(visit_checkpoints(run_path, take_newest, generation));
    return *generation < 0 ? STATUS_OK : host_run_checkpoint_path(run_path, *generation, path);
}

static Status holds_run(const char *run_path, bool *holds) {
    char path[HOST_PATH_MAX];
    int64_t generation;
    TRY(host_run_config_path(run_path, path));
    *holds = host_file_exists(path);
    if (*holds) return STATUS_OK;
    TRY(host_run_newest_checkpoint(run_path, &generation, path));
    *holds = generation >= 0;
    return STATUS_OK;
}

static Status lock(HostRunDir *run) {
    char path[HOST_PATH_MAX];
    TRY(host_file_join(run->path, ".lock", path));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return host_fail(STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int reason = errno;
        close(fd);
        if (reason == EWOULDBLOCK) return host_fail(STATUS_IO, "%s is in use by another process", run->path);
        return host_fail(STATUS_IO, "cannot lock %s: %s", path, strerror(reason));
    }
    run->lock_fd = fd;
    return STATUS_OK;
}

// What host_file_replace() of a killed process left. Only under the lock.
static Status remove_temporary(void *context, const char *folder, const char *name) {
    (void)context;
    static const char *const ours[] = {"config.json.tmp-", "metrics.csv.tmp-", "master.tmp-", "gen-"};
    bool is_ours = false;
    for (int i = 0; i < 4; i++)
        is_ours |= strncmp(name, ours[i], strlen(ours[i])) == 0 && strstr(name, ".tmp-") != NULL;
    if (!is_ours) return STATUS_OK;
    char path[HOST_PATH_MAX];
    TRY(host_file_join(folder, name, path));
    if (unlink(path) != 0 && errno != ENOENT)
        return host_fail(STATUS_IO, "cannot remove %s: %s", path, strerror(errno));
    return STATUS_OK;
}

static Status prepare(HostRunDir *run) {
    char folder[HOST_PATH_MAX];
    TRY(host_file_join(run->path, "checkpoint", folder));
    TRY(host_file_make_folder(folder));
    TRY(visit_folder(run->path, remove_temporary, NULL));
    return visit_folder(folder, remove_temporary, NULL);
}

static Status set_path(HostRunDir *run, const char *path) {
    *run = (HostRunDir){.lock_fd = -1};
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    // Room for the longest name within it, so that later joins do not fail.
    if (length + 64 > sizeof run->path) return host_fail(STATUS_USAGE, "the path '%.100s...' is too long", path);
    memcpy(run->path, path, length);
    return STATUS_OK;
}

// Makes runs/<env>-<date>-<counter>; mkdir decides between processes that try the same name.
static Status make_default(HostRunDir *run, const char *env) {
    char date[16], path[HOST_PATH_MAX], name[128];
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local) == NULL || strftime(date, sizeof date, "%Y%m%d", &local) == 0)
        return host_fail(STATUS_SYSTEM, "cannot tell the date");
    TRY(host_file_make_folder("runs"));
    for (int counter = 1; counter < DEFAULT_NAMES_MAX; counter++) {
        snprintf(name, sizeof name, "%.64s-%s-%d", env, date, counter);
        for (char *c = name; *c != '\0'; c++) {
            if (*c == '/') *c = '-';
        }
        TRY(host_file_join("runs", name, path));
        if (mkdir(path, 0777) == 0) return set_path(run, path);
        if (errno != EEXIST) return host_fail(STATUS_IO, "cannot make the folder %s: %s", path, strerror(errno));
    }
    return host_fail(STATUS_IO, "runs/ holds %d runs of %s today; name one with --out", DEFAULT_NAMES_MAX, env);
}

static Status refuse_run(const HostRunDir *run) {
    bool holds;
    TRY(holds_run(run->path, &holds));
    if (holds)
        return host_fail(STATUS_USAGE, "%s holds a run already; go on with --resume %s, or choose another --out",
                         run->path, run->path);
    return STATUS_OK;
}

Status host_run_dir_create(HostRunDir *run, const char *out, const char *env) {
    *run = (HostRunDir){.lock_fd = -1};
    if (out == NULL || out[0] == '\0') {
        TRY(make_default(run, env));
    } else {
        TRY(set_path(run, out));
        TRY(host_file_make_folder(run->path));
        TRY(refuse_run(run));
    }
    TRY(lock(run));
    // Again under the lock: another process may have begun a run meanwhile.
    Status status = refuse_run(run);
    if (status == STATUS_OK) status = prepare(run);
    if (status != STATUS_OK) host_run_dir_close(run);
    return status;
}

Status host_run_dir_resume(HostRunDir *run, const char *path) {
    TRY(set_path(run, path));
    struct stat info;
    if (stat(run->path, &info) != 0) return host_fail(STATUS_USAGE, "cannot resume %s: %s", run->path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return host_fail(STATUS_USAGE, "cannot resume %s: it is not a folder", run->path);
    char config_path[HOST_PATH_MAX];
    TRY(host_run_config_path(run->path, config_path));
    if (!host_file_exists(config_path))
        return host_fail(STATUS_USAGE, "cannot resume %s: it holds no run (no config.json)", run->path);
    TRY(lock(run));
    Status status = prepare(run);
    if (status != STATUS_OK) host_run_dir_close(run);
    return status;
}

void host_run_dir_close(HostRunDir *run) {
    if (run->lock_fd >= 0) close(run->lock_fd);
    run->lock_fd = -1;
}

Status host_run_dir_write_config(const HostRunDir *run, const char *json) {
    char path[HOST_PATH_MAX];
    TRY(host_run_config_path(run->path, path));
    HostFilePart part = {json, strlen(json)};
    return host_file_replace(path, &part, 1);
}

// The `keep` newest generations seen so far, descending.
typedef struct Newest {
    int keep, count;
    int64_t *generation;
} Newest;

static Status note_generation(void *context, const char *folder, const char *name) {
    (void)folder;
    Newest *newest = context;
    int64_t generation = generation_of(name);
    if (generation < 0) return STATUS_OK;
    for (int i = 0; i < newest->keep; i++) {
        if (i == newest->count) {
            newest->generation[newest->count++] = generation;
            break;
        }
        if (generation > newest->generation[i]) {
            int64_t pushed_down = newest->generation[i];
            newest->generation[i] = generation;
            generation = pushed_down;
        }
    }
    return STATUS_OK;
}

static Status remove_older(void *context, const char *folder, const char *name) {
    const Newest *newest = context;
    int64_t generation = generation_of(name);
    if (generation < 0 || newest->count < newest->keep || generation >= newest->generation[newest->count - 1])
        return STATUS_OK;
    char path[HOST_PATH_MAX];
    TRY(host_file_join(folder, name, path));
    if (unlink(path) != 0 && errno != ENOENT)
        return host_fail(STATUS_IO, "cannot remove %s: %s", path, strerror(errno));
    return STATUS_OK;
}

Status host_run_dir_prune(const HostRunDir *run, int keep) {
    HOST_TRACE_SCOPE(IO, "prune checkpoints");
    int64_t generations[16];
    if (keep < 1 || keep > 16) return host_fail(STATUS_SYSTEM, "cannot keep %d checkpoints; allowed: 1 to 16", keep);
    Newest newest = {.keep = keep, .generation = generations};
    TRY(visit_checkpoints(run->path, note_generation, &newest));
    return visit_checkpoints(run->path, remove_older, &newest);
}
