//===- SquareSums.h - squares of pieces, exactly ----------------*- C++ -*-===//
//
// What Core/SquareSums does, with its bits: groups of 64 elements in the host's order, in
// double; their sums go into fixed point, whose additions no order changes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_SQUARESUMS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_SQUARESUMS_H

#include "Device.h"
#include "Kernels/CUDA/SquarePiece.h"

using dsopt::runtime::cuda::kSquareDigits;
using dsopt::runtime::cuda::kSquareElements;

namespace {
constexpr int kThreads = 256, kWarps = kThreads / 32;
/// Lanes that share a group: each has one of its eight partial sums.
constexpr int kLanes = 8, kGroup = 64;

DEVICE void add(uint64_t *to, uint64_t value) { __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }

/// ExactSum::add, of a square's sum: not negative, nor a denormal.
DEVICE void addExactly(uint64_t *digits, uint64_t bits) {
  int exponent = bits >> 52 & 0x7ff;
  if (exponent == 0)
    return;
  uint64_t mantissa = (bits & ((1ull << 52) - 1)) | 1ull << 52;
  int position = exponent - 1075 + 320;
  if (position < 0) {
    mantissa >>= -position;
    position = 0;
  }
  int digit = position >> 5, shift = position & 31;
  uint64_t high = shift ? mantissa >> (64 - shift) : 0;
  mantissa <<= shift;
  add(digits + digit, uint32_t(mantissa));
  add(digits + digit + 1, mantissa >> 32);
  if (high)
    add(digits + digit + 2, high);
}

DEVICE void normalize(uint64_t *digits) {
  uint64_t carry = 0;
  for (int i = 0; i < kSquareDigits - 1; ++i) {
    uint64_t sum = digits[i] + carry;
    digits[i] = uint32_t(sum);
    carry = sum >> 32;
  }
  digits[kSquareDigits - 1] += carry;
}

struct Added {
  int64_t piece;
  bool isFinite;
};

/// A block some of a piece: adds the squares of what `load(piece, i)` is for its elements. `sum` is where a
/// piece's goes among `sums`. Returns the piece, and whether all that this thread has squared is finite.
template <typename Pieces, typename Load>
DEVICE Added addPiece(const Pieces &all, uint64_t *record, uint64_t *sums, Load load) {
  SHARED static uint64_t own[kWarps][kSquareDigits];
  SHARED static uint64_t total[kSquareDigits];
  int64_t place = 0;
  for (int64_t step = Pieces::kMost / 2; step; step /= 2)
    if (place + step < all.count && all.firsts[place + step] <= blockX())
      place += step;
  int64_t skipped = (blockX() - all.firsts[place]) * kSquareElements;
  int64_t elements = least(all.pieces[place].elements - skipped, kSquareElements);
  for (int i = threadX(); i < kWarps * kSquareDigits; i += kThreads)
    own[i / kSquareDigits][i % kSquareDigits] = 0;
  barrier();
  int part = threadX() % kLanes;
  bool isFinite = true;
  for (int64_t first = 0; first < elements; first += kThreads / kLanes * kGroup) {
    int64_t begin = first + threadX() / kLanes * kGroup + part;
    float some[kGroup / kLanes];
#pragma unroll
    for (int i = 0; i < kGroup / kLanes; ++i)
      some[i] = begin + i * kLanes < elements ? load(place, skipped + begin + i * kLanes) : 0.0f;
    double sum = 0;
#pragma unroll
    for (float value : some)
      sum += double(value) * value;
    sum = sumOfLanes(sum, kLanes);
    auto bits = __builtin_bit_cast(uint64_t, sum);
    if ((bits >> 52 & 0x7ff) == 0x7ff)
      isFinite = false;
    else if (part == 0)
      addExactly(own[warpX()], bits);
  }
  barrier();
  if (threadX() < kSquareDigits) {
    uint64_t sum = 0;
    for (int warp = 0; warp < kWarps; ++warp)
      sum += own[warp][threadX()];
    total[threadX()] = sum;
  }
  barrier();
  // So that 2^31 pieces may be added.
  if (threadX() == 0)
    normalize(total);
  barrier();
  if (threadX() < kSquareDigits) {
    uint64_t digit = total[threadX()];
    if (digit) {
      if (record)
        add(record + threadX(), digit);
      if (sums)
        add(sums + all.pieces[place].sum * kSquareDigits + threadX(), digit);
    }
  }
  return {place, isFinite};
}
} // namespace

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_SQUARESUMS_H
