// One step of a world of rigid bodies: contacts, islands, impulses, positions, sleep, continuous collision.
// sim/rigid2d/rigid2d_world.h says what a world is and whose semantics these are.
//
// No allocation, no recursion, bounded loops. A NaN passes through to the bodies it touches. A contact without room
// sets world->overflow; the simulator has to make that an error.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_H
#define SHOAL_SIM_RIGID2D_RIGID2D_H

#include "sim/rigid2d/rigid2d_broad.h"
#include "sim/rigid2d/rigid2d_contact.h"
#include "sim/rigid2d/rigid2d_joint.h"

#define RIGID2D_MAX_TRANSLATION_M R(2.0)                // of a step
#define RIGID2D_MAX_ROTATION_RAD  R(1.5707963267948966) // of a step
#define RIGID2D_BAUMGARTE         R(0.2)
#define RIGID2D_TOI_BAUMGARTE     R(0.75)
#define RIGID2D_TOI_ITERATIONS    20 // of positions after an impact
#define RIGID2D_TOI_PER_CONTACT   8  // impacts of one contact in one step
#define RIGID2D_SLEEP_AFTER_S     R(0.5)
#define RIGID2D_SLEEP_SPEED_MPS   R(0.01)
#define RIGID2D_SLEEP_SPIN_RADPS  RIGID2D_ANGULAR_SLOP
#define RIGID2D_BODIES_MAX        8 // of a world, and up to 32 joints

// Moves a body by the solver's velocity for dt, both clipped.
SIM_FN void rigid2d_body_integrate(Rigid2dWorld *w, int32_t i, real dt) {
    Rigid2dBody *b = &w->body[i];
    Rigid2dVec v = rigid2d_vec(w->velocity[i].x, w->velocity[i].y), shift = rigid2d_scale(dt, v);
    if (rigid2d_dot(shift, shift) > RIGID2D_MAX_TRANSLATION_M * RIGID2D_MAX_TRANSLATION_M) {
        v = rigid2d_scale(RIGID2D_MAX_TRANSLATION_M / rigid2d_length(shift), v);
    }
    real spin = w->velocity[i].w, turn = dt * spin;
    if (turn * turn > RIGID2D_MAX_ROTATION_RAD * RIGID2D_MAX_ROTATION_RAD) {
        spin *= RIGID2D_MAX_ROTATION_RAD / sim_fabs(turn);
    }
    b->vx_mps = v.x, b->vy_mps = v.y, b->spin_radps = spin;
    b->x_m += dt * v.x, b->y_m += dt * v.y, b->angle_rad += dt * spin;
}

// Adds to the island what hangs on `seed`: bodies by joints, depth first, and their touching contacts. The order is
// that of the solver.
SIM_FN void rigid2d_island_gather(Rigid2dWorld *w, int32_t seed) {
    int32_t stack[RIGID2D_BODIES_MAX], height = 0;
    uint32_t joints_in = 0;
    w->contact_rows = w->joint_rows = 0;
    stack[height++] = seed;
    w->motion[seed].in_island = 1;
    while (height > 0) {
        int32_t body = stack[--height];
        rigid2d_body_wake(&w->body[body]);
        w->motion[body].in_island = 2;
        for (int32_t i = w->contacts - 1; i >= 0; i--) {
            if (rigid2d_contact_body(w, i) != body || w->contact[i].points == 0) continue;
            rigid2d_contact_begin(w, &w->contact_row[w->contact_rows++], i, 1);
        }
        for (int32_t i = w->joints - 1; i >= 0; i--) {
            const Rigid2dHinge *h = &w->hinge[i];
            if ((h->a != body && h->b != body) || (joints_in >> i & 1u)) continue;
            joints_in |= 1u << i;
            w->joint_row[w->joint_rows++].joint = i;
            int32_t other = h->a == body ? h->b : h->a;
            if (w->motion[other].in_island == 0) w->motion[other].in_island = 1, stack[height++] = other;
        }
    }
}

SIM_BIG_FN void rigid2d_island_iterate(Rigid2dWorld *w) {
    for (int32_t iteration = 0; iteration < w->velocity_iterations; iteration++) {
        for (int32_t i = 0; i < w->joint_rows; i++) {
            Rigid2dJointRow *row = &w->joint_row[i];
            rigid2d_joint_solve_velocity(row, &w->velocity[row->a], &w->velocity[row->b]);
        }
        for (int32_t i = 0; i < w->contact_rows; i++)
            rigid2d_contact_solve_velocity(&w->contact_row[i], &w->velocity[w->contact_row[i].body]);
    }
}

