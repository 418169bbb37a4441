// What GPUs do, recorded beside the threads by CUPTI, NVIDIA's profiling interface, which is opened at run time.
//
// Calls of the CUDA runtime (and of the driver, where a program calls it itself) become scopes of layer API on the
// thread that makes them. Kernels, copies and fills become intervals on the queue of their stream, with times by
// CLOCK_MONOTONIC. The nodes of a graph are charged by where they were captured. Waits of threads for a device are
// scopes within the calls that wait, whatever these are named; memory that calls allocate is told beside them.
//
// There is one collector in a process, since CUPTI has no more: its state is one of Shoal's few mutable globals.
// Buffers for CUPTI's records are a fixed pool, which the process keeps: CUPTI may hold one of them for as long as it
// lives. What finds no buffer is counted.
//
// Ownership: the collector is the process's. Errors: STATUS_DEVICE, with what is missing or refused; STATUS_MEMORY.
// Thread safety: open, attach, detach and close on one thread, while no other is within a call of CUDA.
#ifndef SHOAL_PROFILER_PROF_CUPTI_H
#define SHOAL_PROFILER_PROF_CUPTI_H

#include "profiler/prof_record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROF_CUPTI_BUFFERS = 64, PROF_CUPTI_BUFFER_BYTES = 512 << 10 };

// Major versions of CUDA whose runtime is called, and whose CUPTI has the records that are read.
enum { PROF_CUDA_NEWEST = 13, PROF_CUDA_OLDEST = 12 };

typedef struct ProfCupti ProfCupti;

typedef struct ProfCuptiOptions {
    int buffers; // of the pool; 0: PROF_CUPTI_BUFFERS, which is also the most
    // The CUDA runtime about its devices, and which of them is the calling thread's; else about the first that
    // something is recorded of, once it is, since the runtime may not have started yet, and within its start it cannot
    // be called.
    bool asks_now;
    // Ids that another tool pushes by cuptiActivityPushExternalCorrelationId(): which launches were made under them.
    bool takes_ids;
} ProfCuptiOptions;

// Finds CUPTI and begins to record devices' work.
Status prof_cupti_open(const ProfCuptiOptions *options, ProfCupti **cupti) HOST_MUST_CHECK;

// What prof_recorder_start() is to be given.
ProfCollector prof_cupti_collector(ProfCupti *cupti);

// Calls are recorded from here on.
void prof_cupti_attach(ProfCupti *cupti, ProfRecorder *recorder);

// Before the recorder stops: takes everything out of CUPTI and leaves it to other tools. A device's work that is not
// complete by then is not recorded.
Status prof_cupti_detach(ProfCupti *cupti) HOST_MUST_CHECK;

// After the recorder stopped, or instead of attaching. `dropped` (may be NULL): records of device work that are
// missing. NULL is fine.
void prof_cupti_close(ProfCupti *cupti, int64_t *dropped);

#ifdef __cplusplus
}
#endif

#endif
