#include "host/master.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/master_parts.h"
#include "host/signals.h"

#define EPOCH_EVERY_S 1.0
#define PATIENCE_S    5.0 // the trainer gets what crashes evaluators once there has been none for so long
#define FAREWELL_S    3.0
#define FORGET_AFTER  10 // hang limits of silence; what speaks again joins again
enum { POLL_MS = 20, TICK_LEAST_MS = 200, TICK_MOST_MS = 1000, MESSAGES_AT_ONCE = 1024 };

// ---- sending -------------------------------------------------------------------------------------------------------

void master_send(Master *m, MasterWorker *worker, const HostMessage *message) {
    m->counts.out_messages++;
    worker->out_bytes += (int64_t)host_wire_size(message);
    // Without memory for it the message is as good as lost on the way, and what waits for it asks again.
    if (host_link_send(&m->link, &worker->identity, message) != STATUS_OK) m->counts.out_messages--;
}

void master_forward(Master *m, MasterWorker *worker, zmq_msg_t *frame) {
    m->counts.out_messages++;
    worker->out_bytes += (int64_t)zmq_msg_size(frame);
    host_link_forward(&m->link, &worker->identity, frame);
}

static void send_text(Master *m, MasterWorker *worker, HostMessageType type, const char *text) {
    HostMessage message = {.type = type, .bytes = (const unsigned char *)text, .size_bytes = strlen(text)};
    master_send(m, worker, &message);
}

void master_refuse(Master *m, MasterWorker *worker, const char *text) {
    m->counts.refusals++;
    send_text(m, worker, HOST_MESSAGE_REFUSE, text);
}

void master_tell_supervisor(const Master *m, const char *line) {
    if (m->options->supervisor_fd < 0) return;
    // If it is gone this process will be ended soon.
    if (write(m->options->supervisor_fd, line, strlen(line)) < 0) return;
}

// ---- membership ----------------------------------------------------------------------------------------------------

MasterWorker *master_trainer(Master *m) {
    for (int i = m->worker_count - 1; i >= 0; i--) // the newest
        if (m->workers[i].role == HOST_ROLE_TRAINER) return &m->workers[i];
    return NULL;
}

int master_helpers(const Master *m) {
    int count = 0;
    for (int i = 0; i < m->worker_count; i++) {
        const MasterWorker *w = &m->workers[i];
        count += w->role != HOST_ROLE_TRAINER && w->is_welcome && w->is_ready && !w->is_hung && !w->is_dismissed;
    }
    return count;
}

int master_present(const Master *m) { return 1 + master_helpers(m); }

bool master_is_patient(const Master *m) { return host_now_s() - m->helper_s < PATIENCE_S; }

bool master_is_short(Master *m) {
    const MasterWorker *trainer = master_trainer(m);
    int helpers = master_helpers(m);
    if (master_present(m) < m->options->min_workers) return true;
    return trainer != NULL && trainer->label <= m->careful_label && helpers == 0 && master_is_patient(m);
}

static MasterWorker *find(Master *m, const HostIdentity *identity) {
    for (int i = 0; i < m->worker_count; i++) {
        const HostIdentity *other = &m->workers[i].identity;
        if (other->size_bytes == identity->size_bytes && memcmp(other->bytes, identity->bytes, other->size_bytes) == 0)
            return &m->workers[i];
    }
    return NULL;
}

static void send_epoch(Master *m) {
    int64_t tick_ms = (int64_t)TICK_LEAST_MS * m->worker_count / 128;
    tick_ms = tick_ms < TICK_LEAST_MS ? TICK_LEAST_MS : tick_ms > TICK_MOST_MS ? TICK_MOST_MS : tick_ms;
    int helpers = master_helpers(m);
    HostMessage epoch = {.type = HOST_MESSAGE_EPOCH, .value = {m->epoch, helpers, tick_ms, master_is_short(m)}};
    for (int i = 0; i < m->worker_count; i++)
        if (m->workers[i].is_welcome) master_send(m, &m->workers[i], &epoch);
    m->epoch_changed = false;
    m->tick_s = host_now_s();
}

void master_begin_epoch(Master *m) {
    m->epoch++;
    m->epoch_changed = true;
    if (master_helpers(m) > 0) m->helper_s = host_now_s();
}

void master_set_ready(Master *m, MasterWorker *worker) {
    worker->is_idle = true;
    if (worker->is_ready) return;
    worker->is_ready = true;
    master_begin_epoch(m);
}