// Returns 1 when all of the island's positions were good enough at last.
SIM_BIG_FN int32_t rigid2d_island_correct(Rigid2dWorld *w) {
    for (int32_t iteration = 0; iteration < w->position_iterations; iteration++) {
        real deepest = R(0.0);
        for (int32_t i = 0; i < w->contact_rows; i++)
            deepest = rigid2d_min(deepest, rigid2d_contact_solve_position(w, &w->contact_row[i], RIGID2D_BAUMGARTE));
        int32_t good = deepest >= R(-3.0) * RIGID2D_LINEAR_SLOP;
        for (int32_t i = 0; i < w->joint_rows; i++)
            good &= rigid2d_joint_solve_position(w, &w->joint_row[i]);
        if (good) return 1;
    }
    return 0;
}

// Puts the island to sleep when all of it has been still for long enough.
SIM_FN void rigid2d_island_rest(Rigid2dWorld *w, int32_t solved) {
    real least = RIGID2D_HUGE;
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island != 2) continue;
        Rigid2dBody *b = &w->body[i];
        Rigid2dVec v = rigid2d_body_velocity(b);
        int32_t still = b->spin_radps * b->spin_radps <= RIGID2D_SLEEP_SPIN_RADPS * RIGID2D_SLEEP_SPIN_RADPS &&
                        rigid2d_dot(v, v) <= RIGID2D_SLEEP_SPEED_MPS * RIGID2D_SLEEP_SPEED_MPS;
        b->still_s = still ? b->still_s + w->dt_s : R(0.0);
        least = rigid2d_min(least, b->still_s);
    }
    if (!solved || least < RIGID2D_SLEEP_AFTER_S) return;
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island != 2) continue;
        Rigid2dBody *b = &w->body[i];
        b->awake = 0;
        b->still_s = b->vx_mps = b->vy_mps = b->spin_radps = R(0.0);
    }
}

// The island that was gathered, ready for its iterations: velocities with forces, and rows.
SIM_FN void rigid2d_island_begin(Rigid2dWorld *w) {
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island != 2) continue;
        const Rigid2dBody *b = &w->body[i];
        const Rigid2dMotion *motion = &w->motion[i];
        Rigid2dVec acceleration = rigid2d_add(w->gravity_mps2, rigid2d_scale(w->mass[i].inverse_mass, motion->force_n));
        w->velocity[i].x = b->vx_mps + w->dt_s * acceleration.x;
        w->velocity[i].y = b->vy_mps + w->dt_s * acceleration.y;
        w->velocity[i].w = b->spin_radps + w->dt_s * w->mass[i].inverse_inertia * motion->torque_nm;
    }
    for (int32_t i = 0; i < w->contact_rows; i++)
        rigid2d_contact_warm(&w->contact_row[i], &w->velocity[w->contact_row[i].body]);
    for (int32_t i = 0; i < w->joint_rows; i++)
        rigid2d_joint_begin(w, &w->joint_row[i], w->joint_row[i].joint);
}

// What follows the iterations.
SIM_FN void rigid2d_island_end(Rigid2dWorld *w) {
    for (int32_t i = 0; i < w->contact_rows; i++)
        rigid2d_contact_store(w, &w->contact_row[i]);
    for (int32_t i = 0; i < w->joint_rows; i++)
        rigid2d_joint_store(w, &w->joint_row[i]);
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island == 2) rigid2d_body_integrate(w, i, w->dt_s);
    }
    int32_t solved = rigid2d_island_correct(w);
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island == 2) rigid2d_body_follow(w, i);
    }
    rigid2d_island_rest(w, solved);
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island == 2) w->motion[i].in_island = 3;
    }
}

// Begins the next island of bodies that are awake. Returns 0 when there is none left.
SIM_BIG_FN int32_t rigid2d_island_next(Rigid2dWorld *w) {
    for (int32_t seed = w->bodies - 1; seed >= 0; seed--) {
        if (w->motion[seed].in_island != 0 || !w->body[seed].awake) continue;
        rigid2d_island_gather(w, seed);
        rigid2d_island_begin(w);
        return 1;
    }
    w->contact_rows = w->joint_rows = 0;
    return 0;
}

