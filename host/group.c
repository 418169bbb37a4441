#include "host/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"
#include "host/member_parts.h"
#include "host/trace.h"

// To connect, and FORM_EACH_S for every member, each of which connects with each: nothing else wakes a member when
// another one dies meanwhile. After a failure it is twice as long, on a busy machine it may be too short.
#define FORM_S        1.5
#define FORM_EACH_S   0.15
#define PATIENCE_MOST 32
#define FORM_NCCL_S   60.0 // that other groups are formed meanwhile is looked for on the way

struct HostGroup {
    HostComm shown; // the meeting's: comm's calls, noted
    HostMember *member;
    HostGroupOptions options;
    char *address;  // the options', NULL: loopback
    HostComm *comm; // the member's, too, so that its other thread can abort it
    int64_t number; // of the group that comm is of; 0: of one alone
    bool is_new;
    double patience; // by what the time to connect is multiplied
    bool has_failed; // a collective of this meeting
    int64_t failed;  // then, its group's number
    char fault[128]; // and why
};

// ---- what members tell each other to find together -----------------------------------------------------------------

void member_drop_posts(HostMember *m) {
    for (MemberPost *post = m->posts, *next; post != NULL; post = next) {
        next = post->next;
        free(post);
    }
    m->posts = NULL;
    m->post_count = 0;
}

void member_keep_post(HostMember *m, const char *key, size_t key_bytes, const void *value, size_t value_bytes) {
    if (m->post_count == MEMBER_POSTS_MAX) return;
    MemberPost *post = calloc(1, sizeof *post + value_bytes);
    if (post == NULL) return; // whoever waits for it will ask for another group
    snprintf(post->key, sizeof post->key, "%.*s", (int)key_bytes, key);
    if (value_bytes > 0) memcpy(post->value, value, value_bytes);
    post->size_bytes = value_bytes;
    post->next = m->posts;
    m->posts = post;
    m->post_count++;
}

typedef struct Store {
    HostMember *member;
    int64_t number; // of the group
} Store;

static bool store_set(void *self, const char *key, const void *value, size_t size_bytes) {
    const Store *store = self;
    HostMember *m = store->member;
    size_t key_bytes = strlen(key);
    HostMessage message = {
        .type = HOST_MESSAGE_POST, .value = {store->number, (int64_t)key_bytes}, .size_bytes = key_bytes + size_bytes};
    if (!host_wire_is_post(&message)) return false;
    const void *parts[HOST_MEMBER_RECORDS] = {key, value};
    const size_t part_bytes[HOST_MEMBER_RECORDS] = {key_bytes, size_bytes};
    pthread_mutex_lock(&m->mutex);
    bool is_current = m->group.number == store->number;
    if (is_current) member_keep_post(m, key, key_bytes, value, size_bytes);
    is_current = is_current && member_send(m, &message, parts, part_bytes) == STATUS_OK;
    pthread_mutex_unlock(&m->mutex);
    return is_current;
}

static int64_t store_get(void *self, const char *key, void *value, size_t size_max, double timeout_s) {
    const Store *store = self;
    HostMember *m = store->member;
    double until_s = host_now_s() + timeout_s;
    int64_t size = -1;
    pthread_mutex_lock(&m->mutex);
    while (m->group.number == store->number && !host_stop_pending()) {
        const MemberPost *post = m->posts;
        while (post != NULL && strcmp(post->key, key) != 0)
            post = post->next;
        if (post != NULL && post->size_bytes <= size_max) {
            memcpy(value, post->value, post->size_bytes);
            size = (int64_t)post->size_bytes;
        }
        if (post != NULL || host_now_s() >= until_s) break;
        member_wait(m);
    }
    pthread_mutex_unlock(&m->mutex);
    return size;
}

// ---- forming -------------------------------------------------------------------------------------------------------

// The member's other thread ends the process where that takes too long: no other way is left then.
static void watch_end(HostMember *m, bool begins) {
    pthread_mutex_lock(&m->mutex);
    m->comm = NULL;
    m->comm_end_s = begins ? host_now_s() : 0;
    pthread_mutex_unlock(&m->mutex);
}

static void drop(HostGroup *g) {
    watch_end(g->member, true);
    host_comm_free(g->comm);
    watch_end(g->member, false);
    g->comm = NULL;
    g->number = 0;
}

// why: NULL where nothing has failed.
static Status ask_for_group(HostMember *m, int64_t failed, const char *why) {
    m->group_asked_s = host_now_s();
    HostMessage message = {.type = HOST_MESSAGE_REGROUP,
                           .value = {failed},
                           .bytes = (const unsigned char *)why,
                           .size_bytes = why != NULL ? strlen(why) : 0};
    return member_send(m, &message, NULL, NULL);
}

