// The master's groups: which trainers have collectives with each other, and what they tell each other to find together.
#include <stdio.h>
#include <string.h>

#include "host/clock.h"
#include "host/master_parts.h"

#define GATHER_S 2.0 // that a lead which has just come waits for other trainers
#define BROKEN_S 0.1 // after a group has failed: why it did may be about to be heard, as of a trainer's death
#define UNFIT_S  2.0 // until a trainer is refused: whoever had its GPU before may be about to go
enum { POSTS_MAX = 8 /* of one trainer in one group */, FAILURES_MOST = 3, NCCL_FAILURES_MOST = 1 };
enum { MEETINGS_PROVE = 16 /* of one group: NCCL works */ };

// Where NCCL is asked for: whether the trainer can exchange by it with those before it. One that cannot is refused.
static bool is_fit(Master *m, MasterWorker *const *found, int count, MasterWorker *worker) {
    char why[256], text[300];
    if (m->options->collectives != HOST_COLLECTIVES_NCCL) return true;
    master_find_unfit((const MasterWorker *const *)found, count, worker, why, sizeof why);
    if (why[0] == '\0') return true;
    if (!worker->is_refused && host_now_s() - worker->enlisted_s > UNFIT_S) {
        snprintf(text, sizeof text, "--collectives nccl: %s", why);
        master_refuse(m, worker, text);
        worker->is_refused = true;
    }
    return false;
}

// Whether groups may count on it.
static bool stays(const MasterWorker *w) { return w->is_enlisted && w->is_welcome && !w->is_hung && !w->is_dismissed; }

// A lead first, then the others in the order in which they came. Returns how many.
static int find_trainers(Master *m, MasterWorker *lead, MasterWorker *found[HOST_GROUP_MAX]) {
    int count = 0;
    int64_t last = 0; // that was looked at
    if (lead == NULL || !stays(lead)) return 0;
    if (!is_fit(m, found, 0, lead)) return 0;
    found[count++] = lead;
    for (;;) {
        MasterWorker *next = NULL;
        for (int i = 0; i < m->worker_count; i++) {
            MasterWorker *w = &m->workers[i];
            if (w->role != HOST_ROLE_FOLLOWER || !stays(w)) continue;
            if (host_now_s() < w->out_until_s) continue;
            if (w->id <= last) continue;
            if (next == NULL || w->id < next->id) next = w;
        }
        if (next == NULL || count == HOST_GROUP_MAX) return count;
        last = next->id;
        if (is_fit(m, found, count, next)) found[count++] = next;
    }
}

static bool is_same(const MasterGroup *group, MasterWorker *const *found, int count) {
    if (group->size != count) return false;
    for (int i = 0; i < count; i++)
        if (group->member[i] != found[i]->id) return false;
    return true;
}

int master_rank(const Master *m, const MasterWorker *worker) {
    for (int i = 0; i < m->group.size; i++)
        if (m->group.member[i] == worker->id) return i;
    return -1;
}

// All trainers are told, those that are left out, too: what they wait for in the old group does not come.
static void announce(Master *m) {
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        int rank = master_rank(m, w);
        w->posts = 0;
        if (!w->is_enlisted) continue;
        const MasterGroup *group = &m->group;
        HostMessage message = {
            .type = HOST_MESSAGE_GROUP,
            .value = {group->number, rank >= 0 ? rank : 0, rank >= 0 ? group->size : 0, (int64_t)group->collectives},
            .bytes = (const unsigned char *)group->why,
            .size_bytes = strlen(group->why)};
        master_send(m, w, &message);
    }
}

// The one that came last is in the way: perhaps the others cannot reach it.
static void leave_out_last(Master *m) {
    const MasterGroup *group = &m->group;
    double until_s = host_now_s() + m->options->out_s;
    for (int i = 0; i < m->worker_count && group->size > 1; i++)
        if (m->workers[i].id == group->member[group->size - 1]) m->workers[i].out_until_s = until_s;
}

// Takes note of the present group's end: another one is formed, of the same members or of others. NCCL's failures are
// counted however late they come: it may take a minute to find that it cannot connect.
static void count_failures(Master *m, bool is_same_again, double now_s) {
    MasterGroup *group = &m->group;
    bool is_nccls = group->collectives == HOST_COLLECTIVES_NCCL && group->fault[0] != '\0';
    group->failures = is_same_again && now_s - group->since_s < m->options->out_s ? group->failures + 1 : 0;
    group->nccl_failures = !is_same_again ? 0 : is_nccls ? group->nccl_failures + 1 : group->nccl_failures;
    group->shuns_nccl = group->nccl_failures > NCCL_FAILURES_MOST;
}

