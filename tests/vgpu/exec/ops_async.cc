// Asynchronous copies into and out of shared memory, and the barriers in memory that count them. A copy is made at
// once, which is one of the orders that the hardware may choose; what waits for it finds it complete.
#include <cstring>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

// ---- cp.async [to], [from], bytes (, bytes to read or predicate to ignore) -----------------------------------------

enum class Extra { none, read_bytes, ignore };

// Both addresses have to be aligned to what is copied at once.
void check_aligned(uint64_t to, uint64_t from, uint64_t bytes, int lane) {
    if ((to | from) % bytes == 0) return;
    throw Trap{Fault::misaligned_address, "misaligned asynchronous copy of " + std::to_string(bytes) + " bytes", lane};
}

template <Extra extra> void copy_small(Warp &warp, const Instr &in, Mask active) {
    const uint32_t *bytes = warp.lanes<uint32_t>(in.at[2]), *read = warp.lanes<uint32_t>(in.at[3]);
    Mask ignored = extra == Extra::ignore ? warp.predicate(in, 3) : 0;
    for (Mask left = active; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint32_t given = extra == Extra::read_bytes ? read[l] : ignored >> l & 1 ? 0 : bytes[l];
        if (given > bytes[l]) throw Trap{Fault::illegal_instruction, "cp.async reads more than it writes", l};
        uint64_t to = warp.address_of(in, 0, l), from = warp.address_of(in, 1, l);
        check_aligned(to, from, bytes[l], l);
        warp.copy_to_shared(in, l, to, from, given, bytes[l]);
    }
    warp.block().note_change();
}

// 4, 8 or 16 bytes, with .cg 16 only; the number is part of the instruction.
template <Extra extra> Run pick_copy(const Form &form) {
    const ptx::Operand &bytes = form.source->operands[2];
    bool is_size = bytes.value == 16 || (form.has("ca") && (bytes.value == 4 || bytes.value == 8));
    return bytes.kind == ptx::Operand::Kind::integer && is_size ? copy_small<extra> : nullptr;
}

// ---- mbarrier ------------------------------------------------------------------------------------------------------

// What the 64 bits of an mbarrier hold here; to a program they are opaque.
struct Barrier {
    static constexpr int COUNT_BITS = 20, BYTES_BITS = 23;
    uint32_t expected = 0, pending = 0; // arrivals of every phase; still to come in this one
    int32_t bytes = 0;                  // that copies have yet to bring
    uint32_t phase = 0;                 // its parity

    static Barrier read(uint64_t word) {
        constexpr uint64_t COUNT = (uint64_t{1} << COUNT_BITS) - 1;
        Barrier barrier;
        barrier.expected = uint32_t(word & COUNT);
        barrier.pending = uint32_t(word >> COUNT_BITS & COUNT);
        barrier.bytes = int32_t(int64_t(word << 1) >> (64 - BYTES_BITS));
        barrier.phase = uint32_t(word >> 63);
        return barrier;
    }

    uint64_t word() const {
        constexpr uint64_t BYTES = (uint64_t{1} << BYTES_BITS) - 1;
        return expected | uint64_t{pending} << COUNT_BITS | (uint64_t(bytes) & BYTES) << (2 * COUNT_BITS) |
               uint64_t{phase} << 63;
    }

    void complete_phase() {
        if (pending != 0 || bytes != 0) return;
        phase ^= 1;
        pending = expected;
    }
};

template <class Change> void change(uint8_t *where, Change &&change) {
    uint64_t word;
    memcpy(&word, where, sizeof word);
    Barrier barrier = Barrier::read(word);
    change(barrier, word);
    word = barrier.word();
    memcpy(where, &word, sizeof word);
}

void locate(Warp &warp, const Instr &in, int operand, Mask active, Access access, uint8_t **where) {
    if (is_shared(*in.form)) {
        warp.locate_shared(in, operand, active, sizeof(uint64_t), access, where);
    } else {
        warp.locate_generic(in, operand, active, sizeof(uint64_t), access, where);
    }
}

template <class Each>
void for_each_barrier(Warp &warp, const Instr &in, int operand, Mask active, Access access, Each &&each) {
    uint8_t *where[LANES];
    locate(warp, in, operand, active, access, where);
    for (Mask left = active; left != 0; left &= left - 1)
        each(__builtin_ctz(left), where[__builtin_ctz(left)]);
    warp.block().note_change();
}

