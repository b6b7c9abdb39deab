//===- VerifyKernels.cpp - what holds after stage 3 -----------------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Fuse/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "dsopt/Transforms/Fuse/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct VerifyKernels : dsopt::impl::VerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override;
};
} // namespace

/// State, calls of kernels, routines, and movements that are no code.
static LogicalResult verifyBlock(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    if (!isa<graph::ReadOp, graph::AccumulateOp, graph::ConstantOp, graph::KernelOp, func::ReturnOp,
             dist::ValueCollectiveOpInterface>(op) &&
        !graph::isReadView(&op) && !graph::isWriteView(&op) && !isa<RoutineOpInterface>(op))
      return op.emitOpError("is in a block and in no kernel");
  return success();
}

/// Operations that become loops, over a range that the function says.
static LogicalResult verifyKernel(func::FuncOp function) {
  if (!function->hasAttr(graph::kRangeAttr))
    return function.emitError("is a kernel and has no ")
           << graph::kRangeAttr << ", expected what its loop runs over";
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isMemoryEffectFree(&op) || isa<RoutineOpInterface>(op) ||
        !isa<graph::ConstantOp, LowerableOpInterface>(op))
      return op.emitOpError("is in a kernel and has no code of its own there");
  return success();
}

void VerifyKernels::runOnOperation() {
  auto blocks = graph::collectBlocks(getOperation());
  if (failed(blocks))
    return signalPassFailure();
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    LogicalResult result = success();
    if (function->hasAttr(graph::kIterateAttr))
      result = verifyKernel(function);
    else if (function->hasAttr(graph::kBlockAttr) || function->hasAttr(graph::kMatrixUpdateAttr))
      result = verifyBlock(function);
    else if (!function.getBody().getOps<graph::RunOp>().empty())
      for (Operation &op : function.getBody().front().without_terminator())
        if (!isa<graph::RunOp>(op))
          result = op.emitOpError("is in no block, expected graph.run only");
    if (failed(result))
      return signalPassFailure();
  }
  markAllAnalysesPreserved();
}
