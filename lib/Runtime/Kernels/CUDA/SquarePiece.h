//===- SquarePiece.h - a range whose squares are summed ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_SQUAREPIECE_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_SQUAREPIECE_H

#include <stdint.h>

namespace dsopt::runtime::cuda {

/// Digits of an exact sum (ExactSum.h).
inline constexpr int kSquareDigits = 20;

/// What one block takes: elements of one parameter, from a multiple of 64 elements behind its start on;
/// 2^30 at most.
struct SquarePiece {
  const void *values;
  int64_t elements, parameter;
  int64_t sum; ///< the parameter's among the sums by parameter, if those are asked for
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_SQUAREPIECE_H
