//===- SquareSumsTest.cpp - exact sums of squares, to the host's bits ------===//

#include "Kernels/CPU/ExactSum.h"
#include "OnDevice.h"

#include <cfloat>
#include <cmath>

namespace dsopt::runtime::cuda {

static_assert(kSquareDigits == ExactSum::kDigits);

namespace {
class SquareSums : public OnDevice {
protected:
  /// Pieces of three parameters, of which two have sums in another order; elements of all sizes.
  template <typename T> void check(bool byParameter, std::vector<std::pair<int64_t, float>> odd) {
    const int64_t sizes[] = {1, 64, 1000, 2048, 4099}, parameters[] = {4, 4, 7, 9, 9},
                  place[] = {2, 2, 0, 1, 1};
    constexpr bool isHalf = typeOf<T>() == DSOPT_F16;
    std::vector<float> values = randomNumbers(1 + 64 + 1000 + 2048 + 4099, 1);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::ldexp(values[i], isHalf ? static_cast<int>(i * 7919 % 36) - 24
                                               : static_cast<int>(i * 7919 % 250) - 140);
    for (auto [at, value] : odd)
      values[at] = value;
    auto all = stored<T>(values);
    T *there = upload(all);
    std::vector<SquarePiece> pieces;
    ExactSum total, own[3];
    int64_t first = 0, nonFinite = -1;
    for (int i = 0; i < 5; ++i) {
      pieces.push_back({there + first, sizes[i], parameters[i], place[i]});
      ExactSum sum;
      sum.addSquares(all.data() + first, sizes[i]);
      if (sum.nonFinite && nonFinite < 0)
        nonFinite = parameters[i];
      total.add(sum);
      own[place[i]].add(sum);
      first += sizes[i];
    }
    std::swap(pieces[0], pieces[3]); // no order changes anything
    auto *record = room<int64_t>(21 * 8), *sums = byParameter ? room<int64_t>(60 * 8) : nullptr;
    squareSums(device, stream, pieces.data(), pieces.size(), typeOf<T>(), record, sums, 3);
    total.normalize();
    std::vector<int64_t> expected(total.digits, total.digits + ExactSum::kDigits);
    expected.push_back(nonFinite);
    ASSERT_EQ(download(record, 21), expected);
    if (!byParameter)
      return;
    expected.clear();
    for (ExactSum &sum : own) {
      sum.normalize();
      expected.insert(expected.end(), sum.digits, sum.digits + ExactSum::kDigits);
    }
    ASSERT_EQ(download(sums, 60), expected);
  }
};
} // namespace

TEST_F(SquareSums, HaveTheHostsDigits) {
  for (bool byParameter : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(check<float>(byParameter, {}));
    ASSERT_NO_FATAL_FAILURE(check<uint16_t>(byParameter, {}));
    ASSERT_NO_FATAL_FAILURE(check<_Float16>(byParameter, {}));
  }
  // The least and the largest square, and many in one digit.
  ASSERT_NO_FATAL_FAILURE(check<float>(true, {{0, FLT_TRUE_MIN}, {2, FLT_MAX}, {5000, -FLT_MAX}}));
}

TEST_F(SquareSums, SayWhichParameterIsNotFinite) {
  ASSERT_NO_FATAL_FAILURE(check<float>(true, {{7211, NAN}}));
  ASSERT_NO_FATAL_FAILURE(check<float>(false, {{7211, NAN}, {1064, INFINITY}}));
  ASSERT_NO_FATAL_FAILURE(check<uint16_t>(true, {{3000, -INFINITY}, {70, NAN}, {0, INFINITY}}));
  // What rounds beyond the largest is infinite.
  ASSERT_NO_FATAL_FAILURE(check<_Float16>(true, {{3000, -65520.0f}, {70, NAN}, {0, 65504.0f}}));
}

TEST_F(SquareSums, TakeManyPiecesAndLongOnes) {
  // More pieces than a launch carries, and one of three blocks.
  std::vector<float> values = randomNumbers(2 * kSquareElements + 77 + 150 * 64, 3);
  float *there = upload(values);
  std::vector<SquarePiece> pieces;
  ExactSum total;
  auto add = [&](int64_t first, int64_t elements) {
    pieces.push_back({there + first, elements, 0, 0});
    total.addSquares(values.data() + first, elements);
  };
  for (int64_t i = 0; i < 150; ++i)
    add(i * 64, 1 + i % 64);
  add(150 * 64, 2 * kSquareElements + 77);
  auto *record = room<int64_t>(21 * 8);
  squareSums(device, stream, pieces.data(), pieces.size(), DSOPT_F32, record, nullptr, 0);
  total.normalize();
  std::vector<int64_t> expected(total.digits, total.digits + ExactSum::kDigits);
  expected.push_back(-1);
  EXPECT_EQ(download(record, 21), expected);
}

TEST_F(SquareSums, OfNothingAreZero) {
  auto *record = room<int64_t>(21 * 8);
  squareSums(device, stream, nullptr, 0, DSOPT_F32, record, nullptr, 0);
  std::vector<int64_t> expected(21);
  expected.back() = -1;
  EXPECT_EQ(download(record, 21), expected);
}

} // namespace dsopt::runtime::cuda