// ---- continuous collision ------------------------------------------------------------------------------------------

SIM_FN Rigid2dSweep rigid2d_body_sweep(const Rigid2dWorld *w, int32_t i) {
    Rigid2dSweep s = {w->motion[i].c0,      rigid2d_body_position(&w->body[i]),
                      w->mass[i].center,    w->motion[i].a0,
                      w->body[i].angle_rad, w->motion[i].alpha0};
    return s;
}

SIM_FN void rigid2d_body_set_sweep(Rigid2dWorld *w, int32_t i, const Rigid2dSweep *s) {
    w->motion[i].c0 = s->c0, w->motion[i].a0 = s->a0, w->motion[i].alpha0 = s->alpha0;
    w->motion[i].t0 = rigid2d_transform(s->c0, s->a0, s->center);
    rigid2d_body_place(&w->body[i], s->c, s->a);
}

// Moves the body to fraction `alpha` of the step and lets it stay there.
SIM_FN void rigid2d_body_advance(Rigid2dWorld *w, int32_t i, real alpha) {
    Rigid2dSweep s = rigid2d_body_sweep(w, i);
    rigid2d_sweep_advance(&s, alpha);
    s.c = s.c0, s.a = s.a0;
    rigid2d_body_set_sweep(w, i, &s);
    rigid2d_body_follow(w, i);
}

SIM_FN real *rigid2d_contact_ground_alpha0(const Rigid2dWorld *w, int32_t contact) {
    return &w->ground_alpha0[w->one_ground ? 0 : rigid2d_contact_shape(w, contact)];
}

// Whether the contact's body, on its way, stays so far away from the ground that there is no impact to look for.
SIM_FN int32_t rigid2d_contact_is_clear(const Rigid2dWorld *w, int32_t shape, int32_t body, const Rigid2dSweep *sweep) {
    const Rigid2dMotion *motion = &w->motion[body];
    Rigid2dBox ground = rigid2d_box_grow(rigid2d_ground_bounds(w, shape), RIGID2D_TOI_CLEAR - R(2.0) * RIGID2D_RADIUS);
    if (!rigid2d_box_overlaps(ground, motion->swept)) return 1; // both have skins
    if (shape < w->blocks) return 0;
    Rigid2dEdge edge = rigid2d_ground_edge(w, shape - w->blocks);
    real bow = rigid2d_body_bow(motion->swept, sweep->a - sweep->a0);
    return rigid2d_sweep_clearance(motion->t0, motion->t, bow, &w->shape[body], &edge) > RIGID2D_TOI_CLEAR;
}

// The fraction of the step at which this contact's impact is; 1 without one.
SIM_BIG_FN real rigid2d_contact_toi(Rigid2dWorld *w, int32_t contact) {
    int32_t body = rigid2d_contact_body(w, contact), shape = rigid2d_contact_shape(w, contact);
    real *ground_alpha0 = rigid2d_contact_ground_alpha0(w, contact);
    Rigid2dSweep sweep = rigid2d_body_sweep(w, body);
    if (*ground_alpha0 < sweep.alpha0) *ground_alpha0 = sweep.alpha0;
    if (sweep.alpha0 < *ground_alpha0) {
        rigid2d_sweep_advance(&sweep, *ground_alpha0);
        rigid2d_body_set_sweep(w, body, &sweep);
    }
    real toi = R(1.0);
    if (!rigid2d_contact_is_clear(w, shape, body, &sweep)) {
        const Rigid2dPolygon *p = &w->shape[body];
        Rigid2dPolygon ground;
        Rigid2dProxy a = {ground.vertex, 2}, b = {p->vertex, p->count};
        if (shape < w->blocks) {
            rigid2d_ground_polygon(w, shape, &ground);
            a.count = ground.count;
        } else {
            Rigid2dEdge edge = rigid2d_ground_edge(w, shape - w->blocks);
            ground.vertex[0] = edge.a, ground.vertex[1] = edge.b;
        }
        if (a.count == 0 || b.count == 0) return R(1.0);
        toi = rigid2d_toi(a, b, sweep);
    }
    real alpha = sweep.alpha0 + (R(1.0) - sweep.alpha0) * toi;
    return alpha > R(1.0) ? R(1.0) : alpha;
}

