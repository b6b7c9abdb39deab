//===- NcclPlanTest.cpp - which communication goes by NCCL ----------------===//

#include "Core/NcclPlan.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {

Action action(ActionKind kind, int64_t communicator, const std::string &name, int64_t queue, int64_t buffer) {
  Action action;
  action.kind = kind;
  action.communicator = communicator;
  action.name = action.tag = name;
  action.queue = queue;
  action.bytes = 64;
  Ref ref;
  ref.buffer = buffer;
  action.refs = {ref};
  return action;
}

/// 2 dp x 2 pp; what lies in buffer 0 is the device's, in buffer 1 the host's. The first stage sends up "a"
/// and "b", the second one sends down "c".
Program program() {
  Program program;
  program.grid = dsopt::Grid({2, 2, 1, 1, 1});
  program.communicators = {{"dp", {{dsopt::Axis::edp}}},
                           {"pp", {{dsopt::Axis::pp}}},
                           {"all", {{dsopt::Axis::pp}, {dsopt::Axis::edp}}}};
  program.positions.resize(2);
  for (int stage : {0, 1}) {
    Position &position = program.positions[stage];
    position.memories.resize(2);
    position.memories[1].kind = MemoryKind::Host;
    position.buffers.resize(2);
    position.buffers[1].memory = 1;
    position.queues.resize(3);
    std::vector<Action> &actions = position.actions.edit();
    actions.push_back(action(ActionKind::Gather, 0, "gather", 0, 0));
    for (const char *name : {"a", "b"}) {
      actions.push_back(action(stage ? ActionKind::Recv : ActionKind::Send, 1, name, stage ? 2 : 1, 0));
      actions.back().peer = 1 - stage;
    }
    actions.push_back(action(stage ? ActionKind::Send : ActionKind::Recv, 1, "c", stage ? 1 : 2, 0));
    actions.back().peer = 1 - stage;
    actions.push_back(action(ActionKind::Agree, 2, "agree", 0, 0));
  }
  return program;
}
std::vector<Action> &actionsOf(Program &program, int stage) {
  return program.positions[stage].actions.edit();
}

std::string refusal(const Program &program) {
  try {
    planNccl(program, 0);
    return "";
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusInput);
    return error.what();
  }
}

TEST(NcclPlan, GroupsAndDirections) {
  using Groups = std::vector<std::vector<int>>;
  const Groups groups = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {2, 0}, {3, 1}};
  for (int rank : {0, 1, 2, 3})
    EXPECT_EQ(planNccl(program(), rank).groups, groups);
  EXPECT_EQ(planNccl(program(), 0).groupOf[0], (std::vector<int>{0, 2, 2, 4, -1}));
  EXPECT_EQ(planNccl(program(), 3).groupOf[0], (std::vector<int>{1, 3, 3, 5, -1}));
}

TEST(NcclPlan, WhatIsTheHostsAtOneEndIsTheHostsAtBoth) {
  Program some = program();
  actionsOf(some, 1)[1].refs[0].buffer = 1;
  EXPECT_EQ(planNccl(some, 0).groupOf[0], (std::vector<int>{0, -1, 2, 4, -1}));
  EXPECT_EQ(planNccl(some, 2).groupOf[0], (std::vector<int>{1, -1, 2, 4, -1}));
}

TEST(NcclPlan, AnotherOrder) {
  Program some = program();
  std::swap(actionsOf(some, 1)[1], actionsOf(some, 1)[2]);
  EXPECT_EQ(refusal(some), "program table: ranks do not communicate in the same order: rank 0 has 'a', where "
                           "rank 2 has 'b'");
  some = program();
  actionsOf(some, 0).erase(actionsOf(some, 0).begin() + 2);
  EXPECT_EQ(refusal(some), "program table: ranks do not communicate in the same order: rank 0 has nothing, "
                           "where rank 2 has 'b'");
  some = program();
  some.communicators[0].axes = {{dsopt::Axis::pp}};
  actionsOf(some, 1)[0].bytes = 128;
  EXPECT_EQ(refusal(some), "program table: ranks do not communicate in the same order: rank 0 has 'gather', "
                           "where rank 2 has 'gather'");
}

TEST(NcclPlan, SendsOnTwoQueues) {
  Program some = program();
  actionsOf(some, 0)[2].queue = 0;
  EXPECT_EQ(refusal(some),
            "program table: 'b' of rank 0 is on another queue than what goes before it to rank 2");
}

} // namespace
