//===- ProductToLoops.cpp - a product's kernel to loops -------------------===//

#include "ProductEmitter.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_PRODUCTTOLOOPS
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct ProductToLoops : impl::ProductToLoopsBase<ProductToLoops> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (auto product = function->getAttrOfType<exec::ProductAttr>(exec::kProductAttr);
        product && function.isExternal() && failed(lower(function, product)))
      signalPassFailure();
  }

private:
  LogicalResult lower(func::FuncOp function, exec::ProductAttr product) {
    FailureOr<TargetAttr> target = getTarget(function->getParentOfType<ModuleOp>());
    if (failed(target))
      return failure();
    if (!isCompiled(product, *target))
      return function.emitError("is the kernel of ")
             << product << " for " << target->getArch() << ", expected one that compile-products compiles";
    exec::BlockingAttr choice = blockingOf(function, product, *target);
    if (std::string problem = problemOf(product, *target, choice); !problem.empty())
      return function.emitError("is the kernel of ")
             << product << " for " << target->getArch() << ", cut by " << choice << ": " << problem;
    bool packs = function->hasAttr(exec::kPacksAttr);
    FunctionType type = packs ? typeOfPackingKernel(product, *target) : typeOfProductKernel(product, *target);
    Blocking blocking(product, *target, choice);
    int64_t work = packs ? blocking.columns.extent() : blocking.range();
    auto range = function->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr);
    if (function.getFunctionType() != type || !range || range.asArrayRef() != ArrayRef(work))
      return function.emitError("is the kernel of a product with type ")
             << function.getFunctionType() << ", expected " << type << " and a range of " << work;
    ProductEmitter emitter(function, product, blocking, packs);
    packs ? emitter.emitPacking() : emitter.emit();
    // An addend may be where the result is to be.
    if (!product.getAddend())
      for (unsigned i = 2; i < type.getNumInputs(); ++i)
        function.setArgAttr(i, "llvm.noalias", UnitAttr::get(&getContext()));
    return success();
  }
};
} // namespace
} // namespace dsopt
