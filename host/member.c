#include "host/member.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/member_parts.h"
#include "host/trace.h"

enum { WAIT_MS = 50, LINGER_MS = 1000, PAYLOAD_WAIT_MS = 1000 };

// ---- joining and leaving -------------------------------------------------------------------------------------------

void member_wait(HostMember *m) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&m->changed, &m->mutex, &until);
}

// What is wrong with the connection, as a failure; STATUS_OK if nothing is. The mutex is held.
static Status check_master(const HostMember *m) {
    // A worker that is started again would be refused again.
    if (m->is_refused)
        return host_fail(m->role == HOST_ROLE_TRAINER ? STATUS_SYSTEM : STATUS_USAGE, "refused: %s", m->refusal);
    if (!m->is_master_gone) return STATUS_OK;
    if (m->is_welcome)
        return host_fail(STATUS_SYSTEM, "the master at %s has been silent for %g s", m->endpoint, m->patience_s);
    if (m->is_rejected || (m->is_connected && !m->shook_hands))
        return host_fail(STATUS_SYSTEM, "%s takes connections, but not with this secret (tried for %g s)", m->endpoint,
                         m->patience_s);
    if (m->shook_hands)
        return host_fail(STATUS_SYSTEM, "the master at %s has no trainer (waited for %g s)", m->endpoint,
                         m->patience_s);
    return host_fail(STATUS_SYSTEM, "no master at %s (tried for %g s)", m->endpoint, m->patience_s);
}

static Status say_who(const HostMemberOptions *options, char **hello) {
    char host[128] = "?";
    if (gethostname(host, sizeof host) != 0) host[0] = '?';
    host[sizeof host - 1] = '\0';
    json_t *settings = options->settings != NULL ? json_loads(options->settings, 0, NULL) : json_null();
    const HostCommGpu none = {0}, *gpu = options->gpu != NULL ? options->gpu : &none;
    json_t *about =
        json_pack("{s:s s:s s:s s:o s:s s:i s:s}", "build", options->build, "host", host, "device", options->device,
                  "settings", settings, "gpu", gpu->id, "nccl", gpu->version, "nccl_missing", gpu->missing);
    *hello = about != NULL ? json_dumps(about, JSON_COMPACT) : NULL;
    json_decref(about);
    return *hello != NULL ? STATUS_OK : host_fail(STATUS_MEMORY, "no memory for a greeting");
}

static Status start(HostMember *m, const HostMemberOptions *options) {
    TRY(say_who(options, &m->hello));
    m->crash.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->crash.wake_fd < 0) return host_fail(STATUS_SYSTEM, "cannot make an eventfd: %s", strerror(errno));
    uint32_t life = 0;
    while (m->role == HOST_ROLE_TRAINER && life == 0)
        host_random_bytes(&life, sizeof life);
    m->session = host_secret_tag(options->keys) | (int64_t)life;
    TRY(host_link_connect(&m->link, options->endpoint, options->keys));
    int failed = pthread_create(&m->thread, NULL, member_talk, m);
    if (failed == 0) return host_signals_on_crash(&m->crash);
    host_link_close(&m->link, 0);
    return host_fail(STATUS_SYSTEM, "cannot start a thread: %s", strerror(failed));
}

// A trainer waits for a moment only: it can do without a master.
static Status await_welcome(HostMember *m) {
    Status status = STATUS_OK;
    double until_s = host_now_s() + MEMBER_ALONE_AFTER_S;
    pthread_mutex_lock(&m->mutex);
    while (status == STATUS_OK && !m->is_finished && !(m->is_welcome && m->knows_epoch) &&
           (m->role != HOST_ROLE_TRAINER || host_now_s() < until_s)) {
        member_wait(m);
        status = check_master(m);
        if (status == STATUS_OK && host_stop_requested()) status = host_fail(STATUS_STOPPED, "stopped while joining");
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

Status host_member_open(const HostMemberOptions *options, HostMember **out) {
    HostMember *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL) return host_fail(STATUS_MEMORY, "no memory for a member");
    m->role = options->role;
    m->threads = options->threads;
    m->patience_s = options->patience_s;
    m->asks_clock = options->asks_clock;
    m->on_work = options->on_work;
    m->work_context = options->context;
    m->clock.error_ns = -1;
    m->held = m->place = -1;
    m->is_short = options->min_workers > 1; // until the master knows better
    m->tick_ms = 200;
    m->heard_s = host_now_s();
    m->outgoing_end = &m->outgoing;
    m->crash.wake_fd = -1;
    snprintf(m->endpoint, sizeof m->endpoint, "%s", options->endpoint);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&m->mutex, NULL);
    Status status = start(m, options);
    if (status == STATUS_OK) status = await_welcome(m);
    if (status == STATUS_OK) {
        *out = m;
    } else {
        host_member_close(m, false);
    }
    return status;
}

