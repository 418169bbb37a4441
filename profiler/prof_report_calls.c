// What calls of a device's interface did besides launching work: waits, memory, other tools' ids.
#include <inttypes.h>
#include <stdlib.h>

#include "profiler/prof_report.h"

enum { SCOPES_SHOWN = 5 };

static double mebibytes(int64_t bytes) { return (double)bytes / (1 << 20); }

static void print_memory(const ProfSummary *s, FILE *stream) {
    const ProfFigures *f = &s->total;
    bool is_first = true;
    for (int m = 0; m < PROF_MEMORIES; m++) {
        const ProfMemorySum *memory = &f->memory[m];
        if (memory->allocations == 0) continue;
        fprintf(stream, "%s %s %" PRId64 " times, %.3f MiB, at most %.3f MiB held",
                is_first ? "Memory that was allocated:" : ";", prof_memory_name((ProfMemory)m), memory->allocations,
                mebibytes(memory->allocated_bytes), mebibytes(memory->peak_bytes));
        is_first = false;
    }
    if (!is_first) fprintf(stream, "%s.\n", s->worker_count > 1 ? " (each worker at most, added up)" : "");
    int64_t pools = 0;
    for (int c = 0; c < PROF_POOL_CHANGES; c++)
        pools += f->pools[c];
    if (pools == 0) return;
    fprintf(stream,
            "Pools: %" PRId64 " made, %" PRId64 " trimmed, %" PRId64 " destroyed; none had more than %.3f MiB.\n",
            f->pools[PROF_POOL_MADE], f->pools[PROF_POOL_TRIMMED], f->pools[PROF_POOL_DESTROYED],
            mebibytes(f->pool_peak_bytes));
}

// The scopes that allocated most, of devices' memory.
static void print_scopes(const ProfSummary *s, FILE *stream) {
    int64_t below = INT64_MAX; // what was shown last
    int32_t shown = -1;
    for (int n = 0; n < SCOPES_SHOWN; n++) {
        int32_t most = -1;
        for (int32_t i = 0; i < s->scope_count; i++) {
            int64_t bytes = s->scopes[i].allocated_bytes;
            bool is_next = bytes < below || (bytes == below && i > shown);
            if (is_next && bytes > 0 && (most < 0 || bytes > s->scopes[most].allocated_bytes)) most = i;
        }
        if (most < 0) break;
        char path[512];
        const ProfScope *scope = &s->scopes[most];
        fprintf(stream, "%s %s %" PRId64 " times, %.3f MiB", n == 0 ? "Most of the GPU's by" : ";",
                prof_scope_path(s, most, path, sizeof path), scope->allocations, mebibytes(scope->allocated_bytes));
        below = scope->allocated_bytes;
        shown = most;
    }
    if (shown >= 0) fprintf(stream, ".\n");
}

void prof_report_calls(const ProfSummary *s, FILE *stream) {
    const ProfFigures *f = &s->total;
    if (f->waits > 0) {
        fprintf(stream, "Threads waited for it %" PRId64 " times within calls, %.3f ms in all.\n", f->waits,
                1e-6 * (double)f->wait_ns);
    }
    print_memory(s, stream);
    print_scopes(s, stream);
    if (f->ids > 0)
        fprintf(stream, "Launches were made under %" PRId64 " ids of another tool; --json has them.\n", f->ids);
}
