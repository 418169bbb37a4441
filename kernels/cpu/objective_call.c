#include "kernels/cpu/objective_call.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/clock.h"
#include "host/dialogue.h"
#include "host/signals.h"
#include "kernels/objective_library.h"
#include "sim/sim_rng.h"

enum { NUMBER_BYTES = 17 }; // "-1.23456789e-038 ", at most

#define SLEEP_SLICE_S 0.02

struct CpuObjective {
    KernLibrary library;
    int threads;
    size_t text_bytes;
    char *text;               // [threads][text_bytes]
    HostDialogue **dialogues; // [threads]; NULL: no command
};

size_t cpu_objective_text_bytes(const KernEsSpec *spec) {
    return spec->objective.kind == KERN_OBJECTIVE_EXEC ? (size_t)spec->policy.params * NUMBER_BYTES + 1 : 0;
}

static Status open_dialogues(const KernEsSpec *spec, CpuObjective *o) {
    char dim[32], seed[48];
    const char *const environment[] = {dim, seed};
    snprintf(dim, sizeof dim, "SHOAL_DIM=%d", spec->policy.params);
    snprintf(seed, sizeof seed, "SHOAL_SEED=%llu", (unsigned long long)spec->seed);
    o->dialogues = calloc((size_t)o->threads, sizeof(HostDialogue *));
    if (o->dialogues == NULL) return host_fail(STATUS_MEMORY, "no memory for %d commands", o->threads);
    for (int i = 0; i < o->threads; i++)
        TRY(host_dialogue_open(kern_objective_argument(&spec->objective), environment, 2, &o->dialogues[i]));
    return STATUS_OK;
}

Status cpu_objective_open(const KernEsSpec *spec, int threads, char *text, CpuObjective **objective) {
    CpuObjective *o = calloc(1, sizeof *o);
    if (o == NULL) return host_fail(STATUS_MEMORY, "no memory for an objective");
    o->threads = threads;
    o->text = text;
    o->text_bytes = cpu_objective_text_bytes(spec);
    Status status = STATUS_OK;
    if (spec->objective.kind == KERN_OBJECTIVE_EXEC) status = open_dialogues(spec, o);
    if (spec->objective.kind == KERN_OBJECTIVE_LIB)
        status = kern_library_open(&spec->objective, spec->policy.params, threads, spec->seed, &o->library);
    if (status == STATUS_OK) {
        *objective = o;
    } else {
        cpu_objective_close(o);
    }
    return status;
}

void cpu_objective_close(CpuObjective *o) {
    if (o == NULL) return;
    if (o->dialogues != NULL) host_dialogue_close(o->dialogues, o->threads);
    free(o->dialogues);
    kern_library_close(&o->library);
    free(o);
}

// ---- one evaluation ------------------------------------------------------------------------------------------------

// Numbers as short as nine digits go, with blanks between them and a newline at the end.
static size_t write_numbers(const float *x, int32_t count, char *text) {
    size_t at = 0;
    for (int32_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, NUMBER_BYTES + 1, "%.9g%c", (double)x[i], i + 1 < count ? ' ' : '\n');
    return at;
}

static Status read_number(char *answer, double *number) {
    char *end;
    *number = strtod(answer, &end);
    bool is_number = end != answer;
    while (isspace((unsigned char)*end) != 0)
        end++;
    if (is_number && *end == '\0') return STATUS_OK;
    for (char *c = answer; *c != '\0'; c++)
        if (*c > 0 && iscntrl(*c) != 0) *c = '?';
    return host_fail(STATUS_CORRUPT, "the command printed '%.60s', which is no number", answer);
}

static Status ask(CpuObjective *o, int worker, const float *x, int32_t dim, double *fitness) {
    char *text = o->text + (size_t)worker * o->text_bytes, answer[HOST_ANSWER_MAX];
    TRY(host_dialogue_ask(o->dialogues[worker], text, write_numbers(x, dim, text), answer));
    return read_number(answer, fitness);
}

// A stop ends it; and time that is slept is no hang.
static Status sleep_ms(double ms) {
    double until_s = host_now_s() + ms * 1e-3;
    for (;;) {
        double left_s = until_s - host_now_s();
        if (left_s <= 0.0) return STATUS_OK;
        if (host_stop_requested()) return host_fail(STATUS_STOPPED, "stopped while an objective sleeps");
        double slice_s = left_s < SLEEP_SLICE_S ? left_s : SLEEP_SLICE_S;
        const struct timespec slice = {0, (long)(slice_s * 1e9)};
        nanosleep(&slice, NULL);
    }
}

static Status sleep_and_draw(const KernEsSpec *spec, const KernEsJob *job, int32_t member, double *fitness) {
    const KernObjective *o = &spec->objective;
    SimWords4 w = sim_philox(0, 0, (uint32_t)member, job->purpose | job->generation, (uint32_t)spec->seed,
                             (uint32_t)(spec->seed >> 32));
    *fitness = (double)sim_uniform_from(w.x0);
    return sleep_ms(o->sleep_low_ms + (o->sleep_high_ms - o->sleep_low_ms) * (double)sim_uniform_from(w.x1));
}

static Status call(const CpuEs *es, const KernEsJob *job, int worker, int32_t member, const float *x, double *fitness) {
    const KernEsSpec *spec = &es->spec;
    CpuObjective *o = es->objective;
    switch (spec->objective.kind) {
    case KERN_OBJECTIVE_SLEEP:
        return sleep_and_draw(spec, job, member, fitness);
    case KERN_OBJECTIVE_EXEC:
        return ask(o, worker, x, spec->policy.params, fitness);
    case KERN_OBJECTIVE_LIB:
        *fitness = o->library.call(x, spec->policy.params, worker);
        return STATUS_OK;
    default:
        *fitness = es->isa->ops->objective(spec->objective.kind, x, spec->policy.params);
        return STATUS_OK;
    }
}

// "generation 3, member 17", or which vector it was that is tested.
static const char *who(const KernEsJob *job, int32_t member, char text[64]) {
    if (job->purpose == SIM_RNG_EVALUATE) return "the tested parameters";
    snprintf(text, 64, "generation %u, member %d", job->generation, member);
    return text;
}

Status cpu_objective_call(const CpuEs *es, const KernEsJob *job, int worker, int32_t member, const float *x,
                          double *fitness) {
    char text[64];
    const char *name = es->spec.objective.name;
    Status status = call(es, job, worker, member, x, fitness);
    if (status == STATUS_CORRUPT)
        return host_fail(STATUS_NUMERIC, "%s: %s: %s", name, who(job, member, text), host_message());
    if (status != STATUS_OK || __builtin_isfinite((float)*fitness)) return status;
    return host_fail(STATUS_NUMERIC, "%s: %s: the fitness is %g, and no finite float32", name, who(job, member, text),
                     *fitness);
}
