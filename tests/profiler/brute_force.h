// The plain reference of the analysis: one bin for every nanosecond, and in each bin a look at everything.
#ifndef SHOAL_TESTS_PROFILER_BRUTE_FORCE_H
#define SHOAL_TESTS_PROFILER_BRUTE_FORCE_H

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/profiler/synthetic.h"

namespace profiler_test {

struct BruteNode {
    int64_t costs[HOST_TRACE_PHASES][PROF_COSTS] = {}, main_costs[HOST_TRACE_PHASES][PROF_COSTS] = {};
    int64_t covered_costs[HOST_TRACE_PHASES][PROF_COSTS] = {}, kernels[HOST_TRACE_PHASES] = {};
    int64_t allocations[HOST_TRACE_PHASES] = {}, allocated[HOST_TRACE_PHASES] = {}, released[HOST_TRACE_PHASES] = {};
    int64_t recorded[HOST_TRACE_PHASES] = {}, main_recorded[HOST_TRACE_PHASES] = {}, plain_ns[HOST_TRACE_PHASES] = {};
    bool is_loop = false;
    int64_t count[HOST_TRACE_PHASES] = {}, thread_ns[HOST_TRACE_PHASES] = {}, main_ns[HOST_TRACE_PHASES] = {};
    int64_t intervals[HOST_TRACE_PHASES] = {}, device_ns[HOST_TRACE_PHASES] = {}, bound_ns[HOST_TRACE_PHASES] = {};
    ProfWall wall[HOST_TRACE_PHASES] = {};
    uint64_t split[HOST_TRACE_CATEGORIES] = {};
    int category = PROF_NO_CATEGORY;
    int layer = PROF_LAYER_CODE;
    bool entered = false, is_call = false, is_wait = false;
};

class BruteForce {
  public:
    explicit BruteForce(const Trace &trace) : trace_(trace), threads_(trace.streams.size()) {
        for (size_t s = 0; s < trace.streams.size(); s++) {
            if (!is_thread(s)) continue;
            if (main_ < 0) main_ = static_cast<int>(s);
            for (size_t i = 0; i < trace.streams.size(); i++) {
                if (trace.streams[i].info.is_main) main_ = static_cast<int>(i);
            }
        }
        if (main_ >= 0) threads_[static_cast<size_t>(main_)].seen = true;
        for (const char *root : {"(outside)", "(lost)", "(unknown launch)"})
            nodes[root];
        order_events();
        run();
        find_gaps();
        share_loops();
    }

    std::map<std::string, BruteNode> nodes;
    ProfWall category[HOST_TRACE_PHASES][HOST_TRACE_CATEGORIES] = {};
    int64_t gpu_bound[HOST_TRACE_PHASES][PROF_CATEGORY_SETS] = {};
    int64_t overlapped[HOST_TRACE_PHASES][PROF_CATEGORY_SETS] = {};
    int64_t idle[HOST_TRACE_PHASES] = {}, phase_ns[HOST_TRACE_PHASES] = {};
    int64_t device_busy = 0, kernel_busy = 0, device_sum = 0, dropped_intervals = 0, device_span = 0,
            gap[PROF_GAPS] = {}, gaps = 0;
    int64_t intervals = 0, unknown_launches = 0, dropped = 0, unmatched_ends = 0, reader_ns = 0;
    int64_t transitions[HOST_TRACE_CATEGORIES + 1][HOST_TRACE_CATEGORIES + 1] = {};
    ProfMemorySum memory[PROF_MEMORIES] = {};
    int64_t pools[PROF_POOL_CHANGES] = {}, pool_peak = 0;
    std::map<std::pair<int, uint64_t>, ProfId> ids;

    bool is_leaf(const std::string &path) const {
        for (const auto &[other, node] : nodes) {
            bool is_child = other.rfind(path + "/", 0) == 0 && other.find('/', path.size() + 1) == std::string::npos;
            bool works = node.entered && node.category != HOST_TRACE_IDLE && !node.is_call;
            if (is_child && works && !nodes.at(path).is_loop) return false;
        }
        return path[0] == '/';
    }