// mbarrier.init [barrier], count
void initialise(Warp &warp, const Instr &in, Mask active) {
    const uint32_t *count = warp.lanes<uint32_t>(in.at[1]);
    for_each_barrier(warp, in, 0, active, Access::store, [&](int l, uint8_t *where) {
        Barrier barrier;
        barrier.expected = barrier.pending = count[l];
        uint64_t word = barrier.word();
        memcpy(where, &word, sizeof word);
    });
}

enum class Arrival { plain, expecting, dropping };

void take_arrivals(Barrier &barrier, uint32_t count, int lane) {
    if (count > barrier.pending) throw Trap{Fault::failure, "more threads arrive at an mbarrier than it expects", lane};
    barrier.pending -= count;
}

// mbarrier.arrive state, [barrier] (, count);  .expect_tx: state, [barrier], bytes
template <Arrival kind, bool has_operand> void arrive(Warp &warp, const Instr &in, Mask active) {
    uint64_t *state = warp.lanes<uint64_t>(in.at[0]);
    const uint32_t *operand = warp.lanes<uint32_t>(in.at[2]);
    for_each_barrier(warp, in, 1, active, Access::atomic, [&](int l, uint8_t *where) {
        change(where, [&](Barrier &barrier, uint64_t word) {
            uint32_t count = kind != Arrival::expecting && has_operand ? operand[l] : 1;
            if (kind == Arrival::expecting) barrier.bytes += int32_t(operand[l]);
            if (kind == Arrival::dropping) barrier.expected -= count;
            take_arrivals(barrier, count, l);
            barrier.complete_phase();
            state[l] = word;
        });
    });
}

// mbarrier.expect_tx [barrier], bytes
void expect_bytes(Warp &warp, const Instr &in, Mask active) {
    const uint32_t *bytes = warp.lanes<uint32_t>(in.at[1]);
    for_each_barrier(warp, in, 0, active, Access::atomic, [&](int l, uint8_t *where) {
        change(where, [&](Barrier &barrier, uint64_t) { barrier.bytes += int32_t(bytes[l]); });
    });
}

// cp.async.mbarrier.arrive [barrier]: the copies before it are complete, so it arrives. Without .noinc the arrival is
// one more than the barrier was told of.
template <bool is_counted> void arrive_for_copies(Warp &warp, const Instr &in, Mask active) {
    for_each_barrier(warp, in, 0, active, Access::atomic, [&](int l, uint8_t *where) {
        if (!is_counted) return;
        change(where, [&](Barrier &barrier, uint64_t) {
            take_arrivals(barrier, 1, l);
            barrier.complete_phase();
        });
    });
}

// mbarrier.test_wait p, [barrier], state;  .parity: p, [barrier], parity. Whether that phase is complete.
template <bool by_parity, bool may_wait> void wait(Warp &warp, const Instr &in, Mask active) {
    const uint64_t *state = warp.lanes<uint64_t>(in.at[2]);
    const uint32_t *parity = warp.lanes<uint32_t>(in.at[2]);
    uint8_t *where[LANES];
    locate(warp, in, 1, active, Access::load, where);
    Mask complete = 0;
    for (Mask left = active; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint64_t word;
        memcpy(&word, where[l], sizeof word);
        uint32_t phase = by_parity ? parity[l] & 1 : Barrier::read(state[l]).phase;
        complete |= Mask{Barrier::read(word).phase != phase} << l;
    }
    warp.set_predicate(in, 0, complete, active);
    if (may_wait && complete != active) warp.yield();
}

void pending_count(Warp &warp, const Instr &in, Mask active) {
    uint32_t *d = warp.lanes<uint32_t>(in.at[0]);
    const uint64_t *state = warp.lanes<uint64_t>(in.at[1]);
    for (int l = 0; l < LANES; l++) {
        if (active >> l & 1) d[l] = Barrier::read(state[l]).pending;
    }
}

// ---- cp.async.bulk -------------------------------------------------------------------------------------------------

void check_bulk(uint64_t to, uint64_t from, uint32_t bytes, int lane) {
    check_aligned(to, from, 16, lane);
    if (bytes % 16 == 0) return;
    throw Trap{Fault::misaligned_address, "a bulk copy of " + std::to_string(bytes) + " bytes, no multiple of 16",
               lane};
}

