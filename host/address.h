// Addresses of this host and of others: "tcp://HOST:PORT", an IPv6 address in brackets.
//
// Ownership: host_listen()'s socket is the caller's. Errors: STATUS_USAGE for what is no address; STATUS_SYSTEM, such
// as for a port in use. Thread safety: any thread.
#ifndef SHOAL_HOST_ADDRESS_H
#define SHOAL_HOST_ADDRESS_H

#include <stdbool.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_ADDRESS_MAX = 256, HOST_ENDPOINT_MAX = HOST_ADDRESS_MAX + 32 };

// The HOST of an address, without brackets; everywhere: it stands for all addresses of a host (*, 0.0.0.0, ::).
Status host_address_host(const char *address, char host[HOST_ADDRESS_MAX], bool *everywhere) HOST_MUST_CHECK;

// Whether it is an address that one can connect to: with a port from 1 on.
Status host_address_check(const char *address) HOST_MUST_CHECK;

// The PORT of an address; 0: any.
Status host_address_port(const char *address, int *port) HOST_MUST_CHECK;

// Listens at an address; HOST may be *, PORT 0 or *: a free one. `endpoint` receives where this host reaches it.
Status host_listen(const char *address, int *fd, char *endpoint, int endpoint_bytes) HOST_MUST_CHECK;

// Where other hosts reach what listens at `address` and is `endpoint` to this one: by this host's name if it listens
// everywhere and the name is known, else the endpoint itself.
Status host_address_elsewhere(const char *address, const char *endpoint, char *elsewhere,
                              int elsewhere_bytes) HOST_MUST_CHECK;

// The address, with a free port, by which this host reaches an endpoint, and so is reached from there.
Status host_address_towards(const char *endpoint, char *address, int address_bytes) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
