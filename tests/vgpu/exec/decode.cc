// Decodes a function: gives every operand a place in the frame and every instruction the function that executes it.
#include <algorithm>
#include <cstring>
#include <map>

#include "tests/vgpu/exec/code.h"
#include "tests/vgpu/exec/layout.h"
#include "tests/vgpu/exec/match.h"
#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/order.h"

namespace vgpu {
namespace {

using Kind = ptx::Operand::Kind;
using ptx::Type;

constexpr size_t REGISTER_ALIGN = 64;
constexpr size_t SINK_BYTES = 16 * LANES; // of the widest register
constexpr Slot SLOT_SINK_PREDICATE = 4;   // SLOT_TRUE is before it

const std::map<std::string_view, Special> &special_registers() {
    static const std::map<std::string_view, Special> names = {
        {"%tid.x", Special::tid_x},
        {"%tid.y", Special::tid_y},
        {"%tid.z", Special::tid_z},
        {"%ntid.x", Special::ntid_x},
        {"%ntid.y", Special::ntid_y},
        {"%ntid.z", Special::ntid_z},
        {"%ctaid.x", Special::ctaid_x},
        {"%ctaid.y", Special::ctaid_y},
        {"%ctaid.z", Special::ctaid_z},
        {"%nctaid.x", Special::nctaid_x},
        {"%nctaid.y", Special::nctaid_y},
        {"%nctaid.z", Special::nctaid_z},
        {"%laneid", Special::laneid},
        {"%warpid", Special::warpid},
        {"%nwarpid", Special::nwarpid},
        {"%lanemask_eq", Special::lanemask_eq},
        {"%lanemask_le", Special::lanemask_le},
        {"%lanemask_lt", Special::lanemask_lt},
        {"%lanemask_ge", Special::lanemask_ge},
        {"%lanemask_gt", Special::lanemask_gt},
        {"%smid", Special::smid},
        {"%nsmid", Special::nsmid},
        {"%gridid", Special::gridid},
        {"%envreg1", Special::workspace_high},
        {"%envreg2", Special::workspace_low},
        {"%is_explicit_cluster", Special::zero},
        {"%dynamic_smem_size", Special::dynamic_smem_size},
        {"%total_smem_size", Special::total_smem_size},
        {"%aggr_smem_size", Special::total_smem_size},
        {"%clusterid.x", Special::ctaid_x},
        {"%clusterid.y", Special::ctaid_y},
        {"%clusterid.z", Special::ctaid_z},
        {"%nclusterid.x", Special::nctaid_x},
        {"%nclusterid.y", Special::nctaid_y},
        {"%nclusterid.z", Special::nctaid_z},
        {"%cluster_ctaid.x", Special::zero},
        {"%cluster_ctaid.y", Special::zero},
        {"%cluster_ctaid.z", Special::zero},
        {"%cluster_nctaid.x", Special::one},
        {"%cluster_nctaid.y", Special::one},
        {"%cluster_nctaid.z", Special::one},
        {"%cluster_ctarank", Special::zero},
        {"%cluster_nctarank", Special::one},
    };
    return names;
}

bool is_clock(const std::string &name) { return name.rfind("%clock", 0) == 0 || name.rfind("%globaltimer", 0) == 0; }

[[noreturn]] void fail(const ptx::Instruction &source, const std::string &what) {
    throw ptx::Error("PTX line " + std::to_string(source.line) + ": " + what + ": " + source.text);
}

// The bits of an immediate as a value of a type; false: it cannot be one.
bool immediate_bits(const ptx::Operand &operand, Type type, uint64_t *bits) {
    if (operand.kind == Kind::integer) {
        *bits = operand.value;
        return !ptx::is_floating(type) || operand.value == 0;
    }
    size_t bytes = ptx::type_bytes(type);
    if (operand.type == Type::f64 && bytes == 4 && type == Type::f32) {
        double value;
        memcpy(&value, &operand.value, sizeof value);
        float narrow = float(value);
        uint32_t narrow_bits;
        memcpy(&narrow_bits, &narrow, sizeof narrow);
        *bits = narrow_bits;
        return true;
    }
    *bits = operand.value;
    return ptx::type_bytes(operand.type) == bytes;
}

// The frame of a function as it grows while its instructions are decoded.
class FrameLayout {
  public:
    explicit FrameLayout(Code &code) : code_(code) {
        Slot next = SLOT_SINK_PREDICATE + sizeof(Mask);
        for (const ptx::Register &reg : code.source->registers) {
            slots_.push_back(next);
            if (reg.type == Type::pred) next += Slot(sizeof(Mask));
        }
        size_t end = next;
        sink_ = place(&end, SINK_BYTES);
        for (size_t i = 0; i < slots_.size(); i++) {
            Type type = code.source->registers[i].type;
            if (type != Type::pred) slots_[i] = place(&end, size_t{width(type)} * LANES);
        }
        code.image.assign(end, 0);
        Mask all = ALL_LANES;
        memcpy(code.image.data() + SLOT_TRUE, &all, sizeof all);
    }

