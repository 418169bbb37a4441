// Where two shapes touch: manifolds of one or two points, by separating axes and clipping.
//
// Shape A is the ground, an edge or a polygon in the world's frame; shape B is a body's polygon.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_COLLIDE_H
#define SHOAL_SIM_RIGID2D_RIGID2D_COLLIDE_H

#include "sim/rigid2d/rigid2d_shape.h"

// A point's name, by which its impulses of the step before are found: the features of A and B that make it.
#define RIGID2D_KEY(index_a, index_b, face_a, face_b) \
    ((int32_t)((uint32_t)(index_a) | (uint32_t)(index_b) << 8 | (uint32_t)(face_a) << 16 | (uint32_t)(face_b) << 24))

typedef struct Rigid2dPoint {
    Rigid2dVec at; // in the frame of the shape that is clipped
    int32_t key;
} Rigid2dPoint;

// The points lie on one shape and are measured from a face of the other, the reference.
typedef struct Rigid2dManifold {
    int32_t count;      // 0: they do not touch
    int32_t face_b;     // the reference is B's, and the points are on A
    Rigid2dVec normal;  // of the reference face, in its shape's frame
    Rigid2dVec through; // a point of the reference face
    Rigid2dPoint point[2];
} Rigid2dManifold;

// The reference face while points are clipped against it; all in one frame.
typedef struct Rigid2dFace {
    Rigid2dVec a, b, normal;
    int32_t index_a, index_b; // names of a and b
} Rigid2dFace;

SIM_FN int32_t rigid2d_key_index_b(int32_t key) { return key >> 8 & 255; }

// The same key with A and B exchanged.
SIM_FN int32_t rigid2d_key_swap(int32_t key) {
    return (key & 255) << 8 | (key >> 8 & 255) | (key >> 16 & 255) << 24 | (key >> 24 & 255) << 16;
}

// Keeps of the segment in[0], in[1] what is behind the line normal . x = offset. Returns the points kept. A cut is
// named after the reference's vertex `index`.
SIM_FN int32_t rigid2d_clip(Rigid2dPoint out[2], const Rigid2dPoint in[2], Rigid2dVec normal, real offset,
                            int32_t index) {
    int32_t count = 0;
    real d0 = rigid2d_dot(normal, in[0].at) - offset, d1 = rigid2d_dot(normal, in[1].at) - offset;
    if (d0 <= R(0.0)) out[count++] = in[0];
    if (d1 <= R(0.0)) out[count++] = in[1];
    if (d0 * d1 < R(0.0)) {
        real t = d0 / (d0 - d1);
        out[count].at = rigid2d_add(in[0].at, rigid2d_scale(t, rigid2d_sub(in[1].at, in[0].at)));
        out[count++].key = RIGID2D_KEY(index, rigid2d_key_index_b(in[0].key), 0, 1);
    }
    return count;
}

// The deepest that an edge's side reaches into the polygon's side, over the polygon's normals; stops at one that
// separates them.
SIM_FN real rigid2d_polygon_separation(const Rigid2dPolygon *b, Rigid2dVec v1, Rigid2dVec v2, int32_t *index) {
    real best = -RIGID2D_HUGE;
    *index = -1;
    for (int32_t i = 0; i < b->count; i++) {
        Rigid2dVec n = rigid2d_neg(b->normal[i]);
        real s1 = rigid2d_dot(n, rigid2d_sub(b->vertex[i], v1)), s2 = rigid2d_dot(n, rigid2d_sub(b->vertex[i], v2));
        real s = rigid2d_min(s1, s2);
        if (s > best) best = s, *index = i;
        if (s > R(2.0) * RIGID2D_RADIUS) return s;
    }
    return best;
}

// The smallest distance of the polygon's vertices from the line through `from`.
SIM_FN real rigid2d_edge_separation(const Rigid2dPolygon *b, Rigid2dVec normal, Rigid2dVec from) {
    real least = RIGID2D_HUGE;
    for (int32_t i = 0; i < b->count; i++) {
        real s = rigid2d_dot(normal, rigid2d_sub(b->vertex[i], from));
        if (s < least) least = s;
    }
    return least;
}

