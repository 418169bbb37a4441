// Whole episodes of a population on one CPU thread. Compiled for each instruction set (ISA is defined).
//
// A thread works on two members at a time (slots), each with half of the lanes: lane = slot x lanes / 2 + k is one
// episode. Two members' weights stay in the first-level cache, and their chains of dependent operations overlap. In one
// step all lanes that run go through the policy in groups of up to four samples, then all lanes step their simulator
// at once. A lane that finishes takes its member's next episode, a slot that finishes the next member; none of this
// changes a result, since every episode depends on (generation, member, episode) only.
#include <string.h>

#include "host/signals.h"
#include "host/trace.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dense.h"
#include "kernels/policy_math.h"

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

// One slot's task: episodes [next, end) of one member are still to be begun.
typedef struct Slot {
    int32_t member; // -1: idle
    int32_t next, end;
    int32_t running; // lanes
} Slot;

typedef struct Thread {
    CpuEvaluation *evaluation;
    CpuEs *es;
    CpuScratch *scratch;
    KernLanes *lanes;
    int slots, lanes_per_slot;
    Slot slot[2];
    int32_t episode[LANES_MAX]; // of each lane; -1: idle
    int64_t task, task_end;     // taken but not begun
    int64_t noise_pair;         // whose noise is in scratch->noise; -1: none
    int32_t packed_member[2];   // whose weights each slot holds; -1: none
    // Which lanes go through the policy together; made anew when a lane begins or ends.
    int groups;
    struct Group {
        int8_t count, shared, lane[DENSE_SAMPLES_MAX];
    } group[LANES_MAX];
    KernNormalizer normalizer;
} Thread;

static void pack_weights(const PolicyShape *shape, const float *flat, float *packed) {
    for (int layer = 0; layer < shape->layers; layer++) {
        int in = shape->size[layer], out = shape->size[layer + 1];
        const float *bias = flat + in * out;
        if (out >= POLICY_NARROW) {
            int out_pad = cpu_round_up(out, 16);
            for (int i = 0; i <= in; i++)
                memcpy(packed + i * out_pad, flat + i * out, (size_t)out * sizeof *flat);
            packed += (in + 1) * out_pad;
        } else {
            int in_pad = cpu_round_up(in, 16);
            for (int o = 0; o < out; o++) {
                for (int i = 0; i < in; i++)
                    packed[o * in_pad + i] = flat[i * out + o];
            }
            memcpy(packed + out * in_pad, bias, (size_t)out * sizeof *flat);
            packed += out * in_pad + 16;
        }
        flat = bias + out;
    }
}

static void build_member(Thread *t, int slot, int32_t member) {
    if (t->packed_member[slot] == member) return;
    CpuEs *es = t->es;
    const KernEsJob *job = t->evaluation->job;
    int count = es->spec.policy.params;
    if (job->sigma == 0.0f) {
        pack_weights(&es->spec.policy, es->params, t->scratch->packed[slot]);
    } else {
        if (t->noise_pair != member / 2) {
            es->isa->ops->noise(es->spec.seed, job->generation, (uint32_t)(member / 2), 0, count, t->scratch->noise);
            t->noise_pair = member / 2;
        }
        const float *restrict noise = __builtin_assume_aligned(t->scratch->noise, 64);
        const float *restrict params = __builtin_assume_aligned(es->params, 64);
        float *restrict flat = __builtin_assume_aligned(t->scratch->flat, 64);
        float sigma = member % 2 == 0 ? job->sigma : -job->sigma;
        for (int i = 0; i < count; i++)
            flat[i] = sim_fmaf(sigma, noise[i], params[i]);
        pack_weights(&es->spec.policy, flat, t->scratch->packed[slot]);
    }
    t->packed_member[slot] = member;
}

static void begin_episode(Thread *t, int slot, int lane) {
    Slot *s = &t->slot[slot];
    const KernEsJob *job = t->evaluation->job;
    t->episode[lane] = s->next;
    t->lanes->counter1[lane] = (uint32_t)s->next;
    t->lanes->counter2[lane] = t->es->spec.common ? 0 : (uint32_t)s->member;
    t->lanes->counter3 = job->purpose | job->generation;
    s->next++;
    s->running++;
    t->es->sim->start(t->lanes, lane);
}

