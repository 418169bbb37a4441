// The sweep over a trace: streams are merged by time, and each event changes what is active.
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_sweep.h"

// The next event of each stream, a heap of those that have one: the earliest first, then the lowest rank.
typedef struct Merge {
    ProfEvent *events; // [streams]
    int *rank;         // [streams] threads before device queues, then by index
    int *heap;         // [streams] indices of streams
    int count;
} Merge;

static bool comes_first(const Merge *m, int a, int b) {
    int64_t x = m->events[a].time_ns, y = m->events[b].time_ns;
    return x != y ? x < y : m->rank[a] < m->rank[b];
}

static void sift(Merge *m, int at) {
    for (;;) {
        int child = 2 * at + 1;
        if (child >= m->count) return;
        if (child + 1 < m->count && comes_first(m, m->heap[child + 1], m->heap[child])) child++;
        if (!comes_first(m, m->heap[child], m->heap[at])) return;
        int kept = m->heap[at];
        m->heap[at] = m->heap[child];
        m->heap[child] = kept;
        at = child;
    }
}

static Status start_merge(Merge *m, ProfReader *reader) {
    int streams = prof_reader_stream_count(reader), threads = 0;
    size_t count = streams > 0 ? (size_t)streams : 1;
    m->events = calloc(count, sizeof *m->events);
    m->rank = calloc(count, sizeof *m->rank);
    m->heap = calloc(count, sizeof *m->heap);
    if (m->events == NULL || m->rank == NULL || m->heap == NULL) {
        return host_fail(STATUS_MEMORY, "no memory for %d streams", streams);
    }
    for (int i = 0; i < streams; i++)
        threads += prof_reader_stream(reader, i)->kind == PROF_STREAM_THREAD;
    for (int i = 0, thread = 0; i < streams; i++) {
        bool is_thread = prof_reader_stream(reader, i)->kind == PROF_STREAM_THREAD;
        m->rank[i] = is_thread ? thread : threads + i - thread;
        thread += is_thread;
        if (prof_reader_next(reader, i, &m->events[i])) m->heap[m->count++] = i;
    }
    for (int i = m->count / 2 - 1; i >= 0; i--)
        sift(m, i);
    return STATUS_OK;
}

static void free_merge(Merge *m) {
    free(m->events);
    free(m->rank);
    free(m->heap);
}

// ---- events --------------------------------------------------------------------------------------------------------

// What entering a scope costs, by who opens it.
static ProfCostClass entry_class(const ProfNode *node) {
    if (node->layer == PROF_LAYER_API) return PROF_COST_CALL;
    return node->layer == PROF_LAYER_SCRIPT ? PROF_COST_SCRIPT : PROF_COST_SCOPE;
}

static void count_cost(Sweep *s, int thread, int32_t node, ProfCostClass class, uint64_t count) {
    ProfCell *cell = &s->a->nodes[node].cell[s->phase];
    prof_sweep_add(&cell->costs[class], count);
    if (thread != s->main) return;
    prof_sweep_add(&cell->main_costs[class], count);
    if (s->running_count > 0) prof_sweep_add(&cell->covered_costs[class], count);
}

static void enter(Sweep *s, int thread, int32_t node, bool counts) {
    SweepThread *t = &s->threads[thread];
    if (t->depth == PROF_DEPTH_MAX) {
        t->over++;
        s->a->too_deep++;
        return;
    }
    t->stack[t->depth++] = node;
    prof_sweep_switch(s, thread, node);
    s->a->nodes[node].cell[s->phase].count += counts;
    count_cost(s, thread, node, counts ? entry_class(&s->a->nodes[node]) : PROF_COST_JOIN, 1);
}

static void leave(Sweep *s, int thread) {
    SweepThread *t = &s->threads[thread];
    if (t->over > 0) {
        t->over--;
    } else if (t->depth == 0) {
        s->a->unmatched_ends++;
        prof_sweep_switch(s, thread, t->node);
    } else {
        t->depth--;
        prof_sweep_switch(s, thread, t->depth > 0 ? t->stack[t->depth - 1] : PROF_NODE_OUTSIDE);
    }
}

