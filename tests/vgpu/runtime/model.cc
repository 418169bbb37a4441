// The models, and the settings in the environment that choose among them.
#include "tests/vgpu/runtime/model.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/vgpu/engine.h"

namespace vgpu {
namespace {

constexpr uint64_t MIB = 1024 * 1024;

constexpr Model MODELS[] = {
    {"h200",
     "NVIDIA H200",
     9,
     0,
     132,
     143156 * MIB,
     232448,
     233472,
     1024,
     2048,
     32,
     60 * MIB,
     37 * MIB + 512 * 1024,
     1980000,
     3201000,
     6144,
     2,
     3,
     true,
     true,
     0x233510de},
    {"h100",   "NVIDIA H100 80GB HBM3", 9,       0,       132,  81090 * MIB, 232448, 233472, 1024, 2048,      32,
     50 * MIB, 31 * MIB + 256 * 1024,   1980000, 2619000, 5120, 2,           3,      true,   true, 0x233010de},
    {"a100",    "NVIDIA A100-SXM4-80GB",
     8,         0,
     108,       81153 * MIB,
     166912,    167936,
     1024,      2048,
     32,        40 * MIB,
     30 * MIB,  1410000,
     1593000,   5120,
     2,         3,
     true,      false,
     0x20b210de},
    {"t4",    "Tesla T4", 7,       5,       40,  14930 * MIB, 65536, 65536, 0,     1024,      16,
     4 * MIB, 0,          1590000, 5001000, 256, 32,          3,     true,  false, 0x1eb810de},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8,       9,        128, 24210 * MIB, 101376, 102400, 1024,  1536,      24,
     72 * MIB,  49 * MIB + 512 * 1024,     2520000, 10501000, 384, 64,          2,      false,  false, 0x268410de},
    {"b200",  "NVIDIA B200", 10,   0, 148, 182642 * MIB, 232448, 233472,    1024, 2048, 32, 126 * MIB, 79 * MIB,
     1965000, 3996000,       8192, 2, 4,   true,         true,   0x290110de},
};

[[noreturn]] void refuse(const char *name, const char *value, const std::string &wanted) {
    fprintf(stderr, "vgpu: %s=%s: %s\n", name, value, wanted.c_str());
    fflush(nullptr);
    _Exit(2);
}

Model read_model() {
    const char *key = getenv("VGPU_MODEL");
    Model chosen = MODELS[0];
    std::string known;
    bool is_known = key == nullptr || *key == '\0';
    for (const Model &candidate : MODELS) {
        if (!is_known && strcmp(candidate.key, key) == 0) chosen = candidate, is_known = true;
        known += std::string(known.empty() ? "" : ", ") + candidate.key;
    }
    if (!is_known) refuse("VGPU_MODEL", key, "not a model: " + known);

    const char *memory = getenv("VGPU_MEMORY");
    if (memory != nullptr && (!parse_bytes(memory, &chosen.memory_bytes) || chosen.memory_bytes == 0)) {
        refuse("VGPU_MEMORY", memory, "not a number of bytes, such as 268435456 or 256M");
    }
    return chosen;
}

int read_count() {
    const char *text = getenv("VGPU_DEVICES");
    if (text == nullptr || *text == '\0') return 1;
    char *end = nullptr;
    long count = strtol(text, &end, 10);
    if (*end != '\0' || count < 0 || count > MAX_DEVICES) refuse("VGPU_DEVICES", text, "not a number from 0 to 16");
    return static_cast<int>(count);
}

struct Setup {
    Model model = read_model();
    int count = read_count();
    std::vector<int> visible;

    Setup() {
        const char *text = getenv("CUDA_VISIBLE_DEVICES");
        for (int i = 0; text == nullptr && i < count; i++)
            visible.push_back(i);
        if (text != nullptr) visible = parse_visible(text, count);
        for (int i = 0; i < static_cast<int>(visible.size()); i++)
            memory_set_limit(i, model.memory_bytes);
        EngineModel engine;
        engine.processors = model.processors;
        engine.shared_per_block_bytes = model.shared_per_block_bytes;
        engine.shared_per_processor_bytes = model.shared_per_processor_bytes;
        engine.threads_per_processor = model.threads_per_processor;
        engine.blocks_per_processor = model.blocks_per_processor;
        engine_set_model(engine);
    }
};

// Never destroyed: a program may call from its last destructor.
const Setup &setup() {
    static const Setup *const only = new Setup;
    return *only;
}

} // namespace

void model_check_settings() {
    read_model();
    read_count();
}

bool parse_bytes(const std::string &text, uint64_t *bytes) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return false;
    char *end = nullptr;
    errno = 0;
    uint64_t value = strtoull(text.c_str(), &end, 10);
    if (errno != 0) return false;
    std::string unit = end;
    int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
    if (shift < 0 || value > UINT64_MAX >> shift) return false;
    *bytes = value << shift;
    return true;
}

std::vector<int> parse_visible(const std::string &text, int count) {
    std::vector<int> visible;
    const char *at = text.c_str();
    while (*at != '\0') {
        char *end = nullptr;
        long index = strtol(at, &end, 10);
        if (end == at || index < 0 || index >= count || (*end != ',' && *end != '\0')) break;
        for (int earlier : visible) {
            if (earlier == index) return {}; // named twice: the real one sees none
        }
        visible.push_back(static_cast<int>(index));
        at = *end == ',' ? end + 1 : end;
    }
    return visible;
}

const Model &model() { return setup().model; }

int device_count() { return static_cast<int>(setup().visible.size()); }

int device_physical_index(int device) { return setup().visible.at(static_cast<size_t>(device)); }

int physical_count() { return setup().count; }

std::string device_pci_text(int device) { return physical_pci_text(device_physical_index(device)); }

std::string physical_pci_text(int physical) {
    char text[32];
    snprintf(text, sizeof text, "0000:%02X:00.0", physical + 1);
    return text;
}

void physical_uuid(int physical, char *bytes) {
    bytes[0] = static_cast<char>(physical + 1);
    strncpy(bytes + 1, model().key, UUID_BYTES - 1);
}

} // namespace vgpu
