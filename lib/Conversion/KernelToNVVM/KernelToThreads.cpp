//===- KernelToThreads.cpp - a kernel of generics to threads --------------===//

#include "ThreadLoops.h"

#include "dsopt/Conversion/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_KERNELTOTHREADS
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct KernelToThreads : impl::KernelToThreadsBase<KernelToThreads> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      std::optional<graph::Iteration> iteration = graph::getIteration(function);
      if (iteration && !function.isExternal() && failed(emit(function, *iteration)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult emit(func::FuncOp function, graph::Iteration iteration) {
    auto range = function->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr);
    if (!range || failed(checkKernel(function, iteration, range)))
      return failure();
    int64_t threads = blockThreads(function, iteration, range.size());
    KernelEmitter emitter(function, /*reassociates=*/false);
    SharedBuffers shared(getOperation(), function);
    Builder builder(function.getContext());
    function->setAttr(gpu::GPUDialect::KnownBlockSizeAttrHelper::getNameStr(),
                      builder.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
    switch (iteration) {
    case graph::Iteration::Rows:
      return emitRowsOnThreads(emitter, range, threads, shared);
    case graph::Iteration::Columns:
      return emitColumnsOnThreads(emitter, range, threads, shared);
    case graph::Iteration::Flat:
      emitFlatOnThreads(emitter, threads);
      return success();
    }
    return failure();
  }
};
} // namespace
} // namespace dsopt
