//===- PrefetchSearch.h - how far ahead gathers start -----------*- C++ -*-===//
#ifndef DSOPT_PLANNER_PREFETCHSEARCH_H
#define DSOPT_PLANNER_PREFETCHSEARCH_H

#include "dsopt/Planner/FewMicroBatches.h"
#include "dsopt/Planner/Planner.h"

namespace dsopt {

/// As many runs ahead as fit the budget and pay.
class PrefetchSearch {
public:
  PrefetchSearch(Planner planner, int64_t budget) : planner(std::move(planner)), budget(budget) {}

  /// Looks for the best layout of a module's step. Fails where the planner has no answer, whose error was
  /// emitted.
  llvm::LogicalResult search(mlir::ModuleOp module);

  const Planner::Layout &getBest() const { return best; }
  /// Where the budget is the limit: runs ahead that would be better, and the bytes that they need; else 0.
  int64_t furtherAhead = 0, furtherBytes = 0;

private:
  /// The plan of a layout that fits and is shorter than the best so far; none where it does not.
  bool improves(const Planner::Layout &layout, double gain);
  bool improves(const Planner::Layout &layout);
  void searchAll(Planner::Layout layout);
  /// One or two runs ahead of a long step, which few micro-batches stand for.
  void searchFew(Planner::Layout few, int64_t microBatches);
  /// Takes from the budget what further micro-batches need beside those few that were just asked about.
  void leaveRoom(Planner::Layout few, int64_t microBatches);

  Planner planner;
  int64_t budget;
  Planner::Layout best;
  double shortest = 0;
  int64_t needed = 0; ///< bytes of the last one asked about that would be shorter
  bool isAnswered = true;
};

} // namespace dsopt

#endif // DSOPT_PLANNER_PREFETCHSEARCH_H
