// Launches: the blocks of all kernels that run, spread over threads of the host.
//
// Blocks are started in order, and no more of a kernel than the device would hold at once. A block that spins, waiting
// for another one, gives its thread to the others.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/engine_model.h"

namespace vgpu {
namespace {

EngineModel model;
std::atomic<uint64_t> instructions{0}, launches{0};
std::atomic<uint32_t> blocks_started{1};

struct Running {
    LaunchState state;
    uint64_t blocks = 0, next = 0; // of the grid; the next to be started
    uint64_t resident = 0, most_resident = 0;
    std::atomic<uint64_t> executed{0};         // thread-instructions of the blocks that ended
    int working = 0;                           // threads that are in a block of it
    std::deque<std::unique_ptr<Block>> paused; // begun, to be gone on with
    std::vector<std::unique_ptr<Block>> idle;  // to be used again
    bool resume_first = false;
    std::condition_variable done;

    bool is_done() const {
        return working == 0 && (state.fault.load() != Fault::none || (next == blocks && resident == 0));
    }
    bool can_start() const { return next < blocks && resident < most_resident; }
    bool has_work() const { return state.fault.load() == Fault::none && (can_start() || !paused.empty()); }
};

uint64_t host_processors() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
    return uint64_t(CPU_COUNT(&set));
}

// How many blocks of a kernel the device holds.
uint64_t resident_limit(const LaunchState &state) {
    uint64_t threads = (state.config.block.count() + LANES - 1) / LANES * LANES;
    uint64_t shared = state.kernel->info.static_shared_bytes + state.config.dynamic_shared_bytes + 1024;
    uint64_t blocks = std::min(uint64_t(model.blocks_per_processor), uint64_t(model.threads_per_processor) / threads);
    blocks = std::min(blocks, model.shared_per_processor_bytes / shared);
    return std::max<uint64_t>(blocks, 1) * uint64_t(model.processors);
}

class Workers {
  public:
    Workers() {
        uint64_t count = worker_count(host_processors());
        try {
            for (uint64_t i = 0; i < count; i++)
                std::thread(&Workers::work, this).detach();
        } catch (const std::system_error &problem) {
            bad_setting("VGPU_THREADS", std::to_string(count), "a number of threads that the system gives");
        }
    }

    void run(Running &running) {
        std::unique_lock lock(mutex_);
        running_.push_back(&running);
        wake_.notify_all();
        running.done.wait(lock, [&] { return running.is_done(); });
        running_.remove(&running);
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            Running *running = nullptr;
            wake_.wait(lock, [&] { return (running = next_launch()) != nullptr; });
            step(*running, lock);
        }
    }

    // The next launch that has work; they take turns.
    Running *next_launch() {
        for (size_t i = 0; i < running_.size(); i++) {
            running_.splice(running_.end(), running_, running_.begin());
            if (running_.back()->has_work()) return running_.back();
        }
        return nullptr;
    }

    // Starts or goes on with one block.
    void step(Running &running, std::unique_lock<std::mutex> &lock) {
        std::unique_ptr<Block> block;
        uint64_t index = 0;
        bool resume = !running.paused.empty() && (running.resume_first || !running.can_start());
        running.resume_first = !resume;
        if (resume) {
            block = std::move(running.paused.front());
            running.paused.pop_front();
        } else {
            index = running.next++;
            running.resident++;
            if (!running.idle.empty()) {
                block = std::move(running.idle.back());
                running.idle.pop_back();
            }
        }
        running.working++;
        lock.unlock();
        bool finished = execute(running, block, resume, index);
        lock.lock();
        running.working--;
        if (finished) {
            running.resident--;
            running.idle.push_back(std::move(block));
        } else {
            running.paused.push_back(std::move(block));
        }
        if (running.is_done()) running.done.notify_all();
        if (running.has_work()) wake_.notify_one();
    }

    bool execute(Running &running, std::unique_ptr<Block> &block, bool resume, uint64_t index) {
        try {
            if (block == nullptr) block = std::make_unique<Block>(running.state);
            if (!resume) block->start(index);
            bool finished = block->run();
            if (finished) instructions += block->executed(), running.executed += block->executed();
            return finished;
        } catch (Fault fault) {
            fail(running, fault);
        } catch (const std::exception &problem) { // the host has no memory left
            if (!running.state.is_reported.exchange(true)) {
                report("vgpu: ERROR: the host cannot run the block: " + std::string(problem.what()) +
                       "\nvgpu:   in kernel " + demangle(running.state.kernel->info.name) + "\n");
            }
            fail(running, Fault::failure);
        }
        return true;
    }

    static void fail(Running &running, Fault fault) {
        Fault none = Fault::none;
        running.state.fault.compare_exchange_strong(none, fault);
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::list<Running *> running_;
};

// Never destroyed: its threads run to the end of the process.
Workers &workers() {
    static Workers *instance = new Workers;
    return *instance;
}

// VGPU_STATS: a line at the end of the process.
std::atomic<uint64_t> launch_nanoseconds{0};

void print_stats() {
    double seconds = double(launch_nanoseconds) * 1e-9, count = double(instructions);
    fprintf(stderr, "vgpu: %llu launches, %.0f thread-instructions in %.6f s, %.1f million a second\n",
            (unsigned long long)launches, count, seconds, seconds > 0 ? count / seconds * 1e-6 : 0);
}

void run_timed(Running &running) {
    static const bool has_stats = prints_stats() && atexit(print_stats) == 0;
    auto begin = std::chrono::steady_clock::now();
    workers().run(running);
    if (!has_stats) return;
    auto duration = std::chrono::steady_clock::now() - begin;
    launch_nanoseconds += uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

} // namespace

const EngineModel &engine_model() { return model; }

void engine_set_model(const EngineModel &new_model) { model = new_model; }

uint64_t engine_instructions() { return instructions; }

namespace {

// The driver's part of grid.sync(): two zeroed words, the second of which is the barrier.
uint64_t make_workspace(int device) {
    constexpr uint64_t BYTES = 2 * sizeof(uint32_t);
    uint64_t address = memory_alloc(device, BYTES, MemoryKind::module);
    if (address != 0) memory_fill(address, 0, BYTES);
    return address;
}

} // namespace

Fault launch(const Kernel *kernel, const LaunchConfig &config, const std::vector<uint8_t> &parameters,
             uint64_t *executed) {
    Running running;
    running.state.kernel = kernel;
    running.state.config = config;
    running.state.parameters = parameters;
    running.state.number = ++launches;
    try {
        running.state.code = kernel->module->code(size_t(kernel->function));
    } catch (const ptx::Error &problem) {
        report("vgpu: ERROR: " + std::string(problem.what()) + "\nvgpu:   in kernel " + demangle(kernel->info.name) +
               "\n");
        return Fault::illegal_instruction;
    }
    running.blocks = config.grid.count();
    running.state.first_block = blocks_started.fetch_add(uint32_t(running.blocks));
    running.most_resident = config.is_cooperative ? running.blocks : resident_limit(running.state);
    if (config.is_cooperative) running.state.workspace = make_workspace(kernel->module->device);
    run_timed(running);
    if (executed != nullptr) *executed = running.executed;
    if (config.is_cooperative) memory_free(running.state.workspace);
    return running.state.fault;
}

} // namespace vgpu
