// Which pairs of ground and body there are: fattened bounding boxes, contacts that begin and end with their overlap,
// and their manifolds.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_BROAD_H
#define SHOAL_SIM_RIGID2D_RIGID2D_BROAD_H

#include "sim/rigid2d/rigid2d_ground.h"

#define RIGID2D_BOX_MARGIN     R(0.1) // m
#define RIGID2D_BOX_PREDICTION R(2.0) // times the displacement of the step

SIM_FN Rigid2dBox rigid2d_body_box(const Rigid2dBody *b) {
    Rigid2dBox box = {{b->low_x_m, b->low_y_m}, {b->high_x_m, b->high_y_m}};
    return box;
}

// With the skin.
SIM_FN Rigid2dBox rigid2d_ground_bounds(const Rigid2dWorld *w, int32_t shape) {
    if (shape < w->blocks) return rigid2d_box_grow(w->block[shape], RIGID2D_RADIUS);
    Rigid2dEdge edge = rigid2d_ground_edge(w, shape - w->blocks);
    return rigid2d_edge_box(&edge);
}

SIM_FN Rigid2dBox rigid2d_ground_box(const Rigid2dWorld *w, int32_t shape) {
    return rigid2d_box_grow(rigid2d_ground_bounds(w, shape), RIGID2D_BOX_MARGIN);
}

// How far a vertex of a polygon in this box, which turns about its centre of mass, at distance r, leaves the line
// between its ends: up to r turn^2 / 8.
SIM_FN real rigid2d_body_bow(Rigid2dBox box, real turn) {
    real r = (box.high.x - box.low.x) + (box.high.y - box.low.y);
    return R(0.125) * r * turn * turn;
}

// The swept box; and a new fattened box when the body, on its way since the step's beginning, has left the old one.
SIM_BIG_FN void rigid2d_body_box_follow(Rigid2dWorld *w, int32_t i) {
    Rigid2dMotion *motion = &w->motion[i];
    Rigid2dBody *b = &w->body[i];
    Rigid2dBox box =
        rigid2d_box_join(rigid2d_polygon_box(&w->shape[i], motion->t0), rigid2d_polygon_box(&w->shape[i], motion->t));
    motion->swept = rigid2d_box_grow(box, rigid2d_body_bow(box, b->angle_rad - motion->a0));
    if (rigid2d_box_contains(rigid2d_body_box(b), box)) return;
    box = rigid2d_box_grow(box, RIGID2D_BOX_MARGIN);
    Rigid2dVec ahead = rigid2d_scale(RIGID2D_BOX_PREDICTION, rigid2d_sub(motion->t.p, motion->t0.p));
    b->low_x_m = ahead.x < R(0.0) ? box.low.x + ahead.x : box.low.x;
    b->low_y_m = ahead.y < R(0.0) ? box.low.y + ahead.y : box.low.y;
    b->high_x_m = ahead.x < R(0.0) ? box.high.x : box.high.x + ahead.x;
    b->high_y_m = ahead.y < R(0.0) ? box.high.y : box.high.y + ahead.y;
}

SIM_FN int32_t rigid2d_find_contact(const Rigid2dWorld *w, int32_t pair) {
    for (int32_t i = 0; i < w->contacts; i++) {
        if (w->contact[i].pair == pair) return i;
    }
    return -1;
}

SIM_FN void rigid2d_touch_clear(Rigid2dWorld *w, int32_t contact) {
    Rigid2dTouch *touch = &w->touch[contact];
    __builtin_memset(touch, 0, sizeof *touch);
    touch->shape = w->contact[contact].pair / w->bodies, touch->body = w->contact[contact].pair % w->bodies;
    touch->toi = R(1.0);
    touch->enabled = 1;
}

// Begins a contact for each body whose box overlaps that of the shape and that has none.
SIM_FN void rigid2d_find_contacts_of(Rigid2dWorld *w, int32_t shape) {
    Rigid2dBox ground = rigid2d_ground_box(w, shape);
    for (int32_t body = 0; body < w->bodies; body++) {
        int32_t pair = shape * w->bodies + body;
        if (!rigid2d_box_overlaps(ground, rigid2d_body_box(&w->body[body]))) continue;
        if (rigid2d_find_contact(w, pair) >= 0) continue;
        if (w->contacts == w->contacts_max) {
            w->overflow = 1;
            continue;
        }
        w->contact[w->contacts].pair = pair;
        rigid2d_touch_clear(w, w->contacts++);
        rigid2d_body_wake(&w->body[body]);
    }
}