// [to] in shared memory, [from] in global memory, bytes, [barrier]
void copy_bulk_in(Warp &warp, const Instr &in, Mask active) {
    const uint32_t *bytes = warp.lanes<uint32_t>(in.at[2]);
    for (Mask left = active; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint64_t to = warp.address_of(in, 0, l), from = warp.address_of(in, 1, l), barrier = warp.address_of(in, 3, l);
        check_bulk(to, from, bytes[l], l);
        warp.copy_to_shared(in, l, to, from, bytes[l], bytes[l]);
        uint8_t *where = warp.barrier_of_copy(in, l, barrier);
        change(where, [&](Barrier &at, uint64_t) {
            at.bytes -= int32_t(bytes[l]);
            at.complete_phase();
        });
    }
    warp.block().note_change();
}

// [to] in global memory, [from] in shared memory, bytes
void copy_bulk_out(Warp &warp, const Instr &in, Mask active) {
    const uint32_t *bytes = warp.lanes<uint32_t>(in.at[2]);
    for (Mask left = active; left != 0; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint64_t to = warp.address_of(in, 0, l), from = warp.address_of(in, 1, l);
        check_bulk(to, from, bytes[l], l);
        warp.copy_from_shared(in, l, to, from, bytes[l]);
    }
    warp.block().note_change();
}

#define HINTS  "L2::64B|L2::128B|L2::256B? "
#define ORDER  "release|acquire|relaxed? cta|cluster? "
#define SHARED "shared|shared::cta? b64"

const Row rows[] = {
    {"cp", "async ca|cg shared|shared::cta global " HINTS, "m m u32", pick_copy<Extra::none>},
    {"cp", "async ca|cg shared|shared::cta global " HINTS, "m m u32 u32", pick_copy<Extra::read_bytes>},
    {"cp", "async ca|cg shared|shared::cta global " HINTS, "m m u32 p", pick_copy<Extra::ignore>},
    {"cp", "async commit_group", "", only<nothing>},
    {"cp", "async wait_group", "u32", only<nothing>},
    {"cp", "async wait_all", "", only<nothing>},
    {"cp", "async mbarrier::arrive|mbarrier arrive? noinc " SHARED, "m", only<arrive_for_copies<true>>},
    {"cp", "async mbarrier::arrive|mbarrier arrive? " SHARED, "m", only<arrive_for_copies<false>>},
    {"cp", "async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes", "m m u32 m",
     only<copy_bulk_in>},
    {"cp", "async bulk global shared::cta bulk_group", "m m u32", only<copy_bulk_out>},
    {"cp", "async bulk commit_group", "", only<nothing>},
    {"cp", "async bulk wait_group read?", "u32", only<nothing>},
    {"mbarrier", "init " SHARED, "m u32", only<initialise>},
    {"mbarrier", "inval " SHARED, "m", only<nothing>},
    {"mbarrier", "arrive expect_tx " ORDER SHARED, "b64 m u32", only<arrive<Arrival::expecting, true>>},
    {"mbarrier", "arrive noComplete? " ORDER SHARED, "b64 m", only<arrive<Arrival::plain, false>>},
    {"mbarrier", "arrive noComplete? " ORDER SHARED, "b64 m u32", only<arrive<Arrival::plain, true>>},
    {"mbarrier", "arrive_drop noComplete? " ORDER SHARED, "b64 m", only<arrive<Arrival::dropping, false>>},
    {"mbarrier", "arrive_drop noComplete? " ORDER SHARED, "b64 m u32", only<arrive<Arrival::dropping, true>>},
    {"mbarrier", "expect_tx relaxed? cta|cluster? " SHARED, "m u32", only<expect_bytes>},
    {"mbarrier", "test_wait " ORDER SHARED, "p m b64", only<wait<false, false>>},
    {"mbarrier", "test_wait parity " ORDER SHARED, "p m u32", only<wait<true, false>>},
    {"mbarrier", "try_wait " ORDER SHARED, "p m b64 u32?", only<wait<false, true>>},
    {"mbarrier", "try_wait parity " ORDER SHARED, "p m u32 u32?", only<wait<true, true>>},
    {"mbarrier", "pending_count b64", "u32 b64", only<pending_count>},
};

} // namespace

extern const Rows async_rows;
const Rows async_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
