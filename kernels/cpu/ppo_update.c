// PPO's learning on the CPU: shards spread over the pool, their gradients folded, and Adam.
#include <math.h>
#include <string.h>

#include "host/signals.h"
#include "host/trace.h"
#include "kernels/cpu/ppo_cpu.h"

typedef struct Learning {
    CpuPpo *ppo;
    const KernPpoStep *step;
    int32_t epoch, minibatch;
    PpoMoments advantages; // of the minibatch
    PpoAdamStep adam;
} Learning;

static PpoMoments fold_moments(const PpoMoments *m, int32_t count, int32_t stride) {
    PpoMoments all = {0};
    for (int32_t i = 0; i < count; i++)
        all = ppo_moments_fold(all, m[(int64_t)i * stride]);
    return all;
}

static PpoMoments chunk_moments(const CpuPpo *ppo, const uint32_t *order, int32_t count) {
    PpoMoments m = {.count = count};
    double sum[16] = {0.0}, square[16] = {0.0};
    for (int32_t i = 0; i < count; i++)
        sum[i % 16] += (double)ppo->samples.advantage[order[i]];
    m.mean = ppo_fold16(sum) / m.count;
    for (int32_t i = 0; i < count; i++) {
        double apart = (double)ppo->samples.advantage[order[i]] - m.mean;
        square[i % 16] += apart * apart;
    }
    m.square = ppo_fold16(square);
    return m;
}

// The order of a shard's samples in this epoch: permuted, or with recurrent states by permuted envs.
static void order_shard(const Learning *learning, int32_t shard, uint32_t *order) {
    const CpuPpo *ppo = learning->ppo;
    bool by_env = ppo->net.network.states > 0;
    uint32_t steps = by_env ? (uint32_t)ppo->spec.rollout : 1;
    uint32_t count = (uint32_t)cpu_ppo_shard_samples(&ppo->spec) / steps;
    ppo->isa->ppo->order(ppo->spec.seed, ppo->update, (uint32_t)learning->epoch, (uint32_t)shard, count,
                         (uint32_t)shard * count, order);
    for (uint32_t i = by_env ? count : 0; i-- > 0;) { // from the last, in place
        uint32_t env = order[i];
        for (uint32_t t = 0; t < steps; t++)
            order[i * steps + t] = env * steps + t;
    }
}

// The order of each shard's samples, and the moments of each minibatch's advantages.
static void order_shards(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const Learning *learning = context;
    CpuPpo *ppo = learning->ppo;
    int32_t samples = cpu_ppo_shard_samples(&ppo->spec), count = samples / ppo->spec.minibatches;
    for (int64_t shard = ppo->group.first_shard + begin; shard < ppo->group.first_shard + end; shard++) {
        uint32_t *order = ppo->order + shard * samples;
        order_shard(learning, (int32_t)shard, order);
        for (int32_t m = 0; m < ppo->spec.minibatches; m++) {
            PpoMoments moments = {0};
            for (int32_t first = 0; first < count; first += PPO_CHUNK) {
                int32_t left = count - first < PPO_CHUNK ? count - first : PPO_CHUNK;
                moments = ppo_moments_fold(moments, chunk_moments(ppo, order + m * count + first, left));
            }
            ppo->advantage_moments[shard * ppo->spec.minibatches + m] = moments;
        }
    }
}

// The gradient of a group's shards, folded in a binary tree. A shard's gradient waits in a branch until the other half
// of its node is there; the last one added to is the group's own.
static void group_gradient(const Learning *learning, PpoPart *part, int64_t group, int worker) {
    CpuPpo *ppo = learning->ppo;
    const PpoKernels *kernels = ppo->isa->ppo;
    int32_t samples = cpu_ppo_shard_samples(&ppo->spec), gradient = ppo->net.gradient, waiting = 0;
    float *node[PPO_BRANCHES + 1] = {ppo->gradients + group * gradient};
    for (int k = 0; k < PPO_BRANCHES; k++)
        node[k + 1] = ppo->branches + ((int64_t)worker * PPO_BRANCHES + k) * gradient;
    for (int32_t i = 0; i < ppo->group_shards; i++) {
        int64_t shard = ppo->group.first_shard + group * ppo->group_shards + i;
        part->index = ppo->order + shard * samples + learning->minibatch * part->count;
        kernels->gradient(part, &ppo->scratch[worker], node[waiting], &ppo->losses[shard]);
        cpu_probe_count(&ppo->scratch[worker].probe, (uint32_t)part->count);
        for (int32_t left = i; left % 2 == 1; left /= 2, waiting--)
            kernels->add(node[waiting - 1], node[waiting], 0, gradient);
        waiting++;
    }
}

