// Instructions in which the lanes of a warp exchange values, and barriers.
//
// Each is executed once for all lanes that its member mask names, by parts: one for each place in the program that they
// come from, mostly a single one.
#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

template <class T> T *lanes_of(const Part &part, int operand) {
    return reinterpret_cast<T *>(part.registers + part.in->at[operand]);
}

template <class Visit> void for_each_lane(const Part &part, Visit &&visit) {
    for (Mask left = part.mask; left != 0; left &= left - 1)
        visit(__builtin_ctz(left));
}

// The operand's value in every lane that takes part, and which these are.
template <class T> Mask gather(const std::vector<Part> &parts, int operand, T *values) {
    Mask present = 0;
    for (const Part &part : parts) {
        const T *a = lanes_of<T>(part, operand);
        for_each_lane(part, [&](int l) { values[l] = a[l]; });
        present |= part.mask;
    }
    return present;
}

// A predicate operand in the lanes that take part.
Mask gather_predicate(const std::vector<Part> &parts, int operand) {
    Mask values = 0;
    for (const Part &part : parts) {
        Mask flip = part.in->flip >> operand & 1 ? ALL_LANES : 0;
        values |= (*lanes_of<Mask>(part, operand) ^ flip) & part.mask;
    }
    return values;
}

void set_predicate(const Part &part, int operand, Mask value) {
    Mask *p = lanes_of<Mask>(part, operand);
    *p = (*p & ~part.mask) | (value & part.mask);
}

template <class T> void set_all(const Part &part, int operand, T value) {
    T *d = lanes_of<T>(part, operand);
    for_each_lane(part, [&](int l) { d[l] = value; });
}

// ---- shfl.sync d|p, a, b, c, members -------------------------------------------------------------------------------

enum class Shuffle { up, down, bfly, idx };

// The source lane of a lane, as the PTX ISA defines it; `valid`: it is in the lane's segment.
template <Shuffle mode> int source_lane(int lane, uint32_t b, uint32_t c, bool *valid) {
    int segment = int(c >> 8 & 31), clamp = int(c & 31), step = int(b & 31);
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment, source = lane;
    switch (mode) {
    case Shuffle::up:
        source = lane - step;
        *valid = source >= most;
        break;
    case Shuffle::down:
        source = lane + step;
        *valid = source <= most;
        break;
    case Shuffle::bfly:
        source = lane ^ step;
        *valid = source <= most;
        break;
    case Shuffle::idx:
        source = least | (step & ~segment);
        *valid = source <= most;
        break;
    }
    return *valid ? source : lane;
}

// What a lane gives that does not take part is undefined.
constexpr uint32_t ABSENT_VALUE = 0xdeadbeef;

void check_absent(const Warp &warp, const Instr &in, int lane, int source) {
    if ((checks_enabled() & CHECK_INIT) == 0 || reads_ahead(warp.frame(), in)) return;
    const char *why = warp.live() >> source & 1 ? "does not take part" : "has exited or was never there";
    throw Trap{Fault::failure, "shuffle from lane " + std::to_string(source) + ", which " + why, lane};
}

template <Shuffle mode> void shuffle(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 5, active);
    if (parts == nullptr) return;
    uint32_t values[LANES];
    Mask present = gather(*parts, 2, values);
    for (const Part &part : *parts) {
        uint32_t *d = lanes_of<uint32_t>(part, 0);
        const uint32_t *b = lanes_of<uint32_t>(part, 3), *c = lanes_of<uint32_t>(part, 4);
        uint32_t result[LANES];
        Mask valid = 0;
        for_each_lane(part, [&](int l) {
            bool inside;
            int source = source_lane<mode>(l, b[l], c[l], &inside);
            if ((present >> source & 1) == 0) check_absent(warp, *part.in, l, source);
            result[l] = present >> source & 1 ? values[source] : ABSENT_VALUE;
            valid |= Mask{inside} << l;
        });
        for_each_lane(part, [&](int l) { d[l] = result[l]; });
        set_predicate(part, 1, valid);
    }
}

Run pick_shuffle(const Form &form) {
    if (form.has("up")) return shuffle<Shuffle::up>;
    if (form.has("down")) return shuffle<Shuffle::down>;
    return form.has("bfly") ? shuffle<Shuffle::bfly> : shuffle<Shuffle::idx>;
}

// ---- vote.sync d, p, members ---------------------------------------------------------------------------------------

enum class Vote { all, any, uni, ballot };

