#include "profiler/prof_cupti.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "host/clock.h"
#include "profiler/prof_cupti_state.h"

// CUPTI gives back a buffer when it is full, or when it is asked to: now and then, so that a kill loses little.
enum { FLUSH_EVERY_NS = 1000000000 };

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, // KERNEL would let kernels run one after the other
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    CUPTI_ACTIVITY_KIND_MEMORY2,
    CUPTI_ACTIVITY_KIND_MEMORY_POOL,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
    // Only where other tools' ids are wanted: they come with the records of calls, which cost each call something.
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,
};
enum { ALL_KINDS = sizeof kinds / sizeof kinds[0], KINDS_OF_IDS = 3 };

static int kind_count(const ProfCupti *c) { return c->takes_ids ? (int)ALL_KINDS : (int)ALL_KINDS - (int)KINDS_OF_IDS; }

// Its functions for buffers and times have no argument for an object.
static ProfCupti the_cupti;

Status prof_cupti_check(const ProfCupti *c, CUptiResult result, const char *function) {
    const char *text = NULL;
    if (result == CUPTI_SUCCESS) return STATUS_OK;
    if (c->calls.cuptiGetResultString(result, &text) != CUPTI_SUCCESS || text == NULL) text = "an unknown error";
    return host_fail(STATUS_DEVICE, "CUPTI refuses: %s: %s", function, text);
}

// ---- what CUPTI calls, on any thread -------------------------------------------------------------------------------

static uint64_t CUPTIAPI now_ns(void) { return (uint64_t)host_now_ns(); }

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records) {
    ProfCupti *c = &the_cupti;
    *buffer = NULL; // CUPTI then drops records, and counts them
    *size = *records = 0;
    for (int i = 0; i < c->buffer_count; i++) {
        int state = PROF_BUFFER_FREE;
        if (!atomic_compare_exchange_strong(&c->buffers[i].state, &state, PROF_BUFFER_GIVEN)) continue;
        *buffer = c->memory + (size_t)i * PROF_CUPTI_BUFFER_BYTES;
        *size = PROF_CUPTI_BUFFER_BYTES;
        return;
    }
}

// NOLINTNEXTLINE(readability-non-const-parameter): CUPTI's type
static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t used) {
    ProfCupti *c = &the_cupti;
    (void)context, (void)stream, (void)size;
    size_t i = (size_t)(buffer - c->memory) / PROF_CUPTI_BUFFER_BYTES;
    c->buffers[i].used = used;
    atomic_store_explicit(&c->buffers[i].state, PROF_BUFFER_FULL, memory_order_release);
}

// ---- the recorder's thread -----------------------------------------------------------------------------------------

static void collect_take(void *self) {
    ProfCupti *c = self;
    int64_t now = host_now_ns();
    if (atomic_load(&c->is_on) && now - c->flushed_ns >= FLUSH_EVERY_NS) {
        c->flushed_ns = now;
        (void)c->calls.cuptiActivityFlushAll(0); // what fails here, fails at the end too
    }
    for (int i = 0; i < PROF_CUPTI_BUFFERS; i++) {
        ProfCuptiBuffer *b = &c->buffers[i];
        if (atomic_load_explicit(&b->state, memory_order_acquire) != PROF_BUFFER_FULL) continue;
        uint8_t *memory = c->memory + (size_t)i * PROF_CUPTI_BUFFER_BYTES;
        prof_cupti_decode(c, memory, b->used);
        memset(memory, 0, b->used);
        atomic_store_explicit(&b->state, PROF_BUFFER_FREE, memory_order_release);
    }
}

static void collect_launch(void *self, uint64_t correlation, int64_t time_ns) {
    prof_intervals_launch(&((ProfCupti *)self)->intervals, correlation, time_ns);
}

static void collect_clone(void *self, uint64_t node, uint64_t original) {
    prof_intervals_clone(&((ProfCupti *)self)->intervals, node, original);
}

