//===- ElementwiseTest.cpp - additions whose order is fixed ----------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace dsopt::runtime;

static std::vector<float> randomFloats(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random) * std::exp2(static_cast<float>(random() % 20));
  return values;
}

static std::vector<uint16_t> narrowed(const std::vector<float> &values) {
  std::vector<uint16_t> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), roundToBf16);
  return result;
}

/// The nearest f16, to even of two, from its definition: exact values of 11 bits.
static float nearestF16(float value) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int exponent = std::max(std::ilogb(value) - 10, -24); // of the last bit
  double result = std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(value), -exponent)), exponent);
  return static_cast<float>(std::fabs(result) > 65504 ? std::copysign(INFINITY, value) : result);
}

static std::vector<_Float16> halved(const std::vector<float> &values) {
  std::vector<float> small = values;
  for (float &value : small)
    value *= 0x1p-12f;
  std::vector<_Float16> result(values.size());
  convert(small.data(), result.data(), static_cast<int64_t>(small.size()));
  return result;
}

static float sum(float a, float b) { return a + b; }
static _Float16 sum(_Float16 a, _Float16 b) {
  return static_cast<_Float16>(nearestF16(static_cast<float>(a) + static_cast<float>(b)));
}
static uint16_t sum(uint16_t a, uint16_t b) { return roundToBf16(bf16ToFloat(a) + bf16ToFloat(b)); }

/// The definition: neighbours paired level by level, an odd one carried up.
template <typename T> static T tree(std::vector<T> level) {
  while (level.size() > 1) {
    std::vector<T> up;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      up.push_back(sum(level[i], level[i + 1]));
    if (level.size() % 2)
      up.push_back(level.back());
    level = up;
  }
  return level[0];
}

template <typename T>
static void followsTree(Element type, std::vector<T> (*make)(const std::vector<float> &)) {
  constexpr int64_t elements = 1100;
  for (int count = 1; count <= 20; ++count) {
    std::vector<std::vector<T>> parts;
    std::vector<const void *> pointers;
    for (int i = 0; i < count; ++i)
      parts.push_back(make(randomFloats(elements, i + 100 * count)));
    for (auto &part : parts)
      pointers.push_back(part.data());
    std::vector<T> stored(elements), more = make(randomFloats(elements, 7)), before = more;
    treeSum(type, pointers.data(), count, stored.data(), elements, false);
    treeSum(type, pointers.data(), count, more.data(), elements, true);
    for (int64_t i = 0; i < elements; ++i) {
      std::vector<T> leaves;
      for (auto &part : parts)
        leaves.push_back(part[i]);
      ASSERT_EQ(stored[i], tree(leaves)) << count;
      ASSERT_EQ(more[i], sum(before[i], tree(leaves))) << count;
    }
    // In place of a part.
    treeSum(type, pointers.data(), count, parts[count / 2].data(), elements, false);
    ASSERT_EQ(parts[count / 2], stored);
  }
}

TEST(TreeSum, FollowsTheCanonicalTree) {
  followsTree<float>(Element::F32, [](const std::vector<float> &values) { return values; });
}
TEST(TreeSum, RoundsEachSumToF16) { followsTree<_Float16>(Element::F16, halved); }
TEST(TreeSum, RoundsEachSumToBf16) { followsTree<uint16_t>(Element::BF16, narrowed); }

