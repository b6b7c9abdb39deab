//===- RecomputeSearch.h - how much has to run again ------------*- C++ -*-===//
#ifndef DSOPT_PLANNER_RECOMPUTESEARCH_H
#define DSOPT_PLANNER_RECOMPUTESEARCH_H

#include "dsopt/Planner/Planner.h"

#include <functional>
#include <vector>

namespace dsopt {

/// On a scale for each pipeline stage: from place 0, where nothing is computed again, to its last.
class RecomputeSearch {
public:
  using Places = std::vector<int64_t>; ///< of each stage
  using Apply = std::function<mlir::LogicalResult(mlir::ModuleOp, const Places &)>;
  /// Places apart enough to be worth a look are that many parts of a scale from each other.
  static constexpr int64_t kSteps = 16;

  /// `apply` rewrites a copy of the module, so that it computes again what places say.
  RecomputeSearch(std::vector<int64_t> lasts, Apply apply)
      : lasts(std::move(lasts)), apply(std::move(apply)) {}

  int64_t at(size_t stage, int64_t step) const { return lasts[stage] * step / kSteps; }
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

  std::vector<int64_t> lasts;
  Apply apply;
};

} // namespace dsopt

#endif // DSOPT_PLANNER_RECOMPUTESEARCH_H
