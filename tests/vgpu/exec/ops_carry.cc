// Integer arithmetic in several words: the carry flag is a bit for each lane.
//
// A subtraction adds the complement, a + ~b + 1, and its carry is that of this sum: set where nothing was borrowed. The
// PTX ISA calls it the borrow, and no chain of sub and subc alone tells the two apart, but nvcc's division of 128 bits
// does: it compares by sub.cc, subc.cc ... and takes the outcome by addc.u32 %r, 0, 0.
#include "tests/vgpu/exec/ops_integer.h"

namespace vgpu::VGPU_ISA {
namespace {

// OP computes the low word of a sum and its carry; it sees `in`, the carry of the lane, where the instruction reads it.
template <class T> struct Sum {
    T value;
    bool carry;
};

template <class T> Sum<T> add_carry(T a, T b, T in) {
    const T partial = (T)(a + b), value = (T)(partial + in);
    return {value, partial < a || value < partial};
}

struct Add {
    template <class T> static Sum<T> run(T a, T b, T in) { return add_carry(a, b, in); }
};
template <bool IS_FIRST> struct Sub {
    template <class T> static Sum<T> run(T a, T b, T in) { return add_carry(a, (T)~b, IS_FIRST ? (T)1 : in); }
};
template <class Product, class S> struct Mad { // S: the product is one of signed or of unsigned numbers
    template <class T> static Sum<T> run(T a, T b, T c, T in) { return add_carry((T)Product::run((S)a, (S)b), c, in); }
};

template <class Op, bool READS, bool WRITES, class T, class... A>
void run_carry(Warp &warp, Mask active, T *d, const A *...a) {
    const Mask old = warp.carry;
    Mask carry = 0;
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++) {
        const Sum<T> sum = Op::run(a[l]..., (T)(READS ? old >> l & 1 : 0));
        d[l] = active >> l & 1 ? sum.value : d[l];
        carry |= Mask{sum.carry} << l;
    }
    if (WRITES) warp.carry = (old & ~active) | (carry & active);
}

template <class Op, bool READS, bool WRITES, class T> void carry2(Warp &warp, const Instr &in, Mask active) {
    run_carry<Op, READS, WRITES>(warp, active, warp.lanes<T>(in.at[0]), warp.lanes<const T>(in.at[1]),
                                 warp.lanes<const T>(in.at[2]));
}
template <class Op, bool READS, bool WRITES, class T> void carry3(Warp &warp, const Instr &in, Mask active) {
    run_carry<Op, READS, WRITES>(warp, active, warp.lanes<T>(in.at[0]), warp.lanes<const T>(in.at[1]),
                                 warp.lanes<const T>(in.at[2]), warp.lanes<const T>(in.at[3]));
}

template <class Op, bool READS, bool WRITES> Run sum(const Form &form) {
    if (ptx::type_bytes(form.type()) == 4) return carry2<Op, READS, WRITES, uint32_t>;
    return carry2<Op, READS, WRITES, uint64_t>;
}

template <class Product, bool READS, bool WRITES> Run mad(const Form &form) {
    return with_integer<4, 8>(form.type(), [](auto t) -> Run {
        using S = decltype(t);
        return carry3<Mad<Product, S>, READS, WRITES, std::make_unsigned_t<S>>;
    });
}

#define ALL "u32|s32|u64|s64"

const Row rows[] = {
    {"add", "cc " ALL, "t t t", sum<Add, false, true>},
    {"addc", ALL, "t t t", sum<Add, true, false>},
    {"addc", "cc " ALL, "t t t", sum<Add, true, true>},
    {"sub", "cc " ALL, "t t t", sum<Sub<true>, false, true>},
    {"subc", ALL, "t t t", sum<Sub<false>, true, false>},
    {"subc", "cc " ALL, "t t t", sum<Sub<false>, true, true>},
    {"mad", "lo cc " ALL, "t t t t", mad<MulLow, false, true>},
    {"mad", "hi cc " ALL, "t t t t", mad<MulHigh, false, true>},
    {"madc", "lo " ALL, "t t t t", mad<MulLow, true, false>},
    {"madc", "hi " ALL, "t t t t", mad<MulHigh, true, false>},
    {"madc", "lo cc " ALL, "t t t t", mad<MulLow, true, true>},
    {"madc", "hi cc " ALL, "t t t t", mad<MulHigh, true, true>},
};

} // namespace

extern const Rows carry_rows;
const Rows carry_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
