//===- TrustTablesTest.cpp - ratios of norms, to the host's bits -----------===//

#include "Kernels/CPU/ExactSum.h"
#include "OnDevice.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace dsopt::runtime::cuda {

namespace {
constexpr int64_t kRecord = 2 * ExactSum::kDigits;

class RatiosOfNorms : public OnDevice {
protected:
  /// Parameters with so many parts each, on so many ranks; `fill` gives the values of a part of the
  /// parameter, or of its direction. With a `root` ratios go by the parameter's norm alone.
  template <typename Fill>
  void check(const std::vector<int64_t> &parts, int64_t ranks, Fill fill, double root = 0) {
    int64_t words = 7, number = 0; // a record begins where it may
    std::vector<std::vector<int64_t>> places(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      for (int64_t part = 0; part < parts[i]; ++part, words += kRecord)
        places[i].push_back(words);
    std::vector<int64_t> records(ranks * words, -1);
    std::vector<ExactSum> sums(2 * parts.size());
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (size_t i = 0; i < parts.size(); ++i)
        for (int64_t place : places[i])
          for (int which : {0, 1}) {
            std::vector<float> values = fill(i, which, number++);
            ExactSum own;
            own.addSquares(values.data(), values.size());
            own.normalize();
            std::copy_n(own.digits, ExactSum::kDigits,
                        records.begin() + rank * words + place + which * ExactSum::kDigits);
            sums[2 * i + which].add(own);
          }
    std::vector<float> groups = numbers(2 * DSOPT_SCALARS, 5), expected;
    float *group = upload(groups), *tables = room<float>(parts.size() * DSOPT_SCALARS * sizeof(float));
    std::vector<TrustTable> all;
    for (size_t i = 0; i < parts.size(); ++i) {
      all.push_back({group + i % 2 * DSOPT_SCALARS, tables + i * DSOPT_SCALARS, &places[i], root});
      double length = std::sqrt(sums[2 * i].value()), along = std::sqrt(sums[2 * i + 1].value());
      size_t begin = expected.size();
      expected.insert(expected.end(), groups.begin() + i % 2 * DSOPT_SCALARS,
                      groups.begin() + (i % 2 + 1) * DSOPT_SCALARS);
      expected[begin + DSOPT_TRUST] =
          root > 0 ? static_cast<float>(std::max(length / root, DSOPT_LEAST_LENGTH))
          : length == 0 || along == 0
              ? 1
              : static_cast<float>(std::clamp(length / along, DSOPT_LEAST_TRUST, DSOPT_LARGEST_TRUST));
    }
    writeTrustTables(device, stream, all.data(), all.size(), upload(records), ranks, words,
                     room<int64_t>(kRecord * 8));
    ASSERT_EQ(download(tables, expected.size()), expected);
  }
};
} // namespace

TEST_F(RatiosOfNorms, HaveTheHostsBits) {
  auto random = [](size_t, int, int64_t number) { return numbers(1 + number % 200, number, 0.7f); };
  check({1}, 1, random);
  check({1, 2, 3, 1, 5}, 4, random);
  check({1, 2, 3, 1, 5}, 4, random, std::sqrt(100.0));
  check({1, 500}, 2, random, 1e6);
  // More tables than a launch carries, and places; one has more by itself.
  check(std::vector<int64_t>(130, 1), 2, random);
  check({200, 300, 1, 1000, 768, 2, 384, 385}, 2, random);
}

TEST_F(RatiosOfNorms, RoundOnceAndStayWithinBounds) {
  // 1, a value, and another one so far below that it decides how the sum is rounded, or does not.
  for (float middle : {0x1p-26f, 0x1.8p-26f, 0x1p-27f, 0x1p-60f, 0x1p-100f})
    for (float last : {0.0f, 0x1p-80f, 0x1p-140f})
      for (float scale : {1.0f, 0x1.8p5f, 0x1p-9f})
        check({3}, 1, [&](size_t, int which, int64_t number) {
          float values[] = {1, middle, last};
          return std::vector<float>{which ? 1.3f : scale * values[number / 2 % 3]};
        });
  // From the least to the largest, of which there may be none.
  for (float length : {0.0f, FLT_TRUE_MIN, FLT_MIN, 1.0f, FLT_MAX})
    for (float along : {0.0f, FLT_TRUE_MIN, FLT_MIN, 1.0f, FLT_MAX})
      check({2}, 3,
            [&](size_t, int which, int64_t) { return std::vector<float>(65, which ? along : length); });
}

} // namespace dsopt::runtime::cuda
