//===- CheckGradients.h - a model's gradients against differences -*- C++ -*-===//
//
// Folds @forward and its gradients in double: whatever an operator becomes, its
// gradient is compared with finite differences of what it computes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_FORWARD_CHECKGRADIENTS_H
#define DSOPT_TOOLS_DSOPT_FORWARD_CHECKGRADIENTS_H

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace dsopt {

/// How many numbers were compared, and why others were not.
struct GradientCounts {
  int64_t compared = 0;
  /// Elements at which the outputs have no derivative.
  int64_t kinks = 0;
};

/// Compares the gradients of the weighted sum of `@forward`'s results, for some elements of each
/// floating-point input, with finite differences. Emits an error and fails where an operation has no
/// gradient or where one differs by more than a part in 10^5.
llvm::FailureOr<GradientCounts> checkGradients(mlir::ModuleOp module,
                                               const std::map<std::string, std::vector<char>> &inputs);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_FORWARD_CHECKGRADIENTS_H
