// The table of noise on a host: made by the pool's threads, kept by host/shared.h.
#define _GNU_SOURCE // program_invocation_short_name
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/signals.h"
#include "host/trace.h"
#include "kernels/cpu/cpu.h"

enum { PIECE = 1 << 16 }; // floats that a thread makes at a time; a multiple of KERN_ES_UNIT

static const double patience_s = 120.0; // far longer than making one takes

typedef struct Making {
    const CpuEs *es;
    float *table;
    atomic_bool stopped;
} Making;

static void make_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    Making *making = context;
    const CpuEs *es = making->es;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * PIECE, left = es->spec.table - first;
        if (atomic_load(&making->stopped) || host_stop_requested()) {
            atomic_store(&making->stopped, true);
            return;
        }
        es->isa->ops->table(es->spec.seed, first, left < PIECE ? left : PIECE, making->table + first);
    }
}

static Status make_table(void *context, void *bytes, size_t size_bytes) {
    (void)size_bytes;
    const CpuEs *es = context;
    Making making = {.es = es, .table = bytes};
    HOST_TRACE_SCOPE(LEARNING, "es noise table");
    host_pool_for(es->pool, (es->spec.table + PIECE - 1) / PIECE, 1, make_piece, &making);
    return atomic_load(&making.stopped) ? host_fail(STATUS_STOPPED, "stopped while the noise table was made")
                                        : STATUS_OK;
}

Status cpu_noise_open(CpuEs *es) {
    es->noise = es_noise(&es->spec, NULL);
    if (es->spec.table == 0) return STATUS_OK;
    char name[64], bytes[16];
    snprintf(name, sizeof name, "noise-%" PRIx64 "-%" PRId64 "-%s", es->spec.seed, es->spec.table, kern_build_id());
    HostSharedSpec spec = {.name = name,
                           .size_bytes = (size_t)es->spec.table * sizeof(float),
                           .patience_s = patience_s,
                           .fill = make_table,
                           .context = es};
    TRY(host_shared_open(&es->table, &spec));
    if (es->table.reason[0] != '\0') {
        fprintf(stderr, "%s: warning: this process has a noise table of its own, of %s: %s\n",
                program_invocation_short_name, host_bytes_text(spec.size_bytes, bytes), es->table.reason);
    }
    es->noise = es_noise(&es->spec, es->table.bytes);
    return STATUS_OK;
}

void cpu_noise_close(CpuEs *es) { host_shared_close(&es->table); }