  private:
    struct Thread {
        std::vector<std::string> stack;
        bool seen = false;
        std::string wait; // "": in none
        int64_t wait_end = 0;
    };
    struct Running {
        int64_t begin, end;
        std::string path;
        int64_t launched; // -1: unknown
        bool is_kernel;
    };
    struct Launch {
        std::string path;
        int64_t time;
        size_t thread;
        std::string call;
        size_t depth;
        bool is_launch;
        bool has_id = false, has_worked = false;
        std::pair<int, uint64_t> id = {};
    };
    struct Ordered {
        size_t stream, index;
    };

    bool is_thread(size_t stream) const { return trace_.streams[stream].info.kind == PROF_STREAM_THREAD; }

    void order_events() {
        for (size_t s = 0; s < trace_.streams.size(); s++) {
            for (size_t i = 0; i < trace_.streams[s].events.size(); i++)
                order_.push_back({s, i});
        }
        std::stable_sort(order_.begin(), order_.end(), [this](const Ordered &a, const Ordered &b) {
            int64_t x = event(a).time_ns, y = event(b).time_ns;
            if (x != y) return x < y;
            if (is_thread(a.stream) != is_thread(b.stream)) return is_thread(a.stream);
            return a.stream < b.stream;
        });
    }

    const ProfEvent &event(const Ordered &at) const { return trace_.streams[at.stream].events[at.index]; }
    const ProfEvent &event(size_t i) const { return event(order_[i]); }

    std::string innermost(size_t thread) const {
        const Thread &t = threads_[thread];
        if (!t.wait.empty()) return t.wait;
        return t.stack.empty() ? "(outside)" : t.stack.back();
    }

    // The innermost scope that is no call of a device's interface; the outermost call where there are only such.
    std::string caller(size_t thread) {
        std::string path = innermost(thread);
        while (nodes[path].is_call && path.rfind('/') > 0)
            path = path.substr(0, path.rfind('/'));
        return path;
    }

    std::string child(const std::string &parent, uint32_t name) {
        std::string path = (parent[0] == '/' ? parent : "") + "/" + trace_.names[name].text;
        int of = trace_.names[name].category;
        if (of == PROF_CATEGORY_ENCLOSING) {
            of = parent[0] == '/' ? nodes[parent].category : static_cast<int>(HOST_TRACE_HOST);
        }
        nodes[path].category = of;
        nodes[path].layer = trace_.names[name].layer;
        nodes[path].is_call = nodes[path].layer == PROF_LAYER_API;
        return path;
    }

    static std::string last_part(const std::string &path) { return path.substr(path.rfind('/') + 1); }

    std::string joined(const ProfEvent &e) {
        for (size_t s = 0; s < trace_.streams.size(); s++) {
            if (trace_.streams[s].info.id != e.stream || !is_thread(s)) continue;
            const auto &stack = threads_[s].stack;
            for (size_t i = stack.size(); i-- > 0;) {
                if (last_part(stack[i]) == trace_.names[e.name].text) return stack[i];
            }
        }
        return child("", e.name);
    }

    void take_interval(const ProfEvent &e) {
        int64_t stop = std::min(e.time_ns + e.duration_ns, trace_.end_ns);
        std::string path = "(unknown launch)";
        int64_t launched = -1;
        if (launches_.count(e.correlation) != 0) {
            path = launches_[e.correlation].path;
            launched = launches_[e.correlation].time;
            auto captured = captured_.find(e.node);
            if (e.node != 0 && captured != captured_.end() && captured->second[0] == '/' && captured->second != path) {
                for (uint32_t n = 0; n < trace_.names.size(); n++) {
                    if (last_part(captured->second) == trace_.names[n].text) {
                        path = child(path, n);
                        break;
                    }
                }
            }
        } else {
            unknown_launches++;
        }
        intervals++;
        device_sum += stop - e.time_ns;
        nodes[path].intervals[phase_]++;
        nodes[path].kernels[phase_] += e.work == PROF_DEVICE_KERNEL;
        if (launched >= 0) count_for_id(launches_[e.correlation], stop - e.time_ns);
        nodes[path].device_ns[phase_] += stop - e.time_ns;
        if (stop > e.time_ns) running_.push_back({e.time_ns, stop, path, launched, e.work == PROF_DEVICE_KERNEL});
    }

