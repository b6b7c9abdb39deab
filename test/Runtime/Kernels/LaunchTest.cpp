//===- LaunchTest.cpp - which calls are worth the workers ------------------===//

#include "Kernels/CPU/Runtime.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
using Clock = std::chrono::steady_clock;

/// Takes so long for each element of its range, at least.
template <int microseconds> void lasting(int64_t begin, int64_t end, void *const *args) {
  ++*static_cast<std::atomic<int> *>(args[0]);
  auto until = Clock::now() + std::chrono::microseconds(microseconds) * (end - begin);
  while (Clock::now() < until)
    ;
}

class Launches {
public:
  explicit Launches(int spin) : pool(2, spin) { rt.pool = &pool; }

  /// Parts that two elements' call is done in.
  int parts(dsopt_kernel kernel) {
    std::atomic<int> parts{0};
    void *args[] = {&parts};
    launch(rt, kernel, /*range=*/2, /*grain=*/1, args);
    return parts;
  }

private:
  ThreadPool pool;
  dsopt_rt rt;
};

/// More than any test takes.
constexpr int kForever = 1 << 30;
} // namespace

TEST(Launch, SplitsMicrosecondsWhileWorkersSpin) {
  Launches launches(kForever);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(launches.parts(lasting<3>), 2);
}

TEST(Launch, SplitsNoMicrosecondsWhereWorkersSleep) {
  Launches launches(0);
  // Longer where the machine is busy: then it may be split.
  int least = 2;
  for (int i = 0; i < 1000 && least == 2; ++i)
    least = launches.parts(lasting<3>);
  EXPECT_EQ(least, 1);
}

TEST(Launch, SplitsLongCallsWhereWorkersSleep) {
  Launches launches(0);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(launches.parts(lasting<10>), 2);
}

TEST(Launch, SplitsNothingTiny) {
  Launches launches(kForever);
  int least = 2;
  for (int i = 0; i < 1000 && least == 2; ++i)
    least = launches.parts(lasting<0>);
  EXPECT_EQ(least, 1);
}
