// Modules: parsed text, placed variables, kernels that can be launched.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/vgpu/exec/code.h"
#include "tests/vgpu/exec/layout.h"
#include "tests/vgpu/exec/memory.h"

namespace vgpu {
namespace {

bool is_placed(const ptx::Variable &variable) { return variable.space != ptx::Space::shared && !variable.is_extern; }

// The modules that are loaded, by the address of their first function. An address is of one module only, for as long as
// the process lives.
struct CodeWindow {
    std::mutex mutex;
    uint64_t next = memory_windows().code;
    std::map<uint64_t, Module *> modules;
};

CodeWindow &code_window() {
    static auto *const only = new CodeWindow;
    return *only;
}

void place_functions(Module &module) {
    CodeWindow &window = code_window();
    std::lock_guard lock(window.mutex);
    uint64_t bytes = CODE_BYTES * std::max<size_t>(module.source->functions.size(), 1);
    if (bytes > memory_windows().code + WINDOW_BYTES - window.next) throw ptx::Error("no room for more functions");
    module.code_base = window.next;
    window.next += bytes;
    window.modules[module.code_base] = &module;
}

void place_module_variables(Module &module) {
    for (const ptx::Variable &variable : module.source->variables) {
        uint64_t address = 0;
        if (is_placed(variable)) {
            MemoryKind kind = variable.is_managed ? MemoryKind::managed : MemoryKind::module;
            address = memory_alloc(module.device, std::max<uint64_t>(variable.size_bytes, 1), kind);
            if (address == 0) throw ptx::Error("the device has no room for the variable " + variable.name);
        }
        module.variables.push_back(address);
    }
}

uint64_t symbol_address(const Module &module, const ptx::Relocation &relocation) {
    size_t index = size_t(relocation.index);
    if (relocation.symbol == ptx::SymbolKind::function) return module.function_address(index);
    return module.variables[index];
}

void initialise_variables(const Module &module) {
    for (size_t i = 0; i < module.variables.size(); i++) {
        const ptx::Variable &variable = module.source->variables[i];
        if (!is_placed(variable)) continue;
        std::vector<uint8_t> bytes = variable.initial;
        bytes.resize(variable.size_bytes);
        for (const ptx::Relocation &relocation : variable.relocations) {
            uint64_t address = symbol_address(module, relocation) + relocation.addend;
            memcpy(bytes.data() + relocation.offset, &address, size_t(relocation.size_bytes));
        }
        memory_copy(module.variables[i], reinterpret_cast<uint64_t>(bytes.data()), bytes.size());
    }
}

uint64_t constant_bytes(const ptx::Module &module) {
    uint64_t bytes = 0;
    for (const ptx::Variable &variable : module.variables) {
        if (variable.space == ptx::Space::constant) bytes += variable.size_bytes;
    }
    return bytes;
}

std::unique_ptr<Kernel> make_kernel(Module &module, int index) {
    const ptx::Function &function = *module.source->functions[size_t(index)];
    auto kernel = std::make_unique<Kernel>();
    kernel->module = &module;
    kernel->function = index;
    KernelInfo &info = kernel->info;
    info.name = function.name;
    for (const ptx::Parameter &parameter : function.parameters) {
        info.parameters.push_back({parameter.offset, parameter.size_bytes});
    }
    info.parameters_bytes = function.parameters_bytes;
    Code layout;
    place_variables(module, function, layout);
    info.static_shared_bytes = layout.static_shared_bytes;
    info.local_bytes = layout.local_bytes;
    info.constant_bytes = constant_bytes(*module.source);
    const uint32_t *most = function.max_threads, *required = function.required_threads;
    info.max_threads = most[0] * std::max(most[1], 1u) * std::max(most[2], 1u);
    info.required_threads = {required[0], required[1], required[2]};
    info.ptx_version = module.source->target;
    return kernel;
}

} // namespace

const Code *Module::code(size_t function) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Code> &code = codes_[function];
    if (code == nullptr && source->functions[function]->is_defined) code = decode(*this, *source->functions[function]);
    return code.get();
}

const Code *code_at(int device, uint64_t address) {
    CodeWindow &window = code_window();
    Module *module = nullptr;
    {
        std::lock_guard lock(window.mutex);
        auto behind = window.modules.upper_bound(address);
        if (behind != window.modules.begin()) module = std::prev(behind)->second;
    }
    if (module == nullptr || module->device != device) return nullptr;
    uint64_t offset = address - module->code_base, index = offset / CODE_BYTES;
    bool is_function = offset % CODE_BYTES == 0 && index < module->source->functions.size();
    return is_function ? module->code(index) : nullptr;
}

Module *module_load(int device, const std::string &ptx, std::string *error) {
    auto module = std::make_unique<Module>();
    module->device = device;
    try {
        module->source = ptx::parse(ptx);
        place_functions(*module);
        place_module_variables(*module);
    } catch (const ptx::Error &problem) {
        *error = problem.what();
        module_unload(module.release());
        return nullptr;
    }
    initialise_variables(*module);
    for (size_t i = 0; i < module->source->functions.size(); i++) {
        const ptx::Function &function = *module->source->functions[i];
        if (function.is_entry && function.is_defined) module->kernels.push_back(make_kernel(*module, int(i)));
    }
    return module.release();
}

void module_unload(Module *module) {
    if (module == nullptr) return;
    {
        std::lock_guard lock(code_window().mutex);
        code_window().modules.erase(module->code_base);
    }
    for (uint64_t address : module->variables) {
        if (address != 0) memory_free(address);
    }
    delete module;
}

Kernel *module_kernel(Module *module, const std::string &name) {
    for (const auto &kernel : module->kernels) {
        if (kernel->info.name == name) return kernel.get();
    }
    return nullptr;
}

std::vector<Kernel *> module_kernels(Module *module) {
    std::vector<Kernel *> kernels;
    for (const auto &kernel : module->kernels)
        kernels.push_back(kernel.get());
    return kernels;
}

bool module_variable(Module *module, const std::string &name, uint64_t *address, uint64_t *size_bytes) {
    int index = module->source->find_variable(name);
    if (index < 0 || module->variables[size_t(index)] == 0) return false;
    *address = module->variables[size_t(index)];
    *size_bytes = module->source->variables[size_t(index)].size_bytes;
    return true;
}

const KernelInfo &kernel_info(const Kernel *kernel) { return kernel->info; }

} // namespace vgpu
