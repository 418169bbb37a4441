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

// ---- measuring -----------------------------------------------------------------------------------------------------

// Some hundred nanoseconds of work that depends on itself.
static uint64_t work(uint64_t x) {
    for (int i = 0; i < 100; i++)
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return x;
}

// Work with what the recorder does for one class; PROF_COSTS: without any.
static double time_loop(int class, HostTraceMark mark, uint64_t *x) {
    static const uint64_t weight[HOST_TRACE_CATEGORIES] = {1000, 1000, 1000};
    int64_t start_ns = host_thread_ns(); // other programs do not count
    for (int i = 0; i < LOOPS; i++) {
        const HostTraceHooks *scope = NULL;
        if (class == PROF_COST_SCOPE) scope = host_trace_begin(HOST_TRACE_HOST, "work");
        if (class == PROF_COST_JOIN) scope = host_trace_join(mark);
        *x = work(*x);
        __asm__ volatile("" : "+r"(*x)::"memory");
        if (class == PROF_COST_SPLIT) host_trace_split(weight);
        if (class == PROF_COST_STRETCH) host_trace_stretch(HOST_STRETCH_NEXT, false, 1);
        if (class == PROF_COST_PAUSE) host_trace_stretch(HOST_STRETCH_PAUSE, false, 0);
        if (class == PROF_COST_PAUSE) host_trace_stretch(HOST_STRETCH_RESUME, false, 0);
        host_trace_end(scope);
    }
    return (double)(host_thread_ns() - start_ns) / LOOPS;
}

