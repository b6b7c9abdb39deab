//===- GraphDerivatives.cpp - gradients: registration, building blocks ----===//

#include "GraphDerivatives.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Derivatives.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dsopt::graph {

Value GradientBuilder::scalar(double value, Value like) {
  return scalarConstant(builder, op->getLoc(), getElementTypeOrSelf(like), value);
}

Value GradientBuilder::sum(Value a, ArrayRef<int64_t> axes, bool keepdims) {
  return make<ReduceSumOp>(a, axes, keepdims);
}

Value GradientBuilder::mean(Value a, ArrayRef<int64_t> axes, bool keepdims) {
  return make<ReduceMeanOp>(a, axes, keepdims);
}

Value GradientBuilder::reshape(Value a, Type type) {
  return a.getType() == type ? a : make<ReshapeOp>(type, a);
}

Value GradientBuilder::expand(Value a, Type type) {
  return a.getType() == type ? a : make<ExpandOp>(type, a);
}

SmallVector<Value> GradientBuilder::inlined(Block &block, ValueRange arguments) {
  IRMapping values;
  values.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator())
    builder.clone(inner, values);
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return values.lookup(value); });
}

Value GradientBuilder::sumTo(Value a, Type type) {
  if (a.getType() == type)
    return a;
  auto from = cast<ShapedType>(a.getType());
  auto to = cast<ShapedType>(type);
  // A gradient smaller than the operand: the rule left the broadcast to us.
  if (from.getNumElements() < to.getNumElements())
    return expand(a, type);
  int64_t extra = from.getRank() - to.getRank();
  SmallVector<int64_t> axes;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (i < extra || (to.getDimSize(i - extra) == 1 && from.getDimSize(i) != 1))
      axes.push_back(i);
  // Leading dimensions of size 1 vanish by the reshape alone.
  llvm::erase_if(axes, [&](int64_t axis) { return from.getDimSize(axis) == 1; });
  if (!axes.empty())
    a = sum(a, axes, /*keepdims=*/false);
  return reshape(a, type);
}

void registerDerivatives(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    attachElementwiseDerivatives(context);
    attachShapeDerivatives(context);
    attachNNDerivatives(context);
    attachWindowDerivatives(context);
    attachAttentionDerivative(context);
    attachGivenDerivatives(context);
  });
}

} // namespace dsopt::graph
