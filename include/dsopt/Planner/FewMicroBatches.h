//===- FewMicroBatches.h - steps that stand for longer ones -----*- C++ -*-===//
//
// Once every stage has begun, a step repeats itself: the planner is asked about few
// micro-batches in place of all of them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PLANNER_FEWMICROBATCHES_H
#define DSOPT_PLANNER_FEWMICROBATCHES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"

#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace dsopt {

struct FewMicroBatches {
  FewMicroBatches(mlir::ModuleOp module, int64_t microBatches)
      : all(microBatches), stages(dist::getGrid(module).size(Axis::pp)), settled(stages + 1),
        schedule(getPipelineSchedule(options::schedule(module))) {
    // Shards are added along a tree, whose height all of them decide.
    int64_t dp = dist::getGrid(module).dataParallel();
    if (options::reduction_shards(module).value_or(dp) != dp)
      settled = all;
    // Stages that have several chunks of blocks begin with more, and go by rounds of them.
    if (llvm::any_of(module.getOps<mlir::func::FuncOp>(),
                     [](mlir::func::FuncOp function) { return function->hasAttr(dist::kChunkAttr); })) {
      round = stages;
      settled = std::max(settled, 2 * round + 1);
    }
  }

  /// So many micro-batches and a window that stand for all of them and this one: two windows at least, each
  /// of no more than it takes to settle.
  std::pair<int64_t, int64_t> of(int64_t window) const {
    window = std::min(window, settled);
    int64_t count = std::min<int64_t>(llvm::alignTo(llvm::alignTo(settled, window) + window, round), all);
    // Some schedules take certain numbers alone.
    bool isTaken = !schedule.refuse || schedule.refuse(stages, count, {}).empty();
    return {isTaken ? count : all, window};
  }

  /// Whether a step runs blocks so often that few micro-batches are asked about even where the answer is then
  /// an estimate. All of a step of fewer runs are planned in a tenth of a second.
  bool isLong(mlir::ModuleOp module) const {
    constexpr int64_t kLongStep = 4096;
    int64_t runs = 0;
    for (mlir::func::FuncOp function : module.getOps<mlir::func::FuncOp>())
      if (!function.isExternal() && !function->hasAttr(exec::kVariantAttr))
        runs += llvm::range_size(function.getBody().getOps<graph::RunOp>());
    return runs * all > kLongStep;
  }

  int64_t all, stages;
  int64_t settled;   ///< micro-batches until a step repeats itself
  int64_t round = 1; ///< micro-batches that a schedule takes together
  PipelineSchedule schedule;
};

} // namespace dsopt

#endif // DSOPT_PLANNER_FEWMICROBATCHES_H
