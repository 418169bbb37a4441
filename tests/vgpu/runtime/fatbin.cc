// A container is a header of 16 bytes (magic, version, header's size, size of the rest) and a row of entries; each has
// a header with its kind, its sizes and its architecture, and a payload, compressed or not.
#include "tests/vgpu/runtime/fatbin.h"

#include <algorithm>
#include <cstring>
#include <zstd.h>

namespace vgpu {
namespace {

constexpr uint32_t CONTAINER_MAGIC = 0xba55ed50, WRAPPER_MAGIC = 0x466243b1, ELF_MAGIC = 0x464c457f;
constexpr uint32_t WRAPPER_TO_LINK = 2; // its version where nvcc's linker made it, of -rdc=true
constexpr uint64_t CONTAINER_HEADER_BYTES = 16;
constexpr uint16_t ENTRY_PTX = 1;
constexpr uint64_t FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000;

template <typename T> T read_at(const uint8_t *from, size_t offset) {
    T value;
    memcpy(&value, from + offset, sizeof value);
    return value;
}

struct Entry {
    uint16_t kind;
    uint32_t header_bytes, compressed_bytes, capability;
    uint64_t payload_bytes, flags, unpacked_bytes;
    const uint8_t *payload;
};

// The entries, in order. A container that is cut short or of another format gives an error.
std::vector<Entry> read_entries(const uint8_t *container, std::string *error) {
    std::vector<Entry> entries;
    uint64_t header_bytes = read_at<uint16_t>(container, 6);
    const uint8_t *at = container + header_bytes;
    const uint8_t *end = at + read_at<uint64_t>(container, 8);
    while (at < end) {
        Entry entry{};
        entry.kind = read_at<uint16_t>(at, 0);
        entry.header_bytes = read_at<uint32_t>(at, 4);
        entry.payload_bytes = read_at<uint64_t>(at, 8);
        entry.compressed_bytes = read_at<uint32_t>(at, 16);
        entry.capability = read_at<uint32_t>(at, 28);
        entry.flags = read_at<uint64_t>(at, 40);
        entry.unpacked_bytes = read_at<uint64_t>(at, 56);
        entry.payload = at + entry.header_bytes;
        uint64_t left = static_cast<uint64_t>(end - at);
        if (entry.header_bytes < 64 || entry.header_bytes > left || entry.payload_bytes > left - entry.header_bytes) {
            *error = "the fat binary is damaged";
            return {};
        }
        entries.push_back(entry);
        at = entry.payload + entry.payload_bytes;
    }
    return entries;
}

// Texts may end with zeros, which pad them.
std::string trimmed(std::string text) {
    text.resize(strnlen(text.data(), text.size()));
    return text;
}

std::string unpack(const Entry &entry, std::string *error) {
    if ((entry.flags & FLAG_ZSTD) != 0) {
        std::string text(entry.unpacked_bytes, '\0');
        size_t got = ZSTD_decompress(text.data(), text.size(), entry.payload, entry.compressed_bytes);
        if (ZSTD_isError(got) == 0 && got == text.size()) return trimmed(text);
        *error = "the fat binary's PTX does not unpack (zstd)";
        return "";
    }
    if ((entry.flags & FLAG_LZ4) != 0) {
        std::string text;
        if (lz4_unpack(entry.payload, entry.compressed_bytes, entry.unpacked_bytes, &text)) return trimmed(text);
        *error = "the fat binary's PTX does not unpack (LZ4)";
        return "";
    }
    return trimmed(std::string(reinterpret_cast<const char *>(entry.payload), entry.payload_bytes));
}

std::string capability_text(int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::string container_ptx(const uint8_t *container, int capability, std::string *error) {
    std::vector<Entry> entries = read_entries(container, error);
    if (!error->empty()) return "";
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry &a, const Entry &b) { return a.capability > b.capability; });
    // Of one architecture, the text for it alone is ahead of the portable one.
    std::string portable;
    uint32_t portable_capability = 0;
    for (const Entry &entry : entries) {
        if (entry.kind != ENTRY_PTX || entry.capability > static_cast<uint32_t>(capability)) continue;
        if (!portable.empty() && entry.capability != portable_capability) break;
        std::string text = unpack(entry, error);
        if (!error->empty()) return "";
        std::string target = ptx_target(text);
        if (!target_fits(target, capability)) continue;
        bool is_portable = target.back() >= '0' && target.back() <= '9';
        if (!is_portable) return text;
        if (portable.empty()) portable = text, portable_capability = entry.capability;
    }
    if (portable.empty()) {
        *error = "no PTX for compute capability " + capability_text(capability) +
                 " in this program; compile with code=compute_" + std::to_string(capability);
    }
    return portable;
}

} // namespace

