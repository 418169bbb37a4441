// Groups of trainers: formed by way of a real master, with collectives through Gloo, formed anew whenever somebody
// comes or goes; and what the master does with messages about groups that are none. All members are threads of this
// process.
#include "host/group.h"

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "tests/host/master_fixture.h"
#include "tests/kernels/fresh_seed.h"

namespace {

class GroupTest : public MasterTest {
  protected:
    // A trainer: what it does with its group, then it leaves.
    std::thread trainer(HostRole role, const std::function<void(HostMember *, HostGroup *)> &body,
                        const char *address = nullptr, const HostCommGpu &gpu = {}) {
        return std::thread([this, role, body, address, gpu] {
            HostMemberOptions options = member(role);
            options.gpu = &gpu;
            HostMember *m;
            HostGroup *group;
            ASSERT_OK(host_member_open(&options, &m));
            HostGroupOptions among = {};
            among.address = address;
            among.device.open = open_none;
            ASSERT_OK(host_group_open(m, &among, &group));
            body(m, group);
            host_group_close(group);
            host_member_close(m, false);
        });
    }

    // GPUs that cannot reach each other.
    static Status open_none(void *, const HostCommOptions *options, double, HostComm **comm) {
        *comm = nullptr;
        return host_fail(STATUS_SYSTEM, "no way between %d GPUs", options->size);
    }

    void wait_for_trainers(int64_t count) {
        ask_until([count](const std::string &json) { return count_of(json, "trainers") == count; });
    }

    // Waits until the lead calls; false: the run is over.
    static bool await_call(HostMember *m, HostGroup *group, HostMeeting *meeting) {
        HostTask task;
        bool is_called = false;
        EXPECT_OK(host_member_next(m, &task));
        EXPECT_EQ(0, task.count);
        EXPECT_OK(host_group_answer(group, meeting, &is_called));
        return is_called;
    }

    // A meeting of the lead and followers that all do the same: everyone's label and rank by all-gather, then a
    // broadcast of the lead's.
    static Status meet(const HostMeeting &meeting, std::vector<int64_t> *all) {
        const double deadline_s = host_now_s() + HOST_COMM_PATIENCE_S;
        std::vector<int64_t> mine = {meeting.label, meeting.comm->rank};
        all->assign(2 * static_cast<size_t>(meeting.comm->size), -1);
        TRY(host_comm_all_gather(meeting.comm, mine.data(), all->data(), 2 * sizeof(int64_t), deadline_s));
        std::vector<int64_t> told = *all;
        if (meeting.comm->rank != 0) told.assign(told.size(), -2);
        TRY(host_comm_broadcast(meeting.comm, told.data(), told.size() * sizeof(int64_t), 0, deadline_s));
        EXPECT_EQ(*all, told);
        return STATUS_OK;
    }

    static void follow(HostMember *m, HostGroup *group, const std::atomic<bool> *leaves = nullptr,
                       std::atomic<int> *held = nullptr) {
        HostMeeting meeting;
        while (await_call(m, group, &meeting)) {
            std::vector<int64_t> all;
            bool is_held;
            if (leaves != nullptr && *leaves) return; // instead of taking part
            Status status = meeting.comm != nullptr ? meet(meeting, &all) : STATUS_OK;
            ASSERT_OK(host_group_settle(group, status, &is_held));
            if (held != nullptr && is_held) ++*held;
        }
    }

    // The lead's meeting, however many groups it takes; the size of the one that it was held in.
    static int hold(HostGroup *group, int64_t label, bool *is_new, int *tries = nullptr) {
        for (;;) {
            HostMeeting meeting;
            std::vector<int64_t> all;
            bool is_held = false;
            EXPECT_OK(host_group_call(group, label, &meeting));
            int size = meeting.comm->size;
            EXPECT_EQ(0, meeting.comm->rank);
            *is_new = meeting.is_new;
            EXPECT_OK(host_group_settle(group, meet(meeting, &all), &is_held));
            if (tries != nullptr) ++*tries;
            if (!is_held) continue;
            for (int rank = 0; rank < size; rank++) {
                EXPECT_EQ(label, all[2 * static_cast<size_t>(rank)]);
                EXPECT_EQ(rank, all[2 * static_cast<size_t>(rank) + 1]);
            }
            return size;
        }
    }

