//===- OptimizerFacts.h - what update rules take of options -----*- C++ -*-===//
#ifndef DSOPT_RUNTIME_OPTIMIZERFACTS_H
#define DSOPT_RUNTIME_OPTIMIZERFACTS_H

#include <string>
#include <utility>
#include <vector>

namespace dsopt::runtime {

/// What a rule takes, in tables of scalars, on the command line and in checkpoints. Without more said, that
/// of a plugin's: everything.
struct OptimizerFacts {
  bool takesMomentum = true;
  bool takesBetas = true;   ///< else the table's beta1 is the momentum
  bool takesEps = true;     ///< divides by it where gradients are 0
  bool correctsBias = true; ///< as Adam does, in the step size and the root of the variance
  bool refuses = false;     ///< options that it does not take
  /// Options that are not what Options.def says where they are not given: PyTorch's, of Lion those of its
  /// paper's code.
  std::vector<std::pair<const char *, const char *>> defaults = {};
};

/// Of the rule that is the value of -optimizer.
const OptimizerFacts &factsOf(const std::string &optimizer);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_OPTIMIZERFACTS_H
