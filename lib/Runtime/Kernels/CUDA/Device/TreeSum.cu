//===- TreeSum.cu - parts of ranks added along the canonical tree ----------===//
//
// Neighbours are paired level by level, an odd one is carried up; every sum is rounded to
// the type, as treeSum of the host does it.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

namespace {
constexpr int kThreads = 256, kLevels = 16;

template <typename T> DEVICE T sum(T a, T b) {
  T result;
  store(widen(a) + widen(b), result);
  return result;
}

/// A member's part: this rank's lies in its gradient, those of others in the staging buffer.
template <typename T> struct Parts {
  const T *own, *others;
  int64_t stride;
  int self;
};
template <typename T> DEVICE T part(const Parts<T> &parts, int member, int64_t i) {
  return member == parts.self ? parts.own[i] : parts.others[member * parts.stride + i];
}

/// The left subtree is the largest power of two that leaves something for the right one.
constexpr int leftOf(int count) {
  int left = 1;
  while (2 * left < count)
    left *= 2;
  return left;
}
template <int first, int count, typename T> DEVICE T tree(const Parts<T> &parts, int64_t i) {
  if constexpr (count == 1)
    return part(parts, first, i);
  else
    return sum(tree<first, leftOf(count)>(parts, i),
               tree<first + leftOf(count), count - leftOf(count)>(parts, i));
}

/// A binary counter of partial sums: level l has the sum of 2^l parts. Levels have fixed places, in
/// registers.
template <typename T> DEVICE T counted(const Parts<T> &parts, int count, int64_t i) {
  T levels[kLevels] = {};
  for (int member = 0; member < count; ++member) {
    T value = part(parts, member, i);
    bool carries = true;
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      bool isFull = member >> level & 1;
      if (carries && isFull)
        value = sum(levels[level], value);
      else if (carries)
        levels[level] = value;
      carries = carries && isFull;
    }
  }
  T value = {};
  bool hasSome = false;
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
    if ((count >> level & 1) == 0)
      continue;
    value = hasSome ? sum(levels[level], value) : levels[level];
    hasSome = true;
  }
  return value;
}

template <typename T>
DEVICE void treeSum(T *target, Parts<T> parts, int count, int64_t elements, int accumulate) {
  int64_t threads = blocksX() * kThreads;
  int64_t first = blockX() * kThreads + threadX();
  for (int64_t i = first; i < elements; i += threads) {
    T value;
    switch (count) {
    case 1:
      value = tree<0, 1>(parts, i);
      break;
    case 2:
      value = tree<0, 2>(parts, i);
      break;
    case 4:
      value = tree<0, 4>(parts, i);
      break;
    case 8:
      value = tree<0, 8>(parts, i);
      break;
    default:
      value = counted(parts, count, i);
    }
    target[i] = accumulate ? sum(target[i], value) : value;
  }
}
} // namespace

#define TREE_SUM(name, T)                                                                                    \
  KERNEL(kThreads)                                                                                           \
  void dsopt_tree_sum_##name(T *target, const T *own, const T *others, int64_t stride, int self, int count,  \
                             int64_t elements, int accumulate) {                                             \
    treeSum(target, {own, others, stride, self}, count, elements, accumulate);                               \
  }
TREE_SUM(f32, float)
TREE_SUM(bf16, bf16)
TREE_SUM(f16, f16)
