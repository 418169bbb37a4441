// The master over real sockets: who may join, what strangers can do to it, rounds from begin to end.
#include "host/master.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "host/address.h"
#include "host/clock.h"
#include "host/link.h"
#include "host/member.h"
#include "host/signals.h"
#include "tests/host/master_fixture.h"
#include "tests/kernels/fresh_seed.h"

namespace {

// Sends a HELLO and a few more messages over a socket that was set up by `prepare`; the master must not notice them.
template <class Prepare> void talk(const char *endpoint, Prepare prepare) {
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_DEALER);
    int linger = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    prepare(socket);
    ASSERT_EQ(0, zmq_connect(socket, endpoint));
    const std::string about = R"({"build":"build-1"})";
    for (int type : {HOST_MESSAGE_HELLO, HOST_MESSAGE_WANT, HOST_MESSAGE_FINISH, HOST_MESSAGE_ASK_STATUS}) {
        HostMessage message = {};
        message.type = static_cast<HostMessageType>(type);
        message.value[0] = type == HOST_MESSAGE_HELLO ? HOST_WIRE_PROTOCOL : 0;
        if (type == HOST_MESSAGE_HELLO) {
            message.bytes = reinterpret_cast<const unsigned char *>(about.data());
            message.size_bytes = about.size();
        }
        std::vector<unsigned char> wire(host_wire_size(&message));
        host_wire_encode(&message, wire.data());
        zmq_send(socket, wire.data(), wire.size(), ZMQ_DONTWAIT);
    }
    char answer[64];
    int wait_ms = 600;
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    EXPECT_EQ(-1, zmq_recv(socket, answer, sizeof answer, 0)) << "it was answered";
    zmq_close(socket);
    zmq_ctx_term(context);
}

TEST_F(MasterTest, PlaintextChangesNothing) {
    talk(endpoint_, [](void *) {});
    std::string json = ask();
    EXPECT_EQ(0U, workers_of(json)) << json;
    EXPECT_EQ(0, count_of(json, "joins")) << json;
    EXPECT_GE(count_of(json, "strangers"), 1) << json;
}

TEST_F(MasterTest, OtherKeysChangeNothing) {
    HostSecret secret;
    HostKeys other;
    ASSERT_OK(host_secret_make(&secret));
    ASSERT_OK(host_secret_keys(&secret, &other));
    // The master's key is right, and the worker's is some other one; then the other way round.
    for (bool knows_master : {true, false}) {
        const HostKeys &mine = knows_master ? other : keys_, &theirs = knows_master ? keys_ : other;
        talk(endpoint_, [&](void *socket) {
            zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, theirs.master_public, HOST_KEY_BYTES);
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, mine.worker_public, HOST_KEY_BYTES);
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, mine.worker_secret, HOST_KEY_BYTES);
        });
    }
    std::string json = ask();
    EXPECT_EQ(0U, workers_of(json)) << json;
    EXPECT_EQ(0, count_of(json, "joins")) << json;
    EXPECT_GE(count_of(json, "strangers"), 1) << json;
}

// Carries bytes between one client and the master, and keeps what the client said.
class Relay {
  public:
    explicit Relay(int master_port) : master_port_(master_port) {
        char endpoint[64];
        EXPECT_OK(host_listen("tcp://127.0.0.1:*", &listen_fd_, endpoint, sizeof endpoint));
        endpoint_ = endpoint;
        thread_ = std::thread([this] { run(); });
    }
    ~Relay() {
        if (thread_.joinable()) end();
    }
    const char *endpoint() const { return endpoint_.c_str(); }
    std::string end() {
        quits_ = true;
        thread_.join();
        close(listen_fd_);
        return said_;
    }
    static int connect_to(int port) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to = {};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<uint16_t>(port));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(0, connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to));
        return fd;
    }

  private:
    void run() {
        int client = -1;
        while (!quits_ && (client = accept(listen_fd_, nullptr, nullptr)) < 0)
            sleep_ms(5);
        int master = connect_to(master_port_);
        char bytes[4096];
        while (!quits_) {
            pollfd ends[] = {{client, POLLIN, 0}, {master, POLLIN, 0}};
            poll(ends, 2, 20);
            for (int i = 0; i < 2; i++) {
                if ((ends[i].revents & POLLIN) == 0) continue;
                ssize_t got = read(ends[i].fd, bytes, sizeof bytes);
                if (got <= 0) quits_ = true;
                if (got > 0 && i == 0) said_.append(bytes, static_cast<size_t>(got));
                if (got > 0 && write(ends[1 - i].fd, bytes, static_cast<size_t>(got)) != got) quits_ = true;
            }
        }
        if (client >= 0) close(client);
        close(master);
    }

    int master_port_, listen_fd_ = -1;
    std::string endpoint_, said_;
    std::atomic<bool> quits_{false};
    std::thread thread_;
};

