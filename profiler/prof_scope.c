#define _GNU_SOURCE // program_invocation_short_name
#include "profiler/prof_scope.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/trace.h"
#include "profiler/prof_launch.h"
#include "profiler/prof_names.h"
#include "profiler/shoal_scope.h"

#define EXPORT __attribute__((visibility("default")))

_Static_assert((int)SHOAL_IDLE == (int)HOST_TRACE_IDLE && SHOAL_HOST == (int)HOST_TRACE_HOST, "the same categories");
_Static_assert((int)SHOAL_EVALUATE == (int)HOST_PHASE_EVALUATE, "the same phases");

// Profiles are never freed: other threads may still be in their scopes.
typedef struct Profile {
    ProfLaunch launch;
    struct Profile *before;
} Profile;

static Profile *last;      // of all that were started
static ProfLaunch *launch; // NULL: none is recorded
static _Thread_local char message[512];

// ---- the process ---------------------------------------------------------------------------------------------------

// The first of these variables that is a number; -1: none.
static int64_t number_of(const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        const char *text = getenv(names[i]);
        char *end = NULL;
        long long value = text != NULL ? strtoll(text, &end, 10) : -1;
        if (text != NULL && end != text && *end == '\0' && value >= 0) return value;
    }
    return -1;
}

static ProfProcess describe(const char *tool) {
    static const char *const ranks[] = {"SHOAL_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};
    static const char *const sizes[] = {"SHOAL_WORKERS", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS",
                                        "PMI_SIZE"};
    ProfProcess process = {.rank = number_of(ranks, sizeof ranks / sizeof ranks[0]),
                           .workers = number_of(sizes, sizeof sizes / sizeof sizes[0])};
    const char *injection = getenv("CUDA_INJECTION64_PATH");
    bool has_gpu = injection != NULL && injection[0] != '\0';
    if (process.rank < 0) process.rank = 0;
    if (process.workers < 1) process.workers = 1;
    snprintf(process.tool, sizeof process.tool, "%s", tool != NULL ? tool : program_invocation_short_name);
    snprintf(process.device_kind, sizeof process.device_kind, "%s", has_gpu ? "cuda" : "cpu");
    snprintf(process.device, sizeof process.device, "%s", has_gpu ? "CUDA" : "the CPU");
    if (!has_gpu) {
        snprintf(process.no_device, sizeof process.no_device,
                 "CUDA_INJECTION64_PATH named no libshoal_inject.so, without which nothing of a GPU is recorded");
    }
    return process;
}

// The child of a fork has no thread that writes; what it records is its own to start.
static void leave_to_parent(void) {
    host_trace_attach(NULL);
    launch = NULL;
}

static void stop_at_exit(void) {
    if (launch == NULL) return;
    if (prof_scope_stop() != STATUS_OK) fprintf(stderr, "shoal: the profile is not whole: %s\n", host_message());
}

static void watch_process(void) {
    static bool is_watched;
    if (is_watched) return;
    is_watched = pthread_atfork(NULL, NULL, leave_to_parent) == 0 && atexit(stop_at_exit) == 0;
}

Status prof_scope_start(const char *folder, const char *tool) {
    if (launch != NULL) return host_fail(STATUS_USAGE, "%s: is being recorded already", launch->run);
    const char *set = getenv("SHOAL_PROFILE");
    if (folder == NULL) folder = set != NULL && set[0] != '\0' ? set : "shoal-profile";
    watch_process();
    Profile *started = calloc(1, sizeof *started);
    if (started == NULL) return host_fail(STATUS_MEMORY, "no memory for a profile");
    ProfRecordOptions options = {.process = describe(tool)};
    char text[512];
    Status status = prof_launch_record(&started->launch, folder, &options, false, text, sizeof text);
    if (text[0] != '\0') fprintf(stderr, "shoal: %s\n", text);
    if (status != STATUS_OK) {
        free(started);
        return status;
    }
    started->before = last;
    last = started;
    launch = &started->launch;
    return STATUS_OK;
}

Status prof_scope_stop(void) {
    if (launch == NULL) return STATUS_OK;
    char text[HOST_PATH_MAX + 256];
    Status status = prof_launch_stop(launch, 0, text, sizeof text);
    launch = NULL;
    return status;
}

// SHOAL_PROFILE=FOLDER in the environment: from the beginning.
static __attribute__((constructor)) void start_of_process(void) {
    const char *folder = getenv("SHOAL_PROFILE");
    if (folder == NULL || folder[0] == '\0') return;
    if (prof_scope_start(folder, NULL) != STATUS_OK) fprintf(stderr, "shoal: no profile: %s\n", host_message());
}

// ---- shoal_scope.h -------------------------------------------------------------------------------------------------

static int result(Status status) {
    if (status == STATUS_OK) return 0;
    snprintf(message, sizeof message, "%s", host_message());
    return -1;
}

EXPORT int shoal_profile_start(const char *folder, const char *tool) { return result(prof_scope_start(folder, tool)); }

EXPORT int shoal_profile_stop(void) { return result(prof_scope_stop()); }

EXPORT int shoal_profile_is_recording(void) { return launch != NULL; }

EXPORT const char *shoal_profile_message(void) { return message; }

static HostTraceCategory known(int category) {
    return (unsigned)category < HOST_TRACE_CATEGORIES ? (HostTraceCategory)category : HOST_TRACE_HOST;
}

EXPORT void shoal_scope_begin(int category, const char *name) { (void)host_trace_begin(known(category), name); }

// Hooks of this library are a recorder's.
EXPORT void shoal_script_begin(int category, const char *name) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (hooks != NULL) prof_record_script_begin(hooks, known(category), name);
}

EXPORT void shoal_scope_end(void) { host_trace_end(host_trace_hooks()); }

EXPORT const char *shoal_scope_name(const char *text) { return prof_name(text)->text; }

EXPORT void shoal_phase(int phase) {
    if ((unsigned)phase < HOST_TRACE_PHASES) host_trace_phase((HostTracePhase)phase);
}