// The side of b whose normal is the most opposed to `normal`, as a segment; its points are named after its vertices.
SIM_FN void rigid2d_incident(Rigid2dPoint out[2], const Rigid2dPolygon *b, Rigid2dVec normal, int32_t reference) {
    int32_t i1 = 0;
    real least = RIGID2D_HUGE;
    for (int32_t i = 0; i < b->count; i++) {
        real d = rigid2d_dot(normal, b->normal[i]);
        if (d < least) least = d, i1 = i;
    }
    int32_t i2 = i1 + 1 < b->count ? i1 + 1 : 0;
    out[0].at = b->vertex[i1], out[0].key = RIGID2D_KEY(reference, i1, 1, 0);
    out[1].at = b->vertex[i2], out[1].key = RIGID2D_KEY(reference, i2, 1, 0);
}

// Clips `incident` to the reference face's width plus `extra` on both sides, and keeps into m the points that are no
// further than the skins from it. The points stay in the face's frame.
SIM_FN void rigid2d_clip_to_face(Rigid2dManifold *m, const Rigid2dFace *face, const Rigid2dPoint incident[2],
                                 real extra) {
    // Of an edge, whose normal may be shorter than 1, sides are measured along its turned normal.
    Rigid2dVec side = rigid2d_turn(face->normal);
    Rigid2dPoint once[2], twice[2];
    m->count = 0;
    if (rigid2d_clip(once, incident, side, rigid2d_dot(side, face->a) + extra, face->index_a) < 2) return;
    Rigid2dVec other = rigid2d_neg(side);
    if (rigid2d_clip(twice, once, other, rigid2d_dot(other, face->b) + extra, face->index_b) < 2) return;
    for (int32_t i = 0; i < 2; i++) {
        real separation = rigid2d_dot(face->normal, rigid2d_sub(twice[i].at, face->a));
        if (separation <= R(2.0) * RIGID2D_RADIUS) m->point[m->count++] = twice[i];
    }
}

// An edge of the ground and a body's polygon.
SIM_BIG_FN void rigid2d_collide_edge(Rigid2dManifold *m, const Rigid2dEdge *e, const Rigid2dPolygon *polygon,
                                     Rigid2dTransform t) {
    m->count = 0;
    Rigid2dVec along = rigid2d_unit(rigid2d_sub(e->b, e->a));
    Rigid2dVec out = rigid2d_turn(along);
    Rigid2dVec center = rigid2d_apply(t, polygon->centroid);
    int32_t front = rigid2d_dot(out, rigid2d_sub(center, e->a)) >= R(0.0);
    Rigid2dVec normal = front ? out : rigid2d_neg(out);

    Rigid2dPolygon b; // in the world's frame
    b.count = polygon->count;
    for (int32_t i = 0; i < b.count; i++)
        b.vertex[i] = rigid2d_apply(t, polygon->vertex[i]);
    real by_edge = rigid2d_edge_separation(&b, normal, e->a);
    if (!(by_edge <= R(2.0) * RIGID2D_RADIUS)) return;
    for (int32_t i = 0; i < b.count; i++)
        b.normal[i] = rigid2d_rotate(t.q, polygon->normal[i]);
    int32_t side;
    real by_polygon = rigid2d_polygon_separation(&b, e->a, e->b, &side);
    if (side < 0 || by_polygon > R(2.0) * RIGID2D_RADIUS) return;

    // The edge is the reference unless the polygon's side is clearly better: jitter would lose the impulses.
    m->face_b = by_polygon > R(0.98) * by_edge + R(0.001);
    Rigid2dFace face;
    Rigid2dPoint incident[2];
    if (m->face_b) {
        face.index_a = side, face.index_b = side + 1 < b.count ? side + 1 : 0;
        face.a = b.vertex[face.index_a], face.b = b.vertex[face.index_b], face.normal = b.normal[side];
        incident[0].at = e->a, incident[1].at = e->b;
        incident[0].key = incident[1].key = RIGID2D_KEY(0, side, 0, 1);
    } else {
        face.index_a = front ? 0 : 1, face.index_b = front ? 1 : 0;
        face.a = front ? e->a : e->b, face.b = front ? e->b : e->a, face.normal = normal;
        rigid2d_incident(incident, &b, normal, 0);
    }
    rigid2d_clip_to_face(m, &face, incident, R(0.0));
    m->normal = m->face_b ? polygon->normal[side] : face.normal;
    m->through = m->face_b ? polygon->vertex[side] : face.a;
    for (int32_t i = 0; i < m->count; i++) {
        if (m->face_b) m->point[i].key = rigid2d_key_swap(m->point[i].key);
        if (!m->face_b) m->point[i].at = rigid2d_unapply(t, m->point[i].at);
    }
}

