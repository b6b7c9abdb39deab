//===- GraphBranch.cpp - parameters that a step may not reach --------------===//

#include "dsopt/Dialect/Graph/Branch.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphBranchOps.cpp.inc"

std::optional<SmallVector<OptimizerState>> graph::branchStates(Operation *update) {
  if (isa<AdamOp>(update))
    return SmallVector<OptimizerState>{{"steps", getElementTypeOrSelf(update->getResult(1).getType())}};
  if (isa<SgdOp, MomentumOp, LionOp, AdagradOp>(update))
    return SmallVector<OptimizerState>();
  return std::nullopt;
}

BranchUpdateOp graph::buildBranchUpdate(OpBuilder &builder, Operation *update, ValueRange states) {
  OperandRange operands = update->getOperands();
  SmallVector<Value> kept(operands.drop_front(2).drop_back());
  llvm::append_range(kept, states);
  auto adam = dyn_cast<AdamOp>(update);
  return BranchUpdateOp::create(builder, update->getLoc(), operands[0].getType(), ValueRange(kept).getTypes(),
                                update->getName().stripDialect(), operands[0], operands[1], kept,
                                operands.back(), adam && adam.getDecoupled(), UpdateFunctionsAttr());
}

LogicalResult BranchUpdateOp::verify() {
  static const std::pair<StringRef, size_t> rules[] = {
      {"sgd", 0}, {"momentum", 1}, {"lion", 1}, {"adagrad", 1}, {"adam", 3}};
  const auto *found = llvm::find_if(rules, [&](auto &rule) { return rule.first == getRule(); });
  if (found == std::end(rules))
    return emitOpError("has rule '") << getRule() << "', expected sgd, momentum, lion, adagrad or adam";
  if (getStates().size() != found->second || getNewStates().size() != found->second)
    return emitOpError("of rule '") << getRule() << "' has " << getStates().size() << " states and "
                                    << getNewStates().size() << " new ones, expected " << found->second;
  return success();
}