/// Every f16, and every float that lies at, or next to, one or the middle of two: subnormals, zeros of both
/// signs, what overflows, infinities; vectors and their rests.
TEST(Convert, F16IsExactAndRoundsToNearestEven) {
  std::vector<_Float16> all(1 << 16);
  for (size_t bits = 0; bits < all.size(); ++bits) {
    auto word = static_cast<uint16_t>(bits);
    std::memcpy(&all[bits], &word, 2);
  }
  std::vector<float> wide(all.size()), values;
  convert(all.data(), wide.data(), static_cast<int64_t>(all.size()));
  for (size_t bits = 0; bits < all.size(); ++bits) {
    int exponent = static_cast<int>(bits >> 10 & 31);
    auto mantissa = static_cast<double>(bits & 1023);
    double value = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
    if (exponent == 31) {
      ASSERT_TRUE(mantissa != 0 ? std::isnan(wide[bits]) : std::isinf(wide[bits])) << bits;
      continue;
    }
    ASSERT_EQ(wide[bits], bits >> 15 ? -value : value) << bits;
    ASSERT_EQ(std::signbit(wide[bits]), bits >> 15 != 0) << bits;
    double next = exponent ? std::ldexp(1.0, exponent - 26) : std::ldexp(1.0, -25);
    auto middle = static_cast<float>(std::copysign(value + next, wide[bits]));
    for (float near : {wide[bits], middle})
      for (float to : {-INFINITY, near, INFINITY})
        values.push_back(std::nextafter(near, to));
  }
  for (float value : {65519.996f, 65520.0f, 1e9f, 3e38f, 1e-30f, 1e-45f, INFINITY})
    values.insert(values.end(), {value, -value});
  for (size_t start : {0, 1, 7}) {
    std::vector<_Float16> rounded(values.size() - start);
    convert(values.data() + start, rounded.data(), static_cast<int64_t>(rounded.size()));
    for (size_t i = 0; i < rounded.size(); ++i) {
      float value = values[start + i], got = static_cast<float>(rounded[i]);
      ASSERT_EQ(got, nearestF16(value)) << value;
      ASSERT_EQ(std::signbit(got), std::signbit(value)) << value;
    }
  }
  float none = NAN;
  _Float16 narrow;
  convert(&none, &narrow, 1);
  EXPECT_TRUE(std::isnan(static_cast<float>(narrow)));
}

static void scatter(int threads, const dsopt_scatter_add &d, const void *rows, const void *indices,
                    void *result, bool accumulate) {
  ThreadPool pool(threads, 0);
  dsopt_rt rt;
  rt.pool = &pool;
  std::vector<char> workspace(dsopt_scatter_add_workspace(&d));
  dsopt_rt_scatter_add(&rt, &d, rows, indices, result, workspace.data(), accumulate);
}

TEST(ScatterAdd, SameBitsWithAnyThreads) {
  constexpr int64_t count = 500, width = 200, size = 50;
  std::vector<float> rows = randomFloats(count * width, 1), first;
  std::vector<int64_t> wide(count);
  std::vector<int32_t> narrow(count);
  for (int64_t i = 0; i < count; ++i)
    narrow[i] = wide[i] = i * 7 % size - (i % 3 ? 0 : size);
  for (int threads : {1, 2, 3, 8})
    for (int indexBytes : {4, 8})
      for (int accumulate : {0, 1}) {
        std::vector<float> result(size * width, accumulate ? 0.0f : 5.0f);
        scatter(threads, {count, width, size, indexBytes, DSOPT_F32, DSOPT_F32, 0}, rows.data(),
                indexBytes == 4 ? static_cast<void *>(narrow.data()) : wide.data(), result.data(),
                accumulate);
        if (first.empty()) {
          first = result;
          float expected = 0;
          for (int64_t i = 0; i < count; ++i)
            if (i * 7 % size == 3)
              expected += rows[i * width + 11];
          EXPECT_EQ(result[3 * width + 11], expected);
        }
        EXPECT_EQ(result, first);
      }
}

TEST(ScatterAdd, RoundsARowsSumToBf16Once) {
  for (int64_t width : {1, 15, 17, 1023})
    for (int64_t typeRows : {DSOPT_F32, DSOPT_BF16})
      for (bool accumulate : {false, true}) {
        constexpr int64_t count = 300, size = 7;
        std::vector<uint16_t> rows = narrowed(randomFloats(count * width, 1)),
                              start = narrowed(randomFloats(size * width, 2)), expected = start;
        std::vector<float> wideRows(rows.size());
        std::transform(rows.begin(), rows.end(), wideRows.begin(), bf16ToFloat);
        std::vector<int64_t> indices(count);
        // Row 6 gets nothing, nor do indices outside.
        for (int64_t i = 0; i < count; ++i)
          indices[i] = i % 11 == 10 ? size : i * 5 % 6 - (i % 3 ? 0 : size);
        for (int64_t row = 0; row < size; ++row)
          for (int64_t j = 0; j < width; ++j) {
            float sum = 0;
            for (int64_t i = 0; i < count; ++i)
              if (indices[i] == row || indices[i] == row - size)
                sum += wideRows[i * width + j];
            uint16_t &at = expected[row * width + j];
            at = roundToBf16(accumulate ? bf16ToFloat(at) + sum : sum);
          }
        for (int threads : {1, 2, 3, 8}) {
          std::vector<uint16_t> result = start;
          scatter(threads, {count, width, size, 8, typeRows, DSOPT_BF16, 0},
                  typeRows == DSOPT_F32 ? static_cast<void *>(wideRows.data()) : rows.data(), indices.data(),
                  result.data(), accumulate);
          ASSERT_EQ(result, expected) << width;
        }
      }
}

