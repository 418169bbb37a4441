// What is known of calls of a device's interface by their numbers: waits within them, memory, other tools' ids.
#include <stdlib.h>
#include <string.h>

#include "host/hash.h"
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

// Where an id is, or can be put: hashes that fall together are hashed on. False: too many do.
static bool find_id(const Sweep *s, const ProfEvent *event, uint64_t *key, int32_t *index) {
    enum { PROBES_MAX = 8 };
    HostHash hash = host_hash_start();
    host_hash_add(&hash, &event->id_kind, sizeof event->id_kind);
    host_hash_add(&hash, &event->count, sizeof event->count);
    for (int i = 0; i < PROBES_MAX; i++) {
        *key = hash.state;
        *index = prof_table_get(&s->id_of, *key);
        if (*index < 0) return true;
        const ProfId *found = &s->a->ids[*index];
        if (found->id == event->count && found->kind == event->id_kind) return true;
        host_hash_add(&hash, &event->count, sizeof event->count);
    }
    return false;
}

static int32_t id_index(Sweep *s, const ProfEvent *event) {
    ProfAnalysis *a = s->a;
    uint64_t key;
    int32_t index;
    if (!find_id(s, event, &key, &index)) return SWEEP_NO_ROOM;
    if (index >= 0) return index;
    if (a->id_count == PROF_IDS_MAX) return SWEEP_NO_ROOM;
    if (a->id_count == s->id_capacity) {
        int32_t capacity = s->id_capacity > 0 ? 2 * s->id_capacity : 64;
        ProfId *ids = realloc(a->ids, (size_t)capacity * sizeof *ids);
        if (ids == NULL) return SWEEP_NO_ROOM;
        a->ids = ids;
        s->id_capacity = capacity;
    }
    if (!prof_table_put(&s->id_of, key, a->id_count)) return SWEEP_NO_ROOM;
    a->ids[a->id_count] = (ProfId){.kind = event->id_kind, .id = event->count};
    return a->id_count++;
}

// Of several ids of one launch, the first counts.
void prof_sweep_id(Sweep *s, const ProfEvent *event) {
    SweepLaunch *launch = prof_sweep_launched(s, event->correlation);
    if (launch != NULL && launch->is_launch && launch->id == SWEEP_NO_ID) launch->id = id_index(s, event);
}

void prof_sweep_work_of_id(Sweep *s, SweepLaunch *launch, int64_t duration_ns) {
    if (launch->id == SWEEP_NO_ID) return;
    bool is_first = !launch->has_worked;
    launch->has_worked = true;
    if (launch->id == SWEEP_NO_ROOM) {
        s->a->launches_beyond_ids += is_first;
        return;
    }
    ProfId *id = &s->a->ids[launch->id];
    id->launches += is_first;
    id->intervals++;
    prof_sweep_add(&id->device_ns, (uint64_t)duration_ns);
}
