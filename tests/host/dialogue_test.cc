// A command that is asked line by line: what it says, how it ends, and that nothing of it stays.
#include "tests/host/host_test.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "host/clock.h"
#include "host/dialogue.h"
#include "host/signals.h"

namespace {

class Dialogue : public testing::Test {
  protected:
    void SetUp() override { ASSERT_OK(host_signals_install()); }
    void TearDown() override {
        close();
        host_interrupt(false);
        host_stop_clear();
    }
    void open(const std::string &command) {
        close();
        const char *const environment[] = {"SHOAL_TEST_WORD=there"};
        ASSERT_OK(host_dialogue_open(command.c_str(), environment, 1, &dialogue));
    }
    Status ask(const std::string &question) {
        std::memset(answer, 'x', sizeof answer);
        return host_dialogue_ask(dialogue, question.data(), question.size(), answer);
    }
    void close() {
        host_dialogue_close(&dialogue, 1);
        dialogue = nullptr;
    }

    TempFolder folder;
    HostDialogue *dialogue = nullptr;
    char answer[HOST_ANSWER_MAX];
};

// A process that nobody has waited for yet is gone, too.
bool is_alive(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    size_t end = std::getline(file, line) ? line.rfind(')') : std::string::npos;
    return end != std::string::npos && end + 2 < line.size() && line[end + 2] != 'Z';
}

// Waits until the process is gone; false after 20 s.
bool goes(pid_t pid) {
    for (int i = 0; i < 20000 && is_alive(pid); i++)
        usleep(1000);
    return !is_alive(pid);
}

TEST_F(Dialogue, OneProcessAnswersEveryQuestion) {
    open("while read a b; do echo $((a + b)) $$; done");
    ASSERT_OK(ask("1 2\n"));
    std::string first = answer;
    EXPECT_EQ(0u, first.find("3 "));
    ASSERT_OK(ask("20 22\n"));
    EXPECT_EQ("42" + first.substr(1), answer);
}

TEST_F(Dialogue, LongQuestions) { // far more than a pipe holds
    open("while read -r line; do echo ${#line}; done");
    for (size_t length : {10u, 200000u, 3u}) {
        ASSERT_OK(ask(std::string(length, '1') + "\n"));
        EXPECT_EQ(std::to_string(length), answer);
    }
}

TEST_F(Dialogue, Environment) {
    setenv("SHOAL_SECRET", "a secret of this test", 1);
    setenv("SHOAL_TEST_OTHER", "too", 1);
    open("while read _; do echo $SHOAL_TEST_WORD $SHOAL_TEST_OTHER \"${SHOAL_SECRET-none}\"; done");
    ASSERT_OK(ask("\n"));
    EXPECT_STREQ("there too none", answer);
    unsetenv("SHOAL_SECRET");
}

TEST_F(Dialogue, WhatGoesWrongIsNamed) {
    struct {
        const char *command;
        Status status;
        const char *message;
    } cases[] = {
        {"exit 3", STATUS_CORRUPT, "ended with status 3"},
        {"read _; kill -TERM $$", STATUS_CORRUPT, "ended by signal 15"},
        {"no-such-command-anywhere 2>/dev/null", STATUS_SYSTEM, "cannot run"},
        {"echo hello; cat", STATUS_CORRUPT, "not asked for"},
        {"read _; echo 1; echo 2; cat", STATUS_CORRUPT, "not asked for: '2'"},
        {"read _; head -c 1000 /dev/zero | tr '\\0' x; cat", STATUS_CORRUPT, "too long"},
        {"exec >/dev/null; cat", STATUS_CORRUPT, "closed its output"},
    };
    for (const auto &c : cases) {
        open(c.command);
        Status status = ask("1\n");
        if (status == STATUS_OK) { // what came with the answer, or before the question, may be seen a moment later
            usleep(200000);
            status = ask("1\n");
        }
        EXPECT_EQ(c.status, status) << c.command;
        EXPECT_NE(nullptr, std::strstr(host_message(), c.message)) << c.command << ": " << host_message();
    }
}

TEST_F(Dialogue, ItIsStartedAgainAfterItsEnd) {
    open("read a; echo $a; read a; exit 1");
    ASSERT_OK(ask("5\n"));
    EXPECT_FAILS(STATUS_CORRUPT, "status 1", ask("6\n"));
    ASSERT_OK(ask("7\n"));
    EXPECT_STREQ("7", answer);
}

// The answer to a question that was broken off comes late, and is not taken for the next one's.
TEST_F(Dialogue, LateAnswersArePassedOver) {
    open("while read a; do [ $a = 1 ] && sleep 0.3; echo $a; done");
    std::thread other([] {
        usleep(50000);
        host_interrupt(true);
    });
    int64_t looks = host_stop_looks();
    EXPECT_EQ(STATUS_STOPPED, ask("1\n"));
    EXPECT_EQ(looks, host_stop_looks()); // the wait is no sign of life
    other.join();
    host_interrupt(false);
    ASSERT_OK(ask("2\n"));
    EXPECT_STREQ("2", answer);
}

// Where it never comes, or the command ends instead, the next question goes to a new process.
TEST_F(Dialogue, WhatIsOwedIsNotWaitedForInVain) {
    for (const char *fate : {"sleep 1000", "exit 3"}) {
        open(std::string("while read a; do [ $a = 1 ] && { sleep 0.2; ") + fate + "; }; echo $a; done");
        std::thread other([] {
            usleep(50000);
            host_interrupt(true);
        });
        EXPECT_EQ(STATUS_STOPPED, ask("1\n"));
        other.join();
        host_interrupt(false);
        usleep(fate[0] == 'e' ? 400000 : 0);
        ASSERT_OK(ask("2\n")) << fate;
        EXPECT_STREQ("2", answer) << fate;
    }
}

TEST_F(Dialogue, AQuestionBrokenOffHalfWay) {
    std::string seen = folder / "seen";
    open("[ -e " + seen + " ] || { touch " + seen + "; sleep 60; }; read a; echo ${#a}");
    std::thread other([&seen] {
        while (access(seen.c_str(), F_OK) != 0)
            usleep(1000);
        host_interrupt(true);
    });
    EXPECT_EQ(STATUS_STOPPED, ask(std::string(300000, '1') + "\n"));
    other.join();
    host_interrupt(false);
    ASSERT_OK(ask("123\n"));
    EXPECT_STREQ("3", answer);
}

TEST_F(Dialogue, NothingStaysAfterTheEnd) {
    open("sleep 1000 & echo_it() { echo $! $$; }; while read _; do echo_it; done");
    ASSERT_OK(ask("\n"));
    int background, shell;
    ASSERT_EQ(2, std::sscanf(answer, "%d %d", &background, &shell));
    EXPECT_TRUE(is_alive(background) && is_alive(shell));
    close();
    EXPECT_TRUE(goes(background) && goes(shell));
}

TEST_F(Dialogue, ACommandThatDoesNotEndIsKilled) {
    open("trap '' TERM HUP INT; read _; echo $$; sleep 1000; sleep 1000");
    ASSERT_OK(ask("\n"));
    int shell = std::atoi(answer);
    double start_s = host_now_s();
    close();
    EXPECT_TRUE(goes(shell));
    EXPECT_LT(host_now_s() - start_s, 60.0);
}

// One that has left the group which it was started in.
TEST_F(Dialogue, ACommandThatMovedAwayIsKilled) {
    open("exec python3 -S -c 'import os, time; os.setpgid(0, os.getpgid(os.getppid())); "
         "print(os.getpid(), flush=True); time.sleep(1000)'");
    ASSERT_OK(ask("\n"));
    int moved = std::atoi(answer);
    ASSERT_EQ(getpgrp(), getpgid(moved));
    double start_s = host_now_s();
    close();
    EXPECT_TRUE(goes(moved));
    EXPECT_LT(host_now_s() - start_s, 60.0);
}

// kill -9 of the process that started it, while it computes for ever.
TEST_F(Dialogue, NothingSurvivesTheProcess) {
    std::string pid_file = folder / "pids";
    pid_t child = fork();
    if (child == 0) {
        HostDialogue *own = nullptr;
        std::string command = "sleep 1000 & echo $$ $! > " + pid_file + "; read _; while :; do :; done";
        if (host_dialogue_open(command.c_str(), nullptr, 0, &own) != STATUS_OK) _exit(1);
        char text[HOST_ANSWER_MAX];
        _exit(host_dialogue_ask(own, "1\n", 2, text) == STATUS_OK ? 2 : 3);
    }
    int shell = 0, background = 0;
    for (int i = 0; i < 20000 && background == 0; i++) {
        FILE *file = std::fopen(pid_file.c_str(), "r");
        if (file != nullptr && std::fscanf(file, "%d %d", &shell, &background) != 2) background = 0;
        if (file != nullptr) std::fclose(file);
        usleep(1000);
    }
    ASSERT_NE(0, background);
    EXPECT_TRUE(is_alive(shell));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(goes(shell) && goes(background));
}

} // namespace
