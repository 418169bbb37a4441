// A decoded function, and the module that it belongs to.
#ifndef SHOAL_TESTS_VGPU_EXEC_CODE_H
#define SHOAL_TESTS_VGPU_EXEC_CODE_H

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/vgpu/engine.h"
#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/table.h"

namespace vgpu {

// What the frame of a function holds that differs between launches, blocks, warps or calls.
enum class Special : uint8_t {
    local_address, // + addend: where the frame's local memory begins
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    smid,
    nsmid,
    gridid,
    dynamic_smem_size,
    total_smem_size,
    dynamic_shared, // + addend: the offset of the dynamic shared memory
    workspace_low,  // of the workspace of a cooperative launch, 0 in others
    workspace_high,
    zero,
    one, // of a cluster of one block
};

struct Fill {
    Slot slot;
    uint8_t width; // bytes of a lane
    Special special;
    uint64_t addend;
};

constexpr uint64_t STACK_ALIGN = 16; // of frames, at least

// Local memory of a thread for the functions that a kernel calls.
struct CallStack {
    uint64_t bytes = 0;        // of those on the deepest way through the calls that name a function
    bool is_unbounded = false; // there is recursion, or a call through an address
};

// Parameters and results of a function that is called are in its local memory; a kernel's are in the launch.
struct Code {
    const ptx::Function *source = nullptr;
    Module *module = nullptr;
    std::vector<Instr> instrs;  // ends with a ret
    std::deque<Form> forms;     // of the instrs
    std::vector<uint8_t> image; // of a fresh frame
    std::vector<Fill> fills;
    uint64_t local_bytes = 0;               // of a frame, with parameters and results
    uint64_t local_align = STACK_ALIGN;     // of the frame
    uint64_t results_at = 0;                // in it; parameters are at 0
    std::vector<uint64_t> variable_offsets; // by index in source->variables: in local or in shared memory
    std::map<int, uint64_t> shared_offsets; // of the module's shared variables that it may use, by their index
    uint64_t static_shared_bytes = 0;
    uint64_t dynamic_shared_align = 16;
    bool names_shared = false; // shared variables of its own or the module's, of static size
    CallStack calls;           // a kernel's
};

struct Kernel {
    Module *module = nullptr;
    int function = 0; // index in the module's functions
    KernelInfo info;
};

struct Module {
    int device = 0;
    uint64_t code_base = 0; // the address of its first function
    std::unique_ptr<ptx::Module> source;
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<uint64_t> variables; // addresses, by index in source->variables; 0: shared or defined elsewhere

    // The decoded function, which is decoded when it is asked for first; null: it has no body. Throws ptx::Error.
    const Code *code(size_t function);

    uint64_t function_address(size_t function) const { return code_base + CODE_BYTES * function; }

  private:
    std::mutex mutex_;
    std::map<size_t, std::unique_ptr<Code>> codes_;
};

// The function of a loaded module of the device that has this address; null: there is none with a body. Throws
// ptx::Error.
const Code *code_at(int device, uint64_t address);

// Decodes a function of the module, whose variables have been placed. Throws ptx::Error.
std::unique_ptr<Code> decode(Module &module, const ptx::Function &function);

} // namespace vgpu

#endif
