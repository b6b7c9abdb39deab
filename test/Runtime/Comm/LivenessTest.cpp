//===- LivenessTest.cpp - whether ranks get on -----------------------------===//

#include "dsopt/Runtime/Liveness.h"
#include "Ranks.h"

#include <gtest/gtest.h>

#include <csignal>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;
using namespace std::chrono_literals;

namespace {

TEST(StallClock, CountsWhatPassesWithoutABeat) {
  StallClock clock(1000ms);
  StallClock::Clock::time_point now{};
  auto after = [&](std::chrono::milliseconds time, uint64_t beats) {
    now += time;
    return clock.isOver(now, [&] { return beats; });
  };
  EXPECT_FALSE(after(0ms, 1));
  EXPECT_FALSE(after(600ms, 1));
  EXPECT_FALSE(after(300ms, 2)); // it got on
  EXPECT_FALSE(after(900ms, 2));
  EXPECT_TRUE(after(100ms, 2));
  clock.restart();
  EXPECT_FALSE(after(100ms, 2));
}

TEST(StallClock, DoesNotCountWhatItsProcessWasStoppedFor) {
  StallClock clock(5000ms);
  StallClock::Clock::time_point now{};
  auto still = [] { return uint64_t(1); };
  EXPECT_FALSE(clock.isOver(now, still));
  EXPECT_FALSE(clock.isOver(now += 1h, still)); // a second at most
  EXPECT_FALSE(clock.isOver(now += 1h, still));
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(clock.isOver(now += 1s, still));
  EXPECT_TRUE(clock.isOver(now += 1s, still));
}

TEST(StallClock, ALimitOfNothingIsNone) {
  StallClock clock(0ms);
  EXPECT_FALSE(clock.isOver(StallClock::Clock::time_point{}, [] { return uint64_t(1); }));
  EXPECT_FALSE(clock.isOver(StallClock::Clock::time_point{} + 1000h, [] { return uint64_t(1); }));
}

TEST(Liveness, RanksAreListedInShort) {
  EXPECT_EQ(describeRanks({3}), "rank 3");
  EXPECT_EQ(describeRanks({0, 3}), "ranks 0 and 3");
  EXPECT_EQ(describeRanks({0, 1, 2}), "ranks 0, 1 and 2");
  EXPECT_EQ(describeRanks({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0, 1, 2, 3 and 6 more");
}

TEST(Liveness, AWaitThatNothingEndsNamesTheMissingRanks) {
  auto group = SharedGroup::create(std::vector<int64_t>(3, 4096));
  auto *text = sharedMemory<char>(4096);
  std::vector<int> statuses = runRanks(*group, [&](Engine &engine, char *) {
    engine.setStallLimit(300ms);
    if (engine.rank() == 2) {
      // It neither waits nor gets on until the others have given it up.
      while (group->failedRank() < 0)
        usleep(1000);
      return 0;
    }
    enter(Place::Saving);
    try {
      engine.barrier();
    } catch (const Error &error) {
      if (!error.quiet) {
        snprintf(text, 4096, "%s", error.what());
        EXPECT_EQ(error.rank, 2);
        throw Error(error.status, "as the test wants it");
      }
      throw;
    }
    return 0;
  });
  // Either of those that wait.
  ASSERT_EQ(std::string(text).find("rank "), 0u) << text;
  EXPECT_STREQ(text + 6, " has waited 0 s for rank 2 while it saves, and nothing moved (-stall-timeout)");
  EXPECT_EQ(group->failureStatus(), 2);
}

TEST(Liveness, ARankSeesThePulsesOfItsPeers) {
  auto group = SharedGroup::create(std::vector<int64_t>(2, 4096));
  for (int status : runRanks(*group, [&](Engine &engine, char *) {
         uint64_t before = engine.peerBeats();
         engine.barrier();
         for (int i = 0; engine.rank() == 1 && i < 1000; ++i)
           beat();
         engine.barrier();
         return engine.rank() == 1 || engine.peerBeats() >= before + 1000 ? 0 : 50;
       }))
    EXPECT_EQ(status, 0);
}

TEST(Liveness, OnlyARankThatFinishedHasEndedWell) {
  auto group = SharedGroup::create(std::vector<int64_t>(2, 4096));
  group->join(0)->finish();
  EXPECT_TRUE(group->markEnded(0, 0));
  EXPECT_EQ(group->failedRank(), -1);
  EXPECT_FALSE(group->markEnded(1, 0));
  EXPECT_EQ(group->failedRank(), 1);
  EXPECT_EQ(group->failureStatus(), 2);
}

} // namespace