// The scope of another thread that is joined: its innermost one of that name. What stands alone where there is none.
static int32_t joined_node(Sweep *s, const ProfEvent *event) {
    int32_t index = s->index_of[event->stream] - 1;
    const SweepThread *of = index >= 0 && s->threads[index].is_thread ? &s->threads[index] : NULL;
    for (uint32_t i = of != NULL ? of->depth : 0; i-- > 0;) {
        if (s->a->nodes[of->stack[i]].name == event->name) return of->stack[i];
    }
    return prof_sweep_child(s, PROF_NODE_OUTSIDE, event->name);
}

static void resync(Sweep *s, int thread, const ProfEvent *event) {
    SweepThread *t = &s->threads[thread];
    int32_t node = PROF_NODE_OUTSIDE;
    t->over = 0;
    t->depth = event->depth;
    for (uint32_t i = 0; i < event->depth; i++)
        t->stack[i] = node = prof_sweep_child(s, node, event->stack[i]);
    prof_sweep_switch(s, thread, node);
}

SweepLaunch *prof_sweep_launch(const Sweep *s, uint64_t correlation) {
    return &s->launches[correlation & (s->launch_size - 1)];
}

SweepLaunch *prof_sweep_launched(const Sweep *s, uint64_t correlation) {
    SweepLaunch *launch = prof_sweep_launch(s, correlation);
    return launch->is_used && launch->correlation == correlation ? launch : NULL;
}

static void grow_launches(Sweep *s) {
    SweepLaunch *old = s->launches, *grown = calloc((size_t)2 * s->launch_size, sizeof *grown);
    if (grown == NULL) {
        if (s->status == STATUS_OK) s->status = host_fail(STATUS_MEMORY, "no memory for the launches of a trace");
        return;
    }
    s->launches = grown;
    s->launch_size *= 2;
    for (uint32_t i = 0; i < s->launch_size / 2; i++) {
        if (old[i].is_used) *prof_sweep_launch(s, old[i].correlation) = old[i];
    }
    free(old);
}

// What the thread is in, calls of a device's interface aside unless there is nothing else.
static int32_t calling_node(const Sweep *s, int thread) {
    int32_t node = s->threads[thread].node;
    while (s->a->nodes[node].layer == PROF_LAYER_API && s->a->nodes[node].parent > PROF_NODE_UNKNOWN)
        node = s->a->nodes[node].parent;
    return node;
}

// Of a launch, or another call whose number is told.
static void launch(Sweep *s, int thread, const ProfEvent *event) {
    SweepLaunch *l = prof_sweep_launch(s, event->correlation);
    while (l->is_used && l->correlation != event->correlation && s->launch_size < PROF_LAUNCHES_MAX &&
           s->status == STATUS_OK) {
        grow_launches(s);
        l = prof_sweep_launch(s, event->correlation);
    }
    count_cost(s, thread, s->threads[thread].node, PROF_COST_RECORD, 1);
    l->correlation = event->correlation;
    l->time_ns = s->now_ns;
    l->node = calling_node(s, thread);
    l->thread = thread;
    l->call = s->threads[thread].node;
    l->depth = s->threads[thread].depth;
    l->id = SWEEP_NO_ID;
    l->is_launch = event->kind == PROF_EVENT_LAUNCH;
    l->has_worked = false;
    l->is_used = true;
    memcpy(l->cause_ns, s->cause_ns, sizeof l->cause_ns);
}

static void stretch(Sweep *s, int thread, const ProfEvent *event) {
    int32_t node = s->threads[thread].node;
    if (node <= PROF_NODE_UNKNOWN) return;
    ProfCell *cell = &s->a->nodes[node].cell[s->phase];
    count_cost(s, thread, node, PROF_COST_STRETCH, 1);
    count_cost(s, thread, node, PROF_COST_PAUSE, event->pauses);
    s->a->nodes[node].is_loop = true;
    if (event->is_plain) {
        prof_sweep_add(&cell->plain_ns, (uint64_t)event->duration_ns);
    } else {
        prof_sweep_add(&cell->recorded_units, event->count);
        if (thread == s->main) prof_sweep_add(&cell->main_recorded_units, event->count);
    }
    if (event->pauses > 0 && event->processor_ns == 0) return; // not known
    if (!prof_stretches_add(&s->stretches[node], event->is_plain, event->count, event->processor_ns) &&
        s->status == STATUS_OK) {
        s->status = host_fail(STATUS_MEMORY, "no memory for the stretches of loops");
    }
}

static void split(Sweep *s, int thread, const ProfEvent *event) {
    int32_t node = s->threads[thread].node;
    if (node <= PROF_NODE_UNKNOWN) return;
    count_cost(s, thread, node, PROF_COST_SPLIT, 1);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        s->a->nodes[node].split[c] += event->weight[c];
}