    // Bytes of a lane.
    static uint8_t width(Type type) { return uint8_t(ptx::type_bytes(type)); }

    Slot reg(int index) const { return slots_[size_t(index)]; }
    Slot sink() const { return sink_; }

    Slot constant(uint64_t bits, uint8_t width) {
        auto [at, is_new] = constants_.try_emplace({bits, width}, 0);
        if (!is_new) return at->second;
        at->second = grow(size_t(width) * LANES);
        for (int l = 0; l < LANES; l++) {
            memcpy(code_.image.data() + at->second + size_t(l) * width, &bits, std::min<size_t>(width, sizeof bits));
        }
        return at->second;
    }

    Slot predicate(bool value) {
        auto [at, is_new] = constants_.try_emplace({value, 0}, 0);
        if (is_new) at->second = grow(sizeof(Mask));
        Mask mask = value ? ALL_LANES : 0;
        memcpy(code_.image.data() + at->second, &mask, sizeof mask);
        return at->second;
    }

    Slot special(Special special, uint8_t width, uint64_t addend) {
        auto [at, is_new] = specials_.try_emplace({int(special), width, addend}, 0);
        if (is_new) {
            at->second = grow(size_t(width) * LANES);
            code_.fills.push_back({at->second, width, special, addend});
        }
        return at->second;
    }

  private:
    static Slot place(size_t *end, size_t bytes) {
        size_t at = (*end + REGISTER_ALIGN - 1) / REGISTER_ALIGN * REGISTER_ALIGN;
        *end = at + bytes;
        return Slot(at);
    }

    Slot grow(size_t bytes) {
        size_t end = code_.image.size();
        Slot at = place(&end, bytes);
        code_.image.resize(end);
        return at;
    }

    Code &code_;
    std::vector<Slot> slots_; // of registers
    Slot sink_ = 0;
    std::map<std::pair<uint64_t, uint8_t>, Slot> constants_;
    std::map<std::tuple<int, uint8_t, uint64_t>, Slot> specials_;
};

// Decodes one instruction with one row.
class Matcher {
  public:
    Matcher(Code &code, FrameLayout &frame, const ptx::Instruction &source, const RowPattern &pattern, Form &form)
        : code_(code), frame_(frame), source_(source), pattern_(pattern), form_(form) {}

    // False: the instruction's operands are not those of the row.
    bool operands(Instr *in) {
        in_ = in;
        for (Slot &slot : in->at)
            slot = frame_.sink();
        size_t given = 0;
        for (const OperandPattern &pattern : pattern_.operands) {
            if (pattern.kind == OperandPattern::Kind::call) return call();
            if (given == source_.operands.size()) {
                if (!pattern.is_optional) return false;
                skip(pattern);
                continue;
            }
            if (!operand(pattern, source_.operands[given])) return false;
            given++;
            in->count = next_;
        }
        std::copy(std::begin(in->width), std::end(in->width), std::begin(form_.widths));
        return given == source_.operands.size();
    }

  private:
    bool operand(const OperandPattern &pattern, const ptx::Operand &operand) {
        using Pattern = OperandPattern::Kind;
        switch (pattern.kind) {
        case Pattern::typed:
            return typed(operand, type_of(pattern), pattern.is_double);
        case Pattern::any:
            return any(operand, Type::none);
        case Pattern::predicate:
            return predicate(operand);
        case Pattern::typed_pair:
            return pair(operand, [&](const ptx::Operand &o) { return typed(o, type_of(pattern), false); });
        case Pattern::predicate_pair:
            return pair(operand, [&](const ptx::Operand &o) { return predicate(o); });
        case Pattern::address:
            return address(operand);
        case Pattern::vector:
            return vector(operand);
        case Pattern::braces:
            return braces(operand);
        case Pattern::clock:
            return operand.kind == Kind::special && is_clock(operand.name) && put(frame_.sink(), 0);
        case Pattern::call:
            break;
        }
        return false;
    }

    Type type_of(const OperandPattern &pattern) const {
        return pattern.form_type < 0 ? pattern.fixed : form_.types[pattern.form_type];
    }

    void skip(const OperandPattern &pattern) {
        put(pattern.kind == OperandPattern::Kind::predicate ? SLOT_SINK_PREDICATE : frame_.sink(), 0);
    }

