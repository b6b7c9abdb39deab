//===- ThreadPoolTest.cpp - ranges, tiles and many jobs in a row -----------===//

#include "Core/ThreadPool.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>

using namespace dsopt::runtime;

TEST(ThreadPool, SplitsAtMultiplesOfGrain) {
  for (int threads : {1, 2, 3, 8})
    for (int spin : {0, 1000}) {
      ThreadPool pool(threads, spin);
      EXPECT_EQ(pool.threads(), threads);
      for (int64_t end : {7, 8, 71, 135, 136, 1000})
        for (int repeat = 0; repeat < 50; ++repeat) {
          std::vector<int> seen(end);
          std::atomic<int> cuts{0};
          pool.split(7, end, 64, [&](int64_t begin, int64_t last, int) {
            cuts += (begin - 7) % 64 != 0;
            for (int64_t i = begin; i < last; ++i)
              ++seen[i];
          });
          ASSERT_EQ(cuts, 0);
          for (int64_t i = 0; i < end; ++i)
            ASSERT_EQ(seen[i], i >= 7);
        }
    }
}

TEST(ThreadPool, TakesEveryIndexOnce) {
  for (int threads : {1, 2, 3, 5, 8})
    for (int64_t chunk : {1, 3, 7, 1000}) {
      ThreadPool pool(threads, 100);
      std::vector<std::atomic<int>> seen(500);
      pool.forEach(500, chunk, [&](int64_t i, int thread) {
        ++seen[i];
        EXPECT_LT(thread, threads);
      });
      for (auto &count : seen)
        ASSERT_EQ(count, 1);
    }
}

TEST(ThreadPool, ThrowsToTheCallerWhenAllAreDone) {
  for (int threads : {1, 2, 5})
    for (int thrower = 0; thrower < threads; ++thrower) {
      ThreadPool pool(threads, thrower % 2 ? 1000 : 0);
      std::atomic<int> through{0};
      auto all = [&](int64_t begin, int64_t, int thread) {
        if (thread == thrower)
          throw std::runtime_error("of " + std::to_string(begin));
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ++through;
      };
      std::string text;
      try {
        pool.split(0, threads, 1, all);
      } catch (const std::runtime_error &error) {
        text = error.what();
      }
      EXPECT_EQ(text, "of " + std::to_string(thrower)) << "of " << threads;
      EXPECT_EQ(through, threads - 1);
      // Of several that of the first; then the pool goes on.
      try {
        pool.split(0, threads, 1, [&](int64_t begin, int64_t, int) { throw static_cast<int>(begin); });
        ADD_FAILURE() << "nothing was thrown";
      } catch (int first) {
        EXPECT_EQ(first, 0);
      }
      std::atomic<int> sum{0};
      pool.forEach(100, 1, [&](int64_t i, int) { sum += static_cast<int>(i); });
      EXPECT_EQ(sum, 4950);
    }
}

TEST(ThreadPool, TakesItsOwnPartThenWhatIsLeft) {
  for (int64_t chunk : {1, 2}) {
    ThreadPool pool(2, 1000);
    std::vector<int> taker(8);
    std::atomic<int> begun{0}, left{8 - static_cast<int>(chunk)};
    pool.forEach(8, chunk, [&](int64_t i, int thread) {
      taker[i] = thread;
      if (i % 4 == 0)
        for (++begun; begun != 2;)
          std::this_thread::yield();
      // The first chunk takes until all others are done.
      if (i >= chunk)
        --left;
      while (i == 0 && left != 0)
        std::this_thread::yield();
    });
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(taker[i], i >= chunk) << i;
  }
}

TEST(ThreadPool, SaysWhetherWorkersSpin) {
  ThreadPool spins(3, 1 << 30), sleeps(3, 100);
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (ThreadPool *pool : {&spins, &sleeps})
      pool->split(0, 3, 1, [](int64_t, int64_t, int) {});
    while (sleeps.awake())
      std::this_thread::yield();
    ASSERT_TRUE(spins.awake());
    // It may not sleep yet, but it waits for a processor.
    ThreadPool never(2, 0);
    ASSERT_FALSE(never.awake());
    never.split(0, 2, 1, [](int64_t, int64_t, int) {});
    ASSERT_FALSE(never.awake());
  }
}
