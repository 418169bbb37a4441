// The host's tables of the simulators.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "sim/sim_list.h"
#include "sim/sim_spec.h"

namespace {

TEST(SpecTest, NamesAreUniqueAndFound) {
    std::set<std::string> names;
    ASSERT_EQ(sim_spec_count(), 11);
    for (int i = 0; i < sim_spec_count(); i++) {
        const SimSpec *spec = sim_spec_at(i);
        EXPECT_TRUE(names.insert(spec->name).second);
        EXPECT_EQ(sim_spec_find(spec->name), spec);
        EXPECT_EQ(sim_spec_find(spec->gymnasium_id), spec);
    }
    EXPECT_EQ(sim_spec_find("cartpol"), nullptr);
}

TEST(SpecTest, SizesAndBoundsFitTogether) {
    for (int i = 0; i < sim_spec_count(); i++) {
        const SimSpec *spec = sim_spec_at(i);
        EXPECT_GT(spec->obs, 0);
        EXPECT_GT(spec->time_limit, 0);
        int choices = 0, count = 0;
        for (; spec->choices[count] > 0; count++)
            choices += spec->choices[count];
        EXPECT_EQ(choices, spec->discrete) << spec->name;
        bool several = count > 1 || (count > 0 && spec->continuous > 0);
        EXPECT_EQ(sim_spec_has_several_actions(spec), several) << spec->name;
        EXPECT_EQ(std::string(spec->name) == "parking", several) << spec->name;
        EXPECT_TRUE(several || (spec->discrete > 0) != (spec->continuous > 0)) << spec->name;
        EXPECT_EQ(spec->continuous > 0, spec->action_low < spec->action_high) << spec->name;
    }
}

#define EXPECT_STATE_SIZE(sim, Name, NAME)                                                     \
    EXPECT_EQ(static_cast<size_t>(sim_spec_find(#sim)->state_words) * 4, sizeof(Name##State)); \
    EXPECT_EQ(static_cast<size_t>(sim_spec_find(#sim)->param_count) * 4, sizeof(Name##Params));
TEST(SpecTest, StatesAndParametersAreFourByteWords){SIM_LIST(EXPECT_STATE_SIZE)}

TEST(SpecTest, ParametersAreNamedOnceAndExplained) {
    for (int i = 0; i < sim_spec_count(); i++) {
        const SimSpec *spec = sim_spec_at(i);
        for (int k = 0; k < spec->param_count; k++) {
            EXPECT_EQ(sim_spec_param(spec, spec->params[k].name), k);
            EXPECT_GT(std::strlen(spec->params[k].unit), 0u);
            EXPECT_GT(std::strlen(spec->params[k].help), 0u);
        }
        EXPECT_EQ(sim_spec_param(spec, "no_such_parameter"), -1);
    }
}

} // namespace