TEST_F(MasterTest, AReplayChangesNothing) {
    Relay relay(port());
    HostLink link;
    ASSERT_OK(host_link_connect(&link, relay.endpoint(), &keys_));
    greet(&link, HOST_ROLE_EVALUATOR, "build-1");
    ask_until([](const std::string &json) { return workers_of(json) == 1; });
    host_link_close(&link, 100);
    std::string said = relay.end();
    ASSERT_GT(said.size(), 200U);
    std::string before = ask_until([](const std::string &json) { return workers_of(json) == 0; });
    ASSERT_EQ(1, count_of(before, "joins"));
    for (int i = 0; i < 3; i++) {
        int fd = Relay::connect_to(port());
        ASSERT_EQ(static_cast<ssize_t>(said.size()), send(fd, said.data(), said.size(), MSG_NOSIGNAL));
        sleep_ms(200);
        close(fd);
    }
    std::string after = ask();
    EXPECT_EQ(0U, workers_of(after)) << after;
    EXPECT_EQ(1, count_of(after, "joins")) << after;
}

TEST_F(MasterTest, AnotherBuildIsRefusedByName) {
    HostMemberOptions options = member(HOST_ROLE_EVALUATOR);
    options.build = "build-2";
    HostMember *none;
    EXPECT_FAILS(STATUS_USAGE, "refused", host_member_open(&options, &none));
    EXPECT_NE(nullptr, strstr(host_message(), "build-1"));
    EXPECT_NE(nullptr, strstr(host_message(), "build-2"));
    EXPECT_EQ(nullptr, none);
    EXPECT_EQ(1, count_of(ask(), "refusals"));
}

// Whatever workers with the right key say, the master goes on.
TEST_F(MasterTest, NonsenseFromWorkers) {
    std::mt19937_64 random(fresh_seed());
    HostLink link[3];
    for (auto &l : link)
        ASSERT_OK(host_link_connect(&l, endpoint_, &keys_));
    const int64_t values[] = {0, 1, 2, 7, -1, 64, 100000, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 6000; i++) {
        HostLink *from = &link[random() % 3];
        if (i % 100 < 3) greet(from, static_cast<HostRole>(random() % HOST_ROLES), "build-1");
        unsigned char bytes[64];
        for (size_t k = 0; k < sizeof bytes; k += 8) {
            uint64_t value = random() % 3 == 0 ? random() : random() % 40;
            memcpy(bytes + k, &value, 8);
        }
        HostMessage message = {};
        message.type = static_cast<HostMessageType>(random() % HOST_MESSAGE_TYPES);
        if (message.type == HOST_MESSAGE_FINISH || message.type == HOST_MESSAGE_ASK_STATUS) continue;
        for (int64_t &value : message.value)
            value = random() % 2 == 0 ? values[random() % 10] : static_cast<int64_t>(random() % 8);
        HostMessage empty = message;
        size_t fixed = host_wire_size(&empty);
        message.bytes = bytes;
        message.size_bytes = random() % sizeof bytes;
        std::vector<unsigned char> wire(fixed + message.size_bytes);
        // Types without bytes are sent with some too: those are refused.
        host_wire_encode(&empty, wire.data());
        memcpy(wire.data() + fixed, bytes, random() % 4 == 0 ? 0 : message.size_bytes);
        if (random() % 4 == 0) wire.resize(fixed);
        zmq_send(from->socket, wire.data(), wire.size(), ZMQ_DONTWAIT);
    }
    for (auto &l : link)
        host_link_close(&l, 1000);
    std::string json = ask_until([](const std::string &text) { return workers_of(text) == 0; });
    EXPECT_GT(count_of(json, "joins"), 0) << json;
}

// What an item's records are, for a payload.
void compute(int32_t item, const unsigned char *payload, unsigned char *first, unsigned char *second) {
    first[0] = static_cast<unsigned char>(payload[0] + item * 3);
    for (int i = 0; i < 5; i++)
        second[i] = static_cast<unsigned char>(payload[1] ^ (item >> i));
}

void work(HostMember *m, const HostTask &task) {
    size_t count = static_cast<size_t>(task.count);
    std::vector<unsigned char> first(count), second(5 * count);
    for (int32_t i = 0; i < task.count; i++)
        compute(task.first + i, task.payload, &first[static_cast<size_t>(i)], &second[5 * static_cast<size_t>(i)]);
    const void *records[] = {first.data(), second.data()};
    const size_t bytes[] = {1, 5};
    ASSERT_OK(host_member_finish(m, &task, records, bytes));
}

