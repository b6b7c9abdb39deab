//===- SquareSums.cu - exact sums of squares -------------------------------===//

#include "SquareSums.h"

using dsopt::runtime::cuda::SquarePieces;

namespace {
/// `record`: the digits of the sum, then the first parameter that is not finite; it may be null.
template <typename T> DEVICE void addSquares(const SquarePieces &all, uint64_t *record, uint64_t *sums) {
  Added added = addPiece(all, record, sums, [&](int64_t piece, int64_t i) {
    return widen(static_cast<const T *>(all.pieces[piece].values)[i]);
  });
  if (!added.isFinite && record)
    __atomic_fetch_min(record + kSquareDigits, uint64_t(all.pieces[added.piece].parameter), __ATOMIC_RELAXED);
}
} // namespace

KERNEL(kThreads)
void dsopt_square_sums_f32(const BY_VALUE SquarePieces pieces, uint64_t *record, uint64_t *sums) {
  addSquares<float>(pieces, record, sums);
}
KERNEL(kThreads)
void dsopt_square_sums_bf16(const BY_VALUE SquarePieces pieces, uint64_t *record, uint64_t *sums) {
  addSquares<bf16>(pieces, record, sums);
}
KERNEL(kThreads)
void dsopt_square_sums_f16(const BY_VALUE SquarePieces pieces, uint64_t *record, uint64_t *sums) {
  addSquares<f16>(pieces, record, sums);
}

/// A thread a number: the first is the record's.
KERNEL(32) void dsopt_normalize_sums(uint64_t *record, uint64_t *sums, int64_t count) {
  int64_t i = blockX() * 32 + threadX();
  if (i <= count && (i || record))
    normalize(i ? sums + (i - 1) * kSquareDigits : record);
}
