//===- GraphDerivativesElementwise.cpp - gradients of elementwise ops -----===//
//
// Where a gradient can be had from the result instead of the operand, it is:
// the next product saves the result anyway.
//
//===----------------------------------------------------------------------===//

#include "GraphDerivatives.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;

namespace dsopt::graph {
namespace {

LogicalResult gradient(NegOp op, GradientBuilder &g) {
  g.set(0, g.neg(g.grad()));
  return success();
}
LogicalResult gradient(AbsOp op, GradientBuilder &g) {
  g.set(0, g.mul(g.grad(), g.make<SignOp>(op.getInput())));
  return success();
}
LogicalResult gradient(ExpOp op, GradientBuilder &g) {
  g.set(0, g.mul(g.grad(), op.getResult()));
  return success();
}
LogicalResult gradient(LogOp op, GradientBuilder &g) {
  g.set(0, g.div(g.grad(), op.getInput()));
  return success();
}
LogicalResult gradient(SqrtOp op, GradientBuilder &g) {
  g.set(0, g.div(g.mul(g.grad(), g.scalar(0.5, g.grad())), op.getResult()));
  return success();
}
LogicalResult gradient(ReciprocalOp op, GradientBuilder &g) {
  g.set(0, g.neg(g.mul(g.grad(), g.mul(op.getResult(), op.getResult()))));
  return success();
}
LogicalResult gradient(TanhOp op, GradientBuilder &g) {
  Value y = op.getResult();
  g.set(0, g.mul(g.grad(), g.sub(g.scalar(1, y), g.mul(y, y))));
  return success();
}
LogicalResult gradient(ErfOp op, GradientBuilder &g) {
  Value x = op.getInput();
  Value bell = g.make<ExpOp>(g.neg(g.mul(x, x)));
  g.set(0, g.mul(g.grad(), g.mul(bell, g.scalar(M_2_SQRTPI, x))));
  return success();
}
LogicalResult gradient(SinOp op, GradientBuilder &g) {
  g.set(0, g.mul(g.grad(), g.make<CosOp>(op.getInput())));
  return success();
}
LogicalResult gradient(CosOp op, GradientBuilder &g) {
  g.set(0, g.neg(g.mul(g.grad(), g.make<SinOp>(op.getInput()))));
  return success();
}
/// 1 / sqrt(x)
Value inverseRoot(Value x, GradientBuilder &g) { return g.make<ReciprocalOp>(g.make<SqrtOp>(x)); }
LogicalResult gradient(AsinOp op, GradientBuilder &g) {
  Value x = op.getInput();
  g.set(0, g.mul(g.grad(), inverseRoot(g.sub(g.scalar(1, x), g.mul(x, x)), g)));
  return success();
}
LogicalResult gradient(AcosOp op, GradientBuilder &g) {
  Value x = op.getInput();
  g.set(0, g.neg(g.mul(g.grad(), inverseRoot(g.sub(g.scalar(1, x), g.mul(x, x)), g))));
  return success();
}
LogicalResult gradient(AtanOp op, GradientBuilder &g) {
  Value x = op.getInput();
  g.set(0, g.div(g.grad(), g.add(g.mul(x, x), g.scalar(1, x))));
  return success();
}
LogicalResult gradient(AsinhOp op, GradientBuilder &g) {
  Value x = op.getInput();
  g.set(0, g.mul(g.grad(), inverseRoot(g.add(g.mul(x, x), g.scalar(1, x)), g)));
  return success();
}
LogicalResult gradient(AcoshOp op, GradientBuilder &g) {
  Value x = op.getInput();
  g.set(0, g.mul(g.grad(), inverseRoot(g.sub(g.mul(x, x), g.scalar(1, x)), g)));
  return success();
}
LogicalResult gradient(AtanhOp op, GradientBuilder &g) {
  Value x = op.getInput();
  g.set(0, g.div(g.grad(), g.sub(g.scalar(1, x), g.mul(x, x))));
  return success();
}
LogicalResult gradient(SinhOp op, GradientBuilder &g) {
  g.set(0, g.mul(g.grad(), g.make<CoshOp>(op.getInput())));
  return success();
}
LogicalResult gradient(CoshOp op, GradientBuilder &g) {
  g.set(0, g.mul(g.grad(), g.make<SinhOp>(op.getInput())));
  return success();
}
/// Constant between its steps.
LogicalResult noGradient(Operation *, GradientBuilder &) { return success(); }
LogicalResult gradient(FloorOp op, GradientBuilder &g) { return noGradient(op, g); }
LogicalResult gradient(CeilOp op, GradientBuilder &g) { return noGradient(op, g); }
LogicalResult gradient(RoundOp op, GradientBuilder &g) { return noGradient(op, g); }
LogicalResult gradient(SignOp op, GradientBuilder &g) { return noGradient(op, g); }
LogicalResult gradient(SigmoidOp op, GradientBuilder &g) {
  Value y = op.getResult();
  g.set(0, g.mul(g.grad(), g.mul(y, g.sub(g.scalar(1, y), y))));
  return success();
}
LogicalResult gradient(ReluOp op, GradientBuilder &g) {
  Value zero = g.scalar(0, op.getResult());
  g.set(0, g.make<WhereOp>(g.make<LessEqualOp>(op.getResult(), zero), zero, g.grad()));
  return success();
}

LogicalResult gradient(DropoutOp op, GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, g.make<DropoutOp>(g.grad(), op.getKey(), op.getStream(), op.getRatioAttr(), op.getBeginAttr(),
                               op.getRunsAttr(), op.getTimeBeginAttr(), op.getTimeRunsAttr()));
  return success();
}

LogicalResult gradient(AddOp op, GradientBuilder &g) {
  for (unsigned i : {0, 1})
    if (g.needs(i))
      g.set(i, g.grad());
  return success();
}
LogicalResult gradient(SubOp op, GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, g.grad());
  if (g.needs(1))
    g.set(1, g.neg(g.sumTo(g.grad(), op.getRhs().getType())));
  return success();
}
LogicalResult gradient(MulOp op, GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, g.mul(g.grad(), op.getRhs()));
  if (g.needs(1))
    g.set(1, g.mul(g.grad(), op.getLhs()));
  return success();
}
LogicalResult gradient(DivOp op, GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, g.div(g.grad(), op.getRhs()));
  if (g.needs(1))
    g.set(1, g.neg(g.div(g.mul(g.grad(), op.getResult()), op.getRhs())));
  return success();
}

