#include "kernels/cuda/nccl_library.h"

#include <dlfcn.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nccl_library_open(NcclLibrary *library, const char *file, char *missing, size_t size) {
    if (library->is_open) return true;
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL); // never closed: threads of its own may be in it
    if (handle == NULL) {
        const char *reason = dlerror();
        snprintf(missing, size, "%s", reason != NULL ? reason : file);
        return false;
    }
    void *found;
#define NCCL_LOAD(member, name, parameters, result)                                 \
    found = dlsym(handle, name);                                                    \
    if (found == NULL) {                                                            \
        snprintf(missing, size, "%s has no %s: it is older than 2.14", file, name); \
        return false;                                                               \
    }                                                                               \
    memcpy(&library->member, &found, sizeof found); // ISO C has no cast from void * to a function
    NCCL_FUNCTIONS(NCCL_LOAD)
#undef NCCL_LOAD
    NcclResult result = library->get_version(&library->version);
    if (result != NCCL_SUCCESS || library->version < NCCL_VERSION_MIN) {
        snprintf(missing, size, "%s is of version %d: %d or later is needed", file, library->version, NCCL_VERSION_MIN);
        return false;
    }
    library->is_open = true;
    return true;
}

static bool is_same(const struct sockaddr *a, const struct sockaddr *b) {
    if (a == NULL || a->sa_family != b->sa_family) return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

void nccl_choose_interface(const char *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    struct ifaddrs *all = NULL;
    char text[64] = "";
    if (getaddrinfo(address != NULL ? address : "127.0.0.1", NULL, &hints, &found) != 0) return;
    if (getifaddrs(&all) == 0) {
        for (const struct ifaddrs *i = all; i != NULL && text[0] == '\0'; i = i->ifa_next)
            for (const struct addrinfo *to = found; to != NULL; to = to->ai_next)
                if (is_same(i->ifa_addr, to->ai_addr)) snprintf(text, sizeof text, "=%s", i->ifa_name);
        freeifaddrs(all);
    }
    freeaddrinfo(found);
    if (text[0] != '\0') setenv("NCCL_SOCKET_IFNAME", text, 0);
}
