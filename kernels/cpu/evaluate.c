// Whole episodes of a population on one CPU thread. Compiled for each instruction set (ISA is defined).
//
// A thread works on two gangs in turn. A gang is one block of lanes, cut into slots of equal size; a slot holds one
// member's weights and runs that member's episodes, one a lane. In a gang's step, its running lanes go through the
// policy in groups of up to four samples, then all lanes step their simulator at once. While the one gang's chain of
// dependent operations (policy, simulator, policy) goes on, the other's keeps the processor busy. There are as many
// slots as keep the weights in the first-level cache: one for a policy of 64-64, sixteen for a small one.
//
// A lane that finishes takes its member's next episode, a slot that finishes the next member. None of this changes a
// result: an episode depends on (generation, member, episode) only.
#include <string.h>

#include "host/signals.h"
#include "kernels/cpu/dense.h"
#include "kernels/cpu/gang.h"
#include "kernels/cpu/pipeline.h"

enum {
    PIPELINE_STEPS = 1024, // of each gang at most, before they are seen to
    ACT_STEPS = 256,       // of each gang without its simulator at most, for a profile
};

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

static void pack_weights(const CpuEs *es, const float *flat, float *packed) {
    for (int layer = 0; layer < es->layers; layer++) {
        bool rounds = policy_rounds(es->spec.policy.precision, es->layer[layer].kind);
        int in = es->layer[layer].in, out = es->layer[layer].out;
        const float *bias = flat + in * out;
        if (out >= POLICY_NARROW) {
            int out_pad = cpu_round_up(out, 16);
            for (int i = 0; i <= in; i++)
                memcpy(packed + i * out_pad, flat + i * out, (size_t)out * sizeof *flat);
            if (rounds) dense_round(packed, in * out_pad);
            packed += (in + 1) * out_pad;
        } else {
            int in_pad = cpu_round_up(in, 16);
            for (int o = 0; o < out; o++) {
                for (int i = 0; i < in; i++)
                    packed[o * in_pad + i] = flat[i * out + o];
            }
            if (rounds) dense_round(packed, out * in_pad);
            memcpy(packed + out * in_pad, bias, (size_t)out * sizeof *flat);
            packed += out * in_pad + 16;
        }
        flat = bias + out;
    }
}

static void build_member(Thread *t, Gang *gang, int slot) {
    CpuEs *es = t->es;
    const KernEsJob *job = t->evaluation->job;
    int32_t member = gang->slot[slot].member;
    float *packed = gang->packed + (int64_t)slot * es->packed;
    if (gang->slot[slot].packed == member) return;
    gang->slot[slot].packed = member;
    pack_weights(es, es->isa->ops->member(es, job, member, t->scratch, &t->pair), packed);
}

// The recurrent state of a lane.
static float *lane_state(const Thread *t, const Gang *gang, int lane) {
    return t->scratch->state + ((gang - t->gang) * LANES_MAX + lane) * t->es->state_pad;
}

static void begin_episode(Thread *t, Gang *gang, int slot, int lane) {
    Slot *s = &gang->slot[slot];
    const KernEsJob *job = t->evaluation->job;
    gang->episode[lane] = s->next;
    gang->lanes->counter1[lane] = (uint32_t)s->next;
    gang->lanes->counter2[lane] = t->es->spec.common ? 0 : (uint32_t)s->member;
    gang->lanes->counter3 = job->purpose | job->generation;
    s->next++;
    s->running++;
    memset(lane_state(t, gang, lane), 0, (size_t)t->es->state_pad * sizeof(float));
    t->sim->start(gang->lanes, lane);
}

// Gives an idle slot its next task, if there is one.
static void begin_task(Thread *t, Gang *gang, int slot) {
    CpuEvaluation *e = t->evaluation;
    const KernEsJob *job = e->job;
    int64_t tasks = (int64_t)job->count * e->ranges;
    Slot *s = &gang->slot[slot];
    if (t->task == t->task_end) {
        t->task = atomic_fetch_add(&e->next, e->chunk);
        t->task_end = t->task + e->chunk;
    }
    if (t->task >= tasks) {
        t->task_end = t->task;
        s->member = -1;
        return;
    }
    int64_t range = t->task % e->ranges;
    s->member = job->first + (int32_t)(t->task / e->ranges);
    s->next = (int32_t)(range * job->episodes / e->ranges);
    s->end = (int32_t)((range + 1) * job->episodes / e->ranges);
    s->running = 0;
    t->task++;
    bool is_measured = cpu_probe_takes_apart(&t->scratch->probe);
    if (is_measured) cpu_probe_enter(&t->scratch->probe, HOST_TRACE_LEARNING, 1);
    build_member(t, gang, slot);
    if (is_measured) cpu_probe_leave(&t->scratch->probe);
    for (int k = 0; k < t->lanes_per_slot && s->next < s->end; k++) {
        begin_episode(t, gang, slot, slot * t->lanes_per_slot + k);
    }
}

