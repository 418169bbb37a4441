// Two gangs of one running lane each, in step with each other but half a step apart: while the one goes through the
// second hidden layer, which is most of the work, the other goes through everything else, which is mostly waiting. A
// processor cannot look far enough ahead to see that the two are independent, so their instructions alternate.
//
// Compiled for each instruction set: by kernels/cpu/evaluate.c for any policy and simulator, and by
// kernels/cpu/instance.c for each simulator with the policy that everybody uses, as straight lines in which the
// simulator's operations are spread among the layer's as well.
#ifndef SHOAL_KERNELS_CPU_PIPELINE_H
#define SHOAL_KERNELS_CPU_PIPELINE_H

#include "kernels/cpu/gang.h"

// Whether the common policy, 64-64, gets code of its own, all in straight lines: where a layer's sums fit the
// registers, and not in sanitizer builds, whose compilers take minutes for it.
#if WIDE == 16 && !defined(SHOAL_SANITIZED)
#define PIPELINE_COMMON 1
#else
#define PIPELINE_COMMON 0
#endif

// One gang's lane on its way through a policy of two wide hidden layers.
typedef struct Strand {
    Gang *gang;
    int lane;
    const float *w[3]; // packed weights of each layer
    float *hidden[2];  // each layer's sums, then its activations
} Strand;

typedef struct Pipeline {
    const Thread *t;
    void (*step)(KernLanes *lanes);
    int lanes; // of the gangs' blocks
    int obs, width[2], pad[2], outputs, discrete, continuous;
    PolicyActivation activation;
    int in_registers; // whether the second layer's sums are, while they are made
} Pipeline;

enum { PIPELINE_PARTS = 16 };

WIDE_FN int pipeline_fits(const Thread *t, const Gang *a, const Gang *b) {
    const PolicyShape *shape = &t->es->spec.policy;
    return a->groups == 1 && b->groups == 1 && a->group[0].count == 1 && b->group[0].count == 1 && shape->layers == 3 &&
           shape->recurrent == 0 && shape->precision == POLICY_FLOAT32 && shape->size[1] >= POLICY_NARROW &&
           shape->size[2] >= POLICY_NARROW && shape->size[3] < POLICY_NARROW;
}

// Whether the policy is the one that is compiled for each simulator.
WIDE_FN int pipeline_is_common(const PolicyShape *shape) {
    return shape->layers == 3 && shape->size[1] == 64 && shape->size[2] == 64 && shape->activation == POLICY_TANH;
}

WIDE_FN Strand strand_make(const Pipeline *p, Gang *gang, int row) {
    const CpuEs *es = p->t->es;
    Strand s = {.gang = gang, .lane = gang->group[0].lane[0]};
    s.w[0] = gang->packed + (int64_t)(s.lane / p->t->lanes_per_slot) * es->packed;
    s.w[1] = s.w[0] + (p->obs + 1) * p->pad[0];
    s.w[2] = s.w[1] + (p->width[0] + 1) * p->pad[1];
    for (int layer = 0; layer < 2; layer++)
        s.hidden[layer] = p->t->scratch->hidden[layer] + row * es->width_pad;
    return s;
}

// The first layer's sums.
WIDE_FN void strand_begin(const Pipeline *p, const Strand *s) {
    gang_normalize(p->t, s->gang, p->obs, p->lanes);
    DenseGroup g = {.w = {s->w[0]}, .x = {&s->gang->lanes->input[0][s->lane]}, .y = {s->hidden[0]}};
    dense_wide(&g, 1, 1, p->obs, p->pad[0], LANES_MAX);
}

// The given quarter of a layer's activations.
WIDE_FN void strand_activate(const Pipeline *p, const Strand *s, int layer, int quarter) {
    int blocks = p->pad[layer] / 16, first = blocks * quarter / 4 * 16, end = blocks * (quarter + 1) / 4 * 16;
    dense_activate(s->hidden[layer] + first, end - first, p->activation);
    if (quarter < 3) return;
    for (int i = p->width[layer]; i < p->pad[layer]; i++)
        s->hidden[layer][i] = 0.0f;
}

