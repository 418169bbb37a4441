// The master's rounds: leases, results, payloads.
#include <stdlib.h>

#include "host/clock.h"
#include "host/master_parts.h"

enum { RANGES_MAX = 1 << 20 };

static bool is_present(const Master *m, const HostMessage *message) {
    return m->session != 0 && message->value[0] == m->session && message->value[1] == m->round;
}

static void tell_lost(Master *m) {
    int32_t item;
    MasterWorker *trainer = master_trainer(m);
    while (trainer != NULL && host_lease_take_lost(&m->leases, &item)) {
        m->counts.lost_items++;
        HostMessage lost = {.type = HOST_MESSAGE_LOST, .value = {m->session, m->round, item}};
        master_send(m, trainer, &lost);
    }
}

// Failing here means that there is no memory: the round waits until the trainer says again what it wants.
static void end_lease(Master *m, MasterWorker *worker, HostLeaseEnd end) {
    if (host_lease_leave(&m->leases, worker->id, 0, end) != STATUS_OK) host_lease_stop(&m->leases);
    worker->lease = 0;
    worker->shares_lease = false;
}

void master_take_lease(Master *m, MasterWorker *worker, HostLeaseEnd end) {
    end_lease(m, worker, end);
    tell_lost(m);
}

// Workers whose lease others have done meanwhile need not go on with it.
static void abandon_void(Master *m, bool all) {
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        HostRange range;
        if (w->lease == 0 || (!all && !w->shares_lease)) continue;
        if (host_lease_find(&m->leases, w->lease, &range) != NULL) continue;
        HostMessage abandon = {.type = HOST_MESSAGE_ABANDON, .value = {w->lease}};
        master_send(m, w, &abandon);
        w->lease = 0;
        w->shares_lease = false;
    }
}

// ---- leases --------------------------------------------------------------------------------------------------------

// A worker's speed for the sharing-out: measured, else what a thread of the others does.
static double speed(const MasterWorker *w, double per_thread) {
    return w->rate > 0 ? w->rate : per_thread * (w->threads > 0 ? w->threads : 1);
}

static bool gets_leases(const MasterWorker *w) { return w->is_welcome && !w->is_hung && !w->is_dismissed; }

static bool takes_part(const MasterWorker *w) { return gets_leases(w) && (w->is_idle || w->lease != 0); }

static double total_speed(const Master *m, double *per_thread) {
    double rates = 0, threads = 0, total = 0;
    for (int i = 0; i < m->worker_count; i++) {
        const MasterWorker *w = &m->workers[i];
        if (!takes_part(w) || !(w->rate > 0)) continue;
        rates += w->rate;
        threads += w->threads > 0 ? w->threads : 1;
    }
    *per_thread = threads > 0 ? rates / threads : 1.0;
    for (int i = 0; i < m->worker_count; i++)
        if (takes_part(&m->workers[i])) total += speed(&m->workers[i], *per_thread);
    return total;
}

static bool grant_one(Master *m, MasterWorker *w, double share) {
    double now_s = host_now_s();
    HostLeaseAsk ask = {.worker = w->id, .share = share, .rate = w->rate};
    ask.must_live = w->role == HOST_ROLE_TRAINER && master_is_patient(m);
    HostRange range;
    int64_t lease;
    int32_t free_before = m->leases.free;
    if (!host_lease_grant(&m->leases, &ask, now_s, &lease, &range)) return false;
    m->counts.leases++;
    if (m->leases.free == free_before) { // nothing new: a late one
        m->counts.late_leases++;
        for (int i = 0; i < m->worker_count; i++) {
            HostRange other;
            MasterWorker *sharer = &m->workers[i];
            if (sharer->lease != 0 && host_lease_find(&m->leases, sharer->lease, &other) != NULL &&
                other.first == range.first)
                sharer->shares_lease = true;
        }
        w->shares_lease = true;
    }
    w->is_idle = false;
    w->lease = lease;
    w->lease_s = w->progress_s = now_s;
    HostMessage message = {.type = HOST_MESSAGE_LEASE,
                           .value = {m->session, m->round, lease, range.first, range.count, m->leases.label}};
    master_send(m, w, &message);
    return true;
}

void master_grant(Master *m) {
    if (m->session == 0 || m->leases.open == 0 || master_is_short(m)) return;
    double per_thread, total = total_speed(m, &per_thread);
    for (int i = 0; i < m->worker_count && m->leases.open > 0; i++) {
        MasterWorker *w = &m->workers[i];
        if (w->is_idle && gets_leases(w)) grant_one(m, w, speed(w, per_thread) / total);
    }
}

// ---- rounds --------------------------------------------------------------------------------------------------------

static void drop_payload(Master *m) {
    if (m->has_payload) zmq_msg_close(&m->payload);
    m->has_payload = m->asked_payload = false;
    for (int i = 0; i < m->worker_count; i++)
        m->workers[i].wants_payload = false;
}

static Status begin_round(Master *m, const HostMessage *message, const HostRange *wanted, int32_t wanted_count) {
    int64_t count = message->value[3], grain = message->value[4];
    if (message->value[0] == 0 || count < 1 || count > HOST_LEASE_ITEMS_MAX || grain < 1 || grain > count)
        return host_fail(STATUS_CORRUPT, "a round of %lld items", (long long)count);
    if (is_present(m, message)) {
        if (m->leases.count != (int32_t)count) return host_fail(STATUS_CORRUPT, "a round that has changed");
        return host_lease_want(&m->leases, wanted, wanted_count);
    }
    drop_payload(m);
    m->session = 0;
    TRY(host_lease_begin(&m->leases, message->value[2], (int32_t)count, (int32_t)grain, wanted, wanted_count));
    m->session = message->value[0];
    m->round = message->value[1];
    return STATUS_OK;
}

