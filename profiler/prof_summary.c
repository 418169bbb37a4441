#include "profiler/prof_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/hash.h"

enum { NONE = HOST_TRACE_CATEGORIES };

void prof_summary_init(ProfSummary *s, unsigned phases) {
    memset(s, 0, sizeof *s);
    s->phases = phases;
}

static bool counts(unsigned phases, int phase) { return (phases >> phase & 1) != 0; }

// A node's cell over the phases that count.
static ProfCell cell_of(const ProfNode *node, unsigned phases) {
    ProfCell sum = {0};
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        const ProfCell *cell = &node->cell[p];
        if (!counts(phases, p)) continue;
        sum.count += cell->count;
        for (int c = 0; c < PROF_COSTS; c++) {
            sum.costs[c] += cell->costs[c];
            sum.main_costs[c] += cell->main_costs[c];
            sum.covered_costs[c] += cell->covered_costs[c];
        }
        sum.recorded_units += cell->recorded_units;
        sum.main_recorded_units += cell->main_recorded_units;
        sum.plain_ns += cell->plain_ns;
        sum.thread_ns += cell->thread_ns;
        sum.main_ns += cell->main_ns;
        sum.intervals += cell->intervals;
        sum.kernels += cell->kernels;
        sum.allocations += cell->allocations;
        sum.allocated_bytes += cell->allocated_bytes;
        sum.released_bytes += cell->released_bytes;
        sum.device_ns += cell->device_ns;
        sum.bound_ns += cell->bound_ns;
        sum.wall.cpu_ns += cell->wall.cpu_ns;
        sum.wall.gpu_ns += cell->wall.gpu_ns;
        sum.wall.both_ns += cell->wall.both_ns;
    }
    return sum;
}

// Where time of a category goes, as scopes split it.
typedef struct Moves {
    uint64_t of_threads[HOST_TRACE_CATEGORIES][HOST_TRACE_CATEGORIES];
    uint64_t of_devices[HOST_TRACE_CATEGORIES][HOST_TRACE_CATEGORIES];
} Moves;

static void share_time(int64_t ns, const uint64_t *weight, int category, int64_t *sum, uint64_t *moved) {
    int64_t part[HOST_TRACE_CATEGORIES];
    prof_share(ns, weight, HOST_TRACE_CATEGORIES, category, part);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        sum[c] += part[c];
        if (moved != NULL) moved[c] += (uint64_t)part[c];
    }
}

static void add_bound(const ProfNode *node, int64_t ns, ProfFigures *f) {
    int64_t part[HOST_TRACE_CATEGORIES] = {0};
    share_time(ns, node->split, node->category, part, NULL);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        ProfBound bound = c == HOST_TRACE_COMMUNICATION ? PROF_BOUND_COMMUNICATION
                          : c == HOST_TRACE_SIMULATION  ? PROF_BOUND_SIMULATION
                                                        : PROF_BOUND_HOST;
        f->bound_ns[bound] += part[c];
    }
}

// What is done within recorded stretches is part of their excess; what begins and ends loops is not.
static void add_costs(const ProfNode *node, int32_t index, const ProfCell *cell, ProfFigures *f) {
    if (node->loop >= 0 && node->loop != index) return;
    for (int c = 0; c < PROF_COSTS; c++) {
        f->costs[c] += cell->costs[c];
        f->main_costs[c] += cell->main_costs[c];
        f->covered_costs[c] += cell->covered_costs[c];
    }
}

static void add_excess(ProfExcessSum *sum, const ProfExcess *excess, int64_t units) {
    double half_ns = 0.5 * (excess->ns.high - excess->ns.low) * (double)units;
    sum->units += units;
    sum->ns += excess->ns.value * (double)units;
    sum->half_square += half_ns * half_ns;
}

static void add_node(const ProfAnalysis *a, int32_t index, unsigned phases, ProfFigures *f, Moves *moves) {
    const ProfNode *node = &a->nodes[index];
    ProfCell cell = cell_of(node, phases);
    f->thread_ns += cell.thread_ns;
    f->main_ns += cell.main_ns;
    f->kernels += cell.kernels;
    if (node->is_wait) {
        f->waits += cell.count;
        f->wait_ns += cell.thread_ns;
    }
    add_costs(node, index, &cell, f);
    if (index == PROF_NODE_LOST) f->lost_ns += cell.thread_ns;
    if (!node->is_leaf && index != PROF_NODE_LOST && node->category != HOST_TRACE_IDLE) {
        f->outside_ns += cell.thread_ns;
        f->outside_main_ns += cell.main_ns;
    }
    if (node->category == PROF_NO_CATEGORY) {
        f->category_thread_ns[NONE] += cell.thread_ns;
        f->category_device_ns[NONE] += cell.device_ns;
        return;
    }
    f->layer_ns[node->layer] += cell.thread_ns;
    int c = node->category;
    share_time(cell.thread_ns, node->split, c, f->category_thread_ns, moves->of_threads[c]);
    share_time(cell.device_ns, node->split, c, f->category_device_ns, moves->of_devices[c]);
    add_bound(node, cell.bound_ns, f);
}