    bool put(Slot slot, uint8_t width) {
        if (next_ >= OPERANDS_MAX) return false;
        in_->at[next_] = slot;
        in_->width[next_] = width;
        next_++;
        return true;
    }

    bool typed(const ptx::Operand &operand, Type type, bool is_double) {
        if (type == Type::pred) return predicate(operand);
        size_t bytes = ptx::type_bytes(type) * (is_double ? 2 : 1);
        uint64_t bits;
        switch (operand.kind) {
        case Kind::reg: {
            Type reg = code_.source->registers[size_t(operand.index)].type;
            return reg != Type::pred && FrameLayout::width(reg) == bytes &&
                   put(frame_.reg(operand.index), uint8_t(bytes));
        }
        case Kind::integer:
        case Kind::floating:
            return immediate_bits(operand, type, &bits) && put(frame_.constant(bits, uint8_t(bytes)), uint8_t(bytes));
        case Kind::special:
            return special(operand, uint8_t(bytes));
        case Kind::symbol:
            return bytes >= 4 && symbol(operand, uint8_t(bytes));
        case Kind::sink:
            return put(frame_.sink(), uint8_t(bytes));
        default:
            return false;
        }
    }

    // `type`: what an immediate is; none: as wide as it is written.
    bool any(const ptx::Operand &operand, Type type) {
        uint64_t bits = operand.value;
        switch (operand.kind) {
        case Kind::reg: {
            Type reg = code_.source->registers[size_t(operand.index)].type;
            return reg != Type::pred && put(frame_.reg(operand.index), FrameLayout::width(reg));
        }
        case Kind::integer:
        case Kind::floating: {
            if (type != Type::none && !immediate_bits(operand, type, &bits)) return false;
            Type natural = operand.kind == Kind::integer ? Type::b64 : operand.type;
            uint8_t width = FrameLayout::width(type == Type::none ? natural : type);
            return put(frame_.constant(bits, width), width);
        }
        case Kind::special:
            return special(operand, operand.name == "%gridid" ? 8 : 4);
        case Kind::symbol:
            return symbol(operand, 8);
        case Kind::sink:
            return put(frame_.sink(), 0);
        default:
            return false;
        }
    }

    bool predicate(const ptx::Operand &operand) {
        if (operand.kind == Kind::sink) return put(SLOT_SINK_PREDICATE, 0);
        if (operand.kind == Kind::integer) return put(frame_.predicate(operand.value != 0), 0);
        if (operand.kind != Kind::reg || code_.source->registers[size_t(operand.index)].type != Type::pred)
            return false;
        if (operand.negated) in_->flip |= uint32_t{1} << next_;
        return put(frame_.reg(operand.index), 0);
    }

    template <class First> bool pair(const ptx::Operand &operand, First &&first) {
        if (operand.kind == Kind::pair) return first(operand.parts[0]) && predicate(operand.parts[1]);
        return first(operand) && put(SLOT_SINK_PREDICATE, 0);
    }

    bool special(const ptx::Operand &operand, uint8_t width) {
        auto found = special_registers().find(operand.name);
        return found != special_registers().end() && put(frame_.special(found->second, width, 0), width);
    }

    bool symbol(const ptx::Operand &operand, uint8_t width) {
        const ptx::Function &function = *code_.source;
        size_t index = size_t(operand.index);
        const Windows &windows = memory_windows();
        auto local = [&](uint64_t offset) {
            return put(frame_.special(Special::local_address, width, offset + operand.value), width);
        };
        switch (operand.symbol) {
        case ptx::SymbolKind::variable:
            if (function.variables[index].space != ptx::Space::shared) return local(code_.variable_offsets[index]);
            if (function.variables[index].is_extern)
                return put(frame_.special(Special::dynamic_shared, width, operand.value), width);
            return put(frame_.constant(code_.variable_offsets[index] + operand.value, width), width);
        case ptx::SymbolKind::parameter:
            if (!function.is_entry) return local(function.parameters[index].offset);
            return put(frame_.constant(windows.param + function.parameters[index].offset + operand.value, width),
                       width);
        case ptx::SymbolKind::result:
            return local(code_.results_at + function.results[index].offset);
        case ptx::SymbolKind::function:
            return put(frame_.constant(code_.module->function_address(index), width), width);
        case ptx::SymbolKind::module_variable:
            break;
        }
        const ptx::Variable &variable = code_.module->source->variables[index];
        if (variable.space == ptx::Space::shared) {
            if (variable.is_extern) return put(frame_.special(Special::dynamic_shared, width, operand.value), width);
            return put(frame_.constant(code_.shared_offsets.at(operand.index) + operand.value, width), width);
        }
        if (variable.is_extern) fail(source_, "the variable " + variable.name + " is defined nowhere");
        return put(frame_.constant(code_.module->variables[index] + operand.value, width), width);
    }

