// The tree of scopes, as they were open within each other.
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_format.h"
#include "profiler/prof_sweep.h"

static bool grow_nodes(Sweep *s) {
    int32_t capacity = s->node_capacity > 0 ? 2 * s->node_capacity : 64;
    ProfNode *nodes = realloc(s->a->nodes, (size_t)capacity * sizeof *nodes);
    if (nodes != NULL) s->a->nodes = nodes;
    SweepActive *active = realloc(s->active, (size_t)capacity * sizeof *active);
    if (active != NULL) s->active = active;
    bool *entered = realloc(s->entered, (size_t)capacity * sizeof *entered);
    if (entered != NULL) s->entered = entered;
    ProfStretches *stretches = realloc(s->stretches, (size_t)capacity * sizeof *stretches);
    if (stretches != NULL) s->stretches = stretches;
    if (nodes == NULL || active == NULL || entered == NULL || stretches == NULL) {
        if (s->status == STATUS_OK) s->status = host_fail(STATUS_MEMORY, "no memory for the scopes of a trace");
        return false;
    }
    s->node_capacity = capacity;
    return true;
}

static int32_t add_node(Sweep *s, int32_t parent, uint32_t name, uint8_t category, uint8_t layer) {
    if (s->a->node_count == PROF_NODES_MAX) return -1;
    if (s->a->node_count == s->node_capacity && !grow_nodes(s)) return -1;
    int32_t node = s->a->node_count++;
    memset(&s->a->nodes[node], 0, sizeof s->a->nodes[node]);
    s->a->nodes[node].parent = parent;
    s->a->nodes[node].name = name;
    s->a->nodes[node].category = category;
    s->a->nodes[node].layer = layer;
    s->active[node] = (SweepActive){.since_ns = s->now_ns};
    s->entered[node] = false;
    s->stretches[node] = (ProfStretches){.every = 0};
    return node;
}

Status prof_sweep_make_roots(Sweep *s) {
    for (int i = 0; i < 3; i++) {
        if (add_node(s, -1, 0, PROF_NO_CATEGORY, PROF_LAYER_CODE) < 0) return s->status;
    }
    return STATUS_OK;
}

int32_t prof_sweep_child(Sweep *s, int32_t parent, uint32_t name) {
    uint64_t key = (uint64_t)parent << 32 | name;
    int32_t node = prof_table_get(&s->children, key);
    if (node >= 0) return node;
    const ProfName *known = prof_reader_name(s->reader, name);
    uint8_t category = known != NULL ? known->category : HOST_TRACE_HOST;
    if (category == PROF_CATEGORY_ENCLOSING) {
        category = s->a->nodes[parent].category;
        if (category == PROF_NO_CATEGORY) category = HOST_TRACE_HOST;
    }
    node = add_node(s, parent, name, category, known != NULL ? known->layer : PROF_LAYER_CODE);
    if (node < 0) return parent;
    if (!prof_table_put(&s->children, key, node) && s->status == STATUS_OK) {
        s->status = host_fail(STATUS_MEMORY, "no memory for the scopes of a trace");
    }
    return node;
}

void prof_sweep_find_leaves(Sweep *s) {
    ProfNode *nodes = s->a->nodes;
    for (int32_t i = s->a->node_count - 1; i >= 0; i--) {
        nodes[i].is_leaf = i > PROF_NODE_UNKNOWN;
    }
    for (int32_t i = PROF_NODE_UNKNOWN + 1; i < s->a->node_count; i++) {
        const ProfNode *parent = &nodes[nodes[i].parent];
        bool works = nodes[i].category != HOST_TRACE_IDLE && nodes[i].layer != PROF_LAYER_API;
        if (s->entered[i] && works) nodes[nodes[i].parent].is_leaf = parent->is_loop;
    }
}

// A loop's own time, plain stretches above all, consists of what its recorded ones do; waiting is no part of them.
static void share_as_recorded(ProfAnalysis *a, int32_t node) {
    int32_t loop = -1;
    int64_t ns = 0;
    for (int32_t i = node; i > PROF_NODE_UNKNOWN && a->nodes[i].category != HOST_TRACE_IDLE; i = a->nodes[i].parent)
        loop = a->nodes[i].is_loop ? i : loop;
    for (int p = 0; p < HOST_TRACE_PHASES; p++)
        ns += a->nodes[node].cell[p].thread_ns;
    if (loop < 0 || loop == node || ns < 0 || ns > PROF_SPAN_MAX_NS) return; // longer: a forged trace
    a->nodes[loop].split[a->nodes[node].category] += (uint64_t)ns;
}

void prof_sweep_find_loops(Sweep *s) {
    ProfNode *nodes = s->a->nodes;
    for (int32_t i = 0; i <= PROF_NODE_UNKNOWN && i < s->a->node_count; i++)
        nodes[i].loop = -1;
    for (int32_t i = PROF_NODE_UNKNOWN + 1; i < s->a->node_count; i++) {
        int32_t around = nodes[nodes[i].parent].loop;
        if (nodes[i].is_loop) nodes[i].excess = prof_stretches_excess(&s->stretches[i]);
        nodes[i].loop = around >= 0 ? around : nodes[i].excess.is_known ? i : -1;
        if (nodes[i].category == HOST_TRACE_IDLE) nodes[i].loop = -1;
        share_as_recorded(s->a, i);
    }
}

const char *prof_node_name(const ProfAnalysis *a, int32_t node) {
    static const char *const roots[] = {"(outside)", "(lost)", "(unknown launch)"};
    if (node <= PROF_NODE_UNKNOWN) return roots[node];
    uint32_t name = a->nodes[node].name;
    return name < a->name_count && a->names[name].text[0] != '\0' ? a->names[name].text : "(name lost)";
}

void prof_share(int64_t total, const uint64_t *weight, int count, int otherwise, int64_t *part) {
    ProfWide sum = 0, before = 0;
    for (int i = 0; i < count; i++)
        sum += weight[i];
    int64_t given = 0;
    for (int i = 0; i < count; i++) {
        part[i] = 0;
        if (sum == 0) continue;
        before += weight[i];
        int64_t until = (int64_t)((ProfWide)total * before / sum);
        part[i] = until - given;
        given = until;
    }
    if (sum == 0) part[otherwise] = total;
}

void prof_analysis_free(ProfAnalysis *a) {
    free(a->nodes);
    free(a->names);
    free(a->ids);
    memset(a, 0, sizeof *a);
}