    void open_lead(const HostCommGpu &gpu = {}) {
        HostMemberOptions options = member(HOST_ROLE_TRAINER);
        options.gpu = &gpu;
        ASSERT_OK(host_member_open(&options, &lead_));
        HostGroupOptions among = {};
        among.device.open = open_none;
        ASSERT_OK(host_group_open(lead_, &among, &group_));
    }

    void end_run(std::vector<std::thread> *others) {
        host_group_close(group_);
        host_member_close(lead_, true);
        is_over_ = true;
        for (auto &other : *others)
            other.join();
    }

    // That a lead and a follower with these GPUs meet, by what, and that the master says why.
    void meet_by(const HostCommGpu &first, const HostCommGpu &second, const std::string &name, const std::string &why) {
        std::vector<std::thread> others;
        open_lead(first);
        auto stays = [](HostMember *m, HostGroup *group) { follow(m, group); };
        others.push_back(trainer(HOST_ROLE_FOLLOWER, stays, nullptr, second));
        wait_for_trainers(2);
        bool is_new;
        EXPECT_EQ(2, hold(group_, 1, &is_new));
        std::string json = ask(), said = R"("collectives":")" + name + R"(","collectives_why":")" + why;
        EXPECT_NE(std::string::npos, json.find(said)) << json;
        end_run(&others);
    }

    HostMember *lead_ = nullptr;
    HostGroup *group_ = nullptr;
};

const HostCommGpu CPU = {"", 0, ""}, ONE = {"m 1", 22809, ""}, OTHER = {"m 2", 22809, ""}, OLDER = {"m 3", 21402, ""},
                  WITHOUT = {"m 4", 0, "libnccl.so.2: none"};

TEST_F(GroupTest, CpusExchangeByGloo) { meet_by(CPU, CPU, "gloo", "the trainer on "); }

TEST_F(GroupTest, OneGpuExchangesByGloo) { meet_by(ONE, ONE, "gloo", "processes "); }

TEST_F(GroupTest, OtherVersionsOfNcclExchangeByGloo) { meet_by(ONE, OLDER, "gloo", "NCCL is 2.28.9 on "); }

TEST_F(GroupTest, WithoutNcclByGloo) { meet_by(WITHOUT, ONE, "gloo", "the trainer on "); }

// Tried twice, then they are connected by Gloo, and that is said.
TEST_F(GroupTest, WhereNcclFailsByGloo) {
    meet_by(ONE, OTHER, "gloo", "NCCL did not connect these GPUs: no way between 2 GPUs");
}

class SteadyGroupTest : public GroupTest {
    void prepare(HostMasterOptions *options) const override { options->out_s = 0.01; }
};

// However late it fails: each failure here comes long after out_s.
TEST_F(SteadyGroupTest, WhereNcclFailsLateByGloo) {
    meet_by(ONE, OTHER, "gloo", "NCCL did not connect these GPUs: no way between 2 GPUs");
}

TEST_F(GroupTest, OfOne) {
    open_lead();
    bool is_new;
    EXPECT_EQ(1, hold(group_, 1, &is_new));
    EXPECT_TRUE(is_new);
    EXPECT_EQ(1, hold(group_, 2, &is_new));
    EXPECT_FALSE(is_new);
    std::vector<std::thread> nobody;
    end_run(&nobody);
}

