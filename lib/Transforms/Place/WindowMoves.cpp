//===- WindowMoves.cpp - where shards of convolutions share and add -------===//

#include "WindowMoves.h"

using namespace mlir;
using namespace dsopt;

/// Whether an operation moves elements of one value alone.
static bool moves(Operation *op) {
  return isa_and_nonnull<graph::ReshapeOp, graph::TransposeOp, graph::WindowsOp, graph::WindowsSumOp>(op);
}

bool dsopt::hasWindows(Value value) {
  Operation *op = value.getDefiningOp();
  while (moves(op) && !isa<graph::WindowsOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<graph::WindowsOp>(op);
}

Value dsopt::sharedSource(Value value) {
  while (hasWindows(value))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

SmallVector<Operation *> dsopt::windowsSumBehind(Operation *op) {
  SmallVector<Operation *> all, known;
  for (Operation *last = op; last->getNumResults() == 1 && last->getResult(0).hasOneUse();) {
    last = *last->getResult(0).user_begin();
    if (!moves(last) || last->getAttr(graph::kBlockAttr) != op->getAttr(graph::kBlockAttr))
      break;
    all.push_back(last);
    if (isa<graph::WindowsSumOp>(last))
      known = all;
  }
  return known;
}
