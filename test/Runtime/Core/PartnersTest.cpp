//===- PartnersTest.cpp - which ranks talk to which -----------------------===//

#include "dsopt/Runtime/Partners.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {

std::vector<int> neighbours(const Communicator &group) {
  int before = group.ranks[(group.self + group.size() - 1) % group.size()],
      after = group.ranks[(group.self + 1) % group.size()];
  return {before, after};
}

Action action(ActionKind kind, int64_t communicator, int64_t peer = 0) {
  Action action;
  action.kind = kind;
  action.communicator = communicator;
  action.peer = peer;
  return action;
}

/// 4 dp x 4 pp: collectives over dp, sends along pp, agreements over all.
Program program() {
  Program program;
  program.dp = program.pp = 4;
  RankGroups dp{"dp", {}}, pp{"pp", {}}, all{"all", {{}}};
  dp.groups.resize(4);
  pp.groups.resize(4);
  for (int position = 0; position < 4; ++position)
    for (int index = 0; index < 4; ++index) {
      dp.groups[position].push_back(position * 4 + index);
      pp.groups[index].push_back(position * 4 + index);
      all.groups[0].push_back(position * 4 + index);
    }
  program.communicators = {dp, pp, all};
  program.positions.resize(4);
  for (int64_t position = 0; position < 4; ++position) {
    std::vector<Action> &actions = program.positions[position].actions.edit();
    actions.push_back(action(ActionKind::Run, -1));
    actions.push_back(action(ActionKind::Reduce, 0));
    actions.push_back(action(ActionKind::Agree, 2));
    if (position > 0)
      actions.push_back(action(ActionKind::Recv, 1, position - 1));
    if (position < 3)
      actions.push_back(action(ActionKind::Send, 1, position + 1));
  }
  return program;
}

TEST(Partners, WhoeverTheProgramTalksTo) {
  //                                    agreements, dp, pp; and rank 0
  EXPECT_EQ(peersOf(program(), 0, neighbours), (std::vector<int>{1, 2, 3, 4, 15}));
  EXPECT_EQ(peersOf(program(), 6, neighbours), (std::vector<int>{0, 2, 4, 5, 7, 10}));
  EXPECT_EQ(peersOf(program(), 13, neighbours), (std::vector<int>{0, 9, 12, 14, 15}));
}

TEST(Partners, EvaluationAndVariantsCount) {
  Program with = program();
  with.evaluation = with.positions;
  for (Position &position : with.evaluation)
    position.actions.edit().clear();
  with.evaluation[0].actions.edit().push_back(action(ActionKind::Send, 1, 3));
  with.evaluation[3].actions.edit().push_back(action(ActionKind::Recv, 1, 0));
  EXPECT_EQ(peersOf(with, 2, neighbours), (std::vector<int>{0, 1, 3, 6, 14}));
  EXPECT_EQ(peersOf(with, 14, neighbours), (std::vector<int>{0, 2, 10, 12, 13, 15}));
}

TEST(Partners, EachIsTheOthersToo) {
  for (auto partners : {neighbours, agreementPartners})
    for (int rank = 0; rank < 16; ++rank)
      for (int peer : peersOf(program(), rank, partners)) {
        std::vector<int> back = peersOf(program(), peer, partners);
        // Rank 0 is linked to all, whether it knows why or not.
        EXPECT_TRUE(peer == 0 || rank == 0 || std::count(back.begin(), back.end(), rank))
            << rank << " " << peer;
      }
}

} // namespace
