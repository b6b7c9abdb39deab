//===- Launch.cpp - kernels over the rank's threads ------------------------===//

#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <chrono>

/// Nanoseconds of a call that is worth the workers: those that spin take a part in a fifth of a microsecond,
/// those that sleep first have to be woken, which takes longer than this, but the next calls gain from it
/// too.
static constexpr float kWorthSpinning = 1000, kWorthWaking = 15000;

static dsopt_launch_cost &costOf(dsopt_rt &rt, dsopt_kernel kernel) {
  uint64_t hash = reinterpret_cast<uintptr_t>(kernel) * 0x9e3779b97f4a7c15ull >> 40;
  dsopt_launch_cost &cost = rt.costs[hash % dsopt_rt::kCosts];
  if (cost.kernel != kernel)
    cost = {kernel, 0};
  return cost;
}

void dsopt::runtime::launch(dsopt_rt &rt, dsopt_kernel kernel, int64_t range, int64_t grain,
                            void *const *args) {
  grain = std::max<int64_t>(grain, 1);
  if (rt.pool->threads() == 1 || range <= grain) {
    kernel(0, range, args);
    return;
  }
  using Clock = std::chrono::steady_clock;
  dsopt_launch_cost &cost = costOf(rt, kernel);
  if (cost.nanoseconds > 0 && cost.nanoseconds * range < (rt.pool->awake() ? kWorthSpinning : kWorthWaking)) {
    auto start = Clock::now();
    kernel(0, range, args);
    cost.nanoseconds = std::chrono::duration<float, std::nano>(Clock::now() - start).count() / range;
    return;
  }
  rt.pool->split(0, range, grain, [&](int64_t begin, int64_t end, int thread) {
    if (thread != 0) {
      kernel(begin, end, args);
      return;
    }
    auto start = Clock::now();
    kernel(begin, end, args);
    cost.nanoseconds = std::chrono::duration<float, std::nano>(Clock::now() - start).count() / (end - begin);
  });
}

extern "C" void dsopt_rt_launch(dsopt_rt *rt, dsopt_kernel kernel, int64_t range, int64_t grain,
                                void *const *args) {
  dsopt::runtime::CallTimer timer(rt->profile);
  dsopt::runtime::launch(*rt, kernel, range, grain, args);
}

extern "C" void dsopt_rt_launch_device(dsopt_rt *rt, const dsopt_device_kernel *kernel, int64_t range,
                                       void *const *args) {
  dsopt::runtime::CallTimer timer(rt->profile);
  rt->device->launch(*kernel, 0, range, args);
}
