//===- AttentionTiles.h - tiles of attention's products ---------*- C++ -*-===//
//
// A block of 256 threads has a tile of 64 rows and 64 columns, each thread 4 x 4 elements
// of it: its rows are those of the 16 lanes beside it, over which row sums go. Operands
// come through shared memory, 16 of the dimension that is summed at a time, and widened.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILES_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILES_H

#include "Device.h"

inline constexpr int kThreads = 256, kTile = 64, kDepth = 16, kEach = 4;
/// Floats between rows in shared memory: four more, so that columns of them lie in several banks.
inline constexpr int kPitch = kTile + 4;

/// A tile in shared memory, `[64][kPitch]`, and room for operands.
typedef float TileRoom[kTile * kPitch];
struct Operands {
  float a[kDepth * kPitch], b[kDepth * kPitch];
};

/// One batch entry and head of a tensor: the rows of it.
template <typename T> struct Rows {
  T *values;
  int64_t stride, count;
};
template <typename T>
DEVICE Rows<T> rowsOf(T *values, const int64_t (&strides)[3], int64_t batch, int64_t head, int64_t count) {
  return {values + batch * strides[0] + head * strides[1], strides[2], count};
}

/// One batch entry and head of what is stored: rounded to its type, or as it is (`wide`), and behind what
/// came before, of which each row counts so much. That is contiguous, `width` a row.
template <typename T> struct Target {
  T *narrow;
  float *wide;
  int64_t stride, count;
  const float *previous;
  int64_t width;

  DEVICE_MEMBER void put(float value, float kept, int64_t row, int64_t at) const {
    if (previous && kept != 0)
      value += previous[row * width + at] * kept;
    if (wide)
      wide[row * stride + at] = value;
    else
      store(value, narrow[row * stride + at]);
  }
};
template <typename T>
DEVICE Target<T> targetOf(T *values, bool isWide, const int64_t (&strides)[3], int64_t batch, int64_t head,
                          int64_t heads, int64_t count, const float *previous, int64_t width) {
  int64_t offset = batch * strides[0] + head * strides[1];
  return {values + offset, isWide ? reinterpret_cast<float *>(values) + offset : nullptr,          strides[2],
          count,           previous ? previous + (batch * heads + head) * count * width : nullptr, width};
}

/// What a row of a result over `total` counts beside what came before, whose lse is `before`: `factor` of it,
/// and `kept` of that. `own` is its lse, and becomes that of both. Where one has read nothing, the other
/// stands.
DEVICE void join(float before, float total, float &own, float &kept, float &factor) {
  kept = 0;
  factor = 1 / total;
  if (own == -infinity()) {
    kept = 1;
    factor = 0;
    own = before;
  } else if (before != -infinity()) {
    float most = largest(own, before);
    float left = exp2((before - most) * kLog2E), right = exp2((own - most) * kLog2E), all = left + right;
    kept = left / all;
    factor *= right / all;
    own = most + log2(all) * kLn2;
  }
}

/// Four elements of a row, zeros past the ends.
template <typename T>
DEVICE Float4 load(const Rows<const T> &from, int64_t row, int64_t column, int64_t width) {
  Float4 some = {};
  if (row < from.count) {
    const T *at = from.values + row * from.stride + column;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (column + i < width)
        some[i] = widen(at[i]);
  }
  return some;
}

DEVICE int tileRow() { return threadX() / 16 * kEach; }
DEVICE int tileColumn() { return threadX() % 16 * kEach; }
typedef float Elements[kEach][kEach];

DEVICE void multiplyAdd(Elements &c, const float *a, const float *b) {
  Float4 left = *reinterpret_cast<const Float4 *>(a), right = *reinterpret_cast<const Float4 *>(b);
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      c[i][j] = fma(left[i], right[j], c[i][j]);
}

/// c = the products of 64 rows of `a` with 64 of `b`, each `depth` long.
template <typename T>
DEVICE void products(Elements &c, const Rows<const T> &a, int64_t firstA, const Rows<const T> &b,
                     int64_t firstB, int64_t depth, Operands &room) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      c[i][j] = 0;
  int row = threadX() / 4, at = threadX() % 4 * kEach;
  for (int64_t first = 0; first < depth; first += kDepth) {
    Float4 left = load(a, firstA + row, first + at, depth), right = load(b, firstB + row, first + at, depth);
    barrier();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      room.a[(at + i) * kPitch + row] = left[i];
      room.b[(at + i) * kPitch + row] = right[i];
    }
    barrier();