static void note(ProfWriter *writer, ProfEventKind kind, uint64_t count) {
    ProfEvent event = {.kind = kind, .time_ns = host_now_ns(), .count = count};
    prof_writer_put(writer, PROF_CUPTI_NOTES_STREAM, &event);
}

static int64_t dropped(const ProfCupti *c) { return atomic_load(&c->dropped) + c->untimed + c->intervals.dropped; }

static void look_at_devices(ProfCupti *c, bool asks) {
    char bus_id[32];
    if (!prof_cupti_devices(c, asks, bus_id)) return;
    c->nvml = prof_nvml_open(bus_id);
    c->has_devices = true;
    c->is_known = false; // of another device, where there was something to note before
}

static void know_device(ProfCupti *c, ProfWriter *writer) {
    ProfStream stream = {.id = PROF_CUPTI_NOTES_STREAM, .kind = PROF_STREAM_DEVICE, .os_id = UINT32_MAX};
    stream.device = c->intervals.device;
    snprintf(stream.name, sizeof stream.name, "GPU %" PRIu32, c->intervals.device);
    prof_writer_stream(writer, &stream);
    c->is_known = true;
}

static void collect_write(void *self, ProfWriter *writer) {
    ProfCupti *c = self;
    int64_t missing = dropped(c);
    if (!c->has_devices && c->intervals.count == 0 && missing == 0 && c->overhead_ns == 0) return;
    // Not by asking: this thread's device is not the program's.
    if (!c->has_devices) look_at_devices(c, false);
    if (!c->is_known) know_device(c, writer);
    prof_intervals_write(&c->intervals, writer);
    missing = dropped(c);
    if (missing > c->told_dropped) note(writer, PROF_EVENT_DROPPED, (uint64_t)(missing - c->told_dropped));
    if (c->overhead_ns > c->told_overhead_ns)
        note(writer, PROF_EVENT_OVERHEAD, (uint64_t)(c->overhead_ns - c->told_overhead_ns));
    c->told_dropped = missing;
    c->told_overhead_ns = c->overhead_ns;
    ProfNvmlSample sample;
    if (!prof_nvml_sample(c->nvml, &sample)) return;
    note(writer, PROF_EVENT_BUSY, sample.busy_percent);
    note(writer, PROF_EVENT_MEMORY, sample.memory_bytes);
}

ProfCollector prof_cupti_collector(ProfCupti *c) {
    return (ProfCollector){collect_take, collect_launch, collect_clone, collect_write, c};
}

// ---- open and close ------------------------------------------------------------------------------------------------

static Status subscribe(ProfCupti *c) {
    char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
    CUptiResult result;
    if (c->calls.cuptiSubscribe_v2 != NULL) {
        CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                         .subscriberName = "Shoal",
                                         .oldSubscriberName = other,
                                         .oldSubscriberSize = sizeof other};
        result = c->calls.cuptiSubscribe_v2(&c->subscriber, prof_cupti_on_call, c, &params);
    } else {
        result = c->calls.cuptiSubscribe(&c->subscriber, prof_cupti_on_call, c);
    }
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        return host_fail(STATUS_DEVICE, "another tool is attached to CUPTI%s%.*s%s, and there can be one only",
                         other[0] != '\0' ? " (" : "", (int)sizeof other, other, other[0] != '\0' ? ")" : "");
    }
    return prof_cupti_check(c, result, "cuptiSubscribe");
}