// The wall clock knows categories only: they are shared out as the time that was spent in them.
static void add_walls(const ProfAnalysis *a, unsigned phases, const Moves *moves, ProfFigures *f) {
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        ProfWall wall = {0};
        for (int p = 0; p < HOST_TRACE_PHASES; p++) {
            if (!counts(phases, p)) continue;
            wall.cpu_ns += a->category[p][c].cpu_ns;
            wall.gpu_ns += a->category[p][c].gpu_ns;
            wall.both_ns += a->category[p][c].both_ns;
        }
        share_time(wall.cpu_ns, moves->of_threads[c], c, f->category_cpu_ns, NULL);
        share_time(wall.both_ns, moves->of_threads[c], c, f->category_both_ns, NULL);
        share_time(wall.gpu_ns, moves->of_devices[c], c, f->category_gpu_ns, NULL);
    }
}

// Time in which intervals of a set of categories ran: to all of them alike.
static void add_sets(const int64_t *ns_of_set, const Moves *moves, int64_t *by_category) {
    for (int set = 0; set < PROF_CATEGORY_SETS; set++) {
        uint64_t weight[HOST_TRACE_CATEGORIES + 1];
        int64_t part[HOST_TRACE_CATEGORIES + 1];
        for (int c = 0; c <= HOST_TRACE_CATEGORIES; c++)
            weight[c] = set >> c & 1;
        prof_share(ns_of_set[set], weight, HOST_TRACE_CATEGORIES + 1, NONE, part);
        by_category[NONE] += part[NONE];
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
            share_time(part[c], moves->of_devices[c], c, by_category, NULL);
    }
}

static void add_device_bound(const ProfAnalysis *a, unsigned phases, const Moves *moves, ProfFigures *f) {
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        if (!counts(phases, p)) continue;
        f->wall_ns += a->phase_ns[p];
        f->bound_ns[PROF_BOUND_IDLE] += a->idle_ns[p];
        add_sets(a->gpu_bound_ns[p], moves, f->gpu_bound_ns);
        add_sets(a->overlapped_ns[p], moves, f->overlapped_ns);
    }
    for (int c = 0; c <= HOST_TRACE_CATEGORIES; c++) {
        f->bound_ns[PROF_BOUND_GPU] += f->gpu_bound_ns[c];
        f->bound_ns[PROF_BOUND_OVERLAPPED] += f->overlapped_ns[c];
    }
}

static ProfFigures figures_of(const ProfAnalysis *a, unsigned phases) {
    static const Moves no_moves;
    ProfFigures f = {.threads = a->threads,
                     .queues = a->queues,
                     .intervals = a->intervals,
                     .unknown_launches = a->unknown_launches,
                     .device_busy_ns = a->device_busy_ns,
                     .device_sum_ns = a->device_sum_ns,
                     .device_span_ns = a->device_span_ns,
                     .fill_ns = a->fill_ns,
                     .fill_of_ns = a->fill_of_ns,
                     .gaps = a->gaps,
                     .events = a->events,
                     .dropped = a->dropped,
                     .dropped_intervals = a->dropped_intervals,
                     .unmatched_ends = a->unmatched_ends,
                     .too_deep = a->too_deep,
                     .kernel_busy_ns = a->kernel_busy_ns,
                     .monitor_samples = a->monitor_samples,
                     .monitor_percent = a->monitor_percent,
                     .memory_peak_bytes = a->memory_peak_bytes,
                     .overhead_ns = a->overhead_ns,
                     .pool_peak_bytes = a->pool_peak_bytes,
                     .ids = a->id_count,
                     .launches_beyond_ids = a->launches_beyond_ids,
                     .reader_ns = a->reader_ns};
    memcpy(f.phase_ns, a->phase_ns, sizeof f.phase_ns);
    memcpy(f.work_ns, a->work_ns, sizeof f.work_ns);
    memcpy(f.gap_ns, a->gap_ns, sizeof f.gap_ns);
    memcpy(f.transitions, a->transitions, sizeof f.transitions);
    memcpy(f.memory, a->memory, sizeof f.memory);
    memcpy(f.pools, a->pools, sizeof f.pools);
    Moves moves = no_moves;
    for (int32_t i = 0; i < a->node_count; i++)
        add_node(a, i, phases, &f, &moves);
    add_walls(a, phases, &moves, &f);
    add_device_bound(a, phases, &moves, &f);
    return f;
}

