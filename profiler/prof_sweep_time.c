// What happens between the events of a sweep: time is added to whatever was active in it.
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_sweep.h"

static void add(int64_t *sum, int64_t x) { prof_sweep_add(sum, (uint64_t)x); }

static ProfCell *cell(const Sweep *s, int32_t node) { return &s->a->nodes[node].cell[s->phase]; }

// ---- the wall clock of nodes and categories ------------------------------------------------------------------------

static void settle(const Sweep *s, SweepActive *active, ProfWall *wall) {
    int64_t passed_ns = s->now_ns - active->since_ns;
    active->since_ns = s->now_ns;
    if (active->cpu > 0 && active->gpu > 0) {
        wall->both_ns += passed_ns;
    } else if (active->cpu > 0) {
        wall->cpu_ns += passed_ns;
    } else if (active->gpu > 0) {
        wall->gpu_ns += passed_ns;
    }
}

static void settle_node(Sweep *s, int32_t node) { settle(s, &s->active[node], &cell(s, node)->wall); }
static void settle_category(Sweep *s, int c) { settle(s, &s->category[c], &s->a->category[s->phase][c]); }

// A thread enters (+1) or leaves (-1) a node.
static void change_cpu(Sweep *s, int32_t node, int by) {
    if (node < PROF_NODE_UNKNOWN) return;
    int c = s->a->nodes[node].category;
    settle_node(s, node);
    s->active[node].cpu += (uint32_t)by;
    if (c == PROF_NO_CATEGORY) return;
    settle_category(s, c);
    s->category[c].cpu += (uint32_t)by;
}

static void change_gpu(Sweep *s, int32_t node, int by) {
    int c = s->a->nodes[node].category;
    settle_node(s, node);
    s->active[node].gpu += (uint32_t)by;
    if (c == PROF_NO_CATEGORY) return;
    settle_category(s, c);
    s->category[c].gpu += (uint32_t)by;
    unsigned bit = 1u << c;
    s->gpu_set = s->category[c].gpu > 0 ? s->gpu_set | bit : s->gpu_set & ~bit;
}

// ---- threads -------------------------------------------------------------------------------------------------------

static void account_thread(Sweep *s, int thread) {
    SweepThread *t = &s->threads[thread];
    int64_t passed_ns = s->now_ns - t->since_ns;
    t->since_ns = s->now_ns;
    if (!t->is_seen) return;
    add(&cell(s, t->node)->thread_ns, passed_ns);
    if (thread == s->main) cell(s, t->node)->main_ns += passed_ns;
}

static bool is_working(const Sweep *s, int32_t node) {
    int category = s->a->nodes[node].category;
    return category != PROF_NO_CATEGORY && category != HOST_TRACE_IDLE;
}

static void look_at_main(Sweep *s) {
    const SweepThread *t = &s->threads[s->main];
    s->is_main_working = is_working(s, t->node);
    s->main_work = PROF_NODE_OUTSIDE;
    for (int32_t node = t->node; node > PROF_NODE_UNKNOWN; node = s->a->nodes[node].parent) {
        if (!is_working(s, node)) continue;
        s->main_work = node;
        return;
    }
}

void prof_sweep_switch(Sweep *s, int thread, int32_t node) {
    SweepThread *t = &s->threads[thread];
    account_thread(s, thread);
    t->is_seen = true;
    if (node == t->node) return;
    int from = s->a->nodes[t->node].category, to = s->a->nodes[node].category;
    if (from != to) s->a->transitions[from][to]++;
    change_cpu(s, t->node, -1);
    change_cpu(s, node, 1);
    s->working += (int)is_working(s, node) - (int)is_working(s, t->node);
    s->entered[node] = true;
    t->node = node;
    if (thread == s->main) look_at_main(s);
}

// ---- the process ---------------------------------------------------------------------------------------------------

static ProfGap idle_cause(const Sweep *s) {
    if (s->main < 0 || s->threads[s->main].node <= PROF_NODE_UNKNOWN) return PROF_GAP_NONE_READY;
    int category = s->a->nodes[s->threads[s->main].node].category;
    if (category == HOST_TRACE_IDLE) return PROF_GAP_SYNCHRONISATION;
    return category == HOST_TRACE_COMMUNICATION ? PROF_GAP_COMMUNICATION : PROF_GAP_HOST;
}

void prof_sweep_advance(Sweep *s, int64_t to_ns) {
    if (to_ns > s->limit_ns) to_ns = s->limit_ns;
    int64_t passed_ns = to_ns - s->now_ns;
    if (passed_ns <= 0) return;
    s->now_ns = to_ns;
    s->a->phase_ns[s->phase] += passed_ns;
    if (s->running_count > 0) {
        s->a->device_busy_ns += passed_ns;
        if (s->kernels > 0) s->a->kernel_busy_ns += passed_ns;
        int64_t *sets = s->working > 0 ? s->a->overlapped_ns[s->phase] : s->a->gpu_bound_ns[s->phase];
        sets[s->gpu_set] += passed_ns;
        return;
    }
    if (s->is_used) s->cause_ns[idle_cause(s)] += passed_ns;
    if (s->main >= 0 && s->main_work != PROF_NODE_OUTSIDE && (s->is_main_working || s->working > 0)) {
        cell(s, s->main_work)->bound_ns += passed_ns;
    } else {
        s->a->idle_ns[s->phase] += passed_ns;
    }
}

void prof_sweep_account(Sweep *s) {
    int streams = prof_reader_stream_count(s->reader);
    for (int i = 0; i < streams; i++) {
        if (!s->threads[i].is_thread) continue;
        account_thread(s, i);
        settle_node(s, s->threads[i].node);
    }
    for (int i = 0; i < s->running_count; i++)
        settle_node(s, s->running[i].node);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        settle_category(s, c);
}

