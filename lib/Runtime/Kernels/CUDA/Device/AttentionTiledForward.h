//===- AttentionTiledForward.h - attention by tiles -------------*- C++ -*-===//
//
// A block has 64 rows and up to 128 columns of the result. It goes over the columns of the
// scores, 64 at a time, and keeps each row's largest score and sum: what was added before
// is scaled down where a larger one comes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILEDFORWARD_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILEDFORWARD_H

#include "AttentionTiles.h"

template <typename T, int chunks>
DEVICE void attention(const dsopt_attention &d, const T *q, const T *k, const T *v, const void *mask,
                      const float *previous, const float *previousLse, T *out, float *lse) {
  SHARED static Operands room;
  SHARED static TileRoom weights; // by column, then by row
  Place place = placeOf<chunks>(d, d.heads, (d.rows + kTile - 1) / kTile, d.width, d.causal);
  int64_t columnBatch = dsopt_attention_columns_of(&d, place.batch), ofKeys = keyHead(d, place.head);
  auto queries = rowsOf(q, d.q, place.batch, place.head, d.rows);
  auto keys = rowsOf(k, d.k, columnBatch, ofKeys, d.columns);
  auto values = rowsOf(v, d.v, columnBatch, ofKeys, d.columns);
  Scores scores(d, mask, place.batch, place.head);
  Elements sums[chunks] = {};
  float most[kEach], total[kEach];
  for (int i = 0; i < kEach; ++i) {
    most[i] = -infinity();
    total[i] = 0;
  }
  int64_t firstRow = place.tile, end = scores.limit(least(firstRow + kTile, d.rows) - 1);
  for (int64_t first = 0; first < end; first += kTile) {
    Elements s;
    products<T>(s, queries, firstRow, keys, first, d.depth, room);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      float now = most[i];
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        s[i][j] = scores.at(s[i][j], firstRow + tileRow() + i, first + tileColumn() + j);
        now = largest(now, s[i][j]);
      }
      now = largestOfLanes(now, 16);
      // Rows that have read nothing yet: their exponents are of 0, not of a difference of infinities.
      float base = now == -infinity() ? 0.0f : now, scale = exp2(most[i] - base), sum = 0;
      most[i] = now;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        s[i][j] = exp2(s[i][j] - base);
        sum += s[i][j];
      }
      total[i] = fma(total[i], scale, sumOfLanes(sum, 16));
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk)
#pragma unroll
        for (int j = 0; j < kEach; ++j)
          sums[chunk][i][j] *= scale;
    }
    // The tile before has been read: products has met since.
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      *reinterpret_cast<Float4 *>(weights + (tileColumn() + j) * kPitch + tileRow()) =
          Float4{s[0][j], s[1][j], s[2][j], s[3][j]};
    addProducts<chunks, T>(sums, weights, values, first, place.column, d.width, room);
  }
  float factors[kEach], kept[kEach] = {};
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    factors[i] = 1 / total[i];
    int64_t row = firstRow + tileRow() + i;
    if (row >= d.rows)
      continue;
    float own = (most[i] + log2(total[i])) * kLn2;
    if (previous)
      join(previousLse[place.pair * d.rows + row], total[i], own, kept[i], factors[i]);
    if (tileColumn() == 0 && place.column == 0)
      lse[place.pair * d.rows + row] = own;
  }
  storeTile(sums, factors, kept,
            targetOf(out, d.partial, d.out, place.batch, place.head, d.heads, d.rows, previous, d.width),
            firstRow, place.column);
}

#define ATTENTION(name, T, chunks)                                                                           \
  KERNEL(kThreads)                                                                                           \
  void dsopt_attention_##name##_##chunks(dsopt_attention d, const T *q, const T *k, const T *v,              \
                                         const void *mask, const float *previous, const float *previousLse,  \
                                         T *out, float *lse) {                                               \
    attention<T, chunks>(d, q, k, v, mask, previous, previousLse, out, lse);                                 \
  }

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILEDFORWARD_H
