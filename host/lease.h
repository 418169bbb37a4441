// Which items of a round are leased to which worker: no sockets, no clock of its own.
//
// Items are wanted, leased, and done or lost. Leases shrink with what is left, so that workers of any speed end
// together; a lease that is late near a round's end is given to a second worker, and the first result counts. A lease
// whose worker is gone comes back. One that has cost workers is halved until the item is found that ends every worker
// that computes it: that item is lost.
//
//     a worker gone without a word     1 point against the lease: it may have been killed
//     a worker that said it crashed    2 points
//     2 points                         the lease is halved; each half has 1 point and is suspect
//     one item alone                   lost after HOST_LEASE_CRASHES crashes or HOST_LEASE_DEATHS deaths
//
// What was found out about a round stays when its trainer begins it anew, in the same or another session.
//
// Ownership: host_lease_init()/host_lease_free(). Errors: STATUS_MEMORY; STATUS_CORRUPT for ranges that are none.
// Thread safety: none.
#ifndef SHOAL_HOST_LEASE_H
#define SHOAL_HOST_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_LEASE_ITEMS_MAX = 1 << 24, HOST_LEASE_CRASHES = 2, HOST_LEASE_DEATHS = 8, HOST_LEASE_HOLDERS = 2 };

typedef struct HostRange {
    int32_t first, count;
} HostRange;

// A range with what is known against it.
typedef struct HostLeasePiece {
    HostRange range;
    int32_t points;
    int32_t crashes, deaths; // of one item alone
    bool is_suspect;         // not for a worker that must live
} HostLeasePiece;

typedef struct HostLeaseHolder {
    int64_t worker, lease; // a lease's number is never used again
    double since_s, expected_s;
} HostLeaseHolder;

typedef struct HostLeaseActive {
    HostLeasePiece piece;
    HostLeaseHolder holder[HOST_LEASE_HOLDERS];
    int holders;
} HostLeaseActive;

// Known against a range of a round that may be begun anew.
typedef struct HostLeaseMemory {
    int64_t label;
    HostLeasePiece piece;
    bool is_lost;
} HostLeaseMemory;

typedef struct HostLeaseTable {
    int64_t label;
    int32_t count, grain;
    int32_t open; // items that are wanted and neither done nor lost
    int32_t free; // of those, not leased
    int64_t next_lease;
    uint8_t *state; // [count]
    int32_t state_room;
    HostLeasePiece *pending; // [pending_count]
    int32_t pending_count, pending_room;
    HostLeaseActive *active; // [active_count]
    int32_t active_count, active_room;
    HostLeaseMemory *memory; // [memory_count]
    int32_t memory_count, memory_room;
    int32_t *lost; // [lost_count] items, the first lost_told of them taken
    int32_t lost_count, lost_told, lost_room;
} HostLeaseTable;

void host_lease_init(HostLeaseTable *table);
void host_lease_free(HostLeaseTable *table);

// Begins a round of `count` items, of which the ranges are wanted; all leases of the one before are void. Leases are
// multiples of `grain`, but for the last and suspect ones.
Status host_lease_begin(HostLeaseTable *table, int64_t label, int32_t count, int32_t grain, const HostRange *wanted,
                        int32_t wanted_count) HOST_MUST_CHECK;

// The trainer says again what it still wants: results were lost on the way. Leases go on.
Status host_lease_want(HostLeaseTable *table, const HostRange *wanted, int32_t wanted_count) HOST_MUST_CHECK;

// Ends the round: nothing is wanted.
void host_lease_stop(HostLeaseTable *table);

typedef struct HostLeaseAsk {
    int64_t worker;
    double share;   // of all speeds together, in (0, 1]
    double rate;    // items/s; 0: unknown
    bool must_live; // give it nothing suspect
} HostLeaseAsk;

// A lease's number, and its range. False if there is nothing for this worker now.
bool host_lease_grant(HostLeaseTable *table, const HostLeaseAsk *ask, double now_s, int64_t *lease, HostRange *range);

// Results of a range have come, whoever computed it. `fresh` receives the number of items that were not done before.
Status host_lease_finish(HostLeaseTable *table, HostRange range, int32_t *fresh) HOST_MUST_CHECK;

// How a lease was left without a result.
typedef enum HostLeaseEnd { HOST_LEASE_RETURNED, HOST_LEASE_DIED, HOST_LEASE_CRASHED } HostLeaseEnd;

// A worker is done with its lease; nothing happens if it holds none of that number (0: any that it holds).
Status host_lease_leave(HostLeaseTable *table, int64_t worker, int64_t lease, HostLeaseEnd end) HOST_MUST_CHECK;

// The next item that was found lost since this was last asked; false: none.
bool host_lease_take_lost(HostLeaseTable *table, int32_t *item);

// The holder of this lease, NULL if it is void by now.
const HostLeaseHolder *host_lease_find(const HostLeaseTable *table, int64_t lease, HostRange *range);

#ifdef __cplusplus
}
#endif

#endif
