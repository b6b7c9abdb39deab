//===- TrustTablesTest.cpp - ratios of norms, to the host's bits -----------===//

#include "Kernels/CPU/ExactSum.h"
#include "OnDevice.h"
#include "dsopt/Runtime/Coefficients.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace dsopt::runtime::cuda {

namespace {
constexpr int64_t kRecord = 2 * ExactSum::kDigits;
constexpr LambRule kLamb = {DSOPT_LEAST_TRUST, DSOPT_LARGEST_TRUST, 0, 0, 0, 0, false};

class RatiosOfNorms : public OnDevice {
protected:
  /// Parameters with so many parts each, on so many ranks; `fill` gives the values of a part of the
  /// parameter, or of its direction. `factor` gives what lies above a part's first sum, where it is not 0.
  struct Records {
    int64_t words = 7; // a record begins where it may
    std::vector<std::vector<int64_t>> places;
    std::vector<int64_t> digits;
    std::vector<double> norms;  ///< two of each parameter
    std::vector<float> factors; ///< of each, the largest
  };
  template <typename Fill, typename Factor>
  static Records record(const std::vector<int64_t> &parts, int64_t ranks, Fill fill, Factor factor) {
    Records all;
    int64_t number = 0;
    all.places.resize(parts.size());
    all.factors.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      for (int64_t part = 0; part < parts[i]; ++part, all.words += kRecord)
        all.places[i].push_back(all.words);
    all.digits.assign(ranks * all.words, -1);
    std::vector<ExactSum> sums(2 * parts.size());
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (size_t i = 0; i < parts.size(); ++i)
        for (int64_t place : all.places[i]) {
          auto digits = all.digits.begin() + rank * all.words + place;
          float its = factor(number);
          for (int which : {0, 1}) {
            std::vector<float> values = fill(i, which, number++);
            ExactSum own;
            own.addSquares(values.data(), values.size());
            own.normalize();
            std::copy_n(own.digits, ExactSum::kDigits, digits + which * ExactSum::kDigits);
            sums[2 * i + which].add(own);
          }
          int32_t bits;
          std::memcpy(&bits, &its, sizeof(bits));
          digits[ExactSum::kDigits - 1] |= static_cast<int64_t>(bits) << 32;
          all.factors[i] = std::max(all.factors[i], its);
        }
    for (ExactSum &sum : sums)
      all.norms.push_back(std::sqrt(sum.value()));
    return all;
  }

  /// With a `root` ratios go by the parameter's norm alone.
  template <typename Fill>
  void check(const std::vector<int64_t> &parts, int64_t ranks, Fill fill, double root = 0) {
    Records records = record(parts, ranks, fill, [](int64_t) { return 0.0f; });
    std::vector<float> groups = randomNumbers(2 * DSOPT_SCALARS, 5), expected;
    float *group = upload(groups), *tables = room<float>(parts.size() * DSOPT_SCALARS * sizeof(float));
    std::vector<TrustTable> all;
    for (size_t i = 0; i < parts.size(); ++i) {
      all.push_back({group + i % 2 * DSOPT_SCALARS, tables + i * DSOPT_SCALARS, &records.places[i], root,
                     /*numbers=*/nullptr});
      double length = records.norms[2 * i], along = records.norms[2 * i + 1];
      size_t begin = expected.size();
      expected.insert(expected.end(), groups.begin() + i % 2 * DSOPT_SCALARS,
                      groups.begin() + (i % 2 + 1) * DSOPT_SCALARS);
      expected[begin + DSOPT_TRUST] =
          root > 0 ? static_cast<float>(std::max(length / root, DSOPT_LEAST_LENGTH))
          : length == 0 || along == 0
              ? 1
              : static_cast<float>(std::clamp(length / along, DSOPT_LEAST_TRUST, DSOPT_LARGEST_TRUST));
    }
    writeTrustTables(device, stream, all.data(), all.size(), kLamb, upload(records.digits), ranks,
                     records.words, room<int64_t>(kRecord * 8));
    ASSERT_EQ(download(tables, expected.size()), expected);
  }

