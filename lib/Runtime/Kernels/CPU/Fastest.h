//===- Fastest.h - how long something takes at least ------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_FASTEST_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_FASTEST_H

#include <chrono>

namespace dsopt::runtime {

/// The least seconds of a few runs, after one that touches everything.
template <typename Body> double fastest(int runs, Body body) {
  using Clock = std::chrono::steady_clock;
  double least = 0;
  for (int run = 0; run <= runs; ++run) {
    auto start = Clock::now();
    body();
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run == 1 || (run > 1 && seconds < least))
      least = seconds;
  }
  return least;
}

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_FASTEST_H