static void take_thread_event(Sweep *s, int thread, const ProfEvent *event) {
    SweepThread *t = &s->threads[thread];
    prof_sweep_end_wait(s, thread);
    switch (event->kind) {
    case PROF_EVENT_END:
        leave(s, thread);
        break;
    case PROF_EVENT_BEGIN:
        enter(s, thread, prof_sweep_child(s, t->node, event->name), true);
        break;
    case PROF_EVENT_JOIN:
        enter(s, thread, joined_node(s, event), false);
        break;
    case PROF_EVENT_LAUNCH:
    case PROF_EVENT_CALL:
        prof_sweep_switch(s, thread, t->node);
        launch(s, thread, event);
        break;
    case PROF_EVENT_SPLIT:
        prof_sweep_switch(s, thread, t->node);
        split(s, thread, event);
        break;
    case PROF_EVENT_STRETCH:
        prof_sweep_switch(s, thread, t->node);
        stretch(s, thread, event);
        break;
    case PROF_EVENT_CAPTURE:
        prof_sweep_switch(s, thread, t->node);
        if (!prof_table_put(&s->captured, event->node, calling_node(s, thread)) && s->status == STATUS_OK) {
            s->status = host_fail(STATUS_MEMORY, "no memory for captured graphs");
        }
        break;
    case PROF_EVENT_LOST:
        t->depth = t->over = 0;
        prof_sweep_switch(s, thread, PROF_NODE_LOST);
        break;
    case PROF_EVENT_RESYNC:
        resync(s, thread, event);
        break;
    default:
        prof_sweep_switch(s, thread, t->node);
        break;
    }
}

// What says something of the process, or of its devices.
static void take_note(Sweep *s, int stream, const ProfEvent *event) {
    ProfAnalysis *a = s->a;
    switch (event->kind) {
    case PROF_EVENT_PHASE:
        prof_sweep_account(s);
        s->phase = event->phase;
        break;
    case PROF_EVENT_DROPPED:
        prof_sweep_add(&a->dropped, event->count);
        if (!s->threads[stream].is_thread) prof_sweep_add(&a->dropped_intervals, event->count);
        break;
    case PROF_EVENT_BUSY:
        a->monitor_samples++;
        a->monitor_percent += (int64_t)event->count;
        break;
    case PROF_EVENT_MEMORY:
        if (event->count > (uint64_t)a->memory_peak_bytes && event->count <= INT64_MAX)
            a->memory_peak_bytes = (int64_t)event->count;
        break;
    case PROF_EVENT_OVERHEAD:
        prof_sweep_add(&a->overhead_ns, event->count);
        break;
    case PROF_EVENT_READER:
        prof_sweep_add(&a->reader_ns, (uint64_t)event->processor_ns);
        break;
    case PROF_EVENT_INTERVAL:
        prof_sweep_run(s, event, prof_reader_stream(s->reader, stream));
        break;
    case PROF_EVENT_WAIT:
        prof_sweep_wait(s, event);
        break;
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_RELEASE:
    case PROF_EVENT_POOL:
        prof_sweep_memory(s, event);
        break;
    case PROF_EVENT_ID:
        prof_sweep_id(s, event);
        break;
    default:
        break;
    }
}

static void take_event(Sweep *s, int stream, const ProfEvent *event) {
    prof_sweep_pass(s, event->time_ns > s->start_ns ? event->time_ns : s->start_ns);
    s->a->events++;
    take_note(s, stream, event);
    if (s->threads[stream].is_thread) take_thread_event(s, stream, event);
}

static Status sweep_events(Sweep *s) {
    Merge merge = {0};
    Status status = start_merge(&merge, s->reader);
    while (status == STATUS_OK && merge.count > 0) {
        int stream = merge.heap[0];
        take_event(s, stream, &merge.events[stream]);
        if (!prof_reader_next(s->reader, stream, &merge.events[stream])) merge.heap[0] = merge.heap[--merge.count];
        sift(&merge, 0);
        status = s->status;
    }
    free_merge(&merge);
    return status;
}

// ---- start and end -------------------------------------------------------------------------------------------------

