// Compiled for each instruction set (ISA is defined). The loops over lanes call the solver's own functions, which have
// no branch, on rows that are laid out [field][lane].
//
// Joints of all worlds have to be between the same bodies in the same order, as they are for one simulator. Contacts
// are the ground's with one body, so that those of different bodies are solved in either order with the same bits: they
// are lined up body by body, each in the order of its world. x and y are far apart in these rows, which vectorise
// without fusing (kernels/CMakeLists.txt).
#include "kernels/cpu/islands.h"

#include <string.h>

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

enum {
    WIDTH = 16, // worlds of a group
    GROUPS = CPU_ISLANDS_MAX / WIDTH,
    JOINTS_MAX = 32,
    SLOTS_MAX = 32, // contacts that are lined up
};

#define LANE_FIELD(type, name) type name[WIDTH];

typedef struct JointLanes {
    RIGID2D_JOINT_ROW(LANE_FIELD)
} JointLanes;

typedef struct ContactLanes {
    RIGID2D_CONTACT_ROW(LANE_FIELD)
    int32_t is_there[WIDTH];
} ContactLanes;

typedef struct VelocityLanes {
    real x[WIDTH], y[WIDTH], w[WIDTH];
} VelocityLanes;

typedef struct Islands {
    _Alignas(64) VelocityLanes velocity[RIGID2D_BODIES_MAX];
    JointLanes joint[JOINTS_MAX];
    ContactLanes contact[SLOTS_MAX];
    int32_t body[SLOTS_MAX]; // whose contacts a slot has
    int slots;
    uint8_t slot[WIDTH][SLOTS_MAX]; // of each world's contacts
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

// The slot of a body's contact number `number`, made if there is none; SLOTS_MAX without room for it.
static int find_slot(Islands *g, int32_t body, int number) {
    for (int slot = 0; slot < g->slots; slot++) {
        if (g->body[slot] == body && number-- == 0) return slot;
    }
    if (g->slots == SLOTS_MAX) return SLOTS_MAX;
    memset(&g->contact[g->slots], 0, sizeof g->contact[0]);
    g->body[g->slots] = body;
    return g->slots++;
}

// Fills in the slot of each of the world's contacts; returns 0 without room for all of them.
static int find_slots(Islands *g, const Rigid2dWorld *w, uint8_t slot[SLOTS_MAX]) {
    int count[RIGID2D_BODIES_MAX] = {0};
    if (w->contact_rows > SLOTS_MAX) return 0;
    for (int i = 0; i < w->contact_rows; i++) {
        int32_t body = w->contact_row[i].body;
        slot[i] = (uint8_t)find_slot(g, body, count[body]++);
        if (slot[i] == SLOTS_MAX) return 0;
    }
    return 1;
}

#define TO_LANE(type, name)   lanes->name[l] = row->name;
#define FROM_LANE(type, name) row.name = lanes->name[l];

// Puts the world into the next lane; returns 0 without room.
static int add_world(Islands *g, Rigid2dWorld *w) {
    const int l = g->lanes;
    if (!find_slots(g, w, g->slot[l])) return 0;
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
        ContactLanes *lanes = &g->contact[g->slot[l][i]];
        RIGID2D_CONTACT_ROW(TO_LANE)
        lanes->is_there[l] = 1;
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
        const ContactLanes *lanes = &g->contact[g->slot[l][i]];
        row->n0 = lanes->n0[l], row->n1 = lanes->n1[l], row->t0 = lanes->t0[l], row->t1 = lanes->t1[l];
    }
}

static void solve_joint(JointLanes *restrict lanes, VelocityLanes *restrict a, VelocityLanes *restrict b) {
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

// Where there is no contact the velocity stays, to the sign of its zeros.
static void solve_contact(ContactLanes *restrict lanes, VelocityLanes *restrict v) {
    for (int l = 0; l < WIDTH; l++) { // vectorises
        Rigid2dContactRow row;
        RIGID2D_CONTACT_ROW(FROM_LANE)
        Rigid2dVelocity now = {v->x[l], v->y[l], v->w[l]};
        rigid2d_contact_solve_velocity(&row, &now);
        int32_t is_there = lanes->is_there[l];
        v->x[l] = sim_select(is_there, now.x, v->x[l]);
        v->y[l] = sim_select(is_there, now.y, v->y[l]);
        v->w[l] = sim_select(is_there, now.w, v->w[l]);
        lanes->n0[l] = row.n0, lanes->n1[l] = row.n1, lanes->t0[l] = row.t0, lanes->t1[l] = row.t1;
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
        for (int slot = 0; slot < slots; slot++) {
            for (int k = 0; k < groups; k++) {
                if (slot < g[k].slots) solve_contact(&g[k].contact[slot], &g[k].velocity[g[k].body[slot]]);
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
