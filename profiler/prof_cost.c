#include "profiler/prof_cost.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "profiler/prof_record.h"

enum { REPEATS = 41, LOOPS = 2000, NAME_BYTES = 8, CONTENT_MAX = 1 << 16 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ProfEstimate prof_estimate(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    double median = count % 2 != 0 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
    // How many values lie below the median is binomial: within 1.96 deviations, sqrt(count) / 2 each, in 95% of cases.
    int reach = (int)ceil(0.98 * sqrt((double)count)), low = count / 2 - reach, high = (count - 1) / 2 + reach;
    return (ProfEstimate){values[low > 0 ? low : 0], median, values[high < count ? high : count - 1]};
}

// ---- measuring -----------------------------------------------------------------------------------------------------

// Some hundred nanoseconds of work that depends on itself.
static uint64_t work(uint64_t x) {
    for (int i = 0; i < 100; i++)
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return x;
}

static double time_loop(const char *name, bool scopes, uint64_t *x) {
    double start_s = host_now_s();
    for (int i = 0; i < LOOPS; i++) {
        const HostTraceHooks *scope = scopes ? host_trace_begin(HOST_TRACE_HOST, name) : NULL;
        *x = work(*x);
        __asm__ volatile("" : "+r"(*x)::"memory");
        host_trace_end(scope);
    }
    return (host_now_s() - start_s) / LOOPS * 1e9;
}

static void measure_pairs(char names[REPEATS][NAME_BYTES], double *pair_ns) {
    uint64_t x = 1;
    for (int r = -1; r < REPEATS; r++) { // the first is to warm up
        double with_ns = 0.0, without_ns = 0.0;
        for (int i = 0; i < 2; i++) { // in turn, each first as often
            bool scopes = (r + i) % 2 == 0;
            *(scopes ? &with_ns : &without_ns) = time_loop("work", scopes, &x);
            usleep(2000); // for the recorder's own thread
        }
        if (r < 0) continue;
        pair_ns[r] = with_ns - without_ns;
        for (int i = 0; i < LOOPS / 4; i++)
            host_trace_end(host_trace_begin(HOST_TRACE_HOST, names[r]));
    }
}

// How long the empty scopes of each name seem to take.
static Status read_insides(const char *path, char names[REPEATS][NAME_BYTES], double *inside_ns) {
    ProfAnalysis analysis;
    TRY(prof_analyse_file(path, &analysis));
    int found = 0;
    for (int32_t i = PROF_NODE_UNKNOWN + 1; i < analysis.node_count; i++) {
        const ProfCell *cell = &analysis.nodes[i].cell[HOST_PHASE_SETUP];
        for (int r = 0; r < REPEATS; r++) {
            if (cell->count == 0 || strcmp(prof_node_name(&analysis, i), names[r]) != 0) continue;
            inside_ns[r] = (double)cell->thread_ns / (double)cell->count;
            found++;
        }
    }
    prof_analysis_free(&analysis);
    return found == REPEATS ? STATUS_OK : host_fail(STATUS_SYSTEM, "the machine is too busy: scopes were dropped");
}

static void describe_machine(ProfCost *cost) {
    char line[512];
    gethostname(cost->host, sizeof cost->host - 1);
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        snprintf(cost->cpu, sizeof cost->cpu, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file != NULL) fclose(file);
}

static Status measure_into(const char *path, ProfCost *cost) {
    static const char letters[] = "0123456789";
    char names[REPEATS][NAME_BYTES] = {{0}};
    double pair_ns[REPEATS], inside_ns[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        names[r][0] = 'r';
        names[r][1] = letters[r / 10];
        names[r][2] = letters[r % 10];
    }
    ProfRecordOptions options = {.path = path};
    ProfRecorder *recorder = NULL;
    TRY(prof_recorder_start(&options, &recorder));
    measure_pairs(names, pair_ns);
    Status status = prof_recorder_stop(recorder, NULL);
    prof_recorder_free(recorder);
    TRY(status);
    TRY(read_insides(path, names, inside_ns));
    cost->pair_ns = prof_estimate(pair_ns, REPEATS);
    cost->inside_ns = prof_estimate(inside_ns, REPEATS);
    return STATUS_OK;
}

Status prof_cost_measure(ProfCost *cost) {
    const char *folder = getenv("TMPDIR");
    char temporary[HOST_PATH_MAX], path[HOST_PATH_MAX];
    memset(cost, 0, sizeof *cost);
    describe_machine(cost);
    TRY(host_file_join(folder != NULL && folder[0] != '\0' ? folder : "/tmp", "shoal-XXXXXX", temporary));
    if (mkdtemp(temporary) == NULL) return host_fail(STATUS_IO, "cannot make %s: %s", temporary, strerror(errno));
    Status status = host_file_join(temporary, "cost.trace", path);
    if (status == STATUS_OK) status = measure_into(path, cost);
    unlink(path);
    rmdir(temporary);
    return status;
}

// ---- the file ------------------------------------------------------------------------------------------------------

Status prof_cost_path(char path[HOST_PATH_MAX]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] != '\0') return host_file_join(cache, "shoal/profiler-cost.json", path);
    if (home == NULL || home[0] == '\0') return host_fail(STATUS_IO, "neither HOME nor XDG_CACHE_HOME is set");
    return host_file_join(home, ".cache/shoal/profiler-cost.json", path);
}

