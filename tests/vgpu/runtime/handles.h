// Handles of the API's objects: numbers that no pointer has and that are never given twice, so that one that was
// destroyed, or was never made, is told from a live one.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_HANDLES_H
#define SHOAL_TESTS_VGPU_RUNTIME_HANDLES_H

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/vgpu/runtime/errors.h"

namespace vgpu {

// The top byte of a handle, one for each type.
enum class HandleKind : uint8_t { stream = 0x51, event, graph, graph_node, graph_exec, library, kernel, pool };

// Handles of type H, as the API has it, for objects of type T.
template <typename T, typename H> class HandleTable {
  public:
    explicit HandleTable(HandleKind kind) : base_(uint64_t{static_cast<uint8_t>(kind)} << 56) {}

    H add(std::shared_ptr<T> object) {
        std::lock_guard lock(mutex_);
        uint64_t value = base_ + 16 * ++made_;
        objects_[value] = std::move(object);
        return reinterpret_cast<H>(value);
    }

    // nullptr: no such handle.
    std::shared_ptr<T> lookup(const void *handle) const {
        std::lock_guard lock(mutex_);
        auto found = objects_.find(reinterpret_cast<uint64_t>(handle));
        return found != objects_.end() ? found->second : nullptr;
    }

    std::shared_ptr<T> find(const void *handle, cudaError_t otherwise = cudaErrorInvalidResourceHandle) const {
        std::shared_ptr<T> object = lookup(handle);
        require(object != nullptr, otherwise);
        return object;
    }

    // Takes it out and returns the object.
    std::shared_ptr<T> remove(const void *handle, cudaError_t otherwise = cudaErrorInvalidResourceHandle) {
        std::lock_guard lock(mutex_);
        auto found = objects_.find(reinterpret_cast<uint64_t>(handle));
        require(found != objects_.end(), otherwise);
        std::shared_ptr<T> object = std::move(found->second);
        objects_.erase(found);
        return object;
    }

    std::vector<std::shared_ptr<T>> all() const {
        std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<T>> objects;
        for (const auto &[value, object] : objects_)
            objects.push_back(object);
        return objects;
    }

  private:
    const uint64_t base_;
    mutable std::mutex mutex_;
    uint64_t made_ = 0;
    std::map<uint64_t, std::shared_ptr<T>> objects_;
};

} // namespace vgpu

#endif