static void remove_worker(Master *m, MasterWorker *worker, HostLeaseEnd end) {
    if (worker->role == HOST_ROLE_TRAINER && end != HOST_LEASE_RETURNED && worker->label > m->careful_label)
        m->careful_label = worker->label;
    master_take_lease(m, worker, end);
    *worker = m->workers[--m->worker_count];
    master_begin_epoch(m);
}

static void welcome(Master *m, MasterWorker *worker) {
    HostMessage message = {.type = HOST_MESSAGE_WELCOME,
                           .value = {worker->place, (int64_t)(m->options->hang_limit_s * 1e3)},
                           .bytes = (const unsigned char *)m->settings,
                           .size_bytes = m->settings_bytes};
    master_send(m, worker, &message);
    worker->is_welcome = true;
    master_begin_epoch(m);
    send_epoch(m);
}

static MasterWorker *add_worker(Master *m, const HostIdentity *identity) {
    if (m->worker_count == m->worker_room) {
        int room = m->worker_room > 0 ? 2 * m->worker_room : 16;
        MasterWorker *grown = realloc(m->workers, (size_t)room * sizeof *grown);
        if (grown == NULL) return NULL;
        m->workers = grown;
        m->worker_room = room;
    }
    double now_s = host_now_s();
    MasterWorker *worker = &m->workers[m->worker_count++];
    *worker = (MasterWorker){.identity = *identity, .id = m->next_worker++, .fd = -1, .joined_s = now_s};
    worker->heard_s = worker->progress_s = now_s;
    return worker;
}

static bool is_taken(const Master *m, int64_t place) {
    for (int i = 0; i < m->worker_count; i++)
        if (m->workers[i].place == place) return true;
    return false;
}

// Of one place more than there are workers one is free.
static int64_t first_free_place(const Master *m) {
    int64_t count = m->worker_count + 1, place = 1;
    bool *taken = calloc((size_t)count + 1, sizeof *taken);
    for (int i = 0; taken != NULL && i < m->worker_count; i++)
        if (m->workers[i].place <= count) taken[m->workers[i].place] = true;
    while (taken != NULL && taken[place])
        place++;
    free(taken);
    return taken != NULL ? place : m->next_worker;
}

// The place that the worker had, with a master that was there before, if nobody else has it.
static int64_t find_place(const Master *m, HostRole role, int64_t had) {
    if (role == HOST_ROLE_TRAINER) return 0;
    return had > 0 && !is_taken(m, had) ? had : first_free_place(m);
}

static void copy_text(const json_t *object, const char *key, char text[MASTER_TEXT_MAX]) {
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(text, MASTER_TEXT_MAX, "%s", value != NULL ? value : "?");
}

static void copy_gpu(const json_t *about, MasterWorker *worker) {
    const char *gpu = json_string_value(json_object_get(about, "gpu"));
    const char *missing = json_string_value(json_object_get(about, "nccl_missing"));
    json_int_t version = json_integer_value(json_object_get(about, "nccl"));
    snprintf(worker->gpu, sizeof worker->gpu, "%s", gpu != NULL ? gpu : "");
    snprintf(worker->nccl_missing, sizeof worker->nccl_missing, "%s", missing != NULL ? missing : "");
    worker->nccl = version > 0 && version < 1 << 30 ? (int)version : 0;
}

// A worker without an entry, for one answer.
static void refuse(Master *m, const HostIdentity *identity, const char *text) {
    MasterWorker stranger = {.identity = *identity};
    master_refuse(m, &stranger, text);
}

// What keeps a worker out; "" if nothing does.
static void find_fault(const Master *m, const HostMessage *hello, const json_t *about, char *text, size_t size) {
    char build[MASTER_TEXT_MAX];
    copy_text(about, "build", build);
    text[0] = '\0';
    if (hello->value[0] != HOST_WIRE_PROTOCOL || strcmp(build, m->options->build) != 0) {
        snprintf(text, size,
                 "%s is of another build: this is %s, the run's master is %s. All workers of a run need the same one",
                 m->options->endpoint, build, m->options->build);
    } else if (hello->value[1] < 0 || hello->value[1] >= HOST_ROLES || hello->value[3] < 0 ||
               hello->value[3] > 1 << 20 || about == NULL) {
        snprintf(text, size, "%s does not understand what this worker says about itself", m->options->endpoint);
    }
}

static void take_settings(Master *m, const json_t *about) {
    char *settings = json_dumps(json_object_get(about, "settings"), JSON_COMPACT);
    if (settings == NULL) return;
    free(m->settings);
    m->settings = settings;
    m->settings_bytes = strlen(settings);
}

