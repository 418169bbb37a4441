#include "profiler/prof_cost.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/prof_cost_parts.h"

enum { CONTENT_MAX = 1 << 16 };

// ---- the file ------------------------------------------------------------------------------------------------------

Status prof_cost_path(char path[HOST_PATH_MAX]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] != '\0') return host_file_join(cache, "shoal/profiler-cost.json", path);
    if (home == NULL || home[0] == '\0') return host_fail(STATUS_IO, "neither HOME nor XDG_CACHE_HOME is set");
    return host_file_join(home, ".cache/shoal/profiler-cost.json", path);
}

const char *prof_cost_name(ProfCostClass of) {
    static const char *const names[] = {"scope", "join", "split", "stretch", "pause", "script", "call", "record"};
    _Static_assert(sizeof names / sizeof names[0] == PROF_COSTS, "a name for each class");
    return names[of];
}

static json_t *pack(const ProfEstimate *e) { return json_pack("[fff]", e->low, e->value, e->high); }

// By the names of classes; those that are not known are left out.
static json_t *pack_all(const ProfCost *cost, const ProfEstimate *of) {
    json_t *all = json_object();
    for (int i = 0; i < PROF_COSTS; i++) {
        if (cost->is_known[i]) json_object_set_new(all, prof_cost_name((ProfCostClass)i), pack(&of[i]));
    }
    return all;
}

Status prof_cost_save(const ProfCost *cost, const char *path) {
    char folder[HOST_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 1, slash != NULL ? path : ".");
    TRY(host_file_make_folder(folder));
    json_t *json = json_pack("{ss ss so so so*}", "host", cost->host, "cpu", cost->cpu, "each_ns",
                             pack_all(cost, cost->each_ns), "inside_ns", pack_all(cost, cost->inside_ns), "kernel_ns",
                             cost->has_kernel ? pack(&cost->kernel_ns) : NULL);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    if (text == NULL) return host_fail(STATUS_MEMORY, "no memory for %s", path);
    HostFilePart part = {text, strlen(text)};
    Status status = host_file_replace(path, &part, 1);
    free(text);
    return status;
}

static bool unpack(json_t *json, ProfEstimate *e) {
    return json_unpack(json, "[FFF]", &e->low, &e->value, &e->high) == 0 && e->low <= e->value && e->value <= e->high;
}

static bool unpack_costs(const json_t *json, ProfCost *cost) {
    const json_t *each = json_object_get(json, "each_ns"), *inside = json_object_get(json, "inside_ns");
    json_t *kernel = json_object_get(json, "kernel_ns");
    bool is_sound = kernel == NULL || unpack(kernel, &cost->kernel_ns);
    cost->has_kernel = kernel != NULL;
    for (int i = 0; i < PROF_COSTS; i++) {
        const char *name = prof_cost_name((ProfCostClass)i);
        json_t *cost_of = json_object_get(each, name);
        cost->is_known[i] = cost_of != NULL;
        if (cost_of == NULL && i >= PROF_COST_SCRIPT) continue; // not every machine has these
        is_sound = is_sound && unpack(cost_of, &cost->each_ns[i]) &&
                   unpack(json_object_get(inside, name), &cost->inside_ns[i]);
    }
    return is_sound;
}

