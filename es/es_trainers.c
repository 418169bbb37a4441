#include "es/es_trainers.h"

#include <stdlib.h>
#include <string.h>

#include "es/es_remote.h"
#include "host/clock.h"
#include "host/trace.h"

struct EsTrainers {
    KernTrainers *trainers;
    float *vectors;         // [3][params] parameters and moments after an update
    float *parts;           // [size][3][range] the same, by rank
    size_t parts_room;      // floats
    unsigned char *message; // EsMessage and what follows it
    size_t message_bytes;
};

// The fixed part of what the lead broadcasts; then the normaliser's sums and squares [obs] as float64 and the fitness
// [members]. All trainers of a run are of one build and little-endian.
typedef struct EsMessage {
    EsReport report;
    double normalizer_count;
} EsMessage;

static size_t message_bytes(const Es *es) {
    return sizeof(EsMessage) + 2 * (size_t)es->spec.policy.size[0] * sizeof(double) +
           (size_t)es->spec.members * sizeof(float);
}

Status es_trainers_open(Es *es, KernTrainers *trainers) {
    EsTrainers *t = calloc(1, sizeof *t);
    if (t == NULL) return host_fail(STATUS_MEMORY, "no memory for the other trainers");
    es->trainers = t;
    t->trainers = trainers;
    t->message_bytes = message_bytes(es);
    t->message = malloc(t->message_bytes);
    t->vectors = malloc(3 * (size_t)es->spec.policy.params * sizeof *t->vectors);
    if (t->message == NULL || t->vectors == NULL)
        return host_fail(STATUS_MEMORY, "no memory for %d parameters to be shared", es->spec.policy.params);
    return STATUS_OK;
}

void es_trainers_close(EsTrainers *t) {
    if (t == NULL) return;
    free(t->message);
    free(t->vectors);
    free(t->parts);
    free(t);
}

uint64_t es_state_hash(const Es *es) {
    HostHash hash = host_hash_start();
    size_t bytes = (size_t)es->spec.policy.params * sizeof *es->params;
    size_t sums_bytes = (size_t)es->spec.policy.size[0] * sizeof *es->normalizer.sum;
    host_hash_add(&hash, es->params, bytes);
    host_hash_add(&hash, es->first, bytes);
    host_hash_add(&hash, es->second, bytes);
    host_hash_add(&hash, &es->normalizer.count, sizeof es->normalizer.count);
    host_hash_add(&hash, es->normalizer.sum, sums_bytes);
    host_hash_add(&hash, es->normalizer.square, sums_bytes);
    if (es->best.params == NULL) return hash.state;
    host_hash_add(&hash, &es->best.fitness, sizeof es->best.fitness);
    host_hash_add(&hash, es->best.at, sizeof es->best.at);
    host_hash_add(&hash, es->best.params, bytes);
    return hash.state;
}

// ---- an update -----------------------------------------------------------------------------------------------------

static void write_message(const Es *es, const EsOutcome *outcome) {
    EsTrainers *t = es->trainers;
    size_t obs = (size_t)es->spec.policy.size[0];
    EsMessage head = {outcome->report, outcome->normalizer.count};
    unsigned char *at = t->message;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memcpy(at, outcome->normalizer.sum, obs * sizeof(double));
    memcpy(at + obs * sizeof(double), outcome->normalizer.square, obs * sizeof(double));
    memcpy(at + 2 * obs * sizeof(double), es->fitness, (size_t)es->spec.members * sizeof(float));
}

static void read_message(Es *es, EsOutcome *outcome) {
    size_t obs = (size_t)es->spec.policy.size[0];
    EsMessage head;
    const unsigned char *at = es->trainers->message;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    memset(outcome, 0, sizeof *outcome);
    outcome->report = head.report;
    outcome->normalizer.count = head.normalizer_count;
    memcpy(outcome->normalizer.sum, at, obs * sizeof(double));
    memcpy(outcome->normalizer.square, at + obs * sizeof(double), obs * sizeof(double));
    memcpy(es->fitness, at + 2 * obs * sizeof(double), (size_t)es->spec.members * sizeof(float));
}

// Parameters that each trainer updates; the last ones may have fewer, or none.
static int32_t range_of(const Es *es, int size) {
    int32_t units = (es->spec.policy.params + KERN_ES_UNIT - 1) / KERN_ES_UNIT;
    return (units + size - 1) / size * KERN_ES_UNIT;
}

static int32_t range_count(const Es *es, int32_t range, int rank) {
    int64_t left = (int64_t)es->spec.policy.params - (int64_t)rank * range;
    return left < 0 ? 0 : left < range ? (int32_t)left : range;
}

// Copies the rank's range between [3][params] and its part.
static void copy_range(const Es *es, int32_t range, int rank, bool into_part) {
    EsTrainers *t = es->trainers;
    size_t count = (size_t)range_count(es, range, rank), first = (size_t)rank * (size_t)range;
    for (size_t k = 0; k < 3 && count > 0; k++) {
        float *vector = t->vectors + k * (size_t)es->spec.policy.params + first;
        float *part = t->parts + ((size_t)rank * 3 + k) * (size_t)range;
        memcpy(into_part ? part : vector, into_part ? vector : part, count * sizeof *part);
    }
}

