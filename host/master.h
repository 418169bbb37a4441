// The master of a run: who takes part, who computes what, and what it looks like from outside. It computes nothing and
// keeps nothing that the trainer could not tell it anew: killed, it is started again and goes on.
//
//     trainer     begins rounds of items (members of an ES population), gets leases and all results
//     evaluators  get leases, and send results to the trainer through the master
//     followers   are evaluators that hold the trainer's state too, and form groups with it (host/group.h); it leads
//     them group       one set of trainers; a join, a departure and a failure begin the next one epoch       one set of
//     workers; every join and every departure begins the next
//
// A worker whose connection is gone is gone at once, with its lease. One that is silent, or whose compute thread makes
// no progress within a lease, for the hang limit, loses its lease to others and is told to restart; after twice the
// limit its supervisor ends it. It is welcome again whenever it says something.
//
// How long a compute thread may be between two looks for a stop depends on the machine, and on what else runs there. So
// the limit is doubled until it is twice the longest time that a worker was seen to need, whether it had been taken for
// hung or not; at most HOST_MASTER_RAISE_MOST times what was asked for, and until the master's end. A worker that says
// nothing meanwhile, as one that is stopped, shows nothing of that.
//
// How many workers are wanted host/scale.h decides. Workers that are too many and that nobody takes away are asked to
// leave, evaluators before followers, those that came last first; they hand their leases back.
//
// Ownership: options are borrowed while host_master_run() lasts. Errors: STATUS_SYSTEM, STATUS_MEMORY. Thread safety:
// one master per call, on the caller's thread.
#ifndef SHOAL_HOST_MASTER_H
#define SHOAL_HOST_MASTER_H

#include <stdbool.h>

#include "host/secret.h"
#include "host/status.h"
#include "host/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostMasterOptions {
    int listen_fd;        // a TCP socket that listens; the master's from now on
    const char *endpoint; // what it is called
    const HostKeys *keys; // of the run's secret
    const char *build;    // a worker of another build is refused: it would compute other bits
    int supervisor_fd;    // a pipe to who started the master and its workers; -1: none
    int min_workers;      // no lease is given out while there are fewer
    int max_workers;      // those that came last are asked to leave where there are more; 0: any number
    bool scales;          // who started the master brings workers and takes some away when it says so
    double scale_interval_s;
    bool has_evaluators;         // else all workers are trainers, and there are no leases
    int trainers;                // a lead that has just come waits a while for so many
    HostCollectives collectives; // between trainers; AUTO: NCCL where each has a GPU of its own, else Gloo
    int workers;                 // a run that is over before so many have come waits a moment, to tell the others so
    double hang_limit_s;         // as asked for
    double out_s;                // for so long a trainer is left out of groups that could not be formed with it
} HostMasterOptions;

#define HOST_MASTER_OUT_S 30.0 // for out_s

// How often over the hang limit that was asked for may be raised to.
#define HOST_MASTER_RAISE_MOST 8

// What goes through the pipe: a line that says the master lives, how many workers there are, how many are wanted and
// the HostScaleReason, every HOST_MASTER_BEAT_S and when that changes; lines that name the process of a worker that
// hangs; and that the hang limit is raised: what a worker needed, and the limit, in ms.
#define HOST_MASTER_BEAT_S    1.0
#define HOST_MASTER_BEAT_LINE "beat %d %d %d\n"
#define HOST_MASTER_HUNG_LINE "hung %lld\n"
#define HOST_MASTER_SLOW_LINE "slow %lld %lld\n"

// Serves until the trainer says that the run is over, or a stop is asked for.
Status host_master_run(const HostMasterOptions *options) HOST_MUST_CHECK;

// The status of the master at `endpoint` as JSON, which is the caller's to free. STATUS_SYSTEM if none answers within
// wait_s.
Status host_master_ask(const char *endpoint, const HostKeys *keys, double wait_s, char **json) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