static void measure_each(char names[REPEATS][NAME_BYTES], double each_ns[PROF_COSTS][REPEATS]) {
    HOST_TRACE_SCOPE(HOST, "calibration");
    HostTraceMark mark = host_trace_mark();
    uint64_t x = 1;
    for (int r = -1; r < REPEATS; r++) { // the first is to warm up
        double ns[PROF_COSTS + 1];
        for (int i = 0; i <= PROF_COSTS; i++) { // in turn, each first as often
            int class = (r + 1 + i) % (PROF_COSTS + 1);
            ns[class] = time_loop(class, mark, &x);
            usleep(2000); // for the recorder's own thread
        }
        if (r < 0) continue;
        for (int class = 0; class < PROF_COSTS; class ++)
            each_ns[class][r] = ns[class] - ns[PROF_COSTS];
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
    double each_ns[PROF_COSTS][REPEATS], inside_ns[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        names[r][0] = 'r';
        names[r][1] = letters[r / 10];
        names[r][2] = letters[r % 10];
    }
    ProfRecordOptions options = {.path = path};
    ProfRecorder *recorder = NULL;
    TRY(prof_recorder_start(&options, &recorder));
    measure_each(names, each_ns);
    Status status = prof_recorder_stop(recorder, NULL);
    prof_recorder_free(recorder);
    TRY(status);
    TRY(read_insides(path, names, inside_ns));
    for (int i = 0; i < PROF_COSTS; i++)
        cost->each_ns[i] = prof_estimate(each_ns[i], REPEATS);
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

const char *prof_cost_name(ProfCostClass of) {
    static const char *const names[] = {"scope", "join", "split", "stretch", "pause"};
    _Static_assert(sizeof names / sizeof names[0] == PROF_COSTS, "a name for each class");
    return names[of];
}

static json_t *pack(const ProfEstimate *e) { return json_pack("[fff]", e->low, e->median, e->high); }

Status prof_cost_save(const ProfCost *cost, const char *path) {
    char folder[HOST_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 1, slash != NULL ? path : ".");
    TRY(host_file_make_folder(folder));
    json_t *costs = json_object();
    for (int i = 0; i < PROF_COSTS; i++)
        json_object_set_new(costs, prof_cost_name((ProfCostClass)i), pack(&cost->each_ns[i]));
    json_t *json = json_pack("{ss ss so so}", "host", cost->host, "cpu", cost->cpu, "costs", costs, "inside_ns",
                             pack(&cost->inside_ns));
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    if (text == NULL) return host_fail(STATUS_MEMORY, "no memory for %s", path);
    HostFilePart part = {text, strlen(text)};
    Status status = host_file_replace(path, &part, 1);
    free(text);
    return status;
}

static bool unpack(json_t *json, ProfEstimate *e) {
    return json_unpack(json, "[FFF]", &e->low, &e->median, &e->high) == 0 && e->low <= e->median &&
           e->median <= e->high;
}

static bool unpack_costs(json_t *json, ProfCost *cost) {
    const json_t *costs = json_object_get(json, "costs");
    bool is_sound = unpack(json_object_get(json, "inside_ns"), &cost->inside_ns);
    for (int i = 0; i < PROF_COSTS; i++)
        is_sound = is_sound && unpack(json_object_get(costs, prof_cost_name((ProfCostClass)i)), &cost->each_ns[i]);
    return is_sound;
}

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
    bool is_sound = json_unpack(json, "{ss ss}", "host", &host, "cpu", &cpu) == 0 && unpack_costs(json, cost);
    bool is_older = json_object_get(json, "pair_ns") != NULL;
    ProfCost here = {.host = ""};
    describe_machine(&here);
    *found = is_sound && strcmp(host, here.host) == 0 && strcmp(cpu, here.cpu) == 0;
    json_decref(json);
    memcpy(cost->host, here.host, sizeof cost->host);
    memcpy(cost->cpu, here.cpu, sizeof cost->cpu);
    if (is_sound) return STATUS_OK;
    return host_fail(STATUS_CORRUPT, "%s: is %s; profreport --calibrate makes it anew", path,
                     is_older ? "of an earlier version, which measured less" : "no file of costs");
}

// ---- correction ----------------------------------------------------------------------------------------------------

static ProfEstimate around(double ns, double half_ns) { return (ProfEstimate){ns - half_ns, ns, ns + half_ns}; }

ProfCorrection prof_cost_correct(const ProfCost *cost, const ProfSummary *s) {
    ProfCorrection c = {.excess_ns = around(s->excess.ns, sqrt(s->excess.half_square))};
    for (int i = 0; cost != NULL && i < PROF_COSTS; i++) {
        double count = (double)s->total.main_costs[i];
        c.costs_ns.low += count * cost->each_ns[i].low;
        c.costs_ns.median += count * cost->each_ns[i].median;
        c.costs_ns.high += count * cost->each_ns[i].high;
    }
    // Independent of each other: deviations add up as squares do.
    double up_ns = hypot(c.costs_ns.high - c.costs_ns.median, c.excess_ns.high - c.excess_ns.median);
    double down_ns = hypot(c.costs_ns.median - c.costs_ns.low, c.excess_ns.median - c.excess_ns.low);
    double left_ns = (double)s->total.wall_ns - c.costs_ns.median - c.excess_ns.median;
    c.wall_ns = (ProfEstimate){left_ns - up_ns, left_ns, left_ns + down_ns};
    return c;
}

// `ns` less what entries cost within it.
static double without(double ns, const ProfScope *scope, double inside_ns, double pair_ns) {
    ns -= (double)scope->entries * inside_ns + (double)scope->entries_within * (pair_ns - inside_ns);
    return ns > 0.0 ? ns : 0.0;
}

// A scope's time in recorded stretches, without what was spent on scopes.
static double recorded_ns(const ProfCost *cost, const ProfSummary *s, int32_t at) {
    const ProfScope *scope = &s->scopes[at];
    double ns = (double)(scope->thread_ns - scope->plain_ns);
    if (cost == NULL) return ns;
    double pair_ns = cost->each_ns[PROF_COST_SCOPE].median, inside_ns = cost->inside_ns.median;
    ProfScope within = *scope;
    if (scope->loop == at) within.entries = 0; // they begin outside
    return without(ns, &within, inside_ns, pair_ns);
}

static ProfEstimate corrected_apart(const ProfCost *cost, const ProfScope *scope) {
    double ns = (double)scope->thread_ns;
    if (cost == NULL) return around(ns, 0.0);
    const ProfEstimate *pair = &cost->each_ns[PROF_COST_SCOPE], *inside = &cost->inside_ns;
    return (ProfEstimate){without(ns, scope, inside->high, pair->high),
                          without(ns, scope, inside->median, pair->median), without(ns, scope, inside->low, pair->low)};
}

// Of a whole loop.
typedef struct Loop {
    double raw_ns, recorded_ns;
} Loop;

Status prof_cost_scopes(const ProfCost *cost, const ProfSummary *s, ProfEstimate *corrected) {
    Loop *loops = calloc((size_t)s->scope_count + 1, sizeof *loops);
    if (loops == NULL) return host_fail(STATUS_MEMORY, "no memory for the scopes of a report");
    for (int32_t i = 0; i < s->scope_count; i++) {
        const ProfScope *scope = &s->scopes[i];
        corrected[i] = corrected_apart(cost, scope);
        if (scope->loop < 0) continue;
        loops[scope->loop].raw_ns += (double)scope->thread_ns;
        loops[scope->loop].recorded_ns += recorded_ns(cost, s, i);
    }
    for (int32_t i = 0; i < s->scope_count; i++) {
        if (s->scopes[i].loop < 0) continue;
        const Loop *loop = &loops[s->scopes[i].loop];
        const ProfExcessSum *excess = &s->scopes[s->scopes[i].loop].excess;
        double part = loop->recorded_ns > 0.0 ? recorded_ns(cost, s, i) / loop->recorded_ns : 0.0;
        double left_ns = loop->raw_ns - excess->ns;
        corrected[i] = around(part * (left_ns > 0.0 ? left_ns : 0.0), part * sqrt(excess->half_square));
    }
    free(loops);
    return STATUS_OK;
}
