//===- PrefetchSearch.cpp - how far ahead gathers start -------------------===//

#include "dsopt/Planner/PrefetchSearch.h"

#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;

/// A step that is not shorter by that much is not shorter: predictions are not that good.
static constexpr double kLeastGain = 1e-3;
/// What is worth asking about a long step.
static constexpr double kWorthwhile = 1e-2;

/// The budget is taken in so many parts to find what gathers may fill; more than half of them.
static constexpr int64_t kParts = 32;

bool PrefetchSearch::improves(const Planner::Layout &layout, double gain) {
  FailureOr<Planner::Plan> plan = planner.plan(layout);
  isAnswered &= succeeded(plan);
  needed = 0;
  if (failed(plan) || (shortest > 0 && plan->cost.moving >= shortest * (1 - gain)))
    return false;
  needed = plan->bytes;
  if (needed > budget)
    return false;
  best = layout;
  shortest = plan->cost.moving;
  return true;
}

bool PrefetchSearch::improves(const Planner::Layout &layout) { return improves(layout, kLeastGain); }

void PrefetchSearch::leaveRoom(Planner::Layout few, int64_t microBatches) {
  Planner::Layout more = few;
  more.microBatches = std::min(few.microBatches + few.gatherWindow, microBatches);
  if (more.microBatches == few.microBatches)
    return;
  FailureOr<Planner::Plan> plan = planner.plan(more);
  isAnswered &= succeeded(plan);
  int64_t growth = failed(plan) ? 0 : std::max<int64_t>(plan->bytes - needed, 0);
  // Estimates, and so not to the last byte.
  budget =
      budget / 100 * 98 - growth * (microBatches - few.microBatches) / (more.microBatches - few.microBatches);
}

void PrefetchSearch::searchFew(Planner::Layout few, int64_t microBatches) {
  few.prefetch = 1;
  if (!improves(few)) {
    // Fewer gathers ahead do not always take fewer bytes.
    int64_t one = needed;
    few.prefetch = 0;
    improves(few);
    best.prefetch = needed > 0 && needed < one ? 0 : 1;
    return;
  }
  Planner::Layout one = few;
  few.prefetch = 2;
  if (!improves(few, kWorthwhile))
    return;
  leaveRoom(few, microBatches);
  if (needed > budget)
    best = one;
}

LogicalResult PrefetchSearch::search(ModuleOp module) {
  int64_t microBatches = options::micro_batches(module).value_or(1),
          window = options::gather_window(module).value_or(1);
  FewMicroBatches steps(module, microBatches);
  Planner::Layout layout;
  if (steps.isLong(module)) {
    std::tie(layout.microBatches, layout.gatherWindow) = steps.of(window);
    searchFew(layout, microBatches);
  } else {
    layout.microBatches = microBatches;
    layout.gatherWindow = window;
    searchAll(layout);
  }
  return success(isAnswered);
}

void PrefetchSearch::searchAll(Planner::Layout layout) {
  layout.prefetch = 0;
  best = layout;
  // What does not fit at all is refused where it is placed. Fewer gathers ahead do not always take fewer
  // bytes.
  if (!improves(layout)) {
    int64_t none = needed;
    layout.prefetch = 1;
    if (!improves(layout)) {
      best.prefetch = needed < none;
      return;
    }
  }
  do
    ++layout.prefetch;
  while (improves(layout));
  if (needed <= budget)
    return;
  furtherAhead = layout.prefetch;
  furtherBytes = needed;
  // Beside the runs that leave room: as many as fit, which more room alone does not decide.
  for (int64_t part = kParts; part > kParts / 2; --part) {
    layout.prefetchMemory = budget / kParts * part;
    if (improves(layout))
      return;
  }
}
