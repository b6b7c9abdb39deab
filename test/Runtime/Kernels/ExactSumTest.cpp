//===- ExactSumTest.cpp - sums that no order changes -----------------------===//

#include "Kernels/CPU/ExactSum.h"
#include "Kernels/CPU/Bf16.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace dsopt::runtime;

static double exact(std::vector<double> values) {
  ExactSum sum;
  for (double value : values)
    sum.add(value);
  return sum.value();
}

TEST(ExactSum, RoundsOnceToNearestEven) {
  EXPECT_EQ(exact({}), 0);
  EXPECT_EQ(exact({1}), 1);
  EXPECT_EQ(exact({1, 0x1p-53}), 1);                     // a tie: to even
  EXPECT_EQ(exact({1, 0x1p-52, 0x1p-53}), 1 + 0x1p-51);  // a tie: to even, up
  EXPECT_EQ(exact({1, 0x1p-53, 0x1p-298}), 1 + 0x1p-52); // just above it
  EXPECT_EQ(exact({0x1p250, 0x1p-298}), 0x1p250);
  EXPECT_EQ(exact({0x1.fffffffffffffp99, 0x1p46}), 0x1p100); // the carry makes a new digit
  EXPECT_EQ(exact({0x1p-298}), 0x1p-298);
  EXPECT_EQ(exact({0x1.8p-297}), 0x1.8p-297);
}

TEST(ExactSum, OrderAndCutsDoNotMatter) {
  std::mt19937 random(1);
  std::vector<float> values(64 * 1001 + 17);
  for (float &value : values)
    value = std::ldexp(static_cast<float>(random()) - 2e9f, static_cast<int>(random() % 200) - 150);
  ExactSum whole;
  whole.addSquares(values.data(), values.size());
  long double reference = 0;
  for (float value : values)
    reference += static_cast<long double>(value) * value;
  EXPECT_NEAR(whole.value() / static_cast<double>(reference), 1, 1e-14);
  // A group's own order is fixed.
  std::vector<double> groupSums;
  for (size_t first = 0; first < values.size(); first += 64) {
    double part[8] = {};
    for (size_t i = first; i < std::min(first + 64, values.size()); ++i)
      part[i % 8] += static_cast<double>(values[i]) * values[i];
    groupSums.push_back(((part[0] + part[1]) + (part[2] + part[3])) +
                        ((part[4] + part[5]) + (part[6] + part[7])));
  }
  EXPECT_EQ(whole.value(), exact(groupSums));
  for (int parts : {2, 3, 7}) {
    std::vector<ExactSum> sums(parts);
    int64_t groups = (values.size() + 63) / 64;
    for (int part = parts - 1; part >= 0; --part) {
      int64_t begin = groups * part / parts * 64;
      int64_t end = std::min<int64_t>(groups * (part + 1) / parts * 64, values.size());
      sums[part].addSquares(values.data() + begin, end - begin);
    }
    ExactSum merged;
    for (ExactSum &sum : sums)
      merged.add(sum);
    EXPECT_EQ(merged.value(), whole.value());
  }
}

TEST(ExactSum, TakesEveryFloat) {
  std::vector<float> values = {FLT_MAX, FLT_TRUE_MIN, 0.0f, -FLT_MIN};
  ExactSum sum;
  sum.addSquares(values.data() + 1, 1);
  EXPECT_EQ(sum.value(), 0x1p-298);
  sum.addSquares(values.data(), 4);
  EXPECT_EQ(sum.value(), static_cast<double>(FLT_MAX) * FLT_MAX);
  EXPECT_FALSE(sum.nonFinite);
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    ExactSum one;
    one.addSquares(&bad, 1);
    EXPECT_TRUE(one.nonFinite);
  }
}

TEST(ExactSum, F16IsTheFloatsItStandsFor) {
  std::vector<_Float16> narrow;
  std::vector<float> wide;
  for (int bits = 1; bits < 0x7c00; bits += 3) {
    auto word = static_cast<uint16_t>(bits);
    _Float16 value;
    std::memcpy(&value, &word, 2);
    narrow.push_back(value);
    wide.push_back(static_cast<float>(value));
  }
  ExactSum expected, got;
  expected.addSquares(wide.data(), static_cast<int64_t>(wide.size()));
  got.addSquares(narrow.data(), static_cast<int64_t>(narrow.size()));
  EXPECT_EQ(got.value(), expected.value());
  EXPECT_FALSE(got.nonFinite);
  for (float value : {INFINITY, NAN}) {
    auto bad = static_cast<_Float16>(value);
    ExactSum one;
    one.addSquares(&bad, 1);
    EXPECT_TRUE(one.nonFinite);
  }
}

TEST(ExactSum, Bf16IsTheFloatsItStandsFor) {
  std::mt19937 random(2);
  for (int64_t elements : {1, 15, 64, 1023, 5000}) {
    std::vector<uint16_t> narrow(elements);
    std::vector<float> wide(elements);
    for (int64_t i = 0; i < elements; ++i) {
      narrow[i] =
          roundToBf16(std::ldexp(static_cast<float>(random()) - 2e9f, static_cast<int>(random() % 90) - 60));
      wide[i] = bf16ToFloat(narrow[i]);
    }
    ExactSum expected, got;
    expected.addSquares(wide.data(), elements);
    got.addSquares(narrow.data(), elements);
    EXPECT_EQ(got.value(), expected.value());
  }
}
