// What several trainers of a run have in common, whatever they train by: the same state, and the reports of the steps
// since the lead's last checkpoint. On top of host/group.h.
//
// In a new group all compare how far they are, and their states; the one that is furthest, the first of several, gives
// its state to those that lack it, and the step that was not committed is done again. So the lead may be started again
// from a checkpoint: it goes on where the others are. What its metrics.csv then lacks they know, too.
//
// Ownership: kern_trainers_open()/kern_trainers_close(); what the options point to is borrowed. Errors: Status. Thread
// safety: none.
#ifndef SHOAL_KERNELS_TRAINERS_H
#define SHOAL_KERNELS_TRAINERS_H

#include "host/checkpoint.h"
#include "host/group.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KernTrainers KernTrainers;

typedef struct KernTrainersOptions {
    void *state; // what the trainers hold
    HostGroup *group;
    int64_t (*done)(const void *state);  // steps
    uint64_t (*hash)(const void *state); // of all that a step follows from
    uint64_t (*params_hash)(const void *state);
    // The state as the bytes of a checkpoint, with more tensors; free them. And back: what fails changes nothing.
    Status (*pack)(const void *state, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes);
    Status (*take)(void *state, const HostCheckpoint *file, const char *name);
    size_t report_bytes; // of a step's report, plain data
} KernTrainersOptions;

// The result of a test of the policy after a step; NaN: there was none.
typedef struct KernTested {
    double mean, std;
} KernTested;

Status kern_trainers_open(const KernTrainersOptions *options, KernTrainers **trainers) HOST_MUST_CHECK;
void kern_trainers_close(KernTrainers *trainers); // NULL is fine

// What a trainer does in a meeting, all of them the same calls of collectives. The status of one that failed need not
// be looked at: the group notes it, and another meeting follows.
typedef Status KernTrainersMeet(void *context, const HostMeeting *meeting);

// The lead's: meetings of that label, until one was held.
Status kern_trainers_meet(KernTrainers *trainers, int64_t label, KernTrainersMeet *meet, void *context) HOST_MUST_CHECK;

// The others', when host_member_next() gives no task. is_called false: the run is over.
Status kern_trainers_answer(KernTrainers *trainers, KernTrainersMeet *meet, void *context,
                            bool *is_called) HOST_MUST_CHECK;

// The first thing in a meeting: in a new group, all get the state of the one that is furthest.
Status kern_trainers_compare(KernTrainers *trainers, const HostMeeting *meeting) HOST_MUST_CHECK;

// Memory for one more report, before the step is committed; and the report, once it is.
Status kern_trainers_reserve(KernTrainers *trainers) HOST_MUST_CHECK;
void kern_trainers_add(KernTrainers *trainers, const void *report);

// The report of the step `done`; NULL: it is not known. tested may be NULL.
const void *kern_trainers_report(const KernTrainers *trainers, int64_t done, KernTested *tested);

// What the lead tells the others with the next step (kern_trainers_tell()): the test of the present state, and that a
// checkpoint of the step `done` was written, so that nobody needs to know of those up to it.
void kern_trainers_tested(KernTrainers *trainers, KernTested tested);
void kern_trainers_saved(KernTrainers *trainers, int64_t done);

// Where the lead is: broadcast in a meeting in which all have the same state. STATUS_CORRUPT if they have not.
Status kern_trainers_tell(KernTrainers *trainers, const HostMeeting *meeting) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