static void admit(Master *m, const HostIdentity *identity, const HostMessage *hello, const json_t *about) {
    MasterWorker *old = master_trainer(m);
    HostRole role = (HostRole)hello->value[1];
    if (role == HOST_ROLE_TRAINER && old != NULL) {
        send_text(m, old, HOST_MESSAGE_REFUSE, "another trainer has taken this run over");
        remove_worker(m, old, HOST_LEASE_DIED);
    }
    int64_t place = find_place(m, role, hello->value[4]);
    MasterWorker *worker = add_worker(m, identity);
    if (worker == NULL) return; // it will say HELLO again
    worker->role = role;
    worker->place = place;
    worker->pid = hello->value[2];
    worker->threads = (int)hello->value[3];
    copy_text(about, "host", worker->host);
    copy_text(about, "device", worker->device);
    copy_gpu(about, worker);
    m->counts.joins++;
    if (role == HOST_ROLE_TRAINER) take_settings(m, about);
    if (m->settings == NULL) return; // welcome when the trainer has come
    int64_t id = worker->id;
    for (int i = 0; i < m->worker_count; i++)
        if (!m->workers[i].is_welcome && (role == HOST_ROLE_TRAINER || m->workers[i].id == id))
            welcome(m, &m->workers[i]);
}

static void on_hello(Master *m, const HostIdentity *identity, const HostMessage *hello) {
    char fault[512];
    json_t *about = json_loadb((const char *)hello->bytes, hello->size_bytes, 0, NULL);
    find_fault(m, hello, about, fault, sizeof fault);
    if (m->is_finished) {
        MasterWorker stranger = {.identity = *identity};
        master_send(m, &stranger, &(HostMessage){.type = HOST_MESSAGE_FINISH});
        m->farewells++;
    } else if (fault[0] != '\0') {
        refuse(m, identity, fault);
    } else {
        admit(m, identity, hello, about);
    }
    json_decref(about);
}

// ---- liveness ------------------------------------------------------------------------------------------------------

// It has a lease, or has not yet let go of one that others have done, or is at its part of an update.
static bool is_busy(const MasterWorker *w) { return w->lease != 0 || w->at_lease != 0; }

// A worker was so long without a look for a stop, and then moved: it did not hang.
static void learn_pace(Master *m, double needed_s) {
    double most_s = HOST_MASTER_RAISE_MOST * m->options->hang_limit_s, before_s = m->hang_limit_s;
    while (m->hang_limit_s < 2 * needed_s && m->hang_limit_s < most_s)
        m->hang_limit_s *= 2;
    if (m->hang_limit_s == before_s) return;
    char line[64];
    snprintf(line, sizeof line, HOST_MASTER_SLOW_LINE, (long long)(needed_s * 1e3), (long long)(m->hang_limit_s * 1e3));
    master_tell_supervisor(m, line);
}

static void on_tick(Master *m, MasterWorker *w, const HostMessage *message) {
    double now_s = host_now_s();
    bool was_busy = is_busy(w);
    bool moves = message->value[0] != w->ticks || message->value[1] != w->at_lease;
    w->ticks = message->value[0];
    w->at_lease = message->value[1];
    if (w->role == HOST_ROLE_TRAINER) w->label = message->value[2];
    w->collective_bytes = message->value[3];
    if (moves && (was_busy || w->is_hung) && w->silent_s < m->hang_limit_s / 2) learn_pace(m, now_s - w->progress_s);
    if (moves || (!is_busy(w) && !w->is_hung)) {
        w->progress_s = now_s;
        w->silent_s = 0;
    }
    if (w->is_hung && moves) { // it was only slow, or asleep
        w->is_hung = w->is_reported = false;
        master_begin_epoch(m);
    }
}

void master_set_hung(Master *m, MasterWorker *w) {
    m->counts.hangs++;
    w->is_hung = true;
    master_take_lease(m, w, HOST_LEASE_DIED);
    w->is_idle = false;
    master_send(m, w, &(HostMessage){.type = HOST_MESSAGE_RESTART});
    master_begin_epoch(m);
}

static void check_hang(Master *m, MasterWorker *w, double now_s) {
    double limit_s = m->hang_limit_s;
    double silent_s = now_s - w->heard_s, idle_s = is_busy(w) || w->is_hung ? now_s - w->progress_s : 0;
    double worst_s = silent_s > idle_s ? silent_s : idle_s;
    if (worst_s > limit_s && !w->is_hung) master_set_hung(m, w);
    if (worst_s > 2 * limit_s && !w->is_reported) {
        char line[64];
        snprintf(line, sizeof line, HOST_MASTER_HUNG_LINE, (long long)w->pid);
        master_tell_supervisor(m, line);
        w->is_reported = true;
    }
}