void evaluate(const HostMemberOptions &options) {
    HostMember *m;
    ASSERT_OK(host_member_open(&options, &m));
    EXPECT_STREQ("{\"env\":\"toy\"}", host_member_settings(m));
    for (;;) {
        HostTask task;
        Status status = host_member_next(m, &task);
        ASSERT_EQ(STATUS_OK, status) << host_message();
        if (task.count == 0) break;
        ASSERT_EQ(2U, task.payload_bytes);
        work(m, task);
    }
    host_member_close(m, false);
}

class MasterOfTwo : public MasterTest {
    void prepare(HostMasterOptions *options) const override { options->workers = 2; }
};

TEST_F(MasterOfTwo, WhoComesAfterTheEndIsToldSo) {
    HostMember *trainer = nullptr, *late = nullptr;
    HostMemberOptions options = member(HOST_ROLE_TRAINER);
    ASSERT_OK(host_member_open(&options, &trainer));
    host_member_close(trainer, true);
    is_over_ = true;
    sleep_ms(200);
    options = member(HOST_ROLE_EVALUATOR);
    ASSERT_OK(host_member_open(&options, &late));
    EXPECT_STREQ("", host_member_settings(late)); // there is nothing to do
    host_member_close(late, false);
}

class MasterOfSlowWorkers : public MasterTest {
  protected:
    void prepare(HostMasterOptions *options) const override { options->hang_limit_s = 0.5; }

    void SetUp() override {
        MasterTest::SetUp();
        ASSERT_OK(host_link_connect(&link_, endpoint_, &keys_));
        greet(&link_, HOST_ROLE_EVALUATOR, "build-1");
        tick(0);
        ask_until([](const std::string &json) { return workers_of(json) == 1; });
    }

    void TearDown() override {
        host_link_close(&link_, 100);
        MasterTest::TearDown();
    }

    // Is at an update, and has looked for a stop so often.
    void tick(int64_t looks) {
        HostMessage message = {};
        message.type = HOST_MESSAGE_TICK;
        message.value[0] = looks;
        message.value[1] = -1;
        ASSERT_OK(host_link_send(&link_, nullptr, &message));
    }

    HostLink link_ = {};
};

// What was taken for hung, and moves again, needs longer than was thought: for it and for all the limit is another one.
TEST_F(MasterOfSlowWorkers, TheLimitFollowsWhatTheyNeed) {
    EXPECT_EQ(0, count_of(ask(), "hang_limit_s")); // and a half
    ask_until([&](const std::string &json) {
        tick(0);
        return json.find("\"state\":\"hangs\"") != std::string::npos;
    });
    tick(1);
    std::string json = ask_until([](const std::string &text) { return count_of(text, "hang_limit_s") > 0; });
    EXPECT_GE(4, count_of(json, "hang_limit_s")) << json; // eight times
    EXPECT_EQ(std::string::npos, json.find("\"state\":\"hangs\"")) << json;
}

// A worker that was stopped shows nothing of what computing needs.
TEST_F(MasterOfSlowWorkers, SilenceIsNotWhatTheyNeed) {
    sleep_ms(450);
    tick(1);
    sleep_ms(30);
    EXPECT_EQ(0, count_of(ask(), "hang_limit_s"));
}

TEST_F(MasterTest, TellsItsClock) {
    HostMemberOptions asks = member(HOST_ROLE_TRAINER), silent = member(HOST_ROLE_EVALUATOR);
    asks.asks_clock = true;
    HostMember *m, *other;
    int64_t offset_ns = -1, error_ns = -1;
    ASSERT_OK(host_member_open(&asks, &m));
    ASSERT_TRUE(host_member_clock(m, patience_s, &offset_ns, &error_ns));
    EXPECT_GT(error_ns, 0);
    EXPECT_LE(llabs(offset_ns), error_ns); // it is this process's own clock
    ASSERT_OK(host_member_open(&silent, &other));
    EXPECT_FALSE(host_member_clock(other, 0.3, &offset_ns, &error_ns)); // who does not ask is not told
    EXPECT_EQ(0, host_member_place(m));
    EXPECT_EQ(1, host_member_place(other));
    host_member_close(other, false);
    host_member_close(m, true);
    is_over_ = true;
}

// The lowest that is free; of a worker that is no more, too.
TEST_F(MasterTest, PlacesHaveNoGaps) {
    HostMemberOptions options = member(HOST_ROLE_TRAINER);
    HostMember *trainer, *other[3], *next;
    ASSERT_OK(host_member_open(&options, &trainer));
    options = member(HOST_ROLE_EVALUATOR);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(host_member_open(&options, &other[i]));
        EXPECT_EQ(i + 1, host_member_place(other[i]));
    }
    host_member_close(other[1], false);
    ask_until([](const std::string &json) { return workers_of(json) == 3; });
    ASSERT_OK(host_member_open(&options, &next));
    EXPECT_EQ(2, host_member_place(next));
    host_member_close(next, false);
    host_member_close(other[0], false);
    host_member_close(other[2], false);
    host_member_close(trainer, true);
    is_over_ = true;
}

