//===- RecomputeScale.h - how much of a model runs again --------*- C++ -*-===//
//
// How much each block computes again is one of few levels, from nothing to all that
// saves bytes. Within a pipeline stage they rise block by block, the first first: it
// keeps its values for longest. So one number a stage says all of it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_MEMORY_RECOMPUTESCALE_H
#define DSOPT_TRANSFORMS_MEMORY_RECOMPUTESCALE_H

#include "dsopt/Planner/RecomputeSearch.h"

namespace dsopt {

class RecomputeScale {
public:
  /// Places on the scale, one of each pipeline stage: `level * blocks + first blocks with one level more`.
  using Places = RecomputeSearch::Places;

  /// The levels of a module in dist form. Fails with a message where an operation's cost is unknown.
  static mlir::FailureOr<RecomputeScale> create(mlir::ModuleOp module);

  size_t stages() const { return blocksOf.size(); }
  /// The place of most that a stage can compute again.
  int64_t last(size_t stage) const { return (int64_t(rates.size()) - 1) * blocksOf[stage]; }
  /// Rewrites a module, that of `create` or a copy of it.
  mlir::LogicalResult apply(mlir::ModuleOp module, const Places &places) const;
  /// Looks for places by asking the planner. The scale has to outlive it.
  RecomputeSearch search() const;

private:
  std::vector<double> rates;     ///< bytes that a flop may save at least, by level; level 0 is none
  std::vector<int64_t> blocksOf; ///< that may run again, by stage
};

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_MEMORY_RECOMPUTESCALE_H
