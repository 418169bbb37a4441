// What the trainers of a group exchange by: chosen here, so that all of them decide alike.
#include <stdio.h>
#include <string.h>

#include "host/master_parts.h"

static void name_version(int version, char text[32]) {
    snprintf(text, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

void master_find_unfit(const MasterWorker *const *found, int count, const MasterWorker *worker, char *why,
                       size_t size) {
    long long pid = (long long)worker->pid;
    why[0] = '\0';
    if (worker->gpu[0] == '\0') {
        snprintf(why, size, "the trainer on %.60s (process %lld) computes on a CPU", worker->host, pid);
    } else if (worker->nccl == 0) {
        snprintf(why, size, "the trainer on %.60s (process %lld) has no NCCL: %s", worker->host, pid,
                 worker->nccl_missing);
    } else if (count > 0 && found[0]->nccl != worker->nccl) {
        char theirs[32], mine[32];
        name_version(found[0]->nccl, theirs);
        name_version(worker->nccl, mine);
        snprintf(why, size, "NCCL is %s on %.60s and %s on %.60s", theirs, found[0]->host, mine, worker->host);
    }
    for (int i = 0; i < count && why[0] == '\0'; i++) {
        if (strcmp(found[i]->gpu, worker->gpu) != 0) continue;
        snprintf(why, size, "processes %lld and %lld on %.60s share a GPU", (long long)found[i]->pid, pid,
                 worker->host);
    }
}

void master_choose_collectives(Master *m, const MasterWorker *const *found, int count) {
    MasterGroup *group = &m->group;
    HostCollectives asked = m->options->collectives;
    group->collectives = HOST_COLLECTIVES_GLOO;
    group->why[0] = '\0';
    if (asked == HOST_COLLECTIVES_GLOO) {
        snprintf(group->why, sizeof group->why, "--collectives gloo");
        return;
    }
    for (int i = 0; i < count && group->why[0] == '\0'; i++)
        master_find_unfit(found, i, found[i], group->why, sizeof group->why);
    if (group->why[0] == '\0' && group->shuns_nccl && asked == HOST_COLLECTIVES_AUTO)
        snprintf(group->why, sizeof group->why, "NCCL did not connect these GPUs: %s", group->fault);
    if (group->why[0] != '\0') return;
    group->collectives = HOST_COLLECTIVES_NCCL;
    snprintf(group->why, sizeof group->why, "each trainer has a GPU of its own");
}
