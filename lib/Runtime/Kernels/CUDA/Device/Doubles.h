//===- Doubles.h - exp and log1p in double ----------------------*- C++ -*-===//
//
// A few units in the last place from the true values: the toolkit's library is not there.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_DOUBLES_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_DOUBLES_H

#include "Device.h"

DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// 2^n e^r with |r| <= ln(2) / 2, by the series. 0 where the result is no normal number.
DEVICE double exp(double x) {
  if (x < -708)
    return 0;
  if (x > 709)
    return __builtin_inf();
  constexpr double kLog2E = 1.4426950408889634, kHigh = 6.93147180369123816490e-01,
                   kLow = 1.90821492927058770002e-10;
  // Rounds to an integer in the low bits.
  constexpr double kRound = 0x1.8p52;
  double n = fma(x, kLog2E, kRound);
  auto power = static_cast<int64_t>(__builtin_bit_cast(uint64_t, n) << 12) >> 12;
  n -= kRound;
  double r = fma(n, -kLow, fma(n, -kHigh, x)), sum = 1;
#pragma unroll
  for (int i = 14; i > 0; --i)
    sum = fma(sum * (1.0 / i), r, 1.0);
  uint64_t exponent = static_cast<uint64_t>(power + 1023) << 52;
  return sum * __builtin_bit_cast(double, exponent);
}

/// Of numbers from 0 to 1: 2 atanh(x / (2 + x)), by the series.
DEVICE double log1p(double x) {
  double z = x / (2 + x), square = z * z, sum = 0;
#pragma unroll
  for (int i = 37; i > 0; i -= 2)
    sum = fma(sum, square, 1.0 / i);
  return 2 * z * sum;
}

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_DOUBLES_H
