// PPO by several trainers on CPUs: what they tell each other in an update. The first of them, as many as are a power of
// two, share the shards: each owns consecutive ones, as many as the others, so its part of the shards' binary tree is a
// whole subtree. The rest own none; they only take in what the others say.
//
//     after the rollout   what became infinite first; statistics of the shards; the envs
//     in each epoch       moments of the minibatches' advantages
//     in each minibatch   one gradient of each trainer, and its shards' losses
//
// With that, everything else is computed by all of them, to the same bits.
#include <string.h>

#include "host/clock.h"
#include "host/trace.h"
#include "kernels/cpu/ppo_cpu.h"

enum { ALIGNMENT = 64 };

// A trainer's part of a minibatch's exchange: its gradient, then its losses.
static size_t gradient_bytes(const CpuPpo *ppo) { return (size_t)ppo->net.gradient * sizeof(float); }

static size_t part_bytes(const CpuPpo *ppo) {
    size_t bytes = gradient_bytes(ppo) + (size_t)ppo->share * sizeof(PpoLosses);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

float *cpu_ppo_group_gradient(const CpuPpo *ppo, int rank) {
    return (float *)(ppo->exchange + (size_t)rank * part_bytes(ppo));
}

int64_t cpu_ppo_group_stride(const CpuPpo *ppo) { return (int64_t)(part_bytes(ppo) / sizeof(float)); }

static bool is_alone(const CpuPpo *ppo) { return ppo->comm == NULL || ppo->comm->size == 1; }

// Puts each rank's part, of `bytes`, to its place in ppo->exchange.
static Status gather_parts(CpuPpo *ppo, size_t bytes) {
    char *own = ppo->exchange + (size_t)ppo->comm->rank * bytes;
    return host_comm_all_gather(ppo->comm, own, ppo->exchange, bytes, host_now_s() + HOST_COMM_PATIENCE_S);
}

// `all`: [shards][shard_bytes], in which this trainer's shards are filled in.
static Status gather_shards(CpuPpo *ppo, void *all, size_t shard_bytes) {
    if (is_alone(ppo)) return STATUS_OK;
    size_t bytes = (size_t)ppo->share * shard_bytes;
    if (ppo->own_shards > 0) {
        memcpy(ppo->exchange + (size_t)ppo->comm->rank * bytes, (char *)all + (size_t)ppo->comm->rank * bytes, bytes);
    }
    TRY(gather_parts(ppo, bytes));
    memcpy(all, ppo->exchange, (size_t)ppo->sharers * bytes);
    return STATUS_OK;
}

// ---- joining -------------------------------------------------------------------------------------------------------

// What follows from which shards are this trainer's.
void cpu_ppo_share(CpuPpo *ppo) {
    const KernPpoSpec *spec = &ppo->spec;
    int size = ppo->comm != NULL ? ppo->comm->size : 1, rank = ppo->comm != NULL ? ppo->comm->rank : 0;
    int threads = host_pool_threads(ppo->pool);
    ppo->sharers = 1;
    while (2 * ppo->sharers <= size && 2 * ppo->sharers <= spec->shards)
        ppo->sharers *= 2;
    ppo->share = spec->shards / ppo->sharers;
    ppo->own_shards = rank < ppo->sharers ? ppo->share : 0;
    ppo->first_shard = rank < ppo->sharers ? rank * ppo->share : 0;
    // Groups as large as leave some to each thread, so that none waits long for another.
    ppo->group_shards = 1;
    while (ppo->group_shards < PPO_GROUP_MAX &&
           ppo->own_shards / ppo->group_shards >= 2 * PPO_GROUPS_PER_THREAD * threads)
        ppo->group_shards *= 2;
    // Blocks of lanes in which there are envs of its own. Others' in them are computed as well, to the same bits.
    int32_t lanes = ppo->sim->lanes, envs = spec->envs / spec->shards, first = ppo->first_shard * envs;
    ppo->first_block = first / lanes;
    ppo->end_block = ppo->own_shards > 0 ? (first + ppo->own_shards * envs + lanes - 1) / lanes : ppo->first_block;
    // Pieces of whole blocks: as many rows as fit, but no fewer pieces than threads.
    int32_t rows = ((ppo->end_block - ppo->first_block) * lanes + threads - 1) / threads;
    ppo->piece_blocks = (rows < PPO_ROWS ? cpu_round_up(rows, lanes) : PPO_ROWS) / lanes;
}

// Bytes of a shard in the largest of the exchanges by shards.
static size_t shard_bytes_max(const CpuPpo *ppo) {
    const KernPpoSpec *spec = &ppo->spec;
    const size_t bytes[] = {(size_t)spec->sim.spec->obs * sizeof *ppo->shard_obs, sizeof *ppo->of_shard,
                            (size_t)spec->minibatches * sizeof *ppo->advantage_moments,
                            (size_t)(spec->envs / spec->shards) * (size_t)ppo_env_words(spec) * 4};
    size_t most = 0;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return most;
}

Status cpu_ppo_join(KernPpo *base, HostComm *comm) {
    CpuPpo *ppo = (CpuPpo *)base;
    host_block_free(&ppo->group_block);
    ppo->exchange = NULL;
    ppo->comm = NULL;
    cpu_ppo_share(ppo);
    if (comm == NULL) return STATUS_OK;
    if (comm->size > PPO_TRAINERS_MAX)
        return host_fail(STATUS_USAGE, "%d trainers: at most %d share PPO's updates", comm->size, PPO_TRAINERS_MAX);
    ppo->comm = comm;
    cpu_ppo_share(ppo);
    size_t by_shards = (size_t)ppo->share * shard_bytes_max(ppo), bytes = part_bytes(ppo);
    HostPlan plan;
    host_plan_init(&plan);
    TRY(host_plan_add(&plan, "what the trainers exchange", (size_t)comm->size, by_shards > bytes ? by_shards : bytes,
                      NULL));
    TRY(host_plan_add(&plan, "envs of the trainers", (size_t)ppo->spec.envs, (size_t)ppo_env_words(&ppo->spec) * 4,
                      NULL));
    HostMemory memory = host_memory_cpu();
    TRY(host_plan_alloc(&plan, &memory, &ppo->group_block));
    ppo->exchange = host_block_at(&ppo->group_block, &plan, 0);
    ppo->all_envs = host_block_at(&ppo->group_block, &plan, 1);
    return STATUS_OK;
}

// ---- the exchanges -------------------------------------------------------------------------------------------------

// What a trainer's rollout met first: step -1, nothing.
typedef struct Infinite {
    int64_t step, at;
    char field[64];
} Infinite;

static bool is_earlier(const Infinite *a, const Infinite *b) {
    if (a->step < 0 || b->step < 0) return a->step >= 0;
    return a->step < b->step || (a->step == b->step && a->at < b->at);
}

Status cpu_ppo_group_infinite(CpuPpo *ppo) {
    const LanesInfinite *own = &ppo->infinite;
    const char *field = own->field != NULL ? own->field : "the reward";
    Infinite first = {.step = -1}, all[PPO_TRAINERS_MAX];
    if (own->at >= 0) {
        first.step = own->step;
        first.at = own->at;
        memcpy(first.field, field, strnlen(field, sizeof first.field - 1));
    }
    if (!is_alone(ppo)) {
        TRY(host_comm_all_gather(ppo->comm, &first, all, sizeof first, host_now_s() + HOST_COMM_PATIENCE_S));
        for (int rank = 0; rank < ppo->comm->size; rank++) {
            if (is_earlier(&all[rank], &first)) first = all[rank];
        }
    }
    if (first.step < 0) return STATUS_OK;
    return host_fail(STATUS_NUMERIC, "%s: update %u, env %lld, step %lld: %s is NaN or infinite",
                     ppo->spec.sim.spec->name, ppo->update, (long long)first.at, (long long)first.step, first.field);
}

Status cpu_ppo_group_statistics(CpuPpo *ppo) {
    TRY(gather_shards(ppo, ppo->shard_obs, (size_t)ppo->spec.sim.spec->obs * sizeof *ppo->shard_obs));
    return gather_shards(ppo, ppo->of_shard, sizeof *ppo->of_shard);
}

Status cpu_ppo_group_advantages(CpuPpo *ppo) {
    return gather_shards(ppo, ppo->advantage_moments, (size_t)ppo->spec.minibatches * sizeof *ppo->advantage_moments);
}

Status cpu_ppo_group_envs(CpuPpo *ppo) {
    if (is_alone(ppo)) return STATUS_OK;
    HOST_TRACE_SCOPE(HOST, "ppo envs");
    size_t words = (size_t)ppo_env_words(&ppo->spec), envs = (size_t)(ppo->spec.envs / ppo->spec.shards);
    cpu_ppo_move_envs(ppo, ppo->all_envs, true);
    TRY(gather_shards(ppo, ppo->all_envs, envs * words * 4));
    cpu_ppo_move_envs(ppo, ppo->all_envs, false);
    return STATUS_OK;
}

Status cpu_ppo_group_gradients(CpuPpo *ppo) {
    size_t bytes = gradient_bytes(ppo), losses = (size_t)ppo->share * sizeof(PpoLosses);
    if (ppo->own_shards > 0) {
        char *own = (char *)cpu_ppo_group_gradient(ppo, ppo->comm->rank);
        memcpy(own, ppo->gradients, bytes);
        memcpy(own + bytes, ppo->losses + ppo->first_shard, losses);
    }
    TRY(gather_parts(ppo, part_bytes(ppo)));
    for (int r = 0; r < ppo->sharers; r++)
        memcpy(ppo->losses + r * ppo->share, (char *)cpu_ppo_group_gradient(ppo, r) + bytes, losses);
    return STATUS_OK;
}