// Gives an idle slot its next task. False when there is none.
static bool begin_task(Thread *t, int slot) {
    CpuEvaluation *e = t->evaluation;
    const KernEsJob *job = e->job;
    int64_t tasks = (int64_t)job->count * e->ranges;
    if (t->task == t->task_end) {
        t->task = atomic_fetch_add(&e->next, e->chunk);
        t->task_end = t->task + e->chunk;
    }
    if (t->task >= tasks) {
        t->task_end = t->task;
        t->slot[slot].member = -1;
        return false;
    }
    int64_t range = t->task % e->ranges;
    Slot *s = &t->slot[slot];
    s->member = job->first + (int32_t)(t->task / e->ranges);
    s->next = (int32_t)(range * job->episodes / e->ranges);
    s->end = (int32_t)((range + 1) * job->episodes / e->ranges);
    s->running = 0;
    t->task++;
    build_member(t, slot, s->member);
    for (int k = 0; k < t->lanes_per_slot && s->next < s->end; k++) {
        begin_episode(t, slot, slot * t->lanes_per_slot + k);
    }
    return true;
}

static void regroup(Thread *t) {
    int8_t single[2], singles = 0;
    t->groups = 0;
    for (int slot = 0; slot < t->slots; slot++) {
        int8_t ready[LANES_MAX], count = 0;
        for (int k = 0; k < t->lanes_per_slot; k++) {
            int lane = slot * t->lanes_per_slot + k;
            if (t->episode[lane] >= 0) ready[count++] = (int8_t)lane;
        }
        int at = 0;
        while (count - at >= 2) {
            int8_t take = count - at >= 4 ? 4 : 2;
            struct Group *g = &t->group[t->groups++];
            g->count = take, g->shared = 1;
            for (int i = 0; i < take; i++)
                g->lane[i] = ready[at++];
        }
        if (at < count) single[singles++] = ready[at];
    }
    if (singles > 0) {
        struct Group *g = &t->group[t->groups++];
        g->count = singles, g->shared = 0;
        for (int i = 0; i < singles; i++)
            g->lane[i] = single[i];
    }
}

WIDE_FN void forward_group(Thread *t, const struct Group *group, int n, int shared) {
    const PolicyShape *shape = &t->es->spec.policy;
    int width_pad = t->es->width_pad, stride = LANES_MAX;
    DenseGroup g = {0};
    for (int s = 0; s < n; s++) {
        int lane = group->lane[s];
        g.w[s] = t->scratch->packed[lane / t->lanes_per_slot];
        g.x[s] = &t->lanes->input[0][lane];
    }
    for (int layer = 0; layer < shape->layers; layer++) {
        int in = shape->size[layer], out = shape->size[layer + 1];
        float *y = t->scratch->hidden[layer % 2];
        for (int s = 0; s < n; s++)
            g.y[s] = y + s * width_pad;
        int part;
        if (out >= POLICY_NARROW) {
            int out_pad = cpu_round_up(out, 16);
            dense_wide(&g, n, shared, in, out_pad, stride);
            part = (in + 1) * out_pad;
        } else {
            int in_pad = cpu_round_up(in, 16);
            if (layer == 0) { // the only layer whose inputs are not contiguous
                float *gathered = t->scratch->hidden[1];
                for (int s = 0; s < n; s++) {
                    for (int i = 0; i < in_pad; i++) {
                        gathered[s * width_pad + i] = i < in ? g.x[s][i * stride] : 0.0f;
                    }
                    g.x[s] = gathered + s * width_pad;
                }
            }
            dense_narrow(&g, n, in_pad, out);
            part = out * in_pad + 16;
        }
        if (layer + 1 < shape->layers) {
            int out_pad = cpu_round_up(out, 16);
            for (int s = 0; s < n; s++) {
                dense_activate(g.y[s], out_pad, shape->activation);
                // A narrow layer reads the padding: what an earlier pass left, or 0 x infinity, would be NaN there.
                for (int i = out; i < out_pad; i++)
                    g.y[s][i] = 0.0f;
            }
        }
        for (int s = 0; s < n; s++)
            g.w[s] += part, g.x[s] = g.y[s];
        stride = 1;
    }
    int out = shape->size[shape->layers];
    for (int s = 0; s < n; s++) {
        int lane = group->lane[s];
        const float *y = g.y[s];
        if (shape->discrete) {
            t->lanes->discrete[lane] = policy_argmax(y, out);
        } else {
            for (int k = 0; k < out; k++)
                t->lanes->continuous[k][lane] = policy_bounded(y[k], shape->action_low, shape->action_high);
        }
    }
}