// Part `part` of the second layer's sums.
WIDE_FN void strand_part(const Pipeline *p, const Strand *s, Wide *sum, int part) {
    const float *bias = s->w[1] + p->width[0] * p->pad[1];
    // Sums in memory are fetched and put back by each part that does something: every second one, for two.
    if (!p->in_registers && part % 2 == 0) return;
    int first = p->width[0] * (p->in_registers ? part : part - 1) / PIPELINE_PARTS;
    int end = p->width[0] * (part + 1) / PIPELINE_PARTS;
    if (!p->in_registers) {
        dense_add(s->w[1], s->hidden[0], part == 1 ? bias : s->hidden[1], s->hidden[1], first, end, p->pad[1]);
        return;
    }
    for (int j = 0; part == 0 && j < 4; j++)
        sum[j] = wide_load(bias + j * WIDE);
    dense_add4(s->w[1], s->hidden[0], sum, first, end, 4 * WIDE);
    for (int j = 0; j < 4; j++)
        wide_pin(&sum[j]);
    for (int j = 0; part == PIPELINE_PARTS - 1 && j < 4; j++)
        wide_store(s->hidden[1] + j * WIDE, sum[j]);
}

WIDE_FN void strand_act(const Pipeline *p, const Strand *s) {
    _Alignas(64) float outputs[POLICY_NARROW];
    DenseGroup g = {.w = {s->w[2]}, .x = {s->hidden[1]}, .y = {outputs}};
    dense_narrow(&g, 1, p->pad[1], p->outputs);
    gang_act(p->t, s->gang, s->lane, p->lanes, outputs, p->outputs, p->discrete, p->continuous);
}

WIDE_FN void strand_finish(const Pipeline *p, const Strand *s) {
    for (int quarter = 0; quarter < 4; quarter++)
        strand_activate(p, s, 1, quarter);
    strand_act(p, s);
    p->step(s->gang->lanes);
}

// `a` has the sums of its second layer, `b` the activations of its first: takes `a` there too, and `b` to its sums.
// Returns 1 when `a`'s episode has ended; what it has beyond that step then means nothing.
WIDE_FN int32_t pipeline_half(const Pipeline *p, const Strand *a, const Strand *b) {
    Wide sum[4] = {{0}};
    strand_part(p, b, sum, 0);
    strand_activate(p, a, 1, 0);
    strand_part(p, b, sum, 1);
    strand_activate(p, a, 1, 1);
    strand_part(p, b, sum, 2);
    strand_activate(p, a, 1, 2);
    strand_part(p, b, sum, 3);
    strand_activate(p, a, 1, 3);
    strand_part(p, b, sum, 4);
    strand_part(p, b, sum, 5);
    strand_part(p, b, sum, 6);
    strand_act(p, a);
    strand_part(p, b, sum, 7);
    strand_part(p, b, sum, 8);
    p->step(a->gang->lanes);
    strand_part(p, b, sum, 9);
    strand_part(p, b, sum, 10);
    strand_begin(p, a);
    strand_part(p, b, sum, 11);
    strand_activate(p, a, 0, 0);
    strand_part(p, b, sum, 12);
    strand_activate(p, a, 0, 1);
    strand_part(p, b, sum, 13);
    strand_activate(p, a, 0, 2);
    strand_part(p, b, sum, 14);
    strand_activate(p, a, 0, 3);
    strand_part(p, b, sum, 15);
    return a->gang->lanes->done[a->lane];
}

// Steps both gangs until an episode of one has ended, or `steps` times. `p` lacks what follows from its widths.
WIDE_FN void pipeline_steps(Pipeline p, Gang *gang_a, Gang *gang_b, int steps) {
    for (int layer = 0; layer < 2; layer++)
        p.pad[layer] = cpu_round_up(p.width[layer], 16);
    Strand a = strand_make(&p, gang_a, 0), b = strand_make(&p, gang_b, 1);
    for (int k = 0; k < 2; k++) {
        const Strand *s = k == 0 ? &a : &b;
        strand_begin(&p, s);
        for (int quarter = 0; quarter < 4; quarter++)
            strand_activate(&p, s, 0, quarter);
    }
    const float *bias = a.w[1] + p.width[0] * p.pad[1];
    dense_add(a.w[1], a.hidden[0], bias, a.hidden[1], 0, p.width[0], p.pad[1]);
    for (int step = 0;; step++) {
        if (pipeline_half(&p, &a, &b)) {
            strand_finish(&p, &b);
            return;
        }
        if (step == steps || pipeline_half(&p, &b, &a)) break;
    }
    // `b` was stepped last, or `a` is ahead of it by a half step that is finished here.
    if (gang_is_done(gang_b)) {
        strand_finish(&p, &a);
    } else {
        strand_finish(&p, &b);
    }
}

#endif
