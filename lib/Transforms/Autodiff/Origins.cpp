//===- Origins.cpp - what a value is made from ----------------------------===//

#include "Origins.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dsopt;

bool Origins::decidesBySum(Operation *op) const {
  return llvm::none_of(op->getResultTypes(),
                       [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isSum(operand); });
}

Origins::Origins(func::FuncOp function) {
  Block &body = function.front();
  for (Value argument : body.getArguments())
    origins[argument] = Origin::Input;
  for (Operation &op : body) {
    Origin origin = Origin::Activation;
    auto has = [&](Origin wanted) {
      return llvm::all_of(op.getOperands(), [&](Value operand) { return of(operand) == wanted; });
    };
    if (isa<graph::ReadOp>(op))
      origin = Origin::Parameter;
    else if (isMemoryEffectFree(&op) && has(Origin::Input) && !decidesBySum(&op))
      origin = Origin::Input;
    else if (isa<graph::ReshapeOp, graph::TransposeOp, graph::CastOp, graph::StopGradientOp>(op) &&
             has(Origin::Parameter))
      origin = Origin::Parameter;
    for (Value result : op.getResults())
      origins[result] = origin;
    if (isa<FloatSumOpInterface>(op) ||
        llvm::any_of(op.getOperands(), [&](Value operand) { return isSum(operand); }))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
          sums.insert(result);
    if (origin != Origin::Activation && !op.hasTrait<OpTrait::IsTerminator>())
      floating.insert(&op);
  }
}

void Rematerializer::localize(Operation *user, int64_t place, bool readPerUse,
                              function_ref<void(Operation *)> tag) {
  for (OpOperand &operand : user->getOpOperands())
    operand.set(clone(operand.get(), user, place, !readPerUse, tag));
}

Value Rematerializer::clone(Value value, Operation *user, int64_t place, bool shared,
                            function_ref<void(Operation *)> tag) {
  Operation *op = value.getDefiningOp();
  if (!op || !floats(op))
    return value;
  unsigned number = cast<OpResult>(value).getResultNumber();
  shared |= !isa<graph::ReadOp>(op);
  if (shared)
    if (Operation *existing = clones.lookup({op, place}))
      return existing->getResult(number);
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, clone(operand, user, place, /*shared=*/true, tag));
  Operation *copy = OpBuilder(user).clone(*op, operands);
  tag(copy);
  if (shared)
    clones[{op, place}] = copy;
  return copy->getResult(number);
}
