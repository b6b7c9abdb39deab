//===- StaySearch.h - how long gathered parameters stay ---------*- C++ -*-===//
#ifndef DSOPT_PLANNER_STAYSEARCH_H
#define DSOPT_PLANNER_STAYSEARCH_H

#include "dsopt/Planner/FewMicroBatches.h"
#include "dsopt/Planner/Planner.h"

#include <map>

namespace dsopt {

/// How long gathered parameters stay.
struct Stay {
  int64_t window = 1;
  int64_t distance = -1; ///< -1: as the options say
  bool operator<(const Stay &other) const {
    return std::tie(window, distance) < std::tie(other.window, other.distance);
  }
};

/// Asks the planner about few micro-batches: a longer window holds nothing that a shorter one does not.
class StaySearch {
public:
  StaySearch(Planner planner, mlir::ModuleOp module, int64_t microBatches, int64_t budget);

  /// The largest window of 1 to all micro-batches that divides them into as few gathers and fits; 1 if none
  /// does.
  int64_t largestWindow();
  /// The largest reuse distance up to `given` that fits, to within the smallest bucket's elements; 0 if none
  /// does.
  int64_t largestDistance(int64_t window, int64_t given);
  /// One for what memory the window leaves, -1 if that is too little or the step longer for it. A long step
  /// is not asked about so many.
  int64_t worthwhileDistance(int64_t window);
  /// Whether the planner had an answer to all that was asked; its error was emitted where not.
  bool isAnswered = true;

private:
  struct Found {
    int64_t bytes = INT64_MAX;
    double moving = 0;
  };
  const Found &plan(int64_t count, Stay stay);
  /// Bytes that each further micro-batch takes, with any window: losses, statistics, and activations where a
  /// schedule runs all forwards first.
  int64_t growth(int64_t count, Stay stay);
  bool fits(Stay stay);

  Planner planner;
  FewMicroBatches steps;
  bool isLong;
  int64_t microBatches, budget;
  int64_t all = 0, least = INT64_MAX;                ///< elements of all and of the smallest bucket
  std::optional<int64_t> grows;                      ///< bytes for each further micro-batch, once known
  std::map<std::pair<int64_t, Stay>, Found> planned; ///< by micro-batches
};

} // namespace dsopt

#endif // DSOPT_PLANNER_STAYSEARCH_H
