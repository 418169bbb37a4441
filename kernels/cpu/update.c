// Perturbation noise, members' parameters and the ES update on the CPU. Compiled for each instruction set (ISA is
// defined).
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/wide.h"
#include "kernels/es_math.h"

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

// The 64 normals of one group: 16 Philox blocks, their words side by side.
static void normal_group(uint64_t seed, int64_t group, uint32_t pair, uint32_t purpose, float *restrict normal) {
    float *out = __builtin_assume_aligned(normal, 64);
    for (uint32_t l = 0; l < 16; l++) { // vectorises
        SimNormal4 n = es_normal4(seed, (uint32_t)group * 16 + l, pair, purpose);
        out[l] = n.x0;
        out[16 + l] = n.x1;
        out[32 + l] = n.x2;
        out[48 + l] = n.x3;
    }
}

static inline const float *noise_of(const EsNoise *noise, uint32_t generation, uint32_t pair, int first, int count,
                                    float *buffer) {
    if (noise->table != NULL) return noise->table + es_slice(noise, generation, pair) + first;
    for (int i = 0; i < count; i += CPU_NOISE_GROUP)
        normal_group(noise->seed, (first + i) / CPU_NOISE_GROUP, pair, SIM_RNG_NOISE | generation, buffer + i);
    return buffer;
}

const float *ISA_CAT(cpu_noise_, ISA)(const EsNoise *noise, uint32_t generation, uint32_t pair, int first, int count,
                                      float *buffer) {
    const float *found = noise_of(noise, generation, pair, first, count, buffer);
    wide_end();
    return found;
}

void ISA_CAT(cpu_table_, ISA)(uint64_t seed, int64_t first, int64_t count, float *table) {
    for (int64_t i = 0; i < count; i += CPU_NOISE_GROUP)
        normal_group(seed, (first + i) / CPU_NOISE_GROUP, 0, SIM_RNG_TABLE, table + i);
    wide_end();
}

const float *ISA_CAT(cpu_member_, ISA)(const CpuEs *es, const KernEsJob *job, int32_t member, CpuScratch *scratch,
                                       CpuPair *pair) {
    int32_t count = es->spec.policy.params;
    if (job->sigma == 0.0f) return es->params;
    if (pair->number != member / 2) {
        const float *found = noise_of(&es->noise, job->generation, (uint32_t)(member / 2), 0, count, scratch->noise);
        *pair = (CpuPair){member / 2, found};
    }
    const float *restrict noise = __builtin_assume_aligned(pair->noise, 64);
    const float *restrict params = __builtin_assume_aligned(es->params, 64);
    float *restrict flat = __builtin_assume_aligned(scratch->flat, 64);
    float sigma = member % 2 == 0 ? job->sigma : -job->sigma;
    for (int i = 0; i < count; i++) // vectorises
        flat[i] = sim_fmaf(sigma, noise[i], params[i]);
    wide_end();
    return flat;
}

void ISA_CAT(cpu_update_, ISA)(CpuEs *es, const KernEsStep *step, const float *shaped, int first, int count) {
    _Alignas(64) float buffer[CPU_UPDATE_TILE];
    _Alignas(64) float partial[CPU_UPDATE_TILE];
    _Alignas(64) float sum[CPU_UPDATE_TILE];
    int pairs = es->spec.members / 2, padded = cpu_round_up(count, CPU_NOISE_GROUP);
    memset(sum, 0, sizeof sum);
    for (int chunk = 0; chunk < pairs; chunk += ES_PAIR_CHUNK) {
        int end = chunk + ES_PAIR_CHUNK < pairs ? chunk + ES_PAIR_CHUNK : pairs;
        memset(partial, 0, sizeof partial);
        for (int pair = chunk; pair < end; pair++) {
            float weight = shaped[2 * pair] - shaped[2 * pair + 1];
            const float *noise = __builtin_assume_aligned(
                noise_of(&es->noise, step->generation, (uint32_t)pair, first, padded, buffer), 64);
            for (int i = 0; i < padded; i++) // vectorises
                partial[i] = sim_fmaf(weight, noise[i], partial[i]);
        }
        for (int i = 0; i < CPU_UPDATE_TILE; i++)
            sum[i] = sum[i] + partial[i];
    }
    float *restrict params = es->params + first, *restrict m = es->first + first, *restrict v = es->second + first;
    KernEsStep s = *step;
    for (int i = 0; i < count; i++) { // vectorises
        EsAdam a = es_adam((EsAdam){params[i], m[i], v[i]}, sum[i], &s);
        params[i] = a.param;
        m[i] = a.first;
        v[i] = a.second;
    }
    wide_end();
}
