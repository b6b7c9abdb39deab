//===- UnnestKernels.cpp - what kernels have become, beside segments ------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_UNNESTKERNELS
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct UnnestKernels : impl::UnnestKernelsBase<UnnestKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto nested : llvm::make_early_inc_range(module.getOps<ModuleOp>())) {
      for (Operation &op : llvm::make_early_inc_range(*nested.getBody())) {
        if (!isa<LLVM::LLVMFuncOp, LLVM::GlobalOp>(op)) {
          op.emitOpError("is left among the kernels, expected functions and constants of the LLVM dialect");
          return signalPassFailure();
        }
        op.remove();
        // Declarations of libm's functions may be there already.
        auto name = SymbolTable::getSymbolName(&op);
        graph::makeWay(symbols, name);
        if (op.getNumRegions() && op.getRegion(0).empty() && symbols.lookup(name))
          op.destroy();
        else
          symbols.insert(&op);
      }
      nested.erase();
    }
  }
};
} // namespace
} // namespace dsopt
