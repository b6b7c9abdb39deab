//===- GraphLoweringsUpdate.cpp - optimizers, elementwise on a slice ------===//
//
// One generic with a result for the parameter and one for each state. Only
// + - x / sqrt, select and explicit fma, without flags: host and device agree.
//
//===----------------------------------------------------------------------===//

#include "GraphLowerings.h"
#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/OneBitLamb.h"
#include "dsopt/Runtime/Scalars.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

/// The step's scalars and the arithmetic that updates are made of.
struct Step {
  Builder &b;
  Value table;

  Value get(dsopt_scalar index) {
    return tensor::ExtractOp::create(b, table, ValueRange(constantIndex(b, index)));
  }
  Value is(dsopt_scalar index) {
    Value value = get(index);
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, constantScalar(b, value.getType(), 0));
  }
  /// Whether a gradient is another number than -0.
  Value isReached(Value g) {
    auto integer = b.getIntegerType(g.getType().getIntOrFloatBitWidth());
    Value bits = arith::BitcastOp::create(b, integer, g);
    Value sign = arith::ConstantOp::create(
        b, integer, b.getIntegerAttr(integer, llvm::APInt::getSignMask(integer.getWidth())));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bits, sign);
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  /// z - x * y
  Value subtract(Value x, Value y, Value z) { return fma(arith::NegFOp::create(b, x), y, z); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  /// decay * p + g. What is infinite has no decay: 0 * inf would be no number, and inf - inf.
  Value decayed(Value p, Value g) {
    Value infinite =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, math::AbsFOp::create(b, p),
                              constantScalar(b, p.getType(), std::numeric_limits<double>::infinity()));
    return fma(get(DSOPT_WEIGHT_DECAY), select(infinite, constantScalar(b, p.getType(), 0), p), g);
  }
};

using Values = SmallVector<Value>;

/// args: parameter, gradient, states.
Values update(SgdOp, Step &s, ValueRange args) {
  Value p = args[0];
  Value g = s.decayed(p, s.mul(args[1], s.get(DSOPT_FACTOR)));
  return {s.subtract(s.get(DSOPT_LR), g, p)};
}

Values update(MomentumOp, Step &s, ValueRange args) {
  Value p = args[0];
  Value g = s.decayed(p, s.mul(args[1], s.get(DSOPT_FACTOR)));
  Value momentum = s.select(s.is(DSOPT_FIRST), g, s.fma(s.get(DSOPT_BETA1), args[2], g));
  return {s.subtract(s.get(DSOPT_LR), momentum, p), momentum};
}

/// 1 - beta^n of a whole number n below 2^24, by 1 - beta^(a + b) = x + y - x * y with x of a and y of b.
Value biasOf(Step &s, Value oneMinusBeta, Value n) {
  Value count = arith::FPToUIOp::create(s.b, s.b.getI32Type(), n);
  Value bias = constantScalar(s.b, n.getType(), 0), power = oneMinusBeta;
  auto join = [&](Value x, Value y) { return s.subtract(x, y, arith::AddFOp::create(s.b, x, y)); };
  for (int bit = 0; bit < 24; ++bit) {
    Value one = arith::ConstantIntOp::create(s.b, 1 << bit, 32),
          none = arith::ConstantIntOp::create(s.b, 0, 32);
    Value isSet =
        arith::CmpIOp::create(s.b, arith::CmpIPredicate::ne, arith::AndIOp::create(s.b, count, one), none);
    bias = s.select(isSet, join(bias, power), bias);
    power = join(power, power);
  }
  return bias;
}

/// What Adam's step follows from: the parameter, decayed if that is decoupled, the new moments, sqrt(v).
struct Moments {
  Value p, m, v, root;
};

/// args: parameter, gradient, m, v.
Moments momentsOf(bool decoupled, Step &s, ValueRange args) {
  Value p = args[0], g = s.mul(args[1], s.get(DSOPT_FACTOR));
  if (decoupled)
    p = s.mul(p, s.get(DSOPT_DECAY_FACTOR));
  else
    g = s.decayed(p, g);
  Value m = s.fma(s.get(DSOPT_BETA1), args[2], s.mul(s.get(DSOPT_ONE_MINUS_BETA1), g));
  Value v = s.fma(s.get(DSOPT_BETA2), args[3], s.mul(s.mul(s.get(DSOPT_ONE_MINUS_BETA2), g), g));
  return {p, m, v, math::SqrtOp::create(s.b, v)};
}

