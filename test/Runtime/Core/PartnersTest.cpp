//===- PartnersTest.cpp - which ranks talk to which -----------------------===//

#include "dsopt/Runtime/Partners.h"
#include "Core/SavedState.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {

Action action(ActionKind kind, int64_t communicator, int64_t peer = 0) {
  Action action;
  action.kind = kind;
  action.communicator = communicator;
  action.peer = peer;
  return action;
}

/// 3 dp x 5 pp: collectives over dp, sends along pp, agreements over all.
Program program() {
  Program program;
  program.grid = dsopt::Grid({5, 3, 1, 1, 1});
  program.communicators = {{"dp", {{dsopt::Axis::edp}}},
                           {"pp", {{dsopt::Axis::pp}}},
                           {"all", {{dsopt::Axis::pp}, {dsopt::Axis::edp}}}};
  program.positions.resize(5);
  for (int64_t position = 0; position < 5; ++position) {
    std::vector<Action> &actions = program.positions[position].actions.edit();
    actions.push_back(action(ActionKind::Run, -1));
    actions.push_back(action(ActionKind::Reduce, 0));
    actions.push_back(action(ActionKind::Agree, 2));
    if (position > 0)
      actions.push_back(action(ActionKind::Recv, 1, position - 1));
    if (position < 4)
      actions.push_back(action(ActionKind::Send, 1, position + 1));
  }
  return program;
}

TEST(Partners, WhoeverTheProgramTalksTo) {
  // Agreements and exchanges, dp, pp; and rank 0.
  EXPECT_EQ(peersOf(program(), 0), (std::vector<int>{1, 2, 3, 4, 7, 8, 11, 13, 14}));
  EXPECT_EQ(peersOf(program(), 7), (std::vector<int>{0, 3, 4, 5, 6, 8, 9, 10, 11, 14}));
  EXPECT_EQ(peersOf(program(), 13), (std::vector<int>{0, 2, 5, 6, 9, 10, 11, 12, 14}));
}

TEST(Partners, EvaluationAndVariantsCount) {
  Program with = program();
  with.evaluation = with.positions;
  for (Position &position : with.evaluation)
    position.actions.edit().clear();
  with.evaluation[0].actions.edit().push_back(action(ActionKind::Send, 1, 3));
  with.evaluation[3].actions.edit().push_back(action(ActionKind::Recv, 1, 0));
  for (auto [rank, peer] : {std::pair(2, 11), std::pair(11, 2)}) {
    std::vector<int> before = peersOf(program(), rank), after = peersOf(with, rank);
    EXPECT_EQ(std::count(before.begin(), before.end(), peer), 0);
    EXPECT_EQ(std::count(after.begin(), after.end(), peer), 1);
    EXPECT_EQ(after.size(), before.size() + 1);
  }
}

/// Checkpoints have a unit of 64 KiB in which one rank's part ends and another's begins.
TEST(Partners, NeighboursInCheckpointsCount) {
  Program with = program();
  for (int64_t position : {0, 3}) {
    Bucket bucket;
    bucket.name = "b" + std::to_string(position);
    bucket.type = "f32";
    bucket.padded = 3 * 64;
    with.buckets.push_back(bucket);
    Parameter parameter;
    parameter.name = "w" + std::to_string(position);
    parameter.type = "f32";
    parameter.shape = {3 * 64};
    parameter.bucket = static_cast<int64_t>(with.buckets.size()) - 1;
    with.parameters.push_back(parameter);
    Position::Load load;
    load.bucket = parameter.bucket;
    with.positions[position].loads.push_back(load);
  }
  // One unit has the parts of ranks 0 to 2 and 9 to 11; rank 0, which writes the header, brings them
  // together.
  EXPECT_EQ(savePeers(with, 0), (std::vector<int>{1, 2, 9, 10, 11}));
  EXPECT_EQ(savePeers(with, 10), (std::vector<int>{0, 9}));
  EXPECT_EQ(savePeers(with, 4), (std::vector<int>{}));
  std::vector<int> peers = peersOf(with, 0);
  for (int peer : {9, 10})
    EXPECT_EQ(std::count(peers.begin(), peers.end(), peer), 1);
}

TEST(Partners, EachIsTheOthersToo) {
  for (int rank = 0; rank < 15; ++rank)
    for (int peer : peersOf(program(), rank)) {
      std::vector<int> back = peersOf(program(), peer);
      // Rank 0 is linked to all, whether it knows why or not.
      EXPECT_TRUE(peer == 0 || rank == 0 || std::count(back.begin(), back.end(), rank))
          << rank << " " << peer;
    }
}

} // namespace
