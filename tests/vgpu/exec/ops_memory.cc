// Loads, stores, and addresses of one space in another. What the hardware's caches would be told has no effect.
#include <cstring>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

using ptx::Type;

// ---- ld and st -----------------------------------------------------------------------------------------------------

using Locate = void (Warp::*)(const Instr &, int, Mask, uint32_t, Access, uint8_t **);

// One access of the host; the addresses are aligned, which the compiler cannot know.
template <class T> void move_once(uint8_t *to, const uint8_t *from) {
    using Anywhere [[gnu::may_alias, gnu::aligned(1)]] = T;
    *reinterpret_cast<volatile Anywhere *>(to) = *reinterpret_cast<const volatile Anywhere *>(from);
}
using Quad [[gnu::vector_size(16)]] = uint64_t;

// Moves what a lane accesses with a vector. Other blocks run on other threads of the host, and programs count on what
// holds on a GPU: that those see all of up to 16 bytes or nothing, where a value and its flag are written together.
void move_whole(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    switch (bytes) {
    case 2:
        return move_once<uint16_t>(to, from);
    case 4:
        return move_once<uint32_t>(to, from);
    case 8:
        return move_once<uint64_t>(to, from);
    default:
        for (uint32_t at = 0; at < bytes; at += sizeof(Quad))
            move_once<Quad>(to + at, from + at);
    }
}

// Where lanes' vectors are on their way between memory and registers, which take them apart.
struct Staged {
    alignas(MAX_ACCESS_BYTES) uint8_t lane[LANES][MAX_ACCESS_BYTES];
};
template <class M> bool is_staged(const Instr &in) { return in.vector > 1 || sizeof(M) > sizeof(uint64_t); }

// M: the type in memory, R: that of a lane of the register, which is as wide or wider: a signed M is sign-extended.
template <class M, class R, Locate locate> void load(Warp &warp, const Instr &in, Mask active) {
    uint8_t *where[LANES];
    Staged staged;
    int elements = in.vector;
    uint32_t bytes = uint32_t(sizeof(M)) * uint32_t(elements);
    (warp.*locate)(in, elements, active, bytes, Access::load, where);
    for (Mask left = is_staged<M>(in) ? active : 0; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        move_whole(staged.lane[l], where[l], bytes);
        where[l] = staged.lane[l];
    }
    for (int e = 0; e < elements; e++) {
        R *d = warp.lanes<R>(in.at[e]);
        for (Mask left = active; left != 0; left &= left - 1) {
            int l = __builtin_ctz(left);
            M value;
            memcpy(&value, where[l] + sizeof(M) * size_t(e), sizeof value);
            d[l] = R(value);
        }
    }
}

template <class M, class R, Locate locate> void store(Warp &warp, const Instr &in, Mask active) {
    uint8_t *where[LANES];
    Staged staged;
    uint32_t bytes = uint32_t(sizeof(M)) * in.vector;
    (warp.*locate)(in, 0, active, bytes, Access::store, where);
    warp.block().note_change();
    for (int e = 0; e < in.vector; e++) {
        const R *a = warp.lanes<R>(in.at[1 + e]);
        for (Mask left = active; left != 0; left &= left - 1) {
            int l = __builtin_ctz(left);
            M value = M(a[l]);
            uint8_t *to = is_staged<M>(in) ? staged.lane[l] : where[l];
            memcpy(to + sizeof(M) * size_t(e), &value, sizeof value);
        }
    }
    for (Mask left = is_staged<M>(in) ? active : 0; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        move_whole(where[l], staged.lane[l], bytes);
    }
}

// b128 is two 64-bit halves.
struct Wide {
    uint64_t half[2];
};

template <template <class, class, Locate> class Action, class M, Locate locate> Run by_register(int width) {
    switch (width) {
    case 1:
        if constexpr (sizeof(M) == 1) return Action<M, uint8_t, locate>::run;
        break;
    case 2:
        if constexpr (sizeof(M) <= 2) return Action<M, uint16_t, locate>::run;
        break;
    case 4:
        if constexpr (sizeof(M) <= 4) return Action<M, uint32_t, locate>::run;
        break;
    case 8:
        return Action<M, uint64_t, locate>::run;
    }
    return nullptr;
}

template <class M, class R, Locate locate> struct Load { static constexpr Run run = load<M, R, locate>; };
template <class M, class R, Locate locate> struct Store { static constexpr Run run = store<M, R, locate>; };

template <template <class, class, Locate> class Action, Locate locate> Run by_type(Type type, int width) {
    switch (type) {
    case Type::b8:
    case Type::u8:
        return by_register<Action, uint8_t, locate>(width);
    case Type::s8:
        return by_register<Action, int8_t, locate>(width);
    case Type::b16:
    case Type::u16:
        return by_register<Action, uint16_t, locate>(width);
    case Type::s16:
        return by_register<Action, int16_t, locate>(width);
    case Type::b32:
    case Type::f32:
    case Type::u32:
        return by_register<Action, uint32_t, locate>(width);
    case Type::s32:
        return by_register<Action, int32_t, locate>(width);
    case Type::b64:
    case Type::f64:
    case Type::u64:
    case Type::s64:
        return by_register<Action, uint64_t, locate>(width);
    case Type::b128:
        return width == 16 ? Action<Wide, Wide, locate>::run : nullptr;
    default:
        return nullptr;
    }
}

int vector_width(const Form &form) { return form.has("v8") ? 8 : form.has("v4") ? 4 : form.has("v2") ? 2 : 1; }

