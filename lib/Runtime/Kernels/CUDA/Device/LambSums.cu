//===- LambSums.cu - what 1-bit LAMB measures of a step --------------------===//
//
// What Core/LambCoefficients does behind the freeze, with its bits.
//
//===----------------------------------------------------------------------===//

#include "SquareSums.h"

using dsopt::runtime::cuda::LambPieces;

/// The record's sums have been begun: those with decay may be there.
KERNEL(kThreads) void dsopt_lamb_sums(const BY_VALUE LambPieces all, uint64_t *sums) {
  int largest = 0; // of numbers that are not negative: their bits have their order
  Added added = addPiece(all, nullptr, sums, [&](int64_t number, int64_t i) {
    const auto &piece = all.pieces[number];
    float variance = piece.variance[i];
    if (!(variance > 0))
      return 0.0f;
    float root = __nvvm_sqrt_rn_f(variance) + all.eps;
    largest = most(largest, __builtin_bit_cast(int, root / (__nvvm_sqrt_rn_f(piece.fresh[i]) + all.eps)));
    return piece.momentum[i] / root;
  });
  for (int i = 1; i < 32; i *= 2)
    largest = most(largest, __nvvm_shfl_sync_bfly_i32(~0u, largest, i, 31));
  // Above the highest digit, which has 32 bits.
  auto *digits = sums + all.pieces[added.piece].sum * kSquareDigits;
  if (laneX() == 0)
    __atomic_fetch_max(reinterpret_cast<int *>(digits + kSquareDigits - 1) + 1, largest, __ATOMIC_RELAXED);
}
