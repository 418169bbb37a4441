// The CPU backend: which instruction sets there are, and the table of its functions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/plural.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ppo_net.h"
#include "sim/sim_list.h"

#define SIM_TABLE(name, isa)                                                                               \
    extern const LanesOps name##_##isa##_1_ops, name##_##isa##_8_ops, name##_##isa##_16_ops;               \
    static const LanesOps *const name##_##isa##_tables[3] = {&name##_##isa##_1_ops, &name##_##isa##_8_ops, \
                                                             &name##_##isa##_16_ops};
#define SIM_ROW_baseline(name, Name, NAME) name##_baseline_tables,
#define SIM_ROW_v3(name, Name, NAME)       name##_v3_tables,
#define SIM_ROW_v4(name, Name, NAME)       name##_v4_tables,

#define SIM_TABLES_baseline(name, Name, NAME) SIM_TABLE(name, baseline)
SIM_LIST(SIM_TABLES_baseline)
static const LanesOps *const *const sims_baseline[] = {SIM_LIST(SIM_ROW_baseline)};

#if defined(__x86_64__)
#define SIM_TABLES_x86(name, Name, NAME) SIM_TABLE(name, v3) SIM_TABLE(name, v4)
SIM_LIST(SIM_TABLES_x86)
static const LanesOps *const *const sims_v3[] = {SIM_LIST(SIM_ROW_v3)};
static const LanesOps *const *const sims_v4[] = {SIM_LIST(SIM_ROW_v4)};
#endif

// Best last: name, lanes unless --lanes says otherwise, tables.
static const CpuIsa isas[] = {
    {"baseline", 8, sims_baseline, &cpu_ops_baseline, &ppo_kernels_baseline},
#if defined(__x86_64__)
    {"v3", 8, sims_v3, &cpu_ops_v3, &ppo_kernels_v3},
    {"v4", 16, sims_v4, &cpu_ops_v4, &ppo_kernels_v4},
#endif
};

static int isa_is_supported(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#if defined(__clang__) // clang 14 knows no levels; a processor that has these has all of the level
    int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512cd");
#else
    int v3 = __builtin_cpu_supports("x86-64-v3"), v4 = __builtin_cpu_supports("x86-64-v4");
#endif
    if (strcmp(name, "v3") == 0) return v3;
    if (strcmp(name, "v4") == 0) return v4;
#endif
    return strcmp(name, "baseline") == 0;
}

// The best that this processor has, or the one of that name if it has it; else NULL.
static const CpuIsa *choose_isa(const char *name) {
    for (int i = (int)(sizeof isas / sizeof isas[0]) - 1; i >= 0; i--) {
        bool wanted = strcmp(name, "auto") == 0 || strcmp(isas[i].name, name) == 0;
        if (wanted && isa_is_supported(isas[i].name)) return &isas[i];
    }
    return NULL;
}

static void cpu_close(KernBackend *backend) { free(backend); }

static HostMemory cpu_memory(KernBackend *backend) {
    (void)backend;
    return host_memory_cpu();
}

static void cpu_describe(KernBackend *backend, char *text, int size) {
    const CpuBackend *cpu = (const CpuBackend *)backend;
    int threads = host_pool_threads(cpu->pool);
    snprintf(text, (size_t)size, "cpu: %d thread%s, %s, %d lane%s", threads, host_plural(threads), cpu->isa->name,
             cpu->lanes, host_plural(cpu->lanes));
}

static const KernOps cpu_ops = {
    .name = "cpu",
    .close = cpu_close,
    .memory = cpu_memory,
    .describe = cpu_describe,
    .batch_plan = cpu_batch_plan,
    .batch_open = cpu_batch_open,
    .batch_close = cpu_batch_close,
    .batch_view = cpu_batch_view,
    .batch_reset = cpu_batch_reset,
    .batch_step = cpu_batch_step,
    .batch_read = cpu_batch_read,
    .batch_write = cpu_batch_write,
    .es_plan = cpu_es_plan,
    .es_open = cpu_es_open,
    .es_close = cpu_es_close,
    .es_write = cpu_es_write,
    .es_read = cpu_es_read,
    .es_evaluate = cpu_es_evaluate,
    .es_member = cpu_es_member,
    .es_shape = cpu_es_shape,
    .es_update = cpu_es_update,
    .ppo_plan = cpu_ppo_plan,
    .ppo_open = cpu_ppo_open,
    .ppo_close = cpu_ppo_close,
    .ppo_write = cpu_ppo_write,
    .ppo_read = cpu_ppo_read,
    .ppo_join = cpu_ppo_join,
    .ppo_update = cpu_ppo_update,
};

Status kern_cpu_open(const KernCpuOptions *options, KernBackend **backend) {
    const CpuIsa *isa = choose_isa(options->isa);
    if (isa == NULL) return host_fail(STATUS_DEVICE, "--isa %s: not what this processor has", options->isa);
    int lanes = options->lanes == 0 ? isa->default_lanes : options->lanes;
    if (lanes != 1 && lanes != 8 && lanes != 16) {
        return host_fail(STATUS_USAGE, "--lanes %d: 1, 8 or 16 (0: the instruction set's own)", lanes);
    }
    CpuBackend *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) return host_fail(STATUS_MEMORY, "no memory for the CPU backend");
    cpu->base.ops = &cpu_ops;
    cpu->pool = options->pool;
    cpu->isa = isa;
    cpu->lanes = lanes;
    *backend = &cpu->base;
    return STATUS_OK;
}

const LanesOps *const *cpu_sim_tables(const CpuBackend *backend, const SimSpec *spec) {
    for (int i = 0; i < sim_spec_count(); i++) {
        if (sim_spec_at(i) == spec) return backend->isa->sims[i];
    }
    return NULL; // unreachable: every SimSpec comes from that list
}

const LanesOps *cpu_sim_ops(const CpuBackend *backend, const SimSpec *spec) {
    return cpu_sim_tables(backend, spec)[backend->lanes == 1 ? 0 : backend->lanes == 8 ? 1 : 2];
}
