//===- LowerHostKernels.cpp - the host's kernels to LLVM ------------------===//

#include "dsopt/Interfaces/Target.h"
#include "dsopt/Target/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace dsopt {
#define GEN_PASS_DEF_LOWERHOSTKERNELS
#include "dsopt/Target/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct LowerHostKernels : dsopt::impl::LowerHostKernelsBase<LowerHostKernels> {
  void getDependentDialects(DialectRegistry &registry) const override {
    passes().getDependentDialects(registry);
  }
  void runOnOperation() override {
    OpPassManager lower = passes();
    for (auto nested : getOperation().getOps<ModuleOp>())
      if (auto target = nested->getAttrOfType<TargetAttr>(kTargetAttr);
          target && target.getKind() == TargetKind::CPU && failed(runPipeline(lower, nested)))
        return signalPassFailure();
  }

private:
  static OpPassManager passes() {
    OpPassManager manager(ModuleOp::getOperationName());
    if (failed(parsePassPipeline("lower-kernels-like-devices", manager)))
      llvm::report_fatal_error("lower-kernels-like-devices is not registered");
    return manager;
  }
};
} // namespace
