//===- StepCost.h - how long a step takes, by its runs' flops ---*- C++ -*-===//
//
// The one estimate that the plan and the program table give.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_SCHEDULE_STEPCOST_H
#define DSOPT_TRANSFORMS_SCHEDULE_STEPCOST_H

#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// A step in which runs take as long as they have floating-point operations, and all else takes no time.
struct StepCost {
  double flops = 0;  ///< of one rank of each position, together
  double length = 0; ///< from the first action to the last, in flops
  double bubble = 0; ///< the part of the positions' time in which they wait for each other
};

/// Plays the programs of a step against each other, by `exec.flops` of the segments they run.
StepCost estimateStep(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_SCHEDULE_STEPCOST_H