    bool address(const ptx::Operand &operand) {
        if (operand.kind != Kind::address) return false;
        in_->offset[next_] = int32_t(operand.value);
        if (uint64_t(in_->offset[next_]) != operand.value) fail(source_, "an offset of more than 32 bits");
        ptx::Operand base = operand.parts[0];
        if (base.kind == Kind::symbol) return symbol(base, 8);
        if (base.kind == Kind::integer) return put(frame_.constant(base.value, 8), 8);
        if (base.kind != Kind::reg) return false;
        size_t bytes = ptx::type_bytes(code_.source->registers[size_t(base.index)].type);
        return (bytes == 4 || bytes == 8) && put(frame_.reg(base.index), uint8_t(bytes));
    }

    bool elements(const ptx::Operand &operand, Type type) {
        for (const ptx::Operand &part : operand.parts) {
            if (!any(part, type)) return false;
        }
        return true;
    }

    // The parts of a value of the form's type.
    bool braces(const ptx::Operand &operand) {
        if (operand.kind != Kind::vector) return false;
        size_t bytes = ptx::type_bytes(form_.type()) / operand.parts.size();
        return elements(operand, bytes <= 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64);
    }

    bool vector(const ptx::Operand &operand) {
        size_t count = form_.has("v8") ? 8 : form_.has("v4") ? 4 : form_.has("v2") ? 2 : 1;
        in_->vector = uint8_t(count);
        if (operand.kind == Kind::vector) return operand.parts.size() == count && elements(operand, form_.type());
        return count == 1 && any(operand, form_.type());
    }

    // A call's operands stay as they are; the address of a function in a register is the first slot.
    bool call() {
        for (const ptx::Operand &operand : source_.operands) {
            if (operand.kind == Kind::reg) return put(frame_.reg(operand.index), 8);
        }
        return true;
    }

    Code &code_;
    FrameLayout &frame_;
    const ptx::Instruction &source_;
    const RowPattern &pattern_;
    Form &form_;
    Instr *in_ = nullptr;
    uint8_t next_ = 0;
};

// False: the row is another instruction's.
bool decode_with(Code &code, FrameLayout &frame, const ptx::Instruction &source, const RowPattern &pattern,
                 WordOrder order, Instr *in) {
    Form form;
    if (!match_modifiers(pattern, source.opcode, order, &form)) return false;
    form.row = pattern.row;
    form.source = &source;
    form.function = code.source;
    if (!Matcher(code, frame, source, pattern, form).operands(in)) return false;
    in->run = pattern.row->select(form);
    if (in->run == nullptr) return false;
    in->order = memory_order(form);
    code.forms.push_back(form);
    in->form = &code.forms.back();
    return true;
}

Instr decode_instruction(Code &code, FrameLayout &frame, const ptx::Instruction &source) {
    const std::vector<RowPattern> *rows = rows_named(source.opcode[0]);
    if (rows == nullptr) fail(source, "the instruction is not known");
    for (WordOrder order : {WordOrder::manual, WordOrder::any}) {
        for (const RowPattern &pattern : *rows) {
            Instr in;
            if (!decode_with(code, frame, source, pattern, order, &in)) continue;
            if (source.guard >= 0) {
                in.guard = frame.reg(source.guard);
                in.guard_flip = source.guard_negated ? ALL_LANES : 0;
            }
            if (!source.targets.empty()) in.target = uint32_t(source.targets[0]);
            return in;
        }
    }
    fail(source, "this form of the instruction is not known");
}

} // namespace

std::unique_ptr<Code> decode(Module &module, const ptx::Function &function) {
    static const ptx::Instruction END = [] {
        ptx::Instruction end;
        end.opcode = {"ret"};
        end.text = "ret";
        return end;
    }();
    if (!function.error.empty()) throw ptx::Error(function.error);
    const uint32_t *cluster = function.required_cluster;
    if (cluster[0] > 0 && uint64_t{cluster[0]} * cluster[1] * cluster[2] != 1) {
        throw ptx::Error("PTX line " + std::to_string(function.line) + ": clusters of blocks are not known");
    }
    auto code = std::make_unique<Code>();
    code->source = &function;
    code->module = &module;
    place_variables(module, function, *code);
    if (function.is_entry) code->calls = call_stack(*module.source, function);
    FrameLayout frame(*code);
    code->instrs.reserve(function.code.size() + 1);
    for (const ptx::Instruction &source : function.code)
        code->instrs.push_back(decode_instruction(*code, frame, source));
    code->instrs.push_back(decode_instruction(*code, frame, END));
    return code;
}

} // namespace vgpu
