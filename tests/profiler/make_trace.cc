// Writes a made-up trace, for tests and measurements of what shows traces:
//
//     profiler_make_trace gpu PATH EVENTS    a trainer with two threads and a device's two queues, about so many events
//     profiler_make_trace hostile PATH       names that try to get out of where they are put
//     profiler_make_trace empty PATH         a process that did nothing
//     profiler_make_trace cut PATH           one that was killed in the middle of a scope
//     profiler_make_trace kinds PATH         every kind of event, of two threads and two queues: a seed for fuzzing
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/profiler/synthetic.h"

namespace {

using namespace profiler_test;

const int64_t kStart = 1000000;

// What EVENTS become of one round: 14 on the main thread, 2 of the helper, 4 on the queues.
const int64_t kEventsOfRound = 20;

class Writer {
  public:
    Writer(const char *path, const ProfProcess &process) {
        unlink(path);
        check(prof_writer_open(path, &process, &writer_));
    }
    uint32_t name(const char *text, int category, ProfLayer layer = PROF_LAYER_CODE) {
        return prof_writer_name(writer_, category, layer, text);
    }
    void stream(uint32_t id, ProfStreamKind kind, const char *name) {
        ProfStream stream = make_stream(id, kind, id == 0, kind == PROF_STREAM_DEVICE ? 200000 : 0);
        set_text(stream.name, name);
        prof_writer_stream(writer_, &stream);
    }
    void put(uint32_t stream, const ProfEvent &event) { prof_writer_put(writer_, stream, &event); }
    void close(int64_t end_ns, int64_t env_steps = 0) {
        prof_writer_steps(writer_, env_steps);
        check(prof_writer_close(writer_, end_ns));
    }
    void abandon() {
        prof_writer_flush(writer_);
        prof_writer_abandon(writer_);
    }

  private:
    static void check(Status status) {
        if (status == STATUS_OK) return;
        fprintf(stderr, "profiler_make_trace: %s\n", host_message());
        exit(1);
    }
    ProfWriter *writer_ = nullptr;
};

ProfEvent phase(int64_t time_ns, HostTracePhase phase) {
    ProfEvent event = make_event(PROF_EVENT_PHASE, time_ns);
    event.phase = phase;
    return event;
}

ProfProcess trainer() {
    ProfProcess process = make_process(kStart);
    set_text(process.tool, "trainer");
    set_text(process.device, "GPU 0");
    process.devices = 1;
    process.threads = 2;
    process.envs = 4096;
    return process;
}

// Streams are written one after the other, in runs of rounds: the same as a recorder does it.
class Gpu {
  public:
    explicit Gpu(const char *path) : w(path, trainer()) {
        w.stream(0, PROF_STREAM_THREAD, "main");
        w.stream(1, PROF_STREAM_THREAD, "worker 1");
        w.stream(2, PROF_STREAM_DEVICE, "GPU 0, stream 7");
        w.stream(3, PROF_STREAM_DEVICE, "GPU 0, stream 13");
        w.put(0, phase(kStart, HOST_PHASE_WARM_UP));
    }
    void rounds(int64_t first, int64_t last) {
        for (int64_t i = first; i < last; i++)
            main_round(i);
        for (int64_t i = first; i < last; i++) {
            w.put(1, begin(at(i) + 100, fold));
            w.put(1, end(at(i) + 6000 + 37 * (i % 50)));
        }
        for (int64_t i = first; i < last; i++)
            queue_round(2, i, 0);
        for (int64_t i = first; i < last; i++)
            queue_round(3, i, 1);
    }
    void close(int64_t rounds) { w.close(at(rounds) + 1000, 4096 * rounds); }

  private:
    static int64_t at(int64_t round) { return kStart + 1000 + 20000 * round; }