static void free_member(HostMember *m) {
    host_payload_close(&m->payload, true);
    if (m->is_finished) host_payload_sweep(m->session);
    if (m->has_frame) zmq_msg_close(&m->frame);
    member_drop_posts(m);
    if (m->crash.wake_fd >= 0) close(m->crash.wake_fd);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->mutex);
    free(m->hello);
    free(m->settings);
    free(m->round.done);
    free(m->round.lost);
    free(m);
}

void host_member_close(HostMember *m, bool is_over) {
    if (m == NULL) return;
    if (m->link.socket != NULL) {
        pthread_mutex_lock(&m->mutex);
        HostMessage last = {.type = is_over ? HOST_MESSAGE_FINISH : HOST_MESSAGE_LEAVE};
        Status status = member_send(m, &last, NULL, NULL);
        // The master says it after the trainer: then all have been told.
        double until_s = host_now_s() + LINGER_MS * 1e-3;
        while (is_over && status == STATUS_OK && !m->is_finished && m->lost_since_s == 0 && host_now_s() < until_s)
            member_wait(m);
        m->quits = true;
        pthread_mutex_unlock(&m->mutex);
        member_wake(m);
        pthread_join(m->thread, NULL);
        if (host_signals_on_crash(NULL) != STATUS_OK) m->quits = true;
        host_link_close(&m->link, m->is_welcome ? LINGER_MS : 0);
    }
    free_member(m);
}

const char *host_member_settings(const HostMember *m) { return m->settings != NULL ? m->settings : ""; }

HostMemberFigures host_member_figures(HostMember *m) {
    pthread_mutex_lock(&m->mutex);
    HostMemberFigures figures = m->figures;
    figures.evaluators = m->evaluators;
    pthread_mutex_unlock(&m->mutex);
    return figures;
}

// ---- rounds --------------------------------------------------------------------------------------------------------

bool host_member_is_alone(HostMember *m, int64_t label) {
    pthread_mutex_lock(&m->mutex);
    m->label = label;
    bool is_alone = !m->is_short && (m->evaluators == 0 || m->lost_since_s > 0);
    pthread_mutex_unlock(&m->mutex);
    return is_alone;
}

static Status share_payload(HostMember *m, const HostRound *round, int64_t number) {
    host_payload_close(&m->payload, true);
    HostPayload other = {0}; // of the same name, which does not happen: it is not read
    bool is_claimed = host_payload_open(&other, m->session, number) == HOST_PAYLOAD_CLAIMED;
    host_payload_close(&other, false);
    return host_payload_fill(&m->payload, m->session, number, is_claimed, round->payload, round->payload_bytes);
}

static Status begin(HostMember *m, const HostRound *round) {
    MemberRound *r = &m->round;
    int64_t number = r->number + 1;
    if (round->count > r->done_room) {
        uint8_t *done = realloc(r->done, (size_t)round->count);
        if (done != NULL) r->done = done;
        int32_t *lost = realloc(r->lost, (size_t)round->count * sizeof *lost);
        if (lost != NULL) r->lost = lost;
        if (done == NULL || lost == NULL) return host_fail(STATUS_MEMORY, "no memory for %d items", round->count);
        r->done_room = r->lost_room = round->count;
    }
    TRY(share_payload(m, round, number));
    memset(r->done, 0, (size_t)round->count);
    r->of = *round;
    r->of.payload = NULL; // the caller's
    r->number = number;
    r->is_open = true;
    r->left = round->count;
    r->lost_count = 0;
    r->is_refuted = false;
    m->has_task = false;
    m->label = round->label;
    m->figures.rounds++;
    return member_send_round(m);
}

