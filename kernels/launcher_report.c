// What a launcher prints: the list of simulators, the plan, the result; for people or as JSON. Whether the stream took
// everything is the caller's to check.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"
#include "host/json_text.h"
#include "host/plural.h"
#include "kernels/launcher_run.h"

// "key": "text"
static void put_text(FILE *stream, const char *key, const char *text) {
    fprintf(stream, "\"%s\": ", key);
    host_json_put(stream, text);
}

Status launch_unknown_simulator(const LaunchRun *run, const char *env) {
    enum { NAMES_MAX = 64 };
    const char *objective = launch_has_objectives(run) ? kern_objective_of_bare_name(env) : NULL;
    if (objective != NULL)
        return host_fail(STATUS_USAGE, "unknown simulator '%s'; did you mean '%s'? (--list shows all)", env, objective);
    const char *names[NAMES_MAX];
    int count = sim_spec_count() < NAMES_MAX ? sim_spec_count() : NAMES_MAX;
    for (int i = 0; i < count; i++)
        names[i] = sim_spec_at(i)->name;
    return host_fail(STATUS_USAGE, "unknown simulator '%s'; did you mean '%s'? (--list shows all)", env,
                     host_nearest_name(env, names, count));
}

// "2 discrete", "1 continuous in [-2, 2]", "3 x 2 discrete, 1 continuous in [0, 1]"
static void action_text(const SimSpec *sim, char text[64]) {
    int at = 0;
    for (const int *choices = sim->choices; *choices > 0; choices++)
        at += snprintf(text + at, (size_t)(64 - at), "%s%d", at > 0 ? " x " : "", *choices);
    if (at > 0) at += snprintf(text + at, (size_t)(64 - at), " discrete%s", sim->continuous > 0 ? ", " : "");
    if (sim->continuous == 0) return;
    snprintf(text + at, (size_t)(64 - at), "%d continuous in [%g, %g]", sim->continuous, (double)sim->action_low,
             (double)sim->action_high);
}

static void put_spaces(const SimSpec *sim, FILE *stream) {
    put_text(stream, "name", sim->name);
    fputs(", ", stream);
    put_text(stream, "gymnasium_id", sim->gymnasium_id);
    fprintf(stream, ", \"observation\": %d, \"discrete\": %d, \"choices\": [", sim->obs, sim->discrete);
    for (const int *choices = sim->choices; *choices > 0; choices++)
        fprintf(stream, "%s%d", choices > sim->choices ? ", " : "", *choices);
    fprintf(stream, "], \"continuous\": %d", sim->continuous);
    if (sim->continuous > 0) {
        fprintf(stream, ", \"action_low\": %.9g, \"action_high\": %.9g", (double)sim->action_low,
                (double)sim->action_high);
    }
}

static void list_all(const LaunchRun *run, FILE *stream) {
    bool json = run->options.json;
    if (json) fprintf(stream, "[");
    for (int i = 0; i < sim_spec_count(); i++) {
        const SimSpec *sim = sim_spec_at(i);
        char action[64];
        action_text(sim, action);
        if (json) {
            fputs(i > 0 ? ",\n {" : "{", stream);
            put_spaces(sim, stream);
            fprintf(stream, ", \"time_limit_steps\": %d, \"target_return\": %.17g}", sim->time_limit,
                    sim->reward_threshold);
        } else {
            fprintf(stream, "%-24s %-28s obs %d, actions %s, %d steps, solved at %g\n", sim->name, sim->gymnasium_id,
                    sim->obs, action, sim->time_limit, sim->reward_threshold);
        }
    }
    launch_list_objectives(run, stream);
    if (json) fprintf(stream, "]\n");
}

static void list_params(const SimSpec *sim, bool json, FILE *stream) {
    for (int i = 0; i < sim->param_count; i++) {
        const SimParamInfo *p = &sim->params[i];
        if (json) {
            fputs(i > 0 ? ",\n  {" : "{", stream);
            put_text(stream, "name", p->name);
            fprintf(stream, ", \"default\": %.17g, ", p->value);
            put_text(stream, "unit", p->unit);
            fputs(", ", stream);
            put_text(stream, "help", p->help);
            fputc('}', stream);
        } else {
            fprintf(stream, "  %-24s %-12.9g %-10s %s\n", p->name, p->value, p->unit, p->help);
        }
    }
}

typedef struct Listed {
    const KernTrainer *trainer;
    KernObjectiveKind kind;
    bool has_target;
} Listed;

static bool is_listed(const void *context, const char *name) {
    const Listed *l = context;
    if (strcmp(name, "target") == 0) return l->has_target;
    return l->trainer->applies == NULL || l->trainer->applies(name, l->kind);
}

