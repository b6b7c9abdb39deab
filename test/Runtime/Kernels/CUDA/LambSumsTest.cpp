//===- LambSumsTest.cpp - what 1-bit LAMB measures, to the host's bits -----===//

#include "Kernels/CPU/ExactSum.h"
#include "OnDevice.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace dsopt::runtime::cuda {

namespace {
constexpr float kEps = 1e-8f;

class LambSums : public OnDevice {
protected:
  struct Moments {
    std::vector<float> momentum, variance, fresh;
  };
  /// Some elements have no variance, and take no part; one that would have the largest factor is among them.
  static Moments moments(int64_t elements) {
    Moments all = {randomNumbers(elements, 1), randomNumbers(elements, 2), randomNumbers(elements, 3)};
    for (int64_t i = 0; i < elements; ++i) {
      all.momentum[i] = std::ldexp(all.momentum[i], static_cast<int>(i * 7919 % 60) - 40);
      all.variance[i] = i % 11 == 5 ? 0 : std::ldexp(std::fabs(all.variance[i]), i * 104729 % 80 - 60);
      all.fresh[i] = i % 11 == 5 ? 0 : all.variance[i] * (0.1f + std::fabs(all.fresh[i]));
    }
    return all;
  }

  /// Parts of parameters, by their sums, of so many elements each.
  void check(const Moments &all, const std::vector<std::pair<int64_t, int64_t>> &parts, int64_t parameters) {
    std::vector<LambPiece> pieces;
    std::vector<ExactSum> own(2 * parameters);
    std::vector<int32_t> largest(2 * parameters);
    float *momentum = upload(all.momentum), *variance = upload(all.variance), *fresh = upload(all.fresh);
    int64_t first = 0;
    for (auto [sum, elements] : parts) {
      pieces.push_back({momentum + first, variance + first, fresh + first, elements, sum});
      std::vector<float> quotients;
      for (int64_t i = first; i < first + elements; ++i) {
        bool takesPart = all.variance[i] > 0;
        float root = std::sqrt(all.variance[i]) + kEps, factor = root / (std::sqrt(all.fresh[i]) + kEps);
        quotients.push_back(takesPart ? all.momentum[i] / root : 0);
        int32_t bits;
        std::memcpy(&bits, &factor, sizeof(bits));
        if (takesPart)
          largest[sum] = std::max(largest[sum], bits);
      }
      own[sum].addSquares(quotients.data(), elements);
      first += elements;
    }
    std::reverse(pieces.begin(), pieces.end()); // no order changes anything
    // The second sums, with decay, are there already.
    std::vector<int64_t> begun, expected;
    for (int64_t sum = 0; sum < 2 * parameters; ++sum) {
      own[sum].normalize();
      for (int digit = 0; digit < kSquareDigits; ++digit) {
        begun.push_back(sum % 2 ? sum * 100 + digit : 0);
        expected.push_back(own[sum].digits[digit] + begun.back());
      }
      expected.back() |= static_cast<int64_t>(largest[sum]) << 32;
    }
    int64_t *sums = upload(begun);
    lambSums(device, stream, pieces.data(), pieces.size(), kEps, sums, 2 * parameters);
    ASSERT_EQ(download(sums, expected.size()), expected);
  }
};
} // namespace

TEST_F(LambSums, HaveTheHostsDigits) {
  check(moments(1 + 64 + 1000 + 2048 + 4099), {{4, 1}, {4, 64}, {0, 1000}, {2, 2048}, {2, 4099}}, 3);
}

TEST_F(LambSums, TakeManyPiecesAndLongOnes) {
  // More pieces than a launch carries, and one of three blocks.
  std::vector<std::pair<int64_t, int64_t>> parts;
  int64_t elements = 2 * kSquareElements + 77;
  for (int64_t i = 0; i < 150; elements += 1 + i++ % 64)
    parts.emplace_back(2 * (i % 7), 1 + i % 64);
  parts.insert(parts.begin() + 70, {6, 2 * kSquareElements + 77});
  check(moments(elements), parts, 7);
}

TEST_F(LambSums, TakeFactorsOfAllSizes) {
  // From no change at all to the largest, of variances that have gone; of nothing that takes part it is 0.
  for (float fresh : {0.0f, FLT_TRUE_MIN, 1.0f, FLT_MAX})
    for (float variance : {0.0f, FLT_TRUE_MIN, 1.0f, FLT_MAX}) {
      Moments all = {std::vector<float>(300, 0.1f), std::vector<float>(300, variance),
                     std::vector<float>(300, fresh)};
      ASSERT_NO_FATAL_FAILURE(check(all, {{0, 300}}, 1));
    }
  // The largest may be any lane's.
  for (int64_t at : {0, 31, 77, 200, 299}) {
    Moments all = {std::vector<float>(300, 0.1f), std::vector<float>(300, 1), std::vector<float>(300, 1)};
    all.fresh[at] = 0.3f;
    ASSERT_NO_FATAL_FAILURE(check(all, {{0, 300}}, 1));
  }
}

} // namespace dsopt::runtime::cuda
