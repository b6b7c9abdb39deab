//===- ChoosePrefetch.cpp - gathers as far ahead as pays and fits ---------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Planner/PrefetchSearch.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

namespace dsopt {
#define GEN_PASS_DEF_CHOOSEPREFETCH
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct ChoosePrefetch : dsopt::impl::ChoosePrefetchBase<ChoosePrefetch> {
  void runOnOperation() override;
};
} // namespace

void ChoosePrefetch::runOnOperation() {
  ModuleOp module = getOperation();
  if (options::prefetch(module))
    return;
  int64_t budget = options::device_memory(module);
  bool sliced =
      llvm::any_of(module.getOps<dist::BucketOp>(), [](dist::BucketOp bucket) { return bucket.isSliced(); });
  Planner::Layout best;
  best.prefetch = 1;
  if (sliced && budget > 0) {
    FailureOr<Planner> planner = Planner::create(module);
    if (failed(planner))
      return signalPassFailure();
    PrefetchSearch search(std::move(*planner), budget);
    if (failed(search.search(module)))
      return signalPassFailure();
    best = search.getBest();
    if (search.furtherBytes > 0)
      remark::missed(module.getLoc(), remark::RemarkOpts::name("prefetch-limited").category(kOverlapRemarks))
          << ("all gathers start " + Twine(search.furtherAhead - 1) +
              " runs ahead: " + Twine(search.furtherAhead) + " would need " + Twine(search.furtherBytes) +
              " bytes, more than the " + Twine(budget) + " that -device-memory allows")
                 .str();
  }
  Builder builder(module.getContext());
  setOption(module, "prefetch", builder.getI64IntegerAttr(best.prefetch));
  if (best.prefetchMemory > 0)
    setOption(module, "prefetch_memory", builder.getI64IntegerAttr(best.prefetchMemory));
}
