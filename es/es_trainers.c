#include "es/es_trainers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "es/es_remote.h"
#include "host/trace.h"
#include "kernels/launcher.h"

#define STATE_NAME "the other trainers' state"
enum { ENTRIES_MAX = 2 * KERN_ROWS_MAX, STATE_ROOM = 1 << 24 };

struct EsTrainers {
    HostMember *member;
    HostGroup *group;
    EsEntry *entries; // [entry_count] of consecutive generations, the last one the state's
    int32_t entry_count, entry_room;
    int64_t saved;          // generation of the newest checkpoint
    float *vectors;         // [3][params] parameters and moments after an update
    float *parts;           // [size][3][range] the same, by rank
    size_t parts_room;      // floats
    unsigned char *message; // EsMessage and what follows it
    size_t message_bytes;
};

// The fixed part of what the lead broadcasts; then the normaliser's sums and squares [obs] as float64 and the fitness
// [members]. All trainers of a run are of one build and little-endian.
typedef struct EsMessage {
    int64_t generation; // that is updated
    uint64_t params;    // hash of the parameters before it
    EsReport report;
    double test_mean, test_std; // of the state before it
    int64_t saved;
    double normalizer_count;
} EsMessage;

// ---- entries -------------------------------------------------------------------------------------------------------

static Status reserve_entries(EsTrainers *t, int32_t count) {
    if (count <= t->entry_room) return STATUS_OK;
    EsEntry *entries = realloc(t->entries, (size_t)(2 * count) * sizeof *entries);
    if (entries == NULL) return host_fail(STATUS_MEMORY, "no memory for %d reports", count);
    t->entries = entries;
    t->entry_room = 2 * count;
    return STATUS_OK;
}

static void drop_entries(EsTrainers *t, int32_t count) {
    if (count <= 0) return;
    t->entry_count -= count;
    memmove(t->entries, t->entries + count, (size_t)t->entry_count * sizeof *t->entries);
}

// There is room for one more.
static void add_entry(EsTrainers *t, const EsReport *report) {
    if (t->entry_count == ENTRIES_MAX) drop_entries(t, 1);
    t->entries[t->entry_count++] = (EsEntry){*report, (double)NAN, (double)NAN};
}

const EsEntry *es_trainers_entry(const Es *es, int64_t generation) {
    const EsTrainers *t = es->trainers;
    if (t->entry_count == 0) return NULL;
    int64_t at = generation - t->entries[0].report.generation;
    return at >= 0 && at < t->entry_count ? &t->entries[at] : NULL;
}

// The state's own entry stays: it is what the last generation came to.
static void set_saved(EsTrainers *t, int64_t saved) {
    t->saved = saved;
    if (t->entry_count == 0) return;
    int64_t count = saved - t->entries[0].report.generation + 1;
    drop_entries(t, count < t->entry_count ? (int32_t)count : t->entry_count - 1);
}

static void set_test(EsTrainers *t, double mean, double std) {
    if (t->entry_count == 0) return;
    t->entries[t->entry_count - 1].test_mean = mean;
    t->entries[t->entry_count - 1].test_std = std;
}

void es_trainers_tested(Es *es, double mean, double std) { set_test(es->trainers, mean, std); }

void es_trainers_saved(Es *es, int64_t generation) { set_saved(es->trainers, generation); }

// ---- opening -------------------------------------------------------------------------------------------------------

static size_t message_bytes(const Es *es) {
    return sizeof(EsMessage) + 2 * (size_t)es->spec.policy.size[0] * sizeof(double) +
           (size_t)es->spec.members * sizeof(float);
}

Status es_trainers_open(Es *es, HostMember *member, HostGroup *group) {
    EsTrainers *t = calloc(1, sizeof *t);
    if (t == NULL) return host_fail(STATUS_MEMORY, "no memory for the other trainers");
    es->trainers = t;
    t->member = member;
    t->group = group;
    t->message_bytes = message_bytes(es);
    t->message = malloc(t->message_bytes);
    t->vectors = malloc(3 * (size_t)es->spec.policy.params * sizeof *t->vectors);
    if (t->message == NULL || t->vectors == NULL)
        return host_fail(STATUS_MEMORY, "no memory for %d parameters to be shared", es->spec.policy.params);
    return STATUS_OK;
}

void es_trainers_close(EsTrainers *t) {
    if (t == NULL) return;
    free(t->entries);
    free(t->message);
    free(t->vectors);
    free(t->parts);
    free(t);
}

// ---- a new group: all have the same state --------------------------------------------------------------------------

typedef struct EsStanding {
    int64_t generation;
    uint64_t state;
} EsStanding;

