//===- GraphMetrics.cpp - what only metrics need --------------------------===//

#include "dsopt/Dialect/Graph/Metrics.h"

using namespace mlir;
using namespace dsopt;

llvm::DenseSet<Operation *> graph::measuringOnly(func::FuncOp function) {
  Operation *terminator = function.front().getTerminator();
  llvm::DenseSet<Operation *> needed;
  for (OpOperand &operand : terminator->getOpOperands())
    if (unsigned result = operand.getOperandNumber();
        !function.getResultAttr(result, kMetricAttr) && !function.getResultAttr(result, kOutputAttr))
      if (Operation *op = operand.get().getDefiningOp())
        needed.insert(op);
  llvm::DenseSet<Operation *> measuring;
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    bool hasEffect = !isMemoryEffectFree(&op) && !isa<ReadOp>(op);
    if (!needed.contains(&op) && !hasEffect) {
      measuring.insert(&op);
      continue;
    }
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp())
        needed.insert(source);
  }
  return measuring;
}
