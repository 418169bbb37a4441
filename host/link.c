#include "host/link.h"

#include <errno.h>
#include <string.h>

enum { RECONNECT_MS = 50, RECONNECT_MAX_MS = 2000, TCP_DEAD_MS = 3000, BACKLOG = 4096 };

static Status fail(const char *what) {
    return host_fail(STATUS_SYSTEM, "ZeroMQ: cannot %s: %s", what, zmq_strerror(zmq_errno()));
}

static int set_int(void *socket, int option, int value) { return zmq_setsockopt(socket, option, &value, sizeof value); }

static Status open_monitor(HostLink *link) {
    static const int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED |
                              ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                              ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
    if (zmq_socket_monitor(link->socket, "inproc://monitor", events) != 0) return fail("watch a socket");
    link->monitor = zmq_socket(link->context, ZMQ_PAIR);
    if (link->monitor == NULL || zmq_connect(link->monitor, "inproc://monitor") != 0) return fail("watch a socket");
    return STATUS_OK;
}

static Status open_socket(HostLink *link, int type) {
    memset(link, 0, sizeof *link);
    link->context = zmq_ctx_new();
    if (link->context == NULL) return fail("make a context");
    zmq_ctx_set(link->context, ZMQ_MAX_SOCKETS, 16383);
    link->socket = zmq_socket(link->context, type);
    if (link->socket == NULL) return fail("make a socket");
    // A message is never dropped for being one too many; a dead connection is noticed by the system.
    int bad = set_int(link->socket, ZMQ_SNDHWM, 0) | set_int(link->socket, ZMQ_RCVHWM, 0) |
              set_int(link->socket, ZMQ_LINGER, 0) | set_int(link->socket, ZMQ_IPV6, 1) |
              set_int(link->socket, ZMQ_TCP_MAXRT, TCP_DEAD_MS) | set_int(link->socket, ZMQ_TCP_KEEPALIVE, 1) |
              set_int(link->socket, ZMQ_TCP_KEEPALIVE_IDLE, 1) | set_int(link->socket, ZMQ_TCP_KEEPALIVE_INTVL, 1) |
              set_int(link->socket, ZMQ_TCP_KEEPALIVE_CNT, 3);
    return bad != 0 ? fail("set up a socket") : STATUS_OK;
}

static Status serve(HostLink *link, int listen_fd, const HostKeys *keys) {
    TRY(open_socket(link, ZMQ_ROUTER));
    memcpy(link->worker_public, keys->worker_public, HOST_KEY_BYTES);
    link->guard = zmq_socket(link->context, ZMQ_REP);
    if (link->guard == NULL || zmq_bind(link->guard, "inproc://zeromq.zap.01") != 0) return fail("guard a socket");
    TRY(open_monitor(link));
    if (set_int(link->socket, ZMQ_CURVE_SERVER, 1) != 0 ||
        zmq_setsockopt(link->socket, ZMQ_CURVE_SECRETKEY, keys->master_secret, HOST_KEY_BYTES) != 0 ||
        zmq_setsockopt(link->socket, ZMQ_ZAP_DOMAIN, "shoal", 5) != 0) {
        return fail("use CURVE");
    }
    // The address is not looked at: the socket listens already.
    if (set_int(link->socket, ZMQ_BACKLOG, BACKLOG) != 0 || set_int(link->socket, ZMQ_USE_FD, listen_fd) != 0 ||
        zmq_bind(link->socket, "tcp://127.0.0.1:*") != 0) {
        return fail("serve");
    }
    return STATUS_OK;
}

Status host_link_serve(HostLink *link, int listen_fd, const HostKeys *keys) {
    Status status = serve(link, listen_fd, keys);
    if (status != STATUS_OK) host_link_close(link, 0);
    return status;
}

static Status connect_to(HostLink *link, const char *endpoint, const HostKeys *keys) {
    TRY(open_socket(link, ZMQ_DEALER));
    TRY(open_monitor(link));
    if (zmq_setsockopt(link->socket, ZMQ_CURVE_SERVERKEY, keys->master_public, HOST_KEY_BYTES) != 0 ||
        zmq_setsockopt(link->socket, ZMQ_CURVE_PUBLICKEY, keys->worker_public, HOST_KEY_BYTES) != 0 ||
        zmq_setsockopt(link->socket, ZMQ_CURVE_SECRETKEY, keys->worker_secret, HOST_KEY_BYTES) != 0) {
        return fail("use CURVE");
    }
    if (set_int(link->socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) != 0 ||
        set_int(link->socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) != 0) {
        return fail("set up a socket");
    }
    if (zmq_connect(link->socket, endpoint) != 0) {
        return host_fail(STATUS_USAGE, "'%s' is no endpoint (%s); one looks like tcp://host:5555", endpoint,
                         zmq_strerror(zmq_errno()));
    }
    return STATUS_OK;
}

Status host_link_connect(HostLink *link, const char *endpoint, const HostKeys *keys) {
    Status status = connect_to(link, endpoint, keys);
    if (status != STATUS_OK) host_link_close(link, 0);
    return status;
}