enum { STRETCH_SAMPLES = 512 }; // between two decisions whether to record them

static void group_gradients(void *context, int64_t begin, int64_t end, int worker) {
    const Learning *learning = context;
    CpuPpo *ppo = learning->ppo;
    int32_t samples = cpu_ppo_shard_samples(&ppo->spec), count = samples / ppo->spec.minibatches;
    PpoPart part = {.net = &ppo->net,
                    .packed = ppo->packed,
                    .log_std = ppo->params + ppo->net.shape.params - ppo->net.shape.log_std_params,
                    .samples = &ppo->samples,
                    .normalizer = &ppo->normalizer,
                    .step = learning->step,
                    .count = count,
                    .steps = ppo->spec.rollout,
                    .advantages = ppo_advantage_scale(learning->advantages, learning->step->normalize_advantage),
                    .per_sample = (float)(1.0 / ((double)count * ppo->spec.shards))};
    CpuProbe *probe = &ppo->scratch[worker].probe;
    cpu_probe_open_part(probe, STRETCH_SAMPLES, "ppo gradient");
    for (int64_t group = begin; group < end; group++)
        group_gradient(learning, &part, group, worker);
    if (learning->minibatch < ppo->spec.minibatches - 1) {
        cpu_probe_close_part(probe, "ppo gradient");
    } else { // what comes next is another loop, which would drop a stretch
        cpu_probe_close(probe);
    }
}

// `count` gradients of `size` floats, `stride` floats apart, to be summed into the first's place: a level of the
// shards' tree and what is above it.
typedef struct Fold {
    const PpoKernels *kernels;
    float *gradients;
    int64_t count, stride;
    int32_t size;
} Fold;

static void fold_tiles(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const Fold *fold = context;
    int32_t first = (int32_t)begin * PPO_TILE, last = (int32_t)end * PPO_TILE;
    last = last < fold->size ? last : fold->size;
    for (int64_t apart = 1; apart < fold->count; apart *= 2) {
        for (int64_t at = 0; at < fold->count; at += 2 * apart)
            fold->kernels->add(fold->gradients + at * fold->stride, fold->gradients + (at + apart) * fold->stride,
                               first, last);
    }
}

enum { TILES_GRAIN = 16 }; // pieces of parameters large enough to be worth handing out

static void fold_gradients(const CpuPpo *ppo, Fold fold) {
    host_pool_for(ppo->pool, (fold.size + PPO_TILE - 1) / PPO_TILE, TILES_GRAIN, fold_tiles, &fold);
}

// The sum over all shards: from where the groups' own trees end, then from where the trainers' end.
static Status sum_gradients(CpuPpo *ppo) {
    HOST_TRACE_SCOPE(LEARNING, "ppo gradient sum");
    const PpoKernels *kernels = ppo->isa->ppo;
    const PpoGroup *group = &ppo->group;
    int32_t packed = ppo->net.gradient, params = ppo->net.shape.params;
    fold_gradients(ppo, (Fold){kernels, ppo->gradients, group->own_shards / ppo->group_shards, packed, packed});
    if (ppo_group_is_alone(group)) {
        ppo_net_unpack(&ppo->net, ppo->gradients, ppo->gradient);
        return STATUS_OK;
    }
    TRY(cpu_ppo_gather_gradients(ppo));
    int64_t stride = (int64_t)(ppo_group_gradient_bytes(group) / sizeof(float));
    fold_gradients(ppo, (Fold){kernels, ppo_group_gradient(group, 0), group->sharers, stride, params});
    memcpy(ppo->gradient, ppo_group_gradient(group, 0), (size_t)params * sizeof(float));
    return STATUS_OK;
}

static void adam_tiles(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const Learning *learning = context;
    CpuPpo *ppo = learning->ppo;
    int64_t last = end * PPO_TILE < ppo->net.shape.params ? end * PPO_TILE : ppo->net.shape.params;
    ppo->isa->ppo->adam(ppo->params, ppo->first, ppo->second, ppo->gradient, &learning->adam, (int32_t)begin * PPO_TILE,
                        (int32_t)last);
}

// The sum of squares: of each tile in sixteen partial sums, folded by halves; tiles in order.
static double square_norm(const float *x, int32_t count) {
    double sum = 0.0;
    for (int32_t tile = 0; tile < count; tile += PPO_TILE) {
        int32_t end = count - tile < PPO_TILE ? count - tile : PPO_TILE;
        double partial[16] = {0.0};
        for (int32_t i = 0; i < end; i++)
            partial[i % 16] += (double)x[tile + i] * (double)x[tile + i];
        sum += ppo_fold16(partial);
    }
    return sum;
}

