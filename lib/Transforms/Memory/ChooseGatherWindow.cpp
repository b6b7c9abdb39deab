//===- ChooseGatherWindow.cpp - the largest gather window that fits -------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MathExtras.h"

namespace dsopt {
#define GEN_PASS_DEF_CHOOSEGATHERWINDOW
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct ChooseGatherWindowPass : dsopt::impl::ChooseGatherWindowBase<ChooseGatherWindowPass> {
  void runOnOperation() override;

private:
  bool fits(int64_t window);
};
} // namespace

/// What follows up to the plan.
static constexpr StringLiteral kToPlan = "order-pipeline,share-gathers,place-reductions,finish-step,prefetch-"
                                         "gathers,throttle-reductions,insert-waits,plan-memory";

static void setWindow(ModuleOp module, int64_t window) {
  setOption(module, "gather_window", Builder(module.getContext()).getI64IntegerAttr(window));
}

/// Whether a copy of the module can be planned within its budget.
bool ChooseGatherWindowPass::fits(int64_t window) {
  OwningOpRef<ModuleOp> copy = getOperation().clone();
  setWindow(*copy, window);
  ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
  PassManager manager(&getContext());
  return succeeded(parsePassPipeline(kToPlan, manager)) && succeeded(manager.run(*copy));
}

void ChooseGatherWindowPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (getOption(module, "gather_window", 0) > 0)
    return;
  int64_t microBatches = getOption(module, "micro_batches", 1), window = 1;
  bool sliced = llvm::any_of(module.getOps<dist::BucketOp>(),
                             [](dist::BucketOp bucket) { return bucket.getZero() == 3; });
  if (sliced && getOption(module, "device_memory", 0) > 0) {
    // The fewest windows a step, of 1 to micro_batches, that fit.
    int64_t fewest = 1, most = microBatches;
    while (fewest < most) {
      int64_t windows = fewest + (most - fewest) / 2;
      if (fits(llvm::divideCeil(microBatches, windows)))
        most = windows;
      else
        fewest = windows + 1;
    }
    window = llvm::divideCeil(microBatches, most);
  }
  setWindow(module, window);
}