// Adds groups of `ready` lanes, as large as they go; returns how many lanes are left over (0 or 1).
static int add_groups(Gang *gang, const uint8_t *ready, int count, uint8_t shared) {
    while (count >= 2) {
        uint8_t take = count >= 4 ? 4 : 2;
        Group *g = &gang->group[gang->groups++];
        g->count = take;
        g->shared = shared;
        for (int i = 0; i < take; i++)
            g->lane[i] = ready[i];
        ready += take;
        count -= take;
    }
    return count;
}

static void regroup(Thread *t, Gang *gang) {
    uint8_t single[LANES_MAX + 1];
    int singles = 0;
    gang->groups = 0;
    for (int slot = 0; slot < t->slots; slot++) {
        uint8_t ready[LANES_MAX];
        int count = 0;
        for (int k = 0; k < t->lanes_per_slot; k++) {
            int lane = slot * t->lanes_per_slot + k;
            if (gang->episode[lane] >= 0) ready[count++] = (uint8_t)lane;
        }
        if (add_groups(gang, ready, count, 1) > 0) single[singles++] = ready[count - 1];
    }
    if (add_groups(gang, single, singles, 0) > 0) {
        Group *g = &gang->group[gang->groups++];
        g->count = 1;
        g->shared = 1;
        g->lane[0] = single[singles - 1];
    }
}

// Activations of a layer's sums [out_pad].
WIDE_FN void activate(const PolicyLayer *layer, const PolicyShape *shape, float *y) {
    int out_pad = cpu_round_up(layer->out, 16);
    if (layer->kind == POLICY_GATE) {
        dense_sigmoid(y, out_pad);
    } else {
        dense_activate(y, out_pad, layer->kind == POLICY_CANDIDATE ? POLICY_TANH : shape->activation);
    }
    if (shape->precision == POLICY_BF16 && layer->kind == POLICY_HIDDEN) dense_round(y, out_pad);
    // A narrow layer reads the padding: what an earlier pass left, or 0 x infinity, would be NaN there.
    for (int i = layer->out; i < out_pad; i++)
        y[i] = 0.0f;
}

// A step of a lane's recurrent state.
WIDE_FN void step_state(const float *restrict gate, const float *restrict candidate, float *restrict state, int count) {
    const float *z = __builtin_assume_aligned(gate, 64), *c = __builtin_assume_aligned(candidate, 64);
    float *h = __builtin_assume_aligned(state, 64);
    for (int i = 0; i < count; i++)
        h[i] = policy_state(z[i], c[i], h[i]);
}

// The sums of a layer; returns the floats of its packed weights. The first layer's inputs are `stride` apart: a narrow
// layer has them gathered.
WIDE_FN int layer_sums(const Thread *t, const PolicyLayer *layer, DenseGroup *g, int n, int shared, int *stride) {
    int in = layer->in, out = layer->out, width_pad = t->es->width_pad;
    if (out >= POLICY_NARROW) {
        int out_pad = cpu_round_up(out, 16);
        dense_wide(g, n, shared, in, out_pad, *stride);
        return (in + 1) * out_pad;
    }
    int in_pad = cpu_round_up(in, 16);
    for (int s = 0; *stride != 1 && s < n; s++) {
        float *gathered = t->scratch->hidden[1] + s * width_pad;
        for (int i = 0; i < in_pad; i++)
            gathered[i] = i < in ? g->x[s][i * *stride] : 0.0f;
        g->x[s] = gathered;
    }
    *stride = 1;
    dense_narrow(g, n, in_pad, out);
    return out * in_pad + 16;
}

