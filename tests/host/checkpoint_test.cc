#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/checkpoint.h"
#include "tests/host/host_test.h"

namespace {

struct Sample {
    std::vector<float> params = {1.5f, -0.0f, 3e-40f, 4, 5, 6};
    std::vector<double> moments = {0.1, -2.5, 1e300};
    std::vector<uint64_t> counters = {UINT64_MAX, 0};
    std::vector<int64_t> generation = {-7};
    std::vector<HostTensor> tensors = {
        {"params", HOST_DTYPE_F32, 2, {2, 3}, params.data()},  {"moments", HOST_DTYPE_F64, 1, {3}, moments.data()},
        {"counters", HOST_DTYPE_U64, 1, {2}, counters.data()}, {"generation", HOST_DTYPE_I64, 0, {}, generation.data()},
        {"empty", HOST_DTYPE_F32, 2, {0, 5}, nullptr},
    };
    std::vector<HostMeta> meta = {{"config", "{\"pop\": 256}\n"}, {"env", "c\xc3\xa4rtpole"}};

    Status write(const std::string &path) const {
        return host_checkpoint_write(path.c_str(), tensors.data(), static_cast<int>(tensors.size()), meta.data(),
                                     static_cast<int>(meta.size()));
    }
};

// Everything a reader can get at, as one text.
std::string content(const HostCheckpoint *checkpoint) {
    std::string all;
    for (int i = 0; i < host_checkpoint_tensor_count(checkpoint); i++) {
        const HostTensor *tensor = host_checkpoint_tensor_at(checkpoint, i);
        size_t size = host_dtype_bytes(tensor->dtype);
        all += std::string(tensor->name) + " " + host_dtype_name(tensor->dtype);
        for (int j = 0; j < tensor->rank; j++) {
            all += " " + std::to_string(tensor->shape[j]);
            size *= static_cast<size_t>(tensor->shape[j]);
        }
        all += ":" + std::string(static_cast<const char *>(tensor->data), size) + "\n";
    }
    for (const char *key : {"config", "env"}) {
        const char *text = host_checkpoint_meta(checkpoint, key);
        all += std::string(key) + "=" + (text != nullptr ? text : "(none)") + "\n";
    }
    return all;
}

Status open_text(const std::string &bytes, HostCheckpoint **checkpoint) {
    return host_checkpoint_open_memory(bytes.data(), bytes.size(), "test", checkpoint);
}

class CheckpointTest : public testing::Test {
  protected:
    // The bytes of the sample as written.
    std::string sample_bytes() {
        EXPECT_OK(sample.write(path));
        return read_file(path);
    }
    Sample sample;
    TempFolder folder;
    std::string path = folder / "gen-00000001.safetensors";
};

TEST_F(CheckpointTest, RoundTrip) {
    ASSERT_OK(sample.write(path));
    EXPECT_EQ(1, count_entries(folder.path()));
    HostCheckpoint *checkpoint;
    ASSERT_OK(host_checkpoint_open(path.c_str(), &checkpoint));
    EXPECT_EQ(5, host_checkpoint_tensor_count(checkpoint));
    float params[6];
    double moments[3];
    uint64_t counters[2];
    int64_t generation;
    const int64_t params_shape[] = {2, 3}, three[] = {3}, two[] = {2}, empty[] = {0, 5};
    ASSERT_OK(host_checkpoint_read(checkpoint, "params", HOST_DTYPE_F32, 2, params_shape, params));
    ASSERT_OK(host_checkpoint_read(checkpoint, "moments", HOST_DTYPE_F64, 1, three, moments));
    ASSERT_OK(host_checkpoint_read(checkpoint, "counters", HOST_DTYPE_U64, 1, two, counters));
    ASSERT_OK(host_checkpoint_read(checkpoint, "generation", HOST_DTYPE_I64, 0, nullptr, &generation));
    ASSERT_OK(host_checkpoint_read(checkpoint, "empty", HOST_DTYPE_F32, 2, empty, nullptr));
    EXPECT_EQ(0, memcmp(params, sample.params.data(), sizeof params));
    EXPECT_EQ(0, memcmp(moments, sample.moments.data(), sizeof moments));
    EXPECT_EQ(UINT64_MAX, counters[0]);
    EXPECT_EQ(-7, generation);
    EXPECT_STREQ("{\"pop\": 256}\n", host_checkpoint_meta(checkpoint, "config"));
    EXPECT_EQ(nullptr, host_checkpoint_meta(checkpoint, "none"));
    EXPECT_EQ(nullptr, host_checkpoint_find(checkpoint, "none"));
    host_checkpoint_close(checkpoint);
    host_checkpoint_close(nullptr);
}

TEST_F(CheckpointTest, SameContentSameBytes) {
    std::string first = sample_bytes();
    std::swap(sample.tensors[0], sample.tensors[3]);
    std::swap(sample.meta[0], sample.meta[1]);
    EXPECT_EQ(first, sample_bytes());
}

TEST_F(CheckpointTest, TensorsLieAligned) {
    std::string bytes = sample_bytes();
    uint64_t header;
    memcpy(&header, bytes.data(), sizeof header);
    EXPECT_EQ(0u, header % 8);
    HostCheckpoint *checkpoint;
    ASSERT_OK(host_checkpoint_open(path.c_str(), &checkpoint));
    const char *first = static_cast<const char *>(host_checkpoint_find(checkpoint, "counters")->data);
    for (int i = 0; i < host_checkpoint_tensor_count(checkpoint); i++) {
        const HostTensor *tensor = host_checkpoint_tensor_at(checkpoint, i);
        ptrdiff_t distance = static_cast<const char *>(tensor->data) - first;
        EXPECT_EQ(0, distance % static_cast<ptrdiff_t>(host_dtype_bytes(tensor->dtype))) << tensor->name;
    }
    host_checkpoint_close(checkpoint);
}

TEST_F(CheckpointTest, EveryTruncationIsFound) {
    std::string bytes = sample_bytes();
    HostCheckpoint *checkpoint = nullptr;
    for (size_t length = 0; length < bytes.size(); length++) {
        ASSERT_EQ(STATUS_CORRUPT, open_text(bytes.substr(0, length), &checkpoint)) << length;
        ASSERT_EQ(nullptr, checkpoint);
    }
    EXPECT_EQ(STATUS_CORRUPT, open_text(bytes + '\0', &checkpoint));
    EXPECT_EQ(STATUS_CORRUPT, open_text(bytes + bytes, &checkpoint));
}

TEST_F(CheckpointTest, EveryFlippedBitIsFoundOrChangesNothing) {
    std::string bytes = sample_bytes();
    HostCheckpoint *checkpoint;
    ASSERT_OK(open_text(bytes, &checkpoint));
    std::string whole = content(checkpoint);
    host_checkpoint_close(checkpoint);
    int harmless = 0;
    for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
        std::string damaged = bytes;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
        Status status = open_text(damaged, &checkpoint);
        if (status == STATUS_OK) {
            harmless++;
            ASSERT_EQ(whole, content(checkpoint)) << "bit " << bit;
            host_checkpoint_close(checkpoint);
        } else {
            ASSERT_EQ(STATUS_CORRUPT, status) << "bit " << bit;
        }
    }
    // The offsets of an empty tensor may point elsewhere between two others, and a JSON escape may be spelled
    // otherwise.
    EXPECT_LT(harmless, 16);
    RecordProperty("harmless", harmless);
}

