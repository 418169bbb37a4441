// A master with the keys of a fresh secret, on a thread of its own; what is asked of it, and how members join it.
#ifndef SHOAL_TESTS_HOST_MASTER_FIXTURE_H
#define SHOAL_TESTS_HOST_MASTER_FIXTURE_H

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "host/address.h"
#include "host/clock.h"
#include "host/link.h"
#include "host/master.h"
#include "host/member.h"
#include "tests/host/host_test.h"

const double patience_s = 60.0;

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

inline int64_t count_of(const std::string &json, const std::string &key) {
    size_t at = json.find("\"" + key + "\":");
    return at == std::string::npos ? -1 : std::stoll(json.substr(at + key.size() + 3));
}

inline size_t workers_of(const std::string &json) {
    size_t count = 0;
    for (size_t at = 0; (at = json.find("\"role\":", at)) != std::string::npos; at++)
        count++;
    return count;
}

// A master on a thread of its own; ended by a trainer's FINISH.
class MasterTest : public ::testing::Test {
  protected:
    void SetUp() override {
        HostSecret secret;
        ASSERT_OK(host_secret_make(&secret));
        ASSERT_OK(host_secret_keys(&secret, &keys_));
        ASSERT_OK(host_listen("tcp://127.0.0.1:*", &options_.listen_fd, endpoint_, sizeof endpoint_));
        options_.endpoint = endpoint_;
        options_.keys = &keys_;
        options_.build = "build-1";
        options_.supervisor_fd = -1;
        options_.min_workers = 1;
        options_.trainers = 1;
        options_.hang_limit_s = 30.0;
        options_.out_s = HOST_MASTER_OUT_S;
        prepare(&options_);
        thread_ = std::thread([this] { status_ = host_master_run(&options_); });
    }

    void TearDown() override {
        if (is_over_) {
            thread_.join();
            EXPECT_EQ(STATUS_OK, status_);
            return;
        }
        HostLink link;
        ASSERT_OK(host_link_connect(&link, endpoint_, &keys_));
        greet(&link, HOST_ROLE_TRAINER, "build-1");
        HostMessage finish = {};
        finish.type = HOST_MESSAGE_FINISH;
        ASSERT_OK(host_link_send(&link, nullptr, &finish));
        host_link_close(&link, 10000);
        thread_.join();
        EXPECT_EQ(STATUS_OK, status_);
    }

    // Other options, before the master starts.
    virtual void prepare(HostMasterOptions *) const {}

    static void greet(HostLink *link, HostRole role, const std::string &build, int64_t place = 0,
                      const std::string &more = "") {
        std::string about =
            R"({"build":")" + build + R"(","host":"h","device":"d","settings":{"env":"toy"})" + more + "}";
        HostMessage hello = {};
        hello.type = HOST_MESSAGE_HELLO;
        hello.value[0] = HOST_WIRE_PROTOCOL;
        hello.value[1] = role;
        hello.value[2] = getpid();
        hello.value[3] = 1;
        hello.value[4] = place;
        hello.bytes = reinterpret_cast<const unsigned char *>(about.data());
        hello.size_bytes = about.size();
        ASSERT_OK(host_link_send(link, nullptr, &hello));
    }

    std::string ask() {
        char *json = nullptr;
        EXPECT_OK(host_master_ask(endpoint_, &keys_, patience_s, &json));
        std::string text = json != nullptr ? json : "";
        free(json);
        return text;
    }

    // Asks until it holds.
    template <class Holds> std::string ask_until(Holds holds) {
        for (double until_s = host_now_s() + patience_s; host_now_s() < until_s;) {
            std::string json = ask();
            if (holds(json)) return json;
            sleep_ms(10);
        }
        ADD_FAILURE() << "the master never said what was waited for: " << ask();
        return "";
    }

    HostMemberOptions member(HostRole role) const {
        HostMemberOptions options = {};
        options.endpoint = endpoint_;
        options.keys = &keys_;
        options.role = role;
        options.build = "build-1";
        options.device = "toy";
        options.settings = role == HOST_ROLE_TRAINER ? "{\"env\":\"toy\"}" : nullptr;
        options.threads = 1;
        options.patience_s = patience_s;
        return options;
    }

    int port() const { return std::stoi(std::string(endpoint_).substr(std::string(endpoint_).rfind(':') + 1)); }

    HostMasterOptions options_ = {};
    HostKeys keys_ = {};
    char endpoint_[64] = "";
    std::thread thread_;
    Status status_ = STATUS_SYSTEM;
    bool is_over_ = false; // the test itself has said FINISH
};

#endif
