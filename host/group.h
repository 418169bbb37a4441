// The trainers of a run as a group with collectives, which is formed anew whenever the set of them changes.
//
// The master says which trainers are of the present group; one of them, of rank 0, is the lead. It calls the others to
// meetings: at the first one in a group they find each other through the master and connect, and from then on they
// talk among themselves (host/comm.h). Once a trainer joins, dies or hangs, what they wait for in the old group is
// broken off, and the lead calls another meeting, in a new group. What they have in common is the caller's affair:
// after is_new all of them had better compare it.
//
//     lead                                    the others
//     host_group_call(group, label, &m)       host_member_next() gives no task; host_group_answer(group, &m, &called)
//     host_comm_broadcast(m.comm), ...        the same calls, in the same order
//     host_group_settle(group, status, &ok)   host_group_settle(group, status, &ok)
//
// A lead that has lost its master is a group of one until there is a master again.
//
// Ownership: host_group_open()/host_group_close(); the member is borrowed and outlives the group. Errors:
// STATUS_SYSTEM, STATUS_MEMORY, STATUS_STOPPED once a stop was asked for. Thread safety: the member's compute thread.
#ifndef SHOAL_HOST_GROUP_H
#define SHOAL_HOST_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/comm.h"
#include "host/member.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_GROUP_MAX = 64 };

typedef struct HostGroup HostGroup;

typedef struct HostGroupOptions {
    const char *address;   // where it listens for other trainers, NULL: loopback
    HostCommDevice device; // of groups by NCCL; all 0: it can be of none, which its member has said (HostMemberOptions)
    // Told of each new group of several, "3 trainers by nccl: each ...". NULL is fine.
    void (*on_group)(void *context, const char *text);
    void *context;
} HostGroupOptions;

// From now on the member is of the groups that are formed, whose collectives are the master's choice. STATUS_SYSTEM
// where libshoal_gloo.so cannot be used. The options' address is copied.
Status host_group_open(HostMember *member, const HostGroupOptions *options, HostGroup **group) HOST_MUST_CHECK;
void host_group_close(HostGroup *group); // NULL is fine

typedef struct HostMeeting {
    int64_t label; // what the lead says that it is about
    // Its collectives, until host_group_settle(); rank and size are the group's. Deaths and hangs are the master's to
    // notice: HOST_COMM_PATIENCE_S is a deadline that only a fault of the network can miss. Traffic is counted in the
    // member's figures.
    HostComm *comm;
    bool is_new; // the first meeting of this group
} HostMeeting;

// The lead's: waits until there is a group, and calls it together.
Status host_group_call(HostGroup *group, int64_t label, HostMeeting *meeting) HOST_MUST_CHECK;

// The others': is_called false: there was no call. comm NULL: the meeting did not come about, another one will.
Status host_group_answer(HostGroup *group, HostMeeting *meeting, bool *is_called) HOST_MUST_CHECK;

// Ends a meeting that came to `status`. Where a collective failed, is_held is false and the status STATUS_OK: what was
// to be decided has to be decided in the next meeting. Every other failure is passed on.
Status host_group_settle(HostGroup *group, Status status, bool *is_held) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
