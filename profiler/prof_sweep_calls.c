// What is known of calls of a device's interface by their numbers: waits within them, memory, other tools' ids.
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_sweep.h"

static ProfCell *cell(const Sweep *s, int32_t node) { return &s->a->nodes[node].cell[s->phase]; }

// ---- waits ---------------------------------------------------------------------------------------------------------

static void find_first_end(Sweep *s) {
    int streams = prof_reader_stream_count(s->reader);
    s->wait_end_ns = INT64_MAX;
    for (int i = 0; i < streams && s->waiting > 0; i++) {
        const SweepThread *t = &s->threads[i];
        if (t->is_waiting && t->wait_end_ns < s->wait_end_ns) s->wait_end_ns = t->wait_end_ns;
    }
}

void prof_sweep_wait(Sweep *s, const ProfEvent *event) {
    const SweepLaunch *call = prof_sweep_launched(s, event->correlation);
    if (call == NULL) return;
    SweepThread *t = &s->threads[call->thread];
    if (t->is_waiting || t->node != call->call || t->depth != call->depth) return; // the call is over
    int64_t end_ns = event->time_ns + event->duration_ns;
    int32_t node = prof_sweep_child(s, t->node, event->name);
    if (node == t->node) return; // no memory
    prof_sweep_switch(s, call->thread, node);
    s->a->nodes[node].is_wait = true;
    cell(s, node)->count++;
    t->is_waiting = true;
    t->wait_end_ns = end_ns;
    if (s->waiting++ == 0 || end_ns < s->wait_end_ns) s->wait_end_ns = end_ns;
}

static void leave(Sweep *s, int thread) {
    SweepThread *t = &s->threads[thread];
    t->is_waiting = false;
    s->waiting--;
    prof_sweep_switch(s, thread, t->depth > 0 ? t->stack[t->depth - 1] : PROF_NODE_OUTSIDE);
}

void prof_sweep_end_wait(Sweep *s, int thread) {
    if (!s->threads[thread].is_waiting) return;
    leave(s, thread);
    find_first_end(s);
}

void prof_sweep_end_waits(Sweep *s, int64_t at_ns) {
    int streams = prof_reader_stream_count(s->reader);
    for (int i = 0; i < streams && s->waiting > 0; i++) {
        if (s->threads[i].is_waiting && s->threads[i].wait_end_ns <= at_ns) leave(s, i);
    }
    find_first_end(s);
}

// ---- memory --------------------------------------------------------------------------------------------------------

static void take_pool(ProfAnalysis *a, const ProfEvent *event) {
    a->pools[event->change]++;
    if ((int64_t)event->count > a->pool_peak_bytes) a->pool_peak_bytes = (int64_t)event->count;
}

// A release gives back no more than is held.
static void take_change(ProfMemorySum *memory, const ProfEvent *event) {
    int64_t bytes = (int64_t)event->count;
    if (event->kind == PROF_EVENT_RELEASE) {
        memory->releases++;
        memory->held_bytes -= bytes < memory->held_bytes ? bytes : memory->held_bytes;
        return;
    }
    memory->allocations++;
    prof_sweep_add(&memory->allocated_bytes, event->count);
    memory->held_bytes = bytes < INT64_MAX - memory->held_bytes ? memory->held_bytes + bytes : INT64_MAX;
    if (memory->held_bytes > memory->peak_bytes) memory->peak_bytes = memory->held_bytes;
}

void prof_sweep_memory(Sweep *s, const ProfEvent *event) {
    if (event->kind == PROF_EVENT_POOL) {
        take_pool(s->a, event);
        return;
    }
    take_change(&s->a->memory[event->memory], event);
    if (event->memory != PROF_MEMORY_DEVICE && event->memory != PROF_MEMORY_MANAGED) return;
    const SweepLaunch *call = prof_sweep_launched(s, event->correlation);
    ProfCell *of = cell(s, call != NULL ? call->node : PROF_NODE_UNKNOWN);
    if (event->kind == PROF_EVENT_RELEASE) {
        prof_sweep_add(&of->released_bytes, event->count);
    } else {
        of->allocations++;
        prof_sweep_add(&of->allocated_bytes, event->count);
    }
}

// ---- other tools' ids ----------------------------------------------------------------------------------------------

// The index of an id; -1: there is no room.
static int32_t id_index(Sweep *s, const ProfEvent *event) {
    ProfAnalysis *a = s->a;
    uint64_t key = event->count ^ (uint64_t)event->id_kind << 56; // where two fall together, they are told apart below
    for (;; key = key * UINT64_C(6364136223846793005) + 1) {
        int32_t index = prof_table_get(&s->id_of, key);
        if (index < 0) break;
        if (a->ids[index].id == event->count && a->ids[index].kind == event->id_kind) return index;
    }
    if (a->id_count == PROF_IDS_MAX) return -1;
    if (a->id_count == s->id_capacity) {
        int32_t capacity = s->id_capacity > 0 ? 2 * s->id_capacity : 64;
        ProfId *ids = realloc(a->ids, (size_t)capacity * sizeof *ids);
        if (ids == NULL) return -1;
        a->ids = ids;
        s->id_capacity = capacity;
    }
    if (!prof_table_put(&s->id_of, key, a->id_count)) return -1;
    a->ids[a->id_count] = (ProfId){.kind = event->id_kind, .id = event->count};
    return a->id_count++;
}

// Of several ids of one launch, the first counts.
void prof_sweep_id(Sweep *s, const ProfEvent *event) {
    SweepLaunch *launch = prof_sweep_launched(s, event->correlation);
    if (launch == NULL || launch->id >= 0) return;
    launch->id = id_index(s, event);
    if (launch->id >= 0) {
        s->a->ids[launch->id].launches++;
    } else {
        s->a->launches_beyond_ids++;
    }
}
