//===- AttentionBackward.h - its gradient by matrix instructions *- C++ -*-===//
//
// As AttentionTiledBackward.h, for heads of at most 128. Blocks that have rows and blocks
// that have columns do the same: 64 of what they own stay in shared memory, some of the
// others at a time come beside them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONBACKWARD_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONBACKWARD_H

#include "AttentionMatrices.h"

/// How many of the others come at a time, as shared memory allows.
template <int size> constexpr int kOthers = size == 64 ? 32 : 16;

/// The tensors of what a block owns, or of the others: q and the result's gradient, or k and v.
template <typename T> struct Sides {
  Rows<const T> first, second;
};

/// A block owns columns and makes the gradients of k and v, or it owns rows and makes that of q.
template <typename T, int size, bool ofColumns>
DEVICE void gradients(const dsopt_attention &d, const T *q, const T *k, const T *v, const void *mask,
                      const float *lse, const float *dot, const T *grad, T *firstGrad, T *secondGrad) {
  constexpr int kOther = kOthers<size>, kTiles = kOther / 8;
  SHARED static Matrix<kTile, size> ownFirst, ownSecond;
  SHARED static Matrix<kOther, size> otherFirst, otherSecond;
  int64_t count = ofColumns ? d.columns : d.rows;
  Place place = placeOf<2>(d, (count + kTile - 1) / kTile, kTile, !ofColumns && d.causal);
  Sides<T> ofRow = {rowsOf(q, d.q, place.batch, place.head, d.rows),
                    rowsOf(grad, d.grad, place.batch, place.head, d.rows)};
  Sides<T> ofColumn = {rowsOf(k, d.k, place.batch, place.head, d.columns),
                       rowsOf(v, d.v, place.batch, place.head, d.columns)};
  const Sides<T> &own = ofColumns ? ofColumn : ofRow, &other = ofColumns ? ofRow : ofColumn;
  Scores scores(d, mask, place);
  lse += place.pair * d.rows;
  dot += place.pair * d.rows;
  fill(ownFirst, own.first, place.tile, d.depth);
  fill(ownSecond, own.second, place.tile, d.width);
  Sums firstSums[size / 8], secondSums[ofColumns ? size / 8 : 2];
  clear(firstSums);
  clear(secondSums);
  int64_t begin = 0, end = ofColumns ? d.rows : scores.limit(least(place.tile + kTile, d.rows) - 1);
  if (ofColumns && d.causal) // rows before do not read these columns
    begin = most(place.tile - d.columns + d.rows, int64_t(0)) / kOther * kOther;
  int64_t mine = place.tile + warpX() * kWarpRows;
  float factor = d.scale;
  for (int64_t first = begin; first < end; first += kOther) {
    barrier();
    fill(otherFirst, other.first, first, d.depth);
    fill(otherSecond, other.second, first, d.width);
    barrier();
    Sums s[kTiles], g[kTiles];
    clear(s);
    clear(g);
#pragma unroll
    for (int step = 0; step < size; step += 16) {
      Left left;
      loadLeft(left, ownFirst, warpX() * kWarpRows, step);
      addScores<T>(s, left, otherFirst, step);
      loadLeft(left, ownSecond, warpX() * kWarpRows, step);
      addScores<T>(g, left, otherSecond, step);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int64_t owned = mine + laneX() / 4 + half * 8, met = first + laneX() % 4 * 2;
      score(s, half, scores, ofColumns ? lineOfColumn(scores, owned, met) : lineOfRow(scores, owned, met));
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i) {
        int64_t row = ofColumns ? met + i / 2 * 8 + i % 2 : owned;
        float &weight = s[i / 2][2 * half + i % 2], &gradient = g[i / 2][2 * half + i % 2];
        // A row that reads nothing has no gradient, though its result is no number.
        bool reads = weight != -infinity();
        weight = reads ? exp2(weight - lse[row] * kLog2E) : 0.0f;
        gradient = reads ? weight * (gradient - dot[row]) * factor : 0.0f;
      }
    }
    addWeighted<T>(firstSums, g, otherFirst);
    if constexpr (ofColumns)
      addWeighted<T>(secondSums, s, otherSecond);
  }
  const float ones[2] = {1, 1};
  const auto &firstStrides = ofColumns ? d.k_grad : d.q_grad;
  storeRows(firstSums, ones, rowsOf(firstGrad, firstStrides, place.batch, place.head, count), mine, d.depth);
  if constexpr (ofColumns)
    storeRows(secondSums, ones, rowsOf(secondGrad, d.v_grad, place.batch, place.head, count), mine, d.width);
}

#define GRADIENTS(T, size)                                                                                   \
  KERNEL(kMatrixThreads)                                                                                     \
  void dsopt_attention_matrix_rows_##T##_##size(dsopt_attention d, const T *q, const T *k, const T *v,       \
                                                const void *mask, const float *lse, const float *dot,        \
                                                const T *grad, T *qGrad) {                                   \
    gradients<T, size, false>(d, q, k, v, mask, lse, dot, grad, qGrad, static_cast<T *>(nullptr));           \
  }                                                                                                          \
  KERNEL(kMatrixThreads)                                                                                     \
  void dsopt_attention_matrix_columns_##T##_##size(dsopt_attention d, const T *q, const T *k, const T *v,    \
                                                   const void *mask, const float *lse, const float *dot,     \
                                                   const T *grad, T *kGrad, T *vGrad) {                      \
    gradients<T, size, true>(d, q, k, v, mask, lse, dot, grad, kGrad, vGrad);                                \
  }

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONBACKWARD_H
