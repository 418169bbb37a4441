// Perturbation noise, members' parameters and the ES update on the CPU. Compiled for each instruction set (ISA is
// defined).
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/wide.h"
#include "kernels/es_math.h"

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

// The 64 normals of one group: 16 Philox blocks, their words side by side.
static void noise_group(uint64_t seed, uint32_t generation, uint32_t pair, uint32_t group, float *restrict noise) {
    float *out = __builtin_assume_aligned(noise, 64);
    for (uint32_t l = 0; l < 16; l++) { // vectorises
        SimNormal4 n = es_noise4(seed, generation, pair, group * 16 + l);
        out[l] = n.x0;
        out[16 + l] = n.x1;
        out[32 + l] = n.x2;
        out[48 + l] = n.x3;
    }
}

void ISA_CAT(cpu_noise_, ISA)(uint64_t seed, uint32_t generation, uint32_t pair, int first, int count, float *noise) {
    for (int i = 0; i < count; i += CPU_NOISE_GROUP) {
        noise_group(seed, generation, pair, (uint32_t)((first + i) / CPU_NOISE_GROUP), noise + i);
    }
    wide_end();
}

const float *ISA_CAT(cpu_member_, ISA)(const CpuEs *es, const KernEsJob *job, int32_t member, CpuScratch *scratch,
                                       CpuPair *pair) {
    int32_t count = es->spec.policy.params;
    if (job->sigma == 0.0f) return es->params;
    if (pair->number != member / 2) {
        ISA_CAT(cpu_noise_, ISA)
        (es->spec.seed, job->generation, (uint32_t)(member / 2), 0, count, scratch->noise);
        *pair = (CpuPair){member / 2, scratch->noise};
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
    _Alignas(64) float noise[CPU_NOISE_GROUP];
    _Alignas(64) float partial[CPU_UPDATE_TILE];
    _Alignas(64) float sum[CPU_UPDATE_TILE];
    int pairs = es->spec.members / 2, groups = (count + CPU_NOISE_GROUP - 1) / CPU_NOISE_GROUP;
    memset(sum, 0, sizeof sum);
    for (int chunk = 0; chunk < pairs; chunk += ES_PAIR_CHUNK) {
        int end = chunk + ES_PAIR_CHUNK < pairs ? chunk + ES_PAIR_CHUNK : pairs;
        memset(partial, 0, sizeof partial);
        for (int pair = chunk; pair < end; pair++) {
            float weight = shaped[2 * pair] - shaped[2 * pair + 1];
            for (int g = 0; g < groups; g++) {
                noise_group(es->spec.seed, step->generation, (uint32_t)pair, (uint32_t)(first / CPU_NOISE_GROUP + g),
                            noise);
                float *at = partial + g * CPU_NOISE_GROUP;
                for (int i = 0; i < CPU_NOISE_GROUP; i++) // vectorises
                    at[i] = sim_fmaf(weight, noise[i], at[i]);
            }
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
