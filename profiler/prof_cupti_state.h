// The collector's state: CUPTI's functions, the pool of buffers, which calls are recorded. Private to
// profiler/prof_cupti*.c. Nothing where it is compiled without CUPTI's headers.
//
// Ownership: one object of the process. Errors: Status. Thread safety: as each field says.
#ifndef SHOAL_PROFILER_PROF_CUPTI_STATE_H
#define SHOAL_PROFILER_PROF_CUPTI_STATE_H

#include "profiler/prof_cupti.h"

#ifdef PROF_HAS_CUPTI
#include <cupti.h>
#include <stdatomic.h>

#include "profiler/prof_intervals.h"
#include "profiler/prof_nvml.h"

// F(function of CUPTI)
#define PROF_CUPTI_LIST(F)                    \
    F(cuptiActivityDisable)                   \
    F(cuptiActivityEnable)                    \
    F(cuptiActivityFlushAll)                  \
    F(cuptiActivityGetNextRecord)             \
    F(cuptiActivityGetNumDroppedRecords)      \
    F(cuptiActivityRegisterCallbacks)         \
    F(cuptiActivityRegisterTimestampCallback) \
    F(cuptiActivitySetAttribute)              \
    F(cuptiEnableCallback)                    \
    F(cuptiGetCallbackName)                   \
    F(cuptiGetGraphNodeId)                    \
    F(cuptiGetResultString)                   \
    F(cuptiSubscribe)                         \
    F(cuptiUnsubscribe)

typedef struct ProfCuptiCalls {
    __typeof__(cuptiSubscribe_v2) *cuptiSubscribe_v2;                 // NULL where this CUPTI is older
#define PROF_CUPTI_MEMBER(function) __typeof__(&(function)) function; // NOLINT(bugprone-macro-parentheses)
    PROF_CUPTI_LIST(PROF_CUPTI_MEMBER)
#undef PROF_CUPTI_MEMBER
} ProfCuptiCalls;

// What a call does, as bits.
enum {
    PROF_CALL_RECORDED = 1,
    PROF_CALL_LAUNCHES = 2,
    PROF_CALL_WAITS = 4,
    PROF_CALL_ALLOCATES = 8, // or releases, or has to do with pools
    PROF_CALL_HAS_RECORDS = PROF_CALL_LAUNCHES | PROF_CALL_WAITS | PROF_CALL_ALLOCATES,
};

enum {
    PROF_CUPTI_CALLS_MAX = 2048,                       // of the runtime, of the driver
    PROF_CUPTI_NOTES_STREAM = PROF_RECORD_THREADS,     // what is said of the device itself
    PROF_CUPTI_QUEUE_STREAM = PROF_RECORD_THREADS + 1, // the first queue
};

// A buffer is free, then CUPTI's, then full, and free again once the recorder's thread has read it.
enum { PROF_BUFFER_FREE, PROF_BUFFER_GIVEN, PROF_BUFFER_FULL, PROF_BUFFER_TAKEN };

typedef struct ProfCuptiBuffer {
    _Atomic int state;
    size_t used; // bytes of records; written before it is full
} ProfCuptiBuffer;

struct ProfCupti {
    bool is_open;
    bool takes_ids; // other tools'
    bool has_clock; // CUPTI's times are ours, for the rest of the process
    ProfCuptiCalls calls;
    CUpti_SubscriberHandle subscriber;
    _Atomic(ProfRecorder *) recorder;                                    // NULL: calls are not recorded
    atomic_bool is_on;                                                   // CUPTI records devices' work
    uint8_t runtime[PROF_CUPTI_CALLS_MAX], driver[PROF_CUPTI_CALLS_MAX]; // by number: bits
    bool has_devices; // they were asked about; intervals.device is the first that did something, or is to

    // The pool.
    uint8_t *memory; // [PROF_CUPTI_BUFFERS][PROF_CUPTI_BUFFER_BYTES], zeros where nothing was recorded
    ProfCuptiBuffer buffers[PROF_CUPTI_BUFFERS];
    int buffer_count;
    _Atomic int64_t dropped; // by CUPTI

    // The recorder's thread's.
    ProfIntervals intervals;
    ProfNvml *nvml; // NULL: none
    int64_t flushed_ns, untimed, overhead_ns;
    int64_t told_dropped, told_overhead_ns; // that are in the trace
    bool is_known;                          // the stream of notes
};

// prof_cupti_open.c: finds CUPTI and its functions; the devices' facts, as the CUDA runtime of the process gives them.
Status prof_cupti_find(ProfCuptiCalls *calls) HOST_MUST_CHECK;
// Into `intervals`. Its device is that of the batch's first record that has one, or where `asks`, else the calling
// thread's; false: neither. bus_id: of the device; "" where it cannot be told.
bool prof_cupti_devices(ProfCupti *cupti, bool asks, char bus_id[32]);

// prof_cupti_calls.c: which calls are recorded; what CUPTI calls back.
Status prof_cupti_choose_calls(ProfCupti *cupti) HOST_MUST_CHECK;
void CUPTIAPI prof_cupti_on_call(void *cupti, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data);

// prof_cupti_decode.c: a buffer's records, into `intervals`.
void prof_cupti_decode(ProfCupti *cupti, uint8_t *buffer, size_t size_bytes);

// prof_cupti.c: a result as a status.
Status prof_cupti_check(const ProfCupti *cupti, CUptiResult result, const char *function) HOST_MUST_CHECK;
#define CUPTI_TRY(cupti, function, ...) TRY(prof_cupti_check(cupti, (cupti)->calls.function(__VA_ARGS__), #function))

#endif
#endif