TEST_F(GroupTest, JoinsAndDepartures) {
    open_lead();
    std::vector<std::thread> others;
    std::atomic<bool> leaves{false};
    auto stays = [](HostMember *m, HostGroup *group) { follow(m, group); };
    for (int i = 0; i < 2; i++)
        others.push_back(trainer(HOST_ROLE_FOLLOWER, stays));
    wait_for_trainers(3);
    bool is_new;
    EXPECT_EQ(3, hold(group_, 7, &is_new));
    EXPECT_TRUE(is_new);
    for (int64_t label = 8; label < 40; label++) {
        EXPECT_EQ(3, hold(group_, label, &is_new));
        EXPECT_FALSE(is_new);
    }
    std::thread guest =
        trainer(HOST_ROLE_FOLLOWER, [&](HostMember *m, HostGroup *group) { follow(m, group, &leaves); });
    wait_for_trainers(4);
    EXPECT_EQ(4, hold(group_, 100, &is_new));
    EXPECT_TRUE(is_new);
    // The guest comes to the meeting and leaves instead of taking part: the others wait in a collective for it.
    leaves = true;
    int tries = 0;
    EXPECT_EQ(3, hold(group_, 101, &is_new, &tries));
    EXPECT_TRUE(is_new);
    EXPECT_GE(tries, 2);
    guest.join();
    EXPECT_GT(host_member_figures(lead_).collective_bytes, 0);
    EXPECT_GE(host_member_figures(lead_).groups, 3);
    end_run(&others);
}

// Whoever comes and goes at any moment: every meeting is held in the end, by the same trainers on all sides.
TEST_F(GroupTest, Churn) {
    std::mt19937_64 random(fresh_seed());
    open_lead();
    std::vector<std::thread> others;
    for (int i = 0; i < 4; i++) {
        uint64_t seed = random();
        others.push_back(std::thread([this, seed] {
            std::mt19937_64 mine(seed);
            for (int life = 0; life < 4; life++) {
                std::atomic<bool> leaves{false};
                std::atomic<int> held{0};
                int ms = static_cast<int>(mine() % 60);
                std::thread t = trainer(HOST_ROLE_FOLLOWER,
                                        [&](HostMember *m, HostGroup *group) { follow(m, group, &leaves, &held); });
                while (held == 0) // it takes part once at least
                    sleep_ms(1);
                sleep_ms(ms);
                leaves = true;
                t.join();
            }
        }));
    }
    std::atomic<bool> done{false};
    std::thread joiner([&] {
        for (auto &other : others)
            other.join();
        done = true;
    });
    bool is_new;
    int largest = 0;
    for (int64_t label = 0; !done; label++)
        largest = std::max(largest, hold(group_, label, &is_new));
    joiner.join();
    EXPECT_GT(largest, 1);
    wait_for_trainers(1);
    EXPECT_EQ(1, hold(group_, 1000000, &is_new));
    std::vector<std::thread> nobody;
    end_run(&nobody);
}

class HastyGroupTest : public GroupTest {
    void prepare(HostMasterOptions *options) const override { options->hang_limit_s = 1.0; }
};

// A follower that does not come to a meeting, although its connection lives and its other thread speaks, hangs: the
// others go on without it.
TEST_F(HastyGroupTest, OneThatDoesNotCome) {
    open_lead();
    std::vector<std::thread> others;
    std::atomic<bool> ends{false};
    others.push_back(trainer(HOST_ROLE_FOLLOWER, [](HostMember *m, HostGroup *group) { follow(m, group); }));
    others.push_back(trainer(HOST_ROLE_FOLLOWER, [&](HostMember *, HostGroup *) {
        while (!ends)
            sleep_ms(10);
    }));
    wait_for_trainers(3);
    bool is_new;
    EXPECT_EQ(2, hold(group_, 1, &is_new));
    EXPECT_GE(count_of(ask(), "hangs"), 1);
    ends = true;
    end_run(&others);
}

