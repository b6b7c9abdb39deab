//===- GraphLoweringsRounding.cpp - rounding to a narrower float type -----===//

#include "GraphLowerings.h"
#include "NarrowFloats.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

/// Works on the bits of a float of 32 or 64.
class BitRounder {
public:
  BitRounder(Builder &b, RoundToOp op, Value x)
      : b(b), op(op), format(llvm::cast<FloatType>(op.getTo())), x(x),
        wide(llvm::cast<FloatType>(x.getType())), width(wide.getWidth()),
        mantissaBits(wide.getFPMantissaWidth() - 1), integer(b.getIntegerType(width)) {}

  Value round() { return format.isPowerOfTwo ? powerOfTwo() : nearest(); }

private:
  Value number(double value) { return constantScalar(b, wide, value); }
  Value bits(int64_t value) { return arith::ConstantOp::create(b, b.getIntegerAttr(integer, value)); }
  Value bitsOf(Value value) { return arith::BitcastOp::create(b, integer, value); }
  Value floatOf(Value value) { return arith::BitcastOp::create(b, wide, value); }
  Value isA(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, predicate, lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return arith::SelectOp::create(b, condition, lhs, rhs);
  }

  Value nearest();
  Value powerOfTwo();

  Builder &b;
  RoundToOp op;
  NarrowFormat format;
  Value x;
  FloatType wide;
  unsigned width, mantissaBits;
  IntegerType integer;
};

/// A whole number of the distances between the numbers of the type at `x`'s exponent.
Value BitRounder::nearest() {
  int64_t bias = width == 32 ? 127 : 1023;
  int64_t exponentMask = ((int64_t(1) << (width - 1 - mantissaBits)) - 1) << mantissaBits;
  Value exponent = arith::AndIOp::create(b, bitsOf(x), bits(exponentMask));
  exponent = arith::MaxSIOp::create(b, exponent, bits((format.minExponent + bias) << mantissaBits));
  Value quantum =
      floatOf(arith::SubIOp::create(b, exponent, bits((int64_t)format.mantissaBits << mantissaBits)));
  Value count = math::RoundEvenOp::create(b, arith::DivFOp::create(b, x, quantum));
  Value result = arith::MulFOp::create(b, count, quantum);

  Value isTooLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, math::AbsFOp::create(b, result),
                                           number(format.largest));
  Value overflow = math::CopySignOp::create(b, number(format.overflow(op.getSaturate())), x);
  result = select(isTooLarge, overflow, result);
  if (!format.hasNaN) {
    Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
    result = select(isNaN, number(-0.0), result);
  }
  if (!format.hasNegativeZero) {
    Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, result, number(0));
    result = select(isZero, number(0), result);
  }
  return result;
}

/// The exponent's field, one more where the rest of the bits rounds up. A power below the
/// smallest normal number is the field 0.
Value BitRounder::powerOfTwo() {
  int64_t half = int64_t(1) << (mantissaBits - 1), special = 255;
  Value magnitude = arith::AndIOp::create(b, bitsOf(x), bits((int64_t(1) << 31) - 1));
  Value field = arith::ShRUIOp::create(b, magnitude, bits(mantissaBits));
  Value rounded = field;
  if (!op.getToward()) {
    rounded = arith::ShRUIOp::create(b, arith::AddIOp::create(b, magnitude, bits(half)), bits(mantissaBits));
    Value isTie = isA(arith::CmpIPredicate::eq, magnitude, bits(half));
    rounded = select(isTie, bits(0), rounded);
  } else if (*op.getToward() == "up") {
    rounded = arith::ShRUIOp::create(b, arith::AddIOp::create(b, magnitude, bits(2 * half - 1)),
                                     bits(mantissaBits));
  }
  if (op.getSaturate())
    rounded = arith::MinSIOp::create(b, rounded, bits(special - 1));
  Value isSpecial = isA(arith::CmpIPredicate::sge, field, bits(special));
  if (!op.getSaturate())
    isSpecial = arith::OrIOp::create(b, isSpecial, isA(arith::CmpIPredicate::sge, rounded, bits(special)));
  Value result = floatOf(arith::ShLIOp::create(b, rounded, bits(mantissaBits)));
  Value isSmallest = isA(arith::CmpIPredicate::eq, rounded, bits(0));
  result = select(isSmallest, floatOf(bits(half)), result);
  return select(isSpecial, number(std::numeric_limits<double>::quiet_NaN()), result);
}
} // namespace

Value roundedScalar(Builder &b, RoundToOp op, Value x) {
  // What processors convert to.
  if (op.getTo().isF16() || op.getTo().isBF16())
    return arith::ExtFOp::create(b, x.getType(), Value(arith::TruncFOp::create(b, op.getTo(), x)));
  return BitRounder(b, op, x).round();
}

} // namespace dsopt::graph
