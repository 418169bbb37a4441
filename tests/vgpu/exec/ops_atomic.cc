// Atomic operations. Lanes act one after the other; blocks run on several threads of the host, so that each operation
// is atomic there too. Every order of the memory model is kept by acting in the strongest.
#include <cstring>
#include <mutex>
#include <type_traits>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/ops_float.h"

namespace vgpu::VGPU_ISA {
namespace {

using ptx::Type;

// ---- operations: the new value from the old one and the operands ---------------------------------------------------

struct Add {
    template <class T> static T run(T old, T b, T) {
        return T(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(b));
    }
};
struct Min {
    template <class T> static T run(T old, T b, T) { return b < old ? b : old; }
};
struct Max {
    template <class T> static T run(T old, T b, T) { return old < b ? b : old; }
};
struct Inc {
    template <class T> static T run(T old, T b, T) { return old >= b ? T(0) : T(old + 1); }
};
struct Dec {
    template <class T> static T run(T old, T b, T) { return old == 0 || old > b ? b : T(old - 1); }
};
struct And {
    template <class T> static T run(T old, T b, T) { return old & b; }
};
struct Or {
    template <class T> static T run(T old, T b, T) { return old | b; }
};
struct Xor {
    template <class T> static T run(T old, T b, T) { return old ^ b; }
};
struct Exchange {
    template <class T> static T run(T, T b, T) { return b; }
};
struct CompareAndSwap {
    template <class T> static T run(T old, T b, T c) { return old == b ? c : old; }
};

// Additions give the NaNs that add gives. By the ISA those of f32 flush subnormal numbers in global memory, and keep
// them in shared memory.
template <bool FTZ> struct AddF32 {
    static float run(float old, float b, float) { return canonical(flush<FTZ>(flush<FTZ>(old) + flush<FTZ>(b))); }
};
struct AddF64 {
    static double run(double old, double b, double) {
        double sum = old + b;
        return sum == sum ? sum : bits_as<double>(nan_of(old, b));
    }
};
template <class Format> struct AddHalf {
    static uint16_t run(uint16_t old, uint16_t b, uint16_t) {
        double sum = double(decode<Format>(old)) + double(decode<Format>(b));
        return uint16_t(encode<Format, Rounding::nearest_even>(sum));
    }
};
template <class One> struct Pair {
    static uint32_t run(uint32_t old, uint32_t b, uint32_t) {
        uint32_t low = One::run(uint16_t(old), uint16_t(b), 0),
                 high = One::run(uint16_t(old >> 16), uint16_t(b >> 16), 0);
        return high << 16 | low;
    }
};

// ---- memory --------------------------------------------------------------------------------------------------------

template <size_t bytes> struct Bits;
template <> struct Bits<2> { using type = uint16_t; };
template <> struct Bits<4> { using type = uint32_t; };
template <> struct Bits<8> { using type = uint64_t; };

// Applies the operation; `changed` is set if the memory is another than before.
template <class Op, class T> T update(uint8_t *where, T b, T c, bool *changed) {
    using B = typename Bits<sizeof(T)>::type;
    B *at = reinterpret_cast<B *>(where);
    B old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    for (;;) {
        B next = bits_as<B>(Op::run(bits_as<T>(old), b, c));
        if (__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            *changed = *changed || next != old;
            return bits_as<T>(old);
        }
    }
}

// The same where the address, which may be a generic one, is in global or in shared memory.
template <class Op, class T> T update(Warp &warp, uint8_t *where, T b, T c, bool *changed) {
    if constexpr (std::is_same_v<Op, AddF32<true>>) {
        if (warp.block().is_shared(where)) return update<AddF32<false>>(where, b, c, changed);
    }
    return update<Op>(where, b, c, changed);
}

using Locate = void (Warp::*)(const Instr &, int, Mask, uint32_t, Access, uint8_t **);

// atom d, [a], b, c;  red [a], b. `address`: the operand that is the address.
template <class Op, class T, Locate locate, int address> void atomic(Warp &warp, const Instr &in, Mask active) {
    uint8_t *where[LANES];
    (warp.*locate)(in, address, active, sizeof(T), Access::atomic, where);
    const T *b = warp.lanes<T>(in.at[address + 1]),
            *c = warp.lanes<T>(in.at[in.count > address + 2 ? address + 2 : address + 1]);
    T old[LANES];
    bool changed = false;
    int first = int(warp.block().shuffled() % LANES);
    for (int i = 0; i < LANES; i++) {
        int l = (first + i) % LANES;
        if (active >> l & 1) old[l] = update<Op>(warp, where[l], b[l], c[l], &changed);
    }
    if (changed) warp.block().note_change();
    if constexpr (address == 1) {
        T *d = warp.lanes<T>(in.at[0]);
        for (Mask left = active; left != 0; left &= left - 1)
            d[__builtin_ctz(left)] = old[__builtin_ctz(left)];
    }
}

constexpr int VECTOR_MOST = 8; // elements

// Vectors of adds: atom.global.v2.f32.add; each element is atomic by itself.
template <class Op, class T, Locate locate, int address> void atomic_vector(Warp &warp, const Instr &in, Mask active) {
    uint8_t *where[LANES];
    bool changed = false;
    int n = in.vector, first_address = address == 0 ? 0 : n;
    (warp.*locate)(in, first_address, active, uint32_t(sizeof(T)) * in.vector, Access::atomic, where);
    T old[VECTOR_MOST][LANES] = {};
    for (int e = 0; e < n; e++) {
        const T *b = warp.lanes<T>(in.at[first_address + 1 + e]);
        for (Mask left = active; left != 0; left &= left - 1) {
            int l = __builtin_ctz(left);
            old[e][l] = update<Op>(warp, where[l] + sizeof(T) * size_t(e), b[l], b[l], &changed);
        }
    }
    if (changed) warp.block().note_change();
    if constexpr (address != 0) { // now that all operands are read: a register may be one and a result
        for (int e = 0; e < n; e++)
            map_lanes<Copy>(active, warp.lanes<T>(in.at[e]), old[e]);
    }
}

struct Quad {
    uint64_t low, high;
    bool operator==(const Quad &other) const { return low == other.low && high == other.high; }
};

// 128 bits: exch and cas only. One lock for all, since the host has no such atomic operation everywhere.
template <bool is_cas, Locate locate> void atomic_wide(Warp &warp, const Instr &in, Mask active) {
    static std::mutex mutex;
    uint8_t *where[LANES];
    (warp.*locate)(in, 1, active, sizeof(Quad), Access::atomic, where);
    const Quad *b = warp.lanes<Quad>(in.at[2]), *c = warp.lanes<Quad>(in.at[is_cas ? 3 : 2]);
    Quad *d = warp.lanes<Quad>(in.at[0]);
    for (Mask left = active; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        std::lock_guard lock(mutex);
        Quad old;
        memcpy(&old, where[l], sizeof old);
        Quad next = !is_cas || old == b[l] ? c[l] : old;
        memcpy(where[l], &next, sizeof next);
        if (!(next == old)) warp.block().note_change();
        d[l] = old;
    }
}

// ---- rows ----------------------------------------------------------------------------------------------------------

template <class Op, class T, int address> Run placed(const Form &form) {
    return is_shared(form) ? Run(atomic<Op, T, &Warp::locate_shared, address>)
                           : Run(atomic<Op, T, &Warp::locate_generic, address>);
}

template <class Op, int address> Run integer(const Form &form) {
    switch (form.type()) {
    case Type::u32:
        return placed<Op, uint32_t, address>(form);
    case Type::s32:
        return placed<Op, int32_t, address>(form);
    case Type::u64:
        return placed<Op, uint64_t, address>(form);
    case Type::s64:
        return placed<Op, int64_t, address>(form);
    default:
        return nullptr;
    }
}

template <class Op, int address> Run bits(const Form &form) {
    switch (ptx::type_bytes(form.type())) {
    case 2:
        return placed<Op, uint16_t, address>(form);
    case 4:
        return placed<Op, uint32_t, address>(form);
    case 8:
        return placed<Op, uint64_t, address>(form);
    default:
        return nullptr;
    }
}

template <int address> Run add(const Form &form) {
    switch (form.type()) {
    case Type::f32:
        return placed<AddF32<true>, float, address>(form);
    case Type::f64:
        return placed<AddF64, double, address>(form);
    case Type::f16:
        return placed<AddHalf<F16>, uint16_t, address>(form);
    case Type::bf16:
        return placed<AddHalf<BF16>, uint16_t, address>(form);
    case Type::f16x2:
        return placed<Pair<AddHalf<F16>>, uint32_t, address>(form);
    case Type::bf16x2:
        return placed<Pair<AddHalf<BF16>>, uint32_t, address>(form);
    default:
        return integer<Add, address>(form);
    }
}

template <int address> Run pick(const Form &form) {
    if (form.has("add")) return add<address>(form);
    if (form.has("min")) return integer<Min, address>(form);
    if (form.has("max")) return integer<Max, address>(form);
    if (form.has("inc")) return placed<Inc, uint32_t, address>(form);
    if (form.has("dec")) return placed<Dec, uint32_t, address>(form);
    if (form.has("and")) return bits<And, address>(form);
    if (form.has("or")) return bits<Or, address>(form);
    if (form.has("xor")) return bits<Xor, address>(form);
    if (form.has("exch")) return bits<Exchange, address>(form);
    return form.has("cas") ? bits<CompareAndSwap, address>(form) : nullptr;
}

template <class Op, class T, int address> Run placed_vector(const Form &form) {
    return is_shared(form) ? nullptr : Run(atomic_vector<Op, T, &Warp::locate_generic, address>);
}

// At most 16 bytes; halves are never flushed, which has to be said.
template <int address> Run pick_vector(const Form &form) {
    size_t elements = form.has("v8") ? 8 : form.has("v4") ? 4 : 2;
    if (ptx::type_bytes(form.type()) * elements > 16 || form.has("noftz") == (form.type() == Type::f32)) return nullptr;
    switch (form.type()) {
    case Type::f32:
        return placed_vector<AddF32<true>, float, address>(form);
    case Type::f16:
        return placed_vector<AddHalf<F16>, uint16_t, address>(form);
    case Type::bf16:
        return placed_vector<AddHalf<BF16>, uint16_t, address>(form);
    case Type::f16x2:
        return placed_vector<Pair<AddHalf<F16>>, uint32_t, address>(form);
    case Type::bf16x2:
        return placed_vector<Pair<AddHalf<BF16>>, uint32_t, address>(form);
    default:
        return nullptr;
    }
}

template <bool is_cas> Run pick_wide(const Form &form) {
    return is_shared(form) ? Run(atomic_wide<is_cas, &Warp::locate_shared>)
                           : Run(atomic_wide<is_cas, &Warp::locate_generic>);
}

#define ORDER      "relaxed|acquire|release|acq_rel|volatile? cta|cluster|gpu|sys? global|shared|shared::cta? "
#define ARITHMETIC ORDER "add|min|max noftz? u32|s32|u64|s64|f32|f64|f16|bf16|f16x2|bf16x2"
#define COUNT      ORDER "inc|dec u32"
#define BITWISE    ORDER "and|or|xor b32|b64"
#define VECTOR \
    "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? add noftz? v2|v4|v8 f32|f16|bf16|f16x2|bf16x2"
#define VECTOR_FIRST \
    "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global? v2|v4|v8 f32|f16|bf16|f16x2|bf16x2 add noftz?"

const Row rows[] = {
    {"atom", ARITHMETIC, "t m t", pick<1>},
    {"atom", COUNT, "t m t", pick<1>},
    {"atom", BITWISE, "t m t", pick<1>},
    {"atom", ORDER "exch b32|b64", "t m t", pick<1>},
    {"atom", ORDER "exch b128", "t m t", pick_wide<false>},
    {"atom", ORDER "cas b16|b32|b64", "t m t t", pick<1>},
    {"atom", ORDER "cas b128", "t m t t", pick_wide<true>},
    {"atom", VECTOR, "v m v", pick_vector<1>},
    {"atom", VECTOR_FIRST, "v m v", pick_vector<1>},
    {"red", ARITHMETIC, "m t", pick<0>},
    {"red", COUNT, "m t", pick<0>},
    {"red", BITWISE, "m t", pick<0>},
    {"red", VECTOR, "m v", pick_vector<0>},
    {"red", VECTOR_FIRST, "m v", pick_vector<0>},
};

} // namespace

extern const Rows atomic_rows;
const Rows atomic_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
