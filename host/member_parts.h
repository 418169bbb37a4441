// A member's parts, shared by host/member*.c and private to them.
//
// Ownership: a HostMember owns everything in it. Thread safety: `mutex` guards what stands below it; the thread that
// talks to the master and the compute thread both take it.
#ifndef SHOAL_HOST_MEMBER_PARTS_H
#define SHOAL_HOST_MEMBER_PARTS_H

#include <pthread.h>

#include "host/comm.h"
#include "host/link.h"
#include "host/member.h"
#include "host/payload.h"
#include "host/signals.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MEMBER_ALONE_AFTER_S 0.5 // without a master, the trainer goes on by itself
#define MEMBER_ASK_AGAIN_S   2.0 // without news, the master is told again what is wanted
#define MEMBER_COMM_END_S    5.0 // that the end of collectives may take; then the process ends

typedef struct MemberOutgoing MemberOutgoing;
struct MemberOutgoing {
    MemberOutgoing *next;
    zmq_msg_t frame;
};

// What a trainer of the present group has told the others.
typedef struct MemberPost MemberPost;
struct MemberPost {
    MemberPost *next;
    char key[HOST_WIRE_KEY_MAX + 1];
    size_t size_bytes;
    unsigned char value[];
};

enum { MEMBER_POSTS_MAX = 512 };

typedef struct MemberClock {
    int64_t offset_ns, error_ns; // of the best answer; error -1: there was none
    double measured_s;
} MemberClock;

// The group as the master has it.
typedef struct MemberGroup {
    int64_t number; // 0: not told yet
    int rank, size; // size 0: there is none
    HostCollectives collectives;
    char why[256]; // those
} MemberGroup;

// The trainer's present round.
typedef struct MemberRound {
    HostRound of;
    int64_t number; // 0: none yet
    bool is_open;   // its arrays are there
    uint8_t *done;  // [of.count]
    int32_t done_room;
    int32_t left; // items not done
    int32_t *lost;
    int32_t lost_count, lost_room;
    bool is_refuted;
    double news_s; // when something last came of it
} MemberRound;

struct HostMember { // NOLINT(clang-analyzer-optin.performance.Padding): in the order of what it is for
    HostRole role;
    double patience_s;
    bool asks_clock;
    void (*on_work)(void *context, int64_t label);
    void *work_context;
    char endpoint[HOST_ENDPOINT_MAX];
    char *hello; // JSON
    int threads;
    pthread_t thread;
    HostLink link; // the thread's
    HostCrash crash;
    int64_t session; // the run's tag; a trainer's has a random lower half

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    MemberOutgoing *outgoing, **outgoing_end;
    bool quits;
    // The connection.
    bool is_connected, shook_hands, is_rejected; // ever; the last: the other end turned the key down
    bool is_welcome, knows_epoch, is_refused, is_finished, is_master_gone;
    char refusal[512];
    char *settings;
    double heard_s;      // from the master
    double lost_since_s; // no master since; 0: there is one
    int64_t evaluators, tick_ms;
    int64_t place;     // among the workers; -1: none yet
    bool is_dismissed; // asked to leave
    char dismissal[256];
    MemberClock clock; // the master's
    bool is_short;     // of workers: nobody computes, and a trainer does not go on alone
    bool wants;        // a WANT was said and not answered; said again to a new master
    // Leases.
    bool has_task;
    HostTask task;
    bool is_computing, is_abandoned;
    bool is_updating; // computes in a meeting of trainers, and waits for none of them
    int64_t lease;    // being computed
    int64_t label;
    double hang_limit_s; // the run's
    int64_t looks;       // for a stop, by the last tick
    double moved_s;      // when there was a new one, or nothing to compute
    bool is_suspected;   // of hanging
    double suspected_s;
    // Payloads.
    HostPayload payload; // the compute thread's; the other one only reads it for FETCH
    bool has_frame;      // of a payload that was asked for
    zmq_msg_t frame;
    MemberRound round;
    int64_t held; // the label of the round whose payload the worker has itself
    // Groups.
    bool is_enlisted;
    double group_asked_s;
    MemberGroup group;
    MemberPost *posts; // of that group
    int post_count;
    bool is_called;
    int64_t call_number, call_label;
    HostComm *comm; // host/group.c's; NULL: none
    int64_t comm_number;
    double comm_end_s; // since when an end of collectives is under way; 0: none is
    HostMemberFigures figures;
};

// ---- member.c ------------------------------------------------------------------------------------------------------

// Waits for a change, a few tens of milliseconds at most. The mutex is held.
void member_wait(HostMember *m);

// ---- group.c -------------------------------------------------------------------------------------------------------

// Posts of the present group; the mutex is held.
void member_keep_post(HostMember *m, const char *key, size_t key_bytes, const void *value, size_t value_bytes);
void member_drop_posts(HostMember *m);

// ---- member_link.c -------------------------------------------------------------------------------------------------

// The thread that talks to the master.
void *member_talk(void *member);

void member_wake(HostMember *m);

// Puts a message on its way; the mutex is held. The message's bytes may come in two parts, of sizes that add up to
// size_bytes.
Status member_send(HostMember *m, const HostMessage *message, const void *const parts[HOST_MEMBER_RECORDS],
                   const size_t part_bytes[HOST_MEMBER_RECORDS]) HOST_MUST_CHECK;

// What the trainer still wants, to a master that may know nothing of it; the mutex is held.
Status member_send_round(HostMember *m) HOST_MUST_CHECK;

// Takes an item's records in, unless it has some. The mutex is held.
void member_take_records(HostMember *m, int32_t first, int32_t count, const unsigned char *const records[],
                         bool is_own);

#ifdef __cplusplus
}
#endif

#endif
