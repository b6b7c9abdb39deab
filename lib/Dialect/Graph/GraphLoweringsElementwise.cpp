//===- GraphLoweringsElementwise.cpp - elementwise operations -------------===//
//
// `scalar(op, b, args)` builds the result of one element.
//
//===----------------------------------------------------------------------===//

#include "GraphLowerings.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

template <typename FloatOp, typename IntOp> Value floatOrInt(Builder &b, ValueRange args) {
  if (isFloat(args[0]))
    return FloatOp::create(b, args[0], args[1]);
  return IntOp::create(b, args[0], args[1]);
}

Value compare(Builder &b, arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofInts, Value lhs, Value rhs) {
  if (isFloat(lhs))
    return arith::CmpFOp::create(b, ofFloats, lhs, rhs);
  return arith::CmpIOp::create(b, ofInts, lhs, rhs);
}

Value reciprocal(Builder &b, Value x) {
  return arith::DivFOp::create(b, constantScalar(b, x.getType(), 1), x);
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

Value scalar(NegOp, Builder &b, ValueRange args) {
  if (isFloat(args[0]))
    return arith::NegFOp::create(b, args[0]);
  return arith::SubIOp::create(b, constantScalar(b, args[0].getType(), 0), args[0]);
}
Value scalar(AbsOp, Builder &b, ValueRange args) {
  if (isFloat(args[0]))
    return math::AbsFOp::create(b, args[0]);
  return math::AbsIOp::create(b, args[0]);
}
Value scalar(SignOp, Builder &b, ValueRange args) {
  Value x = args[0], zero = constantScalar(b, x.getType(), 0);
  Value positive = compare(b, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, x, zero);
  Value negative = compare(b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, x, zero);
  // Zero and NaN stay what they are.
  Value rest = arith::SelectOp::create(b, negative, constantScalar(b, x.getType(), -1), x);
  return arith::SelectOp::create(b, positive, constantScalar(b, x.getType(), 1), rest);
}
Value scalar(ExpOp, Builder &b, ValueRange args) { return math::ExpOp::create(b, args[0]); }
Value scalar(LogOp, Builder &b, ValueRange args) { return math::LogOp::create(b, args[0]); }
Value scalar(SqrtOp, Builder &b, ValueRange args) { return math::SqrtOp::create(b, args[0]); }
Value scalar(ReciprocalOp, Builder &b, ValueRange args) { return reciprocal(b, args[0]); }
Value scalar(TanhOp, Builder &b, ValueRange args) { return math::TanhOp::create(b, args[0]); }
Value scalar(ErfOp, Builder &b, ValueRange args) { return math::ErfOp::create(b, args[0]); }
Value scalar(FloorOp, Builder &b, ValueRange args) { return math::FloorOp::create(b, args[0]); }
Value scalar(CeilOp, Builder &b, ValueRange args) { return math::CeilOp::create(b, args[0]); }
Value scalar(RoundOp, Builder &b, ValueRange args) { return math::RoundEvenOp::create(b, args[0]); }
Value scalar(SinOp, Builder &b, ValueRange args) { return math::SinOp::create(b, args[0]); }
Value scalar(CosOp, Builder &b, ValueRange args) { return math::CosOp::create(b, args[0]); }
Value scalar(SigmoidOp, Builder &b, ValueRange args) {
  Value decay = math::ExpOp::create(b, arith::NegFOp::create(b, args[0]));
  return reciprocal(b, arith::AddFOp::create(b, constantScalar(b, decay.getType(), 1), decay));
}
Value scalar(ReluOp, Builder &b, ValueRange args) {
  Value zero = constantScalar(b, args[0].getType(), 0);
  return floatOrInt<arith::MaximumFOp, arith::MaxSIOp>(b, {args[0], zero});
}
Value scalar(NotOp, Builder &b, ValueRange args) {
  return arith::XOrIOp::create(b, args[0], constantScalar(b, args[0].getType(), 1));
}
Value scalar(IsNaNOp, Builder &b, ValueRange args) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, args[0], args[0]);
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