static uint64_t state_hash(const Es *es) {
    HostHash hash = host_hash_start();
    size_t bytes = (size_t)es->spec.policy.params * sizeof *es->params;
    size_t sums_bytes = (size_t)es->spec.policy.size[0] * sizeof *es->normalizer.sum;
    host_hash_add(&hash, es->params, bytes);
    host_hash_add(&hash, es->first, bytes);
    host_hash_add(&hash, es->second, bytes);
    host_hash_add(&hash, &es->normalizer.count, sizeof es->normalizer.count);
    host_hash_add(&hash, es->normalizer.sum, sums_bytes);
    host_hash_add(&hash, es->normalizer.square, sums_bytes);
    return hash.state;
}

// The furthest, of those the first; whether all are the same.
static int find_furthest(const EsStanding *all, int size, bool *is_same) {
    int furthest = 0;
    *is_same = true;
    for (int rank = 1; rank < size; rank++) {
        if (all[rank].generation > all[furthest].generation) furthest = rank;
        if (all[rank].generation != all[0].generation || all[rank].state != all[0].state) *is_same = false;
    }
    return furthest;
}

static Status read_entries(const HostCheckpoint *file, EsTrainers *t) {
    const HostTensor *tensor = host_checkpoint_find(file, "entries");
    int64_t count = tensor != NULL ? tensor->shape[0] : 0;
    if (count > ENTRIES_MAX) return host_fail(STATUS_CORRUPT, STATE_NAME ": %lld reports", (long long)count);
    TRY(reserve_entries(t, (int32_t)count + 1));
    const int64_t shape[] = {count, sizeof *t->entries};
    if (count > 0) TRY(host_checkpoint_read(file, "entries", HOST_DTYPE_U8, 2, shape, t->entries));
    t->entry_count = (int32_t)count;
    return STATUS_OK;
}

static Status take_state(Es *es, const void *bytes, size_t size_bytes) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open_memory(bytes, size_bytes, STATE_NAME, &file));
    Status status = es_load_from(es, file, STATE_NAME);
    if (status == STATUS_OK) status = read_entries(file, es->trainers);
    host_checkpoint_close(file);
    return status;
}

// Broadcasts the root's state; whoever lacks it takes it over.
static Status share_state(Es *es, const HostComm *comm, int root, bool is_lacking) {
    EsTrainers *t = es->trainers;
    void *bytes = NULL;
    size_t size = 0;
    uint64_t told;
    if (comm->rank == root) {
        const HostTensor entries = {"entries", HOST_DTYPE_U8, 2, {t->entry_count, sizeof *t->entries}, t->entries};
        TRY(es_pack(es, &entries, t->entry_count > 0, &bytes, &size));
    }
    told = size;
    Status status = host_group_broadcast(t->group, &told, sizeof told, root);
    if (status == STATUS_OK && comm->rank != root) {
        size_t most = 12 * (size_t)es->spec.policy.params + ENTRIES_MAX * sizeof *t->entries + STATE_ROOM;
        size = (size_t)told;
        bytes = size <= most ? malloc(size) : NULL;
        if (bytes == NULL) status = host_fail(STATUS_MEMORY, "no memory for a state of %zu bytes", size);
    }
    if (status == STATUS_OK) status = host_group_broadcast(t->group, bytes, size, root);
    if (status == STATUS_OK && is_lacking) status = take_state(es, bytes, size);
    free(bytes);
    return status;
}

static Status compare_states(Es *es, const HostComm *comm) {
    HOST_TRACE_SCOPE(HOST, "compare states");
    EsStanding mine = {es->generation, state_hash(es)}, all[HOST_GROUP_MAX];
    TRY(host_group_all_gather(es->trainers->group, &mine, all, sizeof mine));
    bool is_same;
    int root = find_furthest(all, comm->size, &is_same);
    if (is_same) return STATUS_OK;
    bool is_lacking = mine.generation != all[root].generation || mine.state != all[root].state;
    return share_state(es, comm, root, is_lacking);
}

// ---- an update -----------------------------------------------------------------------------------------------------

static void write_message(const Es *es, const EsOutcome *outcome) {
    EsTrainers *t = es->trainers;
    size_t obs = (size_t)es->spec.policy.size[0];
    const EsEntry *last = es_trainers_entry(es, es->generation);
    EsMessage head = {
        .generation = es->generation,
        .params = es_params_hash(es).state,
        .report = outcome->report,
        .test_mean = last != NULL ? last->test_mean : (double)NAN,
        .test_std = last != NULL ? last->test_std : (double)NAN,
        .saved = t->saved,
        .normalizer_count = outcome->normalizer.count,
    };
    unsigned char *at = t->message;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memcpy(at, outcome->normalizer.sum, obs * sizeof(double));
    memcpy(at + obs * sizeof(double), outcome->normalizer.square, obs * sizeof(double));
    memcpy(at + 2 * obs * sizeof(double), es->fitness, (size_t)es->spec.members * sizeof(float));
}

