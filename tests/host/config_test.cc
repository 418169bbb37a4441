#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/host/example_config.h"
#include "tests/host/host_test.h"

namespace {

class ConfigTest : public testing::Test {
  protected:
    void SetUp() override { host_config_init(&config, &example_table, &values); }

    Status set(const char *name, const char *text) { return host_config_set(&config, CONFIG_ARGS, name, text); }

    Status parse(std::vector<std::string> words) {
        words.insert(words.begin(), "example");
        std::vector<char *> argv;
        for (std::string &word : words)
            argv.push_back(word.data());
        kept.push_back(std::move(words)); // args point into it
        return host_config_parse_args(&config, static_cast<int>(argv.size()), argv.data(), &args);
    }

    Status take_json(const std::string &text, ConfigLayer layer = CONFIG_FILE) {
        return host_config_from_json(&config, layer, "c.json", text.data(), text.size());
    }

    std::string json() {
        char *text = nullptr;
        EXPECT_OK(host_config_to_json(&config, &text));
        std::string result(text);
        free(text);
        return result;
    }

    std::string text(const char *name) {
        char buffer[512];
        return host_config_text(&config, name, buffer, sizeof buffer);
    }

    ExampleConfig values;
    HostConfig config;
    ConfigArgs args;
    std::vector<std::vector<std::string>> kept;
};

TEST_F(ConfigTest, DefaultsComeFromTheTable) {
    EXPECT_EQ(256, values.pop);
    EXPECT_EQ(0.05, values.sigma);
    EXPECT_TRUE(values.normalize);
    EXPECT_EQ(0, values.device);
    ASSERT_EQ(2, values.hidden.count);
    EXPECT_EQ(64, values.hidden.at[1]);
    EXPECT_EQ(0, values.set.count);
    EXPECT_FALSE(host_config_is_given(&config, "pop"));
}

TEST_F(ConfigTest, CommandLineForms) {
    ASSERT_OK(
        parse({"cartpole", "--pop", "512", "--weight-decay=0.5", "--no-normalize", "--same-seeds", "--device", "cuda",
               "--hidden=32,16,8", "--set", "a=1", "--set=b=-2", "--target", "-3.5", "--out=", "--", "--pop"}));
    EXPECT_EQ(512, values.pop);
    EXPECT_EQ(0.5, values.weight_decay);
    EXPECT_FALSE(values.normalize);
    EXPECT_TRUE(values.same_seeds);
    EXPECT_EQ(2, values.device);
    EXPECT_EQ("32,16,8", text("hidden"));
    EXPECT_EQ(-3.5, values.target);
    ASSERT_EQ(2, values.set.count);
    EXPECT_STREQ("b=-2", values.set.at[1]);
    ASSERT_EQ(2, args.count);
    EXPECT_STREQ("cartpole", args.positional[0]);
    EXPECT_STREQ("--pop", args.positional[1]);
    EXPECT_TRUE(host_config_is_given(&config, "weight-decay"));
    EXPECT_FALSE(host_config_is_given(&config, "seed"));
    EXPECT_FALSE(args.help);
}

TEST_F(ConfigTest, HelpAndVersionAreSeen) {
    ASSERT_OK(parse({"--help", "--version"}));
    EXPECT_TRUE(args.help);
    EXPECT_TRUE(args.version);
}

TEST_F(ConfigTest, LastOneWins) {
    ASSERT_OK(parse({"--pop", "4", "--pop=8", "--no-normalize", "--normalize=yes"}));
    EXPECT_EQ(8, values.pop);
    EXPECT_TRUE(values.normalize);
}

TEST_F(ConfigTest, CommandLineErrorsNameWhatIsWrong) {
    EXPECT_FAILS(STATUS_USAGE, "unknown option --popp; the nearest is --pop", parse({"--popp", "3"}));
    EXPECT_FAILS(STATUS_USAGE, "the nearest is --weight-decay", parse({"--wieght-decay=1"}));
    EXPECT_FAILS(STATUS_USAGE, "the nearest is --normalize", parse({"--norm"}));
    EXPECT_FAILS(STATUS_USAGE, "--pop needs a value: 2 to 1048576 members", parse({"--pop"}));
    EXPECT_FAILS(STATUS_USAGE, "--pop needs a value", parse({"--pop", "--seed", "3"}));
    EXPECT_FAILS(STATUS_USAGE, "takes no value", parse({"--no-normalize=true"}));
    EXPECT_FAILS(STATUS_USAGE, "neither true nor false", parse({"--normalize=maybe"}));
    EXPECT_FAILS(STATUS_USAGE, "unknown option '-p'", parse({"-p", "3"}));
    EXPECT_FAILS(STATUS_USAGE, "unknown option --no-pop", parse({"--no-pop"}));
    EXPECT_FAILS(STATUS_USAGE, "unknown option --", parse({"--" + std::string(5000, 'x')}));
    EXPECT_FAILS(STATUS_USAGE, "more than 64 arguments", parse(std::vector<std::string>(65, "x")));
}

TEST_F(ConfigTest, IntegersAreRefusedWithValueRangeAndUnit) {
    EXPECT_FAILS(STATUS_USAGE, "option --pop: 1 is out of range; allowed: 2 to 1048576 members", set("pop", "1"));
    EXPECT_FAILS(STATUS_USAGE, "1048577 is out of range", set("pop", "1048577"));
    EXPECT_FAILS(STATUS_USAGE, "hexadecimal", set("seed", "0x10"));
    EXPECT_FAILS(STATUS_USAGE, "does not fit in 64 bits", set("seed", "9223372036854775808"));
    for (const char *bad : {"", "-", "+3", " 3", "3 ", "3.0", "1e3", "3a", "--3"})
        EXPECT_FAILS(STATUS_USAGE, "is not an integer", set("seed", bad));
    EXPECT_EQ(256, values.pop);
    EXPECT_EQ(1, values.seed);
    EXPECT_FALSE(host_config_is_given(&config, "seed"));
    ASSERT_OK(set("seed", "-9223372036854775808"));
    EXPECT_EQ(INT64_MIN, values.seed);
}

TEST_F(ConfigTest, RealsAreRefusedWithValueRangeAndUnit) {
    EXPECT_FAILS(STATUS_USAGE, "option --weight-decay: 1.5 is out of range; allowed: 0 to 1 1/generation",
                 set("weight_decay", "1.5"));
    for (const char *bad : {"nan", "inf", "-inf", "1e999", "NAN(1)", "infinity"})
        EXPECT_EQ(STATUS_USAGE, set("target", bad)) << bad;
    for (const char *bad : {"", " 1", "1 ", "0x1p3", "1,5", "x", "1e"})
        EXPECT_FAILS(STATUS_USAGE, "is not a number", set("target", bad));
    EXPECT_EQ(0, values.target);
}

TEST_F(ConfigTest, ChoicesAndSizesAreRefused) {
    EXPECT_FAILS(STATUS_USAGE, "unknown value 'cud'; allowed: auto, cpu or cuda (nearest: cuda)", set("device", "cud"));
    for (const char *bad : {"64,", ",64", "", "64,,64", "64;64", "-1", "64,0", "4097", "1,1,1,1,1,1,1,1,1"})
        EXPECT_EQ(STATUS_USAGE, set("hidden", bad)) << bad;
    EXPECT_EQ("64,64", text("hidden"));
    ASSERT_OK(set("hidden", "1,2,3,4,5,6,7,8"));
    for (const char *none : {"0", "none"}) {
        ASSERT_OK(set("hidden", none));
        EXPECT_EQ(0, values.hidden.count);
    }
}

TEST_F(ConfigTest, TextsAreRefusedWhenTooLongOrNotUtf8) {
    EXPECT_FAILS(STATUS_USAGE, "has 512 bytes; allowed: at most 511", set("out", std::string(512, 'a').c_str()));
    ASSERT_OK(set("out", std::string(511, 'a').c_str()));
    for (const char *bad : {"\xff", "a\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xe0\x80\x80"})
        EXPECT_FAILS(STATUS_USAGE, "not valid UTF-8", set("env", bad));
    ASSERT_OK(set("env", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\x9f"));
    EXPECT_FAILS(STATUS_USAGE, "allowed: at most 127", set("set", std::string(128, 'a').c_str()));
    for (int i = 0; i < HOST_LIST_MAX; i++)
        ASSERT_OK(set("set", std::to_string(i).c_str()));
    EXPECT_FAILS(STATUS_USAGE, "more than 32 times", set("set", "x"));
    EXPECT_STREQ("31", values.set.at[31]);
}

TEST_F(ConfigTest, HigherLayersWinInWhateverOrderTheyAreRead) {
    ASSERT_OK(parse({"--pop", "8", "--set", "c=3"}));
    ASSERT_OK(take_json(R"({"pop": 16, "seed": 5, "sigma": 0.5, "set": ["b=2"]})"));
    ASSERT_OK(host_config_set(&config, CONFIG_SIMULATOR, "seed", "99"));
    ASSERT_OK(host_config_set(&config, CONFIG_SIMULATOR, "target", "475"));
    ASSERT_OK(host_config_set(&config, CONFIG_SIMULATOR, "set", "a=1"));
    EXPECT_EQ(8, values.pop);
    EXPECT_EQ(5, values.seed);
    EXPECT_EQ(0.5, values.sigma);
    EXPECT_EQ(475, values.target);
    EXPECT_EQ("a=1 b=2 c=3", text("set"));
    EXPECT_EQ(CONFIG_ARGS, host_config_layer(&config, "pop"));
    EXPECT_EQ(CONFIG_FILE, host_config_layer(&config, "sigma"));
    EXPECT_EQ(CONFIG_SIMULATOR, host_config_layer(&config, "target"));
    // A lower layer's value is checked though it is not used.
    EXPECT_EQ(STATUS_USAGE, host_config_set(&config, CONFIG_FILE, "pop", "1"));
}

TEST_F(ConfigTest, JsonRoundTripIsExact) {
    std::mt19937_64 random(std::random_device{}());
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = random();
        double real;
        memcpy(&real, &bits, sizeof real);
        values.target = std::isfinite(real) ? real : -0.0;
        values.sigma =
            std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52, -19 + static_cast<int>(random() % 22));
        values.seed = static_cast<int64_t>(random());
        values.device = static_cast<int>(random() % 3);
        values.normalize = random() % 2 == 0;
        snprintf(values.env, sizeof values.env, "a\"\\\n\t\x01/%d", i);
        values.hidden.count = static_cast<int32_t>(random() % 3);
        for (int32_t &size : values.hidden.at)
            size = 1 + static_cast<int32_t>(random() % 4096);
        std::string written = json();
        ExampleConfig before = values;
        host_config_init(&config, &example_table, &values);
        ASSERT_OK(take_json(written)) << written;
        ASSERT_EQ(0, memcmp(&before.target, &values.target, sizeof(double))) << written;
        ASSERT_EQ(before.sigma, values.sigma);
        ASSERT_EQ(before.seed, values.seed);
        ASSERT_EQ(before.device, values.device);
        ASSERT_EQ(before.normalize, values.normalize);
        ASSERT_STREQ(before.env, values.env);
        ASSERT_EQ(before.hidden.count, values.hidden.count);
        ASSERT_EQ(written, json());
    }
}

TEST_F(ConfigTest, RealTextIsShortest) {
    char text[32];
    EXPECT_STREQ("0.05", host_real_text(0.05, text));
    EXPECT_STREQ("1.0", host_real_text(1, text));
    EXPECT_STREQ("-0.0", host_real_text(-0.0, text));
    EXPECT_STREQ("0.30000000000000004", host_real_text(0.1 + 0.2, text));
    EXPECT_STREQ("-1.7976931348623157e+308", host_real_text(-DBL_MAX, text));
    EXPECT_STREQ("4.94065645841247e-324", host_real_text(DBL_TRUE_MIN, text));
}

TEST_F(ConfigTest, JsonHoldsSettingsButNoCommands) {
    ASSERT_OK(parse({"--out", "x", "--dry-run", "--set", "a=b"}));
    std::string written = json();
    EXPECT_EQ(std::string::npos, written.find("dry_run"));
    EXPECT_EQ(std::string::npos, written.find("out"));
    EXPECT_NE(std::string::npos, written.find("\"tool\": \"example\""));
    EXPECT_NE(std::string::npos, written.find("\"set\": [\"a=b\"]"));
    EXPECT_NE(std::string::npos, written.find("\"hidden\": [64, 64]"));
    EXPECT_FAILS(STATUS_USAGE, "belongs on the command line", take_json(R"({"out": "x"})"));
}

TEST_F(ConfigTest, JsonErrorsNameWhatIsWrongAndChangeNothing) {
    std::string before = json();
    EXPECT_FAILS(STATUS_USAGE, "line 2, column 9", take_json("{\"pop\": 8,\n\"sigma\" 3}"));
    EXPECT_FAILS(STATUS_USAGE, "malformed JSON", take_json(""));
    EXPECT_FAILS(STATUS_USAGE, "malformed JSON", take_json(R"({"pop": 8, "pop": 16})"));
    EXPECT_FAILS(STATUS_USAGE, "malformed JSON", take_json(R"({"seed": 9223372036854775808})"));
    EXPECT_FAILS(STATUS_USAGE, "malformed JSON", take_json(R"({"sigma": 1e999})"));
    EXPECT_FAILS(STATUS_USAGE, "not a JSON object", take_json("[1]"));
    EXPECT_FAILS(STATUS_USAGE, "c.json: unknown setting sigme; the nearest is sigma",
                 take_json(R"({"pop": 8, "sigme": 1})"));
    EXPECT_FAILS(STATUS_USAGE, "another tool, 'pporun'; this is example", take_json(R"({"tool": "pporun"})"));
    EXPECT_FAILS(STATUS_USAGE, "c.json: pop: 1 is out of range; allowed: 2 to 1048576 members",
                 take_json(R"({"sigma": 1, "pop": 1})"));
    EXPECT_FAILS(STATUS_USAGE, "an integer expected, found a real", take_json(R"({"pop": 8.0})"));
    EXPECT_FAILS(STATUS_USAGE, "a number expected, found a text", take_json(R"({"sigma": "1"})"));
    EXPECT_FAILS(STATUS_USAGE, "true or false expected, found an integer", take_json(R"({"normalize": 1})"));
    EXPECT_FAILS(STATUS_USAGE, "a text expected, found null", take_json(R"({"device": null})"));
    EXPECT_FAILS(STATUS_USAGE, "a list of integers expected", take_json(R"({"hidden": [64, "a"]})"));
    EXPECT_FAILS(STATUS_USAGE, "a size of 0", take_json(R"({"hidden": [0]})"));
    EXPECT_FAILS(STATUS_USAGE, "more than 8 sizes", take_json(R"({"hidden": [1,1,1,1,1,1,1,1,1]})"));
    EXPECT_FAILS(STATUS_USAGE, "a list of texts expected", take_json(R"({"set": "a=b"})"));
    EXPECT_EQ(before, json());
    EXPECT_FALSE(host_config_is_given(&config, "sigma"));
}

TEST_F(ConfigTest, FilesAreReadOrNamed) {
    TempFolder folder;
    EXPECT_FAILS(STATUS_IO, "none.json", host_config_from_file(&config, CONFIG_FILE, (folder / "none.json").c_str()));
    EXPECT_FAILS(STATUS_IO, "not a regular file", host_config_from_file(&config, CONFIG_FILE, folder.path().c_str()));
    write_file(folder / "c.json", R"({"pop": 64})");
    ASSERT_OK(host_config_from_file(&config, CONFIG_FILE, (folder / "c.json").c_str()));
    EXPECT_EQ(64, values.pop);
}

TEST_F(ConfigTest, HelpShowsEveryOption) {
    std::string help = printed([](FILE *stream) { host_config_help(&example_table, stream); });
    for (const char *part : {"--pop N", "--weight-decay X", "--[no-]normalize", "--same-seeds", "--set NAME=VALUE",
                             "default 256; 2 to 1048576 members", "auto, cpu or cuda", "--help", "may be repeated"})
        EXPECT_NE(std::string::npos, help.find(part)) << part << "\n" << help;
}

TEST(NearestName, PicksTheSmallestDistance) {
    const char *const names[] = {"cartpole", "mountain_car", "mountain_car_continuous", "acrobot", "pendulum"};
    EXPECT_STREQ("cartpole", host_nearest_name("carpole", names, 5));
    EXPECT_STREQ("acrobot", host_nearest_name("acorbot", names, 5));
    EXPECT_STREQ("mountain_car", host_nearest_name("mountan", names, 5));
    EXPECT_STREQ("mountain_car_continuous", host_nearest_name("mountain_car_cont", names, 5));
    EXPECT_NE(nullptr, host_nearest_name("", names, 5));
    EXPECT_NE(nullptr, host_nearest_name(std::string(1000, 'q').c_str(), names, 5));
    EXPECT_EQ(nullptr, host_nearest_name("x", names, 0));
    // Two swapped letters are one mistake; without that, the first of the two would be as near.
    const char *const close[] = {"soma", "sigma"};
    EXPECT_STREQ("sigma", host_nearest_name("sgima", close, 2));
}

} // namespace
