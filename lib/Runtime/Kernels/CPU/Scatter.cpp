//===- Scatter.cpp - rows put at indices -----------------------------------===//
//
// A thread takes a range of columns or, of narrow rows, of result rows: an element is changed by one
// thread, in the order of the updates.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/ABI.h"

#include <cstring>

namespace {
/// Below this many bytes touched a job is not worth waking threads.
constexpr int64_t kSmallBytes = 1 << 16;
/// Columns that a thread takes at least.
constexpr int64_t kColumns = 64;

/// Integers wrap around; a NaN replaces everything and nothing replaces it.
template <typename T> T combine(int64_t mode, T x, T y) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  switch (mode) {
  case DSOPT_SCATTER_ADD:
    return static_cast<T>(static_cast<Wide>(x) + static_cast<Wide>(y));
  case DSOPT_SCATTER_MUL:
    return static_cast<T>(static_cast<Wide>(x) * static_cast<Wide>(y));
  case DSOPT_SCATTER_MIN:
    return x != x || x < y ? x : y;
  case DSOPT_SCATTER_MAX:
    return x != x || x > y ? x : y;
  }
  return y;
}

/// What lies in rows `firstRow` to `lastRow` and columns `begin` to `end` of the result.
template <typename T, typename Index>
void scatterPart(const dsopt_scatter &s, const T *data, const Index *indices, const T *updates, T *result,
                 int64_t firstRow, int64_t lastRow, int64_t begin, int64_t end) {
  for (int64_t row = firstRow; row < lastRow; ++row)
    std::memcpy(result + row * s.width + begin, data + row * s.width + begin, (end - begin) * sizeof(T));
  for (int64_t i = 0; i < s.count; ++i) {
    int64_t row = indices[i];
    if (row < 0)
      row += s.size;
    if (row < firstRow || row >= lastRow)
      continue;
    T *to = result + row * s.width;
    const T *from = updates + i * s.width;
    for (int64_t column = begin; column < end; ++column)
      to[column] = combine(s.mode, to[column], from[column]);
  }
}

template <typename T, typename Index>
void scatterAll(dsopt_rt *rt, const dsopt_scatter &s, const void *data, const void *indices,
                const void *updates, void *result) {
  auto part = [&](int64_t firstRow, int64_t lastRow, int64_t begin, int64_t end) {
    scatterPart(s, static_cast<const T *>(data), static_cast<const Index *>(indices),
                static_cast<const T *>(updates), static_cast<T *>(result), firstRow, lastRow, begin, end);
  };
  if ((s.count + s.size) * s.width * int64_t(sizeof(T)) < kSmallBytes)
    part(0, s.size, 0, s.width);
  else if (s.width > kColumns)
    rt->pool->split(0, s.width, kColumns,
                    [&](int64_t begin, int64_t end, int) { part(0, s.size, begin, end); });
  else
    rt->pool->split(0, s.size, 64, [&](int64_t first, int64_t last, int) { part(first, last, 0, s.width); });
}

template <typename T>
void scatterOf(dsopt_rt *rt, const dsopt_scatter &s, const void *data, const void *indices,
               const void *updates, void *result) {
  if (s.index_bytes == 4)
    scatterAll<T, int32_t>(rt, s, data, indices, updates, result);
  else
    scatterAll<T, int64_t>(rt, s, data, indices, updates, result);
}
} // namespace

extern "C" void dsopt_rt_scatter(dsopt_rt *rt, const dsopt_scatter *scatter, const void *data,
                                 const void *indices, const void *updates, void *result) {
  dsopt::runtime::CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->scatter(*scatter, data, indices, updates, result);
    return;
  }
  if (scatter->is_float)
    scatterOf<float>(rt, *scatter, data, indices, updates, result);
  else if (scatter->element_bytes == 1)
    scatterOf<uint8_t>(rt, *scatter, data, indices, updates, result);
  else if (scatter->element_bytes == 4)
    scatterOf<int32_t>(rt, *scatter, data, indices, updates, result);
  else
    scatterOf<int64_t>(rt, *scatter, data, indices, updates, result);
}
