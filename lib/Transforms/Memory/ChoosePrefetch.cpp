//===- ChoosePrefetch.cpp - gathers as far ahead as pays and fits ---------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Planner/Planner.h"
#include "dsopt/Transforms/Memory/FewMicroBatches.h"
#include "dsopt/Transforms/Memory/Passes.h"
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
/// What is worth asking about a long step.
static constexpr double kWorthwhile = 1e-2;

/// The budget is taken in so many parts to find what gathers may fill; more than half of them.
static constexpr int64_t kParts = 32;

namespace {
struct ChoosePrefetch : dsopt::impl::ChoosePrefetchBase<ChoosePrefetch> {
  void runOnOperation() override;

private:
  /// The plan of a layout that fits and is shorter than the best so far; none where it does not.
  bool improves(Planner &planner, const Planner::Layout &layout, double gain = kLeastGain);
  void search(Planner &planner);
  /// One or two runs ahead of a long step, which few micro-batches stand for.
  void searchFew(Planner &planner, Planner::Layout few, int64_t microBatches);
  /// Takes from the budget what further micro-batches need beside those few that were just asked about.
  void leaveRoom(Planner &planner, Planner::Layout few, int64_t microBatches);

  int64_t budget = 0;
  Planner::Layout best;
  double shortest = 0;
  bool isAnswered = true; ///< whether the planner had an answer each time; its error was emitted where not
  int64_t needed = 0;     ///< bytes of the last one asked about that would be shorter
};
} // namespace

bool ChoosePrefetch::improves(Planner &planner, const Planner::Layout &layout, double gain) {
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

void ChoosePrefetch::leaveRoom(Planner &planner, Planner::Layout few, int64_t microBatches) {
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

void ChoosePrefetch::searchFew(Planner &planner, Planner::Layout few, int64_t microBatches) {
  few.prefetch = 1;
  if (!improves(planner, few)) {
    // Fewer gathers ahead do not always take fewer bytes.
    int64_t one = needed;
    few.prefetch = 0;
    improves(planner, few);
    best.prefetch = needed > 0 && needed < one ? 0 : 1;
    return;
  }
  Planner::Layout one = few;
  few.prefetch = 2;
  if (!improves(planner, few, kWorthwhile))
    return;
  leaveRoom(planner, few, microBatches);
  if (needed > budget)
    best = one;
}

void ChoosePrefetch::search(Planner &planner) {
  ModuleOp module = getOperation();
  Planner::Layout layout;
  int64_t microBatches = options::micro_batches(module).value_or(1),
          window = options::gather_window(module).value_or(1);
  FewMicroBatches steps(module, microBatches);
  if (steps.isLong(module)) {
    std::tie(layout.microBatches, layout.gatherWindow) = steps.of(window);
    return searchFew(planner, layout, microBatches);
  }
  layout.microBatches = microBatches;
  layout.gatherWindow = window;
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
  if (options::prefetch(module))
    return;
  budget = options::device_memory(module);
  bool sliced =
      llvm::any_of(module.getOps<dist::BucketOp>(), [](dist::BucketOp bucket) { return bucket.isSliced(); });
  best = Planner::Layout();
  best.prefetch = 1;
  shortest = 0;
  if (sliced && budget > 0) {
    FailureOr<Planner> planner = Planner::create(module);
    if (failed(planner))
      return signalPassFailure();
    isAnswered = true;
    search(*planner);
    if (!isAnswered)
      return signalPassFailure();
  }
  Builder builder(module.getContext());
  setOption(module, "prefetch", builder.getI64IntegerAttr(best.prefetch));
  if (best.prefetchMemory > 0)
    setOption(module, "prefetch_memory", builder.getI64IntegerAttr(best.prefetchMemory));
}
