// Ranks: processes that a launcher of jobs (srun, mpirun) has started by one and the same command line are the workers
// of one run. Rank 0 supervises the run and its trainer. The others wait until the run's folder says where the master
// is and the master answers, and then become what `--join` makes: ranks below --trainers follow, the rest evaluate. So
// the folder, which has the secret too, is what they meet in.
//
// A process learns its rank from the environment, and nothing else: workers are told apart by the master.
//
// Ownership: none. Errors: Status. Thread safety: none.
#ifndef SHOAL_KERNELS_LAUNCHER_RANKS_H
#define SHOAL_KERNELS_LAUNCHER_RANKS_H

#include "kernels/launcher_run.h"

// Finds the rank, and checks that the options suit it.
Status launch_find_rank(LaunchRun *run) HOST_MUST_CHECK;

// How many workers the run is started with: ranks, or processes on this host.
int64_t launch_workers(const LaunchRun *run);

// How many of them are trainers, at least while they are all there: where there are no evaluators, every one.
int launch_trainers(const LaunchRun *run);

// Processors for this process and those that it starts: those that it may use; but where the ranks of its host are not
// kept to processors of their own, its part of those that they share.
int launch_rank_cores(const LaunchRun *run);

// Rank 0, and a process that was started by itself, goes on with a folder that the others know. Any other becomes a
// worker, and returns only if it cannot, or is_over: the run was, before it came.
Status launch_take_rank(LaunchRun *run, bool *is_over) HOST_MUST_CHECK;

#endif
