//===- ScatterAdd.cpp - rows added where indices say -----------------------===//
//
// The gradient of an embedding. Into fp32, rows are added in order where they
// go. Into 16 bits that would round a word's gradient as often as the word occurs:
// rows are sorted by where they go, equal ones in order, and a micro-batch's sum
// is made in fp32 and rounded once. Into another gradient they go as such sums in
// both types, since a gradient of its own would have been added to it so.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

using namespace dsopt::runtime;

namespace {
/// Below this many bytes touched a job is not worth waking threads.
constexpr int64_t kSmallBytes = 1 << 16;

/// The row that the i-th of `indices` means, or -1: forward has checked what it gathered, an index outside
/// adds nothing.
template <typename Index> int64_t rowAt(const dsopt_scatter_add &d, const Index *indices, int64_t i) {
  int64_t row = indices[i];
  if (row < 0)
    row += d.size;
  return row >= 0 && row < d.size ? row : -1;
}

/// Adds columns [begin, end) of the rows in order.
template <typename Source, typename Index>
void addRows(const dsopt_scatter_add &d, const Source *rows, const Index *indices, float *result,
             int64_t begin, int64_t end) {
  for (int64_t i = 0; i < d.count; ++i)
    if (int64_t row = rowAt(d, indices, i); row >= 0)
      addInto(result + row * d.width + begin, rows + i * d.width + begin, end - begin);
}

/// Where a row goes in the upper half, which it is in the lower one.
template <typename Index>
int64_t sortRows(const dsopt_scatter_add &d, const Index *indices, uint64_t *order) {
  int64_t count = 0;
  for (int64_t i = 0; i < d.count; ++i)
    if (int64_t row = rowAt(d, indices, i); row >= 0)
      order[count++] = static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(i);
  std::sort(order, order + count);
  return count;
}

/// Adds columns [begin, end) of the sums of rows that go to one place.
template <typename Source, typename Target>
void addSums(const dsopt_scatter_add &d, const Source *rows, const uint64_t *order, int64_t count,
             Target *result, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 512;
  float sums[kBlock];
  auto source = [&](int64_t i, int64_t at) { return rows + (order[i] & 0xffffffff) * d.width + at; };
  for (int64_t i = 0, next; i < count; i = next) {
    for (next = i + 1; next < count && order[next] >> 32 == order[i] >> 32; ++next) {
    }
    Target *target = result + (order[i] >> 32) * d.width;
    for (int64_t at = begin; at < end; at += kBlock) {
      int64_t size = std::min(kBlock, end - at);
      std::fill_n(sums, size, 0.0f);
      for (int64_t j = i; j < next; ++j)
        addInto(sums, source(j, at), size);
      addInto(target + at, sums, size);
    }
  }
}

/// Adds the sums of all rows that go to rows [begin, end) of the result, zeros where none does: those, too,
/// change the sign of a negative zero.
template <typename Source, typename Target>
void addToGradient(const dsopt_scatter_add &d, const Source *rows, const uint64_t *order, int64_t count,
                   Target *result, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 512;
  float sums[kBlock];
  [[maybe_unused]] Target own[kBlock];
  const uint64_t *next = std::lower_bound(order, order + count, static_cast<uint64_t>(begin) << 32);
  for (int64_t row = begin; row < end; ++row) {
    const uint64_t *first = next;
    while (next != order + count && static_cast<int64_t>(*next >> 32) == row)
      ++next;
    for (int64_t at = 0; at < d.width; at += kBlock) {
      int64_t size = std::min(kBlock, d.width - at);
      std::fill_n(sums, size, 0.0f);
      for (const uint64_t *i = first; i != next; ++i)
        addInto(sums, rows + (*i & 0xffffffff) * d.width + at, size);
      Target *target = result + row * d.width + at;
      if constexpr (std::is_same_v<Target, float>) {
        addInto(target, sums, size);
      } else {
        std::fill_n(own, size, Target(0));
        addInto(own, sums, size);
        addInto(target, own, size);
      }
    }
  }
}

template <typename Source, typename Index>
void scatter(dsopt_rt &rt, const dsopt_scatter_add &d, const Source *rows, const Index *indices, void *result,
             uint64_t *order, bool accumulate) {
  auto split = [&](int64_t elements, int64_t bytes, int64_t grain, auto body) {
    if (bytes < kSmallBytes)
      body(0, elements, 0);
    else
      rt.pool->split(0, elements, grain, body);
  };
  if (d.sums) {
    int64_t count = sortRows(d, indices, order);
    withElement(Element(d.type_result), [&](auto element) {
      auto *gradient = static_cast<decltype(element) *>(result);
      split(d.size, d.size * d.width * sizeof(element), std::max<int64_t>(1, kSmallBytes / (d.width + 1)),
            [=](int64_t begin, int64_t end, int) {
              addToGradient(d, rows, order, count, gradient, begin, end);
            });
    });
    return;
  }
  if (int64_t bytes = d.size * d.width * bytesOf(Element(d.type_result)); !accumulate)
    split(bytes, bytes, kSmallBytes, [=](int64_t begin, int64_t end, int) {
      std::memset(static_cast<char *>(result) + begin, 0, end - begin);
    });
  int64_t bytes = d.count * d.width * 8;
  if (d.type_result == DSOPT_F32)
    return split(d.width, bytes, 64, [=](int64_t begin, int64_t end, int) {
      addRows(d, rows, indices, static_cast<float *>(result), begin, end);
    });
  int64_t count = sortRows(d, indices, order);
  withElement(Element(d.type_result), [&](auto element) {
    split(d.width, bytes, 64, [=](int64_t begin, int64_t end, int) {
      addSums(d, rows, order, count, static_cast<decltype(element) *>(result), begin, end);
    });
  });
}
} // namespace

extern "C" void dsopt_rt_scatter_add(dsopt_rt *rt, const dsopt_scatter_add *d, const void *rows,
                                     const void *indices, void *result, void *workspace, int64_t accumulate) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->scatterAdd(*d, rows, indices, result, workspace, accumulate);
    return;
  }
  withElement(Element(d->type_rows), [&](auto element) {
    auto *source = static_cast<const decltype(element) *>(rows);
    auto *order = static_cast<uint64_t *>(workspace);
    if (d->index_bytes == 4)
      scatter(*rt, *d, source, static_cast<const int32_t *>(indices), result, order, accumulate != 0);
    else
      scatter(*rt, *d, source, static_cast<const int64_t *>(indices), result, order, accumulate != 0);
  });
}
