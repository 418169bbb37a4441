// Traces made up for tests: streams, names and events as they are, and written to a file.
#ifndef SHOAL_TESTS_PROFILER_SYNTHETIC_H
#define SHOAL_TESTS_PROFILER_SYNTHETIC_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "profiler/prof_analysis.h"
#include "profiler/prof_read.h"
#include "profiler/prof_write.h"

namespace profiler_test {

struct Stream {
    ProfStream info = {};
    std::vector<ProfEvent> events;
};

struct Trace {
    ProfProcess process = {};
    std::vector<ProfName> names; // numbers are indices
    std::vector<Stream> streams; // by ascending id
    int64_t end_ns = 0;
    bool has_end = true;
};

inline void set_text(char (&to)[PROF_TEXT_MAX], const std::string &text) {
    snprintf(to, sizeof to, "%s", text.c_str());
}

inline ProfProcess make_process(int64_t start_ns) {
    ProfProcess process = {};
    set_text(process.tool, "test");
    set_text(process.host, "here");
    set_text(process.device, "no \"device\"");
    set_text(process.device_kind, "cuda");
    set_text(process.clock, "tsc");
    set_text(process.no_device, "no reason");
    process.pid = 77;
    process.workers = 1;
    process.start_ns = start_ns;
    process.start_unix_ns = start_ns + 1000;
    process.offset_error_ns = -1;
    return process;
}

inline ProfName make_name(const std::string &text, int category, int layer = PROF_LAYER_CODE) {
    ProfName name = {};
    set_text(name.text, text);
    name.category = static_cast<uint8_t>(category);
    name.layer = static_cast<uint8_t>(layer);
    return name;
}

inline ProfStream make_stream(uint32_t id, ProfStreamKind kind, bool is_main = false, uint64_t capacity = 0) {
    ProfStream stream = {};
    stream.id = id;
    stream.kind = kind;
    stream.is_main = is_main;
    stream.capacity = capacity;
    set_text(stream.name, "stream " + std::to_string(id));
    return stream;
}

inline ProfEvent make_event(ProfEventKind kind, int64_t time_ns) {
    ProfEvent event = {};
    event.kind = kind;
    event.time_ns = time_ns;
    return event;
}

inline ProfEvent begin(int64_t time_ns, uint32_t name) {
    ProfEvent event = make_event(PROF_EVENT_BEGIN, time_ns);
    event.name = name;
    return event;
}

inline ProfEvent end(int64_t time_ns) { return make_event(PROF_EVENT_END, time_ns); }

inline ProfEvent launch(int64_t time_ns, uint64_t correlation) {
    ProfEvent event = make_event(PROF_EVENT_LAUNCH, time_ns);
    event.correlation = correlation;
    return event;
}

inline ProfEvent interval(int64_t time_ns, int64_t duration_ns, uint64_t correlation, uint64_t node = 0) {
    ProfEvent event = make_event(PROF_EVENT_INTERVAL, time_ns);
    event.duration_ns = duration_ns;
    event.correlation = correlation;
    event.node = node;
    return event;
}

// A path that no other test has at this time; the file is removed with the object.
class TraceFile {
  public:
    TraceFile() {
        static int count = 0;
        path_ = testing::TempDir() + "/shoal-trace-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    }
    ~TraceFile() { unlink(path_.c_str()); }
    TraceFile(const TraceFile &) = delete;
    TraceFile &operator=(const TraceFile &) = delete;
    const char *path() const { return path_.c_str(); }

    std::vector<uint8_t> bytes() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

  private:
    std::string path_;
};

// `chunk`: events of a stream that are put before those of another; the order in the file does not matter.
inline void write_trace(const Trace &trace, const char *path, size_t chunk = 1000) {
    ProfWriter *writer = nullptr;
    unlink(path);
    ASSERT_EQ(STATUS_OK, prof_writer_open(path, &trace.process, &writer)) << host_message();
    for (size_t i = 0; i < trace.names.size(); i++) {
        const ProfName &name = trace.names[i];
        ASSERT_EQ(i, prof_writer_name(writer, name.category, static_cast<ProfLayer>(name.layer), name.text));
    }
    for (const Stream &stream : trace.streams)
        prof_writer_stream(writer, &stream.info);
    bool left = true;
    for (size_t first = 0; left; first += chunk) {
        left = false;
        for (const Stream &stream : trace.streams) {
            for (size_t i = first; i < first + chunk && i < stream.events.size(); i++)
                prof_writer_put(writer, stream.info.id, &stream.events[i]);
            left |= first + chunk < stream.events.size();
        }
    }
    prof_writer_steps(writer, trace.process.env_steps);
    if (trace.has_end) {
        ASSERT_EQ(STATUS_OK, prof_writer_close(writer, trace.end_ns)) << host_message();
    } else {
        prof_writer_flush(writer);
        prof_writer_abandon(writer);
    }
}

// What is left to read of a stream.
inline std::vector<ProfEvent> read_stream(ProfReader *reader, int stream) {
    std::vector<ProfEvent> events;
    ProfEvent event = {};
    while (prof_reader_next(reader, stream, &event))
        events.push_back(event);
    return events;
}

// An analysis that frees itself.
class Analysed {
  public:
    explicit Analysed(const Trace &trace, size_t chunk = 1000) {
        TraceFile file;
        write_trace(trace, file.path(), chunk);
        read(file.path());
    }
    explicit Analysed(const char *path) { read(path); }
    ~Analysed() { prof_analysis_free(&analysis_); }
    Analysed(const Analysed &) = delete;
    Analysed &operator=(const Analysed &) = delete;
    const ProfAnalysis *operator->() const { return &analysis_; }
    const ProfAnalysis &operator*() const { return analysis_; }

    // "/a/b", "(outside)".
    std::string path(int32_t node) const {
        const ProfNode &n = analysis_.nodes[node];
        if (node <= PROF_NODE_UNKNOWN) return prof_node_name(&analysis_, node);
        std::string above = n.parent > PROF_NODE_UNKNOWN ? path(n.parent) : "";
        return above + "/" + prof_node_name(&analysis_, node);
    }

    const ProfNode *find(const std::string &wanted) const {
        for (int32_t i = 0; i < analysis_.node_count; i++) {
            if (path(i) == wanted) return &analysis_.nodes[i];
        }
        return nullptr;
    }

  private:
    void read(const char *path) {
        ProfReader *reader = nullptr;
        if (prof_reader_open(path, &reader) != STATUS_OK || prof_analyse(reader, &analysis_) != STATUS_OK) {
            ADD_FAILURE() << host_message();
        }
        prof_reader_close(reader);
    }
    ProfAnalysis analysis_ = {};
};

} // namespace profiler_test

#endif