// The ranges of a ROUND; free them. NULL if they are none.
static HostRange *read_ranges(const HostMessage *message, int32_t *range_count) {
    size_t count = message->size_bytes / HOST_WIRE_RANGE_BYTES;
    if (count > RANGES_MAX) return NULL;
    HostRange *ranges = malloc((count + 1) * sizeof *ranges);
    for (size_t i = 0; ranges != NULL && i < count; i++) {
        int64_t first, items;
        host_wire_get_range(message->bytes + i * HOST_WIRE_RANGE_BYTES, &first, &items);
        bool is_one = first >= 0 && first <= HOST_LEASE_ITEMS_MAX && items >= 0 && items <= HOST_LEASE_ITEMS_MAX;
        ranges[i] = is_one ? (HostRange){(int32_t)first, (int32_t)items} : (HostRange){-1, 0}; // refused later
    }
    *range_count = (int32_t)count;
    return ranges;
}

void master_on_round(Master *m, MasterWorker *worker, const HostMessage *message) {
    int32_t count;
    HostRange *wanted = worker->role == HOST_ROLE_TRAINER ? read_ranges(message, &count) : NULL;
    if (wanted == NULL) return;
    worker->label = message->value[2];
    Status status = begin_round(m, message, wanted, count);
    free(wanted);
    if (status != STATUS_OK) return;
    abandon_void(m, true);
    master_set_ready(m, worker);
    tell_lost(m);
}

// ---- results -------------------------------------------------------------------------------------------------------

static void measure(MasterWorker *w, int64_t lease, int32_t count) {
    if (lease == 0 || w->lease != lease) return;
    double seconds = host_now_s() - w->lease_s, rate = count / (seconds > 1e-6 ? seconds : 1e-6);
    w->rate = w->rate > 0 ? 0.5 * (w->rate + rate) : rate;
}

// Takes note of results of the present round; false: they are of no use.
static bool finish(Master *m, MasterWorker *w, const HostMessage *message) {
    int64_t lease = message->value[2], first = message->value[3], count = message->value[4];
    master_set_ready(m, w);
    if (first < 0 || first > INT32_MAX || count < 1 || count > INT32_MAX) return false;
    if (w->lease == lease) {
        measure(w, lease, (int32_t)count);
        w->lease = 0;
        w->shares_lease = false;
    }
    int32_t fresh = 0;
    if (!is_present(m, message)) return false;
    if (host_lease_finish(&m->leases, (HostRange){(int32_t)first, (int32_t)count}, &fresh) != STATUS_OK) return false;
    w->items += fresh;
    m->counts.items += fresh;
    m->counts.repeated_items += count - fresh;
    abandon_void(m, false);
    return fresh > 0;
}

void master_on_result(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame) {
    m->counts.result_messages++;
    m->counts.result_bytes += (int64_t)message->size_bytes;
    MasterWorker *trainer = master_trainer(m);
    bool is_useful = finish(m, worker, message);
    if (is_useful && trainer != NULL) master_forward(m, trainer, frame);
}

void master_on_done(Master *m, MasterWorker *worker, const HostMessage *message) {
    if (worker->role != HOST_ROLE_TRAINER) return;
    finish(m, worker, message);
}

void master_on_reject(Master *m, MasterWorker *worker, const HostMessage *message) {
    HostRange range;
    const HostLeaseHolder *holder = host_lease_find(&m->leases, message->value[2], &range);
    if (is_present(m, message) && holder != NULL && holder->worker == worker->id) {
        int32_t fresh;
        MasterWorker *trainer = master_trainer(m);
        if (host_lease_finish(&m->leases, range, &fresh) != STATUS_OK) return;
        HostMessage refuted = {.type = HOST_MESSAGE_REFUTED, .value = {m->session, m->round, range.first, range.count}};
        if (trainer != NULL) master_send(m, trainer, &refuted);
    }
    worker->lease = 0;
    worker->shares_lease = false;
    master_set_ready(m, worker);
}

// ---- payloads ------------------------------------------------------------------------------------------------------

static void send_payload(Master *m, MasterWorker *worker) {
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    zmq_msg_copy(&copy, &m->payload); // counts references
    m->counts.payload_messages++;
    m->counts.payload_bytes += (int64_t)zmq_msg_size(&copy);
    master_forward(m, worker, &copy);
    worker->wants_payload = false;
}

void master_on_fetch(Master *m, MasterWorker *worker, const HostMessage *message) {
    if (!is_present(m, message)) {
        HostMessage abandon = {.type = HOST_MESSAGE_ABANDON, .value = {worker->lease}};
        master_send(m, worker, &abandon);
        worker->lease = 0;
        return;
    }
    if (m->has_payload) {
        send_payload(m, worker);
        return;
    }
    worker->wants_payload = true;
    MasterWorker *trainer = master_trainer(m);
    if (m->asked_payload || trainer == NULL) return;
    master_send(m, trainer, message);
    m->asked_payload = true;
}

void master_on_payload(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame) {
    if (worker->role != HOST_ROLE_TRAINER || !is_present(m, message)) return;
    if (m->has_payload) zmq_msg_close(&m->payload);
    zmq_msg_init(&m->payload);
    zmq_msg_move(&m->payload, frame);
    m->has_payload = true;
    for (int i = 0; i < m->worker_count; i++)
        if (m->workers[i].wants_payload) send_payload(m, &m->workers[i]);
}
