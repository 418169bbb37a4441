// PPO by several trainers, one of them on this CPU: which part of the work is its own, and the exchanges of
// kernels/ppo_group.h.
#include <string.h>

#include "host/trace.h"
#include "kernels/cpu/ppo_cpu.h"

// ---- joining -------------------------------------------------------------------------------------------------------

Status cpu_ppo_share(CpuPpo *ppo, HostComm *comm) {
    const KernPpoSpec *spec = &ppo->spec;
    const PpoGroup *group = &ppo->group;
    TRY(ppo_group_init(&ppo->group, spec, comm));
    int threads = host_pool_threads(ppo->pool);
    // Groups as large as leave some to each thread, so that none waits long for another.
    ppo->group_shards = 1;
    while (ppo->group_shards < PPO_GROUP_MAX &&
           group->own_shards / ppo->group_shards >= 2 * PPO_GROUPS_PER_THREAD * threads)
        ppo->group_shards *= 2;
    // Blocks of lanes in which there are envs of its own. Others' in them are computed as well, to the same bits.
    int32_t lanes = ppo->sim->lanes, envs = spec->envs / spec->shards, first = group->first_shard * envs;
    ppo->first_block = first / lanes;
    ppo->end_block = group->own_shards > 0 ? (first + group->own_shards * envs + lanes - 1) / lanes : ppo->first_block;
    // Pieces of whole blocks: as many rows as fit, but no fewer pieces than threads.
    int32_t rows = ((ppo->end_block - ppo->first_block) * lanes + threads - 1) / threads;
    ppo->piece_blocks = (rows < PPO_ROWS ? cpu_round_up(rows, lanes) : PPO_ROWS) / lanes;
    return STATUS_OK;
}

Status cpu_ppo_join(KernPpo *base, HostComm *comm) {
    CpuPpo *ppo = (CpuPpo *)base;
    host_block_free(&ppo->group_block);
    TRY(cpu_ppo_share(ppo, NULL)); // which it stays where something fails
    TRY(cpu_ppo_share(ppo, comm));
    if (ppo_group_is_alone(&ppo->group)) return STATUS_OK;
    HostPlan plan;
    host_plan_init(&plan);
    TRY(host_plan_add(&plan, "what the trainers exchange", (size_t)ppo->group.comm->size, ppo->group.part_bytes, NULL));
    TRY(host_plan_add(&plan, "envs of the trainers", (size_t)ppo->spec.envs, (size_t)ppo_env_words(&ppo->spec) * 4,
                      NULL));
    HostMemory memory = host_memory_cpu();
    Status status = host_plan_alloc(&plan, &memory, &ppo->group_block);
    if (status != STATUS_OK) {
        TRY(cpu_ppo_share(ppo, NULL));
        return status;
    }
    ppo->group.exchange = host_block_at(&ppo->group_block, &plan, 0);
    ppo->all_envs = host_block_at(&ppo->group_block, &plan, 1);
    return STATUS_OK;
}

// ---- the exchanges -------------------------------------------------------------------------------------------------

// `all`: [shards][shard_bytes], in which this trainer's shards are filled in.
static Status gather_shards(CpuPpo *ppo, void *all, size_t shard_bytes) {
    const PpoGroup *group = &ppo->group;
    if (ppo_group_is_alone(group)) return STATUS_OK;
    size_t bytes = ppo_group_shards_bytes(group, shard_bytes);
    int rank = group->comm->rank;
    if (group->own_shards > 0) memcpy(ppo_group_part(group, rank, bytes), (char *)all + (size_t)rank * bytes, bytes);
    TRY(ppo_group_gather(group, bytes));
    memcpy(all, group->exchange, (size_t)group->sharers * bytes);
    return STATUS_OK;
}

Status cpu_ppo_gather_statistics(CpuPpo *ppo) {
    TRY(gather_shards(ppo, ppo->shard_obs, (size_t)ppo->spec.sim.spec->obs * sizeof *ppo->shard_obs));
    return gather_shards(ppo, ppo->of_shard, sizeof *ppo->of_shard);
}

Status cpu_ppo_gather_advantages(CpuPpo *ppo) {
    return gather_shards(ppo, ppo->advantage_moments, (size_t)ppo->spec.minibatches * sizeof *ppo->advantage_moments);
}

Status cpu_ppo_gather_envs(CpuPpo *ppo) {
    if (ppo_group_is_alone(&ppo->group)) return STATUS_OK;
    HOST_TRACE_SCOPE(HOST, "ppo envs");
    size_t words = (size_t)ppo_env_words(&ppo->spec), envs = (size_t)(ppo->spec.envs / ppo->spec.shards);
    cpu_ppo_move_envs(ppo, ppo->all_envs, true);
    TRY(gather_shards(ppo, ppo->all_envs, envs * words * 4));
    cpu_ppo_move_envs(ppo, ppo->all_envs, false);
    return STATUS_OK;
}

Status cpu_ppo_gather_gradients(CpuPpo *ppo) {
    const PpoGroup *group = &ppo->group;
    size_t losses = (size_t)group->share * sizeof(PpoLosses);
    if (group->own_shards > 0) {
        ppo_net_unpack(&ppo->net, ppo->gradients, ppo_group_gradient(group, group->comm->rank));
        memcpy(ppo_group_losses(group, group->comm->rank), ppo->losses + group->first_shard, losses);
    }
    TRY(ppo_group_gather(group, ppo_group_gradient_bytes(group)));
    for (int rank = 0; rank < group->sharers; rank++)
        memcpy(ppo->losses + rank * group->share, ppo_group_losses(group, rank), losses);
    return STATUS_OK;
}
