#include "es/es_remote.h"

#include <stdlib.h>
#include <string.h>

struct EsRemote {
    HostMember *member;
    HostBlock block;
    // Results of a lease that this process has computed, before they are taken in.
    KernEpisode *episodes; // [members x episodes]
    float *sums;           // [members x episodes][2][obs]
    unsigned char *payload;
    size_t payload_bytes;
};

enum RemoteItem { REMOTE_EPISODES, REMOTE_SUMS, REMOTE_PAYLOAD };

static size_t payload_bytes(const Es *es) {
    return sizeof(EsPayload) + ((size_t)es->spec.policy.params + 2 * (size_t)es->spec.policy.size[0]) * sizeof(float);
}

static void record_sizes(const Es *es, int32_t episodes, size_t bytes[HOST_MEMBER_RECORDS]) {
    bytes[0] = (size_t)episodes * sizeof(KernEpisode);
    bytes[1] = es->config.normalize ? (size_t)episodes * 2 * (size_t)es->spec.policy.size[0] * sizeof(float) : 0;
}

static Status open_buffers(const Es *es, EsRemote *remote) {
    HostPlan plan;
    host_plan_init(&plan);
    size_t members = (size_t)es->spec.members, bytes[HOST_MEMBER_RECORDS];
    record_sizes(es, es->spec.episodes, bytes);
    remote->payload_bytes = payload_bytes(es);
    TRY(host_plan_add(&plan, "episode results of a lease", members, bytes[0], NULL));
    TRY(host_plan_add(&plan, "normaliser sums of a lease", members, bytes[1], NULL));
    TRY(host_plan_add(&plan, "parameters to be shared", remote->payload_bytes, 1, NULL));
    HostMemory memory = host_memory_cpu();
    TRY(host_plan_alloc(&plan, &memory, &remote->block));
    remote->episodes = host_block_at(&remote->block, &plan, REMOTE_EPISODES);
    remote->sums = es->config.normalize ? host_block_at(&remote->block, &plan, REMOTE_SUMS) : NULL;
    remote->payload = host_block_at(&remote->block, &plan, REMOTE_PAYLOAD);
    return STATUS_OK;
}

Status es_remote_open(Es *es, HostMember *member) {
    EsRemote *remote = calloc(1, sizeof *remote);
    if (remote == NULL) return host_fail(STATUS_MEMORY, "no memory for the other workers' results");
    remote->member = member;
    es->remote = remote;
    return open_buffers(es, remote);
}

void es_remote_close(EsRemote *remote) {
    if (remote == NULL) return;
    host_block_free(&remote->block);
    free(remote);
}

static void write_payload(const Es *es, const KernEsJob *job, const KernNormalizer *normalizer, unsigned char *at) {
    size_t params = (size_t)es->spec.policy.params, obs = (size_t)es->spec.policy.size[0];
    EsPayload head = {job->purpose, job->generation, job->sigma, job->episodes, (int32_t)params, (int32_t)obs};
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memcpy(at, normalizer->mean, obs * sizeof(float));
    memcpy(at + obs * sizeof(float), normalizer->scale, obs * sizeof(float));
    memcpy(at + 2 * obs * sizeof(float), es->params, params * sizeof(float));
}

// Puts the payload's parameters in place; job and normaliser are what a lease needs besides. The state is as it was,
// but for the kernels' copy of the parameters.
static Status read_payload(Es *es, const HostTask *task, KernEsJob *job, KernNormalizer *normalizer) {
    size_t obs = (size_t)es->spec.policy.size[0];
    EsPayload head;
    if (task->payload_bytes != payload_bytes(es))
        return host_fail(STATUS_CORRUPT, "parameters of %zu bytes, and this policy has %zu", task->payload_bytes,
                         payload_bytes(es));
    memcpy(&head, task->payload, sizeof head);
    if (head.params != es->spec.policy.params || head.obs != es->spec.policy.size[0] ||
        head.episodes != es->spec.episodes)
        return host_fail(STATUS_CORRUPT, "parameters of another policy");
    const unsigned char *at = task->payload + sizeof head;
    memcpy(normalizer->mean, at, obs * sizeof(float));
    memcpy(normalizer->scale, at + obs * sizeof(float), obs * sizeof(float));
    *job = (KernEsJob){
        .purpose = head.purpose, .generation = head.generation, .sigma = head.sigma, .episodes = head.episodes};
    // Payloads are aligned: they lie in memory of their own, and their head is a multiple of 4 bytes.
    const float *params = (const float *)(const void *)(at + 2 * obs * sizeof(float));
    return es->backend->ops->es_write(es->kern, params, es->first, es->second);
}

