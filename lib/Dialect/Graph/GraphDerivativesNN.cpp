//===- GraphDerivativesNN.cpp - gradients of the composites ---------------===//
//
// Each reads what its forward kept (softmax its result, layer_norm mean and
// rstd, rms_norm rstd, nll the log-sum-exp). What leads to a weight and what leads to the input
// share no intermediate value, so that they may be computed at different times.
//
//===----------------------------------------------------------------------===//

#include "GraphDerivatives.h"
#include <cmath>

using namespace mlir;

namespace dsopt::graph {
namespace {

LogicalResult gradient(SoftmaxOp op, GradientBuilder &g) {
  Value y = op.getResult(), dy = g.grad();
  int64_t axis = op.getAxis();
  Value dot = g.sum(g.mul(dy, y), axis, /*keepdims=*/true);
  g.set(0, g.mul(y, g.sub(dy, dot)));
  return success();
}

LogicalResult gradient(GeluOp op, GradientBuilder &g) {
  Value x = op.getInput();
  Value half = g.scalar(0.5, x), one = g.scalar(1, x);
  Value slope;
  if (op.getApproximateTanh()) {
    // u = sqrt(2/pi) (x + 0.044715 x^3); 0.5 (1 + t) + 0.5 x (1 - t^2) u', t = tanh(u)
    double scale = M_2_SQRTPI * M_SQRT1_2;
    Value square = g.mul(x, x);
    Value inner = g.add(g.mul(square, g.scalar(0.044715, x)), one);
    Value t = g.make<TanhOp>(g.mul(g.mul(x, g.scalar(scale, x)), inner));
    Value innerSlope = g.add(g.mul(square, g.scalar(3 * 0.044715 * scale, x)), g.scalar(scale, x));
    Value left = g.mul(half, g.add(one, t));
    Value right = g.mul(g.mul(half, x), g.mul(g.sub(one, g.mul(t, t)), innerSlope));
    slope = g.add(left, right);
  } else {
    // Phi(x) + x phi(x)
    Value phi = g.mul(g.make<ExpOp>(g.mul(g.mul(x, x), g.scalar(-0.5, x))),
                      g.scalar(M_2_SQRTPI * M_SQRT1_2 * 0.5, x));
    Value cumulative = g.mul(half, g.add(one, g.make<ErfOp>(g.mul(x, g.scalar(M_SQRT1_2, x)))));
    slope = g.add(cumulative, g.mul(x, phi));
  }
  g.set(0, g.mul(g.grad(), slope));
  return success();
}

LogicalResult gradient(SiluOp op, GradientBuilder &g) {
  // s (1 + x (1 - s)), s = sigmoid(x)
  Value x = op.getInput(), one = g.scalar(1, x), s = g.make<SigmoidOp>(x);
  Value slope = g.mul(s, g.add(one, g.mul(x, g.sub(one, s))));
  g.set(0, g.mul(g.grad(), slope));
  return success();
}

/// Of the result, and where asked for of the statistic: d rstd = -rstd^3 x / n.
LogicalResult gradient(RmsNormOp op, GradientBuilder &g) {
  Value x = op.getInput(), rstd = op.getRstd(), dy = g.grad();
  auto type = cast<ShapedType>(x.getType());
  auto axes = llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), type.getRank()));
  if (g.needs(0)) {
    Value sum;
    if (dy) {
      Value scaled = g.mul(dy, op.getScale()), xhat = g.mul(x, rstd);
      Value slope = g.mean(g.mul(scaled, xhat), axes, /*keepdims=*/true);
      sum = g.mul(rstd, g.sub(scaled, g.mul(xhat, slope)));
    }
    if (Value drstd = g.grad(1)) {
      Value size = g.scalar(ShapedType::getNumElements(type.getShape().drop_front(op.getAxis())), x);
      Value cube = g.mul(rstd, g.mul(rstd, rstd));
      Value part = g.neg(g.mul(g.div(g.mul(drstd, cube), size), x));
      sum = sum ? g.add(sum, part) : part;
    }
    g.set(0, sum);
  }
  if (dy && g.needs(1))
    g.set(1, g.mul(dy, g.mul(x, rstd)));
  return success();
}