// All ranges through host memory.
static Status gather_ranges(Es *es, HostComm *comm, int32_t range) {
    EsTrainers *t = es->trainers;
    const KernOps *ops = es->backend->ops;
    size_t params = (size_t)es->spec.policy.params, part = 3 * (size_t)range;
    if (part * (size_t)comm->size > t->parts_room) {
        free(t->parts);
        t->parts_room = part * (size_t)comm->size;
        t->parts = calloc(t->parts_room, sizeof *t->parts);
        if (t->parts == NULL) {
            t->parts_room = 0;
            return host_fail(STATUS_MEMORY, "no memory for %zu parameters to be shared", part);
        }
    }
    TRY(ops->es_read(es->kern, t->vectors, t->vectors + params, t->vectors + 2 * params));
    copy_range(es, range, comm->rank, true);
    TRY(host_comm_all_gather(comm, t->parts + (size_t)comm->rank * part, t->parts, part * sizeof *t->parts,
                             host_now_s() + HOST_COMM_PATIENCE_S));
    for (int rank = 0; rank < comm->size; rank++)
        copy_range(es, range, rank, false);
    return ops->es_write(es->kern, t->vectors, t->vectors + params, t->vectors + 2 * params);
}

// Everyone's new parameters and moments, in t->vectors. Only what is said with the status has changed besides: the
// kernels' memory, and t->parts.
static Status gather_update(Es *es, HostComm *comm) {
    EsTrainers *t = es->trainers;
    const KernOps *ops = es->backend->ops;
    size_t params = (size_t)es->spec.policy.params;
    int32_t range = range_of(es, comm->size), count = range_count(es, range, comm->rank);
    TRY(es_update(es, count > 0 ? comm->rank * range : 0, count));
    if (!comm->takes_device) return gather_ranges(es, comm, range);
    TRY(ops->es_gather(es->kern, comm, range));
    return ops->es_read(es->kern, t->vectors, t->vectors + params, t->vectors + 2 * params);
}

static Status share_update(Es *es, const HostMeeting *meeting, EsOutcome *outcome) {
    EsTrainers *t = es->trainers;
    HostComm *comm = meeting->comm;
    size_t params = (size_t)es->spec.policy.params, bytes = params * sizeof(float);
    TRY(kern_trainers_tell(t->trainers, meeting));
    if (comm->rank == 0) {
        es_clock(es, outcome);
        write_message(es, outcome);
    }
    TRY(host_comm_broadcast(comm, t->message, t->message_bytes, 0, host_now_s() + HOST_COMM_PATIENCE_S));
    if (comm->rank != 0) read_message(es, outcome);
    TRY(es_reserve_lost(es, es->lost_count + outcome->report.lost));
    TRY(kern_trainers_reserve(t->trainers));
    Status status = gather_update(es, comm);
    if (status != STATUS_OK) { // the state is what it was
        Status restored = es->backend->ops->es_write(es->kern, es->params, es->first, es->second);
        return restored == STATUS_OK ? status : restored;
    }
    memcpy(es->params, t->vectors, bytes);
    memcpy(es->first, t->vectors + params, bytes);
    memcpy(es->second, t->vectors + 2 * params, bytes);
    es_commit(es, outcome);
    kern_trainers_add(t->trainers, &outcome->report);
    return STATUS_OK;
}

// ---- meetings ------------------------------------------------------------------------------------------------------

enum { JOIN = -1 }; // the label of a meeting that updates nothing

typedef struct Meeting {
    Es *es;
    EsOutcome *outcome;
} Meeting;

static Status meet(void *context, const HostMeeting *meeting) {
    const Meeting *m = context;
    TRY(kern_trainers_compare(m->es->trainers->trainers, meeting));
    return meeting->label == m->es->generation ? share_update(m->es, meeting, m->outcome) : STATUS_OK;
}

Status es_trainers_join(Es *es) {
    Meeting m = {es, NULL};
    return kern_trainers_meet(es->trainers->trainers, JOIN, meet, &m);
}

Status es_trainers_update(Es *es, EsOutcome *outcome) {
    HOST_TRACE_SCOPE(LEARNING, "share an update");
    Meeting m = {es, outcome};
    TRY(kern_trainers_meet(es->trainers->trainers, es->generation, meet, &m));
    const EsReport *last = kern_trainers_report(es->trainers->trainers, es->generation, NULL);
    if (last != NULL) outcome->report = *last;
    return STATUS_OK;
}

Status es_trainers_follow(Es *es, HostMember *member) {
    EsServing serving = {0};
    for (bool is_called = true; is_called;) {
        HostTask task;
        host_member_hold(member, es->generation);
        TRY(host_member_next(member, &task));
        if (task.count > 0) {
            TRY(es_remote_serve(es, member, &task, &serving));
            continue;
        }
        EsOutcome outcome = {0};
        Meeting m = {es, &outcome};
        TRY(es_remote_restore(es, &serving));
        TRY(kern_trainers_answer(es->trainers->trainers, meet, &m, &is_called));
    }
    return STATUS_OK;
}
