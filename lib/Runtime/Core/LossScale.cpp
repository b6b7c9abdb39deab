//===- LossScale.cpp - how much an fp16 loss is multiplied by --------------===//

#include "dsopt/Runtime/LossScale.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace dsopt::runtime {

/// Powers of two that a float holds.
constexpr int64_t kMostPower = 127;

static bool isScale(double value) {
  return value >= std::ldexp(1.0, -kMostPower) && value <= std::ldexp(1.0, kMostPower);
}

double fixedLossScale(const std::string &text) {
  if (text == "dynamic" || text == "0")
    return 0;
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !isScale(value))
    throw Error(StatusInput, "option -loss-scale=" + text + ": expected dynamic, or a number above 0");
  return value;
}

void checkLossScale(const LossScaleOptions &options) {
  if (options.initialPower > kMostPower)
    throw Error(StatusInput, "option -initial-scale-power=" + std::to_string(options.initialPower) +
                                 ": expected 0 to " + std::to_string(kMostPower));
  if (!isScale(options.least))
    throw Error(StatusInput, "option -min-loss-scale: expected a number above 0");
}

LossScale::LossScale(const LossScaleOptions &options) : options(options) {
  now.scale = std::ldexp(1.0, static_cast<int>(options.initialPower));
  now.hysteresis = options.hysteresis;
}

bool LossScale::update(bool overflowed) {
  constexpr double kFactor = 2;
  int64_t step = now.steps++;
  now.skipped += overflowed;
  if (options.fixed > 0)
    return true;
  if (overflowed) {
    now.lastOverflow = step;
    if (now.hysteresis > 1) {
      --now.hysteresis;
      return true;
    }
    if (now.scale <= options.least)
      return false;
    now.scale = std::max(now.scale / kFactor, options.least);
    return true;
  }
  // The step behind an overflow is not counted.
  int64_t stable = step - now.lastOverflow - 1;
  if (stable > 0 && stable % options.window == 0) {
    now.hysteresis = options.hysteresis;
    now.scale *= kFactor;
  }
  return true;
}

} // namespace dsopt::runtime
