// Objectives on CPU threads: what a call of one needs, and the evaluation of members by all threads.
//
// Ownership: cpu_objective_open()/cpu_objective_close(). Errors: STATUS_NUMERIC naming generation and member where a
// fitness is no finite float32 or there is none, STATUS_SYSTEM where a command cannot be run, STATUS_STOPPED. Thread
// safety: a thread of the pool at a time per `worker`.
#ifndef SHOAL_KERNELS_CPU_OBJECTIVE_CALL_H
#define SHOAL_KERNELS_CPU_OBJECTIVE_CALL_H

#include "kernels/cpu/cpu.h"

typedef struct CpuObjective CpuObjective;

// Bytes of text that a thread needs.
size_t cpu_objective_text_bytes(const KernEsSpec *spec);

// text: [threads][cpu_objective_text_bytes()], borrowed.
Status cpu_objective_open(const KernEsSpec *spec, int threads, char *text, CpuObjective **objective) HOST_MUST_CHECK;
void cpu_objective_close(CpuObjective *objective); // NULL is fine

// The fitness of x [dim], of a member.
Status cpu_objective_call(const CpuEs *es, const KernEsJob *job, int worker, int32_t member, const float *x,
                          double *fitness) HOST_MUST_CHECK;

// es_evaluate of an objective.
Status cpu_objective_evaluate(CpuEs *es, const KernEsJob *job, KernEpisode *episodes) HOST_MUST_CHECK;

#endif
