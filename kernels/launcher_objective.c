// What a launcher does for objectives: naming them, listing them, and refusing what they have not.
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"
#include "kernels/launcher_run.h"

bool launch_has_objectives(const LaunchRun *run) { return run->trainer->objective_defaults != NULL; }

bool launch_is_objective(const LaunchRun *run) { return kern_objective_is(run->options.env); }

const char *launch_label(const LaunchRun *run, char text[KERN_OBJECTIVE_LABEL_MAX]) {
    KernObjective objective;
    if (launch_is_objective(run) && kern_objective_parse(run->options.env, &objective) == STATUS_OK)
        return kern_objective_label(objective.kind, text);
    snprintf(text, KERN_OBJECTIVE_LABEL_MAX, "%.60s", run->options.env);
    return text;
}

Status launch_find_objective(const LaunchRun *run, const char *name, KernObjective *objective) {
    if (!launch_has_objectives(run)) {
        return host_fail(STATUS_USAGE, "%.200s: objectives have no simulator to train on: %s is for simulators", name,
                         run->trainer->tool);
    }
    return kern_objective_parse(name, objective);
}

// How many parameters users' own functions take nobody knows but they.
static bool needs_dim(const KernObjective *objective) {
    return objective->kind == KERN_OBJECTIVE_EXEC || objective->kind == KERN_OBJECTIVE_LIB;
}

Status launch_objective_settings(LaunchRun *run, const KernObjective *objective) {
    if (run->options.html[0] != '\0')
        return host_fail(STATUS_USAGE, "--html shows episodes of a policy in a simulator: %.200s has none",
                         objective->name);
    if (host_config_choice(&run->config, "collectives") == HOST_COLLECTIVES_NCCL)
        return host_fail(STATUS_USAGE,
                         "--collectives nccl is between GPUs: objectives without a simulator run on CPUs");
    TRY(run->trainer->objective_defaults(&run->config, objective));
    if (!needs_dim(objective) || host_config_is_given(&run->config, "dim")) return STATUS_OK;
    return host_fail(STATUS_USAGE, "%.200s: how many parameters? --dim N", objective->name);
}

// ---- lists ---------------------------------------------------------------------------------------------------------

static void put_text(FILE *stream, const char *key, const char *text) {
    fprintf(stream, "\"%s\": ", key);
    host_json_put(stream, text);
}

static void put_info(const KernObjectiveInfo *info, FILE *stream) {
    char name[KERN_OBJECTIVE_TEXT_MAX];
    snprintf(name, sizeof name, KERN_OBJECTIVE_PREFIX "%s", info->name);
    put_text(stream, "name", name);
    snprintf(name, sizeof name, KERN_OBJECTIVE_PREFIX "%s", info->form);
    fputs(", ", stream);
    put_text(stream, "form", name);
    fputs(", ", stream);
    put_text(stream, "maximises", info->help);
    fprintf(stream,
            ", \"init_low\": %.9g, \"init_high\": %.9g, \"least_dim\": %d, \"target_return\": ", (double)info->low,
            (double)info->high, info->least_dim);
    if (info->target < KERN_TARGET_NONE) {
        fprintf(stream, "%.17g", info->target);
    } else {
        fputs("null", stream);
    }
}

static void print_target(const KernObjectiveInfo *info, FILE *stream) {
    if (info->target < KERN_TARGET_NONE) {
        fprintf(stream, ", solved at %g", info->target);
    } else {
        fputs(", target: none", stream);
    }
}

void launch_list_objectives(const LaunchRun *run, FILE *stream) {
    for (int kind = 1; launch_has_objectives(run) && kind < KERN_OBJECTIVE_KINDS; kind++) {
        const KernObjectiveInfo *info = &kern_objective_info[kind];
        if (run->options.json) {
            fputs(",\n {", stream);
            put_info(info, stream);
            fputc('}', stream);
        } else {
            char form[48];
            snprintf(form, sizeof form, KERN_OBJECTIVE_PREFIX "%s", info->form);
            fprintf(stream, "%-24s %s", form, info->help);
            print_target(info, stream);
            fputc('\n', stream);
        }
    }
}

Status launch_list_objective(const LaunchRun *run, const char *name, FILE *stream) {
    KernObjective objective = {0};
    char *settings = NULL;
    // exec and lib are listed without a command or a library, too.
    for (int kind = 1; launch_has_objectives(run) && kind < KERN_OBJECTIVE_KINDS; kind++) {
        if (strcmp(name + strlen(KERN_OBJECTIVE_PREFIX), kern_objective_info[kind].name) != 0) continue;
        objective.kind = (KernObjectiveKind)kind;
        snprintf(objective.name, sizeof objective.name, "%s", name);
    }
    if (objective.kind == KERN_OBJECTIVE_NONE) TRY(launch_find_objective(run, name, &objective));
    const KernObjectiveInfo *info = &kern_objective_info[objective.kind];
    TRY(launch_default_settings(run->trainer, NULL, &objective, &settings));
    if (run->options.json) {
        fputc('{', stream);
        put_info(info, stream);
        fprintf(stream, ",\n \"settings\": %s}\n", settings);
    } else {
        fprintf(stream, KERN_OBJECTIVE_PREFIX "%s: %s\n\nmaximised", info->form, info->help);
        print_target(info, stream);
        fprintf(stream, "; --dim N parameters%s", needs_dim(&objective) ? ", which is to be given" : "");
        if (info->least_dim > 1) fprintf(stream, ", at least %d", info->least_dim);
        fprintf(stream, "; the search begins ");
        if (info->low < info->high) fprintf(stream, "between %g and %g", (double)info->low, (double)info->high);
        if (!(info->low < info->high)) fprintf(stream, "at %g", (double)info->low);
        fprintf(stream, " (--init LOW:HIGH)\n\nsettings:\n%s\n", settings);
    }
    free(settings);
    return STATUS_OK;
}
