//===- ChoiceTest.cpp - the best of all subsets of cuts -------------------===//

#include "Transforms/Place/RegionChoice.h"

#include "gtest/gtest.h"
#include <random>

using namespace dsopt;

namespace {
CutProblem problemOf(size_t count) {
  CutProblem problem;
  problem.gains.resize(count);
  problem.excludes.resize(count);
  return problem;
}

void exclude(CutProblem &problem, unsigned a, unsigned b) {
  problem.excludes[a].push_back(b);
  problem.excludes[b].push_back(a);
}

/// What a subset gains; none where it excludes itself.
std::optional<int64_t> gainOf(const CutProblem &problem, llvm::function_ref<bool(unsigned)> isTaken) {
  int64_t gain = 0;
  llvm::SmallVector<bool> paid(problem.sharedCosts.size());
  for (unsigned candidate = 0; candidate < problem.gains.size(); ++candidate) {
    if (!isTaken(candidate))
      continue;
    for (unsigned other : problem.excludes[candidate])
      if (isTaken(other))
        return std::nullopt;
    gain += problem.gains[candidate].saved - problem.gains[candidate].sums;
    for (unsigned sum : problem.gains[candidate].shared)
      if (!paid[sum]) {
        paid[sum] = true;
        gain -= problem.sharedCosts[sum];
      }
  }
  return gain;
}
} // namespace

TEST(CutChoice, IsTheBestOfAllSubsets) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    unsigned count = 1 + random() % 11;
    CutProblem problem = problemOf(count);
    for (unsigned sum = 0; sum < random() % 4; ++sum)
      problem.sharedCosts.push_back(random() % 8);
    for (unsigned a = 0; a < count; ++a) {
      problem.gains[a].saved = random() % 20;
      problem.gains[a].sums = random() % 12;
      for (unsigned sum = 0; sum < problem.sharedCosts.size(); ++sum)
        if (random() % 3 == 0)
          problem.gains[a].shared.push_back(sum);
      for (unsigned b = 0; b < a; ++b)
        if (random() % 4 == 0)
          exclude(problem, a, b);
    }
    int64_t best = 0;
    for (unsigned subset = 0; subset < 1u << count; ++subset)
      best = std::max(best, gainOf(problem, [&](unsigned one) { return (subset >> one) & 1; }).value_or(0));
    CutChoice choice = chooseCuts(problem);
    EXPECT_EQ(choice.gain, best) << "round " << round;
    EXPECT_EQ(gainOf(problem, [&](unsigned one) { return choice.taken[one]; }), best) << "round " << round;
    EXPECT_EQ(choice.bound, best) << "round " << round;
  }
}

// Each excludes its neighbours: greedily the middle of three would be taken, of a thousand no search ends.
TEST(CutChoice, LongChainsAreSolved) {
  CutProblem problem = problemOf(1000);
  for (unsigned a = 0; a < 1000; ++a) {
    problem.gains[a].saved = a % 2 ? 12 : 10;
    if (a)
      exclude(problem, a - 1, a);
  }
  problem.gains[0].saved = 13;
  CutChoice choice = chooseCuts(problem);
  EXPECT_EQ(choice.gain, 13 + 499 * 12);
  EXPECT_TRUE(choice.taken[0] && choice.taken[3] && choice.taken[999]);
}

// What only one of two could not pay, both do.
TEST(CutChoice, ASumIsPaidOnce) {
  CutProblem problem = problemOf(2);
  problem.sharedCosts = {15};
  for (CutGain &gain : problem.gains) {
    gain.saved = 10;
    gain.shared = {0};
  }
  CutChoice choice = chooseCuts(problem);
  EXPECT_EQ(choice.gain, 5);
  EXPECT_EQ(choice.bound, 5);
  EXPECT_TRUE(choice.taken[0] && choice.taken[1]);
}

// A search that would not end is cut short: the bound says what that may have cost.
TEST(CutChoice, WhatIsTooMuchIsBounded) {
  std::mt19937 random(3);
  CutProblem problem = problemOf(300);
  int64_t all = 0;
  for (unsigned a = 0; a < 300; ++a) {
    all += problem.gains[a].saved = 100 + random() % 50;
    for (unsigned b = 0; b < a; ++b)
      if (random() % 20 == 0)
        exclude(problem, a, b);
  }
  CutChoice choice = chooseCuts(problem);
  EXPECT_EQ(gainOf(problem, [&](unsigned one) { return choice.taken[one]; }), choice.gain);
  EXPECT_GT(choice.gain, all / 5);
  EXPECT_GT(choice.bound, choice.gain);
  EXPECT_LT(choice.bound, all);
}
