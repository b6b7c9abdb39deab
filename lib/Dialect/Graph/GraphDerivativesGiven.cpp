//===- GraphDerivativesGiven.cpp - gradients that the model itself decides ===//

#include "GraphDerivatives.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

LogicalResult gradient(StopGradientOp, GradientBuilder &) { return success(); }

LogicalResult gradient(CustomGradientOp op, GradientBuilder &g) {
  Block &backward = op.getBackward().front();
  SmallVector<Value> arguments(op.getSaved());
  for (OpResult result : op.getResults())
    if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
      arguments.push_back(g.grad(result.getResultNumber()) ? g.grad(result.getResultNumber())
                                                           : g.expand(g.scalar(0, result), result.getType()));
  SmallVector<Value> gradients = g.inlined(backward, arguments);
  for (auto [i, value] : llvm::enumerate(gradients))
    if (g.needs(i))
      g.set(i, value);
  return success();
}

} // namespace

void attachGivenDerivatives(MLIRContext *context) {
  attachDerivative<StopGradientOp, gradient>(context);
  attachDerivative<CustomGradientOp, gradient>(context);
}

} // namespace dsopt::graph