// The contact with the earliest impact, newest first among equals; -1 if there is none.
SIM_FN int32_t rigid2d_first_impact(Rigid2dWorld *w, real *alpha) {
    int32_t first = -1;
    *alpha = R(1.0);
    for (int32_t i = w->contacts - 1; i >= 0; i--) {
        Rigid2dTouch *touch = &w->touch[i];
        if (!touch->enabled || touch->toi_count > RIGID2D_TOI_PER_CONTACT) continue;
        if (!touch->toi_known) {
            if (!w->body[rigid2d_contact_body(w, i)].awake) continue;
            touch->toi = rigid2d_contact_toi(w, i);
            touch->toi_known = 1;
        }
        if (touch->toi < *alpha) *alpha = touch->toi, first = i;
    }
    return *alpha > R(1.0) - R(10.0) * RIGID2D_EPSILON ? -1 : first;
}

// Collects the body's contacts at the time of impact, that one first.
SIM_FN void rigid2d_impact_gather(Rigid2dWorld *w, int32_t contact, real alpha) {
    int32_t body = rigid2d_contact_body(w, contact), count = 0;
    w->contact_row[count++].contact = contact;
    for (int32_t i = w->contacts - 1; i >= 0; i--) {
        if (i == contact || rigid2d_contact_body(w, i) != body) continue;
        rigid2d_contact_update(w, i);
        if (w->contact[i].points == 0) continue;
        *rigid2d_contact_ground_alpha0(w, i) = alpha;
        w->contact_row[count++].contact = i;
    }
    w->contact_rows = count, w->joint_rows = 0;
}

// Whether two numbers have the same bits, and are none.
SIM_FN int32_t rigid2d_is_same(real a, real b) {
    return (a == b) & (sim_bits_from_float((float)a) == sim_bits_from_float((float)b));
}

// The iterations of the body's contacts. Without joints one soon changes nothing, and then none after it would.
SIM_BIG_FN void rigid2d_impact_iterate(Rigid2dWorld *w, int32_t body) {
    Rigid2dVelocity *v = &w->velocity[body];
    int32_t same = 0;
    for (int32_t iteration = 0; iteration < w->velocity_iterations && !same; iteration++) {
        const Rigid2dVelocity old = *v;
        same = 1;
        for (int32_t i = 0; i < w->contact_rows; i++) {
            Rigid2dContactRow *row = &w->contact_row[i];
            const real n0 = row->n0, n1 = row->n1, t0 = row->t0, t1 = row->t1;
            if (row->points == 1) {
                rigid2d_contact_solve_point(row, v);
            } else {
                rigid2d_contact_solve_velocity(row, v);
            }
            same &= rigid2d_is_same(row->n0, n0) & rigid2d_is_same(row->n1, n1) & rigid2d_is_same(row->t0, t0) &
                    rigid2d_is_same(row->t1, t1);
        }
        same &= rigid2d_is_same(v->x, old.x) & rigid2d_is_same(v->y, old.y) & rigid2d_is_same(v->w, old.w);
    }
}

// Separates the body from what it hit, and moves it on for the rest of the step. Impulses are not kept: they can be
// large.
SIM_FN void rigid2d_impact_solve(Rigid2dWorld *w, int32_t body, real alpha) {
    for (int32_t i = 0; i < w->contact_rows; i++)
        rigid2d_contact_begin(w, &w->contact_row[i], w->contact_row[i].contact, 0);
    for (int32_t iteration = 0; iteration < RIGID2D_TOI_ITERATIONS; iteration++) {
        real deepest = R(0.0);
        for (int32_t i = 0; i < w->contact_rows; i++) {
            deepest =
                rigid2d_min(deepest, rigid2d_contact_solve_position(w, &w->contact_row[i], RIGID2D_TOI_BAUMGARTE));
        }
        if (deepest >= R(-1.5) * RIGID2D_LINEAR_SLOP) break;
    }
    rigid2d_body_follow(w, body);
    rigid2d_body_depart(w, body);
    for (int32_t i = 0; i < w->contact_rows; i++)
        rigid2d_contact_begin(w, &w->contact_row[i], w->contact_row[i].contact, 0);
    const Rigid2dBody *b = &w->body[body];
    w->velocity[body].x = b->vx_mps, w->velocity[body].y = b->vy_mps, w->velocity[body].w = b->spin_radps;
    rigid2d_impact_iterate(w, body);
    rigid2d_body_integrate(w, body, (R(1.0) - alpha) * w->dt_s);
    rigid2d_body_follow(w, body);
}