// To a master that was not there before, workers say which place they have.
TEST_F(MasterTest, APlaceIsKept) {
    HostLink link;
    ASSERT_OK(host_link_connect(&link, endpoint_, &keys_));
    greet(&link, HOST_ROLE_EVALUATOR, "build-1", 2);
    ask_until([](const std::string &json) { return workers_of(json) == 1; });
    HostMemberOptions options = member(HOST_ROLE_TRAINER);
    HostMember *trainer, *other[2];
    ASSERT_OK(host_member_open(&options, &trainer));
    options = member(HOST_ROLE_EVALUATOR);
    const int64_t expected[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(host_member_open(&options, &other[i]));
        EXPECT_EQ(expected[i], host_member_place(other[i]));
    }
    for (HostMember *m : other)
        host_member_close(m, false);
    host_link_close(&link, 100);
    host_member_close(trainer, true);
    is_over_ = true;
}

class MasterOfAtMostTwo : public MasterTest {
    void prepare(HostMasterOptions *options) const override {
        options->max_workers = 2;
        options->hang_limit_s = 2.0;
    }
};

// The one that came last goes, and says so.
TEST_F(MasterOfAtMostTwo, MoreAreAskedToLeave) {
    HostMemberOptions options = member(HOST_ROLE_TRAINER);
    HostMember *trainer, *first, *last;
    HostTask task;
    ASSERT_OK(host_member_open(&options, &trainer));
    options = member(HOST_ROLE_EVALUATOR);
    ASSERT_OK(host_member_open(&options, &first));
    std::thread waits([&] {
        HostTask none;
        EXPECT_OK(host_member_next(first, &none)); // until the run is over
        EXPECT_STREQ("", host_member_dismissal(first));
        host_member_close(first, false);
    });
    ask_until([](const std::string &json) { return count_of(json, "present") == 2; });
    ASSERT_OK(host_member_open(&options, &last));
    EXPECT_FAILS(STATUS_STOPPED, "2 workers are the most", host_member_next(last, &task));
    EXPECT_NE(nullptr, strstr(host_member_dismissal(last), "--max-workers"));
    host_member_close(last, false);
    std::string json = ask_until([](const std::string &text) { return workers_of(text) == 2; });
    EXPECT_EQ(1, count_of(json, "dismissals")) << json;
    EXPECT_EQ(0, count_of(json, "deaths")) << json;
    host_member_close(trainer, true);
    is_over_ = true;
    waits.join();
}

TEST_F(MasterTest, RoundsOfThreeWorkers) {
    HostMemberOptions trainer = member(HOST_ROLE_TRAINER), evaluator = member(HOST_ROLE_EVALUATOR);
    HostMember *m;
    ASSERT_OK(host_member_open(&trainer, &m));
    std::thread others[] = {std::thread([&] { evaluate(evaluator); }), std::thread([&] { evaluate(evaluator); })};
    ask_until([](const std::string &json) { return workers_of(json) == 3; });
    std::mt19937_64 random(fresh_seed());
    for (int round = 0; round < 60; round++) {
        int32_t count = 1 + static_cast<int32_t>(random() % 500);
        size_t items = static_cast<size_t>(count);
        std::vector<unsigned char> first(items, 0xEE), second(5 * items, 0xEE);
        unsigned char payload[2] = {static_cast<unsigned char>(random()), static_cast<unsigned char>(random())};
        HostRound r = {};
        r.label = round;
        r.count = count;
        r.grain = 1 + round % 2 < count ? 1 + round % 2 : 1;
        r.payload = payload;
        r.payload_bytes = sizeof payload;
        r.records[0] = first.data();
        r.records[1] = second.data();
        r.record_bytes[0] = 1;
        r.record_bytes[1] = 5;
        ASSERT_OK(host_member_begin(m, &r));
        for (;;) {
            HostTask task;
            ASSERT_OK(host_member_next(m, &task));
            if (task.count == 0) break;
            task.payload = payload;
            work(m, task);
        }
        host_member_end(m);
        int32_t lost;
        host_member_lost(m, &lost);
        ASSERT_EQ(0, lost);
        ASSERT_FALSE(host_member_is_refuted(m));
        for (int32_t i = 0; i < count; i++) {
            unsigned char want[6];
            compute(i, payload, want, want + 1);
            ASSERT_EQ(want[0], first[static_cast<size_t>(i)]) << "round " << round << ", item " << i;
            ASSERT_EQ(0, memcmp(want + 1, &second[5 * static_cast<size_t>(i)], 5));
        }
    }
    HostMemberFigures figures = host_member_figures(m);
    EXPECT_EQ(60, figures.rounds);
    EXPECT_GT(figures.other_items, 0);
    host_member_close(m, true);
    is_over_ = true;
    for (auto &other : others)
        other.join();
}

} // namespace
