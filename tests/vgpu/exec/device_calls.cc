// printf, assert, malloc and free in kernels.
#include "tests/vgpu/exec/device_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/memory.h"

namespace vgpu {
namespace {

// The local memory of the `index`-th argument or result of the call that is executed.
uint8_t *call_variable(Warp &warp, const Instr &in, bool is_result, size_t index, int lane, uint64_t bytes) {
    const ptx::Operand *lists[2] = {};
    for (const ptx::Operand &operand : in.form->source->operands) {
        if (operand.kind != ptx::Operand::Kind::list) continue;
        bool before_name = &operand == &in.form->source->operands[0];
        lists[before_name ? 0 : 1] = &operand;
    }
    const ptx::Operand *list = lists[is_result ? 0 : 1];
    if (list == nullptr || index >= list->parts.size()) return nullptr;
    const Frame &frame = warp.frame();
    uint64_t offset = frame.local_base + frame.code->variable_offsets[size_t(list->parts[index].index)];
    if (is_result) warp.block().mark_local_written(warp.thread(lane), offset, bytes);
    return warp.block().local_bytes(warp.thread(lane), offset, bytes);
}

uint64_t argument(Warp &warp, const Instr &in, size_t index, int lane, uint64_t bytes) {
    uint64_t value = 0;
    const uint8_t *from = call_variable(warp, in, false, index, lane, bytes);
    if (from == nullptr) throw Trap{Fault::illegal_instruction, "a call with too few arguments", lane};
    memcpy(&value, from, bytes);
    return value;
}

void set_result(Warp &warp, const Instr &in, int lane, const void *value, uint64_t bytes) {
    uint8_t *to = call_variable(warp, in, true, 0, lane, bytes);
    if (to != nullptr) memcpy(to, value, bytes);
}

std::string read_text(const Warp &warp, uint64_t address, int lane) {
    Reach reach;
    if (!memory_reach(warp.block().device(), address, &reach)) {
        throw Trap{Fault::illegal_address, "out-of-bounds global load: a string that is nowhere", lane};
    }
    const char *first = reinterpret_cast<const char *>(address + reach.to_host);
    return std::string(first, strnlen(first, reach.end - address));
}

// The arguments of a printf, one after the other, each aligned to its size, in the thread's local memory.
class Arguments {
  public:
    Arguments(Warp &warp, int lane, uint64_t address) : warp_(warp), lane_(lane), at_(address) {}

    template <class T> T next() {
        at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        uint64_t offset = at_ - memory_windows().local;
        const uint8_t *from = warp_.block().local_bytes(warp_.thread(lane_), offset, sizeof(T));
        if (from == nullptr) throw Trap{Fault::illegal_address, "printf has too few arguments", lane_};
        T value;
        memcpy(&value, from, sizeof value);
        at_ += sizeof(T);
        count_++;
        return value;
    }

    std::string next_text() { return read_text(warp_, next<uint64_t>(), lane_); }

    int32_t count() const { return count_; }

  private:
    Warp &warp_;
    int lane_;
    uint64_t at_;
    int32_t count_ = 0;
};

template <class T> std::string print_one(const std::string &conversion, T value) {
    int length = snprintf(nullptr, 0, conversion.c_str(), value);
    std::string text(size_t(std::max(length, 0)) + 1, '\0');
    snprintf(text.data(), text.size(), conversion.c_str(), value);
    text.pop_back();
    return text;
}

// "%-*.*" with the numbers that the asterisks stand for. A negative precision counts as none.
std::string with_numbers(const std::string &conversion, Arguments &arguments) {
    std::string text;
    for (char c : conversion) {
        if (c != '*') {
            text += c;
            continue;
        }
        int number = arguments.next<int32_t>();
        bool is_precision = text.back() == '.';
        if (is_precision && number < 0) {
            text.pop_back();
        } else {
            text += std::to_string(number);
        }
    }
    return text;
}

// One conversion, "%5.2f": its text, and where it ends.
std::string convert(const std::string &format, size_t *at, Arguments &arguments) {
    size_t end = format.find_first_not_of("0123456789.+-# *", *at + 1);
    if (end == std::string::npos) end = format.size();
    std::string conversion = with_numbers(format.substr(*at, end - *at), arguments), halves;
    int longs = 0;
    for (; end < format.size() && strchr("hlzjt", format[end]) != nullptr; end++) {
        longs += format[end] != 'h';
        if (format[end] == 'h') halves += 'h';
    }
    char letter = end < format.size() ? format[end] : '\0';
    *at = end + 1;
    if (strchr("diouxXc", letter) != nullptr && letter != '\0') {
        if (longs == 0) return print_one(conversion + halves + letter, arguments.next<uint32_t>());
        return print_one(conversion + "ll" + letter, arguments.next<unsigned long long>());
    }
    if (strchr("eEfFgGaA", letter) != nullptr && letter != '\0')
        return print_one(conversion + letter, arguments.next<double>());
    if (letter == 'p') return print_one(conversion + letter, reinterpret_cast<void *>(arguments.next<uint64_t>()));
    if (letter == 's') return print_one(conversion + letter, arguments.next_text().c_str());
    return letter == '%' ? "%" : conversion + (letter == '\0' ? std::string() : std::string(1, letter));
}

} // namespace

void device_printf(Warp &warp, const Instr &in, Mask active) {
    for (Mask left = active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        std::string format = read_text(warp, argument(warp, in, 0, lane, 8), lane), text;
        Arguments arguments(warp, lane, argument(warp, in, 1, lane, 8));
        for (size_t at = 0; at < format.size();) {
            if (format[at] == '%') {
                text += convert(format, &at, arguments);
            } else {
                text += format[at++];
            }
        }
        fwrite(text.data(), 1, text.size(), stdout);
        // By NVIDIA's manual the result is the number of arguments, unlike C's.
        int32_t count = arguments.count();
        set_result(warp, in, lane, &count, sizeof count);
    }
}

void device_assert(Warp &warp, const Instr &in, Mask active) {
    int lane = __builtin_ctz(active);
    std::string message = read_text(warp, argument(warp, in, 0, lane, 8), lane);
    std::string file = read_text(warp, argument(warp, in, 1, lane, 8), lane);
    uint64_t line = argument(warp, in, 2, lane, 4);
    throw Trap{Fault::assert_, "assertion `" + message + "` failed at " + file + ":" + std::to_string(line), lane};
}

void device_malloc(Warp &warp, const Instr &in, Mask active) {
    const int device = warp.block().kernel().module->device;
    for (Mask left = active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t bytes = argument(warp, in, 0, lane, 8);
        uint64_t address = bytes == 0 ? 0 : memory_alloc_heap(device, bytes, warp.block().config().heap_bytes);
        set_result(warp, in, lane, &address, sizeof address);
    }
}

void device_free(Warp &warp, const Instr &in, Mask active) {
    for (Mask left = active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t address = argument(warp, in, 0, lane, 8);
        if (address == 0) continue;
        Allocation found;
        bool is_heap = memory_find(address, &found) && found.base == address && found.kind == MemoryKind::heap;
        if (!is_heap || !memory_free(address)) {
            throw Trap{Fault::illegal_address, "free of something that malloc did not give", lane};
        }
    }
}

} // namespace vgpu
