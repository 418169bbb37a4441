// The thread through which a worker talks to its master.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/group.h"
#include "host/member_parts.h"

#define GONE_AFTER_S     1.5 // without a word from the master, which speaks every second
#define TICK_AT_FIRST_MS 200

void member_wake(HostMember *m) {
    const uint64_t one = 1;
    if (write(m->crash.wake_fd, &one, sizeof one) < 0) return; // awake already
}

Status member_send(HostMember *m, const HostMessage *message, const void *const parts[HOST_MEMBER_RECORDS],
                   const size_t part_bytes[HOST_MEMBER_RECORDS]) {
    MemberOutgoing *out = calloc(1, sizeof *out);
    size_t size = host_wire_size(message);
    if (out == NULL || zmq_msg_init_size(&out->frame, size) != 0) {
        free(out);
        return host_fail(STATUS_MEMORY, "no memory for a message of %zu bytes", size);
    }
    unsigned char *at = host_wire_encode(message, zmq_msg_data(&out->frame));
    for (int i = 0; parts != NULL && i < HOST_MEMBER_RECORDS; i++) {
        if (part_bytes[i] > 0) memcpy(at, parts[i], part_bytes[i]);
        at += part_bytes[i];
    }
    *m->outgoing_end = out;
    m->outgoing_end = &out->next;
    member_wake(m);
    return STATUS_OK;
}

Status member_send_round(HostMember *m) {
    MemberRound *r = &m->round;
    int32_t ranges = 0;
    for (int32_t i = 0; i < r->of.count; i++)
        ranges += !r->done[i] && (i == 0 || r->done[i - 1]);
    unsigned char *bytes = malloc((size_t)ranges * HOST_WIRE_RANGE_BYTES + 1), *at = bytes;
    if (bytes == NULL) return host_fail(STATUS_MEMORY, "no memory for %d ranges", ranges);
    for (int32_t first = 0; first < r->of.count; first++) {
        int32_t end = first;
        while (end < r->of.count && !r->done[end])
            end++;
        if (end == first) continue;
        host_wire_put_range(at, first, end - first);
        at += HOST_WIRE_RANGE_BYTES;
        first = end;
    }
    HostMessage message = {.type = HOST_MESSAGE_ROUND,
                           .value = {m->session, r->number, r->of.label, r->of.count, r->of.grain},
                           .bytes = bytes,
                           .size_bytes = (size_t)(at - bytes)};
    Status status = member_send(m, &message, NULL, NULL);
    free(bytes);
    r->news_s = host_now_s();
    return status;
}

void member_take_records(HostMember *m, int32_t first, int32_t count, const unsigned char *const records[],
                         bool is_own) {
    MemberRound *r = &m->round;
    for (int32_t i = 0; i < count; i++) {
        if (r->done[first + i]) {
            m->figures.repeated_items++;
            continue;
        }
        for (int k = 0; k < HOST_MEMBER_RECORDS; k++) {
            size_t size = r->of.record_bytes[k];
            if (size > 0) memcpy(r->of.records[k] + (size_t)(first + i) * size, records[k] + (size_t)i * size, size);
        }
        r->done[first + i] = 1;
        r->left--;
        if (is_own) {
            m->figures.own_items++;
        } else {
            m->figures.other_items++;
        }
    }
    r->news_s = host_now_s();
}

// ---- what the master is told ---------------------------------------------------------------------------------------

// Sends what may be lost without harm.
static void say(HostMember *m, HostMessageType type) {
    HostMessage message = {.type = type};
    if (host_link_send(&m->link, NULL, &message) != STATUS_OK) return;
}

static void say_hello(HostMember *m) {
    HostMessage hello = {
        .type = HOST_MESSAGE_HELLO,
        .value = {HOST_WIRE_PROTOCOL, (int64_t)m->role, (int64_t)getpid(), m->threads, m->place > 0 ? m->place : 0},
        .bytes = (const unsigned char *)m->hello,
        .size_bytes = strlen(m->hello)};
    if (host_link_send(&m->link, NULL, &hello) != STATUS_OK) return; // said again
}

// ---- the master's clock --------------------------------------------------------------------------------------------

#define CLOCK_DRIFT 5e-5 // of two clocks against each other: 50 us a second, more than quartzes do