Status prof_cost_save(const ProfCost *cost, const char *path) {
    char folder[HOST_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 1, slash != NULL ? path : ".");
    TRY(host_file_make_folder(folder));
    const ProfEstimate *p = &cost->pair_ns, *i = &cost->inside_ns;
    json_t *json = json_pack("{ss ss s[fff] s[fff]}", "host", cost->host, "cpu", cost->cpu, "pair_ns", p->low,
                             p->median, p->high, "inside_ns", i->low, i->median, i->high);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    if (text == NULL) return host_fail(STATUS_MEMORY, "no memory for %s", path);
    HostFilePart part = {text, strlen(text)};
    Status status = host_file_replace(path, &part, 1);
    free(text);
    return status;
}

static bool is_sound(const ProfEstimate *e) { return e->low <= e->median && e->median <= e->high; }

Status prof_cost_load(const char *path, ProfCost *cost, bool *found) {
    *found = false;
    memset(cost, 0, sizeof *cost);
    if (!host_file_exists(path)) return STATUS_OK;
    char *text = NULL;
    size_t size = 0;
    TRY(host_file_read(path, CONTENT_MAX, &text, &size));
    json_t *json = json_loadb(text, size, 0, NULL);
    free(text);
    const char *host = "", *cpu = "";
    ProfEstimate *p = &cost->pair_ns, *i = &cost->inside_ns;
    int failed = json_unpack(json, "{ss ss s[FFF] s[FFF]}", "host", &host, "cpu", &cpu, "pair_ns", &p->low, &p->median,
                             &p->high, "inside_ns", &i->low, &i->median, &i->high);
    ProfCost here = {.host = ""};
    describe_machine(&here);
    *found = failed == 0 && strcmp(host, here.host) == 0 && strcmp(cpu, here.cpu) == 0;
    json_decref(json);
    memcpy(cost->host, here.host, sizeof cost->host);
    memcpy(cost->cpu, here.cpu, sizeof cost->cpu);
    if (failed == 0 && is_sound(p) && is_sound(i)) return STATUS_OK;
    return host_fail(STATUS_CORRUPT, "%s: is no file of costs; profreport --calibrate makes it anew", path);
}

// ---- correction ----------------------------------------------------------------------------------------------------

ProfEstimate prof_cost_wall(const ProfCost *cost, const ProfSummary *s) {
    double wall_ns = (double)s->total.wall_ns, entries = (double)s->total.main_entries;
    const ProfEstimate *pair = &cost->pair_ns;
    return (ProfEstimate){wall_ns - entries * pair->high, wall_ns - entries * pair->median,
                          wall_ns - entries * pair->low};
}

static double without(const ProfScope *scope, double inside_ns, double pair_ns) {
    double ns = (double)scope->thread_ns - (double)scope->entries * inside_ns -
                (double)scope->entries_within * (pair_ns - inside_ns);
    return ns > 0.0 ? ns : 0.0;
}

ProfEstimate prof_cost_scope(const ProfCost *cost, const ProfScope *scope) {
    const ProfEstimate *pair = &cost->pair_ns, *inside = &cost->inside_ns;
    return (ProfEstimate){without(scope, inside->high, pair->high), without(scope, inside->median, pair->median),
                          without(scope, inside->low, pair->low)};
}