    void count_for_id(Launch &launch, int64_t duration) {
        if (!launch.has_id) return;
        bool is_first = !launch.has_worked;
        launch.has_worked = true;
        ProfId &id = ids[launch.id];
        id.launches += is_first;
        id.intervals++;
        id.device_ns += duration;
    }

    void count_cost(size_t s, const std::string &path, ProfCostClass cost, int64_t count) {
        nodes[path].costs[phase_][cost] += count;
        if (static_cast<int>(s) != main_) return;
        nodes[path].main_costs[phase_][cost] += count;
        bool is_busy = std::any_of(running_.begin(), running_.end(), [&](const Running &r) { return r.end > now_; });
        if (is_busy) nodes[path].covered_costs[phase_][cost] += count;
    }

    // A thread's wait ends; nothing where it is in none.
    void end_wait(size_t s) {
        if (threads_[s].wait.empty()) return;
        int from = nodes[innermost(s)].category;
        threads_[s].wait.clear();
        int to = nodes[innermost(s)].category;
        if (from != to) transitions[from][to]++;
    }

    void end_waits() {
        for (size_t s = 0; s < threads_.size(); s++) {
            if (threads_[s].wait_end <= now_) end_wait(s);
        }
    }

    void take_wait(const ProfEvent &e) {
        auto found = launches_.find(e.correlation);
        if (found == launches_.end()) return;
        const Launch &call = found->second;
        Thread &t = threads_[call.thread];
        if (innermost(call.thread) != call.call || !t.wait.empty() || t.stack.size() != call.depth) return;
        std::string path = child(call.call, e.name);
        nodes[path].entered = nodes[path].is_wait = true;
        nodes[path].count[phase_]++;
        int from = nodes[call.call].category, to = nodes[path].category;
        if (from != to) transitions[from][to]++;
        t.wait = path;
        t.wait_end = e.time_ns + e.duration_ns;
    }

    void take_memory(const ProfEvent &e) {
        int64_t bytes = static_cast<int64_t>(e.count);
        if (e.kind == PROF_EVENT_POOL) {
            pools[e.change]++;
            pool_peak = std::max(pool_peak, bytes);
            return;
        }
        bool is_release = e.kind == PROF_EVENT_RELEASE;
        ProfMemorySum &sum = memory[e.memory];
        (is_release ? sum.releases : sum.allocations)++;
        if (!is_release) sum.allocated_bytes += bytes;
        sum.held_bytes = std::max<int64_t>(sum.held_bytes + (is_release ? -bytes : bytes), 0);
        sum.peak_bytes = std::max(sum.peak_bytes, sum.held_bytes);
        if (e.memory != PROF_MEMORY_DEVICE && e.memory != PROF_MEMORY_MANAGED) return;
        auto found = launches_.find(e.correlation);
        BruteNode &node = nodes[found != launches_.end() ? found->second.path : "(unknown launch)"];
        node.allocations[phase_] += !is_release;
        (is_release ? node.released : node.allocated)[phase_] += bytes;
    }

    void take_id(const ProfEvent &e) {
        auto found = launches_.find(e.correlation);
        if (found == launches_.end() || !found->second.is_launch || found->second.has_id) return;
        found->second.has_id = true;
        found->second.id = {e.id_kind, e.count};
        ids[found->second.id];
    }

    void take_stretch(size_t s, BruteNode &node, const std::string &path, const ProfEvent &e) {
        node.is_loop = true;
        count_cost(s, path, PROF_COST_STRETCH, 1);
        count_cost(s, path, PROF_COST_PAUSE, static_cast<int64_t>(e.pauses));
        if (e.is_plain) {
            node.plain_ns[phase_] += e.duration_ns;
            return;
        }
        node.recorded[phase_] += static_cast<int64_t>(e.count);
        if (static_cast<int>(s) == main_) node.main_recorded[phase_] += static_cast<int64_t>(e.count);
    }