/// Sums into another gradient are what adding a gradient of their own to it gives, signs of zeros included.
template <typename T> static void addsAsAGradientOfItsOwn(Element type) {
  const auto code = static_cast<int64_t>(type);
  for (int64_t width : {1, 17, 1023}) {
    constexpr int64_t count = 300, size = 40;
    std::vector<float> rows = randomFloats(count * width, 1), other = randomFloats(size * width, 2);
    if (type == Element::F16) // whose sums stay finite
      for (auto *values : {&rows, &other})
        for (float &value : *values)
          value *= 0x1p-12f;
    for (size_t i = 0; i < other.size(); i += 3)
      other[i] = -0.0f;
    std::vector<int64_t> indices(count); // half of the rows get nothing, nor do indices outside
    for (int64_t i = 0; i < count; ++i)
      indices[i] = i % 11 == 10 ? size : i * 7 % (size / 2) - (i % 3 ? 0 : size);
    std::vector<T> start(other.size()), own(other.size());
    convert(other.data(), start.data(), other.size());
    std::vector<T> expected(other.size());
    scatter(1, {count, width, size, 8, DSOPT_F32, code, 0}, rows.data(), indices.data(), own.data(), false);
    for (size_t i = 0; i < own.size(); ++i)
      expected[i] = sum(own[i], start[i]);
    for (int threads : {1, 2, 3, 8}) {
      std::vector<T> result = start;
      scatter(threads, {count, width, size, 8, DSOPT_F32, code, 1}, rows.data(), indices.data(),
              result.data(), false);
      ASSERT_EQ(std::memcmp(result.data(), expected.data(), result.size() * sizeof(T)), 0)
          << width << " columns, " << threads << " threads";
    }
  }
}
TEST(ScatterAdd, AddsToAnotherGradientAsOneOfItsOwn) {
  addsAsAGradientOfItsOwn<float>(Element::F32);
  addsAsAGradientOfItsOwn<uint16_t>(Element::BF16);
  addsAsAGradientOfItsOwn<_Float16>(Element::F16);
}

TEST(Accumulate, StoresOrAdds) {
  ThreadPool pool(3, 0);
  dsopt_rt rt;
  rt.pool = &pool;
  std::vector<float> value = randomFloats(100000, 1), gradient(100000, NAN);
  dsopt_rt_accumulate(&rt, value.size(), value.data(), gradient.data(), DSOPT_F32, 0);
  EXPECT_EQ(gradient, value);
  dsopt_rt_accumulate(&rt, value.size(), value.data(), gradient.data(), DSOPT_F32, 1);
  for (size_t i = 0; i < value.size(); ++i)
    ASSERT_EQ(gradient[i], value[i] + value[i]);
  // In bf16 the value is not rounded before it is added.
  std::vector<uint16_t> narrow(value.size());
  dsopt_rt_accumulate(&rt, value.size(), value.data(), narrow.data(), DSOPT_BF16, 0);
  EXPECT_EQ(narrow, narrowed(value));
  dsopt_rt_accumulate(&rt, value.size(), value.data(), narrow.data(), DSOPT_BF16, 1);
  for (size_t i = 0; i < value.size(); ++i)
    ASSERT_EQ(narrow[i], roundToBf16(bf16ToFloat(roundToBf16(value[i])) + value[i]));
}

static void countRange(int64_t begin, int64_t end, void *const *args) {
  for (int64_t i = begin; i < end; ++i)
    ++static_cast<int *>(args[0])[i];
  if (begin % *static_cast<int64_t *>(args[1]))
    static_cast<int *>(args[0])[begin] += 100;
}

TEST(Launch, CoversTheRangeOnceAtMultiplesOfGrain) {
  ThreadPool pool(3, 100);
  dsopt_rt rt;
  rt.pool = &pool;
  for (int64_t grain : {1, 64})
    for (int64_t range : {1, 63, 64, 65, 1000, 100000})
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<int> seen(range);
        void *args[] = {seen.data(), &grain};
        dsopt_rt_launch(&rt, countRange, range, grain, args);
        ASSERT_EQ(seen, std::vector<int>(range, 1));
      }
}
