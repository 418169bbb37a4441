#include "tests/profiler/cupti_records.h"

#include <string.h>

#include "profiler/prof_cupti_state.h"

typedef union AnyRecord {
    CUpti_Activity any;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 fill;
    CUpti_ActivityOverhead3 overhead;
    CUpti_ActivitySynchronization2 wait;
    CUpti_ActivityMemory4 memory;
    CUpti_ActivityMemoryPool3 pool;
    CUpti_ActivityExternalCorrelation id;
} AnyRecord;

// A buffer here is an array of the largest record.
static CUptiResult CUPTIAPI next_record(uint8_t *buffer, size_t size_bytes, CUpti_Activity **record) {
    AnyRecord *first = (AnyRecord *)(void *)buffer, *next = *record != NULL ? (AnyRecord *)*record + 1 : first;
    if (next == first + size_bytes / sizeof(AnyRecord)) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = &next->any;
    return CUPTI_SUCCESS;
}

#define COMMON(record)                                                                           \
    .start = (record)->begin_ns, .end = (record)->end_ns, .deviceId = (record)->device,          \
    .contextId = (record)->context, .streamId = (record)->stream, .graphNodeId = (record)->node, \
    .correlationId = (record)->correlation

static void make_of_call(const Record *r, AnyRecord *made) {
    if (r->kind == RECORD_WAIT) {
        made->wait = (CUpti_ActivitySynchronization2){.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                                      .type = (CUpti_ActivitySynchronizationType)r->type,
                                                      .start = r->begin_ns,
                                                      .end = r->end_ns,
                                                      .correlationId = r->correlation};
    } else if (r->kind == RECORD_MEMORY) {
        made->memory = (CUpti_ActivityMemory4){.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
                                               .memoryOperationType = r->is_release ? 2 : 1,
                                               .memoryKind = (CUpti_ActivityMemoryKind)r->type,
                                               .correlationId = r->correlation,
                                               .address = r->address,
                                               .bytes = r->bytes,
                                               .timestamp = r->begin_ns,
                                               .deviceId = r->device};
    } else if (r->kind == RECORD_POOL) {
        made->pool =
            (CUpti_ActivityMemoryPool3){.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                        .memoryPoolOperationType = (CUpti_ActivityMemoryPoolOperationType)r->type,
                                        .correlationId = r->correlation,
                                        .size = r->bytes,
                                        .timestamp = r->begin_ns,
                                        .deviceId = r->device};
    } else {
        made->id = (CUpti_ActivityExternalCorrelation){.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                       .externalKind = (CUpti_ExternalCorrelationKind)r->type,
                                                       .externalId = r->bytes,
                                                       .correlationId = r->correlation};
    }
}

static AnyRecord make(const Record *r) {
    AnyRecord made = {.any = {.kind = CUPTI_ACTIVITY_KIND_STREAM}};
    switch (r->kind) {
    case RECORD_KERNEL:
        made.kernel = (CUpti_ActivityKernel10){COMMON(r),
                                               .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                               .name = "a kernel",
                                               .gridX = r->grid[0],
                                               .gridY = r->grid[1],
                                               .gridZ = r->grid[2],
                                               .blockX = r->block[0],
                                               .blockY = r->block[1],
                                               .blockZ = r->block[2]};
        break;
    case RECORD_COPY:
        made.copy =
            (CUpti_ActivityMemcpy6){COMMON(r), .kind = CUPTI_ACTIVITY_KIND_MEMCPY, .copyKind = (uint8_t)r->copy_kind};
        break;
    case RECORD_PEER_COPY:
        made.peer = (CUpti_ActivityMemcpyPtoP4){COMMON(r), .kind = CUPTI_ACTIVITY_KIND_MEMCPY2};
        break;
    case RECORD_FILL:
        made.fill = (CUpti_ActivityMemset4){COMMON(r), .kind = CUPTI_ACTIVITY_KIND_MEMSET};
        break;
    case RECORD_WAIT:
    case RECORD_MEMORY:
    case RECORD_POOL:
    case RECORD_ID:
        make_of_call(r, &made);
        break;
    case RECORD_OVERHEAD:
        made.overhead =
            (CUpti_ActivityOverhead3){.kind = CUPTI_ACTIVITY_KIND_OVERHEAD, .start = r->begin_ns, .end = r->end_ns};
        if (!r->has_details) break;
        made.overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
        made.overhead.overheadData = malloc(64);
        break;
    default:
        break;
    }
    return made;
}

Decoded decode_records(const Record *records, size_t count) {
    static ProfCupti cupti;
    static AnyRecord buffer[4096];
    prof_intervals_free(&cupti.intervals);
    cupti = (ProfCupti){.calls = {.cuptiActivityGetNextRecord = next_record}};
    for (size_t done = 0; done < count;) {
        size_t part = count - done < 4096 ? count - done : 4096;
        for (size_t i = 0; i < part; i++)
            buffer[i] = make(&records[done + i]);
        prof_cupti_decode(&cupti, (uint8_t *)buffer, part * sizeof buffer[0]);
        done += part;
    }
    static ProfInterval *intervals;
    free(intervals);
    intervals = calloc(cupti.intervals.count + 1, sizeof *intervals);
    for (size_t i = 0; intervals != NULL && i < cupti.intervals.count; i++)
        intervals[i] = cupti.intervals.batch[i].interval;
    return (Decoded){intervals, cupti.intervals.count, cupti.untimed, cupti.overhead_ns};
}