TEST_F(CheckpointTest, DamagedFileIsNamedAndLeftAlone) {
    std::string bytes = sample_bytes();
    bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
    write_file(path, bytes);
    HostCheckpoint *checkpoint;
    EXPECT_FAILS(STATUS_CORRUPT, path, host_checkpoint_open(path.c_str(), &checkpoint));
    EXPECT_FAILS(STATUS_CORRUPT, "the file is damaged", host_checkpoint_open(path.c_str(), &checkpoint));
    EXPECT_EQ(bytes, read_file(path));
    EXPECT_FAILS(STATUS_IO, "No such file", host_checkpoint_open((folder / "none").c_str(), &checkpoint));
    EXPECT_FAILS(STATUS_IO, "not a regular file", host_checkpoint_open(folder.path().c_str(), &checkpoint));
}

TEST_F(CheckpointTest, OtherShapesAndTypesAreNamed) {
    ASSERT_OK(sample.write(path));
    HostCheckpoint *checkpoint;
    ASSERT_OK(host_checkpoint_open(path.c_str(), &checkpoint));
    const int64_t shape[] = {3, 2};
    float data[6];
    EXPECT_FAILS(STATUS_CORRUPT, "tensor params: F32 [2, 3] in the file, F32 [3, 2] expected",
                 host_checkpoint_read(checkpoint, "params", HOST_DTYPE_F32, 2, shape, data));
    EXPECT_FAILS(STATUS_CORRUPT, "I32 [3] expected",
                 host_checkpoint_read(checkpoint, "params", HOST_DTYPE_I32, 1, shape, data));
    EXPECT_FAILS(STATUS_CORRUPT, "no tensor 'weights'",
                 host_checkpoint_read(checkpoint, "weights", HOST_DTYPE_F32, 1, shape, data));
    host_checkpoint_close(checkpoint);
}