#pragma unroll
    for (int k = 0; k < kDepth; ++k)
      multiplyAdd(c, room.a + k * kPitch + tileRow(), room.b + k * kPitch + tileColumn());
  }
}

/// c += the transposed of `tile`, times 64 rows of `b` from `first` on: `chunks` times 64 of its columns, the
/// first of which is `column`. The tile's writes come before a barrier here.
template <int chunks, typename T>
DEVICE void addProducts(Elements (&c)[chunks], const TileRoom &tile, const Rows<const T> &b, int64_t first,
                        int64_t column, int64_t width, Operands &room) {
  int row = threadX() / 16, at = tileColumn();
#pragma unroll
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (column + chunk * kTile >= width)
      break;
#pragma unroll 1
    for (int k0 = 0; k0 < kTile; k0 += kDepth) {
      Float4 right = load(b, first + k0 + row, column + chunk * kTile + at, width);
      barrier();
      *reinterpret_cast<Float4 *>(room.b + row * kPitch + at) = right;
      barrier();
#pragma unroll
      for (int k = 0; k < kDepth; ++k)
        multiplyAdd(c[chunk], tile + (k0 + k) * kPitch + tileRow(), room.b + k * kPitch + tileColumn());
    }
  }
}

/// Stores a thread's elements of 64 rows from `first` on, times a factor for each row, beside what is kept.
template <int chunks, typename T>
DEVICE void storeTile(const Elements (&c)[chunks], const float (&factors)[kEach], const float (&kept)[kEach],
                      const Target<T> &to, int64_t first, int64_t column) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    int64_t row = first + tileRow() + i;
    if (row >= to.count)
      break;
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk)
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        int64_t at = column + chunk * kTile + tileColumn() + j;
        if (at < to.width)
          to.put(c[chunk][i][j] * factors[i], kept[i], row, at);
      }
  }
}

/// What is the same for all blocks of a kernel: where a block's tile is.
struct Place {
  int64_t batch, head, pair, tile, column;
};
/// Blocks are by tile, the last first where those take longest, then by pair, then by part of the columns.
template <int chunks>
DEVICE Place placeOf(const dsopt_attention &d, int64_t heads, int64_t tiles, int64_t width, bool lastFirst) {
  int64_t parts = (width + chunks * kTile - 1) / (chunks * kTile), pairs = d.batch * heads;
  int64_t unit = blockX() / parts, pair = unit % pairs, tile = unit / pairs;
  return {pair / heads, pair % heads, pair, (lastFirst ? tiles - 1 - tile : tile) * kTile,
          blockX() % parts * chunks * kTile};
}
/// The head of k and v that one of q reads.
DEVICE int64_t keyHead(const dsopt_attention &d, int64_t head) { return head * d.key_heads / d.heads; }

/// Scores as exponents of 2: scale and mask applied, -infinity where a row does not read.
struct Scores {
  const dsopt_attention &d;
  const void *mask;
  int64_t maskBase, begin;
  float scale;

  /// Of a batch entry of rows.
  DEVICE_MEMBER Scores(const dsopt_attention &d, const void *mask, int64_t batch, int64_t head)
      : d(d), mask(mask), maskBase(dsopt_attention_mask(&d, batch, head)),
        begin(dsopt_attention_begin(&d, dsopt_attention_shard(&d, batch))), scale(float(d.scale) * kLog2E) {}
  /// Columns that a row reads are below this.
  DEVICE_MEMBER int64_t limit(int64_t row) const {
    return d.causal ? least(row + begin + 1, d.columns) : d.columns;
  }
  /// The first row, of a tile's, that reads any column from `column` on.
  DEVICE_MEMBER int64_t firstRow(int64_t column, int64_t tile) const {
    return d.causal ? most(column - begin, int64_t(0)) / tile * tile : 0;
  }
  DEVICE_MEMBER float at(float product, int64_t row, int64_t column) const {
    if (row >= d.rows || column >= limit(row))
      return -infinity();
    if (!mask)
      return product * scale;
    int64_t place = maskBase + row * d.mask[2] + column * d.mask[3];
    float added = d.mask_type == DSOPT_BF16  ? widen(static_cast<const bf16 *>(mask)[place])
                  : d.mask_type == DSOPT_F16 ? widen(static_cast<const f16 *>(mask)[place])
                                             : static_cast<const float *>(mask)[place];
    return fma(product, scale, added * kLog2E);
  }
};

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DEVICE_ATTENTIONTILES_H