static void add_figures(ProfFigures *to, const ProfFigures *from) {
    _Static_assert(sizeof *to % sizeof(int64_t) == 0, "int64_t only");
    int64_t sum[sizeof *to / sizeof(int64_t)], more[sizeof *to / sizeof(int64_t)];
    memcpy(sum, to, sizeof *to);
    memcpy(more, from, sizeof *from);
    for (size_t i = 0; i < sizeof sum / sizeof sum[0]; i++)
        sum[i] += more[i];
    int64_t of_one = to->pool_peak_bytes > from->pool_peak_bytes ? to->pool_peak_bytes : from->pool_peak_bytes;
    memcpy(to, sum, sizeof *to);
    to->pool_peak_bytes = of_one;
}

// ---- scopes --------------------------------------------------------------------------------------------------------

static int32_t add_scope(ProfSummary *s, const ProfAnalysis *a, int32_t index, int32_t parent) {
    const ProfNode *node = &a->nodes[index];
    const char *name = prof_node_name(a, index);
    HostHash hash = host_hash_start();
    host_hash_add(&hash, &parent, sizeof parent);
    host_hash_add(&hash, &node->category, 1);
    host_hash_add(&hash, &node->layer, 1);
    host_hash_add(&hash, name, strlen(name));
    int32_t at = prof_table_get(&s->table, hash.state);
    if (at >= 0) return at;
    if (s->scope_count == s->scope_capacity) {
        int32_t capacity = s->scope_capacity > 0 ? 2 * s->scope_capacity : 64;
        ProfScope *scopes = realloc(s->scopes, (size_t)capacity * sizeof *scopes);
        if (scopes == NULL) return -1;
        s->scopes = scopes;
        s->scope_capacity = capacity;
    }
    at = s->scope_count;
    if (!prof_table_put(&s->table, hash.state, at)) return -1;
    s->scope_count++;
    ProfScope *scope = &s->scopes[at];
    memset(scope, 0, sizeof *scope);
    scope->parent = parent;
    scope->depth = parent < 0 ? 0 : s->scopes[parent].depth + 1;
    scope->category = node->category;
    scope->layer = node->layer;
    scope->is_leaf = true;
    scope->loop = -1;
    strncpy(scope->name, name, sizeof scope->name - 1);
    return at;
}

// Weights are of one trace: processors' ticks of its host, or nanoseconds. What traces have in common is the time.
static void add_split(const ProfNode *node, int64_t thread_ns, uint64_t *split) {
    int64_t part[HOST_TRACE_CATEGORIES + 1]; // the last: all of it, where the scope says nothing
    uint64_t weight[HOST_TRACE_CATEGORIES + 1] = {0};
    memcpy(weight, node->split, sizeof node->split);
    prof_share(thread_ns, weight, HOST_TRACE_CATEGORIES + 1, NONE, part);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        split[c] += (uint64_t)part[c];
}

static Status add_scopes(ProfSummary *s, const ProfAnalysis *a) {
    int32_t *scope_of = malloc((size_t)a->node_count * sizeof *scope_of);
    if (scope_of == NULL) return host_fail(STATUS_MEMORY, "no memory for the scopes of a report");
    for (int32_t i = 0; i < a->node_count; i++) {
        const ProfNode *node = &a->nodes[i];
        int32_t parent = node->parent > PROF_NODE_UNKNOWN ? scope_of[node->parent] : -1;
        scope_of[i] = add_scope(s, a, i, parent);
        if (scope_of[i] < 0) {
            free(scope_of);
            return host_fail(STATUS_MEMORY, "no memory for the scopes of a report");
        }
        ProfScope *scope = &s->scopes[scope_of[i]];
        ProfCell cell = cell_of(node, s->phases);
        scope->is_leaf = scope->is_leaf && node->is_leaf;
        scope->count += cell.count;
        for (int c = 0; c < PROF_COSTS; c++)
            scope->costs[c] += cell.costs[c];
        if (node->loop >= 0) scope->loop = scope_of[node->loop];
        scope->plain_ns += cell.plain_ns;
        if (node->loop == i) add_excess(&scope->excess, &node->excess, cell.recorded_units);
        scope->thread_ns += cell.thread_ns;
        scope->main_ns += cell.main_ns;
        scope->intervals += cell.intervals;
        scope->kernels += cell.kernels;
        scope->allocations += cell.allocations;
        scope->allocated_bytes += cell.allocated_bytes;
        scope->released_bytes += cell.released_bytes;
        scope->device_ns += cell.device_ns;
        scope->wall.cpu_ns += cell.wall.cpu_ns;
        scope->wall.gpu_ns += cell.wall.gpu_ns;
        scope->wall.both_ns += cell.wall.both_ns;
        add_split(node, cell.thread_ns, scope->split);
    }
    free(scope_of);
    return STATUS_OK;
}