void prof_cost_describe(ProfCost *cost) {
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
    bool is_older = json_object_get(json, "pair_ns") != NULL || json_object_get(json, "costs") != NULL;
    ProfCost here = {.host = ""};
    prof_cost_describe(&here);
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

// `count` times a cost, of which `possible` may or may not have been. A cost is a difference of measurements, and may
// be below 0: then none of those is the most that it can be.
static ProfEstimate times(ProfEstimate e, double count, double possible) {
    double least = count - possible;
    return (ProfEstimate){fmin(count * e.low, least * e.low), (count - 0.5 * possible) * e.value,
                          fmax(count * e.high, least * e.high)};
}

static void add_estimate(ProfEstimate *sum, ProfEstimate e) {
    sum->low += e.low;
    sum->value += e.value;
    sum->high += e.high;
}

// Of the longer kernels, what threads waited for has lengthened the run, and what they worked beside may have.
static ProfEstimate kernels_cost(const ProfCost *cost, const ProfFigures *f) {
    double waited = (double)f->bound_ns[PROF_BOUND_GPU], worked = (double)f->bound_ns[PROF_BOUND_OVERLAPPED];
    if (!cost->has_kernel || waited + worked <= 0.0) return around(0.0, 0.0);
    return times(cost->kernel_ns, (double)f->kernels, (double)f->kernels * worked / (waited + worked));
}

ProfCorrection prof_cost_correct(const ProfCost *cost, const ProfSummary *s) {
    ProfCorrection c = {.excess_ns = around(s->excess.ns, sqrt(s->excess.half_square))};
    for (int i = 0; cost != NULL && i < PROF_COSTS; i++) {
        double count = (double)s->total.main_costs[i], covered = (double)s->total.covered_costs[i];
        if (cost->is_known[i]) add_estimate(&c.costs_ns, times(cost->each_ns[i], count, covered));
    }
    if (cost != NULL) add_estimate(&c.costs_ns, kernels_cost(cost, &s->total));
    // Independent of each other: deviations add up as squares do.
    double up_ns = hypot(c.costs_ns.high - c.costs_ns.value, c.excess_ns.high - c.excess_ns.value);
    double down_ns = hypot(c.costs_ns.value - c.costs_ns.low, c.excess_ns.value - c.excess_ns.low);
    double left_ns = (double)s->total.wall_ns - c.costs_ns.value - c.excess_ns.value;
    c.wall_ns = (ProfEstimate){left_ns - up_ns, left_ns, left_ns + down_ns};
    return c;
}

// What of a class falls within the scope that is entered, or that it is of, and into the scope around it.
typedef struct Parts {
    ProfEstimate inside_ns, around_ns;
} Parts;

static Parts parts_of(const ProfCost *cost, ProfCostClass class) {
    const ProfEstimate *each = &cost->each_ns[class], *inside = &cost->inside_ns[class];
    if (class == PROF_COST_RECORD) return (Parts){.inside_ns = *each};
    if (class == PROF_COST_SPLIT || class == PROF_COST_STRETCH || class == PROF_COST_PAUSE)
        return (Parts){around(0.0, 0.0), around(0.0, 0.0)}; // they are few, and of scopes that last
    return (Parts){*inside, {each->low - inside->low, each->value - inside->value, each->high - inside->high}};
}

// A scope's own time without what it costs that the scope, and those directly below it, were entered; never below 0.
static ProfEstimate without(const ProfCost *cost, double ns, const ProfScope *scope) {
    ProfEstimate taken = around(0.0, 0.0);
    for (int i = 0; i < PROF_COSTS; i++) {
        if (!cost->is_known[i]) continue;
        Parts parts = parts_of(cost, (ProfCostClass)i);
        add_estimate(&taken, times(parts.inside_ns, (double)scope->costs[i], 0.0));
        add_estimate(&taken, times(parts.around_ns, (double)scope->costs_within[i], 0.0));
    }
    return (ProfEstimate){fmax(ns - taken.high, 0.0), fmax(ns - taken.value, 0.0), fmax(ns - taken.low, 0.0)};
}

// A scope's time in recorded stretches, without what was spent on scopes.
static double recorded_ns(const ProfCost *cost, const ProfSummary *s, int32_t at) {
    const ProfScope *scope = &s->scopes[at];
    double ns = (double)(scope->thread_ns - scope->plain_ns);
    if (cost == NULL) return ns;
    ProfScope within = *scope;
    if (scope->loop == at) memset(within.costs, 0, sizeof within.costs); // they begin outside
    return without(cost, ns, &within).value;
}

static ProfEstimate corrected_apart(const ProfCost *cost, const ProfScope *scope) {
    double ns = (double)scope->thread_ns;
    return cost != NULL ? without(cost, ns, scope) : around(ns, 0.0);
}

double prof_cost_device_ns(const ProfCost *cost, const ProfScope *scope) {
    double ns = (double)scope->device_ns - (cost->has_kernel ? cost->kernel_ns.value * (double)scope->kernels : 0.0);
    return fmax(ns, 0.0);
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
