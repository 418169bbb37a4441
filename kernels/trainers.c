#include "kernels/trainers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"
#include "host/trace.h"
#include "kernels/launcher.h"

#define STATE_NAME      "the other trainers' state"
#define STATE_BYTES_MAX ((uint64_t)1 << 36) // more than any state has
enum { REPORTS_MAX = 2 * KERN_ROWS_MAX };

// Consecutive steps, the last one the state's.
struct KernTrainers {
    KernTrainersOptions options;
    unsigned char *reports; // [room][report_bytes]
    KernTested *tested;     // [room]
    int32_t count, room;
    int64_t saved; // the step of the newest checkpoint
};

// What the lead tells the others before a step. All trainers of a run are of one build and little-endian.
typedef struct Standing {
    int64_t done;
    uint64_t hash; // of the state, or of its parameters
    KernTested tested;
    int64_t saved;
} Standing;

static int64_t done(const KernTrainers *t) { return t->options.done(t->options.state); }

static unsigned char *report_at(const KernTrainers *t, int32_t at) {
    return t->reports + (size_t)at * t->options.report_bytes;
}

// ---- reports -------------------------------------------------------------------------------------------------------

static Status reserve(KernTrainers *t, int32_t count) {
    if (count <= t->room) return STATUS_OK;
    unsigned char *reports = realloc(t->reports, 2 * (size_t)count * t->options.report_bytes);
    if (reports != NULL) t->reports = reports;
    KernTested *tested = realloc(t->tested, 2 * (size_t)count * sizeof *tested);
    if (tested != NULL) t->tested = tested;
    if (reports == NULL || tested == NULL) return host_fail(STATUS_MEMORY, "no memory for %d reports", count);
    t->room = 2 * count;
    return STATUS_OK;
}

static void drop(KernTrainers *t, int32_t count) {
    if (count <= 0) return;
    t->count -= count;
    memmove(t->reports, report_at(t, count), (size_t)t->count * t->options.report_bytes);
    memmove(t->tested, t->tested + count, (size_t)t->count * sizeof *t->tested);
}

Status kern_trainers_reserve(KernTrainers *t) { return reserve(t, t->count + 1); }

void kern_trainers_add(KernTrainers *t, const void *report) {
    if (t->count == REPORTS_MAX) drop(t, 1);
    memcpy(report_at(t, t->count), report, t->options.report_bytes);
    t->tested[t->count++] = (KernTested){(double)NAN, (double)NAN};
}

const void *kern_trainers_report(const KernTrainers *t, int64_t step, KernTested *tested) {
    int64_t at = step - (done(t) - t->count + 1);
    if (at < 0 || at >= t->count) return NULL;
    if (tested != NULL) *tested = t->tested[at];
    return report_at(t, (int32_t)at);
}

void kern_trainers_tested(KernTrainers *t, KernTested tested) {
    if (t->count > 0) t->tested[t->count - 1] = tested;
}

// The state's own report stays: it is what the last step came to.
void kern_trainers_saved(KernTrainers *t, int64_t step) {
    t->saved = step;
    int64_t count = step - (done(t) - t->count);
    if (t->count > 0) drop(t, count < t->count ? (int32_t)count : t->count - 1);
}

// ---- opening -------------------------------------------------------------------------------------------------------

Status kern_trainers_open(const KernTrainersOptions *options, KernTrainers **trainers) {
    *trainers = calloc(1, sizeof **trainers);
    if (*trainers == NULL) return host_fail(STATUS_MEMORY, "no memory for the other trainers");
    (*trainers)->options = *options;
    (*trainers)->saved = options->done(options->state);
    return STATUS_OK;
}

void kern_trainers_close(KernTrainers *t) {
    if (t == NULL) return;
    free(t->reports);
    free(t->tested);
    free(t);
}

// ---- a new group: all have the same state --------------------------------------------------------------------------

static Standing standing_of(const KernTrainers *t, uint64_t (*hash)(const void *state)) {
    Standing mine = {.done = done(t), .hash = hash(t->options.state), .saved = t->saved};
    mine.tested = t->count > 0 ? t->tested[t->count - 1] : (KernTested){(double)NAN, (double)NAN};
    return mine;
}

static bool is_same(const Standing *a, const Standing *b) { return a->done == b->done && a->hash == b->hash; }

