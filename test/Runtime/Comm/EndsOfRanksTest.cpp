//===- EndsOfRanksTest.cpp - what is said when a rank fails or leaves ------===//

#include "Hosts.h"
#include "Ranks.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

TEST(SharedMemory, AKilledRankEndsAllOthers) {
  auto group = SharedGroup::create(std::vector<int64_t>(4, 1 << 20));
  auto start = time(nullptr);
  std::vector<int> statuses = runRanks(*group, [](Engine &engine, char *) {
    engine.publish(7, 42);
    if (engine.rank() == 2)
      raise(SIGKILL);
    engine.barrier();
    return 0;
  });
  EXPECT_LE(time(nullptr) - start, 5);
  EXPECT_EQ(group->failedRank(), 2);
  EXPECT_EQ(group->failureStatus(), 2);
  EXPECT_EQ(group->stepOf(2), 7);
  EXPECT_EQ(group->actionOf(2), 42);
  for (int rank : {0, 1, 3})
    EXPECT_EQ(WEXITSTATUS(statuses[rank]), 2);
}

TEST(SharedMemory, ARankThatFailsSpeaksForAll) {
  auto group = SharedGroup::create(std::vector<int64_t>(3, 1 << 20));
  std::vector<int> statuses = runRanks(*group, [](Engine &engine, char *) {
    if (engine.rank() == 1)
      throw Error(StatusInput, "as the test wants it", /*quiet=*/true);
    engine.barrier();
    return 0;
  });
  for (int status : statuses)
    EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(SharedMemory, LeavingEarlyIsAFailure) {
  auto group = SharedGroup::create(std::vector<int64_t>(2, 1 << 20));
  std::vector<int> statuses = runRanks(*group, [](Engine &engine, char *) {
    if (engine.rank() == 1)
      _exit(0);
    engine.barrier();
    return 0;
  });
  EXPECT_EQ(WEXITSTATUS(statuses[0]), 2);
}

TEST(SharedMemory, CollectivesThatDoNotMatchAreNamed) {
  auto group = SharedGroup::create(std::vector<int64_t>(2, 1 << 20));
  testing::internal::CaptureStderr();
  std::vector<int> statuses = runRanks(*group, [](Engine &engine, char *arena) {
    auto *memory = reinterpret_cast<float *>(arena);
    if (engine.rank() == 0)
      engine.startGather(1, engine.world(), memory, memory + 1000, 256, TrafficClass::AllGather);
    else
      engine.startReduce(1, engine.world(), Element::F32, memory, memory + 1000, 64, false);
    engine.complete(1);
    return 0;
  });
  std::string text = testing::internal::GetCapturedStderr();
  for (const char *said : {"collectives do not match", "a reduction of 256 bytes", "a gather of 256 bytes"})
    EXPECT_NE(text.find(said), std::string::npos) << text;
  for (int status : statuses)
    EXPECT_EQ(WEXITSTATUS(status), 2);
}

class Launched : public testing::TestWithParam<std::string (*)(int)> {};
INSTANTIATE_TEST_SUITE_P(Hosts, Launched, testing::Values(alone, everyoneHere, pairs));

TEST_P(Launched, TheFirstThatIsLeftSaysThatOneDied) {
  for (int victim : {2, 0, 1}) {
    auto start = time(nullptr);
    std::vector<int> statuses = runWorld(4, GetParam(), [victim](Engine &engine, char *) {
      engine.barrier();
      engine.publish(7, 42);
      if (engine.rank() == victim)
        raise(SIGKILL);
      engine.barrier();
      return 0;
    });
    EXPECT_LE(time(nullptr) - start, 5);
    std::vector<int> expected(4, 2);
    expected[victim] = -1;
    expected[victim == 0] = 12;
    EXPECT_EQ(statuses, expected);
  }
}

TEST_P(Launched, AStandstillIsSaidOnce) {
  for (int victim : {3, 0}) {
    std::vector<int> statuses = runWorld(4, GetParam(), [victim](Engine &engine, char *) {
      engine.setStallLimit(std::chrono::milliseconds(500));
      engine.barrier();
      if (engine.rank() == victim) {
        if (fork() == 0) {
          usleep(3500000);
          kill(getppid(), SIGKILL);
          _exit(0);
        }
        raise(SIGSTOP);
      }
      engine.barrier();
      return 0;
    });
    std::vector<int> expected(4, 2);
    expected[victim] = -1;
    expected[victim == 0] = 12;
    EXPECT_EQ(statuses, expected);
  }
}

TEST_P(Launched, ARankThatFailsSpeaksForAll) {
  EXPECT_EQ(runWorld(4, GetParam(),
                     [](Engine &engine, char *) {
                       if (engine.rank() == 1)
                         throw Error(StatusInput, "as the test wants it");
                       engine.barrier();
                       return 0;
                     }),
            (std::vector<int>{1, 11, 1, 1}));
}

TEST_P(Launched, ARankThatLeavesTheWordToAnotherWaitsForIt) {
  EXPECT_EQ(runWorld(4, GetParam(),
                     [](Engine &engine, char *) -> int {
                       engine.barrier();
                       usleep(engine.rank() == 0 ? 300000 : 0);
                       throw Error(StatusFailure, "known to all", /*quiet=*/engine.rank() != 0);
                     }),
            (std::vector<int>{12, 2, 2, 2}));
}

TEST_P(Launched, WhatFliesIsGivenUp) {
  for (int delay : {0, 300, 3000})
    EXPECT_EQ(runWorld(4, GetParam(),
                       [delay](Engine &engine, char *arena) {
                         constexpr int64_t kSlice = 8 << 20;
                         engine.barrier();
                         engine.startGather(1, engine.world(), arena, arena + kSlice, kSlice,
                                            TrafficClass::AllGather);
                         if (engine.rank() == 1) {
                           usleep(delay);
                           engine.abandon();
                           std::memset(arena, 0xff, 5 * kSlice);
                           throw Error(StatusInput, "as the test wants it");
                         }
                         engine.complete(1);
                         engine.barrier();
                         return 0;
                       }),
              (std::vector<int>{1, 11, 1, 1}));
}

TEST_P(Launched, OperationsThatDoNotMatchAreAFailure) {
  std::vector<int> statuses = runWorld(4, GetParam(), [](Engine &engine, char *arena) {
    auto *memory = reinterpret_cast<float *>(arena);
    if (engine.rank() == 3)
      engine.startAllToAll(1, engine.world(), memory, memory + 1000, 256);
    else
      engine.startGather(1, engine.world(), memory, memory + 1000, 256, TrafficClass::AllGather);
    engine.complete(1);
    engine.barrier();
    return 0;
  });
  if (GetParam() != everyoneHere) {
    EXPECT_EQ(statuses, (std::vector<int>{12, 2, 2, 2}));
  }
  for (int status : statuses)
    EXPECT_TRUE(status == 2 || status == 12) << status;
}

/// Bytes fly while a rank is stopped for longer than a lost host is waited for: it goes on.
TEST(Tcp, AStoppedRankGoesOn) {
  EXPECT_EQ(runWorld(2, alone,
                     [](Engine &engine, char *arena) {
                       constexpr int64_t kSlice = 16 << 20;
                       int64_t mine = getpid(), pids[2], end = time(nullptr) + 9;
                       engine.exchange(&mine, sizeof mine, pids);
                       if (engine.rank() == 0 && fork() == 0) {
                         usleep(200000);
                         kill(static_cast<pid_t>(pids[1]), SIGSTOP);
                         usleep(8000000);
                         kill(static_cast<pid_t>(pids[1]), SIGCONT);
                         _exit(0);
                       }
                       for (int64_t go = 1, both[2]; go;) {
                         engine.startGather(1, engine.world(), arena, arena + kSlice, kSlice,
                                            TrafficClass::AllGather);
                         engine.complete(1);
                         go = time(nullptr) < end;
                         engine.exchange(&go, sizeof go, both);
                         go = both[0];
                       }
                       return 0;
                     }),
            (std::vector<int>{0, 0}));
}

/// Where the others are is known here, from their heartbeats.
TEST(Tcp, RanksHearWhereTheOthersAre) {
  EXPECT_EQ(runWorld(3, pairs,
                     [](Engine &engine, char *) {
                       engine.publish(10 + engine.rank(), 20 + engine.rank());
                       engine.barrier();
                       usleep(3500000);
                       int wrong = 0;
                       for (int rank = 0; rank < 3; ++rank) {
                         Whereabouts where = engine.whereabouts(rank);
                         if (rank != engine.rank())
                           wrong += where.step != 10 + rank || where.action != 20 + rank || where.silence > 3;
                       }
                       engine.barrier();
                       return wrong;
                     }),
            (std::vector<int>{0, 0, 0}));
}

TEST_P(Launched, LeavingEarlyIsAFailure) {
  EXPECT_EQ(runWorld(2, GetParam(),
                     [](Engine &engine, char *) {
                       if (engine.rank() == 1)
                         _exit(0);
                       engine.barrier();
                       return 0;
                     }),
            (std::vector<int>{12, 0}));
}

} // namespace
