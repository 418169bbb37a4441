// Several trainers that hold the same state and share its updates: ppo/ on top of kernels/trainers.h.
//
// The lead writes the run's folder and tests the policy; the others follow. It calls a meeting for each update, which
// all of them make together (KernOps.ppo_join). An update that was broken off is done again from the state before it.
//
// Ownership: the trainers are borrowed and outlive the Ppo. Errors: Status. Thread safety: none.
#ifndef SHOAL_PPO_PPO_TRAINERS_H
#define SHOAL_PPO_PPO_TRAINERS_H

#include "host/member.h"
#include "kernels/trainers.h"
#include "ppo/ppo.h"

#ifdef __cplusplus
extern "C" {
#endif

// The lead's: takes the state of the trainers that are there, where they are further. The reports that they keep are
// PpoReport.
Status ppo_trainers_join(Ppo *ppo, KernTrainers *trainers) HOST_MUST_CHECK;

// The lead's: an update, or several where others prove to be further; the report is that of the last one.
Status ppo_trainers_update(Ppo *ppo, KernTrainers *trainers, PpoReport *report) HOST_MUST_CHECK;

// A follower's work, until the run is over (STATUS_OK) or a stop is asked for (STATUS_STOPPED).
Status ppo_trainers_follow(Ppo *ppo, KernTrainers *trainers, HostMember *member) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
