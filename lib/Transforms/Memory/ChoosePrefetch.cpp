//===- ChoosePrefetch.cpp - gathers as far ahead as pays and fits ---------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "dsopt/Transforms/Schedule/Planner.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

namespace dsopt {
#define GEN_PASS_DEF_CHOOSEPREFETCH
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// A step that is not shorter by that much is not shorter: predictions are not that good.
static constexpr double kLeastGain = 1e-3;

/// The budget is taken in so many parts to find what gathers may fill; more than half of them.
static constexpr int64_t kParts = 32;

namespace {
struct ChoosePrefetch : dsopt::impl::ChoosePrefetchBase<ChoosePrefetch> {
  void runOnOperation() override;

private:
  /// The plan of a layout that fits and is shorter than the best so far; none where it does not.
  bool improves(Planner &planner, const Planner::Layout &layout);
  void search(Planner &planner);

  int64_t budget = 0;
  Planner::Layout best;
  double shortest = 0;
  int64_t needed = 0; ///< bytes of the last one asked about that would be shorter
};
} // namespace

bool ChoosePrefetch::improves(Planner &planner, const Planner::Layout &layout) {
  FailureOr<Planner::Plan> plan = planner.plan(layout);
  needed = 0;
  if (failed(plan) || (shortest > 0 && plan->cost.moving >= shortest * (1 - kLeastGain)))
    return false;
  needed = plan->bytes;
  if (needed > budget)
    return false;
  best = layout;
  shortest = plan->cost.moving;
  return true;
}

void ChoosePrefetch::search(Planner &planner) {
  ModuleOp module = getOperation();
  Planner::Layout layout;
  layout.microBatches = getOption(module, "micro_batches", 1);
  layout.gatherWindow = getOption(module, "gather_window", 1);
  layout.prefetch = 0;
  best = layout;
  // What does not fit at all is refused where it is placed. Fewer gathers ahead do not always take fewer
  // bytes.
  if (!improves(planner, layout)) {
    int64_t none = needed;
    layout.prefetch = 1;
    if (!improves(planner, layout)) {
      best.prefetch = needed < none;
      return;
    }
  }
  do
    ++layout.prefetch;
  while (improves(planner, layout));
  if (needed <= budget)
    return;
  remark::missed(module.getLoc(), remark::RemarkOpts::name("prefetch-limited").category(kOverlapRemarks))
      << ("all gathers start " + Twine(best.prefetch) + " runs ahead: " + Twine(layout.prefetch) +
          " would need " + Twine(needed) + " bytes, more than the " + Twine(budget) +
          " that -device-memory allows")
             .str();
  // Beside the runs that leave room: as many as fit, which more room alone does not decide.
  for (int64_t part = kParts; part > kParts / 2; --part) {
    layout.prefetchMemory = budget / kParts * part;
    if (improves(planner, layout))
      return;
  }
}

void ChoosePrefetch::runOnOperation() {
  ModuleOp module = getOperation();
  if (getOption(module, "prefetch"))
    return;
  budget = getOption(module, "device_memory", 0);
  bool sliced =
      llvm::any_of(module.getOps<dist::BucketOp>(), [](dist::BucketOp bucket) { return bucket.isSliced(); });
  best = Planner::Layout();
  best.prefetch = 1;
  shortest = 0;
  if (sliced && budget > 0) {
    FailureOr<Planner> planner = Planner::create(module);
    if (failed(planner))
      return signalPassFailure();
    search(*planner);
  }
  Builder builder(module.getContext());
  setOption(module, "prefetch", builder.getI64IntegerAttr(best.prefetch));
  if (best.prefetchMemory > 0)
    setOption(module, "prefetch_memory", builder.getI64IntegerAttr(best.prefetchMemory));
}
