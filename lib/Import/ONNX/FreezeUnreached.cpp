//===- FreezeUnreached.cpp - parameters without a gradient -----------------===//

#include "FreezeUnreached.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dsopt;

void dsopt::onnx_import::freezeUnreached(ModuleOp module, ArrayRef<Value> results) {
  SmallVector<Value> open;
  for (Value result : results)
    if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
      open.push_back(result);
  llvm::DenseSet<Operation *> seen;
  llvm::StringSet<> reached;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second ||
        isa<graph::FloorOp, graph::CeilOp, graph::RoundOp, graph::SignOp>(op))
      continue;
    if (auto read = dyn_cast<graph::ReadOp>(op))
      reached.insert(read.getState());
    for (Value operand : op->getOperands())
      if (isa<FloatType>(getElementTypeOrSelf(operand.getType())))
        open.push_back(operand);
  }
  for (auto parameter : module.getOps<graph::ParameterOp>())
    if (!parameter.getFrozen() && !reached.contains(parameter.getSymName())) {
      parameter.setFrozen(true);
      parameter.setWhy("no gradient");
    }
}