Status prof_summary_add(ProfSummary *s, const ProfAnalysis *a) {
    ProfWorker *workers = realloc(s->workers, ((size_t)s->worker_count + 1) * sizeof *workers);
    if (workers == NULL) return host_fail(STATUS_MEMORY, "no memory for the workers of a report");
    s->workers = workers;
    ProfWorker *worker = &workers[s->worker_count++];
    worker->process = a->process;
    worker->damage = a->damage;
    worker->figures = figures_of(a, s->phases);
    worker->ids = malloc(((size_t)a->id_count + 1) * sizeof *worker->ids);
    if (worker->ids == NULL) return host_fail(STATUS_MEMORY, "no memory for the ids of a report");
    if (a->id_count > 0) memcpy(worker->ids, a->ids, (size_t)a->id_count * sizeof *worker->ids);
    worker->excess = (ProfExcessSum){.ns = 0.0};
    for (int32_t i = 0; i < a->node_count; i++) {
        if (a->nodes[i].loop == i)
            add_excess(&worker->excess, &a->nodes[i].excess, cell_of(&a->nodes[i], s->phases).main_recorded_units);
    }
    add_figures(&s->total, &worker->figures);
    s->excess.ns += worker->excess.ns;
    s->excess.half_square += worker->excess.half_square;
    s->excess.units += worker->excess.units;
    return add_scopes(s, a);
}

void prof_summary_finish(ProfSummary *s) {
    static const ProfCostClass entries[] = {PROF_COST_SCOPE, PROF_COST_JOIN, PROF_COST_SCRIPT, PROF_COST_CALL};
    for (int32_t i = 0; i < s->scope_count; i++) {
        s->scopes[i].within_ns = s->scopes[i].thread_ns;
        for (size_t k = 0; k < sizeof entries / sizeof entries[0]; k++)
            s->scopes[i].entries += s->scopes[i].costs[entries[k]];
    }
    for (int32_t i = s->scope_count - 1; i >= 0; i--) {
        if (s->scopes[i].parent < 0) continue;
        s->scopes[s->scopes[i].parent].within_ns += s->scopes[i].within_ns;
        for (int c = 0; c < PROF_COSTS; c++)
            s->scopes[s->scopes[i].parent].costs_within[c] += s->scopes[i].costs[c];
    }
}

void prof_summary_free(ProfSummary *s) {
    for (int32_t i = 0; i < s->worker_count; i++)
        free(s->workers[i].ids);
    free(s->workers);
    free(s->scopes);
    prof_table_free(&s->table);
    memset(s, 0, sizeof *s);
}

int64_t prof_figures_whole_ns(const ProfFigures *f) {
    int64_t sum_ns = 0;
    for (int p = 0; p < HOST_TRACE_PHASES; p++)
        sum_ns += f->phase_ns[p];
    return sum_ns;
}

double prof_summary_bound(const ProfSummary *s, ProfBound bound, double *deviation) {
    double sum = 0.0, square = 0.0, n = (double)s->worker_count;
    for (int32_t i = 0; i < s->worker_count; i++) {
        const ProfFigures *f = &s->workers[i].figures;
        double share = f->wall_ns > 0 ? (double)f->bound_ns[bound] / (double)f->wall_ns : 0.0;
        sum += share;
        square += share * share;
    }
    double mean = n > 0.0 ? sum / n : 0.0, variance = n > 1.0 ? (square - n * mean * mean) / (n - 1.0) : 0.0;
    *deviation = sqrt(variance > 0.0 ? variance : 0.0);
    return mean;
}

const char *prof_bound_name(ProfBound bound) {
    static const char *const names[] = {"GPU-bound",        "overlapped", "communication-bound",
                                        "simulation-bound", "host-bound", "idle"};
    _Static_assert(sizeof names / sizeof names[0] == PROF_BOUNDS, "a name for each class");
    return names[bound];
}

const char *prof_gap_name(ProfGap gap) {
    static const char *const names[] = {"launch latency", "synchronisation", "communication", "host", "none ready"};
    _Static_assert(sizeof names / sizeof names[0] == PROF_GAPS, "a name for each cause");
    return names[gap];
}

const char *prof_memory_name(ProfMemory memory) {
    static const char *const names[] = {"device", "managed", "pinned", "other"};
    _Static_assert(sizeof names / sizeof names[0] == PROF_MEMORIES, "a name for each kind");
    return names[memory];
}

const char *prof_category_name(int category) {
    return category < HOST_TRACE_CATEGORIES ? host_trace_category_name((HostTraceCategory)category) : "none";
}