std::string with_header(const std::string &json, size_t data_bytes) {
    uint64_t length = json.size();
    return std::string(reinterpret_cast<const char *>(&length), sizeof length) + json + std::string(data_bytes, '\0');
}

// A header whose tensor entries are `tensors`, over data of zeros.
std::string with_tensors(const std::string &tensors, size_t data_bytes) {
    return with_header(R"({"__metadata__":{"shoal_format":"1","content_hash":"0000000000000000"},)" + tensors + "}",
                       data_bytes);
}

TEST_F(CheckpointTest, HostileHeadersAreRefusedWithTheReason) {
    const struct {
        const char *reason;
        std::string bytes;
    } cases[] = {
        {"only 7 bytes", std::string(7, '\0')},
        {"goes beyond the end", std::string(8, '\xff') + "{}"},
        {"not a JSON object", with_header("[]", 0)},
        {"not a JSON object", with_header("", 0)},
        {"malformed JSON in its header at line 1", with_header("{\"a\"", 0)},
        {"malformed JSON", with_header(R"({"__metadata__":{},"__metadata__":{}})", 0)},
        {"no metadata", with_header("{}", 0)},
        {"no metadata", with_header(R"({"__metadata__":"x"})", 0)},
        {"no format version", with_header(R"({"__metadata__":{}})", 0)},
        {"format version '2'; this program reads 1", with_header(R"({"__metadata__":{"shoal_format":"2"}})", 0)},
        {"no content hash", with_header(R"({"__metadata__":{"shoal_format":"1"}})", 0)},
        {"not a text", with_header(R"({"__metadata__":{"shoal_format":"1","content_hash":"","x":1}})", 0)},
        {"not dtype, shape and data_offsets", with_tensors(R"("a":[])", 0)},
        {"not dtype, shape and data_offsets", with_tensors(R"("a":{"dtype":"F32"})", 0)},
        {"unknown type 'F16'", with_tensors(R"("a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]})", 2)},
        {"no shape", with_tensors(R"("a":{"dtype":"F32","shape":1,"data_offsets":[0,4]})", 4)},
        {"5 dimensions", with_tensors(R"("a":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]})", 4)},
        {"not a whole number", with_tensors(R"("a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4)},
        {"not a whole number", with_tensors(R"("a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4)},
        {"larger than can be addressed",
         with_tensors(R"("a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0)},
        {"larger than can be addressed",
         with_tensors(R"("a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})", 4)},
        {"no pair of offsets", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0]})", 4)},
        {"no pair of offsets", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,"4"]})", 4)},
        {"lies at bytes -4 to 0", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", 4)},
        {"lies at bytes 4 to 0", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4)},
        {"lies at bytes 0 to 4 of 3", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 3)},
        {"where its shape needs 4", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]})", 8)},
        {"a gap or an overlap", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 8)},
        {"a gap or an overlap", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
             "b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})",
                                             4)},
        {"4 bytes after its last tensor", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 8)},
        {"recorded is 0000000000000000", with_tensors(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4)},
    };
    for (const auto &one : cases) {
        HostCheckpoint *checkpoint = nullptr;
        EXPECT_FAILS(STATUS_CORRUPT, one.reason, open_text(one.bytes, &checkpoint));
        EXPECT_EQ(nullptr, checkpoint);
    }
}