static void ask_for_clock(HostMember *m) {
    HostMessage message = {.type = HOST_MESSAGE_CLOCK, .value = {host_now_ns()}};
    if (host_link_send(&m->link, NULL, &message) != STATUS_OK) return; // asked again
}

// The master looked at its clock between the question and the answer (Cristian, Probabilistic clock synchronization,
// 1989). An answer replaces one that is less exact by now.
static void on_clock(HostMember *m, const HostMessage *message) {
    int64_t now_ns = host_now_ns(), asked_ns = message->value[0], taken_ns = now_ns - asked_ns;
    MemberClock *c = &m->clock;
    if (asked_ns <= 0 || taken_ns < 0 || message->value[1] <= 0) return;
    double now_s = 1e-9 * (double)now_ns, error_ns = (double)c->error_ns + 1e9 * CLOCK_DRIFT * (now_s - c->measured_s);
    if (c->error_ns >= 0 && (double)taken_ns / 2 > error_ns) return;
    *c = (MemberClock){message->value[1] - asked_ns - taken_ns / 2, (taken_ns + 1) / 2, now_s};
    pthread_cond_broadcast(&m->changed);
}

bool host_member_clock(HostMember *m, double wait_s, int64_t *offset_ns, int64_t *error_ns) {
    double until_s = host_now_s() + wait_s;
    pthread_mutex_lock(&m->mutex);
    while (m->clock.error_ns < 0 && host_now_s() < until_s && !host_stop_pending())
        member_wait(m);
    MemberClock c = m->clock;
    pthread_mutex_unlock(&m->mutex);
    if (c.error_ns < 0) return false;
    *offset_ns = c.offset_ns;
    *error_ns = c.error_ns + (int64_t)(1e9 * CLOCK_DRIFT * (host_now_s() - c.measured_s));
    return true;
}

// ---- what the master says ------------------------------------------------------------------------------------------

static bool is_of_round(const HostMember *m, const HostMessage *message) {
    return m->round.is_open && message->value[0] == m->session && message->value[1] == m->round.number;
}

static void break_off(HostMember *m) {
    m->is_abandoned = true;
    host_interrupt(true);
}

static void on_welcome(HostMember *m, const HostMessage *message) {
    m->figures.masters++;
    m->is_welcome = true;
    m->place = message->value[0];
    m->hang_limit_s = 1e-3 * (double)message->value[1];
    m->clock.error_ns = -1; // another master's clock may be another one
    if (m->asks_clock) ask_for_clock(m);
    if (m->role != HOST_ROLE_TRAINER && m->settings == NULL)
        m->settings = strndup(message->bytes != NULL ? (const char *)message->bytes : "", message->size_bytes);
    // A new master knows nothing of what was asked of the one before.
    if (m->is_enlisted) {
        m->group = (MemberGroup){0};
        m->group_asked_s = host_now_s();
        say(m, HOST_MESSAGE_REGROUP);
    }
    if (m->role == HOST_ROLE_TRAINER && m->round.is_open && m->round.left > 0) {
        if (member_send_round(m) != STATUS_OK) return; // sent again
    } else if (m->wants) {
        say(m, HOST_MESSAGE_WANT);
    }
}

static void on_lease(HostMember *m, const HostMessage *message) {
    int64_t first = message->value[3], count = message->value[4];
    if (first < 0 || count < 1 || count > INT32_MAX || first > INT32_MAX - count) return;
    if (m->role == HOST_ROLE_TRAINER && (!is_of_round(m, message) || first + count > m->round.of.count)) return;
    m->task = (HostTask){.session = message->value[0],
                         .round = message->value[1],
                         .lease = message->value[2],
                         .first = (int32_t)first,
                         .count = (int32_t)count,
                         .label = message->value[5]};
    m->has_task = true;
    m->wants = false;
    m->label = message->value[5];
    if (m->role == HOST_ROLE_TRAINER) m->round.news_s = host_now_s();
}

static void on_abandon(HostMember *m, int64_t lease) {
    if (m->has_task && (m->task.lease == lease || lease == 0)) {
        m->has_task = false;
        m->wants = true;
        say(m, HOST_MESSAGE_WANT);
    } else if (m->is_computing && (m->lease == lease || lease == 0)) {
        break_off(m);
    }
}

static void end_own_work(HostMember *m) {
    if (m->is_computing && (m->round.left == 0 || m->round.is_refuted)) break_off(m);
}

