//===- AttentionTiledBackward.h - its gradient by tiles ---------*- C++ -*-===//
//
// Scores are computed again. One kernel has rows and makes the gradient of q, another has
// columns and makes those of k and v: twice the scores, but each element has one thread,
// which adds in order.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILEDBACKWARD_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILEDBACKWARD_H

#include "AttentionTiles.h"

/// The scores' weights and gradients (times the scale) in place of products of q and k, and of the result's
/// gradient and v.
DEVICE void weigh(const Scores &scores, Elements &s, Elements &g, const float *lse, const float *dot,
                  int64_t firstRow, int64_t firstColumn) {
  float scale = scores.d.scale;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    int64_t row = firstRow + tileRow() + i;
    bool isRow = row < scores.d.rows;
    float all = isRow ? lse[row] : 0.0f, own = isRow ? dot[row] : 0.0f;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      float score = scores.at(s[i][j], row, firstColumn + tileColumn() + j);
      // A row that reads nothing has no gradient, though its result is no number.
      bool reads = score != -infinity();
      s[i][j] = reads ? exp2(score - all * kLog2E) : 0.0f;
      g[i][j] = reads ? s[i][j] * (g[i][j] - own) * scale : 0.0f;
    }
  }
}

template <typename T, int chunks>
DEVICE void gradientOfRows(const dsopt_attention &d, const T *q, const T *k, const T *v, const void *mask,
                           const float *lse, const float *dot, const T *grad, const float *previous,
                           T *qGrad) {
  SHARED static Operands room;
  SHARED static TileRoom tile; // by column, then by row
  Place place = placeOf<chunks>(d, d.heads, (d.rows + kTile - 1) / kTile, d.depth, d.causal);
  int64_t columnBatch = dsopt_attention_columns_of(&d, place.batch), ofKeys = keyHead(d, place.head);
  auto queries = rowsOf(q, d.q, place.batch, place.head, d.rows);
  auto keys = rowsOf(k, d.k, columnBatch, ofKeys, d.columns);
  auto values = rowsOf(v, d.v, columnBatch, ofKeys, d.columns);
  auto gradients = rowsOf(grad, d.grad, place.batch, place.head, d.rows);
  Scores scores(d, mask, place.batch, place.head);
  Elements sums[chunks] = {};
  int64_t firstRow = place.tile, end = scores.limit(least(firstRow + kTile, d.rows) - 1);
  for (int64_t first = 0; first < end; first += kTile) {
    Elements s, g;
    products<T>(s, queries, firstRow, keys, first, d.depth, room);
    products<T>(g, gradients, firstRow, values, first, d.width, room);
    weigh(scores, s, g, lse + place.pair * d.rows, dot + place.pair * d.rows, firstRow, first);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      *reinterpret_cast<Float4 *>(tile + (tileColumn() + j) * kPitch + tileRow()) =
          Float4{g[0][j], g[1][j], g[2][j], g[3][j]};
    addProducts<chunks, T>(sums, tile, keys, first, place.column, d.depth, room);
  }
  const float ones[kEach] = {1, 1, 1, 1};
  storeTile(
      sums, ones, ones,
      targetOf(qGrad, d.q_partial, d.q_grad, place.batch, place.head, d.heads, d.rows, previous, d.depth),
      firstRow, place.column);
}

template <typename T, int chunks>
DEVICE void gradientOfColumns(const dsopt_attention &d, const T *q, const T *k, const T *v, const void *mask,
                              const float *lse, const float *dot, const T *grad, const float *kPrevious,
                              const float *vPrevious, T *kGrad, T *vGrad) {
  SHARED static Operands room;
  SHARED static TileRoom weights, tile; // by row, then by column
  Place place =
      placeOf<chunks>(d, d.key_heads, (d.columns + kTile - 1) / kTile, most(d.depth, d.width), false);
  int64_t rowBatch = dsopt_attention_rows_of(&d, place.batch), readers = d.heads / d.key_heads;
  auto keys = rowsOf(k, d.k, place.batch, place.head, d.columns);
  auto values = rowsOf(v, d.v, place.batch, place.head, d.columns);
  Elements keySums[chunks] = {}, valueSums[chunks] = {};
  int64_t firstColumn = place.tile;
  // Heads that read the same columns come one after the other.
  for (int64_t reader = 0; reader < readers; ++reader) {
    int64_t head = place.head * readers + reader, pair = rowBatch * d.heads + head;
    auto queries = rowsOf(q, d.q, rowBatch, head, d.rows);
    auto gradients = rowsOf(grad, d.grad, rowBatch, head, d.rows);
    Scores scores(d, mask, rowBatch, head);
    for (int64_t first = scores.firstRow(firstColumn, kTile); first < d.rows; first += kTile) {
      Elements s, g;
      products<T>(s, queries, first, keys, firstColumn, d.depth, room);
      products<T>(g, gradients, first, values, firstColumn, d.width, room);
      weigh(scores, s, g, lse + pair * d.rows, dot + pair * d.rows, first, firstColumn);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        int at = (tileRow() + i) * kPitch + tileColumn();
        *reinterpret_cast<Float4 *>(weights + at) = Float4{s[i][0], s[i][1], s[i][2], s[i][3]};
        *reinterpret_cast<Float4 *>(tile + at) = Float4{g[i][0], g[i][1], g[i][2], g[i][3]};
      }
      addProducts<chunks, T>(valueSums, weights, gradients, first, place.column, d.width, room);
      addProducts<chunks, T>(keySums, tile, queries, first, place.column, d.depth, room);
    }
  }
  const float ones[kEach] = {1, 1, 1, 1};
  storeTile(keySums, ones, ones,
            targetOf(kGrad, d.column_partial, d.k_grad, place.batch, place.head, d.key_heads, d.columns,
                     kPrevious, d.depth),
            firstColumn, place.column);
  storeTile(valueSums, ones, ones,
            targetOf(vGrad, d.column_partial, d.v_grad, place.batch, place.head, d.key_heads, d.columns,
                     vPrevious, d.width),
            firstColumn, place.column);
}

#define GRADIENTS(name, T, chunks)                                                                           \
  KERNEL(kThreads)                                                                                           \
  void dsopt_attention_rows_##name##_##chunks(dsopt_attention d, const T *q, const T *k, const T *v,         \
                                              const void *mask, const float *lse, const float *dot,          \
                                              const T *grad, const float *previous, T *qGrad) {              \
    gradientOfRows<T, chunks>(d, q, k, v, mask, lse, dot, grad, previous, qGrad);                            \
  }                                                                                                          \
  KERNEL(kThreads)                                                                                           \
  void dsopt_attention_columns_##name##_##chunks(                                                            \
      dsopt_attention d, const T *q, const T *k, const T *v, const void *mask, const float *lse,             \
      const float *dot, const T *grad, const float *kPrevious, const float *vPrevious, T *kGrad, T *vGrad) { \
    gradientOfColumns<T, chunks>(d, q, k, v, mask, lse, dot, grad, kPrevious, vPrevious, kGrad, vGrad);      \
  }

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILEDBACKWARD_H
