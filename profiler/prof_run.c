// Which traces a run has, and their sum.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/prof_report.h"

static bool is_trace_name(const char *name) {
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".trace") == 0;
}

static Status add_trace(ProfRun *run, const char *path) {
    char **traces = realloc(run->traces, ((size_t)run->trace_count + 1) * sizeof *traces);
    if (traces == NULL) return host_fail(STATUS_MEMORY, "no memory for a list of traces");
    run->traces = traces;
    traces[run->trace_count] = strdup(path);
    if (traces[run->trace_count] == NULL) return host_fail(STATUS_MEMORY, "no memory for a list of traces");
    run->trace_count++;
    return STATUS_OK;
}

// By length first, so that rank-10 comes after rank-9.
static int compare_paths(const void *a, const void *b) {
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    size_t p = strlen(x), q = strlen(y);
    return p != q ? (p > q) - (p < q) : strcmp(x, y);
}

static Status add_folder(const char *tool, ProfRun *run, const char *folder) {
    DIR *stream = opendir(folder);
    if (stream == NULL)
        return errno == ENOENT ? STATUS_OK : host_fail(STATUS_IO, "cannot list %s: %s", folder, strerror(errno));
    Status status = STATUS_OK;
    const struct dirent *entry;
    while (status == STATUS_OK && (entry = readdir(stream)) != NULL) {
        char path[HOST_PATH_MAX];
        if (!is_trace_name(entry->d_name)) continue;
        if (run->trace_count == PROF_TRACES_MAX) {
            fprintf(stderr, "%s: left out: all but %d of the traces in %s\n", tool, PROF_TRACES_MAX, folder);
            break;
        }
        status = host_file_join(folder, entry->d_name, path);
        if (status == STATUS_OK) status = add_trace(run, path);
    }
    closedir(stream);
    return status;
}

static Status find_traces(const char *tool, ProfRun *run) {
    struct stat info;
    if (stat(run->name, &info) != 0) return host_fail(STATUS_IO, "%s: %s", run->name, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return add_trace(run, run->name);
    char folder[HOST_PATH_MAX];
    TRY(host_file_join(run->name, "profile", folder));
    TRY(add_folder(tool, run, folder));
    if (run->trace_count == 0) TRY(add_folder(tool, run, run->name));
    if (run->trace_count == 0) {
        return host_fail(STATUS_IO, "%s: there are no traces: --profile of esrun and pporun records one", run->name);
    }
    qsort(run->traces, (size_t)run->trace_count, sizeof *run->traces, compare_paths);
    return STATUS_OK;
}

static Status take_trace(ProfRun *run, const char *path) {
    ProfAnalysis analysis;
    TRY(prof_analyse_file(path, &analysis));
    Status status = prof_summary_add(&run->summary, &analysis);
    prof_analysis_free(&analysis);
    return status;
}

static Status load(const char *tool, ProfRun *run) {
    TRY(find_traces(tool, run));
    int kept = 0;
    Status last = STATUS_OK;
    for (int i = 0; i < run->trace_count; i++) {
        last = take_trace(run, run->traces[i]);
        if (last == STATUS_MEMORY) return last;
        if (last != STATUS_OK && run->trace_count > 1) fprintf(stderr, "%s: left out: %s\n", tool, host_message());
        char *path = run->traces[i];
        run->traces[i] = run->traces[kept];
        run->traces[kept] = path;
        kept += last == STATUS_OK;
    }
    if (kept == 0) return last; // with the message of the last one
    while (run->trace_count > kept)
        free(run->traces[--run->trace_count]);
    prof_summary_finish(&run->summary);
    return STATUS_OK;
}

Status prof_run_load(const char *tool, const char *path, unsigned phases, ProfRun *run) {
    memset(run, 0, sizeof *run);
    if ((size_t)snprintf(run->name, sizeof run->name, "%s", path) >= sizeof run->name) {
        return host_fail(STATUS_USAGE, "a path that is too long");
    }
    prof_summary_init(&run->summary, phases);
    Status status = load(tool, run);
    if (status != STATUS_OK) prof_run_free(run);
    return status;
}

int64_t prof_run_main_scopes(const ProfRun *run) {
    const int64_t *costs = run->summary.total.main_costs;
    return costs[PROF_COST_SCOPE] + costs[PROF_COST_SCRIPT] + costs[PROF_COST_CALL];
}

// What scopes and calls of main threads cost, each class at its own; one whose cost is not known at that of a scope,
// which is a part of it.
static double main_scopes_ns(const ProfRun *run) {
    static const ProfCostClass classes[] = {PROF_COST_SCOPE, PROF_COST_SCRIPT, PROF_COST_CALL};
    double sum_ns = 0.0;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        ProfCostClass priced = run->cost.is_known[classes[i]] ? classes[i] : PROF_COST_SCOPE;
        sum_ns += (double)run->summary.total.main_costs[classes[i]] * run->cost.each_ns[priced].value;
    }
    return sum_ns;
}

static Status take_cost(ProfRun *run, const char *path) {
    TRY(prof_cost_load(path, &run->cost, &run->has_cost));
    for (int32_t i = 0; i < run->summary.worker_count; i++) {
        if (strcmp(run->summary.workers[i].process.host, run->cost.host) != 0) run->has_cost = false;
    }
    run->is_too_dense = run->has_cost && 20.0 * main_scopes_ns(run) > (double)run->summary.total.wall_ns;
    run->has_cost = run->has_cost && !run->is_too_dense;
    return STATUS_OK;
}

Status prof_run_correct(ProfRun *run, const char *path) {
    Status taken = path != NULL ? take_cost(run, path) : STATUS_OK;
    const ProfSummary *s = &run->summary;
    const ProfCost *cost = run->has_cost ? &run->cost : NULL;
    run->is_corrected = !run->is_too_dense && (run->has_cost || s->excess.units > 0);
    if (!run->is_corrected) return taken;
    run->corrected_ns = calloc((size_t)s->scope_count + 1, sizeof *run->corrected_ns);
    if (run->corrected_ns == NULL) return host_fail(STATUS_MEMORY, "no memory for the scopes of a report");
    run->correction = prof_cost_correct(cost, s);
    TRY(prof_cost_scopes(cost, s, run->corrected_ns));
    return taken;
}

const char *prof_run_unknown(const ProfRun *run, char text[512]) {
    static const char *const classes[] = {"", "Python's scopes", "calls of CUDA", "Python's scopes and calls of CUDA"};
    const ProfFigures *f = &run->summary.total;
    int script = f->costs[PROF_COST_SCRIPT] > 0 && !run->cost.is_known[PROF_COST_SCRIPT];
    int call = f->costs[PROF_COST_CALL] > 0 && !run->cost.is_known[PROF_COST_CALL];
    int length = 0;
    text[0] = '\0';
    if (!run->has_cost) {
        length =
            snprintf(text, 512, "Scopes elsewhere are not corrected for: profreport --calibrate measures their cost.");
    } else if (script + call > 0) {
        length = snprintf(text, 512, "Not corrected for: %s; profreport --calibrate has not measured what they cost.",
                          classes[script + 2 * call]);
    }
    if (f->ids > 0) {
        snprintf(
            text + length, 512 - (size_t)length,
            "%sNot measured, and not corrected for: that CUPTI records each call once more, for ids of another tool.",
            length > 0 ? " " : "");
    }
    return text;
}

void prof_run_free(ProfRun *run) {
    for (int i = 0; i < run->trace_count; i++)
        free(run->traces[i]);
    free(run->traces);
    free(run->corrected_ns);
    prof_summary_free(&run->summary);
    memset(run, 0, sizeof *run);
}