static Status read_reports(KernTrainers *t, const HostCheckpoint *file) {
    const HostTensor *tensor = host_checkpoint_find(file, "reports");
    int64_t count = tensor != NULL ? tensor->shape[0] : 0;
    if (count > REPORTS_MAX) return host_fail(STATUS_CORRUPT, STATE_NAME ": %lld reports", (long long)count);
    TRY(reserve(t, (int32_t)count + 1));
    const int64_t reports_shape[] = {count, (int64_t)t->options.report_bytes}, tested_shape[] = {count, 2};
    t->count = 0;
    if (count == 0) return STATUS_OK;
    TRY(host_checkpoint_read(file, "reports", HOST_DTYPE_U8, 2, reports_shape, t->reports));
    TRY(host_checkpoint_read(file, "tested", HOST_DTYPE_F64, 2, tested_shape, t->tested));
    t->count = (int32_t)count;
    return STATUS_OK;
}

static Status take_state(KernTrainers *t, const void *bytes, size_t size_bytes) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open_memory(bytes, size_bytes, STATE_NAME, &file));
    Status status = t->options.take(t->options.state, file, STATE_NAME);
    if (status == STATUS_OK) status = read_reports(t, file);
    host_checkpoint_close(file);
    return status;
}

// Broadcasts the root's state; whoever lacks it takes it over.
static Status share_state(KernTrainers *t, HostComm *comm, int root, bool is_lacking) {
    double deadline_s = host_now_s() + HOST_COMM_PATIENCE_S;
    void *bytes = NULL;
    size_t size = 0;
    if (comm->rank == root) {
        const HostTensor more[] = {
            {"reports", HOST_DTYPE_U8, 2, {t->count, (int64_t)t->options.report_bytes}, t->reports},
            {"tested", HOST_DTYPE_F64, 2, {t->count, 2}, t->tested}};
        TRY(t->options.pack(t->options.state, more, t->count > 0 ? 2 : 0, &bytes, &size));
    }
    uint64_t told = size;
    Status status = host_comm_broadcast(comm, &told, sizeof told, root, deadline_s);
    if (status == STATUS_OK && told > STATE_BYTES_MAX)
        status = host_fail(STATUS_CORRUPT, STATE_NAME " is of %llu bytes", (unsigned long long)told);
    if (status == STATUS_OK && comm->rank != root) {
        size = (size_t)told;
        bytes = malloc(size);
        if (bytes == NULL) status = host_fail(STATUS_MEMORY, "no memory for a state of %zu bytes", size);
    }
    if (status == STATUS_OK) status = host_comm_broadcast(comm, bytes, size, root, deadline_s);
    if (status == STATUS_OK && is_lacking) status = take_state(t, bytes, size);
    free(bytes);
    return status;
}

Status kern_trainers_compare(KernTrainers *t, const HostMeeting *meeting) {
    if (!meeting->is_new) return STATUS_OK;
    HOST_TRACE_SCOPE(HOST, "compare states");
    Standing mine = standing_of(t, t->options.hash), all[HOST_GROUP_MAX];
    TRY(host_comm_all_gather(meeting->comm, &mine, all, sizeof mine, host_now_s() + HOST_COMM_PATIENCE_S));
    int root = 0;
    bool all_same = true;
    for (int rank = 1; rank < meeting->comm->size; rank++) {
        if (all[rank].done > all[root].done) root = rank;
        all_same = all_same && is_same(&all[rank], &all[0]);
    }
    return all_same ? STATUS_OK : share_state(t, meeting->comm, root, !is_same(&mine, &all[root]));
}

Status kern_trainers_tell(KernTrainers *t, const HostMeeting *meeting) {
    Standing mine = standing_of(t, t->options.params_hash), lead = mine;
    TRY(host_comm_broadcast(meeting->comm, &lead, sizeof lead, 0, host_now_s() + HOST_COMM_PATIENCE_S));
    if (!is_same(&mine, &lead))
        return host_fail(STATUS_CORRUPT, "step %lld: this trainer's state is not the lead's", (long long)mine.done);
    if (meeting->comm->rank == 0) return STATUS_OK;
    kern_trainers_tested(t, lead.tested);
    kern_trainers_saved(t, lead.saved);
    return STATUS_OK;
}

// ---- meetings ------------------------------------------------------------------------------------------------------

Status kern_trainers_meet(KernTrainers *t, int64_t label, KernTrainersMeet *meet, void *context) {
    for (bool is_held = false; !is_held;) {
        HostMeeting meeting;
        TRY(host_group_call(t->options.group, label, &meeting));
        TRY(host_group_settle(t->options.group, meet(context, &meeting), &is_held));
    }
    return STATUS_OK;
}

Status kern_trainers_answer(KernTrainers *t, KernTrainersMeet *meet, void *context, bool *is_called) {
    HostMeeting meeting;
    bool is_held;
    TRY(host_group_answer(t->options.group, &meeting, is_called));
    if (!*is_called) return STATUS_OK;
    return host_group_settle(t->options.group, meeting.comm != NULL ? meet(context, &meeting) : STATUS_OK, &is_held);
}
