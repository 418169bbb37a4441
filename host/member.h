// A worker's side of its master: joins a run, gets leases, hands results over; and the trainer's rounds.
//
// Trainers that hold the same state share more than rounds: host/group.h.
//
// A thread of its own talks to the master, so that a worker is heard while it computes, and tells it the compute
// thread's progress: how often loops looked for a stop (host/signals.h).
//
// A round is `count` items, computed from one payload. Each item's results are two records of fixed size; wherever an
// item was computed, they end up in the trainer's arrays, and the first ones stay. Without word from the master the
// trainer goes on by itself, and what comes late is of no harm.
//
// Ownership: host_member_open()/host_member_close(); a round's arrays and payload are the trainer's. Errors:
// STATUS_SYSTEM (no master, refused, gone), STATUS_STOPPED, STATUS_MEMORY. Thread safety: one compute thread calls all
// functions.
#ifndef SHOAL_HOST_MEMBER_H
#define SHOAL_HOST_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/comm.h"
#include "host/secret.h"
#include "host/status.h"
#include "host/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_MEMBER_RECORDS = 2, HOST_EXIT_HANGS = 75 }; // the exit status of a worker whose compute thread hung

typedef struct HostMember HostMember;

typedef struct HostMemberOptions {
    const char *endpoint;
    const HostKeys *keys;
    HostRole role;
    const char *build;      // all workers' and the master's must be the same
    const char *device;     // for people
    const HostCommGpu *gpu; // that it computes on; NULL: on none
    const char *settings;   // the trainer's: the run's, as JSON; evaluators get them
    int threads;
    int min_workers;
    double patience_s; // without a word from the master: then there is none
    bool asks_clock;   // for host_member_clock()
    // An evaluator's or a follower's: called in host_member_next() before it gives something to do of a round or a
    // meeting of that label. NULL is fine.
    void (*on_work)(void *context, int64_t label);
    void *context;
} HostMemberOptions;

// An evaluator or a follower joins and waits for the welcome; a trainer begins, and whoever comes may help.
Status host_member_open(const HostMemberOptions *options, HostMember **member) HOST_MUST_CHECK;

// Leaves; with `is_over`, the trainer's, all others are told that the run is over. NULL is fine.
void host_member_close(HostMember *member, bool is_over);

// The run's settings as JSON; an evaluator's, until it is closed.
const char *host_member_settings(const HostMember *member);

// The place that the master has given this worker: 0 for the trainer, else the lowest from 1 on that nobody had; -1:
// there was no welcome yet.
int64_t host_member_place(HostMember *member);

// Why the master asked this worker to leave; "": it did not. From then on host_member_next() gives STATUS_STOPPED.
const char *host_member_dismissal(HostMember *member);

// What is to be added to host_now_ns() to have the master's, and a bound of the error. False: it was not known within
// wait_s.
bool host_member_clock(HostMember *member, double wait_s, int64_t *offset_ns, int64_t *error_ns);

// ---- the trainer's rounds ------------------------------------------------------------------------------------------

typedef struct HostRound {
    int64_t label;
    int32_t count, grain;
    const void *payload;
    size_t payload_bytes;
    unsigned char *records[HOST_MEMBER_RECORDS]; // [count][record_bytes]; NULL where record_bytes is 0
    size_t record_bytes[HOST_MEMBER_RECORDS];
} HostRound;

// Whether the trainer had better compute the round of that label itself: there is nobody else, and nobody is to be
// waited for.
bool host_member_is_alone(HostMember *member, int64_t label);

Status host_member_begin(HostMember *member, const HostRound *round) HOST_MUST_CHECK;

// However the round has ended: nothing is written to its arrays any more.
void host_member_end(HostMember *member);

// After the round: items that crash every worker, in ascending order; what stands in their records is nothing. Valid
// until the next round.
const int32_t *host_member_lost(const HostMember *member, int32_t *count);

// Whether the round ended because some items could not be computed, wherever that was.
bool host_member_is_refuted(const HostMember *member);

// ---- leases --------------------------------------------------------------------------------------------------------

typedef struct HostTask {
    int64_t session, round, lease;
    int32_t first, count;
    const unsigned char *payload; // until the next task; NULL: what the worker holds (host_member_hold())
    size_t payload_bytes;
    int64_t label; // of the round
} HostTask;

// The worker has itself what the round of that label is computed from, so that it needs no payload; -1: of none.
void host_member_hold(HostMember *member, int64_t label);

// Waits for the next lease. count 0: the round is complete (trainer), the run is over (evaluator), the lead calls or
// the run is over (follower: host_group_answer() says which). STATUS_STOPPED if a stop was asked for, or leaving.
Status host_member_next(HostMember *member, HostTask *task) HOST_MUST_CHECK;

// The task's records, [task->count][record_bytes] each.
Status host_member_finish(HostMember *member, const HostTask *task, const void *const records[HOST_MEMBER_RECORDS],
                          const size_t record_bytes[HOST_MEMBER_RECORDS]) HOST_MUST_CHECK;

// The task was broken off. Gives STATUS_OK if others have done it, so that the worker goes on; else the lease is handed
// back and the status is STATUS_STOPPED.
Status host_member_broken_off(HostMember *member, const HostTask *task) HOST_MUST_CHECK;

// The task cannot be computed. The round ends there.
Status host_member_reject(HostMember *member, const HostTask *task) HOST_MUST_CHECK;

// ---- figures -------------------------------------------------------------------------------------------------------

// M(figure, what it counts)
#define HOST_MEMBER_FIGURES(M)                           \
    M(rounds, "rounds with others")                      \
    M(own_items, "items computed by this worker")        \
    M(other_items, "items computed by others")           \
    M(repeated_items, "items whose results came again")  \
    M(lost_items, "items that crash every worker")       \
    M(payload_bytes, "payloads sent by message")         \
    M(payload_messages, "how many those were")           \
    M(result_bytes, "results received by message")       \
    M(result_messages, "how many those were")            \
    M(groups, "groups of trainers that this one was of") \
    M(nccl_groups, "of those, by NCCL")                  \
    M(collective_bytes, "exchanged between trainers")    \
    M(masters, "masters that there have been, one by one")

typedef struct HostMemberFigures {
#define HOST_MEMBER_FIELD(name, meaning) int64_t name;
    HOST_MEMBER_FIGURES(HOST_MEMBER_FIELD)
#undef HOST_MEMBER_FIELD
    int64_t evaluators; // and followers, now
} HostMemberFigures;

HostMemberFigures host_member_figures(HostMember *member);

#ifdef __cplusplus
}
#endif

#endif