  /// Steps of 1-bit LAMB, of which every third is skipped: what is kept of each parameter afterwards, and the
  /// ratios in between.
  void checkKept(const std::vector<int64_t> &parts, int64_t ranks, const LambRule &rule) {
    auto count = static_cast<int64_t>(parts.size());
    std::vector<float> kept = randomNumbers(count * DSOPT_COEFFICIENTS, 7), groups(2 * DSOPT_SCALARS);
    for (float &number : kept)
      number = 0.9f + std::fabs(number);
    float *numbersThere = upload(kept), *tables = room<float>(count * DSOPT_SCALARS * sizeof(float));
    for (int step = 0; step < 7; ++step) {
      // Longer than the direction with decay or not; with no direction at all, or nothing that takes part.
      Records records = record(
          parts, ranks,
          [&](size_t i, int which, int64_t number) {
            std::vector<float> values =
                randomNumbers(1 + number % 100, number + 1000 * step, which ? 0.7f : 0.5f);
            if ((i + step) % 5 == 4 && which)
              std::fill(values.begin(), values.end(), 0.0f);
            return values;
          },
          [&](int64_t number) {
            return number / 2 % 7 == step ? 0 : std::ldexp(1 + 0.013f * (number % 40), step % 4 - 2);
          });
      for (int group : {0, 1}) {
        groups[group * DSOPT_SCALARS + DSOPT_APPLY] = step % 3 != 2;
        groups[group * DSOPT_SCALARS + DSOPT_WEIGHT_DECAY] = group ? 0.1f : 0;
      }
      float *group = upload(groups);
      std::vector<TrustTable> all;
      std::vector<float> ratios;
      for (int64_t i = 0; i < count; ++i) {
        all.push_back({group + i % 2 * DSOPT_SCALARS, tables + i * DSOPT_SCALARS, &records.places[i],
                       /*root=*/0, numbersThere + i * DSOPT_COEFFICIENTS});
        float *its = kept.data() + i * DSOPT_COEFFICIENTS;
        ratios.push_back(
            expected(rule, its, &records.norms[2 * i], records.factors[i], i % 2, step % 3 != 2));
      }
      writeTrustTables(device, stream, all.data(), count, rule, upload(records.digits), ranks, records.words,
                       room<int64_t>(kRecord * 8));
      std::vector<float> got = download(tables, count * DSOPT_SCALARS), trust;
      for (int64_t i = 0; i < count; ++i)
        trust.push_back(got[i * DSOPT_SCALARS + DSOPT_TRUST]);
      ASSERT_NO_FATAL_FAILURE(expectSame(trust, ratios)) << "step " << step;
      ASSERT_NO_FATAL_FAILURE(expectSame(download(numbersThere, kept.size()), kept)) << "step " << step;
    }
  }

private:
  static float expected(const LambRule &rule, float *kept, const double *norms, double factor, bool decays,
                        bool applies) {
    if (!rule.isFrozen) {
      double exact =
          norms[0] == 0 || norms[1] == 0 ? 1 : std::clamp(norms[0] / norms[1], rule.least, rule.largest);
      auto ratio = static_cast<float>(exact);
      if (applies && ratio != 1)
        kept[DSOPT_FROZEN_TRUST] =
            static_cast<float>(rule.coeffBeta * kept[DSOPT_FROZEN_TRUST] + (1 - rule.coeffBeta) * ratio);
      return ratio;
    }
    if (factor == 0) {
      factor = 1;
    } else if (decays && norms[1] != 0) {
      double share = std::min(1.0, norms[0] / norms[1]);
      factor = factor * share + 1 - share;
    }
    double last = kept[DSOPT_LAST_FACTOR];
    factor = std::clamp(factor, rule.factorMin, rule.factorMax);
    factor = std::clamp(factor, last * (1 - rule.factorThreshold), last * (1 + rule.factorThreshold));
    if (applies)
      kept[DSOPT_LAST_FACTOR] = static_cast<float>(factor);
    return static_cast<float>(kept[DSOPT_FROZEN_TRUST] * factor);
  }
};
} // namespace

TEST_F(RatiosOfNorms, HaveTheHostsBits) {
  auto random = [](size_t, int, int64_t number) { return randomNumbers(1 + number % 200, number, 0.7f); };
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

TEST_F(RatiosOfNorms, KeepTheCoefficientsOfOneBitLamb) {
  // Bounds that all, some and none reach; one parameter has more parts than a launch carries.
  for (bool isFrozen : {false, true})
    for (LambRule rule :
         {LambRule{0.01, 10, 0.9, 0.5, 4, 0.1, isFrozen}, LambRule{0.5, 0.8, 0.7, 0.9, 1.1, 0.9, isFrozen},
          LambRule{1e-6, 1e6, 0, 1e-6, 1e6, 1e6, isFrozen}}) {
      ASSERT_NO_FATAL_FAILURE(checkKept({1}, 1, rule));
      ASSERT_NO_FATAL_FAILURE(checkKept({1, 2, 3, 1, 5, 1, 1}, 4, rule));
      ASSERT_NO_FATAL_FAILURE(checkKept({200, 1, 500, 2}, 2, rule));
    }
}

} // namespace dsopt::runtime::cuda