WIDE_FN void forward_group(Thread *t, Gang *gang, const Group *group, int n, int shared) {
    const CpuEs *es = t->es;
    const PolicyShape *shape = &es->spec.policy;
    int width_pad = es->width_pad, stride = LANES_MAX;
    DenseGroup g = {0};
    for (int s = 0; s < n; s++) {
        int lane = group->lane[s];
        g.w[s] = gang->packed + (int64_t)(lane / t->lanes_per_slot) * es->packed;
        g.x[s] = &gang->lanes->input[0][lane];
        g.y[s] = t->scratch->hidden[0] + s * width_pad;
    }
    for (int i = 0; i < es->layers; i++) {
        const PolicyLayer *layer = &es->layer[i];
        float *y = t->scratch->hidden[layer->kind == POLICY_CANDIDATE ? 2 : i % 2];
        for (int s = 0; s < n; s++)
            g.y[s] = y + s * width_pad;
        cpu_probe_begin(&t->scratch->probe, "forward layer");
        int part = layer_sums(t, layer, &g, n, shared, &stride);
        for (int s = 0; s < n; s++) {
            g.w[s] += part;
            if (layer->kind != POLICY_HEAD) activate(layer, shape, g.y[s]);
            if (layer->kind == POLICY_HIDDEN) g.x[s] = g.y[s];
            if (layer->kind != POLICY_CANDIDATE) continue;
            float *state = lane_state(t, gang, group->lane[s]);
            step_state(t->scratch->hidden[(i - 1) % 2] + s * width_pad, g.y[s], state, es->state_pad);
            g.x[s] = state;
        }
        cpu_probe_end(&t->scratch->probe);
        if (layer->kind != POLICY_GATE) stride = 1;
    }
    for (int s = 0; s < n; s++)
        gang_act(t, gang, group->lane[s], t->sim->lanes, g.y[s], shape->size[shape->layers], shape->discrete,
                 shape->continuous);
}

static void round_inputs(Gang *gang, int count, int width) {
    for (int k = 0; k < count; k++) {
        float *input = gang->lanes->input[k];
        if (width == 1) {
            input[0] = policy_bf16(input[0]);
        } else {
            dense_round(input, LANES_MAX);
        }
    }
}

static void forward(Thread *t, Gang *gang) {
    const PolicyShape *shape = &t->es->spec.policy;
    gang_normalize(t, gang, shape->size[0], t->sim->lanes);
    if (shape->precision == POLICY_BF16) round_inputs(gang, shape->size[0], t->sim->lanes);
    for (int i = 0; i < gang->groups; i++) {
        const Group *group = &gang->group[i];
        if (group->count == 1) {
            forward_group(t, gang, group, 1, 1);
        } else if (group->count == 2 && group->shared) {
            forward_group(t, gang, group, 2, 1);
        } else if (group->count == 2) {
            forward_group(t, gang, group, 2, 0);
        } else if (group->shared) {
            forward_group(t, gang, group, 4, 1);
        } else {
            forward_group(t, gang, group, 4, 0);
        }
    }
}

static void record_episode(Thread *t, const Gang *gang, int lane, int32_t member) {
    CpuEvaluation *e = t->evaluation;
    const KernLanes *lanes = gang->lanes;
    int64_t at = (int64_t)(member - e->job->first) * e->job->episodes + gang->episode[lane];
    e->episodes[at].episode_return = lanes->episode_return[lane];
    e->episodes[at].length = lanes->length[lane];
    if (e->sums != NULL) {
        int obs = t->es->spec.policy.size[0];
        float *sums = e->sums + at * 2 * obs;
        for (int k = 0; k < obs; k++)
            sums[k] = lanes->sum[k][lane], sums[obs + k] = lanes->square[k][lane];
    }
    if (lanes->infinite[lane]) {
        lanes_infinite_record(&e->infinite, t->es->spec.sim.spec, lanes->state, t->sim->lanes, lane, at,
                              lanes->length[lane]);
    }
}

// After a step: records what ended and begins what comes next.
static void turn_over(Thread *t, Gang *gang) {
    for (int slot = 0; slot < t->slots; slot++) {
        Slot *s = &gang->slot[slot];
        if (s->member < 0) continue;
        for (int k = 0; k < t->lanes_per_slot; k++) {
            int lane = slot * t->lanes_per_slot + k;
            if (gang->episode[lane] < 0 || !gang->lanes->done[lane]) continue;
            record_episode(t, gang, lane, s->member);
            gang->episode[lane] = -1;
            s->running--;
            if (s->next < s->end) begin_episode(t, gang, slot, lane);
        }
        if (s->running == 0) begin_task(t, gang, slot);
    }
    regroup(t, gang);
}

