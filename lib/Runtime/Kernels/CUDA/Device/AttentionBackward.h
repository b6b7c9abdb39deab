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

/// A block owns columns and makes the gradients of k and v, or it owns rows and makes that of q.
template <typename T, int size, bool ofColumns>
DEVICE void gradients(const dsopt_attention &d, const T *q, const T *k, const T *v, const void *mask,
                      const float *lse, const float *dot, const T *grad, const float *firstPrevious,
                      const float *secondPrevious, T *firstGrad, T *secondGrad) {
  constexpr int kOther = kOthers<size>, kTiles = kOther / 8;
  SHARED static Matrix<kTile, size> ownFirst, ownSecond;
  SHARED static Matrix<kOther, size> otherFirst, otherSecond;
  int64_t count = ofColumns ? d.columns : d.rows, heads = ofColumns ? d.key_heads : d.heads;
  Place place = placeOf<2>(d, heads, (count + kTile - 1) / kTile, kTile, !ofColumns && d.causal);
  int64_t rowBatch = ofColumns ? dsopt_attention_rows_of(&d, place.batch) : place.batch;
  int64_t columnBatch = ofColumns ? place.batch : dsopt_attention_columns_of(&d, place.batch);
  int64_t ofKeys = ofColumns ? place.head : keyHead(d, place.head);
  auto keys = rowsOf(k, d.k, columnBatch, ofKeys, d.columns),
       values = rowsOf(v, d.v, columnBatch, ofKeys, d.columns);
  Sums firstSums[size / 8], secondSums[ofColumns ? size / 8 : 2];
  clear(firstSums);
  clear(secondSums);
  int64_t mine = place.tile + warpX() * kWarpRows;
  float factor = d.scale;
  fill(ownFirst, ofColumns ? keys : rowsOf(q, d.q, rowBatch, place.head, d.rows), place.tile, d.depth);
  fill(ownSecond, ofColumns ? values : rowsOf(grad, d.grad, rowBatch, place.head, d.rows), place.tile,
       d.width);
  Scores whole(d, mask, rowBatch, place.head);
  int64_t begin = ofColumns ? whole.firstRow(place.tile, kOther) : 0;
  int64_t end = ofColumns ? d.rows : whole.limit(least(place.tile + kTile, d.rows) - 1);
  // Heads that read the same columns come one after the other.
  int steps = end > begin ? static_cast<int>((end - begin + kOther - 1) / kOther) : 0;
  int readers = ofColumns ? static_cast<int>(d.heads / d.key_heads) : 1;
#pragma unroll 1
  for (int turn = 0; turn < steps * readers; ++turn) {
    int reader = readers == 1 ? 0 : turn / steps;
    int64_t first = begin + (turn - reader * steps) * kOther, head = place.head * readers + reader;
    int64_t pair = rowBatch * d.heads + head;
    Scores scores(d, mask, rowBatch, head);
    const float *rowLse = lse + pair * d.rows, *rowDot = dot + pair * d.rows;
    barrier();
    fill(otherFirst, ofColumns ? rowsOf(q, d.q, rowBatch, head, d.rows) : keys, first, d.depth);
    fill(otherSecond, ofColumns ? rowsOf(grad, d.grad, rowBatch, head, d.rows) : values, first, d.width);
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
        weight = reads ? exp2(weight - rowLse[row] * kLog2E) : 0.0f;
        gradient = reads ? weight * (gradient - rowDot[row]) * factor : 0.0f;
      }
    }
    addWeighted<T>(firstSums, g, otherFirst);
    if constexpr (ofColumns)
      addWeighted<T>(secondSums, s, otherSecond);
  }
  const float ones[2] = {1, 1};
  bool isWide = ofColumns ? d.column_partial : d.q_partial;
  const auto &firstStrides = ofColumns ? d.k_grad : d.q_grad;
  storeRows(firstSums, ones, ones,
            targetOf(firstGrad, isWide, firstStrides, place.batch, place.head, heads, count, firstPrevious,
                     d.depth),
            mine);
  if constexpr (ofColumns)
    storeRows(secondSums, ones, ones,
              targetOf(secondGrad, isWide, d.v_grad, place.batch, place.head, heads, count, secondPrevious,
                       d.width),
              mine);
}

#define GRADIENTS(T, size)                                                                                   \
  KERNEL(kMatrixThreads)                                                                                     \
  void dsopt_attention_matrix_rows_##T##_##size(dsopt_attention d, const T *q, const T *k, const T *v,       \
                                                const void *mask, const float *lse, const float *dot,        \
                                                const T *grad, const float *previous, T *qGrad) {            \
    gradients<T, size, false>(d, q, k, v, mask, lse, dot, grad, previous, nullptr, qGrad,                    \
                              static_cast<T *>(nullptr));                                                    \
  }                                                                                                          \
  KERNEL(kMatrixThreads)                                                                                     \
  void dsopt_attention_matrix_columns_##T##_##size(                                                          \
      dsopt_attention d, const T *q, const T *k, const T *v, const void *mask, const float *lse,             \
      const float *dot, const T *grad, const float *kPrevious, const float *vPrevious, T *kGrad, T *vGrad) { \
    gradients<T, size, true>(d, q, k, v, mask, lse, dot, grad, kPrevious, vPrevious, kGrad, vGrad);          \
  }

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONBACKWARD_H