// Bytes of a lane of the registers that a vector consists of, sinks apart; -1: they differ.
int register_width(const Form &form, int first_register) {
    int width = 0;
    for (int i = first_register; i < first_register + vector_width(form); i++) {
        if (form.widths[i] == 0 || form.widths[i] == width) continue;
        if (width != 0) return -1;
        width = form.widths[i];
    }
    return width != 0 ? width : int(ptx::type_bytes(form.type()));
}

template <template <class, class, Locate> class Action> Run access(const Form &form, int first_register) {
    if (ptx::type_bytes(form.type()) * size_t(vector_width(form)) > MAX_ACCESS_BYTES) return nullptr;
    int width = register_width(form, first_register);
    return is_shared(form) ? by_type<Action, &Warp::locate_shared>(form.type(), width)
                           : by_type<Action, &Warp::locate_generic>(form.type(), width);
}

Run pick_load(const Form &form) { return access<Load>(form, 0); }
Run pick_store(const Form &form) { return access<Store>(form, 1); }

// ---- addresses -----------------------------------------------------------------------------------------------------

// Only shared memory has addresses of its own; those of every other space are generic ones.
template <class T, bool to_generic> void convert_shared(Warp &warp, const Instr &in, Mask active) {
    T *d = warp.lanes<T>(in.at[0]);
    const T *a = warp.lanes<T>(in.at[1]);
    T window = T(memory_windows().shared);
    for (int l = 0; l < LANES; l++) {
        if (active >> l & 1) d[l] = to_generic ? T(a[l] + window) : T(a[l] - window);
    }
}

Run pick_cvta(const Form &form) {
    if (form.type() != Type::u64) return nullptr; // generic addresses have 64 bits
    if (!is_shared(form)) return map<Copy, uint64_t, uint64_t>;
    return form.has("to") ? Run(convert_shared<uint64_t, false>) : Run(convert_shared<uint64_t, true>);
}

using Test = bool (*)(const Warp &warp, uint64_t address);

bool is_in_shared(const Warp &, uint64_t address) { return address - memory_windows().shared < WINDOW_BYTES; }
bool is_in_local(const Warp &, uint64_t address) { return address - memory_windows().local < WINDOW_BYTES; }
bool is_in_param(const Warp &, uint64_t address) { return address - memory_windows().param < WINDOW_BYTES; }
// Constants are in global memory here, and a kernel's parameters are so by the ISA.
bool is_in_global(const Warp &warp, uint64_t address) {
    return !is_in_shared(warp, address) && !is_in_local(warp, address);
}
bool is_in_constant(const Warp &warp, uint64_t address) {
    const Module &module = *warp.block().kernel().module;
    for (size_t i = 0; i < module.variables.size(); i++) {
        const ptx::Variable &variable = module.source->variables[i];
        bool is_placed = variable.space == ptx::Space::constant && module.variables[i] != 0;
        if (is_placed && address - module.variables[i] < variable.size_bytes) return true;
    }
    return false;
}

template <Test test> void isspacep(Warp &warp, const Instr &in, Mask active) {
    const uint64_t *a = warp.lanes<uint64_t>(in.at[1]);
    warp.set_predicate(in, 0, mask_of([&](int l) { return test(warp, a[l]); }), active);
}

Run pick_isspacep(const Form &form) {
    if (is_shared(form) || form.has("shared::cluster")) return isspacep<is_in_shared>;
    if (form.has("local")) return isspacep<is_in_local>;
    if (form.has("param") || form.has("param::entry")) return isspacep<is_in_param>;
    return form.has("const") ? isspacep<is_in_constant> : isspacep<is_in_global>;
}

// ---- fences --------------------------------------------------------------------------------------------------------

void fence(Warp &warp, const Instr &in, Mask active) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    warp.block().races().fence(warp, in, active);
}

#define ORDER "weak|volatile|relaxed|acquire|release|mmio? cta|cluster|gpu|sys? "
#define CACHED                                                                                                        \
    "ca|cg|cs|lu|cv|wb|wt? nc? L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? " \
    "L2::evict_normal|L2::evict_first|L2::evict_last? L2::64B|L2::128B|L2::256B? "
#define ANY_TYPE "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"

const Row rows[] = {
    {"ld", ORDER "global|const|local|param|param::entry|param::func|shared|shared::cta? " CACHED "v2|v4|v8? " ANY_TYPE,
     "v m", pick_load},
    {"ldu", "global? v2|v4? " ANY_TYPE, "v m", pick_load},
    {"st", ORDER "global|local|param|param::func|shared|shared::cta? " CACHED "v2|v4|v8? " ANY_TYPE, "m v", pick_store},
    {"cvta", "to? global|const|local|param|param::entry|shared|shared::cta u64|u32", "t t", pick_cvta},
    {"isspacep", "global|const|local|param|param::entry|shared|shared::cta|shared::cluster", "p u64", pick_isspacep},
    {"prefetch", "global|local? L1|L2|L2::evict_last|L2::evict_normal", "m", only<nothing>},
    {"prefetchu", "L1", "m", only<nothing>},
    {"discard", "global? L2", "m u32", only<nothing>},
    {"membar", "cta|gl|sys", "", only<fence>},
    {"fence", "sc|acq_rel|acquire|release? cta|cluster|gpu|sys", "", only<fence>},
    {"fence",
     "proxy alias|async|async::global|async::generic "
     "global|shared::cta|shared::cluster?",
     "", only<fence>},
    {"fence", "mbarrier_init release cluster", "", only<fence>},
};

} // namespace

extern const Rows memory_rows;
const Rows memory_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