/// args: parameter, gradient, m, v, steps.
Values countedAdam(bool decoupled, Step &s, ValueRange args) {
  auto [p, m, v, root] = momentsOf(decoupled, s, args);
  Value one = constantScalar(s.b, args[4].getType(), 1);
  Value steps = arith::AddFOp::create(s.b, args[4], one);
  Value correction = math::SqrtOp::create(s.b, biasOf(s, s.get(DSOPT_ONE_MINUS_BETA2), steps));
  Value denominator =
      arith::AddFOp::create(s.b, arith::DivFOp::create(s.b, root, correction), s.get(DSOPT_EPS));
  Value stepSize =
      arith::DivFOp::create(s.b, s.get(DSOPT_LR), biasOf(s, s.get(DSOPT_ONE_MINUS_BETA1), steps));
  return {s.subtract(stepSize, arith::DivFOp::create(s.b, m, denominator), p), m, v, steps};
}

Values adam(bool decoupled, Step &s, ValueRange args) {
  auto [p, m, v, root] = momentsOf(decoupled, s, args);
  Value denominator = s.fma(root, s.get(DSOPT_RSQRT_BIAS2), s.get(DSOPT_EPS));
  Value direction = arith::DivFOp::create(s.b, m, denominator);
  return {s.subtract(s.get(DSOPT_STEP_SIZE), direction, p), m, v};
}

Values update(AdamOp op, Step &s, ValueRange args) { return adam(op.getDecoupled(), s, args); }
Values update(OneBitAdamOp, Step &s, ValueRange args) { return adam(/*decoupled=*/true, s, args); }

/// args: parameter, momentum, variance. The table has the factors of the step that froze the variance.
Values update(OneBitAdamStepOp, Step &s, ValueRange args) {
  Value p = s.mul(args[0], s.get(DSOPT_DECAY_FACTOR));
  Value root = math::SqrtOp::create(s.b, args[2]);
  Value denominator = s.fma(root, s.get(DSOPT_RSQRT_BIAS2), s.get(DSOPT_EPS));
  Value direction = arith::DivFOp::create(s.b, args[1], denominator);
  Value stepped = s.subtract(s.get(DSOPT_STEP_SIZE), direction, p);
  Value zero = constantScalar(s.b, root.getType(), 0);
  Value takesPart = arith::CmpFOp::create(s.b, arith::CmpFPredicate::OGT, args[2], zero);
  return {s.select(takesPart, stepped, args[0])};
}

/// args: parameter, gradient, m, v, u. The table counts the updates of v.
Values update(ZeroOneAdamOp, Step &s, ValueRange args) {
  Values updated = adam(/*decoupled=*/true, s, args);
  updated.push_back(args[4]);
  return updated;
}

/// args: parameter, gradient, m, u, v.
Values update(ZeroOneAdamLocalOp, Step &s, ValueRange args) {
  Value g = s.mul(args[1], s.get(DSOPT_FACTOR)), u = args[3], v = args[4];
  Value m = s.fma(s.get(DSOPT_BETA1), args[2], s.mul(s.get(DSOPT_ONE_MINUS_BETA1), g));
  Value root = math::SqrtOp::create(s.b, v);
  Value denominator = s.fma(root, s.get(DSOPT_RSQRT_BIAS2), s.get(DSOPT_EPS));
  Value direction = arith::DivFOp::create(s.b, m, denominator);
  Value here = arith::AddFOp::create(s.b, args[0], u);
  Value moved = s.subtract(s.get(DSOPT_LR), s.decayed(here, direction), u);
  Value zero = constantScalar(s.b, v.getType(), 0);
  Value takesPart = arith::CmpFOp::create(s.b, arith::CmpFPredicate::OGT, v, zero);
  return {args[0], m, s.select(takesPart, moved, u)};
}

/// args: parameter, m, u, v.
Values update(ZeroOneAdamJoinOp, Step &s, ValueRange args) {
  Value u = args[2], v = args[3], zero = constantScalar(s.b, v.getType(), 0);
  Value root = math::SqrtOp::create(s.b, v);
  Value denominator = s.fma(root, s.get(DSOPT_RSQRT_BIAS2), s.get(DSOPT_EPS));
  Value way = arith::DivFOp::create(s.b, u, denominator);
  Value takesPart = arith::CmpFOp::create(s.b, arith::CmpFPredicate::OGT, v, zero);
  Value m = arith::NegFOp::create(s.b, arith::DivFOp::create(s.b, u, s.get(DSOPT_RATES)));
  return {s.select(takesPart, arith::AddFOp::create(s.b, args[0], way), args[0]), m, zero};
}