/// x - y * trunc(x / y)
LogicalResult gradient(RemOp op, GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, g.grad());
  if (g.needs(1)) {
    Value whole = g.div(g.sub(op.getLhs(), op.getResult()), op.getRhs());
    g.set(1, g.neg(g.mul(g.grad(), whole)));
  }
  return success();
}

/// x^(n-1) * n, where n is a constant the same for all elements; 0^0 is 1.
Value constantPowerSlope(PowOp op, double n, GradientBuilder &g) {
  Value x = op.getLhs();
  if (n == 2)
    return g.mul(x, g.scalar(2, x));
  return g.mul(g.make<PowOp>(x, g.scalar(n - 1, x)), g.scalar(n, x));
}
LogicalResult gradient(PowOp op, GradientBuilder &g) {
  Value x = op.getLhs(), n = op.getRhs();
  if (g.needs(0)) {
    DenseElementsAttr constant;
    if (matchPattern(n, m_Constant(&constant)) && constant.isSplat() &&
        isa<FloatType>(constant.getElementType())) {
      double value = constant.getSplatValue<APFloat>().convertToDouble();
      if (value == 1)
        g.set(0, g.grad());
      else if (value != 0)
        g.set(0, g.mul(g.grad(), constantPowerSlope(op, value, g)));
    } else {
      if (n.getType() != x.getType() &&
          getElementTypeOrSelf(n.getType()) != getElementTypeOrSelf(x.getType()))
        return op.emitOpError("has no gradient: its exponent is neither a constant nor of the base's type");
      Value slope = g.mul(n, g.make<PowOp>(x, g.sub(n, g.scalar(1, n))));
      Value zero = g.scalar(0, x);
      g.set(0, g.mul(g.grad(), g.make<WhereOp>(g.make<EqualOp>(n, zero), zero, slope)));
    }
  }
  if (g.needs(1)) {
    // Where x is 0 the logarithm is infinite and the power is 0 (or 1, at n = 0).
    Value zero = g.scalar(0, x);
    Value slope = g.mul(op.getResult(), g.make<LogOp>(x));
    g.set(1, g.mul(g.grad(), g.make<WhereOp>(g.make<EqualOp>(x, zero), zero, slope)));
  }
  return success();
}

