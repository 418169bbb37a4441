#include "profiler/prof_intervals.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool prof_intervals_init(ProfIntervals *p, uint32_t first_stream, int64_t start_ns) {
    p->launches = calloc(PROF_LAUNCHES_KNOWN, sizeof *p->launches);
    p->first_stream = first_stream;
    p->start_ns = start_ns;
    return p->launches != NULL;
}

void prof_intervals_free(ProfIntervals *p) {
    free(p->batch);
    free(p->queues);
    free(p->originals);
    free(p->launches);
    prof_table_free(&p->queue_of);
    prof_table_free(&p->name_of);
    prof_table_free(&p->clone_of);
    prof_table_free(&p->held);
    memset(p, 0, sizeof *p);
}

void prof_intervals_launch(ProfIntervals *p, uint64_t correlation, int64_t time_ns) {
    size_t at = correlation & (PROF_LAUNCHES_KNOWN - 1);
    p->launches[at].correlation = correlation;
    p->launches[at].time_ns = time_ns;
}

// Makes room for one more element of `size` bytes.
static bool grow(void **array, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return true;
    size_t wanted = *capacity > 0 ? 2 * *capacity : 256;
    void *grown = realloc(*array, wanted * size);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

void prof_intervals_clone(ProfIntervals *p, uint64_t node, uint64_t original) {
    size_t capacity = (size_t)p->original_capacity;
    void *originals = p->originals;
    // Without memory, the node stands for itself.
    if (!grow(&originals, (size_t)p->original_count, &capacity, sizeof *p->originals)) return;
    p->originals = originals;
    p->original_capacity = (int32_t)capacity;
    p->originals[p->original_count] = original;
    if (prof_table_put(&p->clone_of, node, p->original_count)) p->original_count++;
}

// The node that was captured: clones may be cloned again.
static uint64_t captured_node(const ProfIntervals *p, uint64_t node) {
    enum { CLONES_MAX = 16 };
    for (int i = 0; i < CLONES_MAX; i++) {
        int32_t index = prof_table_get(&p->clone_of, node);
        if (index < 0) break;
        node = p->originals[index];
    }
    return node;
}

void prof_intervals_add(ProfIntervals *p, const ProfInterval *interval) {
    void *batch = p->batch;
    bool has_room = grow(&batch, p->count, &p->capacity, sizeof *p->batch);
    p->batch = batch;
    if (has_room) {
        p->batch[p->count++] = (ProfPlaced){0, *interval};
    } else {
        p->dropped++;
    }
}

const ProfInterval *prof_intervals_first(const ProfIntervals *p) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->batch[i].interval.device != PROF_NO_DEVICE) return &p->batch[i].interval;
    }
    return NULL;
}

// ---- queues and their streams --------------------------------------------------------------------------------------

static int32_t add_queue(ProfIntervals *p, const ProfInterval *of, ProfWriter *writer) {
    uint32_t stream = p->first_stream + (uint32_t)p->queue_count;
    size_t capacity = (size_t)p->queue_capacity;
    void *queues = p->queues;
    bool has_room = stream < PROF_STREAMS_MAX && grow(&queues, (size_t)p->queue_count, &capacity, sizeof *p->queues);
    p->queues = queues;
    p->queue_capacity = (int32_t)capacity;
    if (!has_room) return -1;
    p->queues[p->queue_count] =
        (ProfQueue){.device = of->device, .context = of->context, .queue = of->queue, .stream = stream, .next = -1};
    ProfStream made = {.id = stream, .kind = PROF_STREAM_DEVICE, .os_id = of->queue, .device = of->device};
    made.capacity = of->device < PROF_DEVICES_MAX ? p->capacity_of[of->device] : 0;
    if (of->queue == PROF_QUEUE_OF_CALLS) {
        snprintf(made.name, sizeof made.name, "GPU %u: waits, memory", of->device);
    } else {
        snprintf(made.name, sizeof made.name, "GPU %u stream %u", of->device, of->queue);
    }
    prof_writer_stream(writer, &made);
    return p->queue_count++;
}

// The first stream of the interval's queue; -1: no memory.
static int32_t first_queue(ProfIntervals *p, const ProfInterval *of, ProfWriter *writer) {
    // Contexts and devices are counted from small numbers on; should two queues fall together, they share streams.
    uint64_t key = (uint64_t)of->queue | (uint64_t)(of->context & 0xffff) << 32 | (uint64_t)of->device << 48;
    int32_t index = prof_table_get(&p->queue_of, key);
    if (index >= 0) return index;
    index = add_queue(p, of, writer);
    return index >= 0 && prof_table_put(&p->queue_of, key, index) ? index : -1;
}

// The stream of the queue that the interval can go to, by ascending times; -1: none.
static int32_t place(ProfIntervals *p, const ProfInterval *interval, ProfWriter *writer) {
    int32_t at = first_queue(p, interval, writer);
    for (int count = 1; at >= 0 && interval->begin_ns < p->queues[at].last_ns; count++) {
        int32_t next = p->queues[at].next;
        if (next < 0 && count < PROF_QUEUE_STREAMS_MAX) {
            next = add_queue(p, interval, writer);
            p->queues[at].next = next;
        }
        if (next < 0) break;
        at = next;
    }
    return at;
}