// Begins a contact for each pair whose boxes overlap and that has none; by shape of the ground, then by body.
SIM_BIG_FN void rigid2d_find_contacts(Rigid2dWorld *w) {
    Rigid2dSpan all = {w->edges, 0};
    for (int32_t body = 0; body < w->bodies; body++) {
        Rigid2dSpan span = rigid2d_ground_span(w, w->body[body].low_x_m, w->body[body].high_x_m);
        if (span.begin < all.begin) all.begin = span.begin;
        if (span.end > all.end) all.end = span.end;
    }
    for (int32_t i = 0; i < w->blocks; i++)
        rigid2d_find_contacts_of(w, i);
    for (int32_t i = all.begin; i < all.end; i++)
        rigid2d_find_contacts_of(w, w->blocks + i);
}

SIM_BIG_FN void rigid2d_contact_remove(Rigid2dWorld *w, int32_t contact) {
    const Rigid2dContact none = {0, 0, 0, 0, R(0.0), R(0.0), R(0.0), R(0.0)};
    Rigid2dBody *b = &w->body[rigid2d_contact_body(w, contact)];
    if (w->contact[contact].points > 0) b->touch &= ~RIGID2D_IN_CONTACT;
    w->contacts--;
    for (int32_t i = contact; i < w->contacts; i++)
        w->contact[i] = w->contact[i + 1], w->touch[i] = w->touch[i + 1];
    w->contact[w->contacts] = none;
}

// The manifold where the body is now.
SIM_BIG_FN void rigid2d_contact_collide(Rigid2dWorld *w, int32_t contact) {
    Rigid2dManifold *m = &w->touch[contact].manifold;
    int32_t shape = rigid2d_contact_shape(w, contact), body = rigid2d_contact_body(w, contact);
    if (shape < w->blocks) {
        Rigid2dPolygon block;
        rigid2d_ground_polygon(w, shape, &block);
        rigid2d_collide_polygons(m, &block, &w->shape[body], w->motion[body].t);
    } else {
        Rigid2dEdge edge = rigid2d_ground_edge(w, shape - w->blocks);
        rigid2d_collide_edge(m, &edge, &w->shape[body], w->motion[body].t);
    }
}

// A new manifold. A point that was there before, by its key, keeps its impulses. Tells the body when it begins or ends
// to touch.
SIM_BIG_FN void rigid2d_contact_update(Rigid2dWorld *w, int32_t contact) {
    Rigid2dContact *c = &w->contact[contact], old = *c;
    Rigid2dTouch *touch = &w->touch[contact];
    const Rigid2dManifold *m = &touch->manifold;
    rigid2d_contact_collide(w, contact);
    touch->enabled = 1;
    c->points = m->count;
    c->key0 = m->count > 0 ? m->point[0].key : 0, c->key1 = m->count > 1 ? m->point[1].key : 0;
    int32_t first0 = old.points > 0 && m->count > 0 && old.key0 == c->key0;
    int32_t second0 = old.points > 1 && m->count > 0 && old.key1 == c->key0;
    int32_t first1 = old.points > 0 && m->count > 1 && old.key0 == c->key1;
    int32_t second1 = old.points > 1 && m->count > 1 && old.key1 == c->key1;
    c->normal0_ns = first0 ? old.normal0_ns : second0 ? old.normal1_ns : R(0.0);
    c->tangent0_ns = first0 ? old.tangent0_ns : second0 ? old.tangent1_ns : R(0.0);
    c->normal1_ns = first1 ? old.normal0_ns : second1 ? old.normal1_ns : R(0.0);
    c->tangent1_ns = first1 ? old.tangent0_ns : second1 ? old.tangent1_ns : R(0.0);
    if ((m->count > 0) == (old.points > 0)) return;
    Rigid2dBody *b = &w->body[touch->body];
    rigid2d_body_wake(b);
    b->touch = m->count > 0 ? RIGID2D_IN_CONTACT | RIGID2D_HAS_TOUCHED : b->touch & ~RIGID2D_IN_CONTACT;
}

// Ends the contacts whose boxes have parted and updates the others, newest first. What sleeps stays as it is, but a
// joint may wake it, so that a manifold is needed.
SIM_FN void rigid2d_update_contacts(Rigid2dWorld *w) {
    for (int32_t i = w->contacts - 1; i >= 0; i--) {
        rigid2d_touch_clear(w, i);
        const Rigid2dBody *b = &w->body[rigid2d_contact_body(w, i)];
        if (!b->awake) {
            if (w->contact[i].points > 0) rigid2d_contact_collide(w, i);
        } else if (rigid2d_box_overlaps(rigid2d_ground_box(w, rigid2d_contact_shape(w, i)), rigid2d_body_box(b))) {
            rigid2d_contact_update(w, i);
        } else {
            rigid2d_contact_remove(w, i);
        }
    }
}

#endif
