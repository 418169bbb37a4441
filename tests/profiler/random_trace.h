// Small random traces: nesting, joins, launches, graphs, phases, overlapping intervals, several threads and queues.
#ifndef SHOAL_TESTS_PROFILER_RANDOM_TRACE_H
#define SHOAL_TESTS_PROFILER_RANDOM_TRACE_H

#include <algorithm>
#include <random>

#include "tests/profiler/synthetic.h"

namespace profiler_test {

class RandomTrace {
  public:
    explicit RandomTrace(uint64_t seed) : random_(seed) {}

    int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
    bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

    Trace trace() {
        Trace t;
        int64_t start = draw(0, 1000000), wall = draw(1, 300);
        t.process = make_process(start);
        t.end_ns = start + wall;
        int names = static_cast<int>(draw(1, 8));
        for (int i = 0; i < names; i++) {
            int category = chance(0.1) ? static_cast<int>(PROF_CATEGORY_ENCLOSING)
                                       : static_cast<int>(draw(0, HOST_TRACE_CATEGORIES - 1));
            int layer = chance(0.25)  ? PROF_LAYER_API
                        : chance(0.6) ? PROF_LAYER_CODE
                                      : static_cast<int>(draw(0, PROF_LAYERS - 1));
            t.names.push_back(make_name("s" + std::to_string(i), category, layer));
        }
        int threads = static_cast<int>(draw(0, 4)), queues = static_cast<int>(draw(threads == 0 ? 1 : 0, 3));
        int main = chance(0.8) && threads > 0 ? static_cast<int>(draw(0, threads - 1)) : -1;
        std::vector<ProfStreamKind> kinds(static_cast<size_t>(threads), PROF_STREAM_THREAD);
        kinds.insert(kinds.end(), static_cast<size_t>(queues), PROF_STREAM_DEVICE);
        std::shuffle(kinds.begin(), kinds.end(), random_);
        uint32_t id = 0;
        int thread = 0;
        for (ProfStreamKind kind : kinds) {
            id += static_cast<uint32_t>(draw(1, 3));
            bool is_main = kind == PROF_STREAM_THREAD && thread++ == main;
            t.streams.push_back({make_stream(id, kind, is_main), {}});
        }
        for (Stream &stream : t.streams) {
            if (stream.info.kind == PROF_STREAM_THREAD) add_thread(t, stream);
        }
        for (Stream &stream : t.streams) {
            if (stream.info.kind == PROF_STREAM_DEVICE) add_queue(t, stream);
        }
        return t;
    }

  private:
    ProfEvent thread_event(const Trace &t, int64_t now, int *depth) {
        int kind = static_cast<int>(draw(0, 99));
        uint32_t name = static_cast<uint32_t>(draw(0, static_cast<int64_t>(t.names.size()) - 1));
        ProfEvent e = end(now);
        if (kind < 40 && *depth < 12) {
            e = begin(now, name);
        } else if (kind < 48 && *depth < 12) {
            e = begin(now, name);
            e.kind = PROF_EVENT_JOIN;
            size_t of = static_cast<size_t>(draw(0, static_cast<int64_t>(t.streams.size()) - 1));
            e.stream = t.streams[of].info.id + (chance(0.1) ? 1 : 0);
        } else if (kind < 62) {
            e = launch(now, ++correlations_);
            if (kind >= 56) e.kind = PROF_EVENT_CALL;
            launched_.push_back({now, correlations_});
        } else if (kind < 65) {
            e = make_event(PROF_EVENT_SPLIT, now);
            for (uint64_t &weight : e.weight)
                weight = chance(0.3) ? static_cast<uint64_t>(draw(1, 1000)) : 0;
        } else if (kind < 68) {
            e = make_event(PROF_EVENT_CAPTURE, now);
            e.node = static_cast<uint64_t>(draw(1, 5));
        } else if (kind < 70) {
            e = make_event(PROF_EVENT_PHASE, now);
            e.phase = static_cast<HostTracePhase>(draw(0, HOST_TRACE_PHASES - 1));
        } else if (kind < 71) {
            e = make_event(PROF_EVENT_DROPPED, now);
            e.count = static_cast<uint64_t>(draw(1, 100));
        } else if (kind < 74) {
            e = make_event(PROF_EVENT_STRETCH, now);
            e.is_plain = chance(0.3);
            e.count = static_cast<uint64_t>(draw(0, 50));
            e.duration_ns = draw(0, 200);
            e.processor_ns = draw(0, 200);
            e.pauses = static_cast<uint64_t>(draw(0, 3));
        } else if (kind < 75) {
            e = make_event(PROF_EVENT_READER, now);
            e.processor_ns = draw(0, 1000);
        }
        if (e.kind == PROF_EVENT_END && *depth == 0 && !chance(0.02)) return begin(now, name);
        return e;
    }

