//===- LinearNll.cu - rows of logits to losses and gradients ---------------===//
//
// A block a row: its largest logit and sum in one pass, the gradient where the logits
// stood in another. Threads and their elements are the same whatever the device, and so
// are the trees of sums.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

namespace {
constexpr int kThreads = 512, kWarps = kThreads / 32, kEach = 4, kTile = kThreads * kEach;
/// Columns and groups of rows of a block that sums columns.
constexpr int kColumns = 32, kGroups = 8;

/// The largest of some numbers and the sum of exp(number - largest).
struct Sum {
  float largest, sum;
};
/// exp(x - y), where y is no less; of -infinity 0.
DEVICE float exponential(float x, float y) { return x == -infinity() ? 0.0f : exp2((x - y) * kLog2E); }
DEVICE Sum merge(Sum a, Sum b) {
  float both = largest(a.largest, b.largest);
  return {both, a.sum * exponential(a.largest, both) + b.sum * exponential(b.largest, both)};
}
DEVICE Sum mergeLanes(Sum own) {
  for (int lanes = 1; lanes < 32; lanes *= 2)
    own = merge(own, {exchange(own.largest, lanes), exchange(own.sum, lanes)});
  return own;
}

/// A thread's logits of the tile that begins at `first`, with their bias; -infinity behind the last.
template <typename T>
DEVICE void load(const float *row, const T *bias, int64_t at, int64_t classes, float (&x)[kEach]) {
  if (at + kEach <= classes) {
    Float4 some = *reinterpret_cast<const Float4 *>(row + at);
    for (int i = 0; i < kEach; ++i)
      x[i] = some[i];
  } else {
    for (int i = 0; i < kEach; ++i)
      x[i] = at + i < classes ? row[at + i] : -infinity();
  }
  if (bias)
    for (int i = 0; i < kEach; ++i)
      if (at + i < classes)
        x[i] += widen(bias[at + i]);
}

/// To the row as `T`, which lies where the logits did.
DEVICE void save(float *row, int64_t at, int64_t classes, const float (&x)[kEach]) {
  if (at + kEach <= classes)
    *reinterpret_cast<Float4 *>(row + at) = Float4{x[0], x[1], x[2], x[3]};
  else
    for (int i = 0; i < kEach; ++i)
      if (at + i < classes)
        row[at + i] = x[i];
}
template <typename T> DEVICE void save(T *row, int64_t at, int64_t classes, const float (&x)[kEach]) {
  if (at + kEach <= classes)
    *reinterpret_cast<Word2 *>(row + at) = Word2{pairOf<T>(x[0], x[1]), pairOf<T>(x[2], x[3])};
  else
    for (int i = 0; i < kEach; ++i)
      if (at + i < classes)
        store(x[i], row[at + i]);
}

template <typename T>
DEVICE void finishRow(float *logits, int64_t stride, int64_t classes, const T *bias, const void *labels,
                      int64_t labelBytes, int64_t ignored, const float *grad, float *losses) {
  SHARED static Sum partial[kWarps];
  int64_t i = blockX();
  int64_t label =
      labelBytes == 8 ? static_cast<const int64_t *>(labels)[i] : static_cast<const int32_t *>(labels)[i];
  float *row = logits + i * stride;
  T *gradient = reinterpret_cast<T *>(row);
  // A label out of range has been refused already, where data is read.
  if (label == ignored || label < 0 || label >= classes) {
    const float zeros[kEach] = {};
    for (int64_t at = threadX() * kEach; at < classes; at += kTile)
      save(gradient, at, classes, zeros);
    if (threadX() == 0)
      losses[i] = 0;
    return;
  }
  Sum own = {-infinity(), 0};
  for (int64_t at = threadX() * kEach; at < classes; at += kTile) {
    float x[kEach];
    load(row, bias, at, classes, x);
    float most = largest(largest(x[0], x[1]), largest(x[2], x[3]));
    if (most > own.largest) {
      own.sum *= exponential(own.largest, most);
      own.largest = most;
    }
    for (float value : x)
      own.sum += exponential(value, own.largest);
  }
  own = mergeLanes(own);
  if (laneX() == 0)
    partial[warpX()] = own;
  barrier();
  own = mergeLanes(laneX() < kWarps ? partial[laneX()] : Sum{-infinity(), 0});
  float factor = grad[i];
  if (threadX() == 0) {
    float target = row[label] + (bias ? widen(bias[label]) : 0.0f) - own.largest;
    losses[i] = log2(own.sum) * kLn2 - target;
  }
  float scale = factor / own.sum;
  for (int64_t first = 0; first < classes; first += kTile) {
    int64_t at = first + threadX() * kEach;
    float x[kEach];
    load(row, bias, at, classes, x);
    for (int j = 0; j < kEach; ++j) {
      x[j] = exponential(x[j], own.largest) * scale;
      if (at + j == label)
        x[j] -= factor;
    }
    // Gradients of two bytes take the place of logits that others read: all of this tile first, those of
    // later tiles lie behind.
    barrier();
    save(gradient, at, classes, x);
  }
}

/// Adds the rows to a bias' gradient, or stores their sum.
template <typename T, typename Result>
DEVICE void addColumns(const T *rows, int64_t stride, int64_t count, int64_t classes, Result *result,
                       int accumulates) {
  SHARED static float partial[kGroups][kColumns];
  int64_t column = blockX() * kColumns + laneX();
  float sum = 0;
  if (column < classes)
    for (int64_t row = warpX(); row < count; row += kGroups)
      sum += widen(rows[row * stride + column]);
  partial[warpX()][laneX()] = sum;
  barrier();
  if (warpX() != 0 || column >= classes)
    return;
  float total = accumulates ? widen(result[column]) : 0.0f;
  for (int group = 0; group < kGroups; ++group)
    total += partial[group][laneX()];
  store(total, result[column]);
}
} // namespace

#define ROWS(name, T)                                                                                        \
  KERNEL(kThreads)                                                                                           \
  void dsopt_nll_rows_##name(float *logits, int64_t stride, int64_t classes, const T *bias,                  \
                             const void *labels, int64_t labelBytes, int64_t ignored, const float *grad,     \
                             float *losses) {                                                                \
    finishRow<T>(logits, stride, classes, bias, labels, labelBytes, ignored, grad, losses);                  \
  }
ROWS(f32, float)
ROWS(bf16, bf16)
ROWS(f16, f16)

#define COLUMNS(name, T, Result)                                                                             \
  KERNEL(kColumns *kGroups)                                                                                  \
  void dsopt_nll_columns_##name(const T *rows, int64_t stride, int64_t count, int64_t classes,               \
                                Result *result, int accumulates) {                                           \
    addColumns(rows, stride, count, classes, result, accumulates);                                           \
  }
COLUMNS(f32_f32, float, float)
COLUMNS(f32_bf16, float, bf16)
COLUMNS(f32_f16, float, f16)
COLUMNS(bf16_f32, bf16, float)
COLUMNS(bf16_bf16, bf16, bf16)
COLUMNS(f16_f32, f16, float)
COLUMNS(f16_f16, f16, f16)
