//===- RecomputeScale.h - how much of a model runs again --------*- C++ -*-===//
//
// How much each block computes again is one of few levels, from nothing to all that
// saves bytes. Within a pipeline stage they rise block by block, the first first: it
// keeps its values for longest. So one number a stage says all of it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_MEMORY_RECOMPUTESCALE_H
#define DSOPT_TRANSFORMS_MEMORY_RECOMPUTESCALE_H

#include "dsopt/Planner/Planner.h"

#include <vector>

namespace dsopt {

class RecomputeScale {
public:
  /// Places on the scale, one of each pipeline stage: `level * blocks + first blocks with one level more`.
  using Places = std::vector<int64_t>;
  /// Places apart enough to be worth a look are that many parts of a scale from each other.
  static constexpr int64_t kSteps = 16;

  /// The levels of a module in dist form. Fails with a message where an operation's cost is unknown.
  static mlir::FailureOr<RecomputeScale> create(mlir::ModuleOp module);

  size_t stages() const { return blocksOf.size(); }
  /// The place of most that a stage can compute again.
  int64_t last(size_t stage) const { return (int64_t(rates.size()) - 1) * blocksOf[stage]; }
  int64_t at(size_t stage, int64_t step) const { return last(stage) * step / kSteps; }
  /// Rewrites a module, that of `create` or a copy of it.
  mlir::LogicalResult apply(mlir::ModuleOp module, const Places &places) const;
  /// What a step takes there, with a gather window as the options say, else of 1. Fails with a message
  /// where there is no plan. No place is looked for that takes less than `enough` bytes.
  mlir::FailureOr<Planner::Plan> plan(mlir::ModuleOp module, const Places &places, int64_t enough) const;

  /// For each stage the lowest place found at which it takes at most `budget` bytes; that of the fewest bytes
  /// where there is none. Asks for few of all places: a higher one may take more, too, since what runs again
  /// needs bytes while it does. Of a long step few places of few micro-batches are asked about, and all
  /// micro-batches at the end.
  mlir::FailureOr<Places> fewest(mlir::ModuleOp module, int64_t budget) const;

private:
  using Bytes = llvm::SmallVector<int64_t>;
  /// Searches where `bytesOf` says what each stage takes; fails where it does.
  mlir::FailureOr<Places> search(int64_t budget, bool halves,
                                 llvm::function_ref<mlir::FailureOr<Bytes>(const Places &)> bytesOf) const;
  /// What each stage takes, by how it grows from few micro-batches to a few more.
  mlir::FailureOr<Bytes> estimate(mlir::ModuleOp module, const Places &places, int64_t enough) const;

  std::vector<double> rates;     ///< bytes that a flop may save at least, by level; level 0 is none
  std::vector<int64_t> blocksOf; ///< that may run again, by stage
};

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_MEMORY_RECOMPUTESCALE_H