static void on_result(HostMember *m, const HostMessage *message) {
    int64_t first = message->value[3], count = message->value[4];
    if (m->role != HOST_ROLE_TRAINER || !is_of_round(m, message)) return;
    if (first < 0 || count < 1 || count > m->round.of.count || first > m->round.of.count - count) return;
    size_t size[HOST_MEMBER_RECORDS], total = 0;
    const unsigned char *records[HOST_MEMBER_RECORDS];
    for (int k = 0; k < HOST_MEMBER_RECORDS; k++) {
        records[k] = message->bytes + total;
        total += size[k] = (size_t)count * m->round.of.record_bytes[k];
    }
    if (message->size_bytes != total) return;
    m->figures.result_messages++;
    m->figures.result_bytes += (int64_t)total;
    member_take_records(m, (int32_t)first, (int32_t)count, records, false);
    end_own_work(m);
}

static void on_lost(HostMember *m, const HostMessage *message) {
    MemberRound *r = &m->round;
    int64_t item = message->value[2];
    if (m->role != HOST_ROLE_TRAINER || !is_of_round(m, message) || item < 0 || item >= r->of.count) return;
    if (r->done[item] || r->lost_count == r->lost_room) return;
    r->done[item] = 1;
    r->left--;
    int32_t at = r->lost_count++; // ascending
    for (; at > 0 && r->lost[at - 1] > item; at--)
        r->lost[at] = r->lost[at - 1];
    r->lost[at] = (int32_t)item;
    m->figures.lost_items++;
    r->news_s = host_now_s();
    end_own_work(m);
}

static void on_refuted(HostMember *m, const HostMessage *message) {
    if (m->role != HOST_ROLE_TRAINER || !is_of_round(m, message)) return;
    m->round.is_refuted = true;
    end_own_work(m);
}

static void on_fetch(HostMember *m, const HostMessage *message) {
    if (m->role != HOST_ROLE_TRAINER || !is_of_round(m, message)) return;
    HostMessage payload = {.type = HOST_MESSAGE_PAYLOAD,
                           .value = {m->session, m->round.number},
                           .bytes = m->payload.bytes,
                           .size_bytes = m->payload.size_bytes};
    if (host_link_send(&m->link, NULL, &payload) != STATUS_OK) return; // asked for again
    m->figures.payload_messages++;
    m->figures.payload_bytes += (int64_t)payload.size_bytes;
}

static void on_payload(HostMember *m, zmq_msg_t *frame) {
    if (m->has_frame) zmq_msg_close(&m->frame);
    zmq_msg_init(&m->frame);
    zmq_msg_move(&m->frame, frame);
    m->has_frame = true;
}

static void on_refuse(HostMember *m, const HostMessage *message) {
    m->is_refused = true;
    snprintf(m->refusal, sizeof m->refusal, "%.*s", (int)(message->size_bytes < 500 ? message->size_bytes : 500),
             message->bytes != NULL ? (const char *)message->bytes : "");
    if (m->is_computing) break_off(m);
}

// What is computed is broken off, and its lease handed back; a trainer does not leave.
static void on_dismiss(HostMember *m, const HostMessage *message) {
    if (m->role == HOST_ROLE_TRAINER || m->is_dismissed) return;
    m->is_dismissed = true;
    int size = message->size_bytes < sizeof m->dismissal ? (int)message->size_bytes : (int)sizeof m->dismissal - 1;
    snprintf(m->dismissal, sizeof m->dismissal, "%.*s", size,
             message->bytes != NULL ? (const char *)message->bytes : "");
    if (m->is_computing) host_interrupt(true);
}

static void on_epoch(HostMember *m, const HostMessage *message) {
    m->knows_epoch = true;
    m->evaluators = message->value[1];
    m->tick_ms = message->value[2] > 0 && message->value[2] < 60000 ? message->value[2] : TICK_AT_FIRST_MS;
    m->is_short = message->value[3] != 0;
}

static void on_group(HostMember *m, const HostMessage *message) {
    int64_t rank = message->value[1], size = message->value[2];
    if (!m->is_enlisted || size < 0 || size > HOST_GROUP_MAX || rank < 0 || (size > 0 && rank >= size)) return;
    member_drop_posts(m);
    m->group = (MemberGroup){message->value[0], (int)rank, (int)size, (HostCollectives)message->value[3], ""};
    snprintf(m->group.why, sizeof m->group.why, "%.*s", message->bytes != NULL ? (int)message->size_bytes : 0,
             message->bytes != NULL ? (const char *)message->bytes : "");
    if (m->comm != NULL && m->comm_number != m->group.number) host_comm_abort(m->comm);
}

