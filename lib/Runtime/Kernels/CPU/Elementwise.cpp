//===- Elementwise.cpp - additions whose order is fixed --------------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/ABI.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {

void addInto(float *__restrict target, const float *__restrict source, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    target[i] += source[i];
}

void treeSum(const float *const *parts, int64_t count, float *target, int64_t elements, bool accumulate) {
  // A binary counter of partial sums, a small block of elements at a time: level l holds the sum of
  // 2^l parts. What remains at the end is added from the lowest level up, which is the same tree.
  constexpr int64_t kBlock = 512;
  alignas(64) float levels[21][kBlock];
  for (int64_t start = 0; start < elements; start += kBlock) {
    int64_t size = std::min(kBlock, elements - start), bytes = size * sizeof(float);
    for (int64_t part = 0; part < count; ++part) {
      int level = __builtin_ctzll(~static_cast<uint64_t>(part));
      // Levels below `level` hold the left neighbours.
      const float *source = parts[part] + start;
      if (level == 0) {
        std::memcpy(levels[0], source, bytes);
        continue;
      }
      float *__restrict sum = levels[level];
      for (int64_t i = 0; i < size; ++i)
        sum[i] = levels[0][i] + source[i];
      for (int below = 1; below < level; ++below)
        for (int64_t i = 0; i < size; ++i)
          sum[i] = levels[below][i] + sum[i];
    }
    uint64_t present = static_cast<uint64_t>(count);
    int level = __builtin_ctzll(present);
    float *sum = levels[level];
    for (present &= present - 1; present; present &= present - 1) {
      float *left = levels[__builtin_ctzll(present)];
      for (int64_t i = 0; i < size; ++i)
        sum[i] = left[i] + sum[i];
    }
    float *result = target + start;
    if (accumulate)
      addInto(result, sum, size);
    else
      std::memcpy(result, sum, bytes);
  }
}

} // namespace dsopt::runtime

using namespace dsopt::runtime;

/// Below this many bytes touched a job is not worth waking threads.
static constexpr int64_t kSmallBytes = 1 << 16;

extern "C" void dsopt_rt_accumulate_f32(dsopt_rt *rt, int64_t elements, const float *value, float *gradient,
                                        int64_t accumulate) {
  CallTimer timer(rt->profile);
  int64_t grain = std::max<int64_t>(kSmallBytes / 8, 64);
  rt->pool->split(0, elements, grain, [=](int64_t begin, int64_t end, int) {
    if (accumulate)
      addInto(gradient + begin, value + begin, end - begin);
    else
      std::memcpy(gradient + begin, value + begin, (end - begin) * sizeof(float));
  });
}

/// The same with a source of bf16, the upper halves of floats.
static void addInto(float *__restrict target, const uint16_t *__restrict source, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    target[i] += bf16ToFloat(source[i]);
}

/// Adds columns [begin, end) of the rows.
template <typename Element, typename Index>
static void scatterColumns(int64_t count, int64_t width, int64_t size, const Element *rows,
                           const Index *indices, float *result, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = indices[i];
    if (row < 0)
      row += size;
    // The forward pass has checked what it gathered; an index outside adds nothing.
    if (row >= 0 && row < size)
      addInto(result + row * width + begin, rows + i * width + begin, end - begin);
  }
}

template <typename Element>
static void scatterAdd(dsopt_rt *rt, int64_t count, int64_t width, int64_t size, const Element *rows,
                       const void *indices, int64_t index_bytes, float *result, int64_t accumulate) {
  CallTimer timer(rt->profile);
  auto split = [&](int64_t elements, int64_t bytes, int64_t grain, auto body) {
    if (bytes < kSmallBytes)
      body(0, elements, 0);
    else
      rt->pool->split(0, elements, grain, body);
  };
  if (!accumulate)
    split(size * width, size * width * 4, kSmallBytes / 4, [=](int64_t begin, int64_t end, int) {
      std::memset(result + begin, 0, (end - begin) * sizeof(float));
    });
  split(width, count * width * 8, 64, [=](int64_t begin, int64_t end, int) {
    if (index_bytes == 4)
      scatterColumns(count, width, size, rows, static_cast<const int32_t *>(indices), result, begin, end);
    else
      scatterColumns(count, width, size, rows, static_cast<const int64_t *>(indices), result, begin, end);
  });
}

extern "C" void dsopt_rt_scatter_add_f32(dsopt_rt *rt, int64_t count, int64_t width, int64_t size,
                                         const float *rows, const void *indices, int64_t index_bytes,
                                         float *result, int64_t accumulate) {
  scatterAdd(rt, count, width, size, rows, indices, index_bytes, result, accumulate);
}

extern "C" void dsopt_rt_scatter_add_bf16(dsopt_rt *rt, int64_t count, int64_t width, int64_t size,
                                          const uint16_t *rows, const void *indices, int64_t index_bytes,
                                          float *result, int64_t accumulate) {
  scatterAdd(rt, count, width, size, rows, indices, index_bytes, result, accumulate);
}
