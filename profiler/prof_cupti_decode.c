// CUPTI's records as intervals, waits and changes of memory. Only fields are read that CUPTI 12 has at the same places
// as 13.
#include <stdlib.h>

#include "profiler/prof_cupti_state.h"

static const char *copy_name(int kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "copy host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "copy device to other device";
    default:
        return "copy on device";
    }
}

// Times of 0: CUPTI had no room on the device to take them.
static void add(ProfCupti *c, ProfInterval interval, uint64_t begin_ns, uint64_t end_ns) {
    if (begin_ns == 0 || end_ns < begin_ns || end_ns > INT64_MAX) {
        c->untimed++;
        return;
    }
    interval.begin_ns = (int64_t)begin_ns;
    interval.end_ns = (int64_t)end_ns;
    prof_intervals_add(&c->intervals, &interval);
}

#define INTERVAL(record)                                                                       \
    .kind = PROF_EVENT_INTERVAL, .device = (record)->deviceId, .context = (record)->contextId, \
    .queue = (record)->streamId, .correlation = (record)->correlationId, .node = (record)->graphNodeId

static uint64_t product(int32_t x, int32_t y, int32_t z) {
    return x > 0 && y > 0 && z > 0 ? (uint64_t)x * (uint64_t)y * (uint64_t)z : 0;
}

static void take_kernel(ProfCupti *c, const CUpti_ActivityKernel10 *k) {
    uint64_t blocks = product(k->gridX, k->gridY, k->gridZ), threads = product(k->blockX, k->blockY, k->blockZ);
    ProfInterval interval = {INTERVAL(k), .work = PROF_DEVICE_KERNEL, .threads = blocks * threads,
                             .name = k->name != NULL ? k->name : "kernel"};
    add(c, interval, k->start, k->end);
}

static void take_copy(ProfCupti *c, const CUpti_ActivityMemcpy6 *m) {
    add(c, (ProfInterval){INTERVAL(m), .work = PROF_DEVICE_COPY, .name = copy_name(m->copyKind)}, m->start, m->end);
}

static void take_peer_copy(ProfCupti *c, const CUpti_ActivityMemcpyPtoP4 *m) {
    add(c, (ProfInterval){INTERVAL(m), .work = PROF_DEVICE_COPY, .name = copy_name(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP)},
        m->start, m->end);
}

static void take_fill(ProfCupti *c, const CUpti_ActivityMemset4 *m) {
    add(c, (ProfInterval){INTERVAL(m), .work = PROF_DEVICE_FILL, .name = "fill"}, m->start, m->end);
}

// Of the calls' queue.
static ProfInterval of_call(ProfEventKind kind, uint32_t device, uint32_t correlation) {
    return (ProfInterval){.kind = kind, .device = device, .queue = PROF_QUEUE_OF_CALLS, .correlation = correlation};
}

// A stream that is told to wait for an event keeps no thread.
static void take_wait(ProfCupti *c, const CUpti_ActivitySynchronization2 *s) {
    ProfInterval wait = of_call(PROF_EVENT_WAIT, PROF_NO_DEVICE, s->correlationId);
    switch (s->type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
        return;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
        wait.name = "wait for an event";
        break;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
        wait.name = "wait for a stream";
        break;
    default:
        wait.name = "wait for the device";
        break;
    }
    add(c, wait, s->start, s->end);
}

static ProfMemory memory_of(CUpti_ActivityMemoryKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
        return PROF_MEMORY_DEVICE;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
        return PROF_MEMORY_MANAGED;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
        return PROF_MEMORY_PINNED;
    default:
        return PROF_MEMORY_OTHER;
    }
}

static void take_memory(ProfCupti *c, const CUpti_ActivityMemory4 *m) {
    bool is_release = m->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    ProfEventKind kind = is_release ? PROF_EVENT_RELEASE : PROF_EVENT_ALLOC;
    ProfInterval change = of_call(kind, m->deviceId, m->correlationId);
    change.which = (uint8_t)memory_of(m->memoryKind);
    change.count = m->bytes;
    change.address = m->address;
    add(c, change, m->timestamp, m->timestamp);
}

static void take_pool(ProfCupti *c, const CUpti_ActivityMemoryPool3 *p) {
    ProfInterval change = of_call(PROF_EVENT_POOL, p->deviceId, p->correlationId);
    change.which = p->memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED ? PROF_POOL_MADE
                   : p->memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED
                       ? PROF_POOL_TRIMMED
                       : PROF_POOL_DESTROYED;
    change.count = p->size;
    add(c, change, p->timestamp, p->timestamp);
}

// It has no time of its own.
static void take_id(ProfCupti *c, const CUpti_ActivityExternalCorrelation *e) {
    ProfInterval id = of_call(PROF_EVENT_ID, PROF_NO_DEVICE, e->correlationId);
    id.which = (uint8_t)e->externalKind;
    id.count = e->externalId;
    prof_intervals_add(&c->intervals, &id);
}

// What CUPTI and the driver took for themselves: never a device's time. Details that come with it are the client's.
static void take_overhead(ProfCupti *c, const CUpti_ActivityOverhead3 *o) {
    if (o->start != 0 && o->end > o->start) c->overhead_ns += (int64_t)(o->end - o->start);
    if (o->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL) free(o->overheadData);
}

static void take(ProfCupti *c, CUpti_Activity *record) {
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        take_kernel(c, (const CUpti_ActivityKernel10 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        take_copy(c, (const CUpti_ActivityMemcpy6 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        take_peer_copy(c, (const CUpti_ActivityMemcpyPtoP4 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        take_fill(c, (const CUpti_ActivityMemset4 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        take_wait(c, (const CUpti_ActivitySynchronization2 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        take_memory(c, (const CUpti_ActivityMemory4 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        take_pool(c, (const CUpti_ActivityMemoryPool3 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        take_id(c, (const CUpti_ActivityExternalCorrelation *)record);
        break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        take_overhead(c, (const CUpti_ActivityOverhead3 *)record);
        break;
    default:
        break;
    }
}

void prof_cupti_decode(ProfCupti *c, uint8_t *buffer, size_t size_bytes) {
    CUpti_Activity *record = NULL;
    while (c->calls.cuptiActivityGetNextRecord(buffer, size_bytes, &record) == CUPTI_SUCCESS)
        take(c, record);
}