    void add_thread(const Trace &t, Stream &stream) {
        int64_t now = t.process.start_ns + draw(0, 20);
        int depth = 0, count = static_cast<int>(draw(0, 40));
        for (int i = 0; i < count && now < t.end_ns; i++) {
            ProfEvent e = thread_event(t, now, &depth);
            depth += e.kind == PROF_EVENT_BEGIN || e.kind == PROF_EVENT_JOIN;
            depth -= e.kind == PROF_EVENT_END && depth > 0;
            stream.events.push_back(e);
            if (!chance(0.2)) now += draw(0, 15);
        }
    }

    // What is known of a call, instead of an interval of its own.
    ProfEvent note(const Trace &t, const ProfEvent &of) {
        static const ProfEventKind kinds[] = {PROF_EVENT_WAIT,  PROF_EVENT_WAIT,    PROF_EVENT_WAIT, PROF_EVENT_ALLOC,
                                              PROF_EVENT_ALLOC, PROF_EVENT_RELEASE, PROF_EVENT_POOL, PROF_EVENT_ID};
        ProfEvent e = make_event(kinds[draw(0, 7)], of.time_ns);
        e.correlation = of.correlation;
        e.duration_ns = of.duration_ns;
        e.name = static_cast<uint32_t>(draw(0, static_cast<int64_t>(t.names.size()) - 1));
        e.memory = static_cast<ProfMemory>(draw(0, PROF_MEMORIES - 1));
        e.change = static_cast<ProfPoolChange>(draw(0, PROF_POOL_CHANGES - 1));
        e.id_kind = static_cast<uint8_t>(draw(0, 2));
        e.count = static_cast<uint64_t>(draw(0, 9));
        return e;
    }

    void add_queue(const Trace &t, Stream &stream) {
        for (int i = static_cast<int>(draw(0, 25)); i > 0; i--) {
            int64_t from = t.process.start_ns;
            uint64_t correlation = 100000;
            if (!launched_.empty() && !chance(0.1)) {
                size_t at = static_cast<size_t>(draw(0, static_cast<int64_t>(launched_.size()) - 1));
                from = launched_[at].time;
                correlation = launched_[at].correlation;
            }
            ProfEvent e = interval(std::min(from + (chance(0.5) ? draw(0, 3) : draw(0, 40)), t.end_ns), draw(0, 30),
                                   correlation, chance(0.3) ? static_cast<uint64_t>(draw(1, 6)) : 0);
            e.work = static_cast<ProfDeviceWork>(draw(0, PROF_DEVICE_WORKS - 1));
            if (chance(0.5)) e = note(t, e);
            stream.events.push_back(e);
            if (!chance(0.1)) continue;
            e = make_event(PROF_EVENT_DROPPED, e.time_ns);
            e.count = static_cast<uint64_t>(draw(1, 9));
            stream.events.push_back(e);
        }
        std::stable_sort(stream.events.begin(), stream.events.end(),
                         [](const ProfEvent &a, const ProfEvent &b) { return a.time_ns < b.time_ns; });
    }

    struct Launched {
        int64_t time;
        uint64_t correlation;
    };
    std::mt19937_64 random_;
    uint64_t correlations_ = 0;
    std::vector<Launched> launched_;
};

} // namespace profiler_test

#endif