static void on_lost_connection(Master *m, int fd) {
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        if (w->fd != fd) continue;
        if (w->ignored_events > 0) {
            w->ignored_events--;
            return;
        }
        m->counts.deaths++;
        m->counts.last_death_s = host_now_s() - w->heard_s;
        remove_worker(m, w, HOST_LEASE_DIED);
        return;
    }
}

// The connection that a worker's message came by. A number that another worker had means that the other's connection
// is gone, and that its disconnection is still to be heard of.
static void note_connection(Master *m, const HostIdentity *identity, int fd) {
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        bool is_same = w->identity.size_bytes == identity->size_bytes &&
                       memcmp(w->identity.bytes, identity->bytes, identity->size_bytes) == 0;
        if (w->fd != fd || is_same) continue;
        int ignored = w->ignored_events + 1;
        m->counts.deaths++;
        remove_worker(m, w, HOST_LEASE_DIED);
        MasterWorker *mine = find(m, identity);
        if (mine != NULL) mine->ignored_events = ignored;
        break;
    }
    MasterWorker *mine = find(m, identity);
    if (mine != NULL) mine->fd = fd;
}

// ---- messages ------------------------------------------------------------------------------------------------------

static void on_crash(Master *m, MasterWorker *worker) {
    m->counts.crashes++;
    worker->is_idle = false;
    worker->is_welcome = false; // it gets nothing more
    master_take_lease(m, worker, HOST_LEASE_CRASHED);
    master_begin_epoch(m);
}

static void on_finish(Master *m, const MasterWorker *worker) {
    if (worker->role != HOST_ROLE_TRAINER) return;
    m->is_finished = true;
    m->finished_s = host_now_s();
    host_lease_stop(&m->leases);
    for (int i = 0; i < m->worker_count; i++)
        master_send(m, &m->workers[i], &(HostMessage){.type = HOST_MESSAGE_FINISH});
}

static void on_status(Master *m, const HostIdentity *identity) {
    char *json = NULL;
    MasterWorker asker = {.identity = *identity};
    if (master_status(m, &json) == STATUS_OK) send_text(m, &asker, HOST_MESSAGE_STATUS, json);
    free(json);
}

static void on_worker_message(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame) {
    switch (message->type) {
    case HOST_MESSAGE_WANT:
        master_set_ready(m, worker);
        worker->lease = 0;
        return;
    case HOST_MESSAGE_TICK:
        on_tick(m, worker, message);
        return;
    case HOST_MESSAGE_CLOCK:
        master_send(m, worker, &(HostMessage){.type = HOST_MESSAGE_CLOCK, .value = {message->value[0], host_now_ns()}});
        return;
    case HOST_MESSAGE_DONE:
        master_on_done(m, worker, message);
        return;
    case HOST_MESSAGE_REJECT:
        master_on_reject(m, worker, message);
        return;
    case HOST_MESSAGE_ROUND:
        master_on_round(m, worker, message);
        return;
    case HOST_MESSAGE_RESULT:
        master_on_result(m, worker, message, frame);
        return;
    case HOST_MESSAGE_FETCH:
        master_on_fetch(m, worker, message);
        return;
    case HOST_MESSAGE_PAYLOAD:
        master_on_payload(m, worker, message, frame);
        return;
    case HOST_MESSAGE_REGROUP:
        master_on_regroup(m, worker, message);
        return;
    case HOST_MESSAGE_POST:
        master_on_post(m, worker, message, frame);
        return;
    case HOST_MESSAGE_MEET:
        master_on_meet(m, worker, message, frame);
        return;
    case HOST_MESSAGE_CRASH:
        on_crash(m, worker);
        return;
    case HOST_MESSAGE_FINISH:
        on_finish(m, worker);
        return;
    case HOST_MESSAGE_RETURN:
        master_take_lease(m, worker, HOST_LEASE_RETURNED);
        return;
    case HOST_MESSAGE_LEAVE:
        m->counts.leaves++;
        remove_worker(m, worker, HOST_LEASE_RETURNED);
        return;
    default:
        return; // not for a master
    }
}