/// The sign of 0 is 0, as PyTorch has it: what is padding stays 0. Momentum starts at 0.
Values update(LionOp, Step &s, ValueRange args) {
  Value p = s.mul(args[0], s.get(DSOPT_DECAY_FACTOR)), g = s.mul(args[1], s.get(DSOPT_FACTOR)), m = args[2];
  Value mixed = s.fma(s.get(DSOPT_BETA1), m, s.mul(s.get(DSOPT_ONE_MINUS_BETA1), g));
  Value zero = constantScalar(s.b, mixed.getType(), 0), one = constantScalar(s.b, mixed.getType(), 1);
  auto compare = [&](arith::CmpFPredicate predicate) {
    return arith::CmpFOp::create(s.b, predicate, mixed, zero);
  };
  Value sign = s.select(compare(arith::CmpFPredicate::OGT), one,
                        s.select(compare(arith::CmpFPredicate::OLT), arith::NegFOp::create(s.b, one), mixed));
  return {s.subtract(s.get(DSOPT_LR), sign, p),
          s.fma(s.get(DSOPT_BETA2), m, s.mul(s.get(DSOPT_ONE_MINUS_BETA2), g))};
}

Values update(AdagradOp, Step &s, ValueRange args) {
  Value p = args[0];
  Value g = s.decayed(p, s.mul(args[1], s.get(DSOPT_FACTOR)));
  Value sum = s.fma(g, g, args[2]);
  Value root = math::SqrtOp::create(s.b, sum);
  Value direction = arith::DivFOp::create(s.b, g, arith::AddFOp::create(s.b, root, s.get(DSOPT_EPS)));
  return {s.subtract(s.get(DSOPT_LR), direction, p), sum};
}

/// As DeepSpeed's FusedLamb: the bias of both moments is corrected in the step size.
Values update(LambDirectionOp, Step &s, ValueRange args) {
  Value g = s.mul(args[1], s.get(DSOPT_FACTOR));
  Value m = s.fma(s.get(DSOPT_BETA1), args[2], s.mul(s.get(DSOPT_ONE_MINUS_BETA1), g));
  Value v = s.fma(s.get(DSOPT_BETA2), args[3], s.mul(s.mul(s.get(DSOPT_ONE_MINUS_BETA2), g), g));
  Value root = math::SqrtOp::create(s.b, v);
  Value direction = arith::DivFOp::create(s.b, m, arith::AddFOp::create(s.b, root, s.get(DSOPT_EPS)));
  return {s.decayed(args[0], direction), m, v};
}

/// As DeepSpeed's OnebitLamb: the step size corrects no bias. The fresh variance starts as what is frozen.
Values update(OneBitLambDirectionOp, Step &s, ValueRange args) {
  Values updated = update(LambDirectionOp(), s, args);
  Value variance = updated.back();
  updated.push_back(variance);
  return updated;
}

/// args: parameter, gradient, momentum, variance.
Values update(OneBitLambFrozenOp, Step &s, ValueRange args) {
  Value root = math::SqrtOp::create(s.b, args[3]);
  Value along = arith::DivFOp::create(s.b, args[2], arith::AddFOp::create(s.b, root, s.get(DSOPT_EPS)));
  Value zero = constantScalar(s.b, root.getType(), 0);
  Value takesPart = arith::CmpFOp::create(s.b, arith::CmpFPredicate::OGT, args[3], zero);
  return {s.select(takesPart, s.decayed(args[0], along), zero)};
}

Values update(LambStepOp, Step &s, ValueRange args) {
  return {s.subtract(s.mul(s.get(DSOPT_STEP_SIZE), s.get(DSOPT_TRUST)), args[1], args[0])};
}

/// Momentum is a mean, as PyTorch's Muon has it, and Nesterov's look ahead another one.
Values update(MuonDirectionOp, Step &s, ValueRange args) {
  Value g = s.mul(s.get(DSOPT_ONE_MINUS_MOMENTUM), s.mul(args[1], s.get(DSOPT_FACTOR)));
  Value momentum = s.fma(s.get(DSOPT_MOMENTUM), args[2], g);
  return {s.fma(s.get(DSOPT_MOMENTUM), momentum, g), momentum};
}

Values update(MuonStepOp, Step &s, ValueRange args) {
  Value along = s.decayed(args[0], args[1]);
  return {s.subtract(s.get(DSOPT_LR), along, args[0])};
}

Values update(AdafactorDirectionOp, Step &s, ValueRange args) {
  return {s.mul(args[1], s.get(DSOPT_FACTOR))};
}

Values update(AdafactorStepOp, Step &s, ValueRange args) {
  Value p = s.mul(args[0], s.get(DSOPT_DECAY_FACTOR));
  return {s.subtract(s.mul(s.get(DSOPT_STEP_SIZE), s.get(DSOPT_TRUST)), args[1], p)};
}

