// Compiled for each instruction set (ISA is defined). The loops over lanes call the solver's own functions, which have
// no branch, on rows that are laid out [field][lane].
//
// Joints of all worlds have to be between the same bodies in the same order, as they are for one simulator. Contacts
// are the ground's with one body, so that those of different bodies are solved in either order with the same bits: they
// are lined up in slots for two bodies, of each body in the order of its world. x and y are far apart in these rows,
// which vectorise without fusing (kernels/CMakeLists.txt).
#include "kernels/cpu/islands.h"

#include <string.h>

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

enum {
    WIDTH = 16, // worlds of a group
    GROUPS = CPU_ISLANDS_MAX / WIDTH,
    JOINTS_MAX = 32,
    SLOTS_MAX = 32, // contacts that are lined up
    NO_BODY = RIGID2D_BODIES_MAX,
};

#define LANE_FIELD(type, name) type name[WIDTH];
// Of a function that is copied into its caller gcc forgets what is restrict, and looks for overlaps each time.
#define LANE_LOOP static __attribute__((noinline)) void

typedef struct JointLanes {
    RIGID2D_JOINT_ROW(LANE_FIELD)
} JointLanes;

typedef struct ContactLanes {
    RIGID2D_CONTACT_ROW(LANE_FIELD) // body: -1 where there is no contact
} ContactLanes;

typedef struct VelocityLanes {
    real x[WIDTH], y[WIDTH], w[WIDTH];
} VelocityLanes;

// Whose contacts a slot has.
typedef struct Slot {
    int32_t a, b;   // bodies; b may be NO_BODY
    int32_t points; // of a contact, at most
} Slot;

typedef struct Islands {
    _Alignas(64) VelocityLanes velocity[RIGID2D_BODIES_MAX + 1]; // the last is NO_BODY's
    JointLanes joint[JOINTS_MAX];
    ContactLanes contact[SLOTS_MAX];
    Slot slot[SLOTS_MAX];
    int slots;
    uint8_t slot_of[WIDTH][SLOTS_MAX]; // [lane] of each of its world's contacts
    int lanes;
    Rigid2dWorld *world[WIDTH];
} Islands;

static int is_like(const Rigid2dWorld *a, const Rigid2dWorld *b) {
    int same =
        a->bodies == b->bodies && a->joint_rows == b->joint_rows && a->velocity_iterations == b->velocity_iterations;
    for (int i = 0; same && i < a->joint_rows; i++)
        same = a->joint_row[i].a == b->joint_row[i].a && a->joint_row[i].b == b->joint_row[i].b;
    return same;
}

// The first slot from `from` on where the lane is free for a contact of this body, made if there is none; SLOTS_MAX
// without room for it.
static int find_slot(Islands *g, int l, int32_t body, int from) {
    for (int i = from; i < g->slots; i++) {
        Slot *slot = &g->slot[i];
        if (g->contact[i].body[l] >= 0) continue;
        if (slot->a != body && slot->b == NO_BODY) slot->b = body;
        if (slot->a == body || slot->b == body) return i;
    }
    if (g->slots == SLOTS_MAX) return SLOTS_MAX;
    memset(&g->contact[g->slots], 0, sizeof g->contact[0]);
    memset(g->contact[g->slots].body, -1, sizeof g->contact[0].body);
    g->slot[g->slots] = (Slot){body, NO_BODY, 1};
    return g->slots++;
}

// Takes a slot for each of the world's contacts; returns 0, and takes none, without room for all of them.
static int find_slots(Islands *g, const Rigid2dWorld *w, int l) {
    int after[RIGID2D_BODIES_MAX] = {0};
    int i = 0;
    for (; i < w->contact_rows && i < SLOTS_MAX; i++) {
        int32_t body = w->contact_row[i].body;
        int at = find_slot(g, l, body, after[body]);
        if (at == SLOTS_MAX) break;
        g->contact[at].body[l] = body;
        g->slot_of[l][i] = (uint8_t)at;
        after[body] = at + 1;
    }
    if (i == w->contact_rows) return 1;
    while (i-- > 0)
        g->contact[g->slot_of[l][i]].body[l] = -1;
    return 0;
}