static void step_gang(Thread *t, Gang *gang) {
    forward(t, gang);
    t->sim->step(gang->lanes);
}

// Steps both gangs until an episode ends, or `rounds` times, the policy in a scope apart from the simulator. Returns
// the steps of both.
static __attribute__((noinline)) uint32_t step_recorded(Thread *t, Gang *a, Gang *b, int rounds) {
    CpuProbe *probe = &t->scratch->probe;
    uint32_t steps = 0;
    do {
        for (int g = 0; g < CPU_GANGS; g++) {
            Gang *gang = g == 0 ? a : b;
            if (gang->groups == 0) continue;
            cpu_probe_enter(probe, HOST_TRACE_POLICY, CPU_PROBE_EVERY);
            forward(t, gang);
            cpu_probe_turn(probe, HOST_TRACE_SIMULATION);
            t->sim->step(gang->lanes);
            cpu_probe_leave(probe);
            steps++;
        }
    } while (--rounds > 0 && !gang_is_done(a) && !gang_is_done(b));
    return steps;
}

// The narrowest blocks that hold the lanes in use: one lane costs its simulator less as scalars than as a vector.
static const LanesOps *choose_sim(const CpuEs *es, int32_t episodes, int slots) {
    int lanes = es->sim->lanes / slots < episodes ? es->sim->lanes : slots * episodes;
    int at = 0;
    while (es->sims[at]->lanes < lanes)
        at++;
    return es->sims[at];
}

// Several slots only where they have more lanes than a member has episodes.
static int choose_slots(const CpuEs *es, int32_t episodes) {
    int slots = 1;
    while (slots < es->slots_max && es->sim->lanes / slots > episodes)
        slots *= 2;
    return slots;
}

// Any pipeline; straight lines where the widths are the common ones.
static void pipeline_any(const Thread *t, Gang *a, Gang *b, void (*step)(KernLanes *lanes), int steps) {
    const PolicyShape *shape = &t->es->spec.policy;
    Pipeline p = {.t = t,
                  .step = step,
                  .lanes = t->sim->lanes,
                  .obs = shape->size[0],
                  .width = {shape->size[1], shape->size[2]},
                  .outputs = shape->size[3],
                  .discrete = shape->discrete,
                  .continuous = shape->continuous,
                  .activation = shape->activation};
#if PIPELINE_COMMON
    if (p.width[0] == 64 && p.width[1] == 64) {
        p.width[0] = p.width[1] = 64;
        p.in_registers = 1;
        pipeline_steps(p, a, b, steps);
        return;
    }
#endif
    pipeline_steps(p, a, b, steps);
}

static uint32_t pipeline_length(const Gang *gang) { return (uint32_t)gang->lanes->length[gang->group[0].lane[0]]; }

// Steps both gangs, or a pipeline of them some times. Returns the steps of both.
static uint32_t step_gangs(Thread *t, Gang *a, Gang *b, bool is_pipeline) {
    if (!is_pipeline) {
        if (a->groups > 0) step_gang(t, a);
        if (b->groups > 0) step_gang(t, b);
        return (uint32_t)(a->groups > 0) + (uint32_t)(b->groups > 0);
    }
    const uint32_t before = pipeline_length(a) + pipeline_length(b);
    if (t->sim->pipeline != NULL && pipeline_is_common(&t->es->spec.policy)) {
        t->sim->pipeline(t, a, b, PIPELINE_STEPS);
    } else {
        pipeline_any(t, a, b, t->sim->step, PIPELINE_STEPS);
    }
    return pipeline_length(a) + pipeline_length(b) - before;
}

static void stay(KernLanes *lanes) { (void)lanes; }

// step_gangs() without the simulator: both gangs find the actions that come next, in a pipeline about as often as the
// last one made steps. Recurrent states go on. Returns the steps of both.
static uint32_t act_only(Thread *t, Gang *a, Gang *b, bool is_pipeline) {
    if (!is_pipeline) {
        if (a->groups > 0) forward(t, a);
        if (b->groups > 0) forward(t, b);
        return (uint32_t)(a->groups > 0) + (uint32_t)(b->groups > 0);
    }
    uint32_t steps = t->round_steps / CPU_GANGS;
    steps = steps < 1 ? 1 : steps > ACT_STEPS ? ACT_STEPS : steps;
    pipeline_any(t, a, b, stay, (int)steps - 1); // where no episode ends, there is one more
    return CPU_GANGS * steps;
}

