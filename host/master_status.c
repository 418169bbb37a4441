// What a master says about its run, and asking it.
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "host/clock.h"
#include "host/master_parts.h"

static const char *state_of(const MasterWorker *w) {
    if (w->is_hung) return "hangs";
    if (w->is_dismissed) return "leaves";
    if (!w->is_welcome || (!w->is_ready && w->role != HOST_ROLE_TRAINER)) return "joins";
    return w->lease != 0 || w->at_lease != 0 ? "works" : "waits"; // at a lease or an update
}

static const char *role_name(HostRole role) {
    return role == HOST_ROLE_TRAINER ? "trainer" : role == HOST_ROLE_FOLLOWER ? "follower" : "evaluator";
}

static json_t *worker_json(const Master *m, const MasterWorker *w, double now_s) {
    return json_pack("{s:I s:s s:i s:s s:s s:I s:i s:s s:f s:I s:f s:I s:f s:I s:I}", "worker", (json_int_t)w->id,
                     "role", role_name(w->role), "rank", master_rank(m, w), "state", state_of(w), "host", w->host,
                     "pid", (json_int_t)w->pid, "threads", w->threads, "device", w->device, "age_s",
                     now_s - w->joined_s, "items", (json_int_t)w->items, "items_per_s", w->rate, "lease",
                     (json_int_t)w->lease, "heard_s", now_s - w->heard_s, "in_bytes", (json_int_t)w->in_bytes,
                     "out_bytes", (json_int_t)w->out_bytes);
}

static json_t *failures_json(const MasterCounts *c) {
    return json_pack("{s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I}", "joins", (json_int_t)c->joins, "leaves",
                     (json_int_t)c->leaves, "dismissals", (json_int_t)c->dismissals, "deaths", (json_int_t)c->deaths,
                     "crashes", (json_int_t)c->crashes, "hangs", (json_int_t)c->hangs, "refusals",
                     (json_int_t)c->refusals, "strangers", (json_int_t)c->strangers, "late_leases",
                     (json_int_t)c->late_leases, "repeated_items", (json_int_t)c->repeated_items, "lost_items",
                     (json_int_t)c->lost_items);
}

static json_t *traffic_json(const Master *m) {
    const MasterCounts *c = &m->counts;
    int64_t collective_bytes = 0;
    for (int i = 0; i < m->worker_count; i++)
        if (m->workers[i].role == HOST_ROLE_TRAINER) collective_bytes = m->workers[i].collective_bytes;
    return json_pack("{s:I s:I s:I s:I s:I s:I s:I}", "payload_messages", (json_int_t)c->payload_messages,
                     "payload_bytes", (json_int_t)c->payload_bytes, "result_messages", (json_int_t)c->result_messages,
                     "result_bytes", (json_int_t)c->result_bytes, "in_messages", (json_int_t)c->in_messages,
                     "out_messages", (json_int_t)c->out_messages, "collective_bytes", (json_int_t)collective_bytes);
}

static json_t *master_json(const Master *m, double now_s) {
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    double cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return json_pack("{s:f s:f s:I}", "age_s", now_s - m->start_s, "cpu_s", cpu_s, "memory_bytes",
                     (json_int_t)usage.ru_maxrss * 1024);
}

// The trainer's step: as of its last round, or as it has said since.
static int64_t step_of(const Master *m) {
    int64_t step = m->leases.label;
    for (int i = 0; i < m->worker_count; i++) {
        const MasterWorker *w = &m->workers[i];
        if (w->role == HOST_ROLE_TRAINER && w->label > step) step = w->label;
    }
    return step;
}

static const char *collectives_name(const Master *m) {
    return m->group.size < 2 ? "self" : m->group.collectives == HOST_COLLECTIVES_NCCL ? "nccl" : "gloo";
}

Status master_status(const Master *m, char **json) {
    double now_s = host_now_s();
    json_t *workers = json_array();
    for (int i = 0; workers != NULL && i < m->worker_count; i++)
        json_array_append_new(workers, worker_json(m, &m->workers[i], now_s));
    json_t *settings = m->settings != NULL ? json_loads(m->settings, 0, NULL) : NULL;
    const char *env = json_string_value(json_object_get(settings, "env"));
    json_t *all = json_pack(
        "{s:s s:s s:I s:I s:I s:i s:i s:i s:i s:i s:i s:s s:f s:I s:I s:i s:s s:s s:o s:o s:o s:o}", "endpoint",
        m->options->endpoint, "env", env != NULL ? env : "", "epoch", (json_int_t)m->epoch, "generation",
        (json_int_t)step_of(m), "round", (json_int_t)m->round, "items", (int)m->leases.count, "items_left",
        (int)m->leases.open, "min_workers", m->options->min_workers, "max_workers", m->options->max_workers, "present",
        master_present(m), "wanted", m->scale.wanted, "wants", host_scale_name(m->scale.reason), "hang_limit_s",
        m->hang_limit_s, "leases", (json_int_t)m->counts.leases, "group", (json_int_t)m->group.number, "trainers",
        m->group.size, "collectives", collectives_name(m), "collectives_why", m->group.why, "master",
        master_json(m, now_s), "failures", failures_json(&m->counts), "traffic", traffic_json(m), "workers", workers);
    json_decref(settings);
    *json = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return *json != NULL ? STATUS_OK : host_fail(STATUS_MEMORY, "no memory for the status");
}

// The answer, if it has come.
static Status take_answer(HostLink *link, char **json) {
    zmq_msg_t frame;
    HostMessage message;
    zmq_msg_init(&frame);
    Status status = STATUS_OK;
    if (host_link_receive(link, NULL, &frame, NULL) &&
        host_wire_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &message) == STATUS_OK &&
        message.type == HOST_MESSAGE_STATUS && message.size_bytes > 0) {
        *json = strndup((const char *)message.bytes, message.size_bytes);
        if (*json == NULL) status = host_fail(STATUS_MEMORY, "no memory for the status");
    }
    zmq_msg_close(&frame);
    return status;
}

Status host_master_ask(const char *endpoint, const HostKeys *keys, double wait_s, char **json) {
    HostLink link;
    *json = NULL;
    TRY(host_link_connect(&link, endpoint, keys));
    Status status = host_link_send(&link, NULL, &(HostMessage){.type = HOST_MESSAGE_ASK_STATUS});
    double until_s = host_now_s() + wait_s;
    while (status == STATUS_OK && *json == NULL && host_now_s() < until_s) {
        zmq_pollitem_t item = {link.socket, 0, ZMQ_POLLIN, 0};
        zmq_poll(&item, 1, 50);
        status = take_answer(&link, json);
    }
    host_link_close(&link, 0);
    if (status == STATUS_OK && *json == NULL)
        return host_fail(STATUS_SYSTEM, "no master answers at %s (asked for %g s); is the secret the run's?", endpoint,
                         wait_s);
    return status;
}
