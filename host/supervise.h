// The process that starts a run's other processes, master, trainer, followers and evaluators, and starts again those
// that die. It has no threads and opens no sockets but the one that the master listens on, so that a master that is
// started again has its address.
//
//     master      always started again; ended where it does not say that it lives
//     trainer     started again when a signal ended it, and goes on from the last checkpoint; its exit status is the
//                 run's
//     followers, evaluators   started again unless they ended well or were started wrongly
//
// It runs the hook (host/hook.h), too, as the master says what is wanted, and tells people of workers that are missing.
//
// What dies or hangs again and again, or cannot be started, is given up. A first SIGINT or SIGTERM goes to the trainer,
// which ends after a checkpoint; the second one ends everything. Children end with their parent.
//
// Ownership: options are borrowed. Errors: STATUS_MEMORY; the system's are reported. Thread safety: none; the process
// has one thread.
#ifndef SHOAL_HOST_SUPERVISE_H
#define SHOAL_HOST_SUPERVISE_H

#include <stdbool.h>

#include "host/hook.h"
#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a master finds in its environment: the numbers of two open files.
#define HOST_LISTEN_FD_ENVIRONMENT     "SHOAL_LISTEN_FD"
#define HOST_SUPERVISOR_FD_ENVIRONMENT "SHOAL_SUPERVISOR_FD"
// And a worker: its place among those of this supervisor, from 0 on.
#define HOST_PLACE_ENVIRONMENT "SHOAL_WORKER_PLACE"
enum { HOST_PLACE_MAX = 65535 };

#define HOST_SUPERVISE_SILENCE_S 4.0 // for master_silence_s

typedef struct HostSupervision {
    const char *tool; // for messages
    const char *run;  // the run's folder
    // Command lines, each ended by a NULL; the program is this one. The trainer's second is for a run that has begun.
    char *const *master, *const *trainer, *const *trainer_again, *const *follower, *const *evaluator;
    int followers, evaluators;
    int listen_fd;
    int cores;               // for each worker, of its own; 0: all share what there is
    int min_workers;         // people are told how many are missing
    double hang_limit_s;     // the master's, as asked for
    double master_silence_s; // a master that says nothing for so long, be it from its start, is ended
    HostHookOptions hook;
    bool quiet;
} HostSupervision;

// Runs until the trainer has ended for good; exit_status: what the program is to end with.
Status host_supervise(const HostSupervision *options, int *exit_status) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