/// Min and max: the chosen operand takes the gradient, equal ones share it.
template <typename OpTy, typename Chosen> LogicalResult extremumGradient(OpTy op, GradientBuilder &g) {
  Value zero = g.scalar(0, g.grad());
  Value half = g.mul(g.grad(), g.scalar(0.5, g.grad()));
  Value shared = g.make<WhereOp>(g.template make<EqualOp>(op.getLhs(), op.getRhs()), half, zero);
  if (g.needs(0))
    g.set(0, g.make<WhereOp>(g.template make<Chosen>(op.getLhs(), op.getRhs()), g.grad(), shared));
  if (g.needs(1))
    g.set(1, g.make<WhereOp>(g.template make<Chosen>(op.getRhs(), op.getLhs()), g.grad(), shared));
  return success();
}
LogicalResult gradient(MinOp op, GradientBuilder &g) { return extremumGradient<MinOp, LessOp>(op, g); }
LogicalResult gradient(MaxOp op, GradientBuilder &g) { return extremumGradient<MaxOp, GreaterOp>(op, g); }

LogicalResult gradient(WhereOp op, GradientBuilder &g) {
  Value zero = g.scalar(0, g.grad());
  if (g.needs(1))
    g.set(1, g.make<WhereOp>(op.getCondition(), g.grad(), zero));
  if (g.needs(2))
    g.set(2, g.make<WhereOp>(op.getCondition(), zero, g.grad()));
  return success();
}
LogicalResult gradient(CastOp op, GradientBuilder &g) {
  g.set(0, g.make<CastOp>(op.getInput().getType(), g.grad()));
  return success();
}
/// As if nothing were rounded.
LogicalResult gradient(RoundToOp op, GradientBuilder &g) {
  g.set(0, g.grad());
  return success();
}

} // namespace

void attachElementwiseDerivatives(MLIRContext *context) {
  attachDerivative<NegOp, gradient>(context);
  attachDerivative<AbsOp, gradient>(context);
  attachDerivative<ExpOp, gradient>(context);
  attachDerivative<LogOp, gradient>(context);
  attachDerivative<SqrtOp, gradient>(context);
  attachDerivative<ReciprocalOp, gradient>(context);
  attachDerivative<TanhOp, gradient>(context);
  attachDerivative<ErfOp, gradient>(context);
  attachDerivative<SigmoidOp, gradient>(context);
  attachDerivative<SinOp, gradient>(context);
  attachDerivative<CosOp, gradient>(context);
  attachDerivative<AcosOp, gradient>(context);
  attachDerivative<AcoshOp, gradient>(context);
  attachDerivative<AsinOp, gradient>(context);
  attachDerivative<AsinhOp, gradient>(context);
  attachDerivative<AtanOp, gradient>(context);
  attachDerivative<AtanhOp, gradient>(context);
  attachDerivative<CoshOp, gradient>(context);
  attachDerivative<SinhOp, gradient>(context);
  attachDerivative<FloorOp, gradient>(context);
  attachDerivative<CeilOp, gradient>(context);
  attachDerivative<RoundOp, gradient>(context);
  attachDerivative<SignOp, gradient>(context);
  attachDerivative<RemOp, gradient>(context);
  attachDerivative<ReluOp, gradient>(context);
  attachDerivative<DropoutOp, gradient>(context);
  attachDerivative<AddOp, gradient>(context);
  attachDerivative<SubOp, gradient>(context);
  attachDerivative<MulOp, gradient>(context);
  attachDerivative<DivOp, gradient>(context);
  attachDerivative<PowOp, gradient>(context);
  attachDerivative<MinOp, gradient>(context);
  attachDerivative<MaxOp, gradient>(context);
  attachDerivative<WhereOp, gradient>(context);
  attachDerivative<CastOp, gradient>(context);
  attachDerivative<RoundToOp, gradient>(context);
}

} // namespace dsopt::graph
