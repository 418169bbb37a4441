// PPO by several trainers, one of them on this GPU: which part of the work is its own, and the exchanges of
// kernels/ppo_group.h. A part goes to the exchange's memory, from there to the others, and theirs to its place; that
// memory is the GPU's where the group takes it from there, else it is page-locked memory of the host. Before
// each exchange the host waits for the stream, and so learns where the update stands: all trainers come to its end
// alike.
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_ppo.h"

// ---- joining -------------------------------------------------------------------------------------------------------

Status cuda_ppo_share(CudaPpo *ppo, HostComm *comm) {
    CudaPpoArgs *args = &ppo->args;
    const PpoGroup *group = &ppo->group;
    TRY(ppo->backend->host.ppo_group_init(&ppo->group, &ppo->spec, comm));
    int32_t envs = args->envs / args->shards;
    args->first_shard = group->first_shard;
    args->own_shards = group->own_shards;
    args->first_env = group->first_shard * envs;
    args->end_env = args->first_env + group->own_shards * envs;
    return STATUS_OK;
}

void cuda_ppo_leave(CudaPpo *ppo) {
    // Nobody to tell where this fails: after a fault every call does.
    if (ppo->group.exchange != NULL && ppo->exchanges_on_device) (void)cudaFree(ppo->group.exchange);
    if (ppo->group.exchange != NULL && !ppo->exchanges_on_device) (void)cudaFreeHost(ppo->group.exchange);
    ppo->group.exchange = NULL;
}

// Parts have gaps, and some have nothing in them.
static Status make_exchange(CudaPpo *ppo, size_t bytes, bool on_device) {
    const CudaBackend *backend = ppo->backend;
    void *exchange = NULL;
    CUDA_TRY(backend, on_device ? cudaMalloc(&exchange, bytes) : cudaMallocHost(&exchange, bytes));
    ppo->group.exchange = exchange;
    ppo->exchanges_on_device = on_device;
    CUDA_TRY(backend, cudaMemsetAsync(exchange, 0, bytes, backend->stream));
    return STATUS_OK;
}

Status cuda_ppo_join(KernPpo *base, HostComm *comm) {
    CudaPpo *ppo = (CudaPpo *)base;
    const CudaBackend *backend = ppo->backend;
    TRY(cuda_enter(backend));
    cuda_ppo_leave(ppo);
    TRY(cuda_ppo_share(ppo, NULL)); // which it stays where something fails
    TRY(cuda_ppo_share(ppo, comm));
    if (ppo_group_is_alone(&ppo->group)) return STATUS_OK;
    Status status = make_exchange(ppo, (size_t)comm->size * ppo->group.part_bytes, comm->takes_device);
    if (status == STATUS_OK) return STATUS_OK;
    cuda_ppo_leave(ppo);
    TRY(cuda_ppo_share(ppo, NULL));
    return status;
}

// ---- the exchanges -------------------------------------------------------------------------------------------------

// Between the GPU's memory and the exchange's, wherever that is.
static Status copy(const CudaPpo *ppo, void *to, const void *from, size_t bytes) {
    const CudaBackend *backend = ppo->backend;
    CUDA_TRY(backend, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, backend->stream));
    return STATUS_OK;
}

// d_all: [shards][shard_bytes], in which this trainer's shards are filled in: to its place in the exchange.
static Status take_shards(const CudaPpo *ppo, const void *d_all, size_t shard_bytes) {
    const PpoGroup *group = &ppo->group;
    size_t bytes = ppo_group_shards_bytes(group, shard_bytes);
    int rank = group->comm->rank;
    if (group->own_shards > 0)
        TRY(copy(ppo, ppo_group_part(group, rank, bytes), (const char *)d_all + (size_t)rank * bytes, bytes));
    return cuda_ppo_fetch_report(ppo);
}

// And those of all from there.
static Status give_shards(const CudaPpo *ppo, void *d_all, size_t shard_bytes) {
    const PpoGroup *group = &ppo->group;
    size_t bytes = ppo_group_shards_bytes(group, shard_bytes);
    TRY(ppo->backend->host.ppo_group_gather(group, bytes));
    return copy(ppo, d_all, group->exchange, (size_t)group->sharers * bytes);
}

Status cuda_ppo_gather_advantages(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    size_t shard_bytes = (size_t)args->minibatches * sizeof *args->shard_advantages;
    if (args->own_shards > 0) CUDA_TRY(backend, cuda_launch_ppo_shard_advantages(args, backend->stream));
    TRY(take_shards(ppo, args->shard_advantages, shard_bytes));
    return cuda_ppo_has_ended(ppo) ? STATUS_OK : give_shards(ppo, args->shard_advantages, shard_bytes);
}

Status cuda_ppo_gather_gradients(const CudaPpo *ppo) {
    const PpoGroup *group = &ppo->group;
    const CudaPpoArgs *args = &ppo->args;
    size_t gradient = (size_t)args->params_count * sizeof *args->sums;
    size_t losses = (size_t)group->share * sizeof *args->losses;
    int rank = group->comm->rank;
    if (group->own_shards > 0) {
        TRY(copy(ppo, ppo_group_gradient(group, rank), args->sums, gradient));
        TRY(copy(ppo, ppo_group_losses(group, rank), args->losses + group->first_shard, losses));
    }
    TRY(cuda_ppo_fetch_report(ppo));
    if (cuda_ppo_has_ended(ppo)) return STATUS_OK;
    TRY(ppo->backend->host.ppo_group_gather(group, ppo_group_gradient_bytes(group)));
    for (int r = 0; r < group->sharers; r++) {
        TRY(copy(ppo, args->sums + (int64_t)r * args->params_count, ppo_group_gradient(group, r), gradient));
        TRY(copy(ppo, args->losses + r * group->share, ppo_group_losses(group, r), losses));
    }
    return STATUS_OK;
}

Status cuda_ppo_gather_statistics(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    int64_t obs = ppo->spec.sim.spec->obs;
    PpoMoments *shard_obs = args->obs_moments + args->envs * obs;
    PpoOutcome *of_shard = args->outcomes + args->envs;
    TRY(take_shards(ppo, shard_obs, (size_t)obs * sizeof *shard_obs));
    TRY(give_shards(ppo, shard_obs, (size_t)obs * sizeof *shard_obs));
    TRY(take_shards(ppo, of_shard, sizeof *of_shard));
    TRY(give_shards(ppo, of_shard, sizeof *of_shard));
    CUDA_TRY(backend, cuda_launch_ppo_outcome(args, backend->stream));
    return cuda_ppo_fetch_report(ppo);
}

Status cuda_ppo_gather_envs(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    CUDA_TRACE_SCOPE(backend, HOST, "ppo envs");
    size_t shard_bytes = (size_t)(args->envs / args->shards) * ppo->env_words * sizeof *ppo->d_words;
    if (args->own_shards > 0) {
        CUDA_TRY(backend,
                 cuda_launch_ppo_move_envs(args, ppo->d_words, args->first_env, args->end_env, true, backend->stream));
    }
    TRY(take_shards(ppo, ppo->d_words, shard_bytes));
    TRY(give_shards(ppo, ppo->d_words, shard_bytes));
    CUDA_TRY(backend, cuda_launch_ppo_move_envs(args, ppo->d_words, 0, args->envs, false, backend->stream));
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}