Status launch_default_settings(const KernTrainer *trainer, const SimSpec *sim, const KernObjective *objective,
                               char **json) {
    HostConfig config;
    void *values = calloc(1, trainer->table->size_bytes);
    if (values == NULL) return host_fail(STATUS_MEMORY, "no memory for the settings");
    host_config_init(&config, trainer->table, values);
    Status status = host_config_set(&config, CONFIG_ARGS, "env", sim != NULL ? sim->name : objective->name);
    if (status == STATUS_OK)
        status = sim != NULL ? trainer->defaults(&config, sim) : trainer->objective_defaults(&config, objective);
    KernObjectiveKind kind = sim != NULL ? KERN_OBJECTIVE_NONE : objective->kind;
    Listed listed = {trainer, kind, host_config_real(&config, "target") < KERN_TARGET_NONE};
    if (status == STATUS_OK) status = host_config_some_to_json(&config, is_listed, &listed, json);
    free(values);
    return status;
}

static Status list_one(const KernTrainer *trainer, const SimSpec *sim, bool json, FILE *stream) {
    char action[64], *settings = NULL;
    action_text(sim, action);
    TRY(launch_default_settings(trainer, sim, NULL, &settings));
    if (json) {
        fputc('{', stream);
        put_spaces(sim, stream);
        fprintf(stream, ",\n \"parameters\": [");
        list_params(sim, json, stream);
        fprintf(stream, "],\n \"state\": [");
        for (int i = 0; i < sim->state_words; i++)
            fprintf(stream, "%s\"%s\"", i > 0 ? ", " : "", sim->state[i].name);
        fprintf(stream, "],\n \"settings\": %s}\n", settings);
    } else {
        fprintf(stream, "%s (%s): observation of %d, actions: %s\n\n", sim->name, sim->gymnasium_id, sim->obs, action);
        fprintf(stream, "parameters (--set NAME=VALUE, --randomize NAME=LOW:HIGH):\n");
        list_params(sim, json, stream);
        fprintf(stream, "\nstate:");
        for (int i = 0; i < sim->state_words; i++)
            fprintf(stream, " %s", sim->state[i].name);
        fprintf(stream, "\n\nsettings:\n%s\n", settings);
    }
    free(settings);
    return STATUS_OK;
}

Status launch_print_list(const LaunchRun *run, const char *env, FILE *stream) {
    if (env == NULL) {
        list_all(run, stream);
        return STATUS_OK;
    }
    if (kern_objective_is(env)) return launch_list_objective(run, env, stream);
    const SimSpec *sim = sim_spec_find(env);
    if (sim == NULL) return launch_unknown_simulator(run, env);
    return list_one(run->trainer, sim, run->options.json, stream);
}

Status launch_print_plan(const LaunchRun *run, const KernRunPlan *plan, FILE *stream) {
    if (run->options.json) {
        char *memory = NULL;
        TRY(host_plan_to_json(&plan->memory, &memory));
        fputc('{', stream);
        put_text(stream, "env", run->options.env);
        fputs(", ", stream);
        put_text(stream, "device", run->device.text);
        fprintf(stream, ", \"params\": %d, \"%s\": %lld, \"memory\": %s}\n", plan->params, plan->env_steps_key,
                (long long)plan->env_steps, memory);
        free(memory);
        return STATUS_OK;
    }
    fprintf(stream, "%s on %s\n", run->options.env, run->device.text);
    fprintf(stream, "%s%d parameter%s\n", launch_is_objective(run) ? "" : "policy: ", plan->params,
            host_plural(plan->params));
    fprintf(stream, "%s\n", plan->work);
    host_plan_print(&plan->memory, "memory", stream);
    return STATUS_OK;
}

// Members that this process has evaluated, alone or beside others.
static int64_t items_here(const LaunchRun *run) {
    return run->at.items - run->begun_items - run->figures.other_items - run->figures.lost_items;
}

static void put_workers(const LaunchRun *run, FILE *stream) {
    HostMemberFigures f = host_member_figures(run->member);
    fprintf(stream, ", \"workers\": {\"evaluators\": %lld", (long long)f.evaluators);
#define PUT_FIGURE(name, meaning) fprintf(stream, ", \"%s\": %lld", #name, (long long)f.name);
    HOST_MEMBER_FIGURES(PUT_FIGURE)
#undef PUT_FIGURE
    if (launch_has_evaluators(run)) {
        fprintf(stream, ", \"here_items\": %lld, \"earlier_items\": %lld", (long long)items_here(run),
                (long long)run->begun_items);
    }
    fputc('}', stream);
}

