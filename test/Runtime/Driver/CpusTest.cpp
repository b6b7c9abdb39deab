//===- CpusTest.cpp - who gets which CPUs ---------------------------------===//

#include "dsopt/Runtime/Cpus.h"
#include <gtest/gtest.h>

#include <cerrno>

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

TEST(Cpus, OfAnyNumberCount) {
  CpuRecord high;
  high.mask[3000 / 64] = uint64_t(3) << (3000 % 64);
  EXPECT_EQ(cpusOfRank({high}, 0, 2), Cpus({3000, 3001}));
  EXPECT_EQ(cpuShare({high, high}, 0), 1);
  // A kernel that knows 4096 CPUs takes no smaller set.
  CpuMask mask = affinityMask([](size_t bytes, void *set) {
    if (bytes * 8 < 4096) {
      errno = EINVAL;
      return -1;
    }
    static_cast<uint64_t *>(set)[2] = 1;
    return 0;
  });
  EXPECT_EQ(mask[2], 1u);
}

TEST(Cpus, AMaskThatCannotBeHadLeavesOneThreadAnywhere) {
  for (int error : {EINVAL, EPERM}) {
    CpuRecord unknown;
    unknown.mask = affinityMask([&](size_t, void *) {
      errno = error;
      return -1;
    });
    EXPECT_EQ(cpuShare({unknown, unknown}, 1), 1);
    EXPECT_EQ(cpusOfRank({unknown, unknown}, 1, 1), Cpus());
    EXPECT_EQ(sharingOf({unknown, unknown}, 1).cpus, 0);
  }
}

TEST(Cpus, OnlyRanksOfThisHostShareIt) {
  std::vector<CpuRecord> ranks = {record(3, 0, 1), record(3, 0, 1), record(3, 0, 2), record(3, 0, 2)};
  EXPECT_EQ(sharingOf(ranks, 2).ranks, 2);
  EXPECT_EQ(sharingOf(ranks, 2).cpus, 2);
  // Each bound to its own.
  EXPECT_EQ(sharingOf({record(1), record(2)}, 0).ranks, 1);
  EXPECT_EQ(sharingOf({record(1), record(2)}, 0).cpus, 1);
  EXPECT_EQ(sharingOf({record(0xff, /*quota=*/2)}, 0).cpus, 2);
}