    // Each node's time is among the weights of the outermost loop above it, if no wait is in between.
    void share_loops() {
        for (const auto &[path, node] : nodes) {
            std::string loop;
            for (std::string at = path; at[0] == '/' && nodes[at].category != HOST_TRACE_IDLE;) {
                if (nodes[at].is_loop) loop = at;
                at = at.substr(0, at.rfind('/'));
                if (at.empty()) break;
            }
            if (loop.empty() || loop == path) continue;
            for (int64_t ns : node.thread_ns)
                nodes[loop].split[node.category] += static_cast<uint64_t>(ns);
        }
    }

    void take_thread(size_t s, const ProfEvent &e) {
        Thread &t = threads_[s];
        end_wait(s);
        int from = nodes[innermost(s)].category;
        t.seen = true;
        if (e.kind == PROF_EVENT_END && t.stack.empty()) {
            unmatched_ends++;
        } else if (e.kind == PROF_EVENT_END) {
            t.stack.pop_back();
        } else if (e.kind == PROF_EVENT_BEGIN || e.kind == PROF_EVENT_JOIN) {
            std::string path = e.kind == PROF_EVENT_JOIN ? joined(e) : child(innermost(s), e.name);
            t.stack.push_back(path);
            nodes[path].entered = true;
            ProfCostClass own = nodes[path].is_call ? PROF_COST_CALL : PROF_COST_SCOPE;
            if (nodes[path].layer == PROF_LAYER_SCRIPT) own = PROF_COST_SCRIPT;
            count_cost(s, path, e.kind == PROF_EVENT_BEGIN ? own : PROF_COST_JOIN, 1);
            if (e.kind == PROF_EVENT_BEGIN) nodes[path].count[phase_]++;
        } else if (e.kind == PROF_EVENT_LAUNCH || e.kind == PROF_EVENT_CALL) {
            count_cost(s, innermost(s), PROF_COST_RECORD, 1);
            bool is_launch = e.kind == PROF_EVENT_LAUNCH;
            launches_[e.correlation] = {caller(s), e.time_ns, s, innermost(s), t.stack.size(), is_launch};
        } else if (e.kind == PROF_EVENT_CAPTURE) {
            captured_[e.node] = caller(s);
        } else if (e.kind == PROF_EVENT_SPLIT && !t.stack.empty()) {
            for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
                nodes[innermost(s)].split[c] += e.weight[c];
            count_cost(s, innermost(s), PROF_COST_SPLIT, 1);
        } else if (e.kind == PROF_EVENT_STRETCH && !t.stack.empty()) {
            take_stretch(s, nodes[innermost(s)], innermost(s), e);
        }
        int to = nodes[innermost(s)].category;
        if (from != to) transitions[from][to]++;
    }

    bool works(const std::string &path) {
        int c = nodes[path].category;
        return c != PROF_NO_CATEGORY && c != HOST_TRACE_IDLE;
    }

    // What the main thread is in, waits aside.
    std::string main_work() {
        if (main_ < 0) return "";
        const auto &stack = threads_[static_cast<size_t>(main_)].stack;
        const std::string &wait = threads_[static_cast<size_t>(main_)].wait;
        std::string path = !wait.empty() ? wait : stack.empty() ? "" : stack.back();
        while (!path.empty() && !works(path))
            path = path.substr(0, path.rfind('/'));
        return path;
    }

    ProfGap cause() {
        if (main_ < 0 || innermost(static_cast<size_t>(main_)) == "(outside)") return PROF_GAP_NONE_READY;
        int c = nodes[innermost(static_cast<size_t>(main_))].category;
        if (c == HOST_TRACE_IDLE) return PROF_GAP_SYNCHRONISATION;
        return c == HOST_TRACE_COMMUNICATION ? PROF_GAP_COMMUNICATION : PROF_GAP_HOST;
    }

    static void add_wall(ProfWall &wall, bool cpu, bool gpu) {
        wall.both_ns += cpu && gpu;
        wall.cpu_ns += cpu && !gpu;
        wall.gpu_ns += !cpu && gpu;
    }

