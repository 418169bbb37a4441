// Runs the cases that generate.py wrote, each form of an instruction as a kernel, and compares every result with the
// reference's. The kernels and the file of cases are described in generate.py.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "tests/vgpu/conformance/ptx_test.h"

namespace {

constexpr uint32_t BLOCK_THREADS = 64;
constexpr int FAILURES_SHOWN = 5;                  // of each form
constexpr uint64_t INACTIVE = ~0ull / 0xFF * 0xA5; // what a lane that did not execute the instruction leaves

std::filesystem::path cases_folder() {
    const char *folder = getenv("SHOAL_CONFORMANCE_CASES");
    return folder != nullptr ? folder : SHOAL_CONFORMANCE_CASES;
}

// ---- the file of cases ----

enum class Order : uint64_t { bits, f16, bf16, f32, f64 };

struct Result {
    uint64_t bits;
    Order order;
};

struct Range {
    uint64_t low, high;
};

struct FormCases {
    std::string text;
    uint64_t cases = 0, operand_count = 0;
    std::vector<Result> results;
    std::vector<uint64_t> operands; // of case i: operand_count from i * operand_count
    std::vector<Range> expected;    // of case i: results.size() from i * results.size()
};

class CaseFile {
  public:
    explicit CaseFile(const std::filesystem::path &path) : in_(path, std::ios::binary) {
        in_.exceptions(std::ios::failbit | std::ios::badbit | std::ios::eofbit);
        if (read_text(8) != "VGPUCASE") throw std::runtime_error(path.string() + " is no file of cases");
    }

    std::vector<FormCases> read_forms() {
        std::vector<FormCases> forms(read_number());
        for (FormCases &form : forms)
            read_form(&form);
        return forms;
    }

  private:
    void read_form(FormCases *form) {
        form->text = read_text(read_number());
        form->cases = read_number();
        form->operand_count = read_number();
        form->results.resize(read_number());
        for (Result &result : form->results) {
            result.bits = read_number();
            result.order = static_cast<Order>(read_number());
        }
        for (uint64_t i = 0; i < form->cases; i++) {
            for (uint64_t k = 0; k < form->operand_count; k++)
                form->operands.push_back(read_number());
            for (size_t k = 0; k < form->results.size(); k++) {
                uint64_t low = read_number();
                form->expected.push_back({low, read_number()});
            }
        }
    }

    uint64_t read_number() {
        uint8_t bytes[8];
        in_.read(reinterpret_cast<char *>(bytes), 8);
        uint64_t number = 0;
        for (int i = 7; i >= 0; i--)
            number = number << 8 | bytes[i];
        return number;
    }

    std::string read_text(uint64_t bytes) {
        std::string text(bytes, '\0');
        in_.read(text.data(), static_cast<std::streamsize>(bytes));
        return text;
    }

    std::ifstream in_;
};

// ---- comparison ----

struct FloatFormat {
    int bits;
    uint64_t infinity;
    uint64_t sign_bit() const { return uint64_t{1} << (bits - 1); }
    bool is_nan(uint64_t pattern) const { return (pattern & ~sign_bit()) > infinity; }

