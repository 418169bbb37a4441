// CUPTI's records made up for tests, and what the collector makes of them. In C, as the collector is: its state is
// private to C.
#ifndef SHOAL_TESTS_PROFILER_CUPTI_RECORDS_H
#define SHOAL_TESTS_PROFILER_CUPTI_RECORDS_H

#include "profiler/prof_intervals.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RecordKind {
    RECORD_KERNEL,
    RECORD_COPY,
    RECORD_PEER_COPY,
    RECORD_FILL,
    RECORD_WAIT,
    RECORD_MEMORY,
    RECORD_POOL,
    RECORD_ID,
    RECORD_OVERHEAD,
    RECORD_OTHER
} RecordKind;

typedef struct Record {
    RecordKind kind;
    uint64_t begin_ns, end_ns;
    uint32_t device, context, stream, correlation;
    uint64_t node;
    int32_t grid[3], block[3]; // of a kernel
    int copy_kind;             // of a copy, as CUPTI numbers it
    int type;                  // of a wait, memory, a pool, an id: the same
    bool is_release;           // of memory
    uint64_t bytes, address;   // bytes: or the id
    bool has_details;          // of an overhead: allocated, for the collector to free
} Record;

typedef struct Decoded {
    const ProfInterval *intervals; // [count], until the next call
    size_t count;
    int64_t untimed, overhead_ns;
} Decoded;

Decoded decode_records(const Record *records, size_t count);

#ifdef __cplusplus
}
#endif

#endif