    void bin(int64_t t) {
        std::set<std::string> cpu, gpu;
        bool kernel = false;
        int working = 0;
        for (size_t s = 0; s < threads_.size(); s++) {
            if (!is_thread(s) || !threads_[s].seen) continue;
            std::string path = innermost(s);
            nodes[path].thread_ns[phase_]++;
            if (static_cast<int>(s) == main_) nodes[path].main_ns[phase_]++;
            if (path[0] == '/') cpu.insert(path);
            working += works(path);
        }
        for (const Running &r : running_) {
            if (t < r.begin || t >= r.end) continue;
            gpu.insert(r.path);
            kernel |= r.is_kernel;
        }
        for (auto &[path, node] : nodes)
            add_wall(node.wall[phase_], cpu.count(path) != 0, gpu.count(path) != 0);
        unsigned set = 0;
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
            auto is_of = [&](const std::string &path) { return nodes[path].category == c; };
            bool in_cpu = std::any_of(cpu.begin(), cpu.end(), is_of),
                 in_gpu = std::any_of(gpu.begin(), gpu.end(), is_of);
            add_wall(category[phase_][c], in_cpu, in_gpu);
            set |= static_cast<unsigned>(in_gpu) << c;
        }
        bool busy = !gpu.empty(), main_works = main_ >= 0 && works(innermost(static_cast<size_t>(main_)));
        device_busy += busy;
        kernel_busy += kernel;
        phase_ns[phase_]++;
        busy_.push_back(busy);
        cause_.push_back(cause());
        if (busy) {
            (working > 0 ? overlapped : gpu_bound)[phase_][set]++;
        } else if (!main_work().empty() && (main_works || working > 0)) {
            nodes[main_work()].bound_ns[phase_]++;
        } else {
            idle[phase_]++;
        }
    }

    void run() {
        size_t next = 0;
        for (int64_t t = trace_.process.start_ns; t <= trace_.end_ns; t++) {
            now_ = t;
            for (; next < order_.size() && event(next).time_ns <= t; next++) {
                const ProfEvent &e = event(next);
                end_waits();
                if (e.kind == PROF_EVENT_PHASE) phase_ = e.phase;
                if (e.kind == PROF_EVENT_READER) reader_ns += e.processor_ns;
                if (e.kind == PROF_EVENT_DROPPED) {
                    dropped += static_cast<int64_t>(e.count);
                    if (!is_thread(order_[next].stream)) dropped_intervals += static_cast<int64_t>(e.count);
                }
                if (e.kind == PROF_EVENT_INTERVAL) take_interval(e);
                if (e.kind == PROF_EVENT_WAIT) take_wait(e);
                if (e.kind == PROF_EVENT_ID) take_id(e);
                if (e.kind >= PROF_EVENT_ALLOC && e.kind <= PROF_EVENT_POOL) take_memory(e);
                if (is_thread(order_[next].stream)) take_thread(order_[next].stream, e);
            }
            end_waits();
            if (t < trace_.end_ns) bin(t);
        }
    }

    void find_gaps() {
        int64_t start = trace_.process.start_ns, size = static_cast<int64_t>(busy_.size());
        int64_t first = std::find(busy_.begin(), busy_.end(), true) - busy_.begin(), last = -1;
        for (int64_t i = first; i < size; i++) {
            if (!busy_[static_cast<size_t>(i)]) continue;
            if (last >= 0 && i > last + 1) {
                // The first interval, in the order of the events, that begins here.
                auto next = std::find_if(running_.begin(), running_.end(),
                                         [&](const Running &r) { return r.begin == start + i; });
                gaps++;
                for (int64_t k = last + 1; k < i; k++) {
                    bool is_launched = next->launched >= 0 && next->launched <= start + k;
                    gap[is_launched ? PROF_GAP_LAUNCH : cause_[static_cast<size_t>(k)]]++;
                }
            }
            last = i;
        }
        device_span = last >= 0 ? last + 1 - first : 0;
    }

    const Trace &trace_;
    std::vector<Thread> threads_;
    std::vector<Ordered> order_;
    std::vector<Running> running_;
    std::map<uint64_t, Launch> launches_;
    std::map<uint64_t, std::string> captured_;
    std::vector<bool> busy_;
    std::vector<ProfGap> cause_;
    int main_ = -1;
    int64_t now_ = 0;
    HostTracePhase phase_ = HOST_PHASE_SETUP;
};

} // namespace profiler_test

#endif
