// What an interpreter's scopes cost: profiler/shoal_scope.py measures it in that interpreter, and records a trace.
#define _GNU_SOURCE // pipe2, environ
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/prof_cost_parts.h"

enum { OUTPUT_MAX = 1 << 14 };

#define SECONDS_MAX "60"

// Beside this program: bin/../lib.
static Status find_module(char path[HOST_PATH_MAX]) {
    char program[HOST_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return host_fail(STATUS_SYSTEM, "cannot read /proc/self/exe: %s", strerror(errno));
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL) *slash = '\0';
    TRY(host_file_join(program, "../lib/shoal_scope.py", path));
    return host_file_exists(path) ? STATUS_OK : host_fail(STATUS_SYSTEM, "there is no %s", path);
}

// Everything that the pipe gives, a text; the rest is read and left out.
static void read_all(int from, char text[OUTPUT_MAX]) {
    size_t at = 0;
    char rest[512];
    for (;;) {
        bool has_room = at + 1 < OUTPUT_MAX;
        ssize_t got = read(from, has_room ? text + at : rest, has_room ? OUTPUT_MAX - 1 - at : sizeof rest);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (has_room) at += (size_t)got;
    }
    text[at] = '\0';
}

static Status run(const char *python, const char *module, const char *folder, char text[OUTPUT_MAX]) {
    // A profile that the environment asks for is not this one; nor is what a launcher says of this process.
    const char *const command[] = {"env",
                                   "-uSHOAL_PROFILE",
                                   "-uSHOAL_PROFILE_IDS",
                                   "-uCUDA_INJECTION64_PATH",
                                   "-uNVTX_INJECTION64_PATH",
                                   "SHOAL_RANK=0",
                                   "timeout",
                                   "-k5",
                                   SECONDS_MAX,
                                   python,
                                   module,
                                   folder,
                                   NULL};
    int ends[2], status = 0;
    pid_t child = 0;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) return host_fail(STATUS_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&child, "env", &actions, NULL, (char *const *)command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed == 0) read_all(ends[0], text);
    close(ends[0]);
    if (failed != 0) return host_fail(STATUS_SYSTEM, "%s: cannot be run: %s", python, strerror(failed));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
        return host_fail(STATUS_SYSTEM, "%s: there is no such program, or it was killed", python);
    if (WEXITSTATUS(status) == 124) return host_fail(STATUS_SYSTEM, "%s did not end within %s s", python, SECONDS_MAX);
    if (WEXITSTATUS(status) != 0) return host_fail(STATUS_SYSTEM, "%s fails with %s", python, module);
    return STATUS_OK;
}

static Status take(const char *text, const char *trace, ProfCost *cost) {
    double ns[PROF_COST_REPEATS];
    for (int r = 0; r < PROF_COST_REPEATS; r++) {
        char *end = NULL;
        ns[r] = strtod(text, &end);
        if (end == text) return host_fail(STATUS_SYSTEM, "the interpreter measured %d rounds only", r);
        text = end;
    }
    TRY(prof_cost_insides(trace, &cost->inside_ns[PROF_COST_SCRIPT]));
    cost->each_ns[PROF_COST_SCRIPT] = prof_estimate(ns, PROF_COST_REPEATS);
    cost->is_known[PROF_COST_SCRIPT] = true;
    return STATUS_OK;
}

Status prof_cost_measure_script(const char *folder, const char *python, ProfCost *cost) {
    char module[HOST_PATH_MAX], profile[HOST_PATH_MAX], trace[HOST_PATH_MAX];
    char text[OUTPUT_MAX];
    TRY(find_module(module));
    TRY(host_file_join(folder, "profile", profile));
    TRY(host_file_join(profile, "rank-0.trace", trace));
    Status status = run(python, module, folder, text);
    if (status == STATUS_OK) status = take(text, trace, cost);
    unlink(trace);
    rmdir(profile);
    return status;
}
