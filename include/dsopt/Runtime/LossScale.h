//===- LossScale.h - how much an fp16 loss is multiplied by -----*- C++ -*-===//
//
// Small gradients vanish in fp16, large ones overflow. Backward is seeded with
// scale / K; updates divide by it. A gradient that is not finite skips its step,
// on all ranks alike, and makes a dynamic scale smaller; a window of steps without
// an overflow makes it larger. As DeepSpeed's DynamicLossScaler, step by step.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_LOSSSCALE_H
#define DSOPT_RUNTIME_LOSSSCALE_H

#include <cstdint>
#include <string>

namespace dsopt::runtime {

/// The precision whose loss is scaled.
inline bool scalesLoss(const std::string &precision) { return precision == "fp16"; }

struct LossScaleOptions {
  double fixed = 0; ///< of every step; 0: the scale is dynamic
  int64_t initialPower = 16;
  int64_t window = 1000; ///< steps without an overflow that double it
  int64_t hysteresis = 2;
  double least = 1;
};

/// The options that are of the loss scale, as -help names them.
inline constexpr const char *kLossScaleOptions[] = {"loss-scale", "initial-scale-power", "loss-scale-window",
                                                    "loss-scale-hysteresis", "min-loss-scale"};

/// The fixed scale of "128", 0 of "dynamic" and "0"; an Error of status 1 says what is wrong.
double fixedLossScale(const std::string &text);
/// An Error of status 1 where the numbers cannot be.
void checkLossScale(const LossScaleOptions &options);

/// What a checkpoint keeps.
struct LossScaleState {
  double scale = 1;          ///< dynamic
  int64_t hysteresis = 1;    ///< overflows until it is halved
  int64_t steps = 0;         ///< seen
  int64_t lastOverflow = -1; ///< among them
  int64_t skipped = 0;       ///< of them
};

class LossScale {
public:
  explicit LossScale(const LossScaleOptions &options);

  double scale() const { return options.fixed > 0 ? options.fixed : now.scale; }
  int64_t skipped() const { return now.skipped; }
  /// Behind a step. False: it overflowed at the least scale, and training cannot go on.
  [[nodiscard]] bool update(bool overflowed);

  const LossScaleState &state() const { return now; }
  void restore(const LossScaleState &state) { now = state; }

private:
  LossScaleOptions options;
  LossScaleState now;
};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_LOSSSCALE_H
