// libFuzzer target: any bytes given to the trace's reader are refused with a message or analysed, and every nanosecond
// of what is analysed is accounted for.
//
// Checksums would refuse nearly every input, so the input is tried once more with the right ones wherever a header
// begins.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_analysis.h"
#include "profiler/prof_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Sums that are as large as these only where times are: wrapped around they would say nothing.
static const int64_t sane_ns = INT64_C(1) << 50;

static void check_sums(const ProfAnalysis *a) {
    int64_t bound = 0, phases = 0, gaps = 0, main_ns = 0;
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        phases += a->phase_ns[p];
        bound += a->idle_ns[p];
        for (int set = 0; set < PROF_CATEGORY_SETS; set++)
            bound += a->gpu_bound_ns[p][set] + a->overlapped_ns[p][set];
        for (int32_t i = 0; i < a->node_count; i++) {
            bound += a->nodes[i].cell[p].bound_ns;
            main_ns += a->nodes[i].cell[p].main_ns;
        }
    }
    for (int g = 0; g < PROF_GAPS; g++)
        gaps += a->gap_ns[g];
    if (a->wall_ns < 0) abort();
    if (bound != a->wall_ns || phases != a->wall_ns) abort();
    if (a->threads > 0 && main_ns != a->wall_ns) abort();
    if (a->device_span_ns != a->device_busy_ns + gaps) abort();
    if (a->device_sum_ns < a->device_busy_ns && a->wall_ns < sane_ns) abort();
}

static void analyse(const uint8_t *data, size_t size) {
    ProfReader *reader = NULL;
    Status status = prof_reader_open_memory(data, size, "fuzz", &reader);
    if (status != STATUS_OK) {
        if (status != STATUS_CORRUPT || host_message()[0] == '\0') abort();
        return;
    }
    ProfAnalysis analysis;
    if (prof_analyse(reader, &analysis) != STATUS_OK) abort();
    check_sums(&analysis);
    prof_analysis_free(&analysis);
    prof_reader_close(reader);
}

static void mend(uint8_t *data, size_t size) {
    for (size_t at = 0; size - at >= PROF_HEADER_BYTES;) {
        if (prof_fixed_at(data + at, 4) != PROF_MAGIC) {
            at++;
            continue;
        }
        uint64_t payload = prof_fixed_at(data + at + 8, 4);
        size_t left = size - at - PROF_HEADER_BYTES;
        if (payload <= left)
            prof_put_fixed(data + at + 24, prof_hash(data + at + PROF_HEADER_BYTES, (size_t)payload), 8);
        prof_put_fixed(data + at + 32, prof_hash(data + at, PROF_HEADER_BYTES - 8), 8);
        at += PROF_HEADER_BYTES + (payload <= left ? (size_t)payload : 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    analyse(data, size);
    uint8_t *mended = malloc(size > 0 ? size : 1);
    if (mended == NULL) abort();
    if (size > 0) memcpy(mended, data, size);
    mend(mended, size);
    analyse(mended, size);
    free(mended);
    return 0;
}