/// Of the result, and where asked for of the statistics: d mean = 1 / n, d rstd = -rstd^2 xhat / n.
LogicalResult gradient(LayerNormOp op, GradientBuilder &g) {
  Value x = op.getInput(), dy = g.grad();
  auto type = cast<ShapedType>(x.getType());
  auto axes = llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), type.getRank()));
  auto normalized = [&] { return g.mul(g.sub(x, op.getMean()), op.getRstd()); };
  if (g.needs(0)) {
    Value sum;
    auto add = [&](Value part) { sum = sum ? g.add(sum, part) : part; };
    Value xhat = dy || g.grad(2) ? normalized() : Value();
    Value size = g.scalar(ShapedType::getNumElements(type.getShape().drop_front(op.getAxis())), x);
    if (dy) {
      Value scaled = g.mul(dy, op.getScale());
      Value average = g.mean(scaled, axes, /*keepdims=*/true);
      Value slope = g.mean(g.mul(scaled, xhat), axes, /*keepdims=*/true);
      add(g.mul(op.getRstd(), g.sub(g.sub(scaled, average), g.mul(xhat, slope))));
    }
    if (Value mean = g.grad(1))
      add(g.expand(g.div(mean, size), type));
    if (Value rstd = g.grad(2))
      add(g.neg(g.mul(g.div(g.mul(rstd, g.mul(op.getRstd(), op.getRstd())), size), xhat)));
    g.set(0, sum);
  }
  if (dy && g.needs(1))
    g.set(1, g.mul(dy, normalized()));
  if (dy && op.getBias() && g.needs(2))
    g.set(2, dy);
  return success();
}

LogicalResult gradient(NllOp op, GradientBuilder &g) {
  Value logits = op.getLogits(), labels = op.getLabels();
  auto type = cast<RankedTensorType>(logits.getType());
  auto column = RankedTensorType::get({type.getDimSize(0), 1}, type.getElementType());
  Value softmax = g.make<ExpOp>(g.sub(logits, g.reshape(op.getLse(), column)));
  if (!g.grad(0)) {
    g.set(0, g.mul(softmax, g.reshape(g.grad(1), column)));
    return success();
  }
  Value counted = g.make<WhereOp>(
      g.make<EqualOp>(labels,
                      g.scalar(static_cast<double>(static_cast<int64_t>(op.getIgnoreIndex())), labels)),
      g.scalar(0, g.grad()), g.grad());
  Value target = g.make<OneHotOp>(labels, static_cast<uint64_t>(type.getDimSize(1)));
  if (getElementTypeOrSelf(target.getType()) != type.getElementType())
    target = g.make<CastOp>(type, target);
  Value ofTarget = g.reshape(counted, column);
  g.set(0, g.grad(1)
               ? g.sub(g.mul(softmax, g.reshape(g.add(counted, g.grad(1)), column)), g.mul(target, ofTarget))
               : g.mul(g.sub(softmax, target), ofTarget));
  return success();
}

LogicalResult gradient(LinearNllOp op, GradientBuilder &g) {
  auto typeIf = [](bool needed, Value operand) {
    return needed ? RankedTensorType::get(cast<RankedTensorType>(operand.getType()).getShape(),
                                          Float32Type::get(operand.getContext()))
                  : RankedTensorType();
  };
  Value bias = op.getBias();
  Value loss = g.make<LinearNllGradOp>(op.getLoss().getType(), g.needs(0) ? op.getX().getType() : Type(),
                                       typeIf(g.needs(1), op.getWeight()), typeIf(bias && g.needs(2), bias),
                                       op.getX(), op.getWeight(), bias, op.getLabels(), g.grad(),
                                       op.getIgnoreIndexAttr(), op.getTransposeBAttr());
  auto all = cast<LinearNllGradOp>(loss.getDefiningOp());
  if (g.needs(0))
    g.set(0, all.getXGrad());
  if (g.needs(1))
    g.set(1, all.getWeightGrad());
  if (bias && g.needs(2))
    g.set(2, all.getBiasGrad());
  return success();
}

} // namespace

static LogicalResult gradient(CtcOp op, GradientBuilder &g) {
  g.set(0, g.make<CtcGradOp>(op.getLogs().getType(), op.getLogs(), op.getTargets(), op.getInputLengths(),
                             op.getTargetLengths(), g.grad(), op.getBlankAttr(), op.getZeroInfinityAttr()));
  return success();
}

void attachNNDerivatives(MLIRContext *context) {
  attachDerivative<CtcOp, gradient>(context);
  attachDerivative<SoftmaxOp, gradient>(context);
  attachDerivative<GeluOp, gradient>(context);
  attachDerivative<SiluOp, gradient>(context);
  attachDerivative<RmsNormOp, gradient>(context);
  attachDerivative<LayerNormOp, gradient>(context);
  attachDerivative<NllOp, gradient>(context);
  attachDerivative<LinearNllOp, gradient>(context);
}

} // namespace dsopt::graph
