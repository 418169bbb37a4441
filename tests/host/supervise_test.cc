// The supervisor, with children that are this program and do what a test has them do.
#include "host/supervise.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "host/clock.h"
#include "host/file.h"
#include "host/master.h"
#include "host/member.h"
#include "host/run_dir.h"
#include "tests/host/host_test.h"

namespace {

// ---- the children: "--play=PART FOLDER"
// ------------------------------------------------------------------------------

bool is_there(const std::string &path) { return host_file_exists(path.c_str()); }

void wait_ms(int ms) { usleep(static_cast<useconds_t>(ms) * 1000); }

void wait_for(const std::string &path) {
    while (!is_there(path))
        wait_ms(5);
}

// How many lives of this part there have been, with this one.
size_t count_life(const std::string &path) {
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || write(fd, ".", 1) != 1) _exit(99);
    close(fd);
    return read_file(path).size();
}

void say(const std::string &line) {
    int fd = std::stoi(getenv(HOST_SUPERVISOR_FD_ENVIRONMENT));
    if (write(fd, line.data(), line.size()) < 0) _exit(99);
}

std::string line_of(const char *form, long long first, long long second = 0) {
    char line[64];
    snprintf(line, sizeof line, form, first, second);
    return line;
}

// A master that lives until the run is over.
void lead_to_the_end(const std::string &folder) {
    write_file(folder + "/spoke", "");
    for (; !is_there(folder + "/over"); wait_ms(10))
        say("beat 1 0 0\n");
}

int master(const std::string &part, const std::string &folder) {
    size_t life = count_life(folder + "/masters");
    if (part == "silent" && life == 1) pause();
    if (part == "tells") {
        wait_for(folder + "/pid");
        say(line_of(HOST_MASTER_SLOW_LINE, 700, 2000));
        say(line_of(HOST_MASTER_HUNG_LINE, std::stoll(read_file(folder + "/pid"))));
    }
    lead_to_the_end(folder);
    return 0;
}

int trainer(const std::string &part, const std::string &folder) {
    size_t life = count_life(folder + "/trainers");
    bool is_last = part == "hangs" ? life == 10 : part == "waits" || life == 2;
    if (part == "waits") wait_for(folder + "/spoke");
    if (part == "stands still" && life == 1) {
        write_file(folder + "/pid.new", std::to_string(getpid()));
        rename((folder + "/pid.new").c_str(), (folder + "/pid").c_str());
        pause();
    }
    if (part == "saves" && life == 1) {
        char path[HOST_PATH_MAX];
        std::filesystem::create_directory(folder + "/checkpoint");
        if (host_run_checkpoint_path(folder.c_str(), 3, path) != STATUS_OK) _exit(99);
        write_file(path, "");
    }
    if (is_last) write_file(folder + "/over", "");
    if (part == "hangs") return HOST_EXIT_HANGS;
    if (!is_last) raise(SIGKILL);
    return 0;
}

int follower(const std::string &folder) {
    wait_for(folder + "/over");
    return 0;
}

int play(const std::string &part, const std::string &folder) {
    size_t space = part.find(' ');
    std::string role = part.substr(0, space), what = space == std::string::npos ? "" : part.substr(space + 1);
    if (role == "master") return master(what, folder);
    return role == "trainer" ? trainer(what, folder) : follower(folder);
}

// ---- the tests -----------------------------------------------------------------------------------------------------

class SuperviseTest : public ::testing::Test {
  protected:
    // What the supervisor says until the run is over.
    std::string supervise(std::string master, std::string trainer, int followers = 0) {
        std::string parts[] = {"--play=master " + master, "--play=trainer " + trainer, "--play=follower"};
        std::string program = "tool", folder = folder_.path();
        char *argv[3][4];
        for (int i = 0; i < 3; i++) {
            char *words[] = {program.data(), parts[i].data(), folder.data(), nullptr};
            memcpy(argv[i], words, sizeof words);
        }
        HostSupervision o = {};
        o.tool = "tool";
        o.run = folder.c_str();
        o.master = argv[0];
        o.trainer = o.trainer_again = argv[1];
        o.follower = o.evaluator = argv[2];
        o.followers = followers;
        o.listen_fd = -1;
        o.min_workers = 1;
        o.hang_limit_s = 1.5;
        o.master_silence_s = silence_s_;
        o.hook = {"tool", "", nullptr, 1.0, false};
        testing::internal::CaptureStderr();
        EXPECT_OK(host_supervise(&o, &exit_status_));
        return testing::internal::GetCapturedStderr();
    }

    static int count(const std::string &text, const std::string &part) {
        int found = 0;
        for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
            found++;
        return found;
    }

    TempFolder folder_;
    double silence_s_ = 60.0;
    int exit_status_ = -1;
};

// Nothing else would end a master that hangs before its first word.
TEST_F(SuperviseTest, AMasterThatNeverSpeaksIsEnded) {
    silence_s_ = 0.4;
    std::string said = supervise("silent", "waits");
    EXPECT_EQ(0, exit_status_) << said;
    EXPECT_LE(2U, read_file(folder_ / "masters").size());
    EXPECT_LE(1, count(said, "was ended by signal 9 (Killed); another one is started\n")) << said;
}

TEST_F(SuperviseTest, ATrainerThatHangsAgainAndAgainEndsTheRun) {
    std::string said = supervise("beats", "hangs");
    EXPECT_EQ(1, exit_status_) << said;
    EXPECT_EQ(
        9, count(said, "for it hung (--hang-limit 1.5); it goes on from the beginning: there is no checkpoint yet\n"))
        << said;
    EXPECT_EQ(1, count(said, "it has died 10 times without a newer checkpoint: this ends the run\n")) << said;
}

TEST_F(SuperviseTest, SaysFromWhereATrainerGoesOn) {
    std::string said = supervise("beats", "saves");
    EXPECT_EQ(0, exit_status_) << said;
    EXPECT_EQ(1, count(said, "it goes on from the last checkpoint\n")) << said;
}

TEST_F(SuperviseTest, SaysThatATrainerGoesOnFromTheOthers) {
    std::string said = supervise("beats", "dies", 1);
    EXPECT_EQ(0, exit_status_) << said;
    EXPECT_EQ(1, count(said, "it goes on from where the other trainers are\n")) << said;
}

TEST_F(SuperviseTest, EndsWhatTheMasterCallsHung) {
    std::string said = supervise("tells", "stands still");
    EXPECT_EQ(0, exit_status_) << said;
    EXPECT_EQ(1,
              count(said, "a worker needed 0.7 s between two looks for a stop: from now on hangs are noticed after 2 s "
                          "(--hang-limit 1.5)\n"))
        << said;
    EXPECT_EQ(1, count(said, "showed no progress for 4 s, twice the limit (--hang-limit 1.5): it is ended\n")) << said;
    EXPECT_EQ(1, count(said, "was ended by signal 9 (Killed), for it hung (--hang-limit 1.5); it goes on from"))
        << said;
}

} // namespace

int main(int argc, char **argv) {
    const char *part = argc == 3 ? argv[1] : "";
    if (strncmp(part, "--play=", 7) == 0) _exit(play(part + 7, argv[2]));
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
