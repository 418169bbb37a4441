#include <sys/wait.h>
#include <unistd.h>

#include "host/run_dir.h"
#include "tests/host/host_test.h"

namespace {

class RunDirTest : public testing::Test {
  protected:
    void TearDown() override { host_run_dir_close(&run); }
    Status create(const std::string &name) { return host_run_dir_create(&run, (folder / name).c_str(), "cartpole"); }
    Status resume(const std::string &name) { return host_run_dir_resume(&run, (folder / name).c_str()); }
    TempFolder folder;
    HostRunDir run = {"", -1};
};

TEST_F(RunDirTest, CreateThenResume) {
    ASSERT_OK(create("deep/er/run/"));
    EXPECT_EQ(folder / "deep/er/run", run.path);
    ASSERT_OK(host_run_dir_write_config(&run, "{}\n"));
    EXPECT_EQ("{}\n", read_file(folder / "deep/er/run/config.json"));
    EXPECT_TRUE(std::filesystem::is_directory(folder / "deep/er/run/checkpoint"));
    host_run_dir_close(&run);
    EXPECT_FAILS(STATUS_USAGE, "holds a run already; go on with --resume", create("deep/er/run"));
    ASSERT_OK(resume("deep/er/run"));
}

TEST_F(RunDirTest, AFolderWithoutARunCanBeUsed) {
    write_file(folder / "notes.txt", "x");
    ASSERT_OK(host_run_dir_create(&run, folder.path().c_str(), "cartpole"));
    host_run_dir_close(&run);
    // Killed before config.json was written: there is nothing to lose yet.
    ASSERT_OK(host_run_dir_create(&run, folder.path().c_str(), "cartpole"));
    EXPECT_EQ("x", read_file(folder / "notes.txt"));
}

TEST_F(RunDirTest, ACheckpointAloneIsARunToo) {
    std::filesystem::create_directories(folder / "run/checkpoint");
    write_file(folder / "run/checkpoint/gen-00000003.safetensors", "x");
    EXPECT_FAILS(STATUS_USAGE, "holds a run already", create("run"));
}

TEST_F(RunDirTest, PathsBelowAFileAreNamed) {
    write_file(folder / "file", "x");
    EXPECT_FAILS(STATUS_IO, "file is a file, not a folder", create("file/run"));
    EXPECT_FAILS(STATUS_IO, "file is a file, not a folder", create("file"));
    EXPECT_EQ("x", read_file(folder / "file"));
    EXPECT_FAILS(STATUS_USAGE, "too long", create(std::string(5000, 'a')));
    EXPECT_FAILS(STATUS_IO, "File name too long", create(std::string(300, 'a')));
}

TEST_F(RunDirTest, ResumeNeedsARun) {
    EXPECT_FAILS(STATUS_USAGE, "No such file", resume("none"));
    EXPECT_FAILS(STATUS_USAGE, "holds no run", resume("."));
    write_file(folder / "file", "x");
    EXPECT_FAILS(STATUS_USAGE, "not a folder", resume("file"));
}

TEST_F(RunDirTest, OneProcessAtATime) {
    ASSERT_OK(create("run"));
    ASSERT_OK(host_run_dir_write_config(&run, "{}"));
    HostRunDir other;
    EXPECT_FAILS(STATUS_IO, "in use by another process", host_run_dir_resume(&other, (folder / "run").c_str()));
    EXPECT_EQ(-1, other.lock_fd);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        close(run.lock_fd); // what the fork inherited
        _exit(host_run_dir_resume(&other, (folder / "run").c_str()) == STATUS_IO ? 0 : 1);
    }
    int status;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    host_run_dir_close(&run);
    ASSERT_OK(host_run_dir_resume(&other, (folder / "run").c_str()));
    host_run_dir_close(&other);
}

TEST_F(RunDirTest, DefaultNamesCountUp) {
    std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    HostRunDir second;
    ASSERT_OK(host_run_dir_create(&run, "", "cartpole"));
    ASSERT_OK(host_run_dir_create(&second, nullptr, "cartpole"));
    std::filesystem::current_path(before);
    std::string first_path = run.path, second_path = second.path;
    EXPECT_EQ(0u, first_path.find("runs/cartpole-20"));
    EXPECT_EQ("-1", first_path.substr(first_path.size() - 2));
    EXPECT_EQ("-2", second_path.substr(second_path.size() - 2));
    host_run_dir_close(&second);
}

TEST_F(RunDirTest, NewestCheckpointAndPruning) {
    ASSERT_OK(create("run"));
    char path[HOST_PATH_MAX];
    int64_t generation;
    ASSERT_OK(host_run_newest_checkpoint(run.path, &generation, path));
    EXPECT_EQ(-1, generation);
    EXPECT_STREQ("", path);
    for (int64_t each : {9, 0, 100, 20, 123456789}) {
        ASSERT_OK(host_run_checkpoint_path(run.path, each, path));
        write_file(path, "x");
    }
    for (const char *other : {"gen-1.safetensors", "gen-00000200.safetensors.tmp-7", "gen-99999999.txt", "notes"})
        write_file(folder / ("run/checkpoint/" + std::string(other)), "x");
    ASSERT_OK(host_run_newest_checkpoint(run.path, &generation, path));
    EXPECT_EQ(123456789, generation);
    EXPECT_EQ(folder / "run/checkpoint/gen-123456789.safetensors", path);
    ASSERT_OK(host_run_dir_prune(&run, 2));
    EXPECT_EQ(2 + 4, count_entries(folder / "run/checkpoint"));
    EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoint/gen-00000100.safetensors"));
    ASSERT_OK(host_run_dir_prune(&run, 2));
    EXPECT_EQ(2 + 4, count_entries(folder / "run/checkpoint"));
    EXPECT_EQ(STATUS_SYSTEM, host_run_dir_prune(&run, 0));
}

TEST_F(RunDirTest, ResumeClearsWhatAKilledWriterLeft) {
    ASSERT_OK(create("run"));
    ASSERT_OK(host_run_dir_write_config(&run, "{}"));
    host_run_dir_close(&run);
    write_file(folder / "run/checkpoint/gen-00000200.safetensors.tmp-7", "x");
    write_file(folder / "run/config.json.tmp-9", "x");
    write_file(folder / "run/mine.tmp-9", "x");
    ASSERT_OK(resume("run"));
    EXPECT_EQ(0, count_entries(folder / "run/checkpoint"));
    EXPECT_FALSE(std::filesystem::exists(folder / "run/config.json.tmp-9"));
    EXPECT_TRUE(std::filesystem::exists(folder / "run/mine.tmp-9"));
}

} // namespace
