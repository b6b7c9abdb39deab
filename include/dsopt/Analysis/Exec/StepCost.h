//===- StepCost.h - how long a step takes, by its runs' flops ---*- C++ -*-===//
//
// The one estimate that the plan, the program table and remarks give.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_STEPCOST_H
#define DSOPT_ANALYSIS_EXEC_STEPCOST_H

#include "dsopt/Dialect/Exec/Members.h"
#include "dsopt/Interfaces/AssumedRates.h"
#include "dsopt/Interfaces/DeviceLimits.h"

namespace dsopt {

/// What actions take, in seconds.
class ActionTimes {
public:
  explicit ActionTimes(mlir::ModuleOp module);
  double flopsOf(exec::ActionOpInterface action) const;
  /// Of what is computed.
  double ofWork(exec::ActionOpInterface action) const;
  /// Of what a rank sends or copies.
  double ofMove(exec::ActionOpInterface action);

private:
  exec::Members members;
  std::optional<DeviceLimits> device;
  int64_t threads;
  llvm::DenseMap<mlir::StringAttr, double> flops, seconds; ///< of segments
};

/// A step in which runs take as long as they have floating-point operations (on a device: what its limits
/// give), and all else takes no time.
struct StepCost {
  double flops = 0;  ///< of one rank of each position, together
  double length = 0; ///< from the first action to the last, in seconds
  double bubble = 0; ///< the part of the positions' time in which they wait for each other
  double moving = 0; ///< its length where what is sent and copied takes time as well
};

/// Plays the programs of a step against each other, by `exec.flops` or `exec.picoseconds` of the segments
/// they run.
StepCost estimateStep(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_STEPCOST_H