    // Grows with the number; -0 is just below +0.
    int64_t order(uint64_t pattern) const {
        auto magnitude = static_cast<int64_t>(pattern & ~sign_bit());
        return pattern & sign_bit() ? -1 - magnitude : magnitude;
    }
};

FloatFormat format_of(Order order) {
    switch (order) {
    case Order::f16:
        return {16, 0x7C00};
    case Order::bf16:
        return {16, 0x7F80};
    case Order::f32:
        return {32, 0x7F800000};
    default:
        return {64, 0x7FF0000000000000};
    }
}

bool is_expected(uint64_t got, const Range &range, Order order) {
    if (range.low == range.high) return got == range.low;
    if (order == Order::bits) return range.low <= got && got <= range.high;
    FloatFormat format = format_of(order);
    if (format.is_nan(range.low)) return format.is_nan(got);
    return !format.is_nan(got) && format.order(range.low) <= format.order(got) &&
           format.order(got) <= format.order(range.high);
}

TEST(Comparison, RangesOfNumbers) {
    const uint64_t one = 0x3F800000, minus_zero = 0x80000000, nan = 0x7FFFFFFF;
    EXPECT_TRUE(is_expected(one, {one, one}, Order::f32));
    EXPECT_FALSE(is_expected(one + 1, {one, one}, Order::f32));
    EXPECT_TRUE(is_expected(one + 1, {one, one + 1}, Order::f32));
    EXPECT_FALSE(is_expected(one + 2, {one, one + 1}, Order::f32));
    EXPECT_FALSE(is_expected(nan, {one, one + 1}, Order::f32));
    EXPECT_FALSE(is_expected(minus_zero, {0, one}, Order::f32));
    EXPECT_TRUE(is_expected(minus_zero, {minus_zero, one}, Order::f32));
    EXPECT_TRUE(is_expected(minus_zero | 1, {minus_zero | 2, minus_zero}, Order::f32));
    EXPECT_TRUE(is_expected(0xFFC00000, {0x7F800001, nan}, Order::f32));
    EXPECT_FALSE(is_expected(one, {0x7F800001, nan}, Order::f32));
    EXPECT_FALSE(is_expected(nan - 1, {nan, nan}, Order::f32));
    EXPECT_TRUE(is_expected(minus_zero, {0, ~0ull}, Order::bits));
}

// ---- running ----

std::string hex(uint64_t value) {
    std::ostringstream out;
    out << "0x" << std::hex << value;
    return out.str();
}

uint64_t inactive_result(const Result &result) { return result.bits == 1 ? 1 : INACTIVE >> (64 - result.bits); }

std::string describe(const FormCases &form, uint64_t i, size_t k, uint64_t got, const Range &range) {
    std::string text = "case " + std::to_string(i) + ": operands";
    for (uint64_t operand = 0; operand < form.operand_count; operand++)
        text += " " + hex(form.operands[i * form.operand_count + operand]);
    text += ", result " + std::to_string(k) + " is " + hex(got) + ", expected " + hex(range.low);
    return range.low == range.high ? text : text + " to " + hex(range.high);
}

std::vector<std::string> instruction_names() {
    std::vector<std::string> names;
    if (std::filesystem::is_directory(cases_folder())) {
        for (const auto &entry : std::filesystem::directory_iterator(cases_folder())) {
            if (entry.path().extension() == ".cases") names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

class Conformance : public testing::TestWithParam<std::string>, protected PtxTestBase {
  protected:
    void SetUp() override { require_device(); }
    void TearDown() override { unload(); }

    // Lanes that `lanes` leaves out must be left as they were.
    void run_form(const FormCases &form, size_t number, uint32_t lanes) {
        SCOPED_TRACE(form.text);
        DeviceArray<uint64_t> operands(form.operands), results(form.cases * form.results.size());
        auto blocks = static_cast<unsigned>(form.cases / BLOCK_THREADS);
        launch("form_" + std::to_string(number), {blocks}, {BLOCK_THREADS}, 0, operands.data(), results.data(), lanes);
        if (HasFatalFailure()) return;
        compare(form, results.read(), lanes);
    }

    void compare(const FormCases &form, const std::vector<uint64_t> &got, uint32_t lanes) {
        std::string failures;
        int count = 0;
        for (uint64_t i = 0; i < form.cases; i++) {
            bool is_active = (lanes >> i % 32 & 1) != 0;
            for (size_t k = 0; k < form.results.size(); k++) {
                size_t at = i * form.results.size() + k;
                const Result &result = form.results[k];
                uint64_t unchanged = inactive_result(result);
                Range range = is_active ? form.expected[at] : Range{unchanged, unchanged};
                if (is_expected(got[at], range, result.order)) continue;
                if (count++ < FAILURES_SHOWN) {
                    failures += "\n  " + describe(form, i, k, got[at], range) + (is_active ? "" : " (inactive lane)");
                }
            }
        }
        EXPECT_EQ(count, 0) << "lanes " << hex(lanes) << failures;
    }
};

TEST_P(Conformance, Instruction) {
    std::filesystem::path base = cases_folder() / GetParam();
    std::ifstream in(base.string() + ".ptx");
    std::stringstream ptx;
    ptx << in.rdbuf();
    std::vector<FormCases> forms = CaseFile(base.string() + ".cases").read_forms();
    ASSERT_FALSE(forms.empty());
    load(ptx.str());
    TestRandom random(20240607);
    for (size_t i = 0; i < forms.size(); i++) {
        ASSERT_EQ(forms[i].cases % BLOCK_THREADS, 0u);
        for (uint32_t lanes : {0xFFFFFFFF, random.bits32() | 1}) { // a kernel that no lane executes would show nothing
            run_form(forms[i], i, lanes);
            if (HasFatalFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ptx, Conformance, testing::ValuesIn(instruction_names()),
                         [](const auto &parameter) { return parameter.param; });

// The cases are generated by the build: without them there would be nothing to fail.
TEST(Cases, AreThere) { EXPECT_GT(instruction_names().size(), 50u) << cases_folder(); }

} // namespace
