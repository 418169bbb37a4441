// The messages between workers and their master, as bytes.
//
// A message is its type, a fixed number of 64-bit integers, and bytes up to its end:
//
//     offset  size
//          0     4   "SHL1"
//          4     4   type
//          8   8 n   the type's integers, little-endian
//      8+8 n     -   bytes: text, JSON, ranges, parameters or results; only where the type has some
//
// Decoding trusts nothing: lengths are checked, the integers' ranges are their reader's to check.
//
// Ownership: a decoded message points into the bytes it was read from. Errors: STATUS_CORRUPT. Thread safety: any
// thread.
#ifndef SHOAL_HOST_WIRE_H
#define SHOAL_HOST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A session is one life of a trainer, drawn at random; its rounds are numbered. A round's label is what the trainer
// calls it (a generation) and is the same when another session repeats it. A lease is a range of a round's items. A
// group is one set of trainers that have collectives (host/group.h); its number is never used again.

// W(name, integers, whether bytes follow): what they are, in this order
#define HOST_WIRE_LIST(W)                                                                                              \
    /* from workers to the master */                                                                                   \
    W(HELLO, 5, 1) /* protocol, HostRole, pid, threads, place that it has (0: none); JSON: build, version, host,       \
                      device, settings, gpu */                                                                         \
    W(WANT, 0, 0)  /* a lease */                                                                                       \
    W(TICK, 4, 0)  /* the compute thread's progress counter, the lease it is at (0: none; -1: an update), label, bytes \
                      that the trainers' groups that it was of have exchanged */                                       \
    W(DONE, 5, 0)  /* session, round, lease, first, count: computed by the trainer itself */                           \
    W(REJECT, 3, 0)  /* session, round, lease: an evaluator could not compute it */                                    \
    W(RETURN, 1, 0)  /* lease: handed back */                                                                          \
    W(CRASH, 2, 0)   /* lease, signal: the compute thread is about to end the process */                               \
    W(ROUND, 5, 1)   /* session, round, label, count, grain; ranges that are wanted, as pairs (first, count) */        \
    W(LEAVE, 0, 0)   /* the worker ends */                                                                             \
    W(REGROUP, 1, 1) /* the group that failed, 0: the trainer is in none and wants to be; text: why */                 \
    W(ASK_STATUS, 0, 0)                                                                                                \
    /* both ways */                                                                                                    \
    W(RESULT, 5, 1)  /* session, round, lease, first, count; the items' records */                                     \
    W(FETCH, 2, 0)   /* session, round: its payload is wanted */                                                       \
    W(PAYLOAD, 2, 1) /* session, round; the payload */                                                                 \
    W(FINISH, 0, 0)  /* the run is over */                                                                             \
    W(POST, 2, 1)    /* group, bytes of a key; key and value: from one trainer to all others of its group */           \
    W(MEET, 2, 0)    /* group, label: the lead calls the others */                                                     \
    W(CLOCK, 2, 0)   /* what the worker's clock shows, in ns; the master's, in the answer */                           \
    /* from the master to workers */                                                                                   \
    W(WELCOME, 2, 1) /* place among the workers, hang limit in ms; the run's settings as JSON */                       \
    W(REFUSE, 0, 1)  /* text: why */                                                                                   \
    W(UNKNOWN, 0, 0) /* say HELLO again */                                                                             \
    W(EPOCH, 4, 0)   /* epoch, evaluators, ms between ticks, whether to wait for workers */                            \
    W(LEASE, 6, 0)   /* session, round, lease, first, count, label */                                                  \
    W(REFUTED, 4, 0) /* session, round, first, count: an evaluator could not compute these items */                    \
    W(LOST, 3, 0)    /* session, round, item: crashes every worker that computes it */                                 \
    W(ABANDON, 1, 0) /* lease: others have done it */                                                                  \
    W(RESTART, 0, 0) /* the compute thread hangs: end the process */                                                   \
    W(GROUP, 4, 1)   /* group, this trainer's rank, size (0: there is none now), HostCollectives; text: why those */   \
    W(STATUS, 0, 1)  /* JSON */                                                                                        \
    W(DISMISS, 0, 1) /* text: why the worker is to hand its lease back and leave */

typedef enum HostMessageType {
#define HOST_WIRE_ENUM(name, integers, bytes) HOST_MESSAGE_##name,
    HOST_WIRE_LIST(HOST_WIRE_ENUM)
#undef HOST_WIRE_ENUM
        HOST_MESSAGE_TYPES
} HostMessageType;

// The trainer, or the lead of several; an evaluator; one of the other trainers.
typedef enum HostRole { HOST_ROLE_TRAINER, HOST_ROLE_EVALUATOR, HOST_ROLE_FOLLOWER, HOST_ROLES } HostRole;

// What trainers exchange by. In the order of --collectives' choices, where AUTO leaves it to the master.
typedef enum HostCollectives { HOST_COLLECTIVES_AUTO, HOST_COLLECTIVES_NCCL, HOST_COLLECTIVES_GLOO } HostCollectives;

enum { HOST_WIRE_PROTOCOL = 4, HOST_WIRE_INTEGERS_MAX = 6, HOST_WIRE_HEADER_BYTES = 8 };

typedef struct HostMessage {
    HostMessageType type;
    int64_t value[HOST_WIRE_INTEGERS_MAX]; // those the type has; the others are 0
    const unsigned char *bytes;            // NULL: none
    size_t size_bytes;
} HostMessage;

const char *host_message_type_name(HostMessageType type);

// Bytes of a message, and the message written to `out`, which has room for them. Gives the place of the message's
// bytes in `out`; where message->bytes is NULL, they are the caller's to put there.
size_t host_wire_size(const HostMessage *message);
unsigned char *host_wire_encode(const HostMessage *message, unsigned char *out);

Status host_wire_decode(const void *data, size_t size_bytes, HostMessage *message) HOST_MUST_CHECK;

// Pairs (first, count) as the bytes of a ROUND: count x 16 bytes.
enum { HOST_WIRE_RANGE_BYTES = 16 };
void host_wire_put_range(unsigned char *out, int64_t first, int64_t count);
void host_wire_get_range(const unsigned char *bytes, int64_t *first, int64_t *count);

// What a POST may hold.
enum { HOST_WIRE_KEY_MAX = 64, HOST_WIRE_VALUE_MAX = 1 << 16 };

// Whether a POST's key and value are of sizes that may be; the key is not empty.
bool host_wire_is_post(const HostMessage *message);

#ifdef __cplusplus
}
#endif

#endif