static Status start_activity(ProfCupti *c) {
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    // Before any kind is enabled for the first time.
    if (!c->has_clock) CUPTI_TRY(c, cuptiActivityRegisterTimestampCallback, now_ns);
    c->has_clock = true;
    CUPTI_TRY(c, cuptiActivityRegisterCallbacks, give_buffer, take_buffer);
    CUPTI_TRY(c, cuptiActivitySetAttribute, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
    atomic_store(&c->is_on, true);
    for (int i = 0; i < kind_count(c); i++)
        CUPTI_TRY(c, cuptiActivityEnable, kinds[i]);
    return STATUS_OK;
}

static Status open_parts(ProfCupti *c, bool asks_now) {
    if (!prof_intervals_init(&c->intervals, PROF_CUPTI_QUEUE_STREAM, host_now_ns()))
        return host_fail(STATUS_MEMORY, "no memory for device intervals");
    TRY(prof_cupti_find(&c->calls));
    TRY(subscribe(c));
    TRY(prof_cupti_choose_calls(c));
    TRY(start_activity(c));
    if (asks_now) look_at_devices(c, true);
    return STATUS_OK;
}

// The pool is kept from one call to the next: CUPTI may still have some of it.
static Status make_pool(ProfCupti *c, int buffers) {
    c->buffer_count = buffers > 0 && buffers < PROF_CUPTI_BUFFERS ? buffers : PROF_CUPTI_BUFFERS;
    if (c->memory != NULL) return STATUS_OK;
    size_t size = (size_t)PROF_CUPTI_BUFFERS * PROF_CUPTI_BUFFER_BYTES;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return host_fail(STATUS_MEMORY, "no memory for CUPTI's buffers");
    c->memory = memory;
    return STATUS_OK;
}

Status prof_cupti_open(const ProfCuptiOptions *options, ProfCupti **cupti) {
    ProfCupti *c = &the_cupti;
    if (c->is_open) return host_fail(STATUS_DEVICE, "CUPTI is in use by this process already");
    TRY(make_pool(c, options->buffers));
    c->is_open = true;
    c->takes_ids = options->takes_ids;
    c->subscriber = NULL;
    c->flushed_ns = host_now_ns();
    c->untimed = c->overhead_ns = c->told_dropped = c->told_overhead_ns = 0;
    atomic_store(&c->dropped, 0);
    c->is_known = c->has_devices = false;
    Status status = open_parts(c, options->asks_now);
    if (status != STATUS_OK) {
        prof_cupti_close(c, NULL);
        return status;
    }
    *cupti = c;
    return STATUS_OK;
}

void prof_cupti_attach(ProfCupti *c, ProfRecorder *recorder) {
    atomic_store_explicit(&c->recorder, recorder, memory_order_release);
}

// Everything is undone, whatever fails; the first failure is what is reported.
typedef struct Failure {
    CUptiResult result;
    const char *function;
} Failure;

static void keep_first(Failure *failure, CUptiResult result, const char *function) {
    if (failure->result == CUPTI_SUCCESS) *failure = (Failure){result, function};
}

static Failure leave(ProfCupti *c) {
    Failure first = {CUPTI_SUCCESS, ""};
    size_t count = 0;
    atomic_store(&c->recorder, NULL);
    if (atomic_exchange(&c->is_on, false)) {
        keep_first(&first, c->calls.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
        for (int i = 0; i < kind_count(c); i++)
            keep_first(&first, c->calls.cuptiActivityDisable(kinds[i]), "cuptiActivityDisable");
        keep_first(&first, c->calls.cuptiActivityGetNumDroppedRecords(NULL, 0, &count),
                   "cuptiActivityGetNumDroppedRecords");
        atomic_fetch_add(&c->dropped, (int64_t)count);
    }
    if (c->subscriber != NULL) keep_first(&first, c->calls.cuptiUnsubscribe(c->subscriber), "cuptiUnsubscribe");
    c->subscriber = NULL;
    return first;
}

Status prof_cupti_detach(ProfCupti *c) {
    Failure failure = leave(c);
    return prof_cupti_check(c, failure.result, failure.function);
}

void prof_cupti_close(ProfCupti *c, int64_t *missing) {
    if (missing != NULL) *missing = c != NULL ? dropped(c) : 0;
    if (c == NULL) return;
    (void)leave(c); // if it was not detached, it is given up
    prof_nvml_close(c->nvml);
    c->nvml = NULL;
    prof_intervals_free(&c->intervals);
    c->is_open = false;
}