// The lowest tensor, in the order of the parameters, in which something is NaN or infinite.
static const char *infinite_tensor(const CpuPpo *ppo, float max_norm, PpoTensor *tensor) {
    for (int index = 0; ppo_tensor(&ppo->net.shape, index, tensor); index++) {
        for (int32_t i = 0; i < tensor->count; i++) {
            if (ppo_is_infinite(ppo->gradient[tensor->offset + i], max_norm)) return tensor->name;
        }
    }
    return NULL;
}

// norm: of the gradient, no smaller than any part of it; squares of floats do not overflow in double.
static Status check_finite(const Learning *learning, const PpoLosses *losses, double norm) {
    const CpuPpo *ppo = learning->ppo;
    PpoTensor tensor;
    const char *name = norm < PPO_NORM_INFINITE ? NULL : infinite_tensor(ppo, learning->step->max_grad_norm, &tensor);
    const char *what = name == NULL ? "the loss's part" : "the gradient of";
    if (name == NULL) name = ppo_infinite_loss(*losses);
    if (name == NULL) return STATUS_OK;
    return host_fail(STATUS_NUMERIC, "%s: update %u, epoch %d, minibatch %d: %s %s is NaN or infinite",
                     ppo->spec.sim.spec->name, ppo->update, learning->epoch, learning->minibatch, what, name);
}

static void set_adam(Learning *learning, double norm) {
    const KernPpoStep *s = learning->step;
    PpoAdamRates rates = {s->learning_rate, s->beta1, s->beta2, s->epsilon, s->max_grad_norm};
    learning->adam = ppo_adam_step(rates, ++learning->ppo->adam_steps, norm);
}

static PpoLosses sum_losses(const CpuPpo *ppo) {
    PpoLosses sum = {0};
    for (int32_t shard = 0; shard < ppo->spec.shards; shard++)
        sum = ppo_losses_fold(sum, ppo->losses[shard]);
    return sum;
}

static Status learn_minibatch(Learning *learning, double *norm) {
    CpuPpo *ppo = learning->ppo;
    learning->advantages =
        fold_moments(ppo->advantage_moments + learning->minibatch, ppo->spec.shards, ppo->spec.minibatches);
    {
        HOST_TRACE_SCOPE(LEARNING, "ppo gradient");
        int64_t groups = ppo->group.own_shards / ppo->group_shards;
        int64_t grain = host_pool_threads(ppo->pool) > 1 ? 1 : groups; // one thread has nobody to share with
        host_pool_for(ppo->pool, groups, grain, group_gradients, learning);
    }
    if (host_stop_requested()) return host_fail(STATUS_STOPPED, "stopped while learning");
    TRY(sum_gradients(ppo));
    HOST_TRACE_SCOPE(LEARNING, "ppo step");
    *norm = sqrt(square_norm(ppo->gradient, ppo->net.shape.params));
    PpoLosses losses = sum_losses(ppo);
    TRY(check_finite(learning, &losses, *norm));
    set_adam(learning, *norm);
    host_pool_for(ppo->pool, (ppo->net.shape.params + PPO_TILE - 1) / PPO_TILE, TILES_GRAIN, adam_tiles, learning);
    ppo_net_pack(&ppo->net, ppo->params, ppo->packed);
    return STATUS_OK;
}

Status cpu_ppo_learn(CpuPpo *ppo, const KernPpoStep *step, KernPpoReport *report) {
    HOST_TRACE_SCOPE(LEARNING, "ppo learn");
    Learning learning = {.ppo = ppo, .step = step};
    double samples = (double)cpu_ppo_shard_samples(&ppo->spec) * ppo->spec.shards;
    for (learning.epoch = 0; learning.epoch < step->epochs; learning.epoch++) {
        memset(ppo->losses, 0, (size_t)ppo->spec.shards * sizeof *ppo->losses);
        {
            HOST_TRACE_SCOPE(LEARNING, "ppo order");
            host_pool_for(ppo->pool, ppo->group.own_shards, 1, order_shards, &learning);
        }
        TRY(cpu_ppo_gather_advantages(ppo));
        for (learning.minibatch = 0; learning.minibatch < ppo->spec.minibatches; learning.minibatch++)
            TRY(learn_minibatch(&learning, &report->grad_norm));
        PpoLosses sum = sum_losses(ppo);
        report->policy_loss = sum.policy / samples;
        report->value_loss = sum.value / samples;
        report->entropy = sum.entropy / samples;
        report->kl = sum.kl / samples;
        report->clip_fraction = sum.clipped / samples;
        report->epochs = learning.epoch + 1;
        if (step->target_kl > 0.0f && report->kl > (double)step->target_kl) break;
    }
    return STATUS_OK;
}