// ---- the device ----------------------------------------------------------------------------------------------------

static void sift_down(Sweep *s) {
    SweepRunning *heap = s->running;
    for (int at = 0;;) {
        int child = 2 * at + 1;
        if (child >= s->running_count) return;
        if (child + 1 < s->running_count && heap[child + 1].end_ns < heap[child].end_ns) child++;
        if (heap[at].end_ns <= heap[child].end_ns) return;
        SweepRunning kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
        at = child;
    }
}

static void end_interval(Sweep *s) {
    change_gpu(s, s->running[0].node, -1);
    s->kernels -= s->running[0].is_kernel;
    s->last_ns = s->now_ns;
    s->running[0] = s->running[--s->running_count];
    sift_down(s);
    if (s->running_count > 0) return;
    s->idle_since_ns = s->now_ns;
    memcpy(s->cause_at_idle_ns, s->cause_ns, sizeof s->cause_ns);
}

void prof_sweep_pass(Sweep *s, int64_t to_ns) {
    for (;;) {
        bool is_running = s->running_count > 0 && s->running[0].end_ns <= to_ns;
        bool is_waiting = s->waiting > 0 && s->wait_end_ns <= to_ns;
        if (!is_running && !is_waiting) break;
        if (is_running && !(is_waiting && s->wait_end_ns < s->running[0].end_ns)) {
            prof_sweep_advance(s, s->running[0].end_ns);
            end_interval(s);
        } else {
            prof_sweep_advance(s, s->wait_end_ns);
            prof_sweep_end_waits(s, s->wait_end_ns);
        }
    }
    prof_sweep_advance(s, to_ns);
}

static bool push_running(Sweep *s, SweepRunning running) {
    if (s->running_count == s->running_capacity) {
        int capacity = s->running_capacity > 0 ? 2 * s->running_capacity : 64;
        SweepRunning *grown = realloc(s->running, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            if (s->status == STATUS_OK) s->status = host_fail(STATUS_MEMORY, "no memory for device intervals");
            return false;
        }
        s->running = grown;
        s->running_capacity = capacity;
    }
    int at = s->running_count++;
    for (; at > 0 && s->running[(at - 1) / 2].end_ns > running.end_ns; at = (at - 1) / 2)
        s->running[at] = s->running[(at - 1) / 2];
    s->running[at] = running;
    return true;
}

// The device was idle up to now: what came first, and from its launch on, the launch.
static void end_gap(Sweep *s, const SweepLaunch *launch) {
    if (s->now_ns == s->idle_since_ns) return;
    const int64_t *until = s->cause_ns, *from = s->cause_at_idle_ns;
    int64_t latency_ns = 0;
    if (launch != NULL) until = launch->time_ns >= s->idle_since_ns ? launch->cause_ns : from;
    for (int i = 0; i < PROF_GAPS; i++) {
        s->a->gap_ns[i] += until[i] - from[i];
        latency_ns += s->cause_ns[i] - until[i];
    }
    s->a->gap_ns[PROF_GAP_LAUNCH] += latency_ns;
    s->a->gaps++;
}

// The node that an interval is charged to.
static int32_t charged_node(Sweep *s, const ProfEvent *event, const SweepLaunch *launch) {
    if (launch == NULL) {
        s->a->unknown_launches++;
        return PROF_NODE_UNKNOWN;
    }
    int32_t captured = event->node != 0 ? prof_table_get(&s->captured, event->node) : -1;
    if (captured <= PROF_NODE_UNKNOWN || captured == launch->node) return launch->node;
    return prof_sweep_child(s, launch->node, s->a->nodes[captured].name);
}

static void count_interval(Sweep *s, const ProfEvent *event, const ProfStream *stream, int64_t duration_ns,
                           int32_t node) {
    s->a->intervals++;
    add(&s->a->device_sum_ns, duration_ns);
    add(&s->a->work_ns[event->work], duration_ns);
    cell(s, node)->intervals++;
    cell(s, node)->kernels += event->work == PROF_DEVICE_KERNEL;
    add(&cell(s, node)->device_ns, duration_ns);
    if (event->work != PROF_DEVICE_KERNEL || event->threads == 0 || stream->capacity == 0) return;
    uint64_t filled = event->threads < stream->capacity ? event->threads : stream->capacity;
    add(&s->a->fill_of_ns, duration_ns);
    add(&s->a->fill_ns, (int64_t)((ProfWide)duration_ns * filled / stream->capacity));
}

void prof_sweep_run(Sweep *s, const ProfEvent *event, const ProfStream *stream) {
    SweepLaunch *launch = prof_sweep_launched(s, event->correlation);
    int64_t end_ns = event->time_ns + event->duration_ns;
    if (end_ns > s->limit_ns) end_ns = s->limit_ns;
    int64_t duration_ns = end_ns > s->now_ns ? end_ns - s->now_ns : 0;
    int32_t node = charged_node(s, event, launch);
    count_interval(s, event, stream, duration_ns, node);
    if (launch != NULL) prof_sweep_work_of_id(s, launch, duration_ns);
    if (duration_ns == 0) return;
    if (s->running_count == 0 && s->is_used) end_gap(s, launch);
    if (!s->is_used) s->first_ns = s->now_ns;
    s->is_used = true;
    SweepRunning running = {end_ns, node, event->work == PROF_DEVICE_KERNEL};
    if (!push_running(s, running)) return;
    change_gpu(s, node, 1);
    s->kernels += running.is_kernel;
}
