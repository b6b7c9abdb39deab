//===- Planner.h - what a step would take, asked as a library ---*- C++ -*-===//
//
// For passes that choose before programs are written: a module in dist form and a
// layout go in, bytes and time come out. The steps that write programs are those that
// lib/Pipeline runs as passes, so that an answer is the plan itself.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PLANNER_PLANNER_H
#define DSOPT_PLANNER_PLANNER_H

#include "dsopt/Analysis/Exec/StepCost.h"

#include "mlir/IR/OwningOpRef.h"

namespace dsopt {

/// What the pass of this name does to a module, by the module's options. Emits an error where it fails.
struct ProgramStep {
  const char *pass;
  llvm::LogicalResult (*run)(mlir::ModuleOp module);
};
/// Says what makes segments of blocks, and then, in order, programs with waits of these: what planners do to
/// their copies, whose programs they erase before they do it again. The steps are not copied.
void setProgramSteps(llvm::ArrayRef<ProgramStep> segments, llvm::ArrayRef<ProgramStep> programs);

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
  /// The plan of a step. Fails, with the error of a pass, where no step could be compiled so.
  mlir::FailureOr<Plan> plan(const Layout &layout);

private:
  explicit Planner(mlir::OwningOpRef<mlir::ModuleOp> module) : module(std::move(module)) {}
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< its blocks are segments
};

} // namespace dsopt

#endif // DSOPT_PLANNER_PLANNER_H