// One that nobody can connect to does not keep the others from going on.
TEST_F(GroupTest, OneThatCannotBeReached) {
    open_lead();
    std::vector<std::thread> others;
    auto stays = [](HostMember *m, HostGroup *group) { follow(m, group); };
    others.push_back(trainer(HOST_ROLE_FOLLOWER, stays));
    wait_for_trainers(2);
    others.push_back(trainer(HOST_ROLE_FOLLOWER, stays, "192.0.2.1")); // an address of nobody's
    wait_for_trainers(3);
    bool is_new;
    for (int64_t label = 0; label < 5; label++)
        EXPECT_EQ(2, hold(group_, label, &is_new));
    end_run(&others);
}

// ---- the master's messages -----------------------------------------------------------------------------------------

struct Message {
    HostMessage head;
    std::string bytes;
};

class Peer {
  public:
    Peer(const char *endpoint, const HostKeys *keys) { EXPECT_OK(host_link_connect(&link, endpoint, keys)); }
    ~Peer() { host_link_close(&link, 100); }

    void send(HostMessageType type, std::vector<int64_t> values, const std::string &bytes = "") {
        HostMessage message = {};
        message.type = type;
        std::copy(values.begin(), values.end(), message.value);
        message.bytes = reinterpret_cast<const unsigned char *>(bytes.data());
        message.size_bytes = bytes.size();
        ASSERT_OK(host_link_send(&link, nullptr, &message));
    }

    // The next message of a type, within `wait_s`; type HOST_MESSAGE_TYPES: there was none.
    Message next(HostMessageType type, double wait_s) {
        Message found = {};
        found.head.type = HOST_MESSAGE_TYPES;
        for (double until_s = host_now_s() + wait_s; host_now_s() < until_s;) {
            zmq_msg_t frame;
            zmq_msg_init(&frame);
            bool is_there = host_link_receive(&link, nullptr, &frame, nullptr);
            if (is_there) {
                EXPECT_OK(host_wire_decode(zmq_msg_data(&frame), zmq_msg_size(&frame), &found.head));
                found.bytes.assign(reinterpret_cast<const char *>(found.head.bytes), found.head.size_bytes);
            }
            zmq_msg_close(&frame);
            if (is_there && found.head.type == type) return found;
            found.head.type = HOST_MESSAGE_TYPES;
            if (!is_there) sleep_ms(1);
        }
        return found;
    }

    HostLink link;
};

