// A decoded instruction, and the part of a warp that instructions compute on.
#ifndef SHOAL_TESTS_VGPU_EXEC_INSTR_H
#define SHOAL_TESTS_VGPU_EXEC_INSTR_H

#include <cstddef>
#include <cstdint>

namespace vgpu {

constexpr int LANES = 32;
constexpr int OPERANDS_MAX = 17; // a vector's elements count one by one: atom.v8 d, [a], b

using Mask = uint32_t; // a bit for each lane
constexpr Mask ALL_LANES = ~Mask{0};

class Warp;
struct Instr;
struct Form;

// Executes an instruction for the lanes of `active`, which are at least one.
using Run = void (*)(Warp &warp, const Instr &in, Mask active);

// Where an operand is in the frame of a function, in bytes. A register is an array of 32 lanes, each as wide as its
// type, aligned to 64 bytes; a predicate is one Mask. Immediates, addresses of variables and special registers that do
// not change are in the frame like registers, so that instructions do not tell them apart.
using Slot = uint32_t;

constexpr Slot SLOT_TRUE = 0; // a predicate with all bits set: the guard of an instruction without one

// What an access or a fence promises about the order of memory.
enum MemoryOrder : uint8_t {
    ORDER_STRONG = 1,  // atomic, volatile or the like: races with none of its kind, at least within the block
    ORDER_DEVICE = 2,  // nor in other blocks
    ORDER_ACQUIRE = 4, // what was before the write that it reads is before what follows it
    ORDER_RELEASE = 8, // what was before it is before what follows a read of it
};

struct Instr {
    Run run = nullptr;
    Slot guard = SLOT_TRUE;
    Mask guard_flip = 0; // all bits set where the guard is negated
    Slot at[OPERANDS_MAX] = {};
    int32_t offset[OPERANDS_MAX] = {}; // of an address operand [base + offset]
    uint32_t target = 0;               // a branch's: an index in the function's code
    uint8_t width[OPERANDS_MAX] = {};  // bytes of a lane of each operand, where the table's row says x; 0: a sink
    uint32_t flip = 0;                 // bit i: operand i is a negated predicate
    uint8_t vector = 1;                // elements of v2, v4, v8
    uint8_t count = 0;                 // how many operands were given; those left out are sinks
    uint8_t order = 0;                 // bits of MemoryOrder
    const Form *form = nullptr;        // how it was written
};

// The registers that instructions see: a frame's. The rest of a warp is in warp.h.
class WarpRegisters {
  public:
    // The lanes of an operand. Writing to a sink's is allowed and has no effect.
    template <class T> T *lanes(Slot slot) const { return reinterpret_cast<T *>(frame_ + slot); }

    Mask predicate(const Instr &in, int operand) const {
        return *lanes<Mask>(in.at[operand]) ^ (in.flip >> operand & 1 ? ALL_LANES : 0);
    }

    // Sets the predicate's lanes of `active` and leaves the others.
    void set_predicate(const Instr &in, int operand, Mask value, Mask active) {
        Mask *p = lanes<Mask>(in.at[operand]);
        *p = (*p & ~active) | (value & active);
    }

    // The carry flag of add.cc and its like, a bit for each lane.
    Mask carry = 0;

  protected:
    uint8_t *frame_ = nullptr;
};

} // namespace vgpu

#endif
