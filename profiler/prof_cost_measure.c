// What the recorder costs the thread, class by class.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "profiler/prof_cost_parts.h"
#include "profiler/prof_record.h"

enum { LOOPS = 2000, HERE = PROF_COST_SCRIPT }; // HERE: classes below it are measured here

// Some hundred nanoseconds of work that depends on itself.
static uint64_t work(uint64_t x) {
    for (int i = 0; i < 100; i++)
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return x;
}

// Work with what the recorder does for one class; HERE: without any.
static double time_loop(int class, HostTraceMark mark, uint64_t *x) {
    static const uint64_t weight[HOST_TRACE_CATEGORIES] = {1000, 1000, 1000};
    int64_t start_ns = host_thread_ns(); // other programs do not count
    for (int i = 0; i < LOOPS; i++) {
        const HostTraceHooks *scope = NULL;
        if (class == PROF_COST_SCOPE) scope = host_trace_begin(HOST_TRACE_HOST, "work");
        if (class == PROF_COST_JOIN) scope = host_trace_join(mark);
        *x = work(*x);
        __asm__ volatile("" : "+r"(*x)::"memory");
        if (class == PROF_COST_SPLIT) host_trace_split(weight);
        if (class == PROF_COST_STRETCH) host_trace_stretch(HOST_STRETCH_NEXT, false, 1);
        if (class == PROF_COST_PAUSE) host_trace_stretch(HOST_STRETCH_PAUSE, false, 0);
        if (class == PROF_COST_PAUSE) host_trace_stretch(HOST_STRETCH_RESUME, false, 0);
        host_trace_end(scope);
    }
    return (double)(host_thread_ns() - start_ns) / LOOPS;
}

static void measure_each(const ProfCostNames *names, double each_ns[HERE][PROF_COST_REPEATS]) {
    HOST_TRACE_SCOPE(HOST, "calibration");
    HostTraceMark mark = host_trace_mark();
    uint64_t x = 1;
    for (int r = -1; r < PROF_COST_REPEATS; r++) { // the first is to warm up
        double ns[HERE + 1];
        for (int i = 0; i <= HERE; i++) { // in turn, each first as often
            int class = (r + 1 + i) % (HERE + 1);
            ns[class] = time_loop(class, mark, &x);
            usleep(2000); // for the recorder's own thread
        }
        if (r < 0) continue;
        for (int class = 0; class < HERE; class ++)
            each_ns[class][r] = ns[class] - ns[HERE];
        for (int i = 0; i < LOOPS / 4; i++)
            host_trace_end(host_trace_begin(HOST_TRACE_HOST, names->of[r]));
    }
}

void prof_cost_names(ProfCostNames *names) {
    for (int r = 0; r < PROF_COST_REPEATS; r++)
        snprintf(names->of[r], sizeof names->of[r], "r%02d", r);
}

Status prof_cost_read(const char *path, const char *call, ProfCostCell cells[PROF_COST_REPEATS]) {
    ProfAnalysis a;
    ProfCostNames names;
    int found = 0;
    prof_cost_names(&names);
    TRY(prof_analyse_file(path, &a));
    for (int32_t i = PROF_NODE_UNKNOWN + 1; i < a.node_count; i++) {
        const ProfCell *cell = &a.nodes[i].cell[HOST_PHASE_SETUP];
        int32_t of = call != NULL ? a.nodes[i].parent : i;
        if (cell->count == 0 || (call != NULL && strcmp(prof_node_name(&a, i), call) != 0)) continue;
        for (int r = 0; r < PROF_COST_REPEATS; r++) {
            if (strcmp(prof_node_name(&a, of), names.of[r]) != 0) continue;
            double count = (double)cell->count;
            cells[r] = (ProfCostCell){(double)cell->thread_ns / count, (double)cell->costs[PROF_COST_RECORD] / count};
            found++;
        }
    }
    prof_analysis_free(&a);
    return found == PROF_COST_REPEATS ? STATUS_OK
                                      : host_fail(STATUS_SYSTEM, "the machine is too busy: scopes were dropped");
}

Status prof_cost_insides(const char *path, ProfEstimate *inside) {
    ProfCostCell cells[PROF_COST_REPEATS] = {{0.0, 0.0}};
    double ns[PROF_COST_REPEATS];
    TRY(prof_cost_read(path, NULL, cells));
    for (int r = 0; r < PROF_COST_REPEATS; r++)
        ns[r] = cells[r].ns;
    *inside = prof_estimate(ns, PROF_COST_REPEATS);
    return STATUS_OK;
}

static Status measure_here(const char *folder, ProfCost *cost) {
    char path[HOST_PATH_MAX];
    ProfCostNames names;
    double each_ns[HERE][PROF_COST_REPEATS];
    TRY(host_file_join(folder, "cost.trace", path));
    prof_cost_names(&names);
    ProfRecordOptions options = {.path = path};
    ProfRecorder *recorder = NULL;
    TRY(prof_recorder_start(&options, &recorder));
    measure_each(&names, each_ns);
    Status status = prof_recorder_stop(recorder, NULL);
    prof_recorder_free(recorder);
    if (status == STATUS_OK) status = prof_cost_insides(path, &cost->inside_ns[PROF_COST_SCOPE]);
    unlink(path);
    TRY(status);
    for (int i = 0; i < HERE; i++) {
        cost->each_ns[i] = prof_estimate(each_ns[i], PROF_COST_REPEATS);
        cost->is_known[i] = true;
    }
    cost->inside_ns[PROF_COST_JOIN] = cost->inside_ns[PROF_COST_SCOPE];
    return STATUS_OK;
}

// What cannot be measured here is no reason to measure nothing.
static void measure_more(const char *folder, const char *python, ProfCost *cost, ProfCostMissing *missing) {
    if (prof_cost_measure_script(folder, python, cost) != STATUS_OK)
        snprintf(missing->script, sizeof missing->script, "%s", host_message());
    if (prof_cost_measure_gpu(folder, cost) != STATUS_OK)
        snprintf(missing->gpu, sizeof missing->gpu, "%s", host_message());
}

Status prof_cost_measure(const char *python, ProfCost *cost, ProfCostMissing *missing) {
    const char *folder = getenv("TMPDIR");
    char temporary[HOST_PATH_MAX];
    memset(cost, 0, sizeof *cost);
    memset(missing, 0, sizeof *missing);
    prof_cost_describe(cost);
    TRY(host_file_join(folder != NULL && folder[0] != '\0' ? folder : "/tmp", "shoal-XXXXXX", temporary));
    if (mkdtemp(temporary) == NULL) return host_fail(STATUS_IO, "cannot make %s: %s", temporary, strerror(errno));
    Status status = measure_here(temporary, cost);
    if (status == STATUS_OK) measure_more(temporary, python, cost, missing);
    rmdir(temporary);
    return status;
}