static void print_workers(const LaunchRun *run, FILE *stream) {
    HostMemberFigures f = host_member_figures(run->member);
    char since[64] = "";
    if (run->begun > 0) snprintf(since, sizeof since, ", since %s %lld", run->trainer->step, (long long)run->begun);
    if (!launch_has_evaluators(run)) {
        fprintf(stream, "%lld group%s of trainers; %lld byte%s between them%s\n", (long long)f.groups,
                host_plural(f.groups), (long long)f.collective_bytes, host_plural(f.collective_bytes), since);
        return;
    }
    int64_t here = items_here(run);
    fprintf(stream, "with evaluators: %lld member%s here, %lld elsewhere", (long long)here, host_plural(here),
            (long long)run->figures.other_items);
    if (run->begun > 0)
        fprintf(stream, ", %lld before %s %lld", (long long)run->begun_items, run->trainer->step,
                (long long)run->begun);
    fprintf(stream, ", %lld twice, %lld lost; results of %lld byte%s, parameters of %lld byte%s by message%s\n",
            (long long)f.repeated_items, (long long)run->figures.lost_items, (long long)f.result_bytes,
            host_plural(f.result_bytes), (long long)f.payload_bytes, host_plural(f.payload_bytes), since);
}

static void put_number(FILE *stream, double value, bool is_known) {
    if (is_known) {
        fprintf(stream, "%.17g", value);
    } else {
        fputs("null", stream);
    }
}

static void put_result(const LaunchRun *run, const char *folder, const char *hash, FILE *stream) {
    const LaunchOptions *options = &run->options;
    fputc('{', stream);
    put_text(stream, "env", options->env);
    fputs(", ", stream);
    put_text(stream, "outcome", run->outcome);
    fprintf(stream,
            ", \"seed\": %lld, \"%ss\": %lld, \"env_steps\": %lld, \"train_s\": %.6f, \"wall_s\": %.6f, "
            "\"target_return\": ",
            (long long)options->seed, run->trainer->step, (long long)run->at.done, (long long)run->at.env_steps,
            run->at.train_s, host_now_s() - run->start_s);
    put_number(stream, options->target, options->target < KERN_TARGET_NONE);
    fputs(", ", stream);
    if (run->is_tested) {
        fprintf(stream,
                "\"test_return_mean\": %.17g, \"test_return_std\": %.17g, \"test_length_mean\": %.17g, "
                "\"test_episodes\": %lld, ",
                run->test.return_mean, run->test.return_std, run->test.length_mean, (long long)options->test_episodes);
    } else {
        fputs("\"test_return_mean\": null, \"test_return_std\": null, \"test_length_mean\": null, "
              "\"test_episodes\": 0, ",
              stream);
    }
    if (launch_is_objective(run)) {
        bool is_mean = run->is_tested && run->test.return_mean > run->at.best_return;
        double best = is_mean ? run->test.return_mean : run->at.best_return;
        fputs("\"best_return\": ", stream);
        put_number(stream, best, isfinite(best));
        fputs(", ", stream);
    }
    fprintf(stream, "\"params\": %d, ", run->at.params);
    put_text(stream, "params_hash", hash);
    fputs(", ", stream);
    put_text(stream, "device", run->device.text);
    fputs(", ", stream);
    put_text(stream, "run", folder);
    if (run->member != NULL) put_workers(run, stream);
    fputs("}\n", stream);
}

// Of an objective: its value at the mean, which is what is tested, and the best that was found.
static void print_fitness(const LaunchRun *run, FILE *stream) {
    if (run->is_tested) {
        fprintf(stream, "fitness %.9g at the mean of the search", run->test.return_mean);
        if (run->options.target < KERN_TARGET_NONE) fprintf(stream, " (solved at %g)", run->options.target);
        fputc('\n', stream);
    }
    if (isfinite(run->at.best_return))
        fprintf(stream, "fitness %.9g of the best member; best.json has the parameters of both\n", run->at.best_return);
}

void launch_print_result(const LaunchRun *run, const char *folder, FILE *stream) {
    char hash[17];
    host_hash_text(run->trainer->params_hash(run->trainer->state), hash);
    if (run->options.json) {
        put_result(run, folder, hash, stream);
        return;
    }
    fprintf(stream, "%s: %s after %lld %s%s, %lld %s%s, %.2f s of training\n", run->options.env, run->outcome,
            (long long)run->at.done, run->trainer->step, host_plural(run->at.done), (long long)run->at.env_steps,
            launch_is_objective(run) ? "evaluation" : "env step", host_plural(run->at.env_steps), run->at.train_s);
    if (launch_is_objective(run)) {
        print_fitness(run, stream);
    } else if (run->is_tested) {
        fprintf(stream, "return %.2f +- %.2f over %lld episode%s on unused seeds, without noise (solved at %g)\n",
                run->test.return_mean, run->test.return_std, (long long)run->options.test_episodes,
                host_plural(run->options.test_episodes), run->options.target);
    }
    fprintf(stream, "parameters %s\n", hash);
    if (run->member != NULL) print_workers(run, stream);
    fprintf(stream, "run folder %s\n", folder);
}
