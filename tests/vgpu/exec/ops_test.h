// Runs single operations of the instruction table, of the table compiled for each instruction set that the CPU has.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_TEST_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_TEST_H

#include <algorithm>
#include <random>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/table.h"

#define VGPU_TABLE(isa)                                                           \
    namespace vgpu::isa {                                                         \
    extern const Rows integer_rows, carry_rows, bits_rows, float_rows, half_rows; \
    extern const Rows compare_rows, move_rows, convert_rows, pack_rows;           \
    inline std::vector<Rows> table() {                                            \
        return {integer_rows, carry_rows, bits_rows,    float_rows, half_rows,    \
                compare_rows, move_rows,  convert_rows, pack_rows};               \
    }                                                                             \
    }
VGPU_TABLE(baseline)
VGPU_TABLE(v3)
VGPU_TABLE(v4)

namespace vgpu {

class Ops : public testing::TestWithParam<const char *> {
  protected:
    static constexpr int OPERAND_BYTES = 16 * LANES;
    static constexpr Slot FIRST_OPERAND = 64;

    // A warp of a block that executes nothing.
    struct Machine {
        ptx::Function function;
        Module module;
        Code code;
        Kernel kernel;
        LaunchState launch;
        Block home{prepare()};

      private:
        const LaunchState &prepare() {
            code.source = &function;
            kernel.module = &module;
            launch.kernel = &kernel;
            launch.code = &code;
            return launch;
        }
    };

    struct Frame : private Machine, public Warp {
        alignas(64) uint8_t bytes[FIRST_OPERAND + OPERANDS_MAX * OPERAND_BYTES] = {};
        Frame() : Warp(home, 0, ALL_LANES) { frame_ = bytes; }
    };

    void SetUp() override {
        const std::string isa = GetParam();
        if ((isa == "v3" && !__builtin_cpu_supports("x86-64-v3")) ||
            (isa == "v4" && !__builtin_cpu_supports("x86-64-v4")))
            GTEST_SKIP() << "this CPU does not have x86-64-" << isa;
        table_ = isa == "v4" ? v4::table() : isa == "v3" ? v3::table() : baseline::table();
    }

    template <class T> T *lanes(int operand) {
        return reinterpret_cast<T *>(frame_.bytes + FIRST_OPERAND + operand * OPERAND_BYTES);
    }
    Mask &predicate(int operand) { return *lanes<Mask>(operand); }

    // Numbers that are often small, or near the ends of the range.
    template <class T> void fill(int operand) {
        for (int l = 0; l < LANES; l++) {
            const uint64_t bits = random_(), kind = random_() % 8;
            lanes<T>(operand)[l] = (T)(kind == 0 ? bits % 4 : kind == 1 ? ~(bits % 4) : kind == 2 ? bits % 70 : bits);
            if (kind == 3) lanes<T>(operand)[l] = (T)(T{1} << (8 * sizeof(T) - 1));
        }
    }
    template <class T> void set(int operand, T value) { std::fill_n(lanes<T>(operand), LANES, value); }

    // Executes "add.rn.f32" on operands of so many bytes, predicates having 0.
    void execute(const std::string &opcode, const std::vector<int> &widths, Mask active = ALL_LANES) {
        Form form;
        ptx::Instruction source;
        ptx::Function function;
        describe_operands(widths, opcode, source, function);
        form.source = &source;
        form.function = &function;
        Instr in;
        ASSERT_LE(widths.size(), size_t{OPERANDS_MAX});
        for (size_t i = 0; i < OPERANDS_MAX && i < widths.size(); i++) { // gcc does not see the bound above
            in.at[i] = FIRST_OPERAND + (Slot)i * OPERAND_BYTES;
            in.width[i] = (uint8_t)widths[i];
        }
        in.count = (uint8_t)widths.size();
        in.flip = flip_;
        in.form = &form;
        const vgpu::Run run = find(opcode, form);
        ASSERT_NE(run, nullptr) << opcode;
        frame_.carry = carry_;
        run(frame_, in, active);
        carry_ = frame_.carry;
    }

    std::vector<Rows> table_;
    Frame frame_;
    Mask carry_ = 0;
    uint32_t flip_ = 0;
    std::mt19937_64 random_{20261};

  private:
    static std::vector<std::string> split(const std::string &text, char separator) {
        std::vector<std::string> parts;
        std::istringstream stream(text);
        for (std::string part; std::getline(stream, part, separator);)
            parts.push_back(part);
        return parts;
    }

    // The row whose modifiers are those of the opcode, in order.
    vgpu::Run find(const std::string &opcode, Form &form) {
        static std::vector<std::string> words; // the form's views point into them
        words = split(opcode, '.');
        for (const Rows &rows : table_) {
            for (const Row *row = rows.first; row < rows.first + rows.count; row++) {
                if (words[0] != row->name || !matches(row->modifiers, words, form) || !has_braces(*row, *form.source))
                    continue;
                form.row = row;
                if (const vgpu::Run run = row->select(form)) return run;
            }
        }
        return nullptr;
    }

    static bool matches(const char *modifiers, const std::vector<std::string> &words, Form &form) {
        form.words.clear();
        size_t next = 1, types = 0;
        for (std::string pattern : split(modifiers, ' ')) {
            const bool is_optional = pattern.back() == '?';
            if (is_optional) pattern.pop_back();
            const std::vector<std::string> alternatives = split(pattern, '|');
            if (next == words.size() || std::count(alternatives.begin(), alternatives.end(), words[next]) == 0) {
                if (!is_optional) return false;
                continue;
            }
            const ptx::Type type = ptx::type_named(words[next]);
            if (type != ptx::Type::none)
                form.types[types++] = type;
            else
                form.words.push_back(words[next]);
            next++;
        }
        return next == words.size();
    }

    // Whether the row has braces where the operands have them.
    static bool has_braces(const Row &row, const ptx::Instruction &source) {
        const std::vector<std::string> patterns = split(row.operands, ' ');
        for (size_t i = 0; i < source.operands.size(); i++)
            if ((source.operands[i].kind == ptx::Operand::Kind::vector) !=
                (i < patterns.size() && patterns[i] == "{x}"))
                return false;
        return true;
    }

    // Registers of these widths; the operands of a mov that are narrower than the widest are in braces.
    static void describe_operands(const std::vector<int> &widths, const std::string &opcode, ptx::Instruction &source,
                                  ptx::Function &function) {
        const int widest = *std::max_element(widths.begin(), widths.end());
        ptx::Operand braces;
        braces.kind = ptx::Operand::Kind::vector;
        for (size_t i = 0; i < widths.size(); i++) {
            ptx::Operand operand;
            operand.kind = ptx::Operand::Kind::reg;
            operand.index = (int)i;
            function.registers.push_back({"%r", bits_of(widths[i])});
            const bool is_in_braces = opcode.rfind("mov", 0) == 0 && widths[i] < widest;
            (is_in_braces ? braces.parts : source.operands).push_back(operand);
        }
        if (!braces.parts.empty())
            source.operands.insert(widths[0] == widest ? source.operands.end() : source.operands.begin(), braces);
    }

    static ptx::Type bits_of(int bytes) {
        return bytes == 0   ? ptx::Type::pred
               : bytes == 1 ? ptx::Type::b8
               : bytes == 2 ? ptx::Type::b16
               : bytes == 4 ? ptx::Type::b32
               : bytes == 8 ? ptx::Type::b64
                            : ptx::Type::b128;
    }
};

} // namespace vgpu

#endif
