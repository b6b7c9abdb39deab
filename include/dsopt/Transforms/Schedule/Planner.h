//===- Planner.h - what a step would take, asked as a library ---*- C++ -*-===//
//
// For passes that choose before programs are written: a module in dist form and a
// layout go in, bytes and time come out. The same steps write and place the programs
// that stage 6 runs as passes, so that an answer is the plan itself.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_SCHEDULE_PLANNER_H
#define DSOPT_TRANSFORMS_SCHEDULE_PLANNER_H

#include "dsopt/Transforms/Schedule/StepCost.h"

#include "mlir/IR/OwningOpRef.h"

namespace dsopt {

class Planner {
public:
  /// Works on a copy of a module in dist form. Emits an error and fails where its blocks make no segments.
  static mlir::FailureOr<Planner> create(mlir::ModuleOp module);

  /// What may be asked for; the rest is as the module's options say.
  struct Layout {
    int64_t microBatches = 1;   ///< a rank
    int64_t gatherWindow = 1;   ///< micro-batches that a gather serves
    int64_t enough = 0;         ///< bytes below which no place is looked for that takes fewer
    int64_t prefetch = -1;      ///< runs that gathers start ahead; -1: as the options say
    int64_t prefetchMemory = 0; ///< bytes up to which they do; 0: as the options say
    int64_t reuseDistance = -1; ///< elements used before a next use; -1: as the options say
  };
  struct Plan {
    int64_t bytes = 0;                        ///< of the largest position's arena
    llvm::SmallVector<int64_t> positionBytes; ///< of each
    StepCost cost;
  };
  /// The plan of a step. Fails without a message where there is none.
  mlir::FailureOr<Plan> plan(const Layout &layout);

private:
  explicit Planner(mlir::OwningOpRef<mlir::ModuleOp> module) : module(std::move(module)) {}
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< its blocks are segments
};

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_SCHEDULE_PLANNER_H