static void on_post(HostMember *m, const HostMessage *message) {
    if (message->value[0] != m->group.number || !host_wire_is_post(message)) return;
    size_t key_bytes = (size_t)message->value[1];
    member_keep_post(m, (const char *)message->bytes, key_bytes, message->bytes + key_bytes,
                     message->size_bytes - key_bytes);
}

// What is computed meanwhile is of no use: the lead calls between two rounds.
static void on_meet(HostMember *m, const HostMessage *message) {
    if (m->role != HOST_ROLE_FOLLOWER) return;
    m->is_called = true;
    m->call_number = message->value[0];
    m->call_label = message->value[1];
    if (m->is_computing) break_off(m);
}

static void on_suspicion(HostMember *m) {
    m->is_suspected = true;
    m->suspected_s = host_now_s();
}

// Whoever waits for the lead in a collective does so in vain.
static void on_finish(HostMember *m) {
    m->is_finished = true;
    if (m->is_computing) break_off(m);
    if (m->comm != NULL) host_comm_abort(m->comm);
}

// Messages about rounds and groups.
static void on_work_message(HostMember *m, const HostMessage *message, zmq_msg_t *frame) {
    switch (message->type) {
    case HOST_MESSAGE_LEASE:
        on_lease(m, message);
        return;
    case HOST_MESSAGE_ABANDON:
        on_abandon(m, message->value[0]);
        return;
    case HOST_MESSAGE_RESULT:
        on_result(m, message);
        return;
    case HOST_MESSAGE_LOST:
        on_lost(m, message);
        return;
    case HOST_MESSAGE_REFUTED:
        on_refuted(m, message);
        return;
    case HOST_MESSAGE_FETCH:
        on_fetch(m, message);
        return;
    case HOST_MESSAGE_PAYLOAD:
        on_payload(m, frame);
        return;
    case HOST_MESSAGE_GROUP:
        on_group(m, message);
        return;
    case HOST_MESSAGE_POST:
        on_post(m, message);
        return;
    case HOST_MESSAGE_MEET:
        on_meet(m, message);
        return;
    default:
        return; // not for a worker
    }
}

static void on_message(HostMember *m, const HostMessage *message, zmq_msg_t *frame) {
    m->heard_s = host_now_s();
    switch (message->type) {
    case HOST_MESSAGE_WELCOME:
        on_welcome(m, message);
        return;
    case HOST_MESSAGE_REFUSE:
        on_refuse(m, message);
        return;
    case HOST_MESSAGE_UNKNOWN:
        say_hello(m);
        return;
    case HOST_MESSAGE_EPOCH:
        on_epoch(m, message);
        return;
    case HOST_MESSAGE_CLOCK:
        on_clock(m, message);
        return;
    case HOST_MESSAGE_FINISH:
        on_finish(m);
        return;
    case HOST_MESSAGE_RESTART:
        on_suspicion(m);
        return;
    case HOST_MESSAGE_DISMISS:
        on_dismiss(m, message);
        return;
    default:
        on_work_message(m, message, frame);
    }
}

// ---- the thread ----------------------------------------------------------------------------------------------------

static void read_messages(HostMember *m) {
    for (;;) {
        zmq_msg_t frame;
        HostMessage message;
        zmq_msg_init(&frame);
        bool found = host_link_receive(&m->link, NULL, &frame, NULL);
        if (found && host_wire_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &message) == STATUS_OK) {
            pthread_mutex_lock(&m->mutex);
            on_message(m, &message, &frame);
            pthread_cond_broadcast(&m->changed);
            pthread_mutex_unlock(&m->mutex);
        }
        zmq_msg_close(&frame);
        if (!found) return;
    }
}

static void read_events(HostMember *m) {
    int event, fd;
    while (host_link_event(&m->link, &event, &fd)) {
        pthread_mutex_lock(&m->mutex);
        if (event == ZMQ_EVENT_CONNECTED) m->is_connected = true;
        if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) m->is_rejected = true;
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            m->shook_hands = true;
            say_hello(m); // to a new master, or again to the old one: a connection is a new worker
        }
        pthread_mutex_unlock(&m->mutex);
    }
}