// ---- names ---------------------------------------------------------------------------------------------------------

// A C++ symbol as people write it, where the runtime of C++ is in the process; else as it is.
static void demangle(const char *symbol, char text[PROF_TEXT_MAX]) {
    typedef char *Demangle(const char *, char *, size_t *, int *);
    void *library = strncmp(symbol, "_Z", 2) == 0 ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
    Demangle *function = NULL;
    int failed = 0;
    if (found != NULL) memcpy(&function, &found, sizeof found); // ISO C has no cast from void * to a function
    char *name = function != NULL ? function(symbol, NULL, NULL, &failed) : NULL;
    snprintf(text, PROF_TEXT_MAX, "%s", name != NULL && failed == 0 ? name : symbol);
    free(name);
    if (library != NULL) dlclose(library);
}

static uint32_t name_number(ProfIntervals *p, const char *name, int category, ProfWriter *writer) {
    if (name == NULL) return 0;
    uint64_t key = (uint64_t)(uintptr_t)name;
    int32_t number = prof_table_get(&p->name_of, key);
    if (number >= 0) return (uint32_t)number;
    char text[PROF_TEXT_MAX];
    demangle(name, text);
    uint32_t made = prof_writer_name(writer, category, PROF_LAYER_API, text);
    (void)prof_table_put(&p->name_of, key, (int32_t)made); // without memory it is looked up anew each time
    return made;
}

// ---- a batch -------------------------------------------------------------------------------------------------------

static int compare_begins(const void *a, const void *b) {
    const ProfInterval *x = &((const ProfPlaced *)a)->interval, *y = &((const ProfPlaced *)b)->interval;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int compare_streams(const void *a, const void *b) {
    const ProfPlaced *x = a, *y = b;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return compare_begins(a, b);
}

static void put_interval(ProfIntervals *p, const ProfPlaced *placed, ProfWriter *writer) {
    const ProfInterval *i = &placed->interval;
    int category = i->kind == PROF_EVENT_WAIT ? (int)HOST_TRACE_IDLE : (int)PROF_CATEGORY_ENCLOSING;
    ProfEvent event = {.kind = i->kind,
                       .time_ns = i->begin_ns,
                       .duration_ns = i->end_ns - i->begin_ns,
                       .correlation = i->correlation,
                       .node = i->node != 0 ? captured_node(p, i->node) : 0,
                       .threads = i->threads,
                       .work = i->work,
                       .count = i->count,
                       .name = name_number(p, i->name, category, writer)};
    if (i->kind == PROF_EVENT_ALLOC || i->kind == PROF_EVENT_RELEASE) event.memory = (ProfMemory)i->which;
    if (i->kind == PROF_EVENT_POOL) event.change = (ProfPoolChange)i->which;
    if (i->kind == PROF_EVENT_ID) event.id_kind = i->which;
    prof_writer_put(writer, placed->stream, &event);
}

// Of one that is to be written; false: it is not of this trace.
static bool correct_times(const ProfIntervals *p, ProfInterval *i) {
    size_t at = i->correlation & (PROF_LAUNCHES_KNOWN - 1);
    bool is_known = p->launches[at].correlation == i->correlation;
    if (is_known && i->begin_ns < p->launches[at].time_ns) i->begin_ns = p->launches[at].time_ns;
    if (i->kind == PROF_EVENT_ID && !is_known) return false;
    if (i->end_ns < i->begin_ns) i->end_ns = i->begin_ns;
    return i->end_ns > p->start_ns;
}

// In the order of time.
static void follow_memory(ProfIntervals *p, ProfInterval *i) {
    if (i->kind == PROF_EVENT_ALLOC) (void)prof_table_put(&p->held, i->address, 1);
    if (i->kind != PROF_EVENT_RELEASE) return;
    if (prof_table_get(&p->held, i->address) != 1) {
        i->count = 0;
    } else {
        (void)prof_table_put(&p->held, i->address, 0); // it is there
    }
}

void prof_intervals_write(ProfIntervals *p, ProfWriter *writer) {
    size_t kept = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (p->batch[i].interval.device == PROF_NO_DEVICE) p->batch[i].interval.device = p->device;
        if (correct_times(p, &p->batch[i].interval)) p->batch[kept++] = p->batch[i];
    }
    if (kept > 0) qsort(p->batch, kept, sizeof *p->batch, compare_begins);
    size_t placed = 0;
    for (size_t i = 0; i < kept; i++) {
        int32_t at = place(p, &p->batch[i].interval, writer);
        p->dropped += at < 0;
        if (at < 0) continue;
        follow_memory(p, &p->batch[i].interval);
        p->queues[at].last_ns = p->batch[i].interval.begin_ns;
        p->batch[placed] = p->batch[i];
        p->batch[placed++].stream = p->queues[at].stream;
    }
    // Stream by stream: a block holds events of one.
    if (placed > 0) qsort(p->batch, placed, sizeof *p->batch, compare_streams);
    for (size_t i = 0; i < placed; i++)
        put_interval(p, &p->batch[i], writer);
    p->count = 0;
}
