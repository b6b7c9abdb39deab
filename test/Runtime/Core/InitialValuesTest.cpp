//===- InitialValuesTest.cpp - drawn weights -------------------------------===//

#include "Core/InitialValues.h"
#include "dsopt/Runtime/Philox.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
// The known answers that come with Random123.
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(DrawNormal, AnyRangeGivesTheSame) {
  constexpr int64_t kSize = 1023;
  std::vector<float> whole(kSize), part(kSize);
  drawNormal(7, "w", 1, 0, kSize, whole.data());
  for (auto [begin, end] :
       {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {1, 17}, {15, 1000}, {500, 500}, {1022, 1023}}) {
    drawNormal(7, "w", 1, begin, end, part.data());
    for (int64_t i = begin; i < end; ++i)
      EXPECT_EQ(part[i - begin], whole[i]) << begin << " " << end << " " << i;
  }
}

TEST(DrawNormal, IsNormalAndKeyed) {
  constexpr int64_t kSize = 1 << 20;
  std::vector<float> values(kSize), others(kSize);
  drawNormal(0, "w", 2, 0, kSize, values.data());
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  int64_t beyond = 0;
  for (float value : values) {
    double z = value / 2;
    sum += z, squares += z * z, cubes += z * z * z, fourths += z * z * z * z;
    beyond += std::fabs(z) > 3;
  }
  EXPECT_NEAR(sum / kSize, 0, 0.005);
  EXPECT_NEAR(squares / kSize, 1, 0.01);
  EXPECT_NEAR(cubes / kSize, 0, 0.02);
  EXPECT_NEAR(fourths / kSize, 3, 0.05);
  EXPECT_NEAR(static_cast<double>(beyond) / kSize, 0.0027, 0.0003);
  for (auto [seed, name] : {std::pair(1, "w"), std::pair(0, "v")}) {
    drawNormal(seed, name, 2, 0, kSize, others.data());
    double product = 0;
    for (int64_t i = 0; i < kSize; ++i)
      product += values[i] * others[i] / 4;
    EXPECT_NEAR(product / kSize, 0, 0.005);
  }
}

TEST(InitDeviation, Values) {
  EXPECT_EQ(initDeviation("normal:0.02"), 0.02);
  for (const char *wrong :
       {"", "normal", "normal:", "normal:0", "normal:-1", "normal:inf", "normal:1x", "model"})
    EXPECT_THROW(initDeviation(wrong), Error) << wrong;
}
} // namespace
