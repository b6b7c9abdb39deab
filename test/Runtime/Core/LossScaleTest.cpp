//===- LossScaleTest.cpp - the scale of an fp16 loss, step by step ---------===//

#include "dsopt/Runtime/LossScale.h"
#include "dsopt/Runtime/Error.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
/// The scales of steps that overflow where there is a 1; "!" is where it cannot go on.
std::string scales(LossScale &scale, const std::string &overflows) {
  std::string text;
  for (char overflow : overflows) {
    text += std::to_string(static_cast<int64_t>(scale.scale())) + " ";
    if (!scale.update(overflow == '1'))
      text += "! ";
  }
  return text + std::to_string(static_cast<int64_t>(scale.scale()));
}
std::string scales(const LossScaleOptions &options, const std::string &overflows) {
  LossScale scale(options);
  return scales(scale, overflows);
}
} // namespace

TEST(LossScale, HalvesBehindItsHysteresis) {
  LossScaleOptions options;
  EXPECT_EQ(scales(options, "1110"), "65536 65536 32768 16384 16384");
  options.hysteresis = 1;
  EXPECT_EQ(scales(options, "11"), "65536 32768 16384");
  options.hysteresis = 3;
  options.initialPower = 4;
  // Steps between do not refill it.
  EXPECT_EQ(scales(options, "10101"), "16 16 16 16 16 8");
}

TEST(LossScale, DoublesBehindItsWindow) {
  LossScaleOptions options;
  options.initialPower = 3;
  options.window = 2;
  // The first step, as the step behind an overflow, is not of the window.
  EXPECT_EQ(scales(options, "0000000"), "8 8 8 16 16 32 32 64");
  EXPECT_EQ(scales(options, "1000100"), "8 8 8 8 16 16 16 16");
  // A doubled scale has its hysteresis again.
  EXPECT_EQ(scales(options, "110001011"), "8 8 4 4 4 8 8 8 4 2");
}

TEST(LossScale, EndsAtItsLeast) {
  LossScaleOptions options;
  options.initialPower = 2;
  options.hysteresis = 1;
  EXPECT_EQ(scales(options, "111"), "4 2 1 ! 1");
  options.least = 3;
  EXPECT_EQ(scales(options, "11"), "4 3 ! 3");
  // The overflow that only takes hysteresis away is allowed there.
  options.hysteresis = 2;
  options.initialPower = 1;
  options.least = 2;
  EXPECT_EQ(scales(options, "1011"), "2 2 2 ! 2 ! 2");
}

TEST(LossScale, Fixed) {
  LossScaleOptions options;
  options.fixed = 128;
  options.window = 1;
  LossScale scale(options);
  EXPECT_EQ(scales(scale, "0110"), "128 128 128 128 128");
  EXPECT_EQ(scale.skipped(), 2);
}

TEST(LossScale, GoesOnFromItsState) {
  LossScaleOptions options;
  options.window = 3;
  std::string overflows = "0100010110000001";
  std::string whole = scales(options, overflows);
  for (size_t cut = 0; cut < overflows.size(); ++cut) {
    LossScale first(options), second(options);
    std::string text = scales(first, overflows.substr(0, cut));
    second.restore(first.state());
    text = text.substr(0, text.rfind(' ') + 1);
    if (cut == 0)
      text = "";
    EXPECT_EQ(text + scales(second, overflows.substr(cut)), whole) << cut;
    EXPECT_EQ(second.skipped(), 5);
  }
}

TEST(LossScale, Options) {
  EXPECT_EQ(fixedLossScale("dynamic"), 0);
  EXPECT_EQ(fixedLossScale("0"), 0);
  EXPECT_EQ(fixedLossScale("0.5"), 0.5);
  for (const char *text : {"", "static", "-1", "nan", "inf", "1e60", "8x"})
    EXPECT_THROW(fixedLossScale(text), Error) << text;
  LossScaleOptions options;
  checkLossScale(options);
  options.initialPower = 128;
  EXPECT_THROW(checkLossScale(options), Error);
  options.initialPower = 127;
  options.least = 0;
  EXPECT_THROW(checkLossScale(options), Error);
}
