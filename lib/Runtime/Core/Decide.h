//===- Decide.h - the step's decision ---------------------------*- C++ -*-===//
//
// After the agreement every rank knows the same numbers and computes, equally,
// the scalars that update kernels read (Scalars.h).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DECIDE_H
#define DSOPT_LIB_RUNTIME_CORE_DECIDE_H

#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

struct Decision {
  int64_t appliedSteps = 0; ///< before this one
  double lr = 0;            ///< of this step, before group scales
  double factor = 1;        ///< of gradients, as they are: of a scaled loss where it is scaled
  bool apply = true;
  double rates = 0; ///< where ranks are apart, the sum of `lr` since they met, with this step's
};

/// min(1, clip / (norm + 1e-6)), as PyTorch's clip_grad_norm_; 1 without clipping.
double clipFactor(double clip, double norm);

/// Writes one group's table of DSOPT_SCALARS floats.
/// `freezeStep` steps have been applied before the optimizer's variance froze; 0: it has not. The variance
/// has been updated `varianceSteps` times, with this one; 0: in each step.
void writeScalars(const Decision &decision, const RunOptions &options, const std::string &optimizer,
                  double lrScale, double decayScale, float *table, int64_t freezeStep = 0,
                  int64_t varianceSteps = 0);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DECIDE_H