#define TO_LANE(type, name)   lanes->name[l] = row->name;
#define FROM_LANE(type, name) row.name = lanes->name[l];

// Puts the world into the next lane; returns 0 without room.
static int add_world(Islands *g, Rigid2dWorld *w) {
    const int l = g->lanes;
    if (!find_slots(g, w, l)) return 0;
    g->lanes++;
    g->world[l] = w;
    for (int i = 0; i < w->bodies; i++) {
        g->velocity[i].x[l] = w->velocity[i].x;
        g->velocity[i].y[l] = w->velocity[i].y;
        g->velocity[i].w[l] = w->velocity[i].w;
    }
    for (int i = 0; i < w->joint_rows; i++) {
        const Rigid2dJointRow *row = &w->joint_row[i];
        JointLanes *lanes = &g->joint[i];
        RIGID2D_JOINT_ROW(TO_LANE)
    }
    for (int i = 0; i < w->contact_rows; i++) {
        const Rigid2dContactRow *row = &w->contact_row[i];
        const int at = g->slot_of[l][i];
        ContactLanes *lanes = &g->contact[at];
        RIGID2D_CONTACT_ROW(TO_LANE)
        if (row->points > g->slot[at].points) g->slot[at].points = row->points;
    }
    return 1;
}

static void take_world(const Islands *g, int l) {
    Rigid2dWorld *w = g->world[l];
    for (int i = 0; i < w->bodies; i++) {
        w->velocity[i].x = g->velocity[i].x[l];
        w->velocity[i].y = g->velocity[i].y[l];
        w->velocity[i].w = g->velocity[i].w[l];
    }
    for (int i = 0; i < w->joint_rows; i++) {
        Rigid2dJointRow *row = &w->joint_row[i];
        const JointLanes *lanes = &g->joint[i];
        row->x = lanes->x[l], row->y = lanes->y[l], row->limit = lanes->limit[l], row->motor = lanes->motor[l];
    }
    for (int i = 0; i < w->contact_rows; i++) {
        Rigid2dContactRow *row = &w->contact_row[i];
        const ContactLanes *lanes = &g->contact[g->slot_of[l][i]];
        row->n0 = lanes->n0[l], row->n1 = lanes->n1[l], row->t0 = lanes->t0[l], row->t1 = lanes->t1[l];
    }
}

LANE_LOOP solve_joint(JointLanes *restrict lanes, VelocityLanes *restrict a, VelocityLanes *restrict b) {
    for (int l = 0; l < WIDTH; l++) { // vectorises
        Rigid2dJointRow row;
        RIGID2D_JOINT_ROW(FROM_LANE)
        Rigid2dVelocity va = {a->x[l], a->y[l], a->w[l]}, vb = {b->x[l], b->y[l], b->w[l]};
        rigid2d_joint_solve_velocity(&row, &va, &vb);
        a->x[l] = va.x, a->y[l] = va.y, a->w[l] = va.w;
        b->x[l] = vb.x, b->y[l] = vb.y, b->w[l] = vb.w;
        lanes->x[l] = row.x, lanes->y[l] = row.y, lanes->limit[l] = row.limit, lanes->motor[l] = row.motor;
    }
}

// By bits: of several selects by one condition gcc makes a branch, which does not vectorise.
SIM_FN real blend(uint32_t mask, real if_set, real if_clear) {
    return sim_float_from_bits((sim_bits_from_float(if_set) & mask) | (sim_bits_from_float(if_clear) & ~mask));
}

