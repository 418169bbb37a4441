// One PPO update on the GPU. Everything is put into the stream: the rollout in slices, then each epoch's order of
// samples and its minibatches, as graphs that are the same in every update. What the kernels find (a NaN, the target
// KL) is in the device's report, and then those that follow do nothing; the host reads it once, at the end. Until then
// it only keeps some launches ahead of the device, which always has work, so that a stop is not behind a whole update.
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/cuda/cuda_ppo.h"

// ---- launches ahead of the device ----------------------------------------------------------------------------------

// Of one update. Events take turns: each is recorded before a launch, and waited for before it is recorded again.
typedef struct Pace {
    const CudaPpo *ppo;
    int launches;
} Pace;

// Before a launch. STATUS_STOPPED where a stop was asked for; the stream is then empty.
static Status pace(Pace *p) {
    const CudaBackend *backend = p->ppo->backend;
    if (backend->host.stop_requested()) {
        CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
        return cuda_fail(backend, STATUS_STOPPED, "stopped during an update");
    }
    cudaEvent_t event = p->ppo->launched[p->launches++ % CUDA_PPO_AHEAD];
    CUDA_TRY(backend, cudaEventSynchronize(event)); // returns at once where it was never recorded
    CUDA_TRY(backend, cudaEventRecord(event, backend->stream));
    return STATUS_OK;
}

// Waits for the device to come to the last launch, with a look for a stop whenever it has done one: a device that is
// slow does not hang. What is left is done soon, and no stop breaks it off.
static Status fall_in(const Pace *p) {
    const CudaBackend *backend = p->ppo->backend;
    CUDA_TRACE_SCOPE(backend, IDLE, "wait for the GPU");
    for (int i = 0; i < CUDA_PPO_AHEAD; i++) {
        CUDA_TRY(backend, cudaEventSynchronize(p->ppo->launched[(p->launches + i) % CUDA_PPO_AHEAD]));
        backend->host.stop_requested();
    }
    return STATUS_OK;
}

// ---- the graph -----------------------------------------------------------------------------------------------------

// Of its own shards, up to their sum.
static Status launch_gradient(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    for (int32_t first = 0; first < args->chunks; first += args->round_chunks) {
        CUDA_TRACE_SCOPE(backend, LEARNING, "ppo gradient");
        CUDA_TRY(backend, cuda_launch_ppo_gradient(args, first, ppo->learn_blocks, backend->stream));
        CUDA_TRY(backend, cuda_launch_ppo_fold(args, first, backend->stream));
    }
    return STATUS_OK;
}

// A minibatch of one alone.
static Status launch_minibatch(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    TRY(launch_gradient(ppo));
    CUDA_TRACE_SCOPE(backend, LEARNING, "ppo step");
    CUDA_TRY(backend, cuda_launch_ppo_descend(&ppo->args, true, backend->stream));
    return STATUS_OK;
}

// Makes ppo->graph. Within the first update, so that a profile of it knows which scopes the nodes were captured in.
static Status capture(CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    CUDA_TRACE_SCOPE(backend, HOST, "ppo capture");
    cudaGraph_t graph = NULL;
    CUDA_TRY(backend, cudaStreamBeginCapture(backend->stream, cudaStreamCaptureModeThreadLocal));
    Status status = STATUS_OK;
    for (int32_t m = 0; m < ppo->graph_minibatches && status == STATUS_OK; m++)
        status = launch_minibatch(ppo);
    // Whatever happened, the stream has to leave its capture.
    cudaError_t error = cudaStreamEndCapture(backend->stream, &graph);
    if (status != STATUS_OK) {
        if (graph != NULL) (void)cudaGraphDestroy(graph);
        return status;
    }
    CUDA_TRY(backend, error);
    error = cudaGraphInstantiate(&ppo->graph, graph, 0);
    (void)cudaGraphDestroy(graph);
    CUDA_TRY(backend, error);
    return STATUS_OK;
}

// ---- what goes to the device ---------------------------------------------------------------------------------------

