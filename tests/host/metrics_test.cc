#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "host/metrics.h"
#include "tests/host/host_test.h"

namespace {

const char *const columns[] = {"generation", "return_mean", "wall_s"};
const char header[] = "generation,return_mean,wall_s\n";

class MetricsTest : public testing::Test {
  protected:
    void TearDown() override { host_metrics_close(&metrics); }
    Status create() { return host_metrics_create(&metrics, path.c_str(), columns, 3); }
    Status resume(int64_t last) { return host_metrics_resume(&metrics, path.c_str(), columns, 3, last); }
    Status row(double generation, double mean, double wall_s) {
        const double values[] = {generation, mean, wall_s};
        return host_metrics_row(&metrics, values);
    }
    TempFolder folder;
    std::string path = folder / "metrics.csv";
    HostMetrics metrics = {};
    MetricsTest() { metrics.fd = -1; }
};

TEST_F(MetricsTest, RowsAreOnDiskAtOnce) {
    ASSERT_OK(create());
    EXPECT_EQ(header, read_file(path));
    ASSERT_OK(row(1, 22.1875, 0.1));
    ASSERT_OK(row(2, -1e300, 12345678901.0));
    ASSERT_OK(row(3, std::nan(""), 1.0 / 3));
    EXPECT_EQ(std::string(header) + "1,22.1875,0.1\n2,-1e+300,12345678901\n3,nan,0.333333333\n", read_file(path));
}

TEST_F(MetricsTest, ResumeCutsLaterRows) {
    ASSERT_OK(create());
    for (int generation = 1; generation <= 12; generation++)
        ASSERT_OK(row(generation, generation, 0));
    host_metrics_close(&metrics);
    ASSERT_OK(resume(9));
    ASSERT_OK(row(10, 0.5, 0));
    std::string text = read_file(path);
    EXPECT_NE(std::string::npos, text.find("\n9,9,0\n10,0.5,0\n"));
    EXPECT_EQ(text.size(), text.find("10,0.5,0\n") + 9);
    host_metrics_close(&metrics);
    ASSERT_OK(resume(HOST_METRICS_KEEP_ALL));
    EXPECT_EQ(text, read_file(path));
    host_metrics_close(&metrics);
    ASSERT_OK(resume(0));
    EXPECT_EQ(header, read_file(path));
}

TEST_F(MetricsTest, ATornLastLineIsCutAtEveryByte) {
    const std::string rows[] = {header, "1,2.5,0\n", "2,3.5,1\n"};
    const std::string whole = rows[0] + rows[1] + rows[2];
    for (size_t length = 0; length <= whole.size(); length++) {
        write_file(path, whole.substr(0, length));
        ASSERT_OK(resume(HOST_METRICS_KEEP_ALL)) << length;
        std::string kept = rows[0];
        if (length >= kept.size() + rows[1].size()) kept += rows[1];
        if (length >= whole.size()) kept = whole;
        ASSERT_EQ(kept, read_file(path)) << length;
        host_metrics_close(&metrics);
    }
}

TEST_F(MetricsTest, AMissingFileIsStarted) {
    ASSERT_OK(resume(5));
    EXPECT_EQ(header, read_file(path));
}

TEST_F(MetricsTest, AnotherHeaderIsRefusedAndLeftAlone) {
    const std::string other = "generation,loss\n1,2\n";
    write_file(path, other);
    EXPECT_FAILS(STATUS_CORRUPT, "its header is not 'generation,return_mean,wall_s'", resume(5));
    EXPECT_EQ(other, read_file(path));
}

TEST_F(MetricsTest, DamagedRowsEndWhatIsKept) {
    const std::string good = std::string(header) + "1,2,3\n";
    for (const char *bad : {"2,3\n3,4,5\n", "x,1,2\n", ",1,2\n", "2;1,2,3\n", "99999999999999999999,1,2\n"}) {
        write_file(path, good + bad);
        ASSERT_OK(resume(HOST_METRICS_KEEP_ALL));
        EXPECT_EQ(good, read_file(path)) << bad;
        host_metrics_close(&metrics);
    }
    write_file(path, good + std::string("2,3\0,4\n", 7));
    ASSERT_OK(resume(HOST_METRICS_KEEP_ALL));
    EXPECT_EQ(good, read_file(path));
}

TEST_F(MetricsTest, AFullDiskLeavesWholeRows) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const rlim_t bytes = sizeof header - 1 + 8 + 3; // the second row does not fit
        const struct rlimit size = {bytes, bytes};
        bool as_expected = setrlimit(RLIMIT_FSIZE, &size) == 0 && create() == STATUS_OK &&
                           row(1, 2.5, 0) == STATUS_OK && row(2, 3.5, 0) == STATUS_IO && row(3, 4.5, 0) == STATUS_IO;
        _exit(as_expected ? 0 : 1);
    }
    int status;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(std::string(header) + "1,2.5,0\n", read_file(path));
    EXPECT_FAILS(STATUS_IO, "cannot open", host_metrics_create(&metrics, (folder / "none/m.csv").c_str(), columns, 3));
}

} // namespace