    void main_round(int64_t i) {
        int64_t t = at(i);
        if (i == 1) w.put(0, phase(t, HOST_PHASE_TRAIN));
        if (i % 1000 == 999) w.put(0, phase(t, HOST_PHASE_EVALUATE));
        if (i % 1000 == 0 && i > 0) w.put(0, phase(t, HOST_PHASE_TRAIN));
        w.put(0, begin(t, generation));
        w.put(0, begin(t + 200, evaluate));
        for (int k = 0; k < 2; k++) {
            w.put(0, begin(t + 300 + 800 * k, call));
            w.put(0, launch(t + 400 + 800 * k, correlation(i, k)));
            w.put(0, end(t + 900 + 800 * k));
        }
        w.put(0, begin(t + 2000, wait));
        w.put(0, end(t + 12000));
        w.put(0, end(t + 12100));
        w.put(0, begin(t + 13000, update));
        w.put(0, end(t + 18000 + 29 * (i % 40)));
        w.put(0, end(t + 19500));
    }
    void queue_round(uint32_t stream, int64_t i, int k) {
        ProfEvent kernel = interval(at(i) + 1500 + 2500 * k, 6000 - 500 * k + 11 * (i % 100), correlation(i, k));
        kernel.name = k == 0 ? rollout : reduce;
        kernel.threads = 131072;
        w.put(stream, kernel);
        ProfEvent copy = interval(at(i) + 10000, 800, correlation(i, k));
        copy.work = PROF_DEVICE_COPY;
        copy.name = transfer;
        w.put(stream, copy);
    }
    static uint64_t correlation(int64_t i, int k) { return static_cast<uint64_t>(2 * i + k + 1); }

