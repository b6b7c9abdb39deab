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

Value scatterRows(ScatterOp op, Value data, Value updates, ScatterMode mode, GradientBuilder &g) {
  return g.make<ScatterOp>(data, op.getIndices(), updates, mode);
}
Value gatherRows(ScatterOp op, Value data, GradientBuilder &g) {
  return g.make<GatherOp>(data, op.getIndices(), 0, IntegerAttr());
}

/// The chosen element takes the gradient; equal ones share it. The result is made anew from the very values
/// that are compared with it: forward's may be rounded otherwise.
void extremumGradient(ScatterOp op, GradientBuilder &g) {
  Value zero = g.scalar(0, g.grad()), one = g.scalar(1, g.grad());
  Value result = scatterRows(op, op.getData(), op.getUpdates(), op.getMode(), g);
  auto chosen = [&](Value x, Value result) {
    return g.make<WhereOp>(g.make<EqualOp>(x, result), g.expand(one, x.getType()), zero);
  };
  Value ofData = chosen(op.getData(), result);
  Value ofUpdates = chosen(op.getUpdates(), gatherRows(op, result, g));
  Value share = g.div(g.grad(), scatterRows(op, ofData, ofUpdates, ScatterMode::Add, g));
  if (g.needs(0))
    g.set(0, g.mul(share, ofData));
  if (g.needs(2))
    g.set(2, g.mul(gatherRows(op, share, g), ofUpdates));
}

/// The product of the others: by division, but where an update is zero of those that are not.
void productGradient(ScatterOp op, GradientBuilder &g) {
  Value updates = op.getUpdates(), zero = g.scalar(0, updates), one = g.scalar(1, updates);
  Value ones = g.expand(one, op.getData().getType()), zeros = g.expand(zero, op.getData().getType());
  if (g.needs(0))
    g.set(0, g.mul(g.grad(), scatterRows(op, ones, updates, ScatterMode::Mul, g)));
  if (!g.needs(2))
    return;
  Value isZero = g.make<EqualOp>(updates, zero), all = g.expand(one, updates.getType());
  Value safe = g.make<WhereOp>(isZero, all, updates);
  Value count =
      gatherRows(op, scatterRows(op, zeros, g.make<WhereOp>(isZero, all, zero), ScatterMode::Add, g), g);
  Value rest = gatherRows(op, scatterRows(op, op.getData(), safe, ScatterMode::Mul, g), g);
  Value ofZero = g.make<WhereOp>(g.make<EqualOp>(count, one), rest, zero);
  Value ofOthers = g.div(g.make<WhereOp>(g.make<EqualOp>(count, zero), rest, zero), safe);
  g.set(2, g.mul(gatherRows(op, g.grad(), g), g.make<WhereOp>(isZero, ofZero, ofOthers)));
}

/// Rows that are set take nothing from the data; sums take all of it.
LogicalResult gradient(ScatterOp op, GradientBuilder &g) {
  switch (op.getMode()) {
  case ScatterMode::Min:
  case ScatterMode::Max:
    extremumGradient(op, g);
    break;
  case ScatterMode::Mul:
    productGradient(op, g);
    break;
  case ScatterMode::Set:
  case ScatterMode::Add:
    if (g.needs(0))
      g.set(0, op.getMode() == ScatterMode::Add
                   ? g.grad()
                   : scatterRows(op, g.grad(), g.expand(g.scalar(0, g.grad()), op.getUpdates().getType()),
                                 ScatterMode::Set, g));
    if (g.needs(2))
      g.set(2, gatherRows(op, g.grad(), g));
    break;
  }
  return success();
}

} // namespace

void attachWindowDerivatives(MLIRContext *context) {
  attachDerivative<WindowsOp, gradient>(context);
  attachDerivative<WindowsSumOp, gradient>(context);
  attachDerivative<ScatterOp, gradient>(context);
}

} // namespace dsopt::graph
