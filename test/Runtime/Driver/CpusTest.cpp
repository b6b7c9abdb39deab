//===- CpusTest.cpp - who gets which CPUs ---------------------------------===//

#include "dsopt/Runtime/Cpus.h"
#include <gtest/gtest.h>

using namespace dsopt::runtime;

static CpuRecord record(uint64_t mask, int64_t quota = 0, uint64_t machine = 1) {
  CpuRecord result;
  result.machine = machine;
  result.quota = quota;
  result.mask[0] = mask;
  return result;
}
using Cpus = std::vector<int>;

TEST(Cpus, RanksOfAMachineShareThemInOrder) {
  std::vector<CpuRecord> ranks(2, record(0xf0));
  EXPECT_EQ(cpusOfRank(ranks, 0, 2), Cpus({4, 5}));
  EXPECT_EQ(cpusOfRank(ranks, 1, 2), Cpus({6, 7}));
  EXPECT_EQ(cpusOfRank(ranks, 1, 1), Cpus({6, 7}));
}

TEST(Cpus, OtherMachinesDoNotCount) {
  EXPECT_EQ(cpusOfRank({record(3, 0, 1), record(3, 0, 2)}, 1, 2), Cpus({0, 1}));
}

TEST(Cpus, ALaunchersBindingStays) {
  EXPECT_EQ(cpusOfRank({record(1), record(2)}, 1, 1), Cpus({1}));
  EXPECT_EQ(cpusOfRank({record(3), record(2)}, 1, 1), Cpus());
}

TEST(Cpus, NobodyIsBoundWhereThreadsOutnumberCpus) {
  EXPECT_EQ(cpusOfRank({record(3), record(3)}, 0, 2), Cpus());
  EXPECT_EQ(cpusOfRank({record(0xff, /*quota=*/2)}, 0, 2), Cpus());
}
