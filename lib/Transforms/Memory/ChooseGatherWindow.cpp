//===- ChooseGatherWindow.cpp - the largest gather window that fits -------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Planner/Planner.h"
#include "dsopt/Transforms/Memory/FewMicroBatches.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace dsopt {
#define GEN_PASS_DEF_CHOOSEGATHERWINDOW
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
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
  StaySearch(Planner planner, ModuleOp module, int64_t microBatches, int64_t budget)
      : planner(std::move(planner)), steps(module, microBatches), isLong(steps.isLong(module)),
        microBatches(microBatches), budget(budget) {
    for (auto bucket : module.getOps<dist::BucketOp>())
      if (bucket.isSliced()) {
        all += bucket.getElements();
        least = std::min<int64_t>(least, bucket.getElements());
      }
  }

  /// The largest window of 1 to all micro-batches that divides them into as few gathers and fits; 1 if none
  /// does.
  int64_t largestWindow() {
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

  /// The largest reuse distance up to `given` that fits, to within the smallest bucket's elements; 0 if none
  /// does.
  int64_t largestDistance(int64_t window, int64_t given) {
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
  /// One for what memory the window leaves, -1 if that is too little or the step longer for it. A long step
  /// is not asked about so many.
  int64_t worthwhileDistance(int64_t window) {
    // A window of all keeps all from forward to backward, unless it is one.
    if (isLong || (window > 1 && window == microBatches) || !fits({window}))
      return -1;
    Stay stay{window, largestDistance(window, 4 * all * microBatches)};
    bool isWorth = stay.distance > 0 &&
                   plan(steps.of(window).first, stay).moving <= plan(steps.of(window).first, {window}).moving;
    return isWorth ? stay.distance : -1;
  }

  /// Whether the planner had an answer to all that was asked; its error was emitted where not.
  bool isAnswered = true;

private:
  struct Found {
    int64_t bytes = INT64_MAX;
    double moving = 0;
  };
  const Found &plan(int64_t count, Stay stay) {
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
  /// Bytes that each further micro-batch takes, with any window: losses, statistics, and activations where a
  /// schedule runs all forwards first.
  int64_t growth(int64_t count, Stay stay) {
    if (!grows && count < microBatches) {
      int64_t more = std::min<int64_t>(count + llvm::alignTo(stay.window, steps.round), microBatches);
      grows = std::max<int64_t>(plan(more, stay).bytes - plan(count, stay).bytes, 0) / (more - count);
    }
    return grows.value_or(0);
  }
  bool fits(Stay stay) {
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

  Planner planner;
  FewMicroBatches steps;
  bool isLong;
  int64_t microBatches, budget;
  int64_t all = 0, least = INT64_MAX;                ///< elements of all and of the smallest bucket
  std::optional<int64_t> grows;                      ///< bytes for each further micro-batch, once known
  std::map<std::pair<int64_t, Stay>, Found> planned; ///< by micro-batches
};
} // namespace

namespace {
struct ChooseGatherWindow : dsopt::impl::ChooseGatherWindowBase<ChooseGatherWindow> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (options::gather_window(module).value_or(0) > 0)
      return;
    int64_t microBatches = options::micro_batches(module).value_or(1);
    int64_t budget = options::device_memory(module);
    bool sliced = llvm::any_of(module.getOps<dist::BucketOp>(),
                               [](dist::BucketOp bucket) { return bucket.isSliced(); });
    Stay stay{1, options::max_reuse_distance(module).value_or(-1)};
    if (sliced && budget > 0) {
      FailureOr<Planner> planner = Planner::create(module);
      if (failed(planner))
        return signalPassFailure();
      StaySearch search(std::move(*planner), module, microBatches, budget);
      if (stay.distance >= 0) {
        stay.distance = search.largestDistance(stay.window, stay.distance);
      } else {
        stay.window = search.largestWindow();
        stay.distance = search.worthwhileDistance(stay.window);
      }
      if (!search.isAnswered)
        return signalPassFailure();
    }
    Builder builder(module.getContext());
    setOption(module, "gather_window", builder.getI64IntegerAttr(stay.window));
    if (stay.distance >= 0)
      setOption(module, "max_reuse_distance", builder.getI64IntegerAttr(stay.distance));
  }
};
} // namespace