Value scalar(AddOp, Builder &b, ValueRange args) { return floatOrInt<arith::AddFOp, arith::AddIOp>(b, args); }
Value scalar(SubOp, Builder &b, ValueRange args) { return floatOrInt<arith::SubFOp, arith::SubIOp>(b, args); }
Value scalar(MulOp, Builder &b, ValueRange args) { return floatOrInt<arith::MulFOp, arith::MulIOp>(b, args); }
Value scalar(DivOp, Builder &b, ValueRange args) {
  return floatOrInt<arith::DivFOp, arith::DivSIOp>(b, args);
}
Value scalar(RemOp, Builder &b, ValueRange args) {
  return floatOrInt<arith::RemFOp, arith::RemSIOp>(b, args);
}
Value scalar(MinOp, Builder &b, ValueRange args) {
  return floatOrInt<arith::MinimumFOp, arith::MinSIOp>(b, args);
}
Value scalar(MaxOp, Builder &b, ValueRange args) {
  return floatOrInt<arith::MaximumFOp, arith::MaxSIOp>(b, args);
}
Value scalar(AndOp, Builder &b, ValueRange args) { return arith::AndIOp::create(b, args[0], args[1]); }
Value scalar(OrOp, Builder &b, ValueRange args) { return arith::OrIOp::create(b, args[0], args[1]); }
Value scalar(EqualOp, Builder &b, ValueRange args) {
  return compare(b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, args[0], args[1]);
}
Value scalar(LessOp, Builder &b, ValueRange args) {
  return compare(b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, args[0], args[1]);
}
Value scalar(LessEqualOp, Builder &b, ValueRange args) {
  return compare(b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, args[0], args[1]);
}
Value scalar(GreaterOp, Builder &b, ValueRange args) {
  return compare(b, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, args[0], args[1]);
}
Value scalar(GreaterEqualOp, Builder &b, ValueRange args) {
  return compare(b, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, args[0], args[1]);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

Value scalar(WhereOp, Builder &b, ValueRange args) {
  return arith::SelectOp::create(b, args[0], args[1], args[2]);
}
Value scalar(ExpandOp, Builder &, ValueRange args) { return args[0]; }

Value scalar(CastOp op, Builder &b, ValueRange args) {
  Value x = args[0];
  Type from = x.getType(), to = op.getResult().getType().getElementType();
  if (from == to)
    return x;
  if (to.isInteger(1))
    return compare(b, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, x, constantScalar(b, from, 0));
  if (isa<FloatType>(from)) {
    if (!isa<FloatType>(to))
      return arith::FPToSIOp::create(b, to, x);
    // fp16 and bf16 are as wide as each other: by way of f32.
    if (from.getIntOrFloatBitWidth() == to.getIntOrFloatBitWidth())
      x = arith::ExtFOp::create(b, b.getF32Type(), x);
    if (x.getType().getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, to, x);
    return arith::TruncFOp::create(b, to, x);
  }
  bool isUnsigned = from.isInteger(1);
  if (isa<FloatType>(to))
    return isUnsigned ? Value(arith::UIToFPOp::create(b, to, x)) : Value(arith::SIToFPOp::create(b, to, x));
  if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, to, x);
  return isUnsigned ? Value(arith::ExtUIOp::create(b, to, x)) : Value(arith::ExtSIOp::create(b, to, x));
}

template <typename Op>
struct ElementwiseModel : LowerableOpInterface::ExternalModel<ElementwiseModel<Op>, Op> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Pointwise; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return buildPointwise(builder, op->getLoc(), cast<RankedTensorType>(op->getResult(0).getType()), operands,
                          [&](Builder &b, ValueRange args) { return scalar(cast<Op>(op), b, args); });
  }
};

/// A power: multiplications and roots where the exponent is known to be one.
struct PowModel : LowerableOpInterface::ExternalModel<PowModel, PowOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Pointwise; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    DenseElementsAttr exponent;
    std::optional<double> known;
    if (isa<FloatType>(type.getElementType()) && matchPattern(operands[1], m_Constant(&exponent)) &&
        exponent.isSplat())
      known = exponent.getSplatValue<APFloat>().convertToDouble();
    return buildPointwise(builder, op->getLoc(), type, operands,
                          [&](Builder &b, ValueRange args) { return power(b, args, known); });
  }

  static Value power(Builder &b, ValueRange args, std::optional<double> exponent) {
    Value x = args[0];
    auto square = [&] { return arith::MulFOp::create(b, x, x); };
    if (!isFloat(x)) {
      auto wide = [&](Value v) { return arith::SIToFPOp::create(b, b.getF64Type(), v); };
      return arith::FPToSIOp::create(b, x.getType(), math::PowFOp::create(b, wide(x), wide(args[1])));
    }
    if (!exponent)
      return math::PowFOp::create(b, x, args[1]);
    if (*exponent == 0)
      return constantScalar(b, x.getType(), 1);
    if (*exponent == 1)
      return x;
    if (*exponent == 2)
      return square();
    if (*exponent == 3)
      return arith::MulFOp::create(b, square(), x);
    if (*exponent == 4) {
      Value squared = square();
      return arith::MulFOp::create(b, squared, squared);
    }
    if (*exponent == 0.5)
      return math::SqrtOp::create(b, x);
    if (*exponent == -0.5)
      return reciprocal(b, math::SqrtOp::create(b, x));
    if (*exponent == -1)
      return reciprocal(b, x);
    if (*exponent == -2)
      return reciprocal(b, square());
    return math::PowFOp::create(b, x, args[1]);
  }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<ElementwiseModel<Ops>>(*context), ...);
}
} // namespace

void registerElementwiseLowerings(GraphDialect *, MLIRContext *context) {
  attach<NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, ReciprocalOp, TanhOp, ErfOp, FloorOp, CeilOp, RoundOp,
         SinOp, CosOp, SigmoidOp, ReluOp, NotOp, IsNaNOp, AddOp, SubOp, MulOp, DivOp, RemOp, MinOp, MaxOp,
         AndOp, OrOp, EqualOp, LessOp, LessEqualOp, GreaterOp, GreaterEqualOp, WhereOp, ExpandOp, CastOp>(
      context);
  PowOp::attachInterface<PowModel>(*context);
}
} // namespace dsopt::graph
