//===- ChooseGatherWindow.cpp - the largest gather window that fits -------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "dsopt/Transforms/Schedule/Planner.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace dsopt {
#define GEN_PASS_DEF_CHOOSEGATHERWINDOW
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// Fewer micro-batches that need as much memory as all of them: a step repeats itself once every stage has
/// begun, by windows. All of them where shards are added along a tree whose height they decide.
static int64_t enoughMicroBatches(ModuleOp module, int64_t microBatches, int64_t window) {
  int64_t dp = getOption(module, "dp", 1);
  if (getOption(module, "reduction_shards", dp) != dp)
    return microBatches;
  int64_t few = llvm::alignTo(2 * getOption(module, "pp", 1) + window, window) + microBatches % window;
  return std::min(few, microBatches);
}

/// The fewest windows a step, of 1 to micro_batches, whose plan is within the budget; all if none is.
static FailureOr<int64_t> fewestWindows(ModuleOp module, int64_t microBatches, int64_t budget) {
  FailureOr<Planner> planner = Planner::create(module);
  if (failed(planner))
    return failure();
  std::map<std::pair<int64_t, int64_t>, int64_t> planned; ///< bytes, by micro-batches and window
  auto bytes = [&](int64_t windows, bool all) {
    int64_t window = llvm::divideCeil(microBatches, windows);
    int64_t count = all ? microBatches : enoughMicroBatches(module, microBatches, window);
    auto [known, isNew] = planned.try_emplace({count, window}, INT64_MAX);
    if (!isNew)
      return known->second;
    if (FailureOr<Planner::Plan> plan = planner->plan({count, window}); succeeded(plan))
      known->second = plan->bytes;
    return known->second;
  };
  int64_t fewest = 1, most = microBatches;
  while (fewest < most) {
    int64_t windows = fewest + (most - fewest) / 2;
    if (bytes(windows, /*all=*/false) <= budget)
      most = windows;
    else
      fewest = windows + 1;
  }
  // Losses and statistics are kept for every micro-batch: what only just fits is planned whole.
  while (most < microBatches && bytes(most, false) > budget / 100 * 98 && bytes(most, true) > budget)
    ++most;
  return most;
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
    if (sliced && budget > 0) {
      FailureOr<int64_t> windows = fewestWindows(module, microBatches, budget);
      if (failed(windows))
        return signalPassFailure();
      window = llvm::divideCeil(microBatches, *windows);
    }
    setOption(module, "gather_window", Builder(module.getContext()).getI64IntegerAttr(window));
  }
};
} // namespace
