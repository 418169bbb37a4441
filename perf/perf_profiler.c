// The profiler's own cost: a scope's begin and end when nothing is attached and when a trace is recorded, and the rate
// at which a trace of many scopes is analysed. Limits: 30 ns for a pair, 1.67 million events/s (100 million in 60 s).
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/trace.h"
#include "perf/perf.h"
#include "profiler/prof_analysis.h"
#include "profiler/prof_record.h"
#include "profiler/prof_write.h"

enum { PAIRS = 100000, BURST = 1000, REPEATS = 15, NAMES = 12 };

static const char *const names[NAMES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};

static void pairs(int count) {
    for (int i = 0; i < count; i++) {
        const HostTraceHooks *scope = host_trace_begin(HOST_TRACE_LEARNING, "pair");
        __asm__ volatile("" ::: "memory"); // so that the two stay apart
        host_trace_end(scope);
    }
}

static double clock_pair_ns(void) {
    uint64_t sum = 0;
    double start_s = host_now_s();
    for (int i = 0; i < 2 * PAIRS; i++) {
        sum += host_trace_ticks();
        __asm__ volatile("" : "+r"(sum)::"memory");
    }
    return (host_now_s() - start_s) / PAIRS * 1e9;
}

static double pair_ns(int count) {
    double start_s = host_now_s();
    pairs(count);
    return (host_now_s() - start_s) / count * 1e9;
}

// Calls of a device's interface that launch something, as a collector records them.
static double call_ns(ProfRecorder *recorder, int count) {
    double start_s = host_now_s();
    for (int i = 1; i <= count; i++) {
        prof_record_call_begin(recorder, "call", false, true, (uint64_t)i);
        __asm__ volatile("" ::: "memory");
        prof_record_call_end(recorder);
    }
    return (host_now_s() - start_s) / count * 1e9;
}

// In bursts, between which the recorder's thread has time: as real programs have scopes, if few as many. Else it
// competes for the processor and the caches. Calls, if there is a recorder to tell, else scopes.
static double burst_ns(ProfRecorder *recorder) {
    double ns[PERF_REPEATS_MAX];
    for (int i = 0; i < PERF_REPEATS_MAX; i++) {
        ns[i] = recorder != NULL ? call_ns(recorder, BURST) : pair_ns(BURST);
        usleep(1000);
    }
    return perf_median(ns, PERF_REPEATS_MAX);
}

static void time_pairs(const char *path) {
    ProfRecordOptions options = {.path = path, .memory_bytes = (size_t)1 << 30};
    ProfRecorder *recorder = NULL;
    double off[REPEATS], on[REPEATS], sustained[REPEATS], clock[REPEATS], call[REPEATS];
    for (int r = -1; r < REPEATS; r++) { // the first is to warm up
        double off_ns = pair_ns(PAIRS), clock_ns = clock_pair_ns();
        perf_check(prof_recorder_start(&options, &recorder));
        pairs(PAIRS); // touches the buffers, which are then emptied
        usleep(200000);
        double on_ns = burst_ns(NULL), sustained_ns = pair_ns(PAIRS), a_call_ns = burst_ns(recorder);
        if (r >= 0) off[r] = off_ns, on[r] = on_ns, sustained[r] = sustained_ns, clock[r] = clock_ns;
        if (r >= 0) call[r] = a_call_ns;
        int64_t dropped = 0;
        perf_check(prof_recorder_stop(recorder, &dropped));
        prof_recorder_free(recorder);
        unlink(path);
        if (dropped > 0) fprintf(stderr, "perf_profiler: %lld events were dropped\n", (long long)dropped);
    }
    perf_print("scope begin + end, off", off, REPEATS, "ns");
    perf_print("the processor's counter, read twice", clock, REPEATS, "ns");
    perf_print("scope begin + end, recorded", on, REPEATS, "ns");
    perf_print("scope begin + end, recorded without a pause", sustained, REPEATS, "ns");
    perf_print("call of a device's interface with a launch, recorded", call, REPEATS, "ns");
}

// Nested scopes on two threads, a launch in some, and the intervals on a queue.
static void write_large(const char *path, int64_t events) {
    ProfProcess process = {.tool = "perf", .workers = 1, .start_ns = 1};
    ProfWriter *writer = NULL;
    uint32_t number[NAMES];
    unlink(path);
    perf_check(prof_writer_open(path, &process, &writer));
    for (int i = 0; i < NAMES; i++)
        number[i] = prof_writer_name(writer, i % HOST_TRACE_CATEGORIES, PROF_LAYER_CODE, names[i]);
    for (uint32_t s = 0; s < 3; s++) {
        ProfStream stream = {.id = s, .kind = s == 2 ? PROF_STREAM_DEVICE : PROF_STREAM_THREAD, .is_main = s == 0};
        prof_writer_stream(writer, &stream);
    }
    int64_t now = 1000;
    uint64_t random = 88172645463325252u;
    ProfEvent event = {0};
    uint32_t depth[2] = {0, 0};
    int64_t from[2] = {now, now};
    for (int64_t i = 0; i < events;) {
        uint32_t s = (uint32_t)(i / 4000 % 2);
        now = from[s];
        for (int k = 0; k < 4000 && i < events; k++, i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            now += (int64_t)(random >> 32 & 1023);
            event.time_ns = now;
            bool begins = depth[s] == 0 || (depth[s] < 6 && (random >> 20 & 1) != 0);
            event.kind = begins ? PROF_EVENT_BEGIN : PROF_EVENT_END;
            event.name = number[2 * (depth[s] % 6) + (random >> 21 & 1)];
            depth[s] += begins ? 1 : (uint32_t)-1;
            prof_writer_put(writer, s, &event);
        }
        from[s] = now;
    }
    perf_check(prof_writer_close(writer, now + 1));
}

static void time_analysis(const char *path, int64_t events) {
    write_large(path, events);
    enum { TIMES = 3 };
    double rate[TIMES];
    int64_t found = 0;
    for (int r = 0; r < TIMES; r++) {
        ProfReader *reader = NULL;
        ProfAnalysis analysis;
        double start_s = host_now_s();
        perf_check(prof_reader_open(path, &reader));
        perf_check(prof_analyse(reader, &analysis));
        rate[r] = (double)events / (host_now_s() - start_s) * 1e-6;
        found = analysis.events;
        prof_analysis_free(&analysis);
        prof_reader_close(reader);
    }
    unlink(path);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double memory = (double)usage.ru_maxrss / 1024.0;
    if (found != events) fprintf(stderr, "perf_profiler: %lld events of %lld\n", (long long)found, (long long)events);
    perf_print("analysis of a trace", rate, TIMES, "Mevent/s");
    perf_print("analysis, memory at most", &memory, 1, "MiB");
}

int main(int argc, char **argv) {
    int64_t millions = argc > 1 ? atoll(argv[1]) : 10; // of events to be analysed
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf_profiler-%d.trace", (int)getpid());
    time_pairs(path);
    time_analysis(path, millions * 1000000);
    return 0;
}
