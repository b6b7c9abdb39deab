//===- Elementwise.cu - sums and stores, element by element ----------------===//
//
// A thread has kEach elements, by 16-byte accesses where all addresses allow them.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Kernels/CUDA/SquarePiece.h"

using dsopt::runtime::cuda::FoldPlaces;

namespace {
constexpr int kThreads = 256, kEach = 8;

DEVICE void load(const float *from, float (&to)[kEach]) {
  for (int i = 0; i < kEach; i += 4) {
    Float4 some = *reinterpret_cast<const Float4 *>(from + i);
    for (int j = 0; j < 4; ++j)
      to[i + j] = some[j];
  }
}
DEVICE void load(const bf16 *from, float (&to)[kEach]) {
  Word4 some = *reinterpret_cast<const Word4 *>(from);
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = widen(bf16(some[i]));
    to[2 * i + 1] = widen(bf16(some[i] >> 16));
  }
}
DEVICE void load(const f16 *from, float (&to)[kEach]) {
  Word4 some = *reinterpret_cast<const Word4 *>(from);
  for (int i = 0; i < kEach; ++i)
    to[i] = widen(__builtin_bit_cast(f16, static_cast<uint16_t>(some[i / 2] >> i % 2 * 16)));
}
DEVICE void save(const float (&from)[kEach], float *to) {
  for (int i = 0; i < kEach; i += 4)
    *reinterpret_cast<Float4 *>(to + i) = Float4{from[i], from[i + 1], from[i + 2], from[i + 3]};
}
DEVICE void save(const float (&from)[kEach], bf16 *to) {
  Word4 some;
  for (int i = 0; i < 4; ++i)
    some[i] = roundToBf16(from[2 * i]) | uint32_t(roundToBf16(from[2 * i + 1])) << 16;
  *reinterpret_cast<Word4 *>(to) = some;
}

DEVICE void save(const float (&from)[kEach], f16 *to) {
  Word4 some = {};
  for (int i = 0; i < kEach; ++i)
    some[i / 2] |= static_cast<uint32_t>(__builtin_bit_cast(uint16_t, roundToF16(from[i]))) << i % 2 * 16;
  *reinterpret_cast<Word4 *>(to) = some;
}

/// target = (adds ? target : 0) + source, rounded.
template <bool adds, typename Target, typename Source>
DEVICE void combine(Target *target, const Source *source, int64_t elements) {
  int64_t first = (blockX() * kThreads + threadX()) * kEach;
  if (first >= elements)
    return;
  bool isAligned = ((reinterpret_cast<uint64_t>(target) | reinterpret_cast<uint64_t>(source)) & 15) == 0;
  if (isAligned && first + kEach <= elements) {
    float sums[kEach], more[kEach];
    load(source + first, more);
    if (adds)
      load(target + first, sums);
    for (int i = 0; i < kEach; ++i)
      sums[i] = adds ? sums[i] + more[i] : more[i];
    save(sums, target + first);
    return;
  }
  for (int64_t i = first; i < least(first + kEach, elements); ++i)
    store(adds ? widen(target[i]) + widen(source[i]) : widen(source[i]), target[i]);
}
} // namespace

KERNEL(kThreads) void dsopt_add_f32_f32(float *target, const float *source, int64_t elements) {
  combine<true>(target, source, elements);
}
#define NARROW(T)                                                                                            \
  KERNEL(kThreads) void dsopt_add_##T##_f32(T *target, const float *source, int64_t elements) {              \
    combine<true>(target, source, elements);                                                                 \
  }                                                                                                          \
  KERNEL(kThreads) void dsopt_add_##T##_##T(T *target, const T *source, int64_t elements) {                  \
    combine<true>(target, source, elements);                                                                 \
  }                                                                                                          \
  KERNEL(kThreads) void dsopt_convert_##T##_f32(T *target, const float *source, int64_t elements) {          \
    combine<false>(target, source, elements);                                                                \
  }
NARROW(bf16)
NARROW(f16)

/// Running statistics take those of each micro-batch, in the order of their places.
KERNEL(kThreads)
void dsopt_fold(float *running, const char *statistics, int64_t bytes, int64_t elements,
                const BY_VALUE FoldPlaces batches, float keep, float take) {
  int64_t i = blockX() * kThreads + threadX();
  if (i >= elements)
    return;
  float value = running[i];
  for (int64_t batch = 0; batch < batches.count; ++batch) {
    float kept = keep * value;
    float taken = take * reinterpret_cast<const float *>(statistics + batches.places[batch] * bytes)[i];
    value = kept + taken;
  }
  running[i] = value;
}