Status host_member_begin(HostMember *m, const HostRound *round) {
    HOST_TRACE_SCOPE(COMMUNICATION, "begin round");
    pthread_mutex_lock(&m->mutex);
    Status status = begin(m, round);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

void host_member_end(HostMember *m) {
    pthread_mutex_lock(&m->mutex);
    m->round.is_open = false;
    pthread_mutex_unlock(&m->mutex);
}

const int32_t *host_member_lost(const HostMember *m, int32_t *count) {
    *count = m->round.lost_count;
    return m->round.lost;
}

bool host_member_is_refuted(const HostMember *m) { return m->round.is_refuted; }

// ---- payloads ------------------------------------------------------------------------------------------------------

// The frame that was asked for, if it is this task's: its payload is taken over.
static Status take_frame(HostMember *m, const HostTask *task, bool is_claimed, bool *is_there) {
    HostMessage message;
    bool fits = host_wire_decode(zmq_msg_data(&m->frame), zmq_msg_size(&m->frame), &message) == STATUS_OK &&
                message.value[0] == task->session && message.value[1] == task->round;
    Status status = STATUS_OK;
    if (fits) {
        status =
            host_payload_fill(&m->payload, task->session, task->round, is_claimed, message.bytes, message.size_bytes);
    }
    zmq_msg_close(&m->frame);
    m->has_frame = false;
    *is_there = fits && status == STATUS_OK;
    return status;
}

// Asks the master for the payload and waits; not there if the task is of no use any more. The mutex is held.
static Status fetch(HostMember *m, const HostTask *task, bool is_claimed, bool *is_there) {
    HostMessage message = {.type = HOST_MESSAGE_FETCH, .value = {task->session, task->round}};
    double asked_s = 0;
    Status status = STATUS_OK;
    while (status == STATUS_OK && !*is_there && !m->is_abandoned) {
        if (host_now_s() - asked_s > MEMBER_ASK_AGAIN_S) {
            TRY(member_send(m, &message, NULL, NULL));
            asked_s = host_now_s();
        }
        if (m->has_frame) {
            status = take_frame(m, task, is_claimed, is_there);
            continue;
        }
        member_wait(m);
        status = check_master(m);
        if (status == STATUS_OK && !m->is_abandoned && host_stop_requested())
            status = host_fail(STATUS_STOPPED, "stopped while waiting for parameters");
    }
    if (!*is_there && is_claimed) host_payload_unclaim(task->session, task->round);
    return status;
}

// Brings the task's payload: from this host's memory, else from the master. The mutex is held.
static Status bring_payload(HostMember *m, HostTask *task, bool *is_there) {
    *is_there = m->payload.round == task->round && m->payload.session == task->session;
    if (!*is_there) {
        host_payload_close(&m->payload, true);
        HostPayloadState state = host_payload_open(&m->payload, task->session, task->round);
        bool is_claimed = state == HOST_PAYLOAD_CLAIMED;
        double until_s = host_now_s() + PAYLOAD_WAIT_MS * 1e-3;
        while (state == HOST_PAYLOAD_COMING && !m->is_abandoned && host_now_s() < until_s) {
            pthread_mutex_unlock(&m->mutex);
            nanosleep(&(struct timespec){0, 200000}, NULL);
            state = host_payload_look(&m->payload, task->session, task->round);
            pthread_mutex_lock(&m->mutex);
        }
        *is_there = state == HOST_PAYLOAD_READY;
        if (!*is_there) TRY(fetch(m, task, is_claimed, is_there));
    }
    task->payload = m->payload.bytes;
    task->payload_bytes = m->payload.size_bytes;
    return STATUS_OK;
}

// ---- leases --------------------------------------------------------------------------------------------------------

void host_member_hold(HostMember *m, int64_t label) {
    pthread_mutex_lock(&m->mutex);
    m->held = label;
    pthread_mutex_unlock(&m->mutex);
}

static void begin_computing(HostMember *m, const HostTask *task) {
    m->is_computing = true;
    m->is_abandoned = false;
    m->lease = task->lease;
    host_interrupt(false);
}

static void end_computing(HostMember *m) {
    m->is_computing = m->is_abandoned = false;
    m->lease = 0;
    host_interrupt(false);
}

static Status ask_for_lease(HostMember *m) {
    m->wants = true;
    return member_send(m, &(HostMessage){.type = HOST_MESSAGE_WANT}, NULL, NULL);
}

static Status check_stop(const HostMember *m) {
    if (m->is_dismissed) return host_fail(STATUS_STOPPED, "asked to leave: %s", m->dismissal);
    return host_stop_requested() ? host_fail(STATUS_STOPPED, "stopped between two leases") : STATUS_OK;
}

// Without a master: the first items that are not done, a part of them, so that others may still help with the rest.
static void lease_to_self(const HostMember *m, HostTask *task) {
    const MemberRound *r = &m->round;
    int32_t first = 0, end, most = r->left / 4 / r->of.grain * r->of.grain;
    while (r->done[first])
        first++;
    for (end = first; end < r->of.count && !r->done[end] && end - first < (most > 0 ? most : r->of.grain);)
        end++;
    *task = (HostTask){.session = m->session, .round = r->number, .first = first, .count = end - first};
}

static Status next_of_trainer(HostMember *m, HostTask *task) {
    MemberRound *r = &m->round;
    for (;;) {
        if (r->left == 0 || r->is_refuted) return STATUS_OK;
        TRY(check_stop(m));
        double now_s = host_now_s();
        if (m->has_task) {
            *task = m->task;
            m->has_task = false;
        } else if (m->lost_since_s > 0 && now_s - m->lost_since_s > MEMBER_ALONE_AFTER_S && !m->is_short) {
            lease_to_self(m, task);
        } else {
            if (now_s - r->news_s > MEMBER_ASK_AGAIN_S) TRY(member_send_round(m));
            member_wait(m);
            if (m->is_refused) return check_master(m);
            continue;
        }
        begin_computing(m, task);
        return STATUS_OK;
    }
}

static Status next_of_evaluator(HostMember *m, HostTask *task) {
    if (!m->has_task && !m->wants) TRY(ask_for_lease(m));
    for (;;) {
        if (m->is_finished || m->is_called) return STATUS_OK;
        TRY(check_stop(m));
        TRY(check_master(m));
        if (!m->has_task) {
            member_wait(m);
            continue;
        }
        *task = m->task;
        m->has_task = false;
        begin_computing(m, task);
        bool is_there = m->held == task->label;
        if (!is_there) TRY(bring_payload(m, task, &is_there));
        if (is_there) return STATUS_OK;
        end_computing(m);
        *task = (HostTask){0};
        TRY(ask_for_lease(m));
    }
}

Status host_member_next(HostMember *m, HostTask *task) {
    HOST_TRACE_SCOPE(COMMUNICATION, "wait for a lease");
    *task = (HostTask){0};
    pthread_mutex_lock(&m->mutex);
    Status status = m->role == HOST_ROLE_TRAINER ? next_of_trainer(m, task) : next_of_evaluator(m, task);
    if (status != STATUS_OK) end_computing(m);
    bool has_work = status == STATUS_OK && (task->count > 0 || m->is_called);
    int64_t label = task->count > 0 ? task->label : m->call_label;
    pthread_mutex_unlock(&m->mutex);
    if (has_work && m->on_work != NULL) m->on_work(m->work_context, label);
    return status;
}

int64_t host_member_place(HostMember *m) {
    pthread_mutex_lock(&m->mutex);
    int64_t place = m->place;
    pthread_mutex_unlock(&m->mutex);
    return place;
}

// Written once, before is_dismissed is set.
const char *host_member_dismissal(HostMember *m) {
    pthread_mutex_lock(&m->mutex);
    bool is_dismissed = m->is_dismissed;
    pthread_mutex_unlock(&m->mutex);
    return is_dismissed ? m->dismissal : "";
}

static Status finish(HostMember *m, const HostTask *task, const void *const records[HOST_MEMBER_RECORDS],
                     const size_t record_bytes[HOST_MEMBER_RECORDS]) {
    HostMessage message = {.type = HOST_MESSAGE_DONE,
                           .value = {task->session, task->round, task->lease, task->first, task->count}};
    if (m->role == HOST_ROLE_TRAINER) {
        member_take_records(m, task->first, task->count, (const unsigned char *const *)records, true);
        return m->round.left > 0 && task->lease != 0 ? member_send(m, &message, NULL, NULL) : STATUS_OK;
    }
    size_t part_bytes[HOST_MEMBER_RECORDS];
    message.type = HOST_MESSAGE_RESULT;
    for (int k = 0; k < HOST_MEMBER_RECORDS; k++)
        message.size_bytes += part_bytes[k] = (size_t)task->count * record_bytes[k];
    m->figures.own_items += task->count;
    m->wants = true;
    return member_send(m, &message, records, part_bytes);
}

Status host_member_finish(HostMember *m, const HostTask *task, const void *const records[HOST_MEMBER_RECORDS],
                          const size_t record_bytes[HOST_MEMBER_RECORDS]) {
    HOST_TRACE_SCOPE(COMMUNICATION, "hand results over");
    pthread_mutex_lock(&m->mutex);
    end_computing(m);
    Status status = finish(m, task, records, record_bytes);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

Status host_member_broken_off(HostMember *m, const HostTask *task) {
    pthread_mutex_lock(&m->mutex);
    bool is_abandoned = m->is_abandoned;
    end_computing(m);
    Status status;
    if (is_abandoned) {
        status = m->is_finished ? STATUS_OK : ask_for_lease(m);
    } else {
        HostMessage back = {.type = HOST_MESSAGE_RETURN, .value = {task->lease}};
        status = member_send(m, &back, NULL, NULL);
        if (status == STATUS_OK) status = STATUS_STOPPED;
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

Status host_member_reject(HostMember *m, const HostTask *task) {
    HostMessage message = {.type = HOST_MESSAGE_REJECT, .value = {task->session, task->round, task->lease}};
    pthread_mutex_lock(&m->mutex);
    end_computing(m);
    Status status = STATUS_OK;
    if (m->role == HOST_ROLE_TRAINER) {
        m->round.is_refuted = true;
    } else {
        m->wants = true;
        status = member_send(m, &message, NULL, NULL);
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}
