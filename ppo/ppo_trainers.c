#include "ppo/ppo_trainers.h"

#include "host/trace.h"

_Static_assert((int)PPO_TRAINERS_MAX >= (int)HOST_GROUP_MAX, "a group's trainers all take part in an update");

enum { JOIN = -1 }; // the label of a meeting that updates nothing

typedef struct Meeting {
    Ppo *ppo;
    KernTrainers *trainers;
    PpoReport report;
} Meeting;

static Status share_update(Meeting *m, const HostMeeting *meeting) {
    Ppo *ppo = m->ppo;
    const KernOps *ops = ppo->backend->ops;
    TRY(kern_trainers_tell(m->trainers, meeting));
    TRY(kern_trainers_reserve(m->trainers));
    Status status = ppo_update(ppo, &m->report);
    if (status != STATUS_OK) { // the state is what it was
        Status restored = ops->ppo_write(ppo->kern, &ppo->state);
        return restored == STATUS_OK ? status : restored;
    }
    kern_trainers_add(m->trainers, &m->report);
    return STATUS_OK;
}

static Status meet(void *context, const HostMeeting *meeting) {
    Meeting *m = context;
    TRY(kern_trainers_compare(m->trainers, meeting));
    if (meeting->is_new) TRY(m->ppo->backend->ops->ppo_join(m->ppo->kern, meeting->comm));
    if (meeting->label != m->ppo->update) return STATUS_OK;
    Status status = share_update(m, meeting);
    // What is NaN or infinite is so for all of them, and the lead's to say.
    return status == STATUS_NUMERIC && meeting->comm->rank != 0 ? STATUS_OK : status;
}

Status ppo_trainers_join(Ppo *ppo, KernTrainers *trainers) {
    Meeting m = {.ppo = ppo, .trainers = trainers};
    return kern_trainers_meet(trainers, JOIN, meet, &m);
}

Status ppo_trainers_update(Ppo *ppo, KernTrainers *trainers, PpoReport *report) {
    Meeting m = {.ppo = ppo, .trainers = trainers};
    TRY(kern_trainers_meet(trainers, ppo->update, meet, &m));
    const PpoReport *last = kern_trainers_report(trainers, ppo->update, NULL);
    if (last != NULL) *report = *last;
    return STATUS_OK;
}

Status ppo_trainers_follow(Ppo *ppo, KernTrainers *trainers, HostMember *member) {
    for (bool is_called = true; is_called;) {
        HostTask task;
        Meeting m = {.ppo = ppo, .trainers = trainers};
        TRY(host_member_next(member, &task));
        TRY(kern_trainers_answer(trainers, meet, &m, &is_called));
    }
    return STATUS_OK;
}