TEST_F(CheckpointTest, WriterRefusesWhatItCouldNotReadBack) {
    const float one = 1;
    const HostTensor twice[] = {{"a", HOST_DTYPE_F32, 0, {}, &one}, {"a", HOST_DTYPE_F32, 0, {}, &one}};
    EXPECT_FAILS(STATUS_SYSTEM, "repeated", host_checkpoint_write(path.c_str(), twice, 2, nullptr, 0));
    const HostTensor reserved = {"__metadata__", HOST_DTYPE_F32, 0, {}, &one};
    EXPECT_FAILS(STATUS_SYSTEM, "reserved", host_checkpoint_write(path.c_str(), &reserved, 1, nullptr, 0));
    const HostTensor negative = {"a", HOST_DTYPE_F32, 1, {-1}, &one};
    EXPECT_FAILS(STATUS_SYSTEM, "impossible shape", host_checkpoint_write(path.c_str(), &negative, 1, nullptr, 0));
    const HostMeta hash = {"content_hash", "0"};
    EXPECT_FAILS(STATUS_SYSTEM, "reserved", host_checkpoint_write(path.c_str(), nullptr, 0, &hash, 1));
    const HostMeta latin = {"config", "\xe4"};
    EXPECT_FAILS(STATUS_SYSTEM, "not UTF-8", host_checkpoint_write(path.c_str(), nullptr, 0, &latin, 1));
    EXPECT_EQ(0, count_entries(folder.path()));
    ASSERT_OK(host_checkpoint_write(path.c_str(), nullptr, 0, nullptr, 0));
    HostCheckpoint *checkpoint;
    ASSERT_OK(host_checkpoint_open(path.c_str(), &checkpoint));
    EXPECT_EQ(0, host_checkpoint_tensor_count(checkpoint));
    host_checkpoint_close(checkpoint);
}

TEST_F(CheckpointTest, AFullDiskKeepsTheEarlierFile) {
    std::string before = sample_bytes();
    std::vector<float> large(100000, 2.5f);
    sample.tensors.push_back({"large", HOST_DTYPE_F32, 1, {static_cast<int64_t>(large.size())}, large.data()});
    // In a child, because the limit holds for the whole process. Limits in and between the parts of the file.
    for (rlim_t limit : {0u, 1u, 7u, 8u, 100u, 700u, 4096u, 65536u, 400000u}) {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            signal(SIGXFSZ, SIG_IGN);
            const struct rlimit size = {limit, limit};
            bool failed = setrlimit(RLIMIT_FSIZE, &size) == 0 && sample.write(path) == STATUS_IO &&
                          strstr(host_message(), "File too large") != nullptr;
            _exit(failed ? 0 : 1);
        }
        int status;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status) << limit;
        EXPECT_EQ(before, read_file(path)) << limit;
        EXPECT_EQ(1, count_entries(folder.path())) << limit;
    }
    EXPECT_FAILS(STATUS_IO, "No such file", sample.write(folder / "none/x"));
}

TEST_F(CheckpointTest, AKilledWriterLeavesTheOldFileOrTheNewOne) {
    std::string before = sample_bytes();
    std::vector<float> large(200000, 2.5f);
    sample.tensors.push_back({"large", HOST_DTYPE_F32, 1, {static_cast<int64_t>(large.size())}, large.data()});
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            for (;;) {
                large[0] += 1;
                if (sample.write(path) != STATUS_OK) _exit(1);
            }
        }
        usleep(static_cast<useconds_t>(1000 * (i % 7) + 200));
        kill(child, SIGKILL);
        int status;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_TRUE(WIFSIGNALED(status));
        HostCheckpoint *checkpoint;
        ASSERT_OK(host_checkpoint_open(path.c_str(), &checkpoint));
        host_checkpoint_close(checkpoint);
    }
}

} // namespace
