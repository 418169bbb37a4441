// ZeroMQ sockets between workers and their master: keys, options, sending and receiving of messages.
//
// Ownership: a HostLink owns its context and sockets until host_link_close(). Errors: STATUS_SYSTEM, STATUS_USAGE (an
// endpoint that is none). Thread safety: one thread at a time per HostLink.
#ifndef SHOAL_HOST_LINK_H
#define SHOAL_HOST_LINK_H

#include <stdbool.h>
#include <zmq.h>

#include "host/address.h"
#include "host/secret.h"
#include "host/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_IDENTITY_MAX = 16 };

typedef struct HostLink {
    void *context;
    void *socket;  // DEALER of a worker, ROUTER of the master
    void *monitor; // what happens to the socket's connections
    void *guard;   // the master's: answers who may connect; NULL of a worker
    unsigned char worker_public[HOST_KEY_BYTES];
} HostLink;

// The other end of a ROUTER's message.
typedef struct HostIdentity {
    unsigned char bytes[HOST_IDENTITY_MAX];
    size_t size_bytes;
} HostIdentity;

// A master's socket over a TCP socket that listens already; the link owns listen_fd from now on.
Status host_link_serve(HostLink *link, int listen_fd, const HostKeys *keys) HOST_MUST_CHECK;

// A worker's: connects in the background, and again whenever the connection is lost.
Status host_link_connect(HostLink *link, const char *endpoint, const HostKeys *keys) HOST_MUST_CHECK;

// Waits up to linger_ms until what was sent is on its way.
void host_link_close(HostLink *link, int linger_ms);

// to: NULL for a worker's socket. A message to an end that is gone is dropped. STATUS_MEMORY.
Status host_link_send(HostLink *link, const HostIdentity *to, const HostMessage *message) HOST_MUST_CHECK;

// Passes a received message on as it is; `frame` is empty afterwards.
void host_link_forward(HostLink *link, const HostIdentity *to, zmq_msg_t *frame);

// The next message that has come: false, there is none. frame: initialised by the caller, holds the message's bytes;
// from: NULL for a worker's socket; fd: of the connection, or NULL.
bool host_link_receive(HostLink *link, HostIdentity *from, zmq_msg_t *frame, int *fd);

// What happened to a connection: an event ZMQ_EVENT_...; fd: of the connection. False: nothing more.
bool host_link_event(HostLink *link, int *event, int *fd);

// The master's: answers those who want to connect. Only who has the workers' key may.
void host_link_admit(HostLink *link);

#ifdef __cplusplus
}
#endif

#endif