static void forward(Thread *t) {
    KernLanes *restrict lanes = t->lanes;
    int obs = t->es->spec.policy.size[0];
    for (int k = 0; k < obs; k++) {
        float mean = t->normalizer.mean[k], scale = t->normalizer.scale[k];
        for (int l = 0; l < LANES_MAX; l++)
            lanes->input[k][l] = policy_normalize(lanes->obs[k][l], mean, scale);
    }
    for (int i = 0; i < t->groups; i++) {
        const struct Group *group = &t->group[i];
        if (group->count == 4) {
            forward_group(t, group, 4, 1);
        } else if (group->count == 2 && group->shared) {
            forward_group(t, group, 2, 1);
        } else if (group->count == 2) {
            forward_group(t, group, 2, 0);
        } else {
            forward_group(t, group, 1, 0);
        }
    }
}

static void record_episode(Thread *t, int lane, int32_t member) {
    CpuEvaluation *e = t->evaluation;
    const KernLanes *lanes = t->lanes;
    int64_t at = (int64_t)(member - e->job->first) * e->job->episodes + t->episode[lane];
    e->episodes[at].episode_return = lanes->episode_return[lane];
    e->episodes[at].length = lanes->length[lane];
    if (e->sums != NULL) {
        int obs = t->es->spec.policy.size[0];
        float *sums = e->sums + at * 2 * obs;
        for (int k = 0; k < obs; k++)
            sums[k] = lanes->sum[k][lane], sums[obs + k] = lanes->square[k][lane];
    }
    if (lanes->infinite[lane]) {
        lanes_infinite_record(&e->infinite, t->es->spec.sim.spec, lanes->state, t->es->sim->lanes, lane, at,
                              lanes->length[lane]);
    }
}

// After a step: records what ended and begins what comes next.
static void turn_over(Thread *t) {
    for (int slot = 0; slot < t->slots; slot++) {
        Slot *s = &t->slot[slot];
        for (int k = 0; k < t->lanes_per_slot && s->member >= 0; k++) {
            int lane = slot * t->lanes_per_slot + k;
            if (t->episode[lane] < 0 || !t->lanes->done[lane]) continue;
            record_episode(t, lane, s->member);
            t->episode[lane] = -1;
            s->running--;
            if (s->next < s->end) begin_episode(t, slot, lane);
        }
        if (s->member >= 0 && s->running == 0) begin_task(t, slot);
    }
    regroup(t);
}

static void evaluate(CpuEvaluation *evaluation, int worker) {
    CpuEs *es = evaluation->es;
    Thread t = {.evaluation = evaluation, .es = es, .scratch = &es->scratch[worker], .noise_pair = -1};
    t.lanes = t.scratch->lanes;
    t.slots = es->sim->lanes == 1 ? 1 : 2;
    t.lanes_per_slot = es->sim->lanes / t.slots;
    t.packed_member[0] = t.packed_member[1] = -1;
    t.normalizer = *evaluation->normalizer;
    for (int l = 0; l < LANES_MAX; l++)
        t.episode[l] = -1;
    int busy = 0;
    for (int slot = 0; slot < t.slots; slot++)
        busy += begin_task(&t, slot);
    regroup(&t);
    for (uint32_t step = 0; t.groups > 0; step++) {
        // A stop is seen within 1,024 steps of a few microseconds each.
        if (step % 1024 == 0 && (host_stop_requested() || atomic_load(&evaluation->stopped))) {
            atomic_store(&evaluation->stopped, true);
            return;
        }
        forward(&t);
        es->sim->step(t.lanes);
        int32_t done = 0;
        for (int l = 0; l < LANES_MAX; l++)
            done |= t.lanes->done[l] & ~(t.episode[l] >> 31);
        if (done) turn_over(&t);
    }
}

const struct CpuIsaOps ISA_CAT(cpu_ops_, ISA) = {
    .evaluate = evaluate,
    .update = ISA_CAT(cpu_update_, ISA),
    .noise = ISA_CAT(cpu_noise_, ISA),
};
