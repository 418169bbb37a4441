// Two gangs of one running lane each, in step with each other but half a step apart: while the one goes through the
// second hidden layer, which is most of the work, the other goes through everything else, which is mostly waiting. A
// processor cannot look far enough ahead to see that the two are independent, so their instructions alternate.
//
// Compiled for each instruction set; included by kernels/cpu/evaluate.c only.
#ifndef SHOAL_KERNELS_CPU_PIPELINE_H
#define SHOAL_KERNELS_CPU_PIPELINE_H

#include "kernels/cpu/gang.h"

// One gang's lane on its way through a policy of two wide hidden layers.
typedef struct Strand {
    Gang *gang;
    int lane;
    const float *w[3]; // packed weights of each layer
    float *hidden[2];  // each layer's sums, then its activations
} Strand;

typedef struct Pipeline {
    const Thread *t;
    const PolicyShape *shape;
    int obs, width[2], pad[2], outputs, part; // part: inputs of the second layer taken at a time
} Pipeline;

enum { PIPELINE_PARTS = 8 };

WIDE_FN int pipeline_fits(const Thread *t, const Gang *a, const Gang *b) {
    const PolicyShape *shape = &t->es->spec.policy;
    return a->groups == 1 && b->groups == 1 && a->group[0].count == 1 && b->group[0].count == 1 && shape->layers == 3 &&
           shape->size[1] >= POLICY_NARROW && shape->size[2] >= POLICY_NARROW && shape->size[3] < POLICY_NARROW;
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
    gang_normalize(p->t, s->gang);
    DenseGroup g = {.w = {s->w[0]}, .x = {&s->gang->lanes->input[0][s->lane]}, .y = {s->hidden[0]}};
    dense_wide(&g, 1, 1, p->obs, p->pad[0], LANES_MAX);
}

// The given half of a layer's activations.
WIDE_FN void strand_activate(const Pipeline *p, const Strand *s, int layer, int half) {
    int middle = p->pad[layer] / 32 * 16, first = half == 0 ? 0 : middle;
    dense_activate(s->hidden[layer] + first, half == 0 ? middle : p->pad[layer] - middle, p->shape->activation);
    if (half == 0) return;
    for (int i = p->width[layer]; i < p->pad[layer]; i++)
        s->hidden[layer][i] = 0.0f;
}

// Part `part` of the second layer's sums.
WIDE_FN void strand_part(const Pipeline *p, const Strand *s, int part) {
    int first = part * p->part, end = first + p->part < p->width[0] ? first + p->part : p->width[0];
    const float *start = part == 0 ? s->w[1] + p->width[0] * p->pad[1] : s->hidden[1];
    dense_add(s->w[1], s->hidden[0], start, s->hidden[1], first, end, p->pad[1]);
}

WIDE_FN void strand_act(const Pipeline *p, const Strand *s) {
    _Alignas(64) float outputs[POLICY_NARROW];
    DenseGroup g = {.w = {s->w[2]}, .x = {s->hidden[1]}, .y = {outputs}};
    dense_narrow(&g, 1, p->pad[1], p->outputs);
    gang_act(s->gang, p->shape, s->lane, outputs);
}

WIDE_FN void strand_finish(const Pipeline *p, const Strand *s) {
    strand_activate(p, s, 1, 0);
    strand_activate(p, s, 1, 1);
    strand_act(p, s);
    p->t->es->sim->step(s->gang->lanes);
}

// `a` has the sums of its second layer, `b` the activations of its first: takes `a` there too, and `b` to its sums.
// Returns 1, with `a` only stepped, when its episode has ended.
WIDE_FN int32_t pipeline_half(const Pipeline *p, const Strand *a, const Strand *b) {
    strand_part(p, b, 0);
    strand_activate(p, a, 1, 0);
    strand_part(p, b, 1);
    strand_activate(p, a, 1, 1);
    strand_part(p, b, 2);
    strand_act(p, a);
    strand_part(p, b, 3);
    p->t->es->sim->step(a->gang->lanes);
    strand_part(p, b, 4);
    int32_t done = a->gang->lanes->done[a->lane];
    if (!done) strand_begin(p, a);
    strand_part(p, b, 5);
    if (!done) strand_activate(p, a, 0, 0);
    strand_part(p, b, 6);
    if (!done) strand_activate(p, a, 0, 1);
    strand_part(p, b, 7);
    return done;
}

WIDE_FN void pipeline_steps(const Thread *t, Gang *gang_a, Gang *gang_b, int steps, int width0, int width1) {
    const PolicyShape *shape = &t->es->spec.policy;
    Pipeline p = {.t = t, .shape = shape, .obs = shape->size[0], .outputs = shape->size[3]};
    p.width[0] = width0;
    p.width[1] = width1;
    p.pad[0] = cpu_round_up(width0, 16);
    p.pad[1] = cpu_round_up(width1, 16);
    p.part = (p.width[0] + PIPELINE_PARTS - 1) / PIPELINE_PARTS;
    Strand a = strand_make(&p, gang_a, 0), b = strand_make(&p, gang_b, 1);
    for (int k = 0; k < 2; k++) {
        const Strand *s = k == 0 ? &a : &b;
        strand_begin(&p, s);
        strand_activate(&p, s, 0, 0);
        strand_activate(&p, s, 0, 1);
    }
    for (int part = 0; part < PIPELINE_PARTS; part++)
        strand_part(&p, &a, part);
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

// Steps both gangs until an episode of one has ended, or `steps` times. Compiled for the width that everybody uses, so
// that its loops are straight lines, and for any.
static void pipeline_run(const Thread *t, Gang *a, Gang *b, int steps) {
    const PolicyShape *shape = &t->es->spec.policy;
    if (shape->size[1] == 64 && shape->size[2] == 64) {
        pipeline_steps(t, a, b, steps, 64, 64);
    } else {
        pipeline_steps(t, a, b, steps, shape->size[1], shape->size[2]);
    }
}

#endif