    Writer w;
    uint32_t generation = w.name("generation", HOST_TRACE_HOST), evaluate = w.name("evaluate", HOST_TRACE_SIMULATION);
    uint32_t call = w.name("cudaLaunchKernel", PROF_CATEGORY_ENCLOSING, PROF_LAYER_API);
    uint32_t wait = w.name("wait for the device", HOST_TRACE_IDLE), update = w.name("update", HOST_TRACE_LEARNING);
    uint32_t fold = w.name("fold returns", HOST_TRACE_HOST), rollout = w.name("rollout_kernel", HOST_TRACE_SIMULATION);
    uint32_t reduce = w.name("reduce_kernel", HOST_TRACE_LEARNING), transfer = w.name("copy", HOST_TRACE_COMMUNICATION);
};

void write_gpu(const char *path, int64_t events) {
    const int64_t rounds = events / kEventsOfRound, step = 1000;
    Gpu gpu(path);
    for (int64_t i = 0; i < rounds; i += step)
        gpu.rounds(i, std::min(i + step, rounds));
    gpu.close(rounds);
}

void write_hostile(const char *path) {
    ProfProcess process = make_process(kStart);
    set_text(process.tool, "</script><script>throw 1</script>");
    set_text(process.device, "<img src=x onerror=throw(2)> & \"quotes\" 'too'");
    Writer w(path, process);
    w.stream(0, PROF_STREAM_THREAD, "</SCRIPT ><!-- main");
    w.stream(1, PROF_STREAM_DEVICE, "queue\\\" ]]> & \xe2\x80\xa8 line");
    int64_t t = kStart;
    for (const char *text : {"</script><script>throw 3</script>", "<!--<script>", "\"quoted\" and \\ and /slash/",
                             "\xe2\x80\xa8\xe2\x80\xa9", "\xf0\x9f\x90\x9f fish \xc3\xa9", "__proto__", "constructor",
                             "\x01\x1f\x7f", ""}) {
        w.put(0, begin(t, w.name(text, HOST_TRACE_HOST)));
        w.put(0, launch(t + 1, static_cast<uint64_t>(t)));
        w.put(0, end(t += 1000));
    }
    ProfEvent kernel = interval(kStart + 10, 500, static_cast<uint64_t>(kStart));
    kernel.name = w.name("kernel<float, '\\''>(</script>)", HOST_TRACE_SIMULATION);
    w.put(1, kernel);
    w.close(t);
}

ProfEvent note(ProfEventKind kind, int64_t time_ns, uint64_t count, uint64_t correlation = 0) {
    ProfEvent event = make_event(kind, time_ns);
    event.count = count;
    event.correlation = correlation;
    return event;
}

void put_kinds_of_thread(Writer &w, int64_t t, const uint32_t (&names)[5]) {
    ProfEvent capture = make_event(PROF_EVENT_CAPTURE, t + 30), split = make_event(PROF_EVENT_SPLIT, t + 40);
    capture.node = 9;
    split.weight[HOST_TRACE_SIMULATION] = 3, split.weight[HOST_TRACE_POLICY] = 400;
    w.put(0, phase(t, HOST_PHASE_TRAIN));
    w.put(0, begin(t + 10, names[0]));
    w.put(0, begin(t + 20, names[1]));
    w.put(0, launch(t + 20, 1));
    w.put(0, capture);
    w.put(0, split);
    w.put(0, end(t + 50));
    w.put(0, begin(t + 60, names[1]));
    w.put(0, note(PROF_EVENT_CALL, t + 60, 0, 2));
    w.put(0, end(t + 200));
    for (bool is_plain : {false, true}) {
        ProfEvent stretch = note(PROF_EVENT_STRETCH, t + 210, 64);
        stretch.is_plain = is_plain;
        stretch.duration_ns = 140, stretch.processor_ns = 130, stretch.pauses = 1;
        w.put(0, stretch);
    }
    w.put(0, begin(t + 220, names[4])); // an interpreter's
    w.put(0, end(t + 230));
    w.put(0, end(t + 240));
    w.put(0, note(PROF_EVENT_DROPPED, t + 250, 5));
    ProfEvent reader = make_event(PROF_EVENT_READER, t + 300), join = begin(t + 15, names[0]);
    reader.processor_ns = 77;
    w.put(0, reader);
    join.kind = PROF_EVENT_JOIN;
    w.put(1, join);
    w.put(1, end(t + 100));
}

void put_kinds_of_queues(Writer &w, int64_t t, const uint32_t (&names)[5]) {
    ProfEvent kernel = interval(t + 70, 40, 1, 9), wait = note(PROF_EVENT_WAIT, t + 80, 0, 2);
    kernel.name = names[2];
    w.put(2, kernel);
    wait.duration_ns = 90;
    wait.name = names[3];
    w.put(3, note(PROF_EVENT_ID, t + 20, UINT64_MAX, 1));
    w.put(3, note(PROF_EVENT_ALLOC, t + 61, 1 << 20, 2));
    w.put(3, note(PROF_EVENT_POOL, t + 62, 1 << 21, 2));
    w.put(3, wait);
    w.put(3, note(PROF_EVENT_RELEASE, t + 90, 1 << 20, 2));
    w.put(3, note(PROF_EVENT_BUSY, t + 100, 50));
    w.put(3, note(PROF_EVENT_MEMORY, t + 100, 1 << 30));
    w.put(3, note(PROF_EVENT_OVERHEAD, t + 110, 1000));
}

void write_kinds(const char *path) {
    Writer w(path, trainer());
    const uint32_t names[] = {w.name("evaluate", HOST_TRACE_SIMULATION),
                              w.name("call", PROF_CATEGORY_ENCLOSING, PROF_LAYER_API),
                              w.name("kernel", PROF_CATEGORY_ENCLOSING, PROF_LAYER_API),
                              w.name("wait for a stream", HOST_TRACE_IDLE, PROF_LAYER_API),
                              w.name("act", HOST_TRACE_POLICY, PROF_LAYER_SCRIPT)};
    w.stream(0, PROF_STREAM_THREAD, "main");
    w.stream(1, PROF_STREAM_THREAD, "worker 1");
    w.stream(2, PROF_STREAM_DEVICE, "GPU 0 stream 7");
    w.stream(3, PROF_STREAM_DEVICE, "GPU 0: waits, memory");
    for (int64_t t = kStart; t < kStart + 2000; t += 1000) { // two blocks of each stream
        put_kinds_of_thread(w, t, names);
        put_kinds_of_queues(w, t, names);
    }
    w.close(kStart + 2000, 4096);
}

} // namespace

int main(int argc, char **argv) {
    const std::string kind = argc > 2 ? argv[1] : "";
    if (kind == "gpu" && argc == 4) {
        write_gpu(argv[2], atoll(argv[3]));
    } else if (kind == "hostile") {
        write_hostile(argv[2]);
    } else if (kind == "kinds") {
        write_kinds(argv[2]);
    } else if (kind == "empty") {
        Writer(argv[2], make_process(kStart)).close(kStart);
    } else if (kind == "cut") {
        Writer w(argv[2], trainer());
        w.stream(0, PROF_STREAM_THREAD, "main");
        w.put(0, begin(kStart + 10, w.name("open at the end", HOST_TRACE_SIMULATION)));
        w.put(0, begin(kStart + 90, w.name("within", HOST_TRACE_POLICY)));
        w.abandon();
    } else {
        fprintf(stderr,
                "usage: profiler_make_trace gpu PATH EVENTS | hostile PATH | empty PATH | cut PATH | kinds PATH\n");
        return 2;
    }
    return 0;
}