// One impact at fraction `alpha`. It may turn out to be none; then the contact is out for this step.
SIM_BIG_FN void rigid2d_impact(Rigid2dWorld *w, int32_t contact, real alpha) {
    int32_t body = rigid2d_contact_body(w, contact);
    real *ground_alpha0 = rigid2d_contact_ground_alpha0(w, contact), ground_before = *ground_alpha0;
    Rigid2dSweep before = rigid2d_body_sweep(w, body);
    rigid2d_body_advance(w, body, alpha);
    *ground_alpha0 = alpha;
    rigid2d_contact_update(w, contact);
    w->touch[contact].toi_known = 0;
    w->touch[contact].toi_count++;
    if (w->contact[contact].points == 0) {
        w->touch[contact].enabled = 0;
        rigid2d_body_set_sweep(w, body, &before);
        rigid2d_body_follow(w, body);
        *ground_alpha0 = ground_before;
        return;
    }
    rigid2d_impact_gather(w, contact, alpha);
    rigid2d_impact_solve(w, body, alpha);
    rigid2d_body_box_follow(w, body);
    for (int32_t i = 0; i < w->contacts; i++) {
        if (rigid2d_contact_body(w, i) == body) w->touch[i].toi_known = 0;
    }
    rigid2d_find_contacts(w);
}

SIM_BIG_FN void rigid2d_solve_impacts(Rigid2dWorld *w) {
    const int32_t grounds = w->one_ground ? 1 : w->blocks + w->edges;
    __builtin_memset(w->ground_alpha0, 0, (uint32_t)grounds * sizeof w->ground_alpha0[0]);
    // Each impact counts towards its contact's limit, so that this many are more than there can be.
    for (int32_t i = 0; i < w->contacts_max * (RIGID2D_TOI_PER_CONTACT + 1); i++) {
        real alpha;
        int32_t contact = rigid2d_first_impact(w, &alpha);
        if (contact < 0) return;
        rigid2d_impact(w, contact, alpha);
    }
}

// ---- the step ------------------------------------------------------------------------------------------------------

// Prepares the scratch memory, after which bodies can be pushed and pulled.
SIM_FN void rigid2d_begin(Rigid2dWorld *w) {
    for (int32_t i = 0; i < w->bodies; i++) {
        Rigid2dMotion *motion = &w->motion[i];
        rigid2d_body_follow(w, i);
        rigid2d_body_depart(w, i);
        motion->alpha0 = R(0.0);
        motion->swept = rigid2d_body_box(&w->body[i]); // until it moves
        motion->force_n = rigid2d_vec(R(0.0), R(0.0)), motion->torque_nm = R(0.0);
        motion->in_island = 0;
    }
}

// A step in three parts. Between the others come the iterations of the first island, by rigid2d_island_iterate() or, of
// several worlds at once, by whoever does the same arithmetic: on velocity, contact_row and joint_row. Without an
// island there are no rows.
SIM_BIG_FN void rigid2d_step_begin(Rigid2dWorld *w) {
    rigid2d_update_contacts(w);
    w->has_island = rigid2d_island_next(w);
}

// Other islands, boxes of what moved, contacts of the boxes, impacts.
SIM_BIG_FN void rigid2d_step_end(Rigid2dWorld *w) {
    while (w->has_island) {
        rigid2d_island_end(w);
        w->has_island = rigid2d_island_next(w);
        if (w->has_island) rigid2d_island_iterate(w);
    }
    for (int32_t i = 0; i < w->bodies; i++) {
        if (w->motion[i].in_island == 3) rigid2d_body_box_follow(w, i);
    }
    rigid2d_find_contacts(w);
    rigid2d_solve_impacts(w);
}

SIM_FN void rigid2d_step(Rigid2dWorld *w) {
    rigid2d_step_begin(w);
    rigid2d_island_iterate(w);
    rigid2d_step_end(w);
}

#endif
