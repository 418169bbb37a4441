// Reads a b2World that Python's Box2D made, for box2d_recording.py: positions, impulses, fattened boxes and the order
// of contacts, which the binding does not show. Words in the order of RIGID2D_BODY, RIGID2D_JOINT and RIGID2D_CONTACT
// (sim/rigid2d/rigid2d_world.h), floats and int32 alike in 4 bytes; touch is left 0. Not part of the build: it needs
// the headers of box2d-py, from which the wheel was made:
//
//     git clone https://github.com/openai/box2d-py
//     g++ -O1 -shared -fPIC -I box2d-py $(python3-config --includes) tests/sim/box2d_probe.cc -o box2d_probe.so
//
// Nothing is linked: only fields and inline functions are used.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#define private public
#define protected public
#include "Box2D/Box2D.h"
#undef private
#undef protected

namespace {

struct Words {
    int32 *at;
    void put(float x) { std::memcpy(at++, &x, 4); }
    void put(int32 x) { *at++ = x; }
};

std::vector<b2Body *> dynamic_bodies(b2World *world) {
    std::vector<b2Body *> bodies;
    for (b2Body *b = world->m_bodyList; b; b = b->m_next)
        if (b->m_type == b2_dynamicBody) bodies.push_back(b);
    std::reverse(bodies.begin(), bodies.end());
    return bodies;
}

// The shapes of static bodies in the order of creation, which is that of their proxies.
std::vector<b2Fixture *> ground(b2World *world) {
    std::vector<b2Fixture *> shapes;
    for (b2Body *b = world->m_bodyList; b; b = b->m_next)
        if (b->m_type == b2_staticBody)
            for (b2Fixture *f = b->m_fixtureList; f; f = f->m_next)
                shapes.push_back(f);
    std::sort(shapes.begin(), shapes.end(),
              [](b2Fixture *a, b2Fixture *b) { return a->m_proxies[0].proxyId < b->m_proxies[0].proxyId; });
    return shapes;
}

void put_body(Words *out, const b2World *world, const b2Body *b) {
    const b2AABB &box =
        world->m_contactManager.m_broadPhase.m_tree.m_nodes[b->m_fixtureList->m_proxies[0].proxyId].aabb;
    out->put(b->m_sweep.c.x), out->put(b->m_sweep.c.y), out->put(b->m_sweep.a);
    out->put(b->m_linearVelocity.x), out->put(b->m_linearVelocity.y), out->put(b->m_angularVelocity);
    out->put(b->m_sleepTime);
    out->put(box.lowerBound.x), out->put(box.lowerBound.y), out->put(box.upperBound.x), out->put(box.upperBound.y);
    out->put(static_cast<int32>((b->m_flags & b2Body::e_awakeFlag) != 0)), out->put(0);
}

int32 key(const b2ManifoldPoint &p) {
    const b2ContactFeature &f = p.id.cf;
    return f.indexA | f.indexB << 8 | f.typeA << 16 | f.typeB << 24;
}

void put_contact(Words *out, b2Contact *c, int32 pair) {
    const b2Manifold &m = c->m_manifold;
    int32 points = c->m_flags & b2Contact::e_touchingFlag ? m.pointCount : 0;
    out->put(pair), out->put(points);
    for (int32 i = 0; i < 2; i++)
        out->put(i < points ? key(m.points[i]) : 0);
    for (int32 i = 0; i < 2; i++) {
        out->put(i < points ? m.points[i].normalImpulse : 0.0f);
        out->put(i < points ? m.points[i].tangentImpulse : 0.0f);
    }
}

} // namespace

// out: bodies, joints, contacts, oldest first. counts: how many of each, and of impacts in the step before. Returns the
// number of words.
extern "C" int box2d_probe(void *pointer, int32 *out, int32 *counts) {
    b2World *world = static_cast<b2World *>(pointer);
    std::vector<b2Body *> bodies = dynamic_bodies(world);
    std::vector<b2Fixture *> shapes = ground(world);
    Words words{out};
    for (const b2Body *b : bodies)
        put_body(&words, world, b);
    std::vector<b2RevoluteJoint *> joints;
    for (b2Joint *j = world->m_jointList; j; j = j->m_next)
        joints.push_back(static_cast<b2RevoluteJoint *>(j));
    std::reverse(joints.begin(), joints.end());
    for (const b2RevoluteJoint *j : joints) {
        words.put(j->m_impulse.x), words.put(j->m_impulse.y), words.put(j->m_impulse.z), words.put(j->m_motorImpulse);
    }
    std::vector<b2Contact *> contacts;
    for (b2Contact *c = world->m_contactManager.m_contactList; c; c = c->m_next)
        contacts.push_back(c);
    std::reverse(contacts.begin(), contacts.end());
    for (b2Contact *c : contacts) {
        auto shape = std::find(shapes.begin(), shapes.end(), c->m_fixtureA) - shapes.begin();
        auto body = std::find(bodies.begin(), bodies.end(), c->m_fixtureB->m_body) - bodies.begin();
        put_contact(&words, c, static_cast<int32>(shape * static_cast<long>(bodies.size()) + body));
    }
    counts[0] = static_cast<int32>(bodies.size()), counts[1] = static_cast<int32>(joints.size());
    counts[2] = static_cast<int32>(contacts.size());
    counts[3] = 0;
    for (const b2Contact *c : contacts)
        counts[3] += c->m_toiCount;
    return static_cast<int>(words.at - out);
}
