// Moves between registers: copies, and numbers put together of narrower ones or taken apart.
#include "tests/vgpu/exec/ops_wide.h"

namespace vgpu::VGPU_ISA {
namespace {

__extension__ using Bits128 = unsigned __int128;

template <class T> constexpr Run COPY = map<Copy, T, T>;

void move_predicate(Warp &warp, const Instr &in, Mask active) {
    warp.set_predicate(in, 0, warp.predicate(in, 1), active);
}

Run copy(const Form &form) {
    const size_t bytes = ptx::type_bytes(form.type());
    return bytes == 2 ? COPY<uint16_t> : bytes == 4 ? COPY<uint32_t> : bytes == 8 ? COPY<uint64_t> : COPY<Bits128>;
}

// d = {operand 1, operand 2 ...}, the lowest bits first
template <class T, class Element> void pack(Warp &warp, const Instr &in, Mask active) {
    alignas(64) T packed[LANES] = {};
    for (int i = 1; i < in.count; i++) {
        alignas(64) Element element[LANES];
        load_low_bits(warp, in, i, element);
        for (int l = 0; l < LANES; l++)
            packed[l] = (T)(packed[l] | (T)((T)element[l] << 8 * sizeof(Element) * (unsigned)(i - 1)));
    }
    map_lanes<Copy>(active, warp.lanes<T>(in.at[0]), packed);
}

// {operand 0, operand 1 ...} = the last operand
template <class T, class Element> void unpack(Warp &warp, const Instr &in, Mask active) {
    const int source = in.count - 1;
    const T *a = warp.lanes<const T>(in.at[source]);
    for (int i = 0; i < source; i++) {
        alignas(64) Element element[LANES];
        for (int l = 0; l < LANES; l++)
            element[l] = (Element)(a[l] >> 8 * sizeof(Element) * (unsigned)i);
        map_lanes<Copy>(active, warp.lanes<Element>(in.at[i]), element);
    }
}

// The elements that `braces`, an operand of the form, lists: registers have to be as wide as an equal part of the
// whole.
template <class F> Run with_element(const Form &form, const ptx::Operand &braces, F &&pick) {
    const size_t elements = braces.parts.size(), bytes = ptx::type_bytes(form.type()) / (elements > 0 ? elements : 1);
    if ((elements != 2 && elements != 4) || bytes * elements != ptx::type_bytes(form.type())) return nullptr;
    for (const ptx::Operand &part : braces.parts)
        if (part.kind == ptx::Operand::Kind::reg && register_bytes(form, part) != bytes) return nullptr;
    switch (bytes) {
    case 1:
        return pick(uint8_t{});
    case 2:
        return pick(uint16_t{});
    case 4:
        return pick(uint32_t{});
    case 8:
        return pick(uint64_t{});
    default:
        return nullptr;
    }
}

template <class T> Run select_pack(const Form &form) {
    return with_element(form, form.source->operands[1], [](auto element) -> Run { return pack<T, decltype(element)>; });
}
template <class T> Run select_unpack(const Form &form) {
    return with_element(form, form.source->operands[0],
                        [](auto element) -> Run { return unpack<T, decltype(element)>; });
}

const Row rows[] = {
    {"mov", "pred", "p p", only<move_predicate>},
    {"mov", "b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f32|f64", "t t", copy},
    {"mov", "b16", "t {x}", select_pack<uint16_t>},
    {"mov", "b32", "t {x}", select_pack<uint32_t>},
    {"mov", "b64", "t {x}", select_pack<uint64_t>},
    {"mov", "b128", "t {x}", select_pack<Bits128>},
    {"mov", "b16", "{x} t", select_unpack<uint16_t>},
    {"mov", "b32", "{x} t", select_unpack<uint32_t>},
    {"mov", "b64", "{x} t", select_unpack<uint64_t>},
    {"mov", "b128", "{x} t", select_unpack<Bits128>},
};

} // namespace

extern const Rows move_rows;
const Rows move_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
