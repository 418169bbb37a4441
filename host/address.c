#include "host/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/config.h"

// Splits "tcp://HOST:PORT"; an IPv6 address stands in brackets.
static Status split_address(const char *address, char host[HOST_ADDRESS_MAX], char port[16]) {
    const char *at = strncmp(address, "tcp://", 6) == 0 ? address + 6 : "", *colon = strrchr(at, ':');
    size_t length = colon != NULL ? (size_t)(colon - at) : 0;
    if (length == 0 || length >= HOST_ADDRESS_MAX || strlen(colon + 1) == 0 || strlen(colon + 1) >= 16)
        return host_fail(STATUS_USAGE, "'%s' is no address; one looks like tcp://0.0.0.0:5555", address);
    snprintf(host, HOST_ADDRESS_MAX, "%.*s", (int)length, at);
    if (host[0] == '[' && host[length - 1] == ']') {
        memmove(host, host + 1, length - 2);
        host[length - 2] = '\0';
    }
    snprintf(port, 16, "%s", strcmp(colon + 1, "*") == 0 ? "0" : colon + 1);
    return STATUS_OK;
}

// The same, and that the port is one.
static Status read_address(const char *address, int64_t least_port, char host[HOST_ADDRESS_MAX], char port[16]) {
    char what[HOST_ADDRESS_MAX + 32];
    int64_t number;
    TRY(split_address(address, host, port));
    snprintf(what, sizeof what, "the port of %.200s", address);
    return host_parse_int(what, port, least_port, 65535, "", &number);
}

static void join_address(const char *host, const char *port, char *address, size_t size) {
    bool is_v6 = strchr(host, ':') != NULL;
    snprintf(address, size, "tcp://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

static bool is_everywhere(const char *host) {
    return strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

Status host_address_host(const char *address, char host[HOST_ADDRESS_MAX], bool *everywhere) {
    char port[16];
    TRY(read_address(address, 0, host, port));
    *everywhere = is_everywhere(host);
    return STATUS_OK;
}

Status host_address_check(const char *address) {
    char host[HOST_ADDRESS_MAX], port[16];
    return read_address(address, 1, host, port);
}

Status host_address_port(const char *address, int *port) {
    char host[HOST_ADDRESS_MAX], text[16];
    TRY(read_address(address, 0, host, text));
    *port = atoi(text);
    return STATUS_OK;
}

static Status bind_to(const struct addrinfo *to, const char *address, int *fd) {
    const int one = 1;
    *fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0) return host_fail(STATUS_SYSTEM, "cannot listen at %s: %s", address, strerror(errno));
    if (setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(*fd, to->ai_addr, to->ai_addrlen) == 0 && listen(*fd, SOMAXCONN) == 0)
        return STATUS_OK;
    int reason = errno;
    close(*fd);
    return host_fail(STATUS_SYSTEM, "cannot listen at %s: %s", address, strerror(reason));
}

// Where this host reaches a socket that listens: a socket that listens everywhere is reached by loopback.
static Status reach(int fd, const char *address, char *endpoint, int endpoint_bytes) {
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    char host[HOST_ADDRESS_MAX], port[16];
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0 ||
        getnameinfo((struct sockaddr *)&bound, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return host_fail(STATUS_SYSTEM, "cannot tell where %s listens", address);
    if (strcmp(host, "0.0.0.0") == 0) snprintf(host, sizeof host, "127.0.0.1");
    if (strcmp(host, "::") == 0) snprintf(host, sizeof host, "::1");
    join_address(host, port, endpoint, (size_t)endpoint_bytes);
    return STATUS_OK;
}

Status host_listen(const char *address, int *fd, char *endpoint, int endpoint_bytes) {
    char host[HOST_ADDRESS_MAX], port[16];
    TRY(read_address(address, 0, host, port));
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    bool everywhere = strcmp(host, "*") == 0;
    if (everywhere) hints.ai_family = AF_INET;
    int failed = getaddrinfo(everywhere ? NULL : host, port, &hints, &found);
    if (failed != 0) return host_fail(STATUS_USAGE, "cannot listen at %s: %s", address, gai_strerror(failed));
    Status status = bind_to(found, address, fd);
    freeaddrinfo(found);
    if (status != STATUS_OK) return status;
    status = reach(*fd, address, endpoint, endpoint_bytes);
    if (status != STATUS_OK) close(*fd);
    return status;
}

Status host_address_elsewhere(const char *address, const char *endpoint, char *elsewhere, int elsewhere_bytes) {
    char host[HOST_ADDRESS_MAX], port[16], name[HOST_ADDRESS_MAX];
    snprintf(elsewhere, (size_t)elsewhere_bytes, "%s", endpoint);
    TRY(read_address(address, 0, host, port));
    if (!is_everywhere(host)) return STATUS_OK;
    TRY(read_address(endpoint, 0, name, port));
    if (gethostname(name, sizeof name) != 0) return STATUS_OK;
    name[sizeof name - 1] = '\0';
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
    hints.ai_family = strcmp(host, "::") == 0 ? AF_UNSPEC : AF_INET;
    if (getaddrinfo(name, port, &hints, &found) != 0) return STATUS_OK; // a name that nobody knows
    freeaddrinfo(found);
    join_address(name, port, elsewhere, (size_t)elsewhere_bytes);
    return STATUS_OK;
}

// Nothing is sent: a datagram's socket that is connected has the address that its datagrams would come from.
Status host_address_towards(const char *endpoint, char *address, int address_bytes) {
    char host[HOST_ADDRESS_MAX], port[16];
    TRY(read_address(endpoint, 0, host, port));
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_DGRAM};
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0) return host_fail(STATUS_SYSTEM, "%s: %s", endpoint, gai_strerror(failed));
    struct sockaddr_storage mine = {0};
    socklen_t length = sizeof mine;
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                    getsockname(fd, (struct sockaddr *)&mine, &length) == 0 &&
                    getnameinfo((struct sockaddr *)&mine, length, host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0;
    int reason = errno;
    if (fd >= 0) close(fd);
    freeaddrinfo(found);
    if (!is_found) return host_fail(STATUS_SYSTEM, "no way to %s: %s", endpoint, strerror(reason));
    join_address(host, "*", address, (size_t)address_bytes);
    return STATUS_OK;
}