template <Vote mode> void vote(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 2, active);
    if (parts == nullptr) return;
    Mask present = 0, votes = gather_predicate(*parts, 1);
    for (const Part &part : *parts)
        present |= part.mask;
    for (const Part &part : *parts) {
        if (mode == Vote::ballot) {
            set_all<uint32_t>(part, 0, votes);
            continue;
        }
        bool result = mode == Vote::all   ? votes == present
                      : mode == Vote::any ? votes != 0
                                          : votes == 0 || votes == present;
        set_predicate(part, 0, result ? ALL_LANES : 0);
    }
}

Run pick_vote(const Form &form) {
    if (form.has("ballot")) return vote<Vote::ballot>;
    return form.has("all") ? vote<Vote::all> : form.has("any") ? vote<Vote::any> : vote<Vote::uni>;
}

// ---- match.sync d, a, members --------------------------------------------------------------------------------------

template <class T> void match_any(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 2, active);
    if (parts == nullptr) return;
    T values[LANES];
    Mask present = gather(*parts, 1, values);
    for (const Part &part : *parts) {
        uint32_t *d = lanes_of<uint32_t>(part, 0);
        for_each_lane(part, [&](int l) {
            Mask same = 0;
            for (int k = 0; k < LANES; k++)
                same |= Mask{(present >> k & 1) != 0 && values[k] == values[l]} << k;
            d[l] = same;
        });
    }
}

// d|p: the members if all have the same value, and whether they do.
template <class T> void match_all(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 3, active);
    if (parts == nullptr) return;
    T values[LANES];
    Mask present = gather(*parts, 2, values);
    bool same = true;
    for (Mask left = present; left != 0; left &= left - 1) {
        same = same && values[__builtin_ctz(left)] == values[__builtin_ctz(present)];
    }
    for (const Part &part : *parts) {
        set_all<uint32_t>(part, 0, same ? present : 0);
        set_predicate(part, 1, same ? ALL_LANES : 0);
    }
}

Run pick_match_any(const Form &form) {
    return form.type() == ptx::Type::b32 ? Run(match_any<uint32_t>) : Run(match_any<uint64_t>);
}
Run pick_match_all(const Form &form) {
    return form.type() == ptx::Type::b32 ? Run(match_all<uint32_t>) : Run(match_all<uint64_t>);
}

// ---- redux.sync d, a, members --------------------------------------------------------------------------------------

struct Add {
    template <class T> static T run(T a, T b) { return T(uint32_t(a) + uint32_t(b)); }
};
struct Min {
    template <class T> static T run(T a, T b) { return a < b ? a : b; }
};
struct Max {
    template <class T> static T run(T a, T b) { return a < b ? b : a; }
};
struct And {
    template <class T> static T run(T a, T b) { return a & b; }
};
struct Or {
    template <class T> static T run(T a, T b) { return a | b; }
};
struct Xor {
    template <class T> static T run(T a, T b) { return a ^ b; }
};

template <class Op, class T> void reduce(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 2, active);
    if (parts == nullptr) return;
    T values[LANES];
    Mask present = gather(*parts, 1, values);
    T result = values[__builtin_ctz(present)];
    for (Mask left = present & (present - 1); left != 0; left &= left - 1) {
        result = Op::run(result, values[__builtin_ctz(left)]);
    }
    for (const Part &part : *parts)
        set_all<T>(part, 0, result);
}

template <class T> Run reduce_arithmetic(const Form &form) {
    return form.has("add") ? reduce<Add, T> : form.has("min") ? reduce<Min, T> : reduce<Max, T>;
}
Run pick_redux_arithmetic(const Form &form) {
    return form.type() == ptx::Type::s32 ? reduce_arithmetic<int32_t>(form) : reduce_arithmetic<uint32_t>(form);
}
Run pick_redux_bits(const Form &form) {
    return form.has("and") ? reduce<And, uint32_t> : form.has("or") ? reduce<Or, uint32_t> : reduce<Xor, uint32_t>;
}

// ---- elect.sync d|p, members ---------------------------------------------------------------------------------------

void elect(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 2, active);
    if (parts == nullptr) return;
    Mask present = 0;
    for (const Part &part : *parts)
        present |= part.mask;
    int leader = __builtin_ctz(present);
    for (const Part &part : *parts) {
        set_all<uint32_t>(part, 0, uint32_t(leader));
        set_predicate(part, 1, Mask{1} << leader);
    }
}

// ---- barriers ------------------------------------------------------------------------------------------------------

void warp_barrier(Warp &warp, const Instr &in, Mask active) {
    const std::vector<Part> *parts = warp.meet(in, 0, active);
    if (parts == nullptr) return;
    Mask present = 0;
    for (const Part &part : *parts)
        present |= part.mask;
    warp.block().races().warp_barrier(warp, present);
}

