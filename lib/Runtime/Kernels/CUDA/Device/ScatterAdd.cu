//===- ScatterAdd.cu - rows added where indices say ------------------------===//
//
// Rows are sorted by where they go. A block takes one place and some columns and adds its
// rows in order, so that every element has one thread and the host's additions.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

namespace {
constexpr int kThreads = 128;

/// Adds rows from `place` on that go where its row goes to `sum`.
template <typename Source>
DEVICE float addRows(const Source *rows, const uint64_t *order, int64_t count, int64_t place, uint64_t to,
                     int64_t width, int64_t column, float sum) {
  // Some at a time where so many go to one place: their loads do not wait for each other.
  constexpr int kSome = 8;
  while (place + kSome <= count && order[place + kSome - 1] >> 32 == to) {
    float some[kSome];
#pragma unroll
    for (int i = 0; i < kSome; ++i)
      some[i] = widen(rows[(order[place + i] & 0xffffffff) * width + column]);
#pragma unroll
    for (float value : some)
      sum += value;
    place += kSome;
  }
  for (; place < count; ++place) {
    uint64_t row = order[place];
    if (row >> 32 != to)
      break;
    sum += widen(rows[(row & 0xffffffff) * width + column]);
  }
  return sum;
}

/// Blocks are by place in the order, then by columns; only those of a first row have something to do.
template <typename Source, typename Target>
DEVICE void scatterAdd(const dsopt_scatter_add &d, const Source *rows, const uint64_t *order,
                       Target *result) {
  int64_t parts = (d.width + kThreads - 1) / kThreads, place = blockX() / parts;
  int64_t column = blockX() % parts * kThreads + threadX();
  uint64_t to = order[place] >> 32;
  if (column >= d.width || int64_t(to) >= d.size || (place && order[place - 1] >> 32 == to))
    return;
  Target &target = result[to * d.width + column];
  constexpr bool isWide = sizeof(Target) == 4;
  float sum = addRows(rows, order, d.count, place, to, d.width, column, isWide ? widen(target) : 0.0f);
  store(isWide ? sum : widen(target) + sum, target);
}

/// Blocks are by row of the result, then by columns: each element takes one sum, also of nothing.
template <typename Source, typename Target>
DEVICE void addSums(const dsopt_scatter_add &d, const Source *rows, const uint64_t *order, Target *result) {
  int64_t parts = (d.width + kThreads - 1) / kThreads, to = blockX() / parts;
  int64_t column = blockX() % parts * kThreads + threadX();
  if (column >= d.width)
    return;
  int64_t begin = 0, end = d.count;
  while (begin < end) {
    int64_t middle = (begin + end) / 2;
    if (int64_t(order[middle] >> 32) < to)
      begin = middle + 1;
    else
      end = middle;
  }
  float sum = addRows(rows, order, d.count, begin, to, d.width, column, 0.0f);
  Target own;
  store(sum, own);
  // As a gradient of its own takes it, from zero: that changes no bit but the sign of a zero, which sums
  // from zero do not have.
  Target &target = result[to * d.width + column];
  store(widen(target) + widen(own), target);
}
} // namespace

#define SCATTER_ADD(source, sourceName, target, targetName)                                                  \
  KERNEL(kThreads)                                                                                           \
  void dsopt_scatter_add_##targetName##_##sourceName(dsopt_scatter_add d, const source *rows,                \
                                                     const uint64_t *order, target *result) {                \
    scatterAdd(d, rows, order, result);                                                                      \
  }                                                                                                          \
  KERNEL(kThreads)                                                                                           \
  void dsopt_add_sums_##targetName##_##sourceName(dsopt_scatter_add d, const source *rows,                   \
                                                  const uint64_t *order, target *result) {                   \
    addSums(d, rows, order, result);                                                                         \
  }
SCATTER_ADD(float, f32, float, f32)
SCATTER_ADD(bf16, bf16, float, f32)
SCATTER_ADD(float, f32, bf16, bf16)
SCATTER_ADD(bf16, bf16, bf16, bf16)
SCATTER_ADD(f16, f16, float, f32)
SCATTER_ADD(float, f32, f16, f16)
SCATTER_ADD(f16, f16, f16, f16)
