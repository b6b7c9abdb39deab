//===- SquarePiece.h - what launches carry by value -------------*- C++ -*-===//
//
// Tables that kernels go through, small enough to be parameters of a launch: the device's
// memory is the program's alone.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_SQUAREPIECE_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_SQUAREPIECE_H

#include "Kernels/LambRule.h"

#include <stdint.h>

namespace dsopt::runtime::cuda {

/// Digits of an exact sum (ExactSum.h).
inline constexpr int kSquareDigits = 20;

/// Elements of one parameter, from a multiple of 64 elements behind its start on.
struct SquarePiece {
  const void *values;
  int64_t elements, parameter;
  int64_t sum; ///< the parameter's among the sums by parameter, if those are asked for
};

/// Elements of a piece that a block takes.
inline constexpr int64_t kSquareElements = 64 << 10;

/// Pieces of one launch. Blocks from `firsts[i]` on are of piece i; `firsts[count]` is their number.
struct SquarePieces {
  static constexpr int kMost = 64;
  int64_t count;
  SquarePiece pieces[kMost];
  int64_t firsts[kMost + 1];
};

/// What 1-bit LAMB measures of a part of a parameter: the squares of the quotients of its moments, and the
/// largest factor by which the root of its variance has changed.
struct LambPiece {
  const float *momentum, *variance, *fresh;
  int64_t elements;
  int64_t sum; ///< of the squares; the factor's bits lie above the highest digit
};

/// The same, of these.
struct LambPieces {
  static constexpr int kMost = 64;
  int64_t count;
  LambPiece pieces[kMost];
  int64_t firsts[kMost + 1];
  float eps;
};

/// Threads that write a table of scalars by the norms of a parameter.
inline constexpr int kTrustThreads = 64;

/// Such tables of one launch. `ends[i]` is where the places of table i end.
struct TrustTables {
  static constexpr int kMost = 48, kPlaces = 384;
  int64_t ranks, words; ///< of the records
  const float *groups[kMost];
  float *tables[kMost];
  double roots[kMost];   ///< of the parameters' elements, where they alone say the ratio; else 0
  float *numbers[kMost]; ///< coefficients; null where none are kept
  int32_t ends[kMost];
  int32_t places[kPlaces]; ///< in a rank's record
  LambRule rule;
};

/// Numbers of micro-batches of one launch, in the order of folding.
struct FoldPlaces {
  static constexpr int kMost = 128;
  int64_t count;
  int64_t places[kMost];
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_SQUAREPIECE_H