void host_link_close(HostLink *link, int linger_ms) {
    if (link->socket != NULL) {
        zmq_socket_monitor(link->socket, NULL, 0);
        set_int(link->socket, ZMQ_LINGER, linger_ms);
        zmq_close(link->socket);
    }
    if (link->monitor != NULL) zmq_close(link->monitor);
    if (link->guard != NULL) {
        set_int(link->guard, ZMQ_LINGER, 0);
        zmq_close(link->guard);
    }
    if (link->context != NULL) {
        while (zmq_ctx_term(link->context) != 0 && zmq_errno() == EINTR) {
        }
    }
    memset(link, 0, sizeof *link);
}

// An end that is gone takes nothing, and that is no failure: its disconnection tells.
static void send_frame(HostLink *link, const HostIdentity *to, zmq_msg_t *frame) {
    if (to != NULL) zmq_send(link->socket, to->bytes, to->size_bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    if (zmq_msg_send(frame, link->socket, ZMQ_DONTWAIT) < 0) zmq_msg_close(frame);
}

Status host_link_send(HostLink *link, const HostIdentity *to, const HostMessage *message) {
    zmq_msg_t frame;
    size_t size = host_wire_size(message);
    if (zmq_msg_init_size(&frame, size) != 0)
        return host_fail(STATUS_MEMORY, "no memory for a message of %zu bytes", size);
    host_wire_encode(message, zmq_msg_data(&frame));
    send_frame(link, to, &frame);
    return STATUS_OK;
}

void host_link_forward(HostLink *link, const HostIdentity *to, zmq_msg_t *frame) {
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    zmq_msg_move(&copy, frame);
    send_frame(link, to, &copy);
}

// Reads what is left of a message that has too many frames.
static void drop_rest(void *socket, zmq_msg_t *frame) {
    while (zmq_msg_more(frame))
        if (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0) return;
}

bool host_link_receive(HostLink *link, HostIdentity *from, zmq_msg_t *frame, int *fd) {
    if (zmq_msg_recv(frame, link->socket, ZMQ_DONTWAIT) < 0) return false;
    if (from != NULL) {
        from->size_bytes = zmq_msg_size(frame) <= HOST_IDENTITY_MAX ? zmq_msg_size(frame) : HOST_IDENTITY_MAX;
        memcpy(from->bytes, zmq_msg_data(frame), from->size_bytes);
        if (!zmq_msg_more(frame) || zmq_msg_recv(frame, link->socket, ZMQ_DONTWAIT) < 0) return false;
    }
    if (fd != NULL) *fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (zmq_msg_more(frame)) {
        drop_rest(link->socket, frame);
        zmq_msg_close(frame);
        zmq_msg_init(frame); // of no bytes: no message of Shoal's
    }
    return true;
}

bool host_link_event(HostLink *link, int *event, int *fd) {
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    bool found = zmq_msg_recv(&frame, link->monitor, ZMQ_DONTWAIT) >= 0;
    if (found) {
        uint16_t kind = 0;
        int32_t value = -1;
        if (zmq_msg_size(&frame) >= sizeof kind + sizeof value) {
            memcpy(&kind, zmq_msg_data(&frame), sizeof kind);
            memcpy(&value, (unsigned char *)zmq_msg_data(&frame) + sizeof kind, sizeof value);
        }
        drop_rest(link->monitor, &frame);
        *event = kind;
        *fd = value;
    }
    zmq_msg_close(&frame);
    return found;
}

// RFC 27 (ZAP 1.0). Frames: version, request, domain, address, identity, mechanism, credentials.
void host_link_admit(HostLink *link) {
    enum { FRAMES = 7, REQUEST = 1, MECHANISM = 5, KEY = 6 };
    zmq_msg_t frame[FRAMES];
    int count = 0;
    for (bool more = true; more; count++) {
        zmq_msg_t *at = &frame[count < FRAMES ? count : FRAMES - 1];
        if (count < FRAMES) zmq_msg_init(at);
        if (zmq_msg_recv(at, link->guard, ZMQ_DONTWAIT) < 0) more = false;
        more = more && zmq_msg_more(at);
    }
    bool known = count == FRAMES && zmq_msg_size(&frame[MECHANISM]) == 5 &&
                 memcmp(zmq_msg_data(&frame[MECHANISM]), "CURVE", 5) == 0 &&
                 zmq_msg_size(&frame[KEY]) == HOST_KEY_BYTES &&
                 memcmp(zmq_msg_data(&frame[KEY]), link->worker_public, HOST_KEY_BYTES) == 0;
    if (count > REQUEST) {
        zmq_send(link->guard, "1.0", 3, ZMQ_SNDMORE);
        zmq_send(link->guard, zmq_msg_data(&frame[REQUEST]), zmq_msg_size(&frame[REQUEST]), ZMQ_SNDMORE);
        zmq_send(link->guard, known ? "200" : "400", 3, ZMQ_SNDMORE);
        zmq_send(link->guard, "", 0, ZMQ_SNDMORE); // a text
        zmq_send(link->guard, "", 0, ZMQ_SNDMORE); // who it is
        zmq_send(link->guard, "", 0, 0);           // more about it
    }
    for (int i = 0; i < count && i < FRAMES; i++)
        zmq_msg_close(&frame[i]);
}
