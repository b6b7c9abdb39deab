//===- AttentionForward.h - attention by matrix instructions ----*- C++ -*-===//
//
// As AttentionTiledForward.h, for heads of at most 128: a warp has 16 rows and all columns
// of their result. Weights are rounded to 16 bits where they are multiplied, not where
// they are summed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONFORWARD_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONFORWARD_H

#include "AttentionMatrices.h"

template <typename T, int size>
DEVICE void attention(const dsopt_attention &d, const T *q, const T *k, const T *v, const void *mask,
                      const float *previous, const float *previousLse, T *out, float *lse) {
  SHARED static Matrix<kTile, size> keyRoom, valueRoom;
  constexpr int kSteps = size / 16, kTiles = kTile / 8;
  Place place = placeOf<2>(d, d.heads, (d.rows + kTile - 1) / kTile, d.width, d.causal);
  int64_t columnBatch = dsopt_attention_columns_of(&d, place.batch), ofKeys = keyHead(d, place.head);
  auto queries = rowsOf(q, d.q, place.batch, place.head, d.rows);
  auto keys = rowsOf(k, d.k, columnBatch, ofKeys, d.columns);
  auto values = rowsOf(v, d.v, columnBatch, ofKeys, d.columns);
  Scores scores(d, mask, place.batch, place.head);
  int64_t firstRow = place.tile, own = firstRow + warpX() * kWarpRows, row = own + laneX() / 4;
  Left left[kSteps];
  fill(keyRoom, queries, firstRow, d.depth);
  barrier();
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    loadLeft(left[step], keyRoom, warpX() * kWarpRows, step * 16);
  Sums sums[size / 8];
  clear(sums);
  float most[2] = {-infinity(), -infinity()}, total[2] = {};
  int64_t end = scores.limit(least(firstRow + kTile, d.rows) - 1);
  for (int64_t first = 0; first < end; first += kTile) {
    barrier();
    fill(keyRoom, keys, first, d.depth);
    fill(valueRoom, values, first, d.width);
    barrier();
    Sums s[kTiles];
    clear(s);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      addScores<T>(s, left[step], keyRoom, step * 16);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      score(s, half, scores, lineOfRow(scores, row + 8 * half, first + laneX() % 4 * 2));
      float now = most[half];
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i)
        now = largest(now, s[i / 2][2 * half + i % 2]);
      now = largestOfLanes(now, 4);
      // Rows that have read nothing yet: their exponents are of 0, not of a difference of infinities.
      float base = now == -infinity() ? 0.0f : now, scale = exp2(most[half] - base), sum = 0;
      most[half] = now;
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i) {
        float &weight = s[i / 2][2 * half + i % 2];
        weight = exp2(weight - base);
        sum += weight;
      }
      total[half] = fma(total[half], scale, sumOfLanes(sum, 4));
#pragma unroll
      for (int tile = 0; tile < size / 8; ++tile) {
        sums[tile][2 * half] *= scale;
        sums[tile][2 * half + 1] *= scale;
      }
    }
    addWeighted<T>(sums, s, valueRoom);
  }
  float factors[2] = {1 / total[0], 1 / total[1]}, kept[2] = {};
  for (int half = 0; half < 2; ++half) {
    int64_t at = place.pair * d.rows + row + 8 * half;
    if (row + 8 * half >= d.rows)
      continue;
    float all = (most[half] + log2(total[half])) * kLn2;
    if (previous)
      join(previousLse[at], total[half], all, kept[half], factors[half]);
    if (laneX() % 4 == 0)
      lse[at] = all;
  }
  storeRows(sums, factors, kept,
            targetOf(out, d.partial, d.out, place.batch, place.head, d.heads, d.rows, previous, d.width),
            own);
}

#define ATTENTION(T, size)                                                                                   \
  KERNEL(kMatrixThreads)                                                                                     \
  void dsopt_attention_matrix_##T##_##size(dsopt_attention d, const T *q, const T *k, const T *v,            \
                                           const void *mask, const float *previous,                          \
                                           const float *previousLse, T *out, float *lse) {                   \
    attention<T, size>(d, q, k, v, mask, previous, previousLse, out, lse);                                   \
  }

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONFORWARD_H