void master_form_group(Master *m) {
    MasterWorker *found[HOST_GROUP_MAX], *lead = master_trainer(m);
    MasterGroup *group = &m->group;
    int count = find_trainers(m, lead, found);
    double now_s = host_now_s();
    bool is_broken = group->broken_s > 0 && now_s - group->broken_s > BROKEN_S;
    bool same = is_same(group, found, count);
    if (!is_broken && same) return;
    count_failures(m, same, now_s);
    if (group->failures > FAILURES_MOST) {
        leave_out_last(m);
        group->failures = 0;
        return;
    }
    // A lead that has just come may find others that know more than it does.
    bool is_new = count > 0 && (group->size == 0 || group->member[0] != lead->id);
    if (is_new && count < m->options->trainers && now_s - lead->enlisted_s < GATHER_S) return;
    while (group->number == 0) { // another master's groups have other numbers
        uint32_t base;
        host_random_bytes(&base, sizeof base);
        group->number = (int64_t)base << 24;
    }
    group->number++;
    group->size = count;
    group->broken_s = 0;
    group->since_s = now_s;
    group->meetings = 0;
    for (int i = 0; i < count; i++)
        group->member[i] = found[i]->id;
    master_choose_collectives(m, (const MasterWorker *const *)found, count);
    if (!group->shuns_nccl) group->fault[0] = '\0';
    announce(m);
}

// Those who have said nothing to the others for so long that they were to have moved.
static void find_hung(Master *m, const MasterWorker *sender) {
    if (host_now_s() - m->group.since_s < m->options->hang_limit_s) return;
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        if (master_rank(m, w) >= 0 && w != sender && w->posts == 0 && !w->is_hung) master_set_hung(m, w);
    }
}

// The first fault of a group is its own; others follow from it.
static void keep_fault(MasterGroup *group, const HostMessage *message) {
    if (message->value[0] != group->number || group->fault[0] != '\0') return;
    size_t size = message->size_bytes < sizeof group->fault - 1 ? message->size_bytes : sizeof group->fault - 1;
    memset(group->fault, '?', size);
    for (size_t i = 0; i < size; i++) // plain text, for JSON
        if (message->bytes[i] >= ' ' && message->bytes[i] < 127) group->fault[i] = (char)message->bytes[i];
    group->fault[size] = '\0';
}

void master_on_regroup(Master *m, MasterWorker *worker, const HostMessage *message) {
    if (worker->role == HOST_ROLE_EVALUATOR) return;
    if (!worker->is_enlisted) worker->enlisted_s = host_now_s();
    worker->is_enlisted = true;
    bool is_of_group = master_rank(m, worker) >= 0;
    if (is_of_group && m->group.size > 1 && message->value[0] == m->group.number) find_hung(m, worker);
    if (!is_of_group || (message->value[0] != 0 && message->value[0] != m->group.number)) return;
    m->group.broken_s = host_now_s();
    keep_fault(&m->group, message);
}

// To all other members of the sender's group, if that is the present one.
static bool pass_on(Master *m, const MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame) {
    if (message->value[0] != m->group.number || master_rank(m, worker) < 0) return false;
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        if (w->id == worker->id || master_rank(m, w) < 0) continue;
        zmq_msg_t copy;
        zmq_msg_init(&copy);
        zmq_msg_copy(&copy, frame); // counts references
        master_forward(m, w, &copy);
    }
    return true;
}

void master_on_post(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame) {
    if (!host_wire_is_post(message) || worker->posts == POSTS_MAX) {
        m->counts.strangers++;
    } else if (pass_on(m, worker, message, frame)) {
        worker->posts++;
    }
}

void master_on_meet(Master *m, const MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame) {
    if (worker->role != HOST_ROLE_TRAINER || !pass_on(m, worker, message, frame)) return;
    bool is_nccls = m->group.collectives == HOST_COLLECTIVES_NCCL;
    if (is_nccls && ++m->group.meetings == MEETINGS_PROVE) m->group.nccl_failures = 0;
}