/// What steps may not reach has its first gradient in any of them, and a momentum of 0 until then.
Values update(BranchUpdateOp op, Step &s, ValueRange args) {
  if (op.getRule() == "sgd")
    return update(SgdOp(), s, args);
  if (op.getRule() == "lion")
    return update(LionOp(), s, args);
  if (op.getRule() == "adagrad")
    return update(AdagradOp(), s, args);
  if (op.getRule() == "adam")
    return countedAdam(op.getDecoupled(), s, args);
  Value g = s.decayed(args[0], s.mul(args[1], s.get(DSOPT_FACTOR)));
  Value momentum = s.fma(s.get(DSOPT_BETA1), args[2], g);
  return {s.subtract(s.get(DSOPT_LR), momentum, args[0]), momentum};
}

template <typename Op> struct UpdateModel : LowerableOpInterface::ExternalModel<UpdateModel<Op>, Op> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Pointwise; }
  bool readsPointwise(Operation *op, unsigned operand) const { return operand + 1 != op->getNumOperands(); }

  /// The first result; the others are those of the same generic.
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(operands[0].getType());
    ValueRange inputs = operands.drop_back();
    SmallVector<Value> inits;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      inits.push_back(tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType()));
    SmallVector<AffineMap> maps(inputs.size() + inits.size(), builder.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        builder, loc, op->getResultTypes(), inputs, inits, maps, iterators,
        [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
          Builder b(nestedLoc, nested);
          Step step{b, operands.back()};
          Values updated = update(cast<Op>(op), step, args.take_front(inputs.size()));
          // What is replaced: the parameter (or, by a direction, the gradient) and
          // the states.
          bool replacesGradient = isa<LambDirectionOp, OneBitLambDirectionOp, OneBitLambFrozenOp,
                                      MuonDirectionOp, AdafactorDirectionOp>(op);
          Values old{args[replacesGradient ? 1 : 0]};
          size_t states = isa<ZeroOneAdamJoinOp>(op) ? 1 : 2;
          llvm::append_range(old, args.slice(states, updated.size() - 1));
          Value apply = step.is(DSOPT_APPLY);
          if (isa<BranchUpdateOp>(op))
            apply = arith::AndIOp::create(b, apply, step.isReached(args[1]));
          for (auto [value, before] : llvm::zip_equal(updated, old))
            value = step.select(apply, value, before);
          linalg::YieldOp::create(b, updated);
        });
    return generic.getResult(0);
  }
};
} // namespace

void registerUpdateLowerings(GraphDialect *, MLIRContext *context) {
  SgdOp::attachInterface<UpdateModel<SgdOp>>(*context);
  MomentumOp::attachInterface<UpdateModel<MomentumOp>>(*context);
  AdamOp::attachInterface<UpdateModel<AdamOp>>(*context);
  BranchUpdateOp::attachInterface<UpdateModel<BranchUpdateOp>>(*context);
  LionOp::attachInterface<UpdateModel<LionOp>>(*context);
  AdagradOp::attachInterface<UpdateModel<AdagradOp>>(*context);
  LambDirectionOp::attachInterface<UpdateModel<LambDirectionOp>>(*context);
  LambStepOp::attachInterface<UpdateModel<LambStepOp>>(*context);
  OneBitAdamOp::attachInterface<UpdateModel<OneBitAdamOp>>(*context);
  OneBitAdamStepOp::attachInterface<UpdateModel<OneBitAdamStepOp>>(*context);
  ZeroOneAdamOp::attachInterface<UpdateModel<ZeroOneAdamOp>>(*context);
  ZeroOneAdamLocalOp::attachInterface<UpdateModel<ZeroOneAdamLocalOp>>(*context);
  ZeroOneAdamJoinOp::attachInterface<UpdateModel<ZeroOneAdamJoinOp>>(*context);
  OneBitLambDirectionOp::attachInterface<UpdateModel<OneBitLambDirectionOp>>(*context);
  OneBitLambFrozenOp::attachInterface<UpdateModel<OneBitLambFrozenOp>>(*context);
  MuonDirectionOp::attachInterface<UpdateModel<MuonDirectionOp>>(*context);
  MuonStepOp::attachInterface<UpdateModel<MuonStepOp>>(*context);
  AdafactorDirectionOp::attachInterface<UpdateModel<AdafactorDirectionOp>>(*context);
  AdafactorStepOp::attachInterface<UpdateModel<AdafactorStepOp>>(*context);
}
} // namespace dsopt::graph