// Sends what waits; whether the member is to end.
static bool send_outgoing(HostMember *m) {
    pthread_mutex_lock(&m->mutex);
    MemberOutgoing *out = m->outgoing;
    m->outgoing = NULL;
    m->outgoing_end = &m->outgoing;
    bool quits = m->quits;
    pthread_mutex_unlock(&m->mutex);
    while (out != NULL) {
        MemberOutgoing *next = out->next;
        host_link_forward(&m->link, NULL, &out->frame);
        free(out);
        out = next;
    }
    return quits;
}

static void tell_crash(HostMember *m) {
    int signal_number = m->crash.signal_number;
    if (signal_number == 0 || m->crash.is_told) return;
    // The mutex may be held by the thread that crashed.
    HostMessage message = {.type = HOST_MESSAGE_CRASH, .value = {m->lease, signal_number}};
    if (host_link_send(&m->link, NULL, &message) != STATUS_OK) return;
    m->crash.is_told = true;
}

// Whether the compute thread has had its time to move, and half as long again: how long a slow one needs the master
// learns by that.
static bool hangs(HostMember *m, int64_t looks, double now_s) {
    bool is_busy = m->is_computing || m->is_updating;
    if (!is_busy || looks != m->looks) {
        m->is_suspected = false;
        m->moved_s = now_s;
    }
    m->looks = looks;
    return m->is_suspected && now_s - m->suspected_s > m->hang_limit_s / 2;
}

static void tick(HostMember *m) {
    double now_s = host_now_s();
    int64_t looks = host_stop_looks();
    pthread_mutex_lock(&m->mutex);
    HostMessage message = {
        .type = HOST_MESSAGE_TICK,
        .value = {looks,
                  m->is_computing  ? m->lease
                  : m->is_updating ? -1
                                   : 0,
                  m->label, m->figures.collective_bytes},
    };
    if (host_link_send(&m->link, NULL, &message) != STATUS_OK) m->heard_s = 0;
    if (m->asks_clock) ask_for_clock(m);
    if (m->comm != NULL && host_stop_pending()) host_comm_abort(m->comm);
    bool is_silent = now_s - m->heard_s > GONE_AFTER_S;
    m->lost_since_s = !is_silent ? 0 : m->lost_since_s > 0 ? m->lost_since_s : now_s;
    m->is_master_gone = now_s - m->heard_s > m->patience_s;
    bool is_hung = hangs(m, looks, now_s);
    bool clings = m->comm_end_s > 0 && now_s - m->comm_end_s > MEMBER_COMM_END_S;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mutex);
    if (clings) {
        fprintf(stderr, "process %d: its collectives did not end within %g s of being aborted: it ends itself\n",
                (int)getpid(), MEMBER_COMM_END_S);
    }
    if (is_hung) {
        fprintf(stderr, "process %d: no progress for %.3g s (--hang-limit %g): it ends itself\n", (int)getpid(),
                now_s - m->moved_s, m->hang_limit_s);
    }
    if (is_hung || clings) _exit(HOST_EXIT_HANGS); // nothing else ends a thread that hears nothing
}

void *member_talk(void *context) {
    HostMember *m = context;
    double ticked_s = host_now_s();
    bool quits = false;
    while (!quits) {
        double left_s = ticked_s + 1e-3 * (double)m->tick_ms - host_now_s();
        zmq_pollitem_t items[] = {{m->link.socket, 0, ZMQ_POLLIN, 0},
                                  {m->link.monitor, 0, ZMQ_POLLIN, 0},
                                  {NULL, m->crash.wake_fd, ZMQ_POLLIN, 0}};
        zmq_poll(items, 3, left_s > 0 ? (long)(left_s * 1e3) + 1 : 0);
        uint64_t woken;
        if (items[2].revents != 0 && read(m->crash.wake_fd, &woken, sizeof woken) < 0) woken = 0;
        tell_crash(m);
        quits = send_outgoing(m);
        if (items[1].revents != 0) read_events(m);
        if (items[0].revents != 0) read_messages(m);
        if (host_now_s() - ticked_s < 1e-3 * (double)m->tick_ms) continue;
        ticked_s = host_now_s();
        tick(m);
    }
    return NULL;
}
