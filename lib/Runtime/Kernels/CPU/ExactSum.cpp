//===- ExactSum.cpp - sums of squares that no order changes ----------------===//

#include "Kernels/CPU/ExactSum.h"
#include "Kernels/CPU/Clones.h"
#include "Kernels/CPU/Elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dsopt::runtime {

void ExactSum::add(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    nonFinite = true;
    return;
  }
  if (exponent == 0)
    return; // 0: squares of floats are no denormal doubles
  uint64_t mantissa = (bits & ((1ull << 52) - 1)) | 1ull << 52;
  int position = exponent - 1075 + 320; // of the mantissa's lowest bit
  if (position < 0) {                   // squares are multiples of 2^-298: only zeros are shifted out
    mantissa >>= -position;
    position = 0;
  }
  int digit = position >> 5, shift = position & 31;
  unsigned __int128 wide = static_cast<unsigned __int128>(mantissa) << shift;
  digits[digit] += static_cast<uint32_t>(wide);
  digits[digit + 1] += static_cast<uint32_t>(wide >> 32);
  digits[digit + 2] += static_cast<uint32_t>(wide >> 64);
  if (++pending == 1u << 30)
    normalize();
}

void ExactSum::add(const int64_t *other) {
  for (int i = 0; i < kDigits; ++i)
    digits[i] += other[i];
  if (++pending == 1u << 30)
    normalize();
}

void ExactSum::add(ExactSum other) {
  other.normalize();
  add(other.digits);
  nonFinite |= other.nonFinite;
}

void ExactSum::normalize() {
  int64_t carry = 0;
  for (int i = 0; i < kDigits - 1; ++i) {
    int64_t sum = digits[i] + carry;
    digits[i] = sum & 0xffffffff;
    carry = sum >> 32;
  }
  digits[kDigits - 1] += carry;
  pending = 0;
}

double ExactSum::value() const {
  ExactSum copy = *this;
  copy.normalize();
  int top = kDigits - 1;
  while (top >= 0 && copy.digits[top] == 0)
    --top;
  if (top < 0)
    return 0;
  // The 64 highest bits, and whether anything lies below.
  auto digit = [&](int i) { return i >= 0 ? static_cast<uint64_t>(copy.digits[i]) : 0; };
  unsigned __int128 high =
      static_cast<unsigned __int128>(digit(top)) << 64 | digit(top - 1) << 32 | digit(top - 2);
  int width = 128 - __builtin_clzll(static_cast<uint64_t>(high >> 64));
  bool below = false;
  for (int i = 0; i < top - 2; ++i)
    below |= copy.digits[i] != 0;
  int drop = width - 53; // at least 12: the highest digit is not 0
  uint64_t mantissa = static_cast<uint64_t>(high >> drop);
  unsigned __int128 rest = high & ((static_cast<unsigned __int128>(1) << drop) - 1);
  unsigned __int128 half = static_cast<unsigned __int128>(1) << (drop - 1);
  if (rest > half || (rest == half && (below || (mantissa & 1))))
    ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), 32 * (top - 2) - 320 + drop);
}

static constexpr int64_t kGroup = 64;

/// The squares' sum of each group. Eight partial sums, eight elements apart, then a tree: squares of floats
/// are exact in double, so fused or not is the same.
DSOPT_CLONES static void groupSquares(const float *values, int64_t groups, double *sums) {
  typedef float Floats __attribute__((vector_size(32)));
  typedef double Doubles __attribute__((vector_size(64)));
  constexpr int64_t kAhead = 1024; // what a processor reads ahead by itself ends with each run of this loop
  for (int64_t group = 0; group < groups; ++group, values += kGroup) {
    for (int64_t i = 0; i < kGroup; i += 16)
      __builtin_prefetch(values + kAhead + i);
    Doubles part = {};
    for (int64_t i = 0; i < kGroup; i += 8) {
      Floats some;
      std::memcpy(&some, values + i, sizeof(some));
      Doubles wide = __builtin_convertvector(some, Doubles);
      part = part + wide * wide;
    }
    sums[group] = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
}

void ExactSum::addSquares(const float *values, int64_t elements) {
  constexpr int64_t kTogether = 16;
  double sums[kTogether];
  int64_t groups = elements / kGroup;
  for (int64_t first = 0; first < groups; first += kTogether) {
    int64_t count = std::min(kTogether, groups - first);
    groupSquares(values + first * kGroup, count, sums);
    for (int64_t i = 0; i < count; ++i)
      add(sums[i]);
  }
  if (int64_t left = elements % kGroup) {
    float last[kGroup] = {};
    std::memcpy(last, values + groups * kGroup, left * sizeof(float));
    groupSquares(last, 1, sums);
    add(sums[0]);
  }
}

template <typename Narrow> void ExactSum::addConverted(const Narrow *values, int64_t elements) {
  float some[512];
  for (int64_t i = 0; i < elements; i += 512) {
    int64_t size = std::min<int64_t>(512, elements - i);
    convert(values + i, some, size);
    addSquares(some, size);
  }
}
template void ExactSum::addConverted(const uint16_t *values, int64_t elements);
template void ExactSum::addConverted(const _Float16 *values, int64_t elements);

} // namespace dsopt::runtime