static Status copy_names(Sweep *s) {
    uint32_t count = prof_reader_name_count(s->reader);
    s->a->names = calloc(count > 0 ? count : 1, sizeof *s->a->names);
    if (s->a->names == NULL) return host_fail(STATUS_MEMORY, "no memory for the names of a trace");
    s->a->name_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const ProfName *name = prof_reader_name(s->reader, i);
        if (name != NULL) s->a->names[i] = *name;
    }
    return STATUS_OK;
}

static Status start_threads(Sweep *s) {
    int streams = prof_reader_stream_count(s->reader), first = -1;
    s->threads = calloc(streams > 0 ? (size_t)streams : 1, sizeof *s->threads);
    s->index_of = calloc(PROF_STREAMS_MAX, sizeof *s->index_of);
    s->launches = calloc(PROF_LAUNCHES_MIN, sizeof *s->launches);
    s->launch_size = PROF_LAUNCHES_MIN;
    if (s->threads == NULL || s->index_of == NULL || s->launches == NULL) {
        return host_fail(STATUS_MEMORY, "no memory for %d streams", streams);
    }
    for (int i = 0; i < streams; i++) {
        const ProfStream *stream = prof_reader_stream(s->reader, i);
        s->index_of[stream->id] = i + 1;
        s->a->queues += stream->kind == PROF_STREAM_DEVICE;
        if (stream->kind == PROF_STREAM_DEVICE) continue;
        SweepThread *t = &s->threads[i];
        t->is_thread = true;
        t->since_ns = s->start_ns;
        t->stack = malloc(PROF_DEPTH_MAX * sizeof *t->stack);
        if (t->stack == NULL) return host_fail(STATUS_MEMORY, "no memory for %d streams", streams);
        s->a->threads++;
        if (first < 0) first = i;
        if (stream->is_main && s->main < 0) s->main = i;
    }
    if (s->main < 0) s->main = first;
    if (s->main >= 0) s->threads[s->main].is_seen = true;
    return STATUS_OK;
}

static Status start_sweep(Sweep *s) {
    s->a->process = *prof_reader_process(s->reader);
    s->start_ns = s->now_ns = s->a->process.start_ns;
    if (!prof_reader_end(s->reader, &s->limit_ns)) s->limit_ns = INT64_MAX;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        s->category[c].since_ns = s->start_ns;
    TRY(copy_names(s));
    TRY(prof_sweep_make_roots(s));
    return start_threads(s);
}

static void finish_sweep(Sweep *s) {
    while (s->running_count > 0)
        prof_sweep_pass(s, s->running[0].end_ns);
    while (s->waiting > 0 && s->wait_end_ns <= s->limit_ns)
        prof_sweep_pass(s, s->wait_end_ns);
    if (s->limit_ns != INT64_MAX) prof_sweep_pass(s, s->limit_ns);
    prof_sweep_account(s);
    prof_sweep_find_leaves(s);
    prof_sweep_find_loops(s);
    s->a->wall_ns = s->now_ns - s->start_ns;
    s->a->device_span_ns = s->last_ns - s->first_ns;
    s->a->damage = *prof_reader_damage(s->reader);
}

static void free_sweep(Sweep *s) {
    int streams = s->threads != NULL ? prof_reader_stream_count(s->reader) : 0;
    for (int i = 0; i < streams; i++)
        free(s->threads[i].stack);
    free(s->threads);
    free(s->index_of);
    free(s->launches);
    free(s->running);
    for (int32_t i = 0; i < s->a->node_count; i++)
        prof_stretches_free(&s->stretches[i]);
    free(s->stretches);
    free(s->active);
    free(s->entered);
    prof_table_free(&s->children);
    prof_table_free(&s->captured);
    prof_table_free(&s->id_of);
}

Status prof_analyse(ProfReader *reader, ProfAnalysis *analysis) {
    memset(analysis, 0, sizeof *analysis);
    prof_reader_rewind(reader);
    Sweep sweep = {.reader = reader, .a = analysis, .main = -1};
    Status status = start_sweep(&sweep);
    if (status == STATUS_OK) status = sweep_events(&sweep);
    if (status == STATUS_OK) finish_sweep(&sweep);
    free_sweep(&sweep);
    if (status != STATUS_OK) prof_analysis_free(analysis);
    return status;
}

Status prof_analyse_file(const char *path, ProfAnalysis *analysis) {
    ProfReader *reader = NULL;
    TRY(prof_reader_open(path, &reader));
    Status status = prof_analyse(reader, analysis);
    prof_reader_close(reader);
    return status;
}
