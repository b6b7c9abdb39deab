//===- TrustTables.cu - scalars by the norms of whole parameters -----------===//
//
// What Core/TrustRatios does, with its bits: digits of sums are added over ranks and parts, and what they say
// is rounded once, to double; roots and ratios are those of double.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Kernels/CUDA/SquarePiece.h"
#include "dsopt/Runtime/Coefficients.h"
#include "dsopt/Runtime/Scalars.h"

using dsopt::runtime::LambRule;
using dsopt::runtime::cuda::kSquareDigits;
using dsopt::runtime::cuda::kTrustThreads;
using dsopt::runtime::cuda::TrustTables;

namespace {
constexpr int kWords = 2 * kSquareDigits;

/// ExactSum::value, of digits that are not normalized yet.
DEVICE double valueOf(uint64_t *digits) {
  uint64_t carry = 0;
  int top = -1;
  for (int i = 0; i < kSquareDigits; ++i) {
    uint64_t sum = digits[i] + carry;
    digits[i] = uint32_t(sum);
    carry = sum >> 32;
    if (digits[i])
      top = i;
  }
  if (top < 0)
    return 0;
  // The 64 highest bits from the highest one on, and whether anything lies below.
  uint32_t next = top > 0 ? digits[top - 1] : 0, last = top > 1 ? digits[top - 2] : 0;
  int shift = __builtin_clz(uint32_t(digits[top]));
  uint64_t high = (digits[top] << 32 | next) << shift | uint64_t(last) << shift >> 32;
  bool below = uint32_t(last << shift) != 0;
  for (int i = 0; i < top - 2; ++i)
    below |= digits[i] != 0;
  uint64_t mantissa = high >> 11, rest = high & 0x7ff;
  if (rest > 0x400 || (rest == 0x400 && (below || (mantissa & 1))))
    ++mantissa;
  // Of the mantissa's lowest bit. The value is a normal number.
  int exponent = 32 * (top - 2) - 320 + 43 - shift;
  return __builtin_bit_cast(double, (uint64_t(exponent + 1075) << 52) + (mantissa - (1ull << 52)));
}

/// Of two words of records. Behind the freeze of 1-bit LAMB the first sum has the largest factor above its
/// highest digit.
DEVICE uint64_t joined(const TrustTables &all, uint64_t a, uint64_t b) {
  if (!all.rule.isFrozen || threadX() != kSquareDigits - 1)
    return a + b;
  return most(a >> 32, b >> 32) << 32 | uint32_t(a + b);
}

/// What a thread adds: its word of the two sums, over ranks and the places [begin, end).
DEVICE uint64_t wordOf(const TrustTables &all, const uint64_t *records, int begin, int end) {
  uint64_t sum = 0;
  for (int64_t rank = 0; rank < all.ranks; ++rank)
    for (int i = begin; i < end; ++i)
      sum = joined(all, sum, records[rank * all.words + all.places[i] + threadX()]);
  return sum;
}

/// LambCoefficients::ratio.
DEVICE float keptRatio(const LambRule &rule, float *numbers, const float *table, const double *norms,
                       float factor) {
  bool applies = table[DSOPT_APPLY] != 0;
  if (!rule.isFrozen) {
    auto ratio = static_cast<float>(rule.ratio(norms[0], norms[1]));
    if (applies)
      numbers[DSOPT_FROZEN_TRUST] = rule.nextMean(numbers[DSOPT_FROZEN_TRUST], ratio);
    return ratio;
  }
  double next =
      rule.nextFactor(numbers[DSOPT_LAST_FACTOR], factor, norms[0], norms[1], table[DSOPT_WEIGHT_DECAY] > 0);
  if (applies)
    numbers[DSOPT_LAST_FACTOR] = static_cast<float>(next);
  return static_cast<float>(numbers[DSOPT_FROZEN_TRUST] * next);
}
} // namespace

/// One block: adds the places of the first table.
KERNEL(kTrustThreads)
void dsopt_add_trust(const BY_VALUE TrustTables all, const uint64_t *records, uint64_t *sums) {
  if (threadX() < kWords)
    sums[threadX()] = joined(all, sums[threadX()], wordOf(all, records, 0, all.ends[0]));
}

/// A block a table.
KERNEL(kTrustThreads) void dsopt_trust_tables(const BY_VALUE TrustTables all, const uint64_t *records) {
  SHARED static uint64_t sums[kWords];
  SHARED static double norms[2];
  SHARED static float factor;
  int64_t number = blockX();
  int begin = number ? all.ends[number - 1] : 0;
  if (threadX() < kWords)
    sums[threadX()] = wordOf(all, records, begin, all.ends[number]);
  if (threadX() == kSquareDigits - 1)
    factor = __builtin_bit_cast(float, uint32_t(sums[threadX()] >> 32));
  barrier();
  if (threadX() < 2)
    norms[threadX()] = __nvvm_sqrt_rn_d(valueOf(sums + threadX() * kSquareDigits));
  barrier();
  if (threadX() >= DSOPT_SCALARS)
    return;
  float value = all.groups[number][threadX()];
  if (threadX() == DSOPT_TRUST) {
    double root = all.roots[number];
    if (root > 0)
      value = static_cast<float>(most(norms[0] / root, DSOPT_LEAST_LENGTH));
    else if (all.numbers[number])
      value = keptRatio(all.rule, all.numbers[number], all.groups[number], norms, factor);
    else
      value = static_cast<float>(all.rule.ratio(norms[0], norms[1]));
  }
  all.tables[number][threadX()] = value;
}