static Status send(CudaPpo *ppo, const KernPpoStep *step) {
    const CudaBackend *backend = ppo->backend;
    CudaPpoMail *mail = ppo->mail;
    KernPpoState state = {0};
    ppo_statistics_read(&ppo->statistics, ppo->spec.sim.spec->obs, &state);
    mail->step.step = *step;
    mail->step.adam_steps = ppo->adam_steps;
    mail->step.is_probed = backend->host.trace_hooks() != NULL;
    mail->step.reward_scale = ppo_reward_scale(ppo->statistics.discounted);
    backend->host.ppo_normalizer(&ppo->spec, &state, &mail->step.normalizer);
    mail->begin = (CudaPpoReport){.infinite = CUDA_INFINITE_NONE, .infinite_param = UINT32_MAX};
    mail->report = mail->begin;
    CUDA_TRY(backend,
             cudaMemcpyAsync(ppo->d_step, &mail->step, sizeof mail->step, cudaMemcpyHostToDevice, backend->stream));
    CUDA_TRY(backend, cudaMemcpyAsync(ppo->args.report, &mail->begin, sizeof mail->begin, cudaMemcpyHostToDevice,
                                      backend->stream));
    return STATUS_OK;
}

// Of its own envs.
static Status launch_rollout(const CudaPpo *ppo, Pace *p) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    CUDA_TRACE_SCOPE(backend, SIMULATION, "ppo rollout");
    for (int32_t begin = 0; begin < args->steps;) {
        int32_t left = args->steps - begin, end = begin + (left < ppo->slice_steps ? left : ppo->slice_steps);
        TRY(pace(p));
        CUDA_TRY(backend, cuda_launch_ppo_rollout(ppo->sim, args, begin, end, ppo->rollout_blocks, backend->stream));
        begin = end;
    }
    CUDA_TRY(backend, cuda_launch_ppo_advantages(args, backend->stream));
    return STATUS_OK;
}

// What became infinite first, in all trainers' rollouts.
static Status check_rollout(const CudaPpo *ppo, uint32_t update) {
    const SimSpec *sim = ppo->spec.sim.spec;
    uint64_t seen = ppo->mail->report.infinite;
    const char *field = seen == CUDA_INFINITE_NONE ? NULL : cuda_field_name(sim, (int)(seen & CUDA_FIELD_REWARD));
    PpoInfinite own =
        ppo_infinite((int64_t)(seen >> (32 + CUDA_FIELD_BITS)), (int64_t)(seen >> CUDA_FIELD_BITS & UINT32_MAX), field);
    return ppo->backend->host.ppo_group_infinite(&ppo->group, &ppo->spec, update, &own);
}

// Alone, what is infinite shows at the update's end.
static Status roll_out(const CudaPpo *ppo, Pace *p, uint32_t update) {
    const CudaBackend *backend = ppo->backend;
    if (ppo->args.own_shards > 0) TRY(launch_rollout(ppo, p));
    if (ppo_group_is_alone(&ppo->group)) {
        CUDA_TRY(backend, cuda_launch_ppo_outcome(&ppo->args, backend->stream));
        return STATUS_OK;
    }
    TRY(fall_in(p));
    TRY(cuda_ppo_fetch_report(ppo));
    return check_rollout(ppo, update);
}

// The order of an epoch's samples, and the scales of their advantages.
static Status order(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    bool is_alone = ppo_group_is_alone(&ppo->group);
    if (args->own_shards > 0) CUDA_TRY(backend, cuda_launch_ppo_order(args, backend->stream));
    if (!is_alone) TRY(cuda_ppo_gather_advantages(ppo));
    CUDA_TRY(backend, cuda_launch_ppo_scales(args, !is_alone, backend->stream));
    return STATUS_OK;
}

// A minibatch of several trainers.
static Status share_minibatch(const CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    const CudaPpoArgs *args = &ppo->args;
    if (args->own_shards > 0) {
        TRY(launch_gradient(ppo));
        CUDA_TRY(backend, cuda_launch_ppo_losses(args, backend->stream));
    }
    TRY(cuda_ppo_gather_gradients(ppo));
    CUDA_TRACE_SCOPE(backend, LEARNING, "ppo step");
    CUDA_TRY(backend, cuda_launch_ppo_fold_trainers(args, ppo->group.sharers, backend->stream));
    CUDA_TRY(backend, cuda_launch_ppo_descend(args, false, backend->stream));
    return STATUS_OK;
}

static Status learn(const CudaPpo *ppo, Pace *p, int32_t epochs) {
    const CudaBackend *backend = ppo->backend;
    bool is_alone = ppo_group_is_alone(&ppo->group);
    CUDA_TRACE_SCOPE(backend, LEARNING, "ppo learn");
    for (int32_t epoch = 0; epoch < epochs; epoch++) {
        TRY(order(ppo));
        for (int32_t m = 0; m < ppo->args.minibatches; m += is_alone ? ppo->graph_minibatches : 1) {
            if (cuda_ppo_has_ended(ppo)) return STATUS_OK;
            TRY(pace(p));
            if (is_alone) CUDA_TRY(backend, cudaGraphLaunch(ppo->graph, backend->stream));
            if (!is_alone) TRY(share_minibatch(ppo));
        }
    }
    return STATUS_OK;
}

