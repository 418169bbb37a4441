#include "es/es_report.h"

#include <stdlib.h>

#include "host/json_text.h"

// "key": "text"
static void put_text(FILE *stream, const char *key, const char *text) {
    fprintf(stream, "\"%s\": ", key);
    host_json_put(stream, text);
}

Status es_report_unknown(const char *env) {
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    int count = sim_spec_count() < NAMES_MAX ? sim_spec_count() : NAMES_MAX;
    for (int i = 0; i < count; i++)
        names[i] = sim_spec_at(i)->name;
    return host_fail(STATUS_USAGE, "unknown simulator '%s'; did you mean '%s'? (--list shows all)", env,
                     host_nearest_name(env, names, count));
}

static void action_text(const SimSpec *sim, char text[64]) {
    if (sim->discrete > 0) {
        snprintf(text, 64, "%d discrete", sim->discrete);
    } else {
        snprintf(text, 64, "%d continuous in [%g, %g]", sim->continuous, (double)sim->action_low,
                 (double)sim->action_high);
    }
}

static void put_spaces(const SimSpec *sim, FILE *stream) {
    put_text(stream, "name", sim->name);
    fputs(", ", stream);
    put_text(stream, "gymnasium_id", sim->gymnasium_id);
    fprintf(stream, ", \"observation\": %d, \"discrete\": %d, \"continuous\": %d", sim->obs, sim->discrete,
            sim->continuous);
    if (sim->continuous > 0) {
        fprintf(stream, ", \"action_low\": %.9g, \"action_high\": %.9g", (double)sim->action_low,
                (double)sim->action_high);
    }
}

static void list_all(bool json, FILE *stream) {
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

static Status list_one(const SimSpec *sim, bool json, FILE *stream) {
    EsConfig values;
    HostConfig config;
    host_config_init(&config, es_config_table(), &values);
    TRY(host_config_set(&config, CONFIG_ARGS, "env", sim->name));
    TRY(es_config_simulator_defaults(&config, sim));
    char action[64], *settings = NULL;
    action_text(sim, action);
    TRY(host_config_to_json(&config, &settings));
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

Status es_report_list(const char *env, bool json, FILE *stream) {
    if (env == NULL) {
        list_all(json, stream);
        return STATUS_OK;
    }
    const SimSpec *sim = sim_spec_find(env);
    if (sim == NULL) return es_report_unknown(env);
    return list_one(sim, json, stream);
}

Status es_report_plan(const EsConfig *config, const KernEsSpec *spec, const HostPlan *plan, const char *device,
                      bool json, FILE *stream) {
    int64_t steps = config->pop * config->episodes * config->time_limit;
    if (json) {
        char *memory = NULL;
        TRY(host_plan_to_json(plan, &memory));
        fputc('{', stream);
        put_text(stream, "env", config->env);
        fputs(", ", stream);
        put_text(stream, "device", device);
        fprintf(stream, ", \"params\": %d, \"env_steps_per_generation_max\": %lld, \"memory\": %s}\n",
                spec->policy.params, (long long)steps, memory);
        free(memory);
        return STATUS_OK;
    }
    fprintf(stream, "%s on %s\n", config->env, device);
    fprintf(stream, "policy: %d parameters\n", spec->policy.params);
    fprintf(stream, "population: %lld members x %lld episodes, at most %lld env steps in a generation\n",
            (long long)config->pop, (long long)config->episodes, (long long)steps);
    host_plan_print(plan, "memory", stream);
    return STATUS_OK;
}

static void put_result(const Es *es, const EsResult *r, FILE *stream) {
    fputc('{', stream);
    put_text(stream, "env", es->config.env);
    fputs(", ", stream);
    put_text(stream, "outcome", r->outcome);
    fprintf(stream,
            ", \"seed\": %lld, \"generations\": %lld, \"env_steps\": %lld, \"train_s\": %.6f, \"wall_s\": %.6f, "
            "\"target_return\": %.17g, ",
            (long long)es->config.seed, (long long)es->generation, (long long)es->env_steps, es->train_s, r->wall_s,
            es->config.target);
    if (r->test_episodes > 0) {
        fprintf(stream,
                "\"test_return_mean\": %.17g, \"test_return_std\": %.17g, \"test_length_mean\": %.17g, "
                "\"test_episodes\": %d, ",
                r->test.return_mean, r->test.return_std, r->test.length_mean, r->test_episodes);
    } else {
        fputs("\"test_return_mean\": null, \"test_return_std\": null, \"test_length_mean\": null, "
              "\"test_episodes\": 0, ",
              stream);
    }
    fprintf(stream, "\"params\": %d, ", es->spec.policy.params);
    put_text(stream, "params_hash", r->params_hash);
    fputs(", ", stream);
    put_text(stream, "device", r->device);
    fputs(", ", stream);
    put_text(stream, "run", r->run);
    fputs("}\n", stream);
}

void es_report_result(const Es *es, const EsResult *r, bool json, FILE *stream) {
    if (json) {
        put_result(es, r, stream);
        return;
    }
    fprintf(stream, "%s: %s after %lld generations, %lld env steps, %.2f s of training\n", es->config.env, r->outcome,
            (long long)es->generation, (long long)es->env_steps, es->train_s);
    if (r->test_episodes > 0) {
        fprintf(stream, "return %.2f +- %.2f over %d episodes on unused seeds, without noise (solved at %g)\n",
                r->test.return_mean, r->test.return_std, r->test_episodes, es->config.target);
    }
    fprintf(stream, "parameters %s\n", r->params_hash);
    fprintf(stream, "run folder %s\n", r->run);
}
