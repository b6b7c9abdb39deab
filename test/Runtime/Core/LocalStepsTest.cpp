//===- LocalStepsTest.cpp - when ranks move apart, and meet ----------------===//

#include "Core/LocalSteps.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;

/// The same by counters, as DeepSpeed's ZeroOneAdam counts.
static std::vector<ListKind> countKinds(const LocalPolicy &policy, int64_t freezeStep, int64_t steps) {
  int64_t varInterval = 1, varCounter = 0, localInterval = 1, localCounter = 0;
  std::vector<ListKind> kinds;
  for (int64_t step = 1; step <= steps; ++step) {
    if (step <= freezeStep) {
      bool isWhole = step % varInterval == 0;
      kinds.push_back(isWhole ? ListKind::Step : ListKind::CompressedStep);
      if (isWhole && ++varCounter == policy.var_update_scaler) {
        varCounter = 0;
        varInterval *= 2;
      }
      continue;
    }
    kinds.push_back(step % localInterval == 0 ? ListKind::JoinStep : ListKind::LocalStep);
    if (++localCounter == policy.local_step_scaler) {
      localCounter = 0;
      localInterval = std::min(policy.local_step_clipper, 2 * localInterval);
    }
  }
  return kinds;
}

TEST(LocalSteps, AreThoseThatCountersGive) {
  for (int64_t varScaler : {1, 2, 3, 16})
    for (int64_t localScaler : {1, 2, 5, 40})
      for (int64_t clipper : {1, 2, 3, 6, 16})
        for (int64_t freeze : {1, 7, 100, 1000}) {
          LocalPolicy policy{varScaler, localScaler, clipper};
          std::vector<ListKind> kinds = countKinds(policy, freeze, 2000);
          int64_t whole = 0;
          for (int64_t step = 1; step <= 2000; ++step) {
            whole += kinds[step - 1] == ListKind::Step;
            ASSERT_EQ(kindOfStep(policy, freeze, step), kinds[step - 1])
                << varScaler << " " << localScaler << " " << clipper << " " << freeze << ": step " << step;
            ASSERT_EQ(countWhole(policy, freeze, step), whole)
                << varScaler << " " << freeze << ": step " << step;
          }
        }
}

TEST(LocalSteps, KeepNoCountersOfLongRuns) {
  LocalPolicy policy{16, 32678, 16};
  int64_t far = INT64_C(1) << 61;
  EXPECT_EQ(kindOfStep(policy, 100000, 16), ListKind::Step);
  EXPECT_EQ(kindOfStep(policy, 100000, 17), ListKind::CompressedStep);
  EXPECT_EQ(kindOfStep(policy, 100000, 100001), ListKind::JoinStep);
  EXPECT_EQ(kindOfStep(policy, 100000, far), ListKind::JoinStep);
  EXPECT_EQ(kindOfStep(policy, 100000, far + 1), ListKind::LocalStep);
  EXPECT_EQ(kindOfStep({1, 1, 1}, far, far - 1), ListKind::CompressedStep);
  EXPECT_EQ(countWhole({1, 1, 1}, far, far), 62);
  EXPECT_EQ(countWhole(policy, 100000, far), countWhole(policy, 100000, 100000));
}

TEST(LocalSteps, LeaveRanksApart) {
  Program program;
  EXPECT_FALSE(areApart(program, 3));
  program.freeze_step = 2;
  program.local_policy = {1, 1, 4};
  std::vector<bool> apart;
  for (int64_t applied = 0; applied < 9; ++applied)
    apart.push_back(areApart(program, applied));
  EXPECT_EQ(apart, (std::vector<bool>{false, false, false, false, false, true, true, true, false}));
}