TEST_F(GroupTest, MessagesThatAreNone) {
    Peer lead(endpoint_, &keys_), follower(endpoint_, &keys_), evaluator(endpoint_, &keys_);
    greet(&lead.link, HOST_ROLE_TRAINER, "build-1");
    greet(&follower.link, HOST_ROLE_FOLLOWER, "build-1");
    greet(&evaluator.link, HOST_ROLE_EVALUATOR, "build-1");
    ask_until([](const std::string &json) { return workers_of(json) == 3; });
    EXPECT_EQ(0, count_of(ask(), "trainers"));
    evaluator.send(HOST_MESSAGE_REGROUP, {0});
    follower.send(HOST_MESSAGE_REGROUP, {0});
    sleep_ms(100);
    EXPECT_EQ(0, count_of(ask(), "trainers")); // there is no lead yet
    lead.send(HOST_MESSAGE_REGROUP, {0});
    wait_for_trainers(2);
    Message group = lead.next(HOST_MESSAGE_GROUP, patience_s);
    ASSERT_EQ(0, group.head.value[1]);
    ASSERT_EQ(2, group.head.value[2]);
    int64_t number = group.head.value[0];
    Message other = follower.next(HOST_MESSAGE_GROUP, patience_s);
    ASSERT_EQ(number, other.head.value[0]);
    EXPECT_EQ(1, other.head.value[1]);
    int64_t strangers = count_of(ask(), "strangers");
    // Keys and values of wrong sizes.
    for (int64_t key : {int64_t{0}, int64_t{-1}, int64_t{7}, int64_t{65}, INT64_MIN, INT64_MAX})
        follower.send(HOST_MESSAGE_POST, {number, key}, key == 65 ? std::string(70, 'k') : "abcdef");
    follower.send(HOST_MESSAGE_POST, {number, 1}, std::string(HOST_WIRE_VALUE_MAX + 2, 'v'));
    // Of another group, and from who is not of it.
    follower.send(HOST_MESSAGE_POST, {number - 1, 3}, "abcdef");
    evaluator.send(HOST_MESSAGE_POST, {number, 3}, "abcdef");
    follower.send(HOST_MESSAGE_MEET, {number, 5});
    evaluator.send(HOST_MESSAGE_MEET, {number, 5});
    lead.send(HOST_MESSAGE_MEET, {number + 1, 5});
    evaluator.send(HOST_MESSAGE_REGROUP, {number});
    follower.send(HOST_MESSAGE_REGROUP, {number - 1});
    ask_until([=](const std::string &json) { return count_of(json, "strangers") == strangers + 7; });
    EXPECT_EQ(HOST_MESSAGE_TYPES, lead.next(HOST_MESSAGE_POST, 0.2).head.type);
    EXPECT_EQ(HOST_MESSAGE_TYPES, follower.next(HOST_MESSAGE_MEET, 0.2).head.type);
    EXPECT_EQ(HOST_MESSAGE_TYPES, evaluator.next(HOST_MESSAGE_GROUP, 0.2).head.type);
    EXPECT_EQ(number, count_of(ask(), "group"));
    // What is one; and no more than a few from each.
    for (int i = 0; i < 20; i++)
        follower.send(HOST_MESSAGE_POST, {number, 3}, "abcdef");
    Message post = lead.next(HOST_MESSAGE_POST, patience_s);
    EXPECT_EQ(3, post.head.value[1]);
    EXPECT_EQ("abcdef", post.bytes);
    int posts = 1;
    while (lead.next(HOST_MESSAGE_POST, 0.2).head.type == HOST_MESSAGE_POST)
        posts++;
    EXPECT_EQ(8, posts);
    lead.send(HOST_MESSAGE_MEET, {number, 5});
    EXPECT_EQ(5, follower.next(HOST_MESSAGE_MEET, patience_s).head.value[1]);
    follower.send(HOST_MESSAGE_REGROUP, {number});
    EXPECT_EQ(number + 1, lead.next(HOST_MESSAGE_GROUP, patience_s).head.value[0]);
}

// What is asked of NCCL by peers with GPUs, and what it comes to.
TEST_F(SteadyGroupTest, FailuresOfNcclThatAreNotInARow) {
    Peer lead(endpoint_, &keys_), follower(endpoint_, &keys_);
    greet(&lead.link, HOST_ROLE_TRAINER, "build-1", 0, R"(,"gpu":"m 1","nccl":22809)");
    greet(&follower.link, HOST_ROLE_FOLLOWER, "build-1", 0, R"(,"gpu":"m 2","nccl":22809)");
    follower.send(HOST_MESSAGE_REGROUP, {0});
    lead.send(HOST_MESSAGE_REGROUP, {0});
    wait_for_trainers(2);
    int64_t number = lead.next(HOST_MESSAGE_GROUP, patience_s).head.value[0];
    auto next = [&](HostCollectives expected, const std::string &fault) {
        follower.send(HOST_MESSAGE_REGROUP, {number}, fault);
        Message group = lead.next(HOST_MESSAGE_GROUP, patience_s);
        EXPECT_EQ(++number, group.head.value[0]);
        EXPECT_EQ(expected, group.head.value[3]);
        return group.bytes;
    };
    for (int i = 0; i < 3; i++)
        next(HOST_COLLECTIVES_NCCL, ""); // nothing has failed
    next(HOST_COLLECTIVES_NCCL, "a cable");
    for (int64_t label = 0; label < 20; label++)
        lead.send(HOST_MESSAGE_MEET, {number, label});
    for (int64_t label = 0; label < 20; label++)
        EXPECT_EQ(label, follower.next(HOST_MESSAGE_MEET, patience_s).head.value[1]);
    next(HOST_COLLECTIVES_NCCL, "another cable");
    // Of a group's faults the first one is told; what comes from Gloo's later does not take its place.
    follower.send(HOST_MESSAGE_REGROUP, {number}, "a third cable");
    EXPECT_EQ("NCCL did not connect these GPUs: a third cable", next(HOST_COLLECTIVES_GLOO, "not wanted any more"));
    EXPECT_EQ("NCCL did not connect these GPUs: a third cable", next(HOST_COLLECTIVES_GLOO, "gloo's"));
}

