#include <dlfcn.h>
#include <stdlib.h>

#include "host/clock.h"
#include "host/comm.h"
#include "host/gloo_library.h"

typedef struct CommGloo {
    HostComm base;
    const GlooLibrary *library;
    GlooGroup *group;
} CommGloo;

// What is left until the deadline. Gloo takes 0 for ever; a millisecond is its smallest step.
static double timeout_s(double deadline_s) {
    double left_s = deadline_s - host_now_s();
    return left_s > 1e-3 ? left_s : 1e-3;
}

static Status check(const CommGloo *gloo, GlooResult result, const char *call, const char *text) {
    if (result == GLOO_OK) return STATUS_OK;
    if (result == GLOO_ABORTED) return host_fail(STATUS_STOPPED, "gloo %s: the group was aborted", call);
    return host_fail(STATUS_SYSTEM, "gloo %s, rank %d of %d: %s", call, gloo->base.rank, gloo->base.size, text);
}

#define CALL(comm, call, ...)                                                                      \
    do {                                                                                           \
        const CommGloo *gloo_ = (const CommGloo *)(comm);                                          \
        char text_[GLOO_TEXT_MAX] = "";                                                            \
        return check(gloo_, gloo_->library->call(gloo_->group, __VA_ARGS__, text_), #call, text_); \
    } while (0)

static Status gloo_all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes, double deadline_s) {
    CALL(comm, all_gather, part, all, part_bytes, timeout_s(deadline_s));
}

static Status gloo_broadcast(HostComm *comm, void *data, size_t size_bytes, int root, double deadline_s) {
    CALL(comm, broadcast, data, size_bytes, root, timeout_s(deadline_s));
}

static Status check_other(const HostComm *comm, const char *call, int rank) {
    if (rank != comm->rank) return STATUS_OK;
    return host_fail(STATUS_SYSTEM, "gloo %s: rank %d is the caller itself", call, rank);
}

static Status gloo_send(HostComm *comm, const void *data, size_t size_bytes, int to, double deadline_s) {
    TRY(check_other(comm, "send", to));
    CALL(comm, send, data, size_bytes, to, timeout_s(deadline_s));
}

static Status gloo_recv(HostComm *comm, void *data, size_t size_bytes, int from, double deadline_s) {
    TRY(check_other(comm, "recv", from));
    CALL(comm, recv, data, size_bytes, from, timeout_s(deadline_s));
}

static Status gloo_barrier(HostComm *comm, double deadline_s) { CALL(comm, barrier, timeout_s(deadline_s)); }

static void gloo_abort(HostComm *comm) { ((CommGloo *)comm)->library->abort(((CommGloo *)comm)->group); }

static void gloo_free(HostComm *comm) {
    CommGloo *gloo = (CommGloo *)comm;
    if (gloo->group != NULL) gloo->library->close(gloo->group);
    free(gloo);
}

static const HostCommOps gloo_ops = {
    .name = "gloo",
    .all_gather = gloo_all_gather,
    .broadcast = gloo_broadcast,
    .send = gloo_send,
    .recv = gloo_recv,
    .barrier = gloo_barrier,
    .abort = gloo_abort,
    .free = gloo_free,
};

static Status load(const GlooLibrary **library) {
    void *handle = dlopen(GLOO_LIBRARY, RTLD_NOW | RTLD_LOCAL); // never closed: its threads may outlive a group
    if (handle == NULL) return host_fail(STATUS_SYSTEM, "no groups of several CPUs: %s", dlerror());
    void *entry = dlsym(handle, GLOO_LIBRARY_ENTRY);
    if (entry == NULL) return host_fail(STATUS_SYSTEM, "%s: has no %s", GLOO_LIBRARY, GLOO_LIBRARY_ENTRY);
    *library = (*(GlooLibraryEntry **)(void *)&entry)();
    if ((*library)->version == GLOO_LIBRARY_VERSION) return STATUS_OK;
    return host_fail(STATUS_SYSTEM, "%s is of version %d, this program needs %d: they are from different builds",
                     GLOO_LIBRARY, (*library)->version, GLOO_LIBRARY_VERSION);
}

Status host_comm_gloo_check(void) {
    const GlooLibrary *library;
    return load(&library);
}

Status host_comm_gloo(const HostCommOptions *options, double deadline_s, HostComm **comm) {
    if (options->size < 1 || options->rank < 0 || options->rank >= options->size)
        return host_fail(STATUS_SYSTEM, "gloo: rank %d of a group of %d", options->rank, options->size);
    CommGloo *gloo = calloc(1, sizeof *gloo);
    if (gloo == NULL) return host_fail(STATUS_MEMORY, "no memory for a group");
    gloo->base = (HostComm){.ops = &gloo_ops, .rank = options->rank, .size = options->size};
    char text[GLOO_TEXT_MAX] = "";
    Status status = load(&gloo->library);
    if (status == STATUS_OK) {
        GlooResult result = gloo->library->open(options, timeout_s(deadline_s), &gloo->group, text);
        status = check(gloo, result, "group", text);
    }
    if (status != STATUS_OK) {
        gloo_free(&gloo->base);
        return status;
    }
    *comm = &gloo->base;
    return STATUS_OK;
}