// Evaluates a lease's members into the buffers and hands them over.
static Status compute(Es *es, HostMember *member, const HostTask *task, KernEsJob job, const KernNormalizer *normalizer,
                      KernEpisode *episodes, float *sums) {
    size_t bytes[HOST_MEMBER_RECORDS];
    const void *records[HOST_MEMBER_RECORDS] = {episodes, sums};
    job.first = task->first;
    job.count = task->count;
    record_sizes(es, job.episodes, bytes);
    TRY(es->backend->ops->es_evaluate(es->kern, &job, normalizer, episodes, sums));
    return host_member_finish(member, task, records, bytes);
}

// ---- the trainer ---------------------------------------------------------------------------------------------------

static Status begin_round(Es *es, const KernEsJob *job, const KernNormalizer *normalizer) {
    EsRemote *remote = es->remote;
    write_payload(es, job, normalizer, remote->payload);
    HostRound round = {
        .label = job->generation,
        .count = job->count,
        .grain = 2, // a pair shares its noise
        .payload = remote->payload,
        .payload_bytes = remote->payload_bytes,
        .records = {(unsigned char *)es->episodes, (unsigned char *)es->sums},
    };
    record_sizes(es, job->episodes, round.record_bytes);
    return host_member_begin(remote->member, &round);
}

static void clear_lost(Es *es, const int32_t *lost, int32_t lost_count) {
    size_t bytes[HOST_MEMBER_RECORDS];
    record_sizes(es, es->spec.episodes, bytes);
    for (int32_t i = 0; i < lost_count; i++) {
        memset((unsigned char *)es->episodes + (size_t)lost[i] * bytes[0], 0, bytes[0]);
        if (es->sums != NULL) memset((unsigned char *)es->sums + (size_t)lost[i] * bytes[1], 0, bytes[1]);
    }
}

// From the first lease to the round's end.
static Status run_round(Es *es, const KernEsJob *job, const KernNormalizer *normalizer) {
    EsRemote *remote = es->remote;
    for (;;) {
        HostTask task;
        TRY(host_member_next(remote->member, &task));
        if (task.count == 0) return STATUS_OK;
        Status status = compute(es, remote->member, &task, *job, normalizer, remote->episodes, remote->sums);
        if (status == STATUS_STOPPED) status = host_member_broken_off(remote->member, &task);
        if (status == STATUS_NUMERIC) status = host_member_reject(remote->member, &task);
        TRY(status);
    }
}

Status es_remote_evaluate(Es *es, const KernEsJob *job, const KernNormalizer *normalizer, const int32_t **lost,
                          int32_t *lost_count) {
    EsRemote *remote = es->remote;
    const KernOps *ops = es->backend->ops;
    *lost_count = 0;
    if (host_member_is_alone(remote->member, job->generation))
        return ops->es_evaluate(es->kern, job, normalizer, es->episodes, es->sums);
    TRY(begin_round(es, job, normalizer));
    Status status = run_round(es, job, normalizer);
    host_member_end(remote->member);
    TRY(status);
    // Where some members could not be computed, a NaN, all are computed here, and what is wrong is said as if there
    // were no others.
    if (host_member_is_refuted(remote->member))
        return ops->es_evaluate(es->kern, job, normalizer, es->episodes, es->sums);
    *lost = host_member_lost(remote->member, lost_count);
    if (*lost_count == job->count)
        return host_fail(STATUS_SYSTEM, "generation %u: every member ends the workers that evaluate it",
                         job->generation);
    clear_lost(es, *lost, *lost_count);
    return STATUS_OK;
}

// ---- an evaluator --------------------------------------------------------------------------------------------------

Status es_remote_restore(Es *es, EsServing *serving) {
    if (serving->round == 0) return STATUS_OK;
    *serving = (EsServing){0};
    return es->backend->ops->es_write(es->kern, es->params, es->first, es->second);
}

static Status serve(Es *es, HostMember *member, const HostTask *task, EsServing *serving) {
    if (task->payload == NULL) {
        TRY(es_remote_restore(es, serving));
        es_job(es, &serving->job, &serving->normalizer);
    } else if (serving->session != task->session || serving->round != task->round) {
        serving->session = task->session;
        serving->round = task->round;
        TRY(read_payload(es, task, &serving->job, &serving->normalizer));
    }
    if (task->count > es->spec.members || task->first > es->spec.members - task->count)
        return host_fail(STATUS_CORRUPT, "members %d and %d more, of %d", task->first, task->count, es->spec.members);
    return compute(es, member, task, serving->job, &serving->normalizer, es->episodes, es->sums);
}

Status es_remote_serve(Es *es, HostMember *member, const HostTask *task, EsServing *serving) {
    Status status = serve(es, member, task, serving);
    if (status == STATUS_STOPPED) status = host_member_broken_off(member, task);
    if (status == STATUS_NUMERIC) status = host_member_reject(member, task);
    return status;
}

Status es_remote_evaluator(Es *es, HostMember *member) {
    EsServing serving = {0};
    for (;;) {
        HostTask task;
        TRY(host_member_next(member, &task));
        if (task.count == 0) return STATUS_OK;
        TRY(es_remote_serve(es, member, &task, &serving));
    }
}
