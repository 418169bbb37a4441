#include "kernels/objective.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/config.h"
#include "host/file.h"
#include "host/hash.h"
#include "sim/sim_rng.h"

enum { LIBRARY_BYTES_MAX = 1 << 30 };

const KernObjectiveInfo kern_objective_info[] = {{0},
#define INFO_ROW(NAME, ...) {__VA_ARGS__},
                                                 KERN_OBJECTIVES(INFO_ROW)};

// With the prefix, for messages.
static const char *const full_names[] = {
#define FULL_NAME(NAME, name, ...) KERN_OBJECTIVE_PREFIX name,
    KERN_OBJECTIVES(FULL_NAME)};

bool kern_objective_is(const char *name) {
    return strncmp(name, KERN_OBJECTIVE_PREFIX, strlen(KERN_OBJECTIVE_PREFIX)) == 0;
}

const char *kern_objective_of_bare_name(const char *name) {
    for (int kind = 1; kind < KERN_OBJECTIVE_KINDS; kind++)
        if (strcmp(name, kern_objective_info[kind].name) == 0) return full_names[kind - 1];
    return NULL;
}

const char *kern_objective_label(KernObjectiveKind kind, char text[KERN_OBJECTIVE_LABEL_MAX]) {
    snprintf(text, KERN_OBJECTIVE_LABEL_MAX, "objective-%s", kern_objective_info[kind].name);
    return text;
}

// ---- names ---------------------------------------------------------------------------------------------------------

static Status set_name(KernObjective *o, const char *argument) {
    const char *name = kern_objective_info[o->kind].name;
    o->argument = (int32_t)(strlen(KERN_OBJECTIVE_PREFIX) + strlen(name) + 1);
    int length = snprintf(o->name, sizeof o->name, KERN_OBJECTIVE_PREFIX "%s%s%s", name, argument[0] != '\0' ? ":" : "",
                          argument);
    if (length < (int)sizeof o->name) return STATUS_OK;
    return host_fail(STATUS_USAGE, KERN_OBJECTIVE_PREFIX "%s: a name of %d bytes: at most %d", name, length,
                     (int)sizeof o->name - 1);
}

static Status parse_exec(KernObjective *o, const char *command) {
    if (command[strspn(command, " \t\n")] == '\0')
        return host_fail(STATUS_USAGE, "%s: which command? %s:COMMAND", full_names[o->kind - 1],
                         full_names[o->kind - 1]);
    return set_name(o, command);
}

static Status parse_lib(KernObjective *o, const char *path) {
    if (path[0] == '\0')
        return host_fail(STATUS_USAGE, "%s: which library? %s:PATH", full_names[o->kind - 1], full_names[o->kind - 1]);
    char *absolute = realpath(path, NULL);
    if (absolute == NULL)
        return host_fail(STATUS_USAGE, "%s:%.300s: %s", full_names[o->kind - 1], path, strerror(errno));
    Status status = set_name(o, absolute);
    free(absolute);
    return status;
}

static Status parse_sleep(KernObjective *o, const char *text) {
    char low[32];
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    o->sleep_low_ms = o->sleep_high_ms = 1.0;
    if (text[0] == '\0') return set_name(o, text);
    snprintf(low, sizeof low, "%.*s", (int)length, text);
    const char *what = full_names[o->kind - 1];
    TRY(host_parse_real(what, length < sizeof low ? low : text, 0.0, 1e6, "ms", &o->sleep_low_ms));
    o->sleep_high_ms = o->sleep_low_ms;
    if (colon != NULL) TRY(host_parse_real(what, colon + 1, o->sleep_low_ms, 1e6, "ms", &o->sleep_high_ms));
    return set_name(o, text);
}

static bool is_library(const char *name) {
    size_t length = strlen(name);
    return strchr(name, '/') != NULL || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

// The kind that a name, up to its colon, stands for.
static KernObjectiveKind find_kind(const char *name, size_t length) {
    for (int kind = 1; kind < KERN_OBJECTIVE_KINDS; kind++) {
        const char *known = kern_objective_info[kind].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) return (KernObjectiveKind)kind;
    }
    return KERN_OBJECTIVE_NONE;
}

Status kern_objective_parse(const char *name, KernObjective *o) {
    const char *rest = name + strlen(KERN_OBJECTIVE_PREFIX);
    size_t length = strcspn(rest, ":");
    const char *argument = rest[length] == ':' ? rest + length + 1 : "";
    memset(o, 0, sizeof *o);
    o->kind = find_kind(rest, length);
    if (o->kind == KERN_OBJECTIVE_NONE && is_library(rest)) {
        o->kind = KERN_OBJECTIVE_LIB;
        argument = rest;
    }
    const KernObjectiveInfo *info = &kern_objective_info[o->kind];
    o->low = info->low;
    o->high = info->high;
    switch (o->kind) {
    case KERN_OBJECTIVE_SLEEP:
        return parse_sleep(o, argument);
    case KERN_OBJECTIVE_EXEC:
        return parse_exec(o, argument);
    case KERN_OBJECTIVE_LIB:
        return parse_lib(o, argument);
    case KERN_OBJECTIVE_SPHERE:
    case KERN_OBJECTIVE_RASTRIGIN:
    case KERN_OBJECTIVE_ROSENBROCK:
        if (argument[0] == '\0') return set_name(o, argument);
        return host_fail(STATUS_USAGE, "%.100s: %s takes nothing more; --dim and --init are options", name,
                         full_names[o->kind - 1]);
    case KERN_OBJECTIVE_NONE:
    case KERN_OBJECTIVE_KINDS:
        break;
    }
    return host_fail(STATUS_USAGE, "unknown objective '%.100s'; did you mean '%s'? (--list shows all)", rest,
                     host_nearest_name(name, full_names, KERN_OBJECTIVE_KINDS - 1));
}

// ---- where the search begins ---------------------------------------------------------------------------------------

Status kern_objective_set_start(KernObjective *o, const char *text) {
    char low_text[64];
    double low = 0.0, high = 0.0;
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (text[0] == '\0') return STATUS_OK;
    snprintf(low_text, sizeof low_text, "%.*s", (int)length, text);
    TRY(host_parse_real("--init", length < sizeof low_text ? low_text : text, -1e30, 1e30, "", &low));
    high = low;
    if (colon != NULL) TRY(host_parse_real("--init", colon + 1, -1e30, 1e30, "", &high));
    if (low > high) return host_fail(STATUS_USAGE, "--init %s: %g is above %g", text, low, high);
    o->low = (float)low;
    o->high = (float)high;
    return STATUS_OK;
}

void kern_objective_start(const KernObjective *o, uint64_t seed, int32_t dim, float *params) {
    for (int32_t i = 0; i < dim; i++) {
        SimWords4 w = sim_philox((uint32_t)i, 0, 0, SIM_RNG_INIT, (uint32_t)seed, (uint32_t)(seed >> 32));
        params[i] = sim_lerp(sim_uniform_from(w.x0), o->low, o->high);
    }
}

Status kern_objective_hash(const KernObjective *o, char text[17]) {
    text[0] = '\0';
    if (o->kind != KERN_OBJECTIVE_LIB || o->argument == 0) return STATUS_OK;
    char *data;
    size_t bytes;
    Status status = host_file_read(kern_objective_argument(o), LIBRARY_BYTES_MAX, &data, &bytes);
    if (status == STATUS_IO) return STATUS_USAGE; // it was named wrongly, as one without the function is
    TRY(status);
    HostHash hash = host_hash_start();
    host_hash_add(&hash, data, bytes);
    free(data);
    host_hash_text(hash, text);
    return STATUS_OK;
}
