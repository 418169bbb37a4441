#include "kernels/kern.h"

#include <string.h>

void kern_sim_default(KernSim *sim, const SimSpec *spec) {
    memset(sim, 0, sizeof *sim);
    sim->spec = spec;
    sim->time_limit = spec->time_limit;
    for (int i = 0; i < spec->param_count; i++) sim->value[i] = (float)spec->params[i].value;
}
