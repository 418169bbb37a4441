// The master's parts, shared by host/master*.c and private to them.
//
// Ownership: a Master owns everything in it. Errors: Status. Thread safety: none.
#ifndef SHOAL_HOST_MASTER_PARTS_H
#define SHOAL_HOST_MASTER_PARTS_H

#include "host/group.h"
#include "host/lease.h"
#include "host/link.h"
#include "host/master.h"
#include "host/scale.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MASTER_TEXT_MAX = 128, MASTER_GONE_MAX = 1024 };

typedef struct MasterWorker {
    HostIdentity identity;
    int64_t id;    // counts up from 1; never used again
    int64_t place; // 0: the trainer; else the lowest from 1 on that nobody had when it came
    HostRole role;
    int64_t pid;
    int threads;
    char host[MASTER_TEXT_MAX], device[MASTER_TEXT_MAX];
    char gpu[MASTER_TEXT_MAX]; // which GPU it has; "": none
    int nccl;                  // the version it has; 0: none
    char nccl_missing[MASTER_TEXT_MAX + 32];
    int fd;             // of its connection; -1: unknown
    int ignored_events; // disconnections to come that are of an earlier connection with the same number
    bool is_welcome;    // told the run's settings
    bool is_ready;      // has asked for a lease since: it counts
    bool is_idle;       // wants a lease
    bool is_hung;       // gets none
    bool is_reported;   // to the supervisor
    bool is_dismissed;  // was asked to leave: it gets none, and does not count
    bool wants_payload; // of the present round
    bool shares_lease;  // with another worker: it was late
    double joined_s, heard_s, progress_s;
    double silent_s; // the longest it has said nothing since it last made progress
    int64_t ticks, at_lease;
    bool is_enlisted; // a trainer that takes part in groups
    bool is_refused;
    double enlisted_s;
    double out_until_s; // it is of no group: those that it was of could not be formed
    int posts;          // in the present group
    int64_t collective_bytes;
    int64_t lease;  // that it holds, 0: none
    int64_t label;  // of the round it is at
    double lease_s; // when it got it
    double rate;    // items/s; 0: unknown
    int64_t items;  // done
    int64_t in_bytes, out_bytes;
} MasterWorker;

typedef struct MasterCounts {
    int64_t joins, leaves, dismissals, deaths, crashes, hangs, refusals, strangers;
    int64_t leases, late_leases, items, repeated_items, lost_items;
    int64_t payload_messages, payload_bytes, result_messages, result_bytes, in_messages, out_messages;
    double last_death_s; // how long ago the last death had been heard of when it was noticed
} MasterCounts;

// The trainers that have collectives with each other; a member's place is its rank, and the lead's is 0.
typedef struct MasterGroup {
    int64_t number; // 0: none yet
    int size;
    int64_t member[HOST_GROUP_MAX]; // [size] workers' ids
    double since_s;
    int failures;      // of groups of these same members, one by one, each soon after it was formed
    int nccl_failures; // of those by NCCL, however late, in a row
    int meetings;      // by NCCL, that the lead has called
    double broken_s;   // since when another one is wanted; 0: it is not
    HostCollectives collectives;
    char why[256];   // those
    char fault[128]; // what was first said of this group's failure; where NCCL is shunned, of the last one by it
    bool shuns_nccl; // it failed these members
} MasterGroup;

typedef struct Master {
    const HostMasterOptions *options;
    HostLink link;
    MasterWorker *workers; // [worker_count]
    int worker_count, worker_room;
    int64_t next_worker, epoch;
    bool epoch_changed;
    double start_s, tick_s, beat_s, helper_s; // when a helper was last there
    double hang_limit_s;                      // by now
    int64_t careful_label; // the last round at which a trainer died: it may have been the round's fault
    char *settings;        // JSON, the trainer's; NULL: no trainer yet
    size_t settings_bytes;
    // The present round; session 0: none.
    int64_t session, round;
    HostLeaseTable leases;
    zmq_msg_t payload; // the message that brought it
    bool has_payload, asked_payload;
    bool is_finished;
    double finished_s;
    int gone[MASTER_GONE_MAX]; // connections that are gone, their workers not yet
    int gone_count;
    MasterGroup group;
    HostScale scale;
    MasterCounts counts;
    int64_t farewells; // workers that came after the end and were told so
} Master;

// ---- master.c ------------------------------------------------------------------------------------------------------

void master_tell_supervisor(const Master *m, const char *line);
void master_send(Master *m, MasterWorker *worker, const HostMessage *message);
void master_refuse(Master *m, MasterWorker *worker, const char *text);
void master_forward(Master *m, MasterWorker *worker, zmq_msg_t *frame);
void master_begin_epoch(Master *m); // the set of workers has changed
void master_set_ready(Master *m, MasterWorker *worker);
void master_set_hung(Master *m, MasterWorker *worker); // others get its lease; it is to restart
MasterWorker *master_trainer(Master *m);               // NULL: none
int master_helpers(const Master *m); // evaluators and followers that are ready, and neither hang nor leave
int master_present(const Master *m); // those, and the trainer, which is always there or started again

// Whether the trainer had better leave what is suspect to helpers: some were there a short time ago.
bool master_is_patient(const Master *m);

// Whether workers are to wait: for those that are wanted; or the trainer, which has died in a round like the one it
// comes to, for a helper that can die in its place.
bool master_is_short(Master *m);

// ---- master_round.c ------------------------------------------------------------------------------------------------

// Messages about rounds, leases, results and payloads; `frame` is the message itself.
void master_on_round(Master *m, MasterWorker *worker, const HostMessage *message);
void master_on_result(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame);
void master_on_done(Master *m, MasterWorker *worker, const HostMessage *message);
void master_on_reject(Master *m, MasterWorker *worker, const HostMessage *message);
void master_on_fetch(Master *m, MasterWorker *worker, const HostMessage *message);
void master_on_payload(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame);

// The worker leaves its lease without a result.
void master_take_lease(Master *m, MasterWorker *worker, HostLeaseEnd end);

// Gives leases to all who want one.
void master_grant(Master *m);

// ---- master_group.c ------------------------------------------------------------------------------------------------

// Messages about groups.
void master_on_regroup(Master *m, MasterWorker *worker, const HostMessage *message);
void master_on_post(Master *m, MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame);
void master_on_meet(Master *m, const MasterWorker *worker, const HostMessage *message, zmq_msg_t *frame);

// Tells the trainers of another group where the set of them has changed.
void master_form_group(Master *m);

// The worker's rank in the present group; -1: it is not of it.
int master_rank(const Master *m, const MasterWorker *worker);

// ---- master_scale.c ------------------------------------------------------------------------------------------------

void master_open_scale(Master *m);

// Looks whether another number of workers is wanted, and asks those to leave that are too many.
void master_scale(Master *m);

// Tells the supervisor how many there are and are wanted.
void master_beat(Master *m);

// ---- master_collectives.c ------------------------------------------------------------------------------------------

// What keeps a trainer from exchanging by NCCL with those before it, the lead first; "": nothing does.
void master_find_unfit(const MasterWorker *const *found, int count, const MasterWorker *worker, char *why, size_t size);

// What these trainers exchange by, and why, into group->collectives and why.
void master_choose_collectives(Master *m, const MasterWorker *const *found, int count);

// ---- master_status.c -----------------------------------------------------------------------------------------------

// The status as JSON; free the text.
Status master_status(const Master *m, char **json) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