// A round whose parts are told apart by what it takes less without the simulator: they overlap, each other and the
// next round's, so that times between them would mean little.
static __attribute__((noinline)) uint32_t step_sampled(Thread *t, Gang *a, Gang *b, bool is_pipeline) {
    CpuProbe *probe = &t->scratch->probe;
    const size_t states = CPU_GANGS * LANES_MAX * (size_t)t->es->state_pad * sizeof(float);
    memcpy(t->scratch->kept, t->scratch->state, states);
    uint64_t begin = cpu_probe_ticks();
    const uint32_t acted = act_only(t, a, b, is_pipeline);
    const uint64_t acts = cpu_probe_since(probe, begin, cpu_probe_ticks());
    memcpy(t->scratch->state, t->scratch->kept, states);
    begin = cpu_probe_ticks();
    const uint32_t steps = step_gangs(t, a, b, is_pipeline);
    cpu_probe_add_round(probe, cpu_probe_since(probe, begin, cpu_probe_ticks()), steps, acts, acted);
    return steps;
}

// The probe counts steps of gangs.
static void run_round(Thread *t, Gang *a, Gang *b, bool is_pipeline) {
    CpuProbe *probe = &t->scratch->probe;
    if (!cpu_probe_takes(probe)) {
        t->round_steps = step_gangs(t, a, b, is_pipeline);
    } else if (probe->recorded == NULL) {
        t->round_steps = step_sampled(t, a, b, is_pipeline);
    } else {
        t->round_steps = step_recorded(t, a, b, is_pipeline ? PIPELINE_STEPS : 1);
    }
    cpu_probe_count(probe, t->round_steps);
}

static void evaluate_tasks(CpuEvaluation *evaluation, int worker) {
    CpuEs *es = evaluation->es;
    Thread t = {.evaluation = evaluation, .es = es, .scratch = &es->scratch[worker], .pair = {.number = -1}};
    t.slots = choose_slots(es, evaluation->job->episodes);
    t.sim = choose_sim(es, evaluation->job->episodes, t.slots);
    t.lanes_per_slot = t.sim->lanes / t.slots;
    t.normalizer = *evaluation->normalizer;
    for (int g = 0; g < CPU_GANGS; g++) {
        Gang *gang = &t.gang[g];
        gang->lanes = t.scratch->lanes[g];
        // Zeros where no episode begins, not what another number of lanes left behind.
        memset(gang->lanes->state, 0, t.sim->state_words * (size_t)t.sim->lanes * 4);
        gang->packed = t.scratch->packed + (int64_t)(g * es->slots_max) * es->packed;
        for (int l = 0; l < LANES_MAX; l++)
            gang->episode[l] = gang->slot[l].packed = gang->slot[l].member = -1;
        for (int slot = 0; slot < t.slots; slot++)
            begin_task(&t, gang, slot);
        regroup(&t, gang);
    }
    Gang *a = &t.gang[0], *b = &t.gang[1];
    for (uint32_t round = 0; a->groups + b->groups > 0; round++) {
        // A stop is seen within 1,024 steps of some microseconds each, and between two pipelines of at most as many.
        if (round % PIPELINE_STEPS == 0 && (host_stop_requested() || atomic_load(&evaluation->stopped))) {
            atomic_store(&evaluation->stopped, true);
            return;
        }
        bool is_pipeline = pipeline_fits(&t, a, b);
        run_round(&t, a, b, is_pipeline);
        if (is_pipeline) round |= PIPELINE_STEPS - 1;
        if (gang_is_done(a)) turn_over(&t, a);
        if (gang_is_done(b)) turn_over(&t, b);
    }
}

static void evaluate(CpuEvaluation *evaluation, int worker) {
    evaluate_tasks(evaluation, worker);
    wide_end();
}

const struct CpuIsaOps ISA_CAT(cpu_ops_, ISA) = {
    .evaluate = evaluate,
    .update = ISA_CAT(cpu_update_, ISA),
    .member = ISA_CAT(cpu_member_, ISA),
    .objective = ISA_CAT(cpu_objective_, ISA),
    .table = ISA_CAT(cpu_table_, ISA),
    .ppo_rollout = ISA_CAT(cpu_ppo_rollout_, ISA),
};
