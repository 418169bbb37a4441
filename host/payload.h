// A round's payload in memory that the workers of one host share: the first of them brings it, the others map it.
//
// The memory is named by session and round, so that no two payloads ever meet; whoever sees a later round removes the
// name of the one before, and maps stay good until they are closed. Where a name cannot be used (another user's, no
// space), a worker has the payload to itself.
//
// Ownership: host_payload_close() unmaps. Errors: STATUS_SYSTEM, STATUS_MEMORY. Thread safety: one thread at a time per
// HostPayload; any number of processes.
#ifndef SHOAL_HOST_PAYLOAD_H
#define SHOAL_HOST_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostPayload {
    int64_t session, round; // of the payload; round 0: none
    const unsigned char *bytes;
    size_t size_bytes;
    // How it is held.
    void *memory;
    size_t map_bytes; // 0: memory is on the heap
} HostPayload;

typedef enum HostPayloadState {
    HOST_PAYLOAD_READY,   // mapped
    HOST_PAYLOAD_ABSENT,  // nobody on this host has it, or its name cannot be used
    HOST_PAYLOAD_COMING,  // another process is bringing it
    HOST_PAYLOAD_CLAIMED, // this process has just said that it will bring it: host_payload_fill() or _unclaim()
} HostPayloadState;

// Maps the payload if it is there; else claims the name if nobody has.
HostPayloadState host_payload_open(HostPayload *payload, int64_t session, int64_t round);

// Maps it if it is there.
HostPayloadState host_payload_look(HostPayload *payload, int64_t session, int64_t round);

// Holds a copy of the bytes, shared under the name if it was claimed.
Status host_payload_fill(HostPayload *payload, int64_t session, int64_t round, bool is_claimed, const void *bytes,
                         size_t size_bytes) HOST_MUST_CHECK;

// Gives a claimed name up.
void host_payload_unclaim(int64_t session, int64_t round);

// Unmaps, and with `remove` takes the name away.
void host_payload_close(HostPayload *payload, bool remove);

// Removes the names that processes of a run left on this host; session: any of the run's, whose upper half is the run's
// own (host_secret_tag).
void host_payload_sweep(int64_t session);

#ifdef __cplusplus
}
#endif

#endif
