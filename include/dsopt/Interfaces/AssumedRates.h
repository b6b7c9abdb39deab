//===- AssumedRates.h - how fast predictions take a CPU for -----*- C++ -*-===//
//
// One table for the plan and for the choices that passes make by time. They rank layouts and cuts: they are
// no measurements, and no machine that compiles changes them. Of GPUs: DeviceLimits.h.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_ASSUMEDRATES_H
#define DSOPT_INTERFACES_ASSUMEDRATES_H

namespace dsopt {

/// The speed that predictions assume of a CPU, in floating-point operations a second for
/// each thread: what serial fp32 library tiles reach, about half of it for the
/// whole step. A prediction ranks layouts; it is no measurement.
inline constexpr double kAssumedFlopsPerThread = 50e9;
/// What they assume that one rank sends, or copies between memories, in a second.
inline constexpr double kAssumedBytesPerSecond = 5e9;
/// What a thread reads and writes in memory in a second.
inline constexpr double kAssumedMemoryBytesPerSecond = 20e9;

} // namespace dsopt

#endif // DSOPT_INTERFACES_ASSUMEDRATES_H
