//===- KernelToLoops.cpp - a kernel of generics to one loop ---------------===//

#include "KernelEmitter.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_KERNELTOLOOPS
#include "dsopt/Conversion/Passes.h.inc"

LogicalResult checkKernel(func::FuncOp function, graph::Iteration iteration, ArrayRef<int64_t> range) {
  bool sums = false;
  for (Operation &op : function.front().without_terminator()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    SmallVector<int64_t> loops = generic.getStaticLoopRanges();
    sums |= generic.getNumReductionLoops() != 0;
    ArrayRef<int64_t> outer = iteration == graph::Iteration::Rows ? ArrayRef(loops).take_front(range.size())
                                                                  : ArrayRef(loops).take_back(range.size());
    if (outer != range)
      return function.emitError("has a kernel over [")
             << range << "], but an operation over [" << loops << "]";
  }
  for (Value value : function.front().getTerminator()->getOperands())
    if (!value.getDefiningOp<linalg::GenericOp>())
      return function.emitError("returns what no operation of the kernel computes");
  if (iteration == graph::Iteration::Columns && !sums)
    return function.emitError("runs over columns without a sum");
  return success();
}

namespace {
struct KernelToLoops : impl::KernelToLoopsBase<KernelToLoops> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    std::optional<graph::Iteration> iteration = graph::getIteration(function);
    if (!iteration || function.isExternal())
      return;
    auto range = function->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr);
    if (!range || failed(checkKernel(function, *iteration, range)))
      return signalPassFailure();
    KernelEmitter emitter(function, /*reassociates=*/*iteration == graph::Iteration::Rows);
    switch (*iteration) {
    case graph::Iteration::Rows:
      return emitRows(emitter, range);
    case graph::Iteration::Columns:
      return emitColumns(emitter, range);
    case graph::Iteration::Flat:
      return emitFlat(emitter);
    }
  }
};
} // namespace
} // namespace dsopt
