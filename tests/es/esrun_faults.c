// esrun with faults, for the tests: linked so that every evaluation on the CPU goes through here (--wrap). The
// environment says what goes wrong:
//
//     SHOAL_TEST_FAULT=KIND:GENERATION:MEMBER:MARKER
//
//     crash   a SIGSEGV whenever the member is evaluated
//     vanish  a SIGKILL, without a word, whenever the member is evaluated
//     spin    the first process that evaluates the member computes for ever
//     nap     the first process that evaluates the member takes 3 s for it, and is alive meanwhile
//     lowest  nothing goes wrong; the member's return is the lowest there is, after episodes of no steps
//
// MARKER is a file that is made when it happens (spin and nap: and keeps it from happening again).
// SHOAL_TEST_SLOW_MS=N makes every evaluation take so much longer. SHOAL_TEST_FORKS=FIRST:LAST: so many-th processes,
// counted from 1, cannot be forked by this one, as where a system has no room for them.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/cpu.h"
#include "tests/linger.h"

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void) {
    static int count;
    int first, last;
    const char *text = getenv("SHOAL_TEST_FORKS");
    count++;
    if (text == NULL || sscanf(text, "%d:%d", &first, &last) != 2 || count < first || count > last)
        return __real_fork();
    errno = EAGAIN;
    return -1;
}

Status __real_cpu_es_evaluate(KernEs *es, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                              float *sums);
Status __wrap_cpu_es_evaluate(KernEs *es, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                              float *sums);

typedef struct Fault {
    char kind[16], marker[512];
    unsigned generation;
    int member;
} Fault;

static int read_fault(Fault *fault) {
    const char *text = getenv("SHOAL_TEST_FAULT");
    return text != NULL &&
           sscanf(text, "%15[^:]:%u:%d:%511s", fault->kind, &fault->generation, &fault->member, fault->marker) == 4;
}

static int mark(const Fault *fault) {
    int fd = open(fault->marker, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void go_wrong(const Fault *fault) {
    int is_first = mark(fault);
    if (strcmp(fault->kind, "crash") == 0) raise(SIGSEGV);
    if (strcmp(fault->kind, "vanish") == 0) kill(getpid(), SIGKILL);
    if (strcmp(fault->kind, "nap") == 0 && is_first) linger(3000);
    if (strcmp(fault->kind, "spin") != 0 || !is_first) return;
    for (volatile unsigned turns = 0;; turns++) {
    }
}

static void rank_lowest(const KernEs *es, const KernEsJob *job, int member, KernEpisode *episodes, float *sums) {
    size_t at = (size_t)(member - job->first) * (size_t)job->episodes;
    size_t obs = (size_t)((const CpuEs *)es)->spec.policy.size[0];
    for (int i = 0; i < job->episodes; i++)
        episodes[at + (size_t)i] = (KernEpisode){-1e30f, 0};
    if (sums != NULL) memset(sums + at * 2 * obs, 0, (size_t)job->episodes * 2 * obs * sizeof *sums);
}

Status __wrap_cpu_es_evaluate(KernEs *es, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                              float *sums) {
    Fault fault;
    int is_hit = read_fault(&fault) && job->sigma != 0.0f && fault.generation == job->generation &&
                 fault.member >= job->first && fault.member < job->first + job->count;
    int is_lowest = is_hit && strcmp(fault.kind, "lowest") == 0;
    if (is_hit && !is_lowest) go_wrong(&fault);
    linger_as_told();
    Status status = __real_cpu_es_evaluate(es, job, normalizer, episodes, sums);
    if (is_lowest && status == STATUS_OK) rank_lowest(es, job, fault.member, episodes, sums);
    return status;
}
