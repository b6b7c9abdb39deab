//===- ChooseGatherWindow.cpp - the largest gather window that fits -------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Planner/StaySearch.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

namespace dsopt {
#define GEN_PASS_DEF_CHOOSEGATHERWINDOW
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

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
