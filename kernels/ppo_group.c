#include "kernels/ppo_group.h"

#include "host/clock.h"

enum { ALIGNMENT = 64 };

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

// Bytes of a shard in the largest of the exchanges by shards.
static size_t shard_bytes_max(const KernPpoSpec *spec) {
    size_t statistics = larger((size_t)spec->sim.spec->obs * sizeof(PpoMoments), sizeof(PpoOutcome));
    size_t advantages = (size_t)spec->minibatches * sizeof(PpoMoments);
    size_t envs = (size_t)(spec->envs / spec->shards) * (size_t)ppo_env_words(spec) * sizeof(uint32_t);
    return larger(larger(statistics, advantages), envs);
}

Status ppo_group_init(PpoGroup *group, const KernPpoSpec *spec, HostComm *comm) {
    if (comm != NULL && comm->size > PPO_TRAINERS_MAX)
        return host_fail(STATUS_USAGE, "%d trainers: at most %d share PPO's updates", comm->size, PPO_TRAINERS_MAX);
    bool is_alone = comm == NULL || comm->size == 1;
    int size = is_alone ? 1 : comm->size, rank = is_alone ? 0 : comm->rank;
    *group = (PpoGroup){.comm = is_alone ? NULL : comm, .sharers = 1, .params = spec->policy.params};
    while (2 * group->sharers <= size && 2 * group->sharers <= spec->shards)
        group->sharers *= 2;
    group->share = spec->shards / group->sharers;
    group->own_shards = rank < group->sharers ? group->share : 0;
    group->first_shard = rank < group->sharers ? rank * group->share : 0;
    if (is_alone) return STATUS_OK;
    size_t by_shards = ppo_group_shards_bytes(group, shard_bytes_max(spec));
    group->part_bytes = larger((by_shards + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, ppo_group_gradient_bytes(group));
    return STATUS_OK;
}

static Status all_gather(const PpoGroup *group, const void *part, void *all, size_t bytes) {
    return host_comm_all_gather(group->comm, part, all, bytes, host_now_s() + HOST_COMM_PATIENCE_S);
}

Status ppo_group_gather(const PpoGroup *group, size_t bytes) {
    return all_gather(group, ppo_group_part(group, group->comm->rank, bytes), group->exchange, bytes);
}

static bool is_earlier(const PpoInfinite *a, const PpoInfinite *b) {
    if (a->step < 0 || b->step < 0) return a->step >= 0;
    return a->step < b->step || (a->step == b->step && a->env < b->env);
}

Status ppo_group_infinite(const PpoGroup *group, const KernPpoSpec *spec, uint32_t update, const PpoInfinite *own) {
    PpoInfinite first = *own, all[PPO_TRAINERS_MAX];
    if (!ppo_group_is_alone(group)) {
        TRY(all_gather(group, own, all, sizeof *own));
        for (int rank = 0; rank < group->comm->size; rank++) {
            if (is_earlier(&all[rank], &first)) first = all[rank];
        }
    }
    if (first.step < 0) return STATUS_OK;
    return host_fail(STATUS_NUMERIC, "%s: update %u, env %lld, step %lld: %.*s is NaN or infinite",
                     spec->sim.spec->name, update, (long long)first.env, (long long)first.step, (int)sizeof first.field,
                     first.field);
}
