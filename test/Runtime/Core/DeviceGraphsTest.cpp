//===- DeviceGraphsTest.cpp - which actions a CUDA graph replays -----------===//

#include "Core/DeviceGraphs.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {

constexpr int64_t kCompute = 0, kOther = 1;

struct Plan {
  std::vector<Action> actions;
  std::vector<GraphPart> parts;

  int64_t add(int64_t queue, std::vector<int64_t> waits = {}, GraphPart part = {true, true, 0}) {
    Action action;
    action.queue = queue;
    action.waits = std::move(waits);
    actions.push_back(action);
    parts.push_back(queue == kCompute ? part : GraphPart());
    return static_cast<int64_t>(actions.size()) - 1;
  }
  std::vector<int64_t> lengths() const { return planGraphs(actions, parts).lengths; }
};
using Lengths = std::vector<int64_t>;

} // namespace

TEST(DeviceGraphs, WhatFollowsEachOtherIsOne) {
  Plan plan;
  plan.add(kCompute);
  plan.add(kCompute, {0});
  plan.add(kOther);
  plan.add(kCompute, {0, 1});
  EXPECT_EQ(plan.lengths(), (Lengths{3, 0, 0, 0}));
  GraphPlan made = planGraphs(plan.actions, plan.parts);
  EXPECT_EQ(made.graphs, 1);
  EXPECT_EQ(made.actions, 3);
}

TEST(DeviceGraphs, WhatWaitsForAnotherQueueBeginsOne) {
  Plan plan;
  plan.add(kCompute);
  int64_t other = plan.add(kOther);
  plan.add(kCompute, {other});
  // The stream is behind it already.
  plan.add(kCompute, {other});
  EXPECT_EQ(plan.lengths(), (Lengths{1, 0, 2, 0}));
}

TEST(DeviceGraphs, WhatAnotherQueueWaitsForEndsOne) {
  Plan plan;
  plan.add(kCompute);
  int64_t made = plan.add(kCompute);
  plan.add(kOther, {made});
  plan.add(kCompute);
  EXPECT_EQ(plan.lengths(), (Lengths{2, 0, 0, 1}));
}

TEST(DeviceGraphs, OfSeveralThatAreWaitedForTheLastOneCounts) {
  Plan plan;
  int64_t one = plan.add(kCompute), two = plan.add(kCompute);
  plan.add(kOther, {two, one});
  plan.add(kCompute);
  EXPECT_EQ(plan.lengths(), (Lengths{2, 0, 0, 1}));
}

TEST(DeviceGraphs, TheHostsPartIsBetween) {
  Plan plan;
  plan.add(kCompute);
  plan.add(kCompute, {}, {});
  plan.add(kCompute);
  plan.add(kCompute);
  EXPECT_EQ(plan.lengths(), (Lengths{1, 0, 2, 0}));
}

TEST(DeviceGraphs, AFewSmallActionsGoByThemselves) {
  Plan plan;
  constexpr GraphPart kSmall = {true, false, 0};
  plan.add(kCompute, {}, kSmall);
  plan.add(kCompute, {}, kSmall);
  EXPECT_EQ(plan.lengths(), (Lengths{0, 0}));
  plan.add(kCompute, {}, kSmall);
  EXPECT_EQ(plan.lengths(), (Lengths{3, 0, 0}));
}

TEST(DeviceGraphs, PhasesAreApart) {
  Plan plan;
  plan.add(kCompute);
  plan.add(kCompute);
  plan.add(kCompute, {}, {true, true, 1});
  plan.add(kCompute, {}, {true, true, 1});
  EXPECT_EQ(plan.lengths(), (Lengths{2, 0, 2, 0}));
}
