//===- LowerKernels.cpp - the passes from kernels to LLVM functions -------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_LOWERKERNELS
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct LowerKernels : impl::LowerKernelsBase<LowerKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> kernels;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(graph::kIterateAttr))
        kernels.push_back(function);
    if (kernels.empty())
      return;

    // In a module of their own meanwhile, so that nothing else is converted.
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto own = ModuleOp::create(builder, module.getLoc());
    for (func::FuncOp kernel : kernels)
      kernel->moveBefore(own.getBody(), own.getBody()->end());
    OpPassManager passes(ModuleOp::getOperationName());
    OpPassManager &functions = passes.nest<func::FuncOp>();
    functions.addPass(createGraphToLinalg());
    functions.addPass(createKernelToLoops());
    functions.addPass(createCanonicalizerPass());
    functions.addPass(createCSEPass());
    functions.addPass(createApproximateMath());
    functions.addPass(createCSEPass());
    functions.addPass(createSCFToControlFlowPass());
    functions.addPass(createConvertMathToLLVMPass());
    // What LLVM has no intrinsic for.
    passes.addPass(createConvertMathToLibmPass());
    passes.addPass(createKernelToLLVM());
    passes.addPass(createReconcileUnrealizedCastsPass());
    if (failed(runPipeline(passes, own)))
      return signalPassFailure();

    SymbolTable symbols(module);
    for (Operation &op : llvm::make_early_inc_range(*own.getBody())) {
      op.remove();
      // Declarations of libm's functions may be there already.
      auto name = SymbolTable::getSymbolName(&op);
      graph::makeWay(symbols, name);
      if (op.getNumRegions() && op.getRegion(0).empty() && symbols.lookup(name))
        op.destroy();
      else
        symbols.insert(&op);
    }
    own.erase();
  }
};
} // namespace
} // namespace dsopt
