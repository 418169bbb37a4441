// CUPTI's records as intervals. Only fields are read that CUPTI 12 has at the same places as 13.
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

#define COMMON(record)                                                                         \
    .device = (record)->deviceId, .context = (record)->contextId, .queue = (record)->streamId, \
    .correlation = (record)->correlationId, .node = (record)->graphNodeId

static uint64_t product(int32_t x, int32_t y, int32_t z) {
    return x > 0 && y > 0 && z > 0 ? (uint64_t)x * (uint64_t)y * (uint64_t)z : 0;
}

static void take_kernel(ProfCupti *c, const CUpti_ActivityKernel10 *k) {
    uint64_t blocks = product(k->gridX, k->gridY, k->gridZ), threads = product(k->blockX, k->blockY, k->blockZ);
    ProfInterval interval = {COMMON(k), .work = PROF_DEVICE_KERNEL, .threads = blocks * threads,
                             .name = k->name != NULL ? k->name : "kernel"};
    add(c, interval, k->start, k->end);
}

static void take_copy(ProfCupti *c, const CUpti_ActivityMemcpy6 *m) {
    add(c, (ProfInterval){COMMON(m), .work = PROF_DEVICE_COPY, .name = copy_name(m->copyKind)}, m->start, m->end);
}

static void take_peer_copy(ProfCupti *c, const CUpti_ActivityMemcpyPtoP4 *m) {
    add(c, (ProfInterval){COMMON(m), .work = PROF_DEVICE_COPY, .name = copy_name(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP)},
        m->start, m->end);
}

static void take_fill(ProfCupti *c, const CUpti_ActivityMemset4 *m) {
    add(c, (ProfInterval){COMMON(m), .work = PROF_DEVICE_FILL, .name = "fill"}, m->start, m->end);
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
