//===- StaySearch.cpp - how long gathered parameters stay -----------------===//

#include "dsopt/Planner/StaySearch.h"

#include "dsopt/Dialect/Dist/Dist.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dsopt;

StaySearch::StaySearch(Planner planner, ModuleOp module, int64_t microBatches, int64_t budget)
    : planner(std::move(planner)), steps(module, microBatches), isLong(steps.isLong(module)),
      microBatches(microBatches), budget(budget) {
  for (auto bucket : module.getOps<dist::BucketOp>())
    if (bucket.isSliced()) {
      all += bucket.getElements();
      least = std::min<int64_t>(least, bucket.getElements());
    }
}

int64_t StaySearch::largestWindow() {
  auto shared = [&](int64_t windows) { return int64_t(llvm::divideCeil(microBatches, windows)); };
  if (microBatches == 1 || fits({microBatches}))
    return microBatches;
  if (!fits({2}))
    return 1;
  // Of 2 to `most` windows a step the fewest that fit.
  int64_t fewest = 2, most = shared(2);
  for (int64_t windows = fewest; fewest < most; windows = fewest + (most - fewest) / 2)
    if (fits({shared(windows)}))
      most = windows;
    else
      fewest = windows + 1;
  return shared(most);
}

int64_t StaySearch::largestDistance(int64_t window, int64_t given) {
  if (fits({window, given}))
    return given;
  // Forward and backward of each micro-batch use each bucket a few times.
  int64_t low = 0, high = std::min(given, 4 * all * microBatches);
  while (high - low > least) {
    int64_t middle = low + (high - low) / 2;
    (fits({window, middle}) ? low : high) = middle;
  }
  return low;
}

int64_t StaySearch::worthwhileDistance(int64_t window) {
  // A window of all keeps all from forward to backward, unless it is one.
  if (isLong || (window > 1 && window == microBatches) || !fits({window}))
    return -1;
  Stay stay{window, largestDistance(window, 4 * all * microBatches)};
  bool isWorth = stay.distance > 0 &&
                 plan(steps.of(window).first, stay).moving <= plan(steps.of(window).first, {window}).moving;
  return isWorth ? stay.distance : -1;
}

const StaySearch::Found &StaySearch::plan(int64_t count, Stay stay) {
  auto [known, isNew] = planned.try_emplace({count, stay});
  if (!isNew)
    return known->second;
  Planner::Layout layout{count, stay.window};
  layout.reuseDistance = stay.distance;
  if (FailureOr<Planner::Plan> plan = planner.plan(layout); succeeded(plan))
    known->second = {plan->bytes, plan->cost.moving};
  else
    isAnswered = false;
  return known->second;
}

int64_t StaySearch::growth(int64_t count, Stay stay) {
  if (!grows && count < microBatches) {
    int64_t more = std::min<int64_t>(count + llvm::alignTo(stay.window, steps.round), microBatches);
    grows = std::max<int64_t>(plan(more, stay).bytes - plan(count, stay).bytes, 0) / (more - count);
  }
  return grows.value_or(0);
}

bool StaySearch::fits(Stay stay) {
  auto [count, window] = steps.of(stay.window);
  Stay shorter{window, stay.distance};
  int64_t bytes = plan(count, shorter).bytes;
  if (bytes > budget)
    return false;
  if (bytes + growth(count, shorter) * (microBatches - count) <= budget / 100 * 98)
    return true;
  // What only just fits is planned whole.
  return plan(microBatches, stay).bytes <= budget;
}