// How far side `edge` of a keeps b away. Both in the world's frame.
SIM_FN real rigid2d_side_separation(const Rigid2dPolygon *a, int32_t edge, const Rigid2dPolygon *b) {
    int32_t deepest = 0;
    real least = RIGID2D_HUGE;
    for (int32_t i = 0; i < b->count; i++) {
        real d = rigid2d_dot(b->vertex[i], a->normal[edge]);
        if (d < least) least = d, deepest = i;
    }
    return rigid2d_dot(rigid2d_sub(b->vertex[deepest], a->vertex[edge]), a->normal[edge]);
}

// The side of a that separates b the best, found by climbing from the one that faces b's centroid.
SIM_FN real rigid2d_best_side(const Rigid2dPolygon *a, const Rigid2dPolygon *b, int32_t *side) {
    Rigid2dVec d = rigid2d_sub(b->centroid, a->centroid);
    int32_t edge = 0, count = a->count;
    real most = -RIGID2D_HUGE;
    for (int32_t i = 0; i < count; i++) {
        real along = rigid2d_dot(a->normal[i], d);
        if (along > most) most = along, edge = i;
    }
    int32_t previous = edge > 0 ? edge - 1 : count - 1, next = edge + 1 < count ? edge + 1 : 0;
    real s = rigid2d_side_separation(a, edge, b);
    real s_previous = rigid2d_side_separation(a, previous, b), s_next = rigid2d_side_separation(a, next, b);
    int32_t down = s_previous > s && s_previous > s_next;
    *side = edge;
    if (!down && !(s_next > s)) return s;
    *side = down ? previous : next;
    real best = down ? s_previous : s_next;
    for (int32_t i = 0; i < count; i++) {
        edge = down ? (*side > 0 ? *side - 1 : count - 1) : (*side + 1 < count ? *side + 1 : 0);
        s = rigid2d_side_separation(a, edge, b);
        if (!(s > best)) break;
        best = s, *side = edge;
    }
    return best;
}

// A polygon of the ground and a body's.
SIM_BIG_FN void rigid2d_collide_polygons(Rigid2dManifold *m, const Rigid2dPolygon *a, const Rigid2dPolygon *polygon,
                                         Rigid2dTransform t) {
    m->count = 0;
    if (a->count < 3 || polygon->count < 3) return;
    Rigid2dPolygon b; // in the world's frame
    b.count = polygon->count;
    b.centroid = rigid2d_apply(t, polygon->centroid);
    for (int32_t i = 0; i < b.count; i++) {
        b.vertex[i] = rigid2d_apply(t, polygon->vertex[i]);
        b.normal[i] = rigid2d_rotate(t.q, polygon->normal[i]);
    }
    int32_t side_a, side_b;
    real by_a = rigid2d_best_side(a, &b, &side_a), by_b = rigid2d_best_side(&b, a, &side_b);
    if (!(by_a <= R(2.0) * RIGID2D_RADIUS) || !(by_b <= R(2.0) * RIGID2D_RADIUS)) return;

    m->face_b = by_b > R(0.98) * by_a + R(0.001);
    const Rigid2dPolygon *reference = m->face_b ? &b : a, *other = m->face_b ? a : &b;
    const Rigid2dPolygon *own = m->face_b ? polygon : a; // the reference in its own frame
    Rigid2dFace face;
    face.index_a = m->face_b ? side_b : side_a;
    face.index_b = face.index_a + 1 < reference->count ? face.index_a + 1 : 0;
    face.a = reference->vertex[face.index_a], face.b = reference->vertex[face.index_b];
    face.normal = rigid2d_turn(rigid2d_unit(rigid2d_sub(face.b, face.a)));
    Rigid2dPoint incident[2];
    rigid2d_incident(incident, other, reference->normal[face.index_a], face.index_a);
    rigid2d_clip_to_face(m, &face, incident, R(2.0) * RIGID2D_RADIUS);
    Rigid2dVec p = own->vertex[face.index_a], q = own->vertex[face.index_b];
    m->normal = rigid2d_turn(rigid2d_unit(rigid2d_sub(q, p)));
    m->through = rigid2d_scale(R(0.5), rigid2d_add(p, q));
    for (int32_t i = 0; i < m->count; i++) {
        if (m->face_b) m->point[i].key = rigid2d_key_swap(m->point[i].key);
        if (!m->face_b) m->point[i].at = rigid2d_unapply(t, m->point[i].at);
    }
}

#endif