// The value of an operand that all lanes of a warp have to agree on, since a barrier waits for whole warps.
uint32_t uniform(Warp &warp, const Instr &in, int operand, Mask active) {
    const uint32_t *a = warp.lanes<uint32_t>(in.at[operand]);
    uint32_t first = a[__builtin_ctz(active)];
    for (Mask left = active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (a[lane] == first) continue;
        throw Trap{Fault::failure,
                   "barrier divergence: threads of a warp give " + std::to_string(first) + " and " +
                       std::to_string(a[lane]) + " as a barrier's number or count",
                   lane};
    }
    return first;
}

int barrier_number(Warp &warp, const Instr &in, int operand, Mask active) {
    uint32_t number = uniform(warp, in, operand, active);
    if (number >= uint32_t(BARRIERS)) {
        throw Trap{Fault::illegal_instruction, "there is no barrier " + std::to_string(number), __builtin_ctz(active)};
    }
    return int(number);
}

uint32_t barrier_count(Warp &warp, const Instr &in, int operand, Mask active) {
    uint32_t count = uniform(warp, in, operand, active);
    if (count % LANES != 0) {
        throw Trap{Fault::illegal_instruction,
                   "a barrier of " + std::to_string(count) + " threads, which is no multiple of 32",
                   __builtin_ctz(active)};
    }
    return count;
}

template <bool has_count> void barrier_sync(Warp &warp, const Instr &in, Mask active) {
    uint32_t expected = has_count ? barrier_count(warp, in, 1, active) : 0;
    warp.block().arrive_and_wait(warp, in, barrier_number(warp, in, 0, active), expected, active, 0);
}

void barrier_arrive(Warp &warp, const Instr &in, Mask active) {
    uint32_t expected = barrier_count(warp, in, 1, active);
    if (expected == 0) {
        throw Trap{Fault::illegal_instruction, "an arrival at a barrier of no threads", __builtin_ctz(active)};
    }
    warp.block().arrive(warp, barrier_number(warp, in, 0, active), expected, active);
}

// bar.red d, barrier, (count,) p
template <bool has_count> void barrier_reduce(Warp &warp, const Instr &in, Mask active) {
    uint32_t expected = has_count ? barrier_count(warp, in, 2, active) : 0;
    uint32_t votes = uint32_t(__builtin_popcount(warp.predicate(in, has_count ? 3 : 2) & active));
    warp.block().arrive_and_wait(warp, in, barrier_number(warp, in, 1, active), expected, active, votes);
}

const Row rows[] = {
    {"shfl", "sync up|down|bfly|idx b32", "t|p t u32 u32 u32", pick_shuffle},
    {"vote", "sync ballot b32", "t p u32", pick_vote},
    {"vote", "sync all|any|uni pred", "p p u32", pick_vote},
    {"match", "any sync b32|b64", "u32 t u32", pick_match_any},
    {"match", "all sync b32|b64", "u32|p t u32", pick_match_all},
    {"redux", "sync add|min|max u32|s32", "t t u32", pick_redux_arithmetic},
    {"redux", "sync and|or|xor b32", "t t u32", pick_redux_bits},
    {"elect", "sync", "u32|p u32", only<elect>},
    {"bar", "warp sync", "u32", only<warp_barrier>},
    {"bar", "cta? sync", "u32", only<barrier_sync<false>>},
    {"bar", "cta? sync", "u32 u32", only<barrier_sync<true>>},
    {"barrier", "cta? sync aligned?", "u32", only<barrier_sync<false>>},
    {"barrier", "cta? sync aligned?", "u32 u32", only<barrier_sync<true>>},
    {"bar", "cta? arrive", "u32 u32", only<barrier_arrive>},
    {"barrier", "cta? arrive aligned?", "u32 u32", only<barrier_arrive>},
    {"bar", "cta? red and|or pred", "p u32 p", only<barrier_reduce<false>>},
    {"bar", "cta? red and|or pred", "p u32 u32 p", only<barrier_reduce<true>>},
    {"bar", "cta? red popc u32", "t u32 p", only<barrier_reduce<false>>},
    {"bar", "cta? red popc u32", "t u32 u32 p", only<barrier_reduce<true>>},
    {"barrier", "cta? red and|or aligned? pred", "p u32 p", only<barrier_reduce<false>>},
    {"barrier", "cta? red and|or aligned? pred", "p u32 u32 p", only<barrier_reduce<true>>},
    {"barrier", "cta? red popc aligned? u32", "t u32 p", only<barrier_reduce<false>>},
    {"barrier", "cta? red popc aligned? u32", "t u32 u32 p", only<barrier_reduce<true>>},
};

} // namespace

extern const Rows warp_rows;
const Rows warp_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
