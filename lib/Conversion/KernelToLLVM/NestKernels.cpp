//===- NestKernels.cpp - kernels into a module of their own ---------------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_NESTKERNELS
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct NestKernels : impl::NestKernelsBase<NestKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> kernels;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(graph::kIterateAttr))
        kernels.push_back(function);
    if (kernels.empty())
      return;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto nested = ModuleOp::create(builder, module.getLoc());
    for (func::FuncOp kernel : kernels)
      kernel->moveBefore(nested.getBody(), nested.getBody()->end());
  }
};
} // namespace
} // namespace dsopt