// ---- what comes back -----------------------------------------------------------------------------------------------

static Status fail_gradient(const CudaPpo *ppo, uint32_t update) {
    const CudaPpoReport *r = &ppo->mail->report;
    const char *what = "the loss's part", *name = NULL;
    PpoTensor tensor = {0};
    if (r->end == CUDA_PPO_INFINITE_GRADIENT) {
        what = "the gradient of";
        for (int index = 0; ppo->backend->host.ppo_tensor(&ppo->spec.policy, index, &tensor); index++) {
            if (r->infinite_param < (uint32_t)(tensor.offset + tensor.count)) break;
        }
        name = tensor.name;
    } else {
        name = ppo_infinite_loss(r->losses);
    }
    return cuda_fail(ppo->backend, STATUS_NUMERIC, "%s: update %u, epoch %d, minibatch %d: %s %s is NaN or infinite",
                     ppo->spec.sim.spec->name, update, r->epoch, r->minibatch, what, name);
}

static Status check_finite(const CudaPpo *ppo, uint32_t update) {
    const CudaPpoReport *r = &ppo->mail->report;
    if (ppo_group_is_alone(&ppo->group)) TRY(check_rollout(ppo, update));
    if (r->end == CUDA_PPO_INFINITE_GRADIENT || r->end == CUDA_PPO_INFINITE_LOSS) return fail_gradient(ppo, update);
    return STATUS_OK;
}

Status cuda_ppo_fetch_report(const CudaPpo *ppo) {
    CUDA_TRACE_SCOPE(ppo->backend, IDLE, "wait for the GPU");
    return cuda_download(ppo->backend, &ppo->mail->report, ppo->args.report, sizeof ppo->mail->report);
}

// What the rollout's time consists of is known only now: its scope is entered once more.
static void tell_split(const CudaPpo *ppo) {
    CUDA_TRACE_SCOPE(ppo->backend, SIMULATION, "ppo rollout");
    ppo->backend->host.trace_split(ppo->mail->report.ticks.of);
}

static Status take_report(CudaPpo *ppo, uint32_t update, KernPpoReport *report) {
    const CudaPpoReport *r = &ppo->mail->report;
    double samples = (double)ppo->args.envs * (double)ppo->args.steps;
    *report = (KernPpoReport){
        .policy_loss = r->losses.policy / samples,
        .value_loss = r->losses.value / samples,
        .entropy = r->losses.entropy / samples,
        .kl = r->losses.kl / samples,
        .clip_fraction = r->losses.clipped / samples,
        .explained_variance = ppo_explained_variance(r->outcome),
        .grad_norm = r->grad_norm,
        .epochs = r->epoch,
        .episodes = r->outcome.episodes,
        .episode_steps = r->outcome.episode_steps,
        .episode_return = r->outcome.episode_return,
    };
    ppo->adam_steps += r->adam_steps;
    const SimSpec *sim = ppo->spec.sim.spec;
    const char *infinite = ppo_statistics_add(&ppo->statistics, sim->obs, r->obs, r->outcome.discounted);
    if (infinite == NULL) return STATUS_OK;
    return cuda_fail(ppo->backend, STATUS_NUMERIC, "%s: update %u: %s is NaN or infinite", sim->name, update, infinite);
}

Status cuda_ppo_update(KernPpo *base, const KernPpoStep *step, KernPpoReport *report) {
    CudaPpo *ppo = (CudaPpo *)base;
    const CudaBackend *backend = ppo->backend;
    memset(report, 0, sizeof *report);
    TRY(cuda_enter(backend));
    bool is_alone = ppo_group_is_alone(&ppo->group);
    if (is_alone && ppo->graph == NULL) TRY(capture(ppo));
    TRY(send(ppo, step));
    Pace p = {.ppo = ppo};
    TRY(roll_out(ppo, &p, step->update));
    TRY(learn(ppo, &p, step->epochs));
    TRY(fall_in(&p));
    TRY(cuda_ppo_fetch_report(ppo));
    if (ppo->mail->step.is_probed) tell_split(ppo);
    TRY(check_finite(ppo, step->update));
    if (!is_alone) TRY(cuda_ppo_gather_statistics(ppo));
    TRY(take_report(ppo, step->update, report));
    return is_alone ? STATUS_OK : cuda_ppo_gather_envs(ppo);
}
