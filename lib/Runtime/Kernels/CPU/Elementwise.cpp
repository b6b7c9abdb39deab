//===- Elementwise.cpp - additions whose order is fixed --------------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Clones.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {
namespace {

inline float extend(float value) { return value; }
inline float extend(uint16_t value) { return bf16ToFloat(value); }
inline float extend(_Float16 value) { return static_cast<float>(value); }
inline void round(float value, float &target) { target = value; }
inline void round(float value, uint16_t &target) { target = roundToBf16(value); }
inline void round(float value, _Float16 &target) { target = static_cast<_Float16>(value); }

template <typename Target, typename Source>
[[gnu::always_inline]] inline void addRow(Target *__restrict target, const Source *__restrict source,
                                          int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    round(extend(target[i]) + extend(source[i]), target[i]);
}

template <typename T>
void treeSumOf(const void *const *parts, int64_t count, T *target, int64_t elements, bool accumulate) {
  // A binary counter of partial sums, a small block of elements at a time: level l holds the sum of
  // 2^l parts. What remains at the end is added from the lowest level up, which is the same tree.
  constexpr int64_t kBlock = 512;
  alignas(64) T levels[21][kBlock];
  for (int64_t start = 0; start < elements; start += kBlock) {
    int64_t size = std::min(kBlock, elements - start), bytes = size * sizeof(T);
    for (int64_t part = 0; part < count; ++part) {
      int level = __builtin_ctzll(~static_cast<uint64_t>(part));
      // Levels below `level` hold the left neighbours.
      std::memcpy(levels[level], static_cast<const T *>(parts[part]) + start, bytes);
      for (int below = 0; below < level; ++below)
        addInto(levels[level], levels[below], size);
    }
    uint64_t present = static_cast<uint64_t>(count);
    int level = __builtin_ctzll(present);
    T *sum = levels[level];
    for (present &= present - 1; present; present &= present - 1)
      addInto(sum, levels[__builtin_ctzll(present)], size);
    if (accumulate)
      addInto(target + start, sum, size);
    else
      std::memcpy(target + start, sum, bytes);
  }
}
} // namespace

void convert(const float *source, float *target, int64_t elements) {
  std::memcpy(target, source, elements * sizeof(float));
}
DSOPT_CLONES void convert(const float *__restrict source, uint16_t *__restrict target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    target[i] = roundToBf16(source[i]);
}
DSOPT_CLONES void convert(const uint16_t *__restrict source, float *__restrict target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    target[i] = bf16ToFloat(source[i]);
}
DSOPT_HALF_CLONES void convert(const float *__restrict source, _Float16 *__restrict target,
                               int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    target[i] = static_cast<_Float16>(source[i]);
}
DSOPT_HALF_CLONES void convert(const _Float16 *__restrict source, float *__restrict target,
                               int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    target[i] = static_cast<float>(source[i]);
}

DSOPT_CLONES void addInto(float *target, const float *source, int64_t elements) {
  addRow(target, source, elements);
}
DSOPT_CLONES void addInto(float *target, const uint16_t *source, int64_t elements) {
  addRow(target, source, elements);
}
DSOPT_CLONES void addInto(uint16_t *target, const float *source, int64_t elements) {
  addRow(target, source, elements);
}
DSOPT_CLONES void addInto(uint16_t *target, const uint16_t *source, int64_t elements) {
  addRow(target, source, elements);
}
DSOPT_HALF_CLONES void addInto(float *target, const _Float16 *source, int64_t elements) {
  addRow(target, source, elements);
}
DSOPT_HALF_CLONES void addInto(_Float16 *target, const float *source, int64_t elements) {
  addRow(target, source, elements);
}
DSOPT_HALF_CLONES void addInto(_Float16 *target, const _Float16 *source, int64_t elements) {
  addRow(target, source, elements);
}

void treeSum(Element type, const void *const *parts, int64_t count, void *target, int64_t elements,
             bool accumulate) {
  withElement(type, [&](auto element) {
    treeSumOf(parts, count, static_cast<decltype(element) *>(target), elements, accumulate);
  });
}

} // namespace dsopt::runtime

using namespace dsopt::runtime;

extern "C" void dsopt_rt_accumulate(dsopt_rt *rt, int64_t elements, const float *value, void *gradient,
                                    int64_t type, int64_t accumulate) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->accumulate(elements, value, gradient, type, accumulate);
    return;
  }
  // Below this many elements a thread is not worth waking.
  constexpr int64_t kGrain = 1 << 13;
  withElement(Element(type), [&](auto element) {
    auto *target = static_cast<decltype(element) *>(gradient);
    rt->pool->split(0, elements, kGrain, [=](int64_t begin, int64_t end, int) {
      if (accumulate)
        addInto(target + begin, value + begin, end - begin);
      else
        convert(value + begin, target + begin, end - begin);
    });
  });
}
