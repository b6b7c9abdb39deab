//===- LambRule.h - ratios of LAMB and of 1-bit LAMB ------------*- C++ -*-===//
//
// The host and devices compute by these, so that they have the same bits. No other header, nothing but
// arithmetic of double that contracts nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_LAMBRULE_H
#define DSOPT_LIB_RUNTIME_KERNELS_LAMBRULE_H

namespace dsopt::runtime {

struct LambRule {
  double least, largest; ///< ratio of norms
  double coeffBeta, factorMin, factorMax, factorThreshold;
  bool isFrozen; ///< of steps behind the freeze

  static constexpr double clamp(double value, double low, double high) {
    return value < low ? low : high < value ? high : value;
  }
  /// Of the norms of a parameter and of its direction.
  constexpr double ratio(double length, double along) const {
    return length == 0 || along == 0 ? 1 : clamp(length / along, least, largest);
  }
  /// The mean of ratios once `ratio` takes part: 1 is that of parameters that have none.
  constexpr float nextMean(float mean, float ratio) const {
    return ratio == 1 ? mean : static_cast<float>(coeffBeta * mean + (1 - coeffBeta) * ratio);
  }
  /// What the variances have changed by, 0 where nothing takes part, with the share that weight decay leaves
  /// it: `own` and `along` are the norms of the quotient of the moments, and of that with decay.
  constexpr double nextFactor(double last, double changed, double own, double along, bool decays) const {
    double factor = changed;
    if (factor == 0)
      factor = 1;
    else if (decays && along != 0) {
      double share = own / along < 1 ? own / along : 1;
      factor = factor * share + 1 - share;
    }
    factor = clamp(factor, factorMin, factorMax);
    return clamp(factor, last * (1 - factorThreshold), last * (1 + factorThreshold));
  }
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_LAMBRULE_H
