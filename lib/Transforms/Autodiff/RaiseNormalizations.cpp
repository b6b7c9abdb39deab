//===- RaiseNormalizations.cpp - chains of RMS and layer normalization ----===//
//
// Starts at each mean of squares, follows it down to the normalized value and its
// scale and bias; what is squared says which normalization it is.
//
//===----------------------------------------------------------------------===//

#include "Idioms.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_RAISENORMALIZATIONS
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::idioms;

namespace {
/// base / sqrt(mean(base * base) + epsilon)
struct Chain {
  Value base, normalized;
  int64_t axis;
  double epsilon;
};

/// x, if the value is its square.
Value rootOf(Value square) {
  if (auto pow = square.getDefiningOp<graph::PowOp>(); pow && isSplat(pow.getRhs(), 2))
    return pow.getLhs();
  auto mul = square.getDefiningOp<graph::MulOp>();
  return mul && mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
}

/// The first of the dimensions that a mean goes over, if those are the last ones and kept.
std::optional<int64_t> firstAxis(graph::ReduceMeanOp mean) {
  int64_t rank = typeOf(mean.getInput()).getRank(), axis = rank - mean.getAxes().size();
  if (!mean.getKeepdims() || mean.getAxes().empty() || !llvm::equal(mean.getAxes(), llvm::seq(axis, rank)))
    return std::nullopt;
  return axis;
}

/// What `op` makes of `base` with the root of the mean square: base / root.
Value divided(Operation *op, Value root, Value base) {
  if (auto div = dyn_cast_or_null<graph::DivOp>(op); div && div.getRhs() == root && div.getLhs() == base)
    return div.getResult();
  Value rstd;
  if (isa_and_nonnull<graph::ReciprocalOp>(op))
    rstd = op->getResult(0);
  else if (auto div = dyn_cast_or_null<graph::DivOp>(op); div && isSplat(div.getLhs(), 1))
    rstd = div.getResult();
  Operation *user = rstd ? onlyUser(rstd) : nullptr;
  return user && otherOperand<graph::MulOp>(user, rstd) == base ? user->getResult(0) : Value();
}

std::optional<Chain> matchChain(graph::ReduceMeanOp mean) {
  Value base = rootOf(mean.getInput());
  auto axis = firstAxis(mean);
  if (!base || !axis)
    return std::nullopt;
  Operation *add = onlyUser(mean);
  Value offset = otherOperand<graph::AddOp>(add, mean);
  auto epsilon = offset ? splatOf(offset) : std::nullopt;
  if (!epsilon || *epsilon < 0 || add->getResult(0).getType() != mean.getType())
    return std::nullopt;
  Operation *root = onlyUser(add->getResult(0));
  Value normalized;
  auto pow = dyn_cast_or_null<graph::PowOp>(root);
  if (isa_and_nonnull<graph::SqrtOp>(root) || (pow && isSplat(pow.getRhs(), 0.5))) {
    normalized = divided(onlyUser(root->getResult(0)), root->getResult(0), base);
  } else if (pow && isSplat(pow.getRhs(), -0.5)) {
    Operation *user = onlyUser(pow);
    if (otherOperand<graph::MulOp>(user, pow) == base)
      normalized = user->getResult(0);
  } else {
    return std::nullopt;
  }
  if (!normalized || normalized.getType() != base.getType()) {
    missed(mean, "normalization",
           "the root of the mean square does not divide what was squared, or not it alone");
    return std::nullopt;
  }
  return Chain{base, normalized, *axis, *epsilon};
}

class Raiser {
public:
  explicit Raiser(MLIRContext *context) : builder(context) {}

  void raise(graph::ReduceMeanOp mean) {
    auto chain = matchChain(mean);
    if (!chain)
      return;
    Value input = centered(*chain), result = chain->normalized, scale, bias;
    ArrayRef<int64_t> shape = typeOf(result).getShape().drop_front(chain->axis);
    if (Value factor = operandOf<graph::MulOp>(result, shape))
      scale = factor, result = onlyUser(result)->getResult(0);
    Value offset = input && scale ? operandOf<graph::AddOp>(result, shape) : Value();
    if (offset)
      bias = offset, result = onlyUser(result)->getResult(0);
    builder.setInsertionPoint(result.getDefiningOp());
    loc = result.getLoc();
    scale = scale ? fitted(scale, shape) : ones(typeOf(result).getElementType(), shape);
    IntegerAttr axis = builder.getI64IntegerAttr(chain->axis);
    FloatAttr epsilon = builder.getF64FloatAttr(chain->epsilon);
    Operation *raisedOp;
    if (input)
      raisedOp = graph::LayerNormOp::create(builder, loc, input, scale, bias ? fitted(bias, shape) : Value(),
                                            axis, epsilon);
    else
      raisedOp = graph::RmsNormOp::create(builder, loc, chain->base, scale, axis, epsilon);
    raised(raisedOp, input ? "layer_norm" : "rms_norm");
    result.replaceAllUsesWith(raisedOp->getResult(0));
  }

private:
  /// x, if what is normalized is x - mean(x).
  static Value centered(const Chain &chain) {
    auto sub = chain.base.getDefiningOp<graph::SubOp>();
    auto mean = sub ? sub.getRhs().getDefiningOp<graph::ReduceMeanOp>() : nullptr;
    return mean && mean.getInput() == sub.getLhs() && firstAxis(mean) == chain.axis ? sub.getLhs() : Value();
  }

  /// What the value's only user multiplies it by or adds to it, if rows share it.
  template <typename OpTy> static Value operandOf(Value value, ArrayRef<int64_t> shape) {
    Operation *user = onlyUser(value);
    Value other = otherOperand<OpTy>(user, value);
    if (!other || user->getResult(0).getType() != value.getType())
      return {};
    ArrayRef<int64_t> own = typeOf(other).getShape();
    while (own.size() > shape.size() && own.front() == 1)
      own = own.drop_front();
    return own.size() <= shape.size() ? other : Value();
  }

  Value ones(Type element, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, element);
    return graph::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, builder.getFloatAttr(element, 1)));
  }

  /// An operand with the shape of the normalized dimensions.
  Value fitted(Value value, ArrayRef<int64_t> shape) {
    ArrayRef<int64_t> own = typeOf(value).getShape();
    Type element = typeOf(value).getElementType();
    if (own == shape)
      return value;
    while (own.size() > shape.size())
      own = own.drop_front();
    if (own.size() != typeOf(value).getShape().size())
      value = graph::ReshapeOp::create(builder, loc, RankedTensorType::get(own, element), value);
    return own == shape
               ? value
               : Value(graph::ExpandOp::create(builder, loc, RankedTensorType::get(shape, element), value));
  }

  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
};

struct RaiseNormalizations : public dsopt::impl::RaiseNormalizationsBase<RaiseNormalizations> {
  using RaiseNormalizationsBase::RaiseNormalizationsBase;

  void runOnOperation() override {
    func::FuncOp forward = forwardOf(getOperation(), getArgument());
    if (!forward)
      return signalPassFailure();
    Raiser raiser(&getContext());
    for (auto mean : llvm::to_vector(forward.front().getOps<graph::ReduceMeanOp>()))
      raiser.raise(mean);
    eraseDead(forward);
  }
};
} // namespace
