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
/// The same where an operation on operands of `type` asks what sign means.
template <typename FloatOp, typename IntOp, typename UnsignedOp>
Value bySign(Builder &b, Type type, ValueRange args) {
  return isUnsigned(type) ? Value(UnsignedOp::create(b, args[0], args[1]))
                          : floatOrInt<FloatOp, IntOp>(b, args);
}

/// Compares operands of `type`; `ofInts` is the predicate of signed ones.
Value compare(Builder &b, Type type, arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofInts, Value lhs,
              Value rhs) {
  using Predicate = arith::CmpIPredicate;
  if (isFloat(lhs))
    return arith::CmpFOp::create(b, ofFloats, lhs, rhs);
  if (isUnsigned(type))
    switch (ofInts) {
    case Predicate::slt:
      ofInts = Predicate::ult;
      break;
    case Predicate::sle:
      ofInts = Predicate::ule;
      break;
    case Predicate::sgt:
      ofInts = Predicate::ugt;
      break;
    case Predicate::sge:
      ofInts = Predicate::uge;
      break;
    default:
      break;
    }
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
Value scalar(AbsOp op, Builder &b, ValueRange args) {
  if (isUnsigned(op.getInput().getType()))
    return args[0];
  if (isFloat(args[0]))
    return math::AbsFOp::create(b, args[0]);
  return math::AbsIOp::create(b, args[0]);
}
Value scalar(SignOp op, Builder &b, ValueRange args) {
  Value x = args[0], zero = constantScalar(b, x.getType(), 0);
  Type type = op.getInput().getType();
  Value positive = compare(b, type, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, x, zero);
  Value negative = compare(b, type, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, x, zero);
  // Zero and NaN stay what they are.
  Value rest = arith::SelectOp::create(b, negative, constantScalar(b, x.getType(), -1), x);
  return arith::SelectOp::create(b, positive, constantScalar(b, x.getType(), 1), rest);
}
Value scalar(ExpOp, Builder &b, ValueRange args) { return math::ExpOp::create(b, args[0]); }
Value scalar(LogOp, Builder &b, ValueRange args) { return math::LogOp::create(b, args[0]); }
Value scalar(SqrtOp, Builder &b, ValueRange args) { return math::SqrtOp::create(b, args[0]); }
Value scalar(ReciprocalOp, Builder &b, ValueRange args) { return reciprocal(b, args[0]); }
Value scalar(AcosOp, Builder &b, ValueRange args) { return math::AcosOp::create(b, args[0]); }
Value scalar(AcoshOp, Builder &b, ValueRange args) { return math::AcoshOp::create(b, args[0]); }
Value scalar(AsinOp, Builder &b, ValueRange args) { return math::AsinOp::create(b, args[0]); }
Value scalar(AsinhOp, Builder &b, ValueRange args) { return math::AsinhOp::create(b, args[0]); }
Value scalar(AtanOp, Builder &b, ValueRange args) { return math::AtanOp::create(b, args[0]); }
Value scalar(AtanhOp, Builder &b, ValueRange args) { return math::AtanhOp::create(b, args[0]); }
Value scalar(CoshOp, Builder &b, ValueRange args) { return math::CoshOp::create(b, args[0]); }
Value scalar(SinhOp, Builder &b, ValueRange args) { return math::SinhOp::create(b, args[0]); }
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
Value scalar(ReluOp op, Builder &b, ValueRange args) {
  if (isUnsigned(op.getInput().getType()))
    return args[0];
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

Value scalar(TreeAddOp, Builder &b, ValueRange args) { return arith::AddFOp::create(b, args[0], args[1]); }
Value scalar(AddOp, Builder &b, ValueRange args) { return floatOrInt<arith::AddFOp, arith::AddIOp>(b, args); }
Value scalar(SubOp, Builder &b, ValueRange args) { return floatOrInt<arith::SubFOp, arith::SubIOp>(b, args); }
Value scalar(MulOp, Builder &b, ValueRange args) { return floatOrInt<arith::MulFOp, arith::MulIOp>(b, args); }
Value scalar(DivOp op, Builder &b, ValueRange args) {
  return bySign<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(b, op.getType(), args);
}
Value scalar(RemOp op, Builder &b, ValueRange args) {
  return bySign<arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(b, op.getType(), args);
}
Value scalar(MinOp op, Builder &b, ValueRange args) {
  return bySign<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(b, op.getType(), args);
}
Value scalar(MaxOp op, Builder &b, ValueRange args) {
  return bySign<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(b, op.getType(), args);
}
Value scalar(AndOp, Builder &b, ValueRange args) { return arith::AndIOp::create(b, args[0], args[1]); }
Value scalar(OrOp, Builder &b, ValueRange args) { return arith::OrIOp::create(b, args[0], args[1]); }
Value scalar(EqualOp op, Builder &b, ValueRange args) {
  return compare(b, op.getLhs().getType(), arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, args[0],
                 args[1]);
}
Value scalar(LessOp op, Builder &b, ValueRange args) {
  return compare(b, op.getLhs().getType(), arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, args[0],
                 args[1]);
}
Value scalar(LessEqualOp op, Builder &b, ValueRange args) {
  return compare(b, op.getLhs().getType(), arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, args[0],
                 args[1]);
}
Value scalar(GreaterOp op, Builder &b, ValueRange args) {
  return compare(b, op.getLhs().getType(), arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, args[0],
                 args[1]);
}
Value scalar(GreaterEqualOp op, Builder &b, ValueRange args) {
  return compare(b, op.getLhs().getType(), arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, args[0],
                 args[1]);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

Value scalar(WhereOp, Builder &b, ValueRange args) {
  return arith::SelectOp::create(b, args[0], args[1], args[2]);
}
Value scalar(ExpandOp, Builder &, ValueRange args) { return args[0]; }

/// Floats beyond an integer's range wrap around as numpy has it on x86: by way of 32 or 64 bits with a sign.
Value toInteger(Builder &b, Value x, IntegerType to) {
  unsigned width = to.getWidth();
  if (width == 64 && to.isUnsigned()) {
    Value half = constantScalar(b, x.getType(), 9223372036854775808.0);
    Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, x, half);
    Value small = arith::FPToSIOp::create(b, b.getI64Type(), x);
    return arith::SelectOp::create(b, isLarge, arith::FPToUIOp::create(b, b.getI64Type(), x), small);
  }
  unsigned wide = width < 32 || (width == 32 && !to.isUnsigned()) ? 32 : 64;
  Value value = arith::FPToSIOp::create(b, b.getIntegerType(wide), x);
  return wide == width ? value : Value(arith::TruncIOp::create(b, b.getIntegerType(width), value));
}

Value scalar(CastOp op, Builder &b, ValueRange args) {
  Value x = args[0];
  Type given = op.getInput().getType().getElementType(), to = op.getResult().getType().getElementType();
  Type from = x.getType();
  if (given == to)
    return x;
  if (to.isInteger(1))
    return compare(b, given, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, x,
                   constantScalar(b, from, 0));
  if (isa<FloatType>(from)) {
    if (auto integer = dyn_cast<IntegerType>(to))
      return toInteger(b, x, integer);
    // fp16 and bf16 are as wide as each other: by way of f32.
    if (from.getIntOrFloatBitWidth() == to.getIntOrFloatBitWidth())
      x = arith::ExtFOp::create(b, b.getF32Type(), x);
    if (x.getType().getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, to, x);
    return arith::TruncFOp::create(b, to, x);
  }
  if (isa<FloatType>(to))
    return isUnsigned(given) ? Value(arith::UIToFPOp::create(b, to, x))
                             : Value(arith::SIToFPOp::create(b, to, x));
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  Type result = b.getIntegerType(toWidth);
  if (fromWidth == toWidth)
    return x;
  if (fromWidth > toWidth)
    return arith::TruncIOp::create(b, result, x);
  return isUnsigned(given) ? Value(arith::ExtUIOp::create(b, result, x))
                           : Value(arith::ExtSIOp::create(b, result, x));
}

Value scalar(RoundToOp op, Builder &b, ValueRange args) { return roundedScalar(b, op, args[0]); }

template <typename Op, FusionKind kind = FusionKind::Pointwise>
struct ElementwiseModel : LowerableOpInterface::ExternalModel<ElementwiseModel<Op, kind>, Op> {
  FusionKind getFusionKind(Operation *) const { return kind; }
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
    return buildPointwise(builder, op->getLoc(), type, operands, [&](Builder &b, ValueRange args) {
      return isFloat(args[0]) ? power(b, args, known) : powerOfIntegers(b, type, args);
    });
  }

  static Value powerOfIntegers(Builder &b, RankedTensorType type, ValueRange args) {
    auto wide = [&](Value v) {
      return isUnsigned(type) ? Value(arith::UIToFPOp::create(b, b.getF64Type(), v))
                              : Value(arith::SIToFPOp::create(b, b.getF64Type(), v));
    };
    Value result = math::PowFOp::create(b, wide(args[0]), wide(args[1]));
    return toInteger(b, result, cast<IntegerType>(type.getElementType()));
  }

  static Value power(Builder &b, ValueRange args, std::optional<double> exponent) {
    Value x = args[0];
    auto square = [&] { return arith::MulFOp::create(b, x, x); };
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
  attach<NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, ReciprocalOp, AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp,
         AtanhOp, CoshOp, SinhOp, TanhOp, ErfOp, FloorOp, CeilOp, RoundOp, SinOp, CosOp, SigmoidOp, ReluOp,
         NotOp, IsNaNOp, AddOp, SubOp, MulOp, DivOp, RemOp, MinOp, MaxOp, AndOp, OrOp, EqualOp, LessOp,
         LessEqualOp, GreaterOp, GreaterEqualOp, WhereOp, ExpandOp, CastOp, RoundToOp>(context);
  PowOp::attachInterface<PowModel>(*context);
  TreeAddOp::attachInterface<ElementwiseModel<TreeAddOp, FusionKind::Alone>>(*context);
}
} // namespace dsopt::graph