// Contacts of one of two bodies. Where there is none the velocity stays, to the sign of its zeros.
SIM_FN void solve_contact(ContactLanes *restrict lanes, VelocityLanes *restrict of_a, VelocityLanes *restrict of_b,
                          Slot slot, int points) {
    for (int l = 0; l < WIDTH; l++) { // vectorises x2
        Rigid2dContactRow row;
        RIGID2D_CONTACT_ROW(FROM_LANE)
        const uint32_t is_a = 0u - (uint32_t)(row.body == slot.a), is_b = 0u - (uint32_t)(row.body == slot.b);
        const Rigid2dVelocity a = {of_a->x[l], of_a->y[l], of_a->w[l]}, b = {of_b->x[l], of_b->y[l], of_b->w[l]};
        Rigid2dVelocity v = {blend(is_b, b.x, a.x), blend(is_b, b.y, a.y), blend(is_b, b.w, a.w)};
        if (points == 1) {
            rigid2d_contact_solve_point(&row, &v);
        } else {
            rigid2d_contact_solve_velocity(&row, &v);
        }
        of_a->x[l] = blend(is_a, v.x, a.x), of_a->y[l] = blend(is_a, v.y, a.y), of_a->w[l] = blend(is_a, v.w, a.w);
        of_b->x[l] = blend(is_b, v.x, b.x), of_b->y[l] = blend(is_b, v.y, b.y), of_b->w[l] = blend(is_b, v.w, b.w);
        lanes->n0[l] = row.n0, lanes->n1[l] = row.n1, lanes->t0[l] = row.t0, lanes->t1[l] = row.t1;
    }
}

LANE_LOOP solve_points(ContactLanes *restrict lanes, VelocityLanes *restrict a, VelocityLanes *restrict b, Slot slot) {
    solve_contact(lanes, a, b, slot, 1);
}

LANE_LOOP solve_pairs(ContactLanes *restrict lanes, VelocityLanes *restrict a, VelocityLanes *restrict b, Slot slot) {
    solve_contact(lanes, a, b, slot, 2);
}

static void solve_slot(Islands *g, int i) {
    const Slot slot = g->slot[i];
    if (slot.points == 1) {
        solve_points(&g->contact[i], &g->velocity[slot.a], &g->velocity[slot.b], slot);
    } else {
        solve_pairs(&g->contact[i], &g->velocity[slot.a], &g->velocity[slot.b], slot);
    }
}

// Groups go in step: each is a chain of operations that wait for one another, and a processor has room for two.
static void iterate(Islands *g, int groups, const Rigid2dWorld *like) {
    int slots = 0;
    for (int k = 0; k < groups; k++)
        slots = g[k].slots > slots ? g[k].slots : slots;
    for (int iteration = 0; iteration < like->velocity_iterations; iteration++) {
        for (int i = 0; i < like->joint_rows; i++) {
            const int a = like->joint_row[i].a, b = like->joint_row[i].b;
            for (int k = 0; k < groups; k++)
                solve_joint(&g[k].joint[i], &g[k].velocity[a], &g[k].velocity[b]);
        }
        for (int i = 0; i < slots; i++) {
            for (int k = 0; k < groups; k++) {
                if (i < g[k].slots) solve_slot(&g[k], i);
            }
        }
    }
}

static void clear(Islands *g, int joint_rows) {
    g->slots = 0;
    memset(g->velocity, 0, sizeof g->velocity);
    memset(g->joint, 0, (size_t)joint_rows * sizeof g->joint[0]);
}

uint32_t ISA_CAT(cpu_islands_iterate_, ISA)(Rigid2dWorld *const *worlds, int count) {
    Islands g[GROUPS];
    const Rigid2dWorld *like = NULL; // the first that has a lane
    uint32_t left = 0;
    int last = 0; // group that is filled
    g[0].lanes = 0;
    for (int i = 0; i < count; i++) {
        Rigid2dWorld *w = worlds[i];
        if (w->joint_rows + w->contact_rows == 0) continue;
        if (w->joint_rows > JOINTS_MAX || (like != NULL && !is_like(like, w))) {
            left |= 1u << i;
            continue;
        }
        if (g[last].lanes == WIDTH) g[++last].lanes = 0;
        if (g[last].lanes == 0) clear(&g[last], w->joint_rows);
        if (!add_world(&g[last], w)) {
            left |= 1u << i;
        } else if (like == NULL) {
            like = w;
        }
    }
    if (like == NULL) return left;
    iterate(g, last + (g[last].lanes > 0), like);
    for (int k = 0; k <= last; k++) {
        for (int l = 0; l < g[k].lanes; l++)
            take_world(&g[k], l);
    }
    return left;
}