ImageKind image_kind(const void *image) {
    const auto *bytes = static_cast<const uint8_t *>(image);
    // Text may be shorter than a magic number.
    if (bytes[0] == '\0') return ImageKind::unknown;
    if (strchr(" \t\r\n/.", bytes[0]) != nullptr) return ImageKind::ptx;
    if (bytes[1] == 0 || bytes[2] == 0) return ImageKind::unknown;
    uint32_t magic = read_at<uint32_t>(bytes, 0);
    if (magic == CONTAINER_MAGIC) return ImageKind::fatbin;
    if (magic == WRAPPER_MAGIC) return ImageKind::wrapper;
    return magic == ELF_MAGIC ? ImageKind::elf : ImageKind::unknown;
}

uint64_t image_bytes(const void *image) {
    switch (image_kind(image)) {
    case ImageKind::ptx:
        return strlen(static_cast<const char *>(image)) + 1;
    case ImageKind::fatbin: {
        const auto *bytes = static_cast<const uint8_t *>(image);
        return read_at<uint16_t>(bytes, 6) + read_at<uint64_t>(bytes, 8);
    }
    default:
        return 0;
    }
}

std::string image_ptx(const void *image, int capability, std::string *error) {
    const auto *bytes = static_cast<const uint8_t *>(image);
    error->clear();
    switch (image_kind(image)) {
    case ImageKind::ptx: {
        std::string text = static_cast<const char *>(image);
        std::string target = ptx_target(text);
        if (target_fits(target, capability)) return text;
        *error = target.empty()
                     ? "PTX without a .target line"
                     : "PTX for " + target + " on a device of compute capability " + capability_text(capability);
        return "";
    }
    case ImageKind::wrapper:
        if (read_at<uint32_t>(bytes, 4) == WRAPPER_TO_LINK) {
            *error = "relocatable device code, which has to be linked, is not supported; compile with -rdc=false";
            return "";
        }
        return image_ptx(read_at<const uint8_t *>(bytes, 8), capability, error);
    case ImageKind::fatbin:
        return container_ptx(bytes, capability, error);
    case ImageKind::elf:
        *error = "machine code alone: no PTX for compute capability " + capability_text(capability);
        return "";
    case ImageKind::unknown:
        break;
    }
    *error = "neither PTX nor a fat binary";
    return "";
}

std::string ptx_target(const std::string &ptx) {
    size_t at = 0;
    while ((at = ptx.find(".target", at)) != std::string::npos) {
        size_t line = ptx.rfind('\n', at);
        line = line == std::string::npos ? 0 : line + 1;
        at += strlen(".target");
        if (ptx.find_first_not_of(" \t", line) + strlen(".target") != at) continue; // in a comment
        size_t begin = ptx.find_first_not_of(" \t", at);
        if (begin == std::string::npos) return "";
        return ptx.substr(begin, ptx.find_first_of(", \t\r\n/", begin) - begin);
    }
    return "";
}

bool target_fits(const std::string &target, int capability) {
    if (target.compare(0, 3, "sm_") != 0 && target.compare(0, 8, "compute_") != 0) return false;
    size_t digits = target.find('_') + 1;
    size_t end = target.find_first_not_of("0123456789", digits);
    std::string suffix = end == std::string::npos ? "" : target.substr(end);
    int wanted = atoi(target.c_str() + digits);
    if (suffix == "a") return wanted == capability;
    if (suffix == "f") return wanted <= capability && wanted / 10 == capability / 10;
    return suffix.empty() && wanted > 0 && wanted <= capability;
}

// A block is a row of sequences: a token with two lengths, literals, and the distance of a copy from what was unpacked
// already; the last sequence has no copy. A length of 15 goes on in the bytes that follow, until one is not 255.
bool lz4_unpack(const uint8_t *packed, size_t packed_bytes, size_t size, std::string *text) {
    const uint8_t *at = packed, *end = packed + packed_bytes;
    auto read_length = [&](size_t first) {
        size_t length = first;
        uint8_t more = first == 15 ? 255 : 0;
        while (more == 255 && at < end) {
            more = *at++;
            length += more;
        }
        return length;
    };
    text->clear();
    while (at < end) {
        uint8_t token = *at++;
        size_t literals = read_length(token >> 4);
        if (literals > static_cast<size_t>(end - at) || text->size() + literals > size) return false;
        text->append(reinterpret_cast<const char *>(at), literals);
        at += literals;
        if (at == end) break;
        if (end - at < 2) return false;
        size_t distance = read_at<uint16_t>(at, 0);
        at += 2;
        size_t length = read_length(token & 15) + 4;
        if (distance == 0 || distance > text->size() || text->size() + length > size) return false;
        for (size_t i = 0; i < length; i++)
            text->push_back((*text)[text->size() - distance]);
    }
    return text->size() == size;
}

} // namespace vgpu
