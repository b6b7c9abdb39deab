//===- NestKernels.cpp - kernels into a module under their target ---------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Target.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_NESTKERNELS
#include "dsopt/Conversion/Passes.h.inc"

/// The module of the target's kernels, made where there is none.
static ModuleOp findKernels(ModuleOp module, TargetAttr target) {
  for (auto nested : module.getOps<ModuleOp>())
    if (nested->getAttr(kTargetAttr) == target)
      return nested;
  SymbolTable symbols(module);
  graph::makeWay(symbols, exec::kKernelsModule);
  auto nested = ModuleOp::create(module.getLoc(), exec::kKernelsModule);
  nested->setAttr(kTargetAttr, target);
  symbols.insert(nested);
  return nested;
}

namespace {
struct NestKernels : impl::NestKernelsBase<NestKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<TargetAttr> target = getTarget(module);
    if (failed(target))
      return signalPassFailure();
    ModuleOp kernels = findKernels(module, *target);
    SymbolTable symbols(kernels);
    DenseMap<SymbolRefAttr, SymbolRefAttr> nested; ///< references by those that there were
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function->hasAttr(graph::kIterateAttr))
        continue;
      SymbolRefAttr before = FlatSymbolRefAttr::get(function);
      function->remove();
      function.setNested();
      nested[before] =
          SymbolRefAttr::get(kernels.getSymNameAttr(), FlatSymbolRefAttr::get(symbols.insert(function)));
    }
    auto find = [&](SymbolRefAttr before) {
      auto found = nested.find(before);
      return found == nested.end() ? before : found->second;
    };
    auto refer = [&](auto op) { op.setKernelAttr(find(op.getKernelAttr())); };
    WalkResult walked = module.walk([&](Operation *op) {
      if (isa<graph::KernelOp>(op)) {
        op->emitOpError("is in a function of tensors, expected segments of all that call kernels");
        return WalkResult::interrupt();
      }
      llvm::TypeSwitch<Operation *>(op).Case<exec::LaunchOp, exec::UpdateOp, exec::MapOp>(refer);
      if (graph::UpdateFunctions functions = graph::getFunctions(op); functions.kernel) {
        for (SymbolRefAttr *kernel : functions.kernels())
          if (*kernel)
            *kernel = find(*kernel);
        graph::setFunctions(op, functions);
      }
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace dsopt