static Status read_message(Es *es, EsOutcome *outcome) {
    EsTrainers *t = es->trainers;
    size_t obs = (size_t)es->spec.policy.size[0];
    EsMessage head;
    memcpy(&head, t->message, sizeof head);
    if (head.generation != es->generation || head.params != es_params_hash(es).state)
        return host_fail(STATUS_CORRUPT, "generation %lld: this trainer's state is not the lead's",
                         (long long)es->generation);
    const unsigned char *at = t->message + sizeof head;
    memset(outcome, 0, sizeof *outcome);
    outcome->report = head.report;
    outcome->normalizer.count = head.normalizer_count;
    memcpy(outcome->normalizer.sum, at, obs * sizeof(double));
    memcpy(outcome->normalizer.square, at + obs * sizeof(double), obs * sizeof(double));
    memcpy(es->fitness, at + 2 * obs * sizeof(double), (size_t)es->spec.members * sizeof(float));
    set_test(t, head.test_mean, head.test_std);
    set_saved(t, head.saved);
    return STATUS_OK;
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

// Everyone's new parameters and moments, in t->vectors. Only what is said with the status has changed besides: the
// kernels' memory, and t->parts.
static Status gather_update(Es *es, const HostComm *comm) {
    EsTrainers *t = es->trainers;
    const KernOps *ops = es->backend->ops;
    int32_t range = range_of(es, comm->size);
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
    int32_t count = range_count(es, range, comm->rank);
    TRY(es_update(es, count > 0 ? comm->rank * range : 0, count));
    TRY(ops->es_read(es->kern, t->vectors, t->vectors + params, t->vectors + 2 * params));
    copy_range(es, range, comm->rank, true);
    TRY(host_group_all_gather(t->group, t->parts + (size_t)comm->rank * part, t->parts, part * sizeof *t->parts));
    for (int rank = 0; rank < comm->size; rank++)
        copy_range(es, range, rank, false);
    return ops->es_write(es->kern, t->vectors, t->vectors + params, t->vectors + 2 * params);
}

static Status share_update(Es *es, const HostComm *comm, EsOutcome *outcome) {
    EsTrainers *t = es->trainers;
    size_t params = (size_t)es->spec.policy.params, bytes = params * sizeof(float);
    if (comm->rank == 0) {
        es_clock(es, outcome);
        write_message(es, outcome);
    }
    TRY(host_group_broadcast(t->group, t->message, t->message_bytes, 0));
    if (comm->rank != 0) TRY(read_message(es, outcome));
    TRY(es_reserve_lost(es, es->lost_count + outcome->report.lost));
    TRY(reserve_entries(t, t->entry_count + 1));
    Status status = gather_update(es, comm);
    if (status != STATUS_OK) { // the state is what it was
        Status restored = es->backend->ops->es_write(es->kern, es->params, es->first, es->second);
        return restored == STATUS_OK ? status : restored;
    }
    memcpy(es->params, t->vectors, bytes);
    memcpy(es->first, t->vectors + params, bytes);
    memcpy(es->second, t->vectors + 2 * params, bytes);
    es_commit(es, outcome);
    add_entry(t, &outcome->report);
    return STATUS_OK;
}

// ---- meetings ------------------------------------------------------------------------------------------------------

enum { JOIN = -1 }; // the label of a meeting that updates nothing

static Status meet(Es *es, const HostMeeting *meeting, EsOutcome *outcome) {
    if (meeting->is_new) TRY(compare_states(es, meeting->comm));
    return meeting->label == es->generation ? share_update(es, meeting->comm, outcome) : STATUS_OK;
}

// The lead's.
static Status hold_meeting(Es *es, int64_t label, EsOutcome *outcome) {
    HostGroup *group = es->trainers->group;
    for (bool is_held = false; !is_held;) {
        HostMeeting meeting;
        TRY(host_group_call(group, label, &meeting));
        TRY(host_group_settle(group, meet(es, &meeting, outcome), &is_held));
    }
    return STATUS_OK;
}

Status es_trainers_join(Es *es) { return hold_meeting(es, JOIN, NULL); }

Status es_trainers_update(Es *es, EsOutcome *outcome) {
    HOST_TRACE_SCOPE(LEARNING, "share an update");
    int64_t generation = es->generation;
    TRY(hold_meeting(es, generation, outcome));
    const EsEntry *last = es_trainers_entry(es, es->generation);
    if (last != NULL) outcome->report = last->report;
    return STATUS_OK;
}

Status es_trainers_follow(Es *es) {
    EsTrainers *t = es->trainers;
    EsServing serving = {0};
    for (;;) {
        HostTask task;
        host_member_hold(t->member, es->generation);
        TRY(host_member_next(t->member, &task));
        if (task.count > 0) {
            TRY(es_remote_serve(es, t->member, &task, &serving));
            continue;
        }
        HostMeeting meeting;
        EsOutcome outcome = {0};
        bool is_called, is_held;
        TRY(host_group_answer(t->group, &meeting, &is_called));
        if (!is_called) return STATUS_OK;
        TRY(es_remote_restore(es, &serving));
        TRY(host_group_settle(t->group, meeting.comm != NULL ? meet(es, &meeting, &outcome) : STATUS_OK, &is_held));
    }
}
