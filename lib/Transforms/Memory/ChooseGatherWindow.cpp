//===- ChooseGatherWindow.cpp - the largest gather window that fits -------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Memory/FewMicroBatches.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "dsopt/Transforms/Schedule/Planner.h"
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
/// Asks the planner about few micro-batches: a longer window holds nothing that a shorter one does not.
class WindowSearch {
public:
  WindowSearch(Planner planner, ModuleOp module, int64_t microBatches, int64_t budget)
      : planner(std::move(planner)), steps(module, microBatches), microBatches(microBatches), budget(budget) {
  }

  /// The largest window of 1 to all micro-batches that divides them into as few gathers and fits; 1 if none
  /// does.
  int64_t largest() {
    if (microBatches == 1 || fits(microBatches))
      return microBatches;
    if (!fits(2))
      return 1;
    // Of 2 to `most` windows a step the fewest that fit.
    int64_t fewest = 2, most = llvm::divideCeil(microBatches, 2);
    for (int64_t windows = fewest; fewest < most; windows = fewest + (most - fewest) / 2)
      if (fits(llvm::divideCeil(microBatches, windows)))
        most = windows;
      else
        fewest = windows + 1;
    return llvm::divideCeil(microBatches, most);
  }

private:
  int64_t bytes(int64_t count, int64_t window) {
    auto [known, isNew] = planned.try_emplace({count, window}, INT64_MAX);
    if (isNew)
      if (FailureOr<Planner::Plan> plan = planner.plan({count, window}); succeeded(plan))
        known->second = plan->bytes;
    return known->second;
  }
  /// Bytes that each further micro-batch takes, with any window: losses, statistics, and activations where a
  /// schedule runs all forwards first.
  int64_t growth(int64_t count, int64_t window) {
    if (!grows && count < microBatches) {
      int64_t more = std::min<int64_t>(count + llvm::alignTo(window, steps.round), microBatches);
      grows = std::max<int64_t>(bytes(more, window) - bytes(count, window), 0) / (more - count);
    }
    return grows.value_or(0);
  }
  bool fits(int64_t window) {
    auto [count, shorter] = steps.of(window);
    int64_t least = bytes(count, shorter);
    if (least > budget)
      return false;
    // What only just fits is planned whole.
    return least + growth(count, shorter) * (microBatches - count) <= budget / 100 * 98 ||
           bytes(microBatches, window) <= budget;
  }

  Planner planner;
  FewMicroBatches steps;
  int64_t microBatches, budget;
  std::optional<int64_t> grows;                           ///< bytes for each further micro-batch, once known
  std::map<std::pair<int64_t, int64_t>, int64_t> planned; ///< bytes, by micro-batches and window
};
} // namespace

/// The largest reuse distance up to the one given that fits, to within the smallest bucket's elements.
static int64_t largestDistance(Planner &planner, ModuleOp module, int64_t microBatches, int64_t budget) {
  auto fits = [&](int64_t distance) {
    Planner::Layout layout{microBatches, /*gatherWindow=*/1};
    layout.reuseDistance = distance;
    FailureOr<Planner::Plan> plan = planner.plan(layout);
    return succeeded(plan) && plan->bytes <= budget;
  };
  int64_t given = getOption(module, "max_reuse_distance", 0), all = 0, least = INT64_MAX;
  for (auto bucket : module.getOps<dist::BucketOp>())
    if (bucket.isSliced()) {
      all += bucket.getElements();
      least = std::min<int64_t>(least, bucket.getElements());
    }
  if (fits(given))
    return given;
  // Forward and backward of each micro-batch use each bucket a few times.
  int64_t low = 0, high = std::min(given, 4 * all * microBatches);
  while (high - low > least) {
    int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

namespace {
struct ChooseGatherWindow : dsopt::impl::ChooseGatherWindowBase<ChooseGatherWindow> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (getOption(module, "gather_window", 0) > 0)
      return;
    int64_t microBatches = getOption(module, "micro_batches", 1), window = 1;
    int64_t budget = getOption(module, "device_memory", 0);
    bool sliced = llvm::any_of(module.getOps<dist::BucketOp>(),
                               [](dist::BucketOp bucket) { return bucket.isSliced(); });
    int64_t distance = getOption(module, "max_reuse_distance", -1);
    if (sliced && budget > 0) {
      FailureOr<Planner> planner = Planner::create(module);
      if (failed(planner))
        return signalPassFailure();
      if (distance < 0)
        window = WindowSearch(std::move(*planner), module, microBatches, budget).largest();
      else
        setOption(module, "max_reuse_distance",
                  Builder(module.getContext())
                      .getI64IntegerAttr(largestDistance(*planner, module, microBatches, budget)));
    }
    setOption(module, "gather_window", Builder(module.getContext()).getI64IntegerAttr(window));
  }
};
} // namespace