static void on_message(Master *m, const HostIdentity *identity, int fd, zmq_msg_t *frame) {
    HostMessage message;
    m->counts.in_messages++;
    if (host_wire_decode(zmq_msg_data(frame), zmq_msg_size(frame), &message) != STATUS_OK) {
        m->counts.strangers++;
        return;
    }
    if (message.type == HOST_MESSAGE_ASK_STATUS) {
        on_status(m, identity);
        return;
    }
    MasterWorker *worker = find(m, identity);
    if (worker == NULL && message.type == HOST_MESSAGE_HELLO) on_hello(m, identity, &message);
    if (worker == NULL || worker->fd != fd) {
        if (fd >= 0) note_connection(m, identity, fd);
        worker = find(m, identity); // entries move
    }
    if (worker == NULL) {
        MasterWorker stranger = {.identity = *identity};
        if (message.type != HOST_MESSAGE_HELLO && message.type != HOST_MESSAGE_LEAVE && !m->is_finished)
            master_send(m, &stranger, &(HostMessage){.type = HOST_MESSAGE_UNKNOWN});
        return;
    }
    double now_s = host_now_s(), silent_s = now_s - worker->heard_s;
    if (silent_s > worker->silent_s) worker->silent_s = silent_s;
    worker->heard_s = now_s;
    worker->in_bytes += (int64_t)zmq_msg_size(frame);
    on_worker_message(m, worker, &message, frame);
}

// ---- the loop ------------------------------------------------------------------------------------------------------

// Connections that are gone are noted, and their workers removed once every message has been read that came before:
// what a worker said last counts.
static void read_events(Master *m) {
    int event, fd;
    while (m->gone_count < MASTER_GONE_MAX && host_link_event(&m->link, &event, &fd)) {
        if (event == ZMQ_EVENT_DISCONNECTED) m->gone[m->gone_count++] = fd;
        if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH || event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
            event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            m->counts.strangers++;
    }
}

// Whether all that had come was read.
static bool read_messages(Master *m) {
    for (int i = 0; i < MESSAGES_AT_ONCE; i++) {
        HostIdentity identity;
        zmq_msg_t frame;
        int fd = -1;
        zmq_msg_init(&frame);
        bool found = host_link_receive(&m->link, &identity, &frame, &fd);
        if (found) on_message(m, &identity, fd, &frame);
        zmq_msg_close(&frame);
        if (!found) return true;
    }
    return false;
}

static void remove_gone(Master *m) {
    for (int i = 0; i < m->gone_count; i++)
        on_lost_connection(m, m->gone[i]);
    m->gone_count = 0;
}

static void look_around(Master *m) {
    double now_s = host_now_s();
    for (int i = m->worker_count - 1; i >= 0 && !m->is_finished; i--) {
        check_hang(m, &m->workers[i], now_s);
        if (now_s - m->workers[i].heard_s > FORGET_AFTER * m->hang_limit_s)
            remove_worker(m, &m->workers[i], HOST_LEASE_DIED);
    }
    if (master_helpers(m) > 0) m->helper_s = now_s;
    if (m->epoch_changed || now_s - m->tick_s >= EPOCH_EVERY_S) send_epoch(m);
    if (!m->is_finished) master_scale(m);
    if (now_s - m->beat_s >= HOST_MASTER_BEAT_S) master_beat(m);
}

static bool is_over(const Master *m) {
    if (host_stop_requested()) return true;
    bool all_know = m->worker_count == 0 && m->counts.joins + m->farewells >= m->options->workers;
    return m->is_finished && (all_know || host_now_s() - m->finished_s > FAREWELL_S);
}

static void serve(Master *m) {
    double looked_s = 0;
    while (!is_over(m)) {
        zmq_pollitem_t items[] = {
            {m->link.guard, 0, ZMQ_POLLIN, 0}, {m->link.monitor, 0, ZMQ_POLLIN, 0}, {m->link.socket, 0, ZMQ_POLLIN, 0}};
        zmq_poll(items, 3, POLL_MS);
        if (items[0].revents != 0) host_link_admit(&m->link);
        read_events(m);
        if (read_messages(m) || m->gone_count == MASTER_GONE_MAX) remove_gone(m);
        master_grant(m); // once for all that has come; also what is late by now
        master_form_group(m);
        if (host_now_s() - looked_s < POLL_MS * 1e-3) continue;
        looked_s = host_now_s();
        look_around(m);
    }
}

Status host_master_run(const HostMasterOptions *options) {
    Master *m = calloc(1, sizeof *m);
    if (m == NULL) return host_fail(STATUS_MEMORY, "no memory for a master");
    m->options = options;
    m->hang_limit_s = options->hang_limit_s;
    m->next_worker = 1;
    m->careful_label = -1;
    m->start_s = host_now_s();
    m->helper_s = m->start_s - PATIENCE_S;
    master_open_scale(m);
    host_lease_init(&m->leases);
    Status status = host_link_serve(&m->link, options->listen_fd, options->keys);
    if (status == STATUS_OK) {
        serve(m);
        if (m->has_payload) zmq_msg_close(&m->payload);
        host_link_close(&m->link, 500);
    }
    host_lease_free(&m->leases);
    free(m->settings);
    free(m->workers);
    free(m);
    return status;
}