// Tells the master that the group is of no use, unless it knows.
static Status ask_for_another(HostMember *m, int64_t number, const char *why) {
    pthread_mutex_lock(&m->mutex);
    Status status = STATUS_OK;
    if (number != 0 && m->group.number == number) {
        m->group = (MemberGroup){0};
        status = ask_for_group(m, number, why);
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static Status connect_group(HostGroup *g, const MemberGroup *group) {
    HostMember *m = g->member;
    Store store = {m, group->number};
    char name[32];
    snprintf(name, sizeof name, "%llx", (unsigned long long)group->number);
    HostCommOptions options = {.rank = group->rank,
                               .size = group->size,
                               .store = {&store, store_set, store_get},
                               .group = name,
                               .address = g->address};
    HOST_TRACE_SCOPE(COMMUNICATION, "form a group");
    if (group->collectives == HOST_COLLECTIVES_NCCL) {
        const HostCommDevice *device = &g->options.device;
        if (device->open == NULL) return host_fail(STATUS_SYSTEM, "a group by NCCL, of which this trainer can be none");
        return device->open(device->self, &options, host_now_s() + FORM_NCCL_S, &g->comm);
    }
    return host_comm_gloo(&options, host_now_s() + g->patience * (FORM_S + FORM_EACH_S * group->size), &g->comm);
}

// Makes g->comm the group's, as the master has it. It is not there, and the status is STATUS_OK, where that fails.
static Status form(HostGroup *g, const MemberGroup *group) {
    HostMember *m = g->member;
    drop(g);
    Status status = group->size == 1 ? host_comm_self(&g->comm) : connect_group(g, group);
    if (status != STATUS_OK || g->comm == NULL) {
        char why[sizeof g->fault];
        snprintf(why, sizeof why, "%s", host_message());
        drop(g);
        if (status == STATUS_MEMORY) return status;
        if (g->patience < PATIENCE_MOST) g->patience *= 2;
        return ask_for_another(m, group->number, why);
    }
    g->patience = 1;
    pthread_mutex_lock(&m->mutex);
    bool is_current = m->group.number == group->number;
    if (is_current) {
        m->comm = g->comm;
        m->comm_number = group->number;
        m->figures.groups++;
        if (g->comm->takes_device) m->figures.nccl_groups++;
    }
    pthread_mutex_unlock(&m->mutex);
    if (!is_current) {
        drop(g);
        return STATUS_OK;
    }
    g->number = group->number;
    g->is_new = true;
    if (group->size > 1 && g->options.on_group != NULL) {
        char text[sizeof group->why + 64];
        snprintf(text, sizeof text, "%d trainers by %s: %s", group->size, g->comm->ops->name, group->why);
        g->options.on_group(g->options.context, text);
    }
    return STATUS_OK;
}

Status host_group_open(HostMember *member, const HostGroupOptions *options, HostGroup **group) {
    TRY(host_comm_gloo_check());
    HostGroup *g = calloc(1, sizeof *g);
    const char *address = options->address;
    if (g != NULL && address != NULL) g->address = strdup(address);
    if (g == NULL || (address != NULL && g->address == NULL)) {
        free(g);
        return host_fail(STATUS_MEMORY, "no memory for a group");
    }
    g->member = member;
    g->options = *options;
    g->options.address = g->address;
    g->patience = 1;
    pthread_mutex_lock(&member->mutex);
    member->is_enlisted = true;
    Status status = ask_for_group(member, 0, NULL);
    pthread_mutex_unlock(&member->mutex);
    *group = g;
    return status;
}

void host_group_close(HostGroup *g) {
    if (g == NULL) return;
    drop(g);
    pthread_mutex_lock(&g->member->mutex);
    g->member->is_enlisted = false;
    pthread_mutex_unlock(&g->member->mutex);
    free(g->address);
    free(g);
}

// ---- what a meeting is given: the group's calls, whose failure is noted --------------------------------------------

// Whether this trainer computes, and does not wait for others: what shows that it hangs differs.
static void set_updating(HostGroup *g, bool is_updating) {
    pthread_mutex_lock(&g->member->mutex);
    g->member->is_updating = is_updating;
    pthread_mutex_unlock(&g->member->mutex);
}

// NULL: the meeting has failed already.
static HostComm *enter(HostComm *shown) {
    HostGroup *g = (HostGroup *)shown;
    set_updating(g, false);
    return g->comm;
}

static Status gone(void) { return host_fail(STATUS_SYSTEM, "this group of trainers has failed before"); }

// What fails is ended at once, so that nothing of it is left in the way of what comes.
static Status leave(HostComm *shown, Status status) {
    HostGroup *g = (HostGroup *)shown;
    if (status != STATUS_OK && g->comm != NULL) {
        g->has_failed = true;
        g->failed = g->number;
        snprintf(g->fault, sizeof g->fault, "%s", host_message());
        drop(g);
    }
    host_stop_requested(); // a look at it shows that this thread moves
    set_updating(g, true);
    return status;
}

static Status shown_all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s) {
    HostComm *inner = enter(comm);
    return leave(comm, inner != NULL ? inner->ops->all_gather(inner, part, all, part_bytes, deadline_s) : gone());
}

static Status shown_broadcast(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s) {
    HostComm *inner = enter(comm);
    return leave(comm, inner != NULL ? inner->ops->broadcast(inner, data, size_bytes, root, deadline_s) : gone());
}

static Status shown_send(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s) {
    HostComm *inner = enter(comm);
    return leave(comm, inner != NULL ? inner->ops->send(inner, data, size_bytes, to, deadline_s) : gone());
}

static Status shown_recv(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s) {
    HostComm *inner = enter(comm);
    return leave(comm, inner != NULL ? inner->ops->recv(inner, data, size_bytes, from, deadline_s) : gone());
}

static Status shown_barrier(HostComm *comm, double deadline_s) {
    HostComm *inner = enter(comm);
    return leave(comm, inner != NULL ? inner->ops->barrier(inner, deadline_s) : gone());
}

static void shown_abort(HostComm *comm) {
    HostComm *inner = ((HostGroup *)comm)->comm;
    if (inner != NULL) host_comm_abort(inner);
}

static void shown_free(HostComm *comm) { (void)comm; } // the group's own

static const HostCommOps shown_ops = {"group",    shown_all_gather, shown_broadcast, shown_send,
                                      shown_recv, shown_barrier,    shown_abort,     shown_free};

// ---- meetings ------------------------------------------------------------------------------------------------------

static void begin_meeting(HostGroup *g, int64_t label, HostMeeting *meeting) {
    g->shown = (HostComm){
        .ops = &shown_ops, .rank = g->comm->rank, .size = g->comm->size, .takes_device = g->comm->takes_device};
    *meeting = (HostMeeting){.label = label, .comm = &g->shown, .is_new = g->is_new};
    g->has_failed = false;
    set_updating(g, true);
}

// Waits for the master's word on a group, and for the workers that are wanted; size 0: there is no master, nor was
// there for a while. The mutex is held.
static Status await_group(HostMember *m, MemberGroup *group) {
    for (;;) {
        host_stop_requested(); // a look at it shows that this thread moves
        if (host_stop_pending()) return host_fail(STATUS_STOPPED, "stopped while waiting for the other trainers");
        if (m->is_refused) return host_fail(STATUS_SYSTEM, "refused: %s", m->refusal);
        double now_s = host_now_s();
        if (m->lost_since_s > 0 && now_s - m->lost_since_s > MEMBER_ALONE_AFTER_S && !m->is_short) {
            m->group = *group = (MemberGroup){0}; // whoever comes has to be told what was done meanwhile
            return STATUS_OK;
        }
        *group = m->group;
        if (group->size > 0 && !m->is_short) return STATUS_OK;
        if (group->size == 0 && now_s - m->group_asked_s > MEMBER_ASK_AGAIN_S) TRY(ask_for_group(m, 0, NULL));
        member_wait(m);
    }
}

static Status be_alone(HostGroup *g) {
    drop(g);
    g->is_new = true;
    return host_comm_self(&g->comm);
}

Status host_group_call(HostGroup *g, int64_t label, HostMeeting *meeting) {
    HOST_TRACE_SCOPE(COMMUNICATION, "call the trainers");
    HostMember *m = g->member;
    for (;;) {
        MemberGroup group = {0};
        pthread_mutex_lock(&m->mutex);
        Status status = await_group(m, &group);
        HostMessage call = {.type = HOST_MESSAGE_MEET, .value = {group.number, label}};
        if (status == STATUS_OK && label >= 0) m->label = label;
        if (status == STATUS_OK && group.size > 1) status = member_send(m, &call, NULL, NULL);
        pthread_mutex_unlock(&m->mutex);
        TRY(status);
        if (group.size == 0) TRY(be_alone(g));
        if (group.size > 0 && (g->comm == NULL || g->number != group.number)) TRY(form(g, &group));
        if (g->comm == NULL) continue;
        begin_meeting(g, label, meeting);
        return STATUS_OK;
    }
}

Status host_group_answer(HostGroup *g, HostMeeting *meeting, bool *is_called) {
    HostMember *m = g->member;
    *meeting = (HostMeeting){0};
    pthread_mutex_lock(&m->mutex);
    MemberGroup group = m->group;
    *is_called = m->is_called;
    bool is_of_group = m->is_called && group.size > 0 && m->call_number == group.number;
    int64_t label = m->call_label;
    m->is_called = false;
    pthread_mutex_unlock(&m->mutex);
    if (!is_of_group) return STATUS_OK;
    if (g->comm == NULL || g->number != group.number) TRY(form(g, &group));
    if (g->comm != NULL) begin_meeting(g, label, meeting);
    return STATUS_OK;
}

Status host_group_settle(HostGroup *g, Status status, bool *is_held) {
    pthread_mutex_lock(&g->member->mutex);
    g->member->is_updating = false;
    g->member->figures.collective_bytes += g->shown.traffic_bytes;
    pthread_mutex_unlock(&g->member->mutex);
    g->shown.traffic_bytes = 0;
    *is_held = status == STATUS_OK && g->comm != NULL;
    if (*is_held) g->is_new = false;
    if (!g->has_failed) return status;
    g->has_failed = false;
    if (host_stop_pending()) return host_fail(STATUS_STOPPED, "stopped while the trainers shared an update");
    return ask_for_another(g->member, g->failed, g->fault);
}
