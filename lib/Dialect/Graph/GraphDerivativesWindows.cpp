//===- GraphDerivativesWindows.cpp - gradients of windows and scatters ----===//

#include "GraphDerivatives.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

LogicalResult gradient(WindowsOp op, GradientBuilder &g) {
  g.set(0, g.make<WindowsSumOp>(op.getInput().getType(), g.grad(), op.getAxis(), op.getStrides(),
                                op.getDilations(), op.getLows()));
  return success();
}
LogicalResult gradient(WindowsSumOp op, GradientBuilder &g) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  size_t axis = op.getAxis(), count = op.getStrides().size();
  g.set(0, g.make<WindowsOp>(g.grad(), op.getAxis(), type.getShape().slice(axis, count),
                             type.getShape().slice(axis + count, count), op.getStrides(), op.getDilations(),
                             op.getLows(), cast<TypedAttr>(FloatAttr::get(type.getElementType(), 0.0))));
  return success();
}

/// Rows that are set take nothing from the data; sums take all of it.
LogicalResult gradient(ScatterOp op, GradientBuilder &g) {
  bool sets = op.getMode() == "set";
  if (!sets && op.getMode() != "add")
    return op.emitOpError("has no gradient with mode '") << op.getMode() << "', expected set or add";
  if (g.needs(0)) {
    Value grad = g.grad();
    if (sets) {
      Value zeros = g.expand(g.scalar(0, grad), op.getUpdates().getType());
      grad = g.make<ScatterOp>(grad, op.getIndices(), zeros, op.getMode());
    }
    g.set(0, grad);
  }
  if (g.needs(2))
    g.set(2, g.make<GatherOp>(g.grad(), op.getIndices(), 0));
  return success();
}

} // namespace

void attachWindowDerivatives(MLIRContext *context) {
  attachDerivative<WindowsOp, gradient>(context);
  attachDerivative<WindowsSumOp, gradient>(context);
  attachDerivative<ScatterOp, gradient>(context);
}

} // namespace dsopt::graph
