#include "kernels/kern.h"

#include <string.h>

#include "host/config.h"

void kern_sim_default(KernSim *sim, const SimSpec *spec) {
    memset(sim, 0, sizeof *sim);
    sim->spec = spec;
    sim->time_limit = spec->time_limit;
    for (int i = 0; i < spec->param_count; i++)
        sim->value[i] = (float)spec->params[i].value;
}

// The parameter that "name=..." names; `value` receives what follows the equals sign.
static Status find_param(const KernSim *sim, const char *option, const char *text, int *param, const char **value) {
    char name[HOST_LIST_TEXT_MAX];
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    if (equals == NULL || length >= sizeof name) {
        return host_fail(STATUS_USAGE, "%s %s: NAME=%s is wanted", option, text,
                         strcmp(option, "--set") == 0 ? "VALUE" : "LOW:HIGH");
    }
    memcpy(name, text, length);
    name[length] = '\0';
    *param = sim_spec_param(sim->spec, name);
    *value = equals + 1;
    if (*param >= 0) return STATUS_OK;
    const char *names[KERN_SIM_PARAMS_MAX];
    for (int i = 0; i < sim->spec->param_count; i++)
        names[i] = sim->spec->params[i].name;
    return host_fail(STATUS_USAGE, "%s %s: %s has no parameter '%s'; did you mean '%s'?", option, text, sim->spec->name,
                     name, host_nearest_name(name, names, sim->spec->param_count));
}

static Status parse_value(const char *what, const char *text, float *value) {
    double wide = 0.0;
    TRY(host_parse_real(what, text, -3e38, 3e38, "", &wide));
    *value = (float)wide;
    return STATUS_OK;
}

Status kern_sim_set(KernSim *sim, const char *text) {
    int param = 0;
    const char *value = "";
    TRY(find_param(sim, "--set", text, &param, &value));
    sim->random[param] = false;
    return parse_value(text, value, &sim->value[param]);
}

Status kern_sim_randomize(KernSim *sim, const char *text) {
    int param = 0;
    const char *value = "";
    TRY(find_param(sim, "--randomize", text, &param, &value));
    char low[HOST_LIST_TEXT_MAX];
    const char *colon = strchr(value, ':');
    size_t length = colon != NULL ? (size_t)(colon - value) : 0;
    if (colon == NULL || length >= sizeof low) {
        return host_fail(STATUS_USAGE, "--randomize %s: NAME=LOW:HIGH is wanted", text);
    }
    memcpy(low, value, length);
    low[length] = '\0';
    TRY(parse_value(text, low, &sim->low[param]));
    TRY(parse_value(text, colon + 1, &sim->high[param]));
    if (sim->high[param] - sim->low[param] > 3e38f) {
        return host_fail(STATUS_USAGE, "--randomize %s: the range is too wide", text);
    }
    if (!(sim->low[param] <= sim->high[param])) {
        return host_fail(STATUS_USAGE, "--randomize %s: %g is above %g", text, (double)sim->low[param],
                         (double)sim->high[param]);
    }
    sim->random[param] = true;
    sim->any_random = true;
    return STATUS_OK;
}