class DismissingGroupTest : public GroupTest {
    void prepare(HostMasterOptions *options) const override {
        options->max_workers = 2;
        options->scales = true;
        options->scale_interval_s = 0.1;
    }
};

// A follower that is asked to leave is of no group, however long it stays.
TEST_F(DismissingGroupTest, WithoutThoseThatAreAskedToLeave) {
    Peer lead(endpoint_, &keys_), first(endpoint_, &keys_), last(endpoint_, &keys_);
    greet(&lead.link, HOST_ROLE_TRAINER, "build-1");
    lead.send(HOST_MESSAGE_REGROUP, {0});
    for (Peer *follower : {&first, &last}) {
        greet(&follower->link, HOST_ROLE_FOLLOWER, "build-1");
        follower->send(HOST_MESSAGE_REGROUP, {0});
        follower->send(HOST_MESSAGE_WANT, {});
        ask_until([&](const std::string &json) { return workers_of(json) == (follower == &first ? 2U : 3U); });
    }
    EXPECT_EQ(HOST_MESSAGE_DISMISS, last.next(HOST_MESSAGE_DISMISS, patience_s).head.type);
    wait_for_trainers(2);
    Message group = last.next(HOST_MESSAGE_GROUP, patience_s);
    while (group.head.value[2] != 0)
        group = last.next(HOST_MESSAGE_GROUP, patience_s);
    EXPECT_EQ(HOST_MESSAGE_GROUP, group.head.type);
    EXPECT_EQ(3U, workers_of(ask()));
}

class PairTest : public GroupTest {
    void prepare(HostMasterOptions *options) const override { options->trainers = 2; }
};

// A lead that has just come is told of a group at once where all trainers are there, else after a while.
TEST_F(PairTest, ANewLeadWaitsForTheOthers) {
    Peer lead(endpoint_, &keys_), follower(endpoint_, &keys_);
    greet(&lead.link, HOST_ROLE_TRAINER, "build-1");
    lead.send(HOST_MESSAGE_REGROUP, {0});
    EXPECT_EQ(HOST_MESSAGE_TYPES, lead.next(HOST_MESSAGE_GROUP, 0.3).head.type);
    greet(&follower.link, HOST_ROLE_FOLLOWER, "build-1");
    follower.send(HOST_MESSAGE_REGROUP, {0});
    EXPECT_EQ(2, lead.next(HOST_MESSAGE_GROUP, patience_s).head.value[2]);
    // The lead goes: there is no group. Another one comes: it is of a group with the follower that is there.
    lead.send(HOST_MESSAGE_LEAVE, {});
    EXPECT_EQ(2, follower.next(HOST_MESSAGE_GROUP, patience_s).head.value[2]);
    EXPECT_EQ(0, follower.next(HOST_MESSAGE_GROUP, patience_s).head.value[2]);
    Peer again(endpoint_, &keys_);
    greet(&again.link, HOST_ROLE_TRAINER, "build-1");
    again.send(HOST_MESSAGE_REGROUP, {0});
    EXPECT_EQ(2, again.next(HOST_MESSAGE_GROUP, patience_s).head.value[2]);
}

} // namespace
