//===- ApproximateMath.cpp - polynomials for exp, log, tanh, erf ----------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "dsopt/Conversion/Passes.h.inc"

namespace {
/// The sign of x times log(|x| + sqrt(x^2 + 1)): no difference of numbers that are nearly equal.
struct ExpandAsinh : OpRewritePattern<math::AsinhOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::AsinhOp op, PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = dyn_cast<FloatType>(op.getType());
    if (!type)
      return failure();
    auto constant = [&](double value) -> Value {
      return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
    };
    // Above, squares overflow, and 1 is nothing beside them.
    Value x = math::AbsFOp::create(b, op.getOperand()), bound = constant(1e9);
    Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, bound);
    Value small = arith::SelectOp::create(b, isLarge, constant(0), x);
    Value root = math::SqrtOp::create(
        b, arith::AddFOp::create(b, arith::MulFOp::create(b, small, small), constant(1)));
    Value log =
        math::LogOp::create(b, arith::SelectOp::create(b, isLarge, x, arith::AddFOp::create(b, x, root)));
    Value twice = arith::SelectOp::create(b, isLarge, constant(0.6931471805599453), constant(0));
    rewriter.replaceOpWithNewOp<math::CopySignOp>(op, arith::AddFOp::create(b, log, twice), op.getOperand());
    return success();
  }
};

/// The remainder of two narrow numbers is one, too. LLVM would round it by a library where a processor
/// cannot.
struct WidenRemainder : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = dyn_cast<FloatType>(op.getType());
    if (!type || type.getWidth() >= 32)
      return failure();
    Value lhs = arith::ExtFOp::create(b, b.getF32Type(), op.getLhs());
    Value rhs = arith::ExtFOp::create(b, b.getF32Type(), op.getRhs());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, arith::RemFOp::create(b, lhs, rhs));
    return success();
  }
};

/// The remainder to the bit, as libraries have it: by whole numbers, the dividend's digits going up to its
/// exponent above the divisor's, as many places at a time as there is room for.
struct ExpandRemainder : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = dyn_cast<FloatType>(op.getType());
    if (!type || type.getWidth() < 32)
      return failure();
    unsigned width = type.getWidth(), digits = type.getFPMantissaWidth() - 1;
    uint64_t signBit = uint64_t(1) << (width - 1), exponents = signBit - (uint64_t(1) << digits);
    uint64_t bias = (exponents >> digits) / 2;
    Type integer = b.getIntegerType(width);
    auto constant = [&](uint64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getIntegerAttr(integer, APInt(width, value)));
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) -> Value {
      return arith::CmpIOp::create(b, predicate, lhs, rhs);
    };
    Value zero = constant(0), one = constant(1), shift = constant(digits), infinity = constant(exponents);
    Value room = constant(width - digits - 1);
    // Exponents are at least 1, which is that of numbers without their highest digit.
    struct Parts {
      Value bits, exponent, whole;
    };
    auto split = [&](Value number) -> Parts {
      Value bits =
          arith::AndIOp::create(b, arith::BitcastOp::create(b, integer, number), constant(signBit - 1));
      Value exponent = arith::MaxUIOp::create(b, arith::ShRUIOp::create(b, bits, shift), one);
      Value above = arith::ShLIOp::create(b, arith::SubIOp::create(b, exponent, one), shift);
      return {bits, exponent, arith::SubIOp::create(b, bits, above)};
    };
    Parts x = split(op.getLhs()), y = split(op.getRhs());
    Value isZero = compare(arith::CmpIPredicate::eq, y.bits, zero);
    Value isNumber =
        arith::AndIOp::create(b, compare(arith::CmpIPredicate::ult, x.bits, infinity),
                              arith::AndIOp::create(b, compare(arith::CmpIPredicate::ule, y.bits, infinity),
                                                    compare(arith::CmpIPredicate::ne, y.bits, zero)));
    Value isLess = compare(arith::CmpIPredicate::ult, x.bits, y.bits);
    Value divisor = arith::SelectOp::create(b, isZero, one, y.whole);
    Value above =
        arith::SelectOp::create(b, isNumber, arith::SubIOp::create(b, x.exponent, y.exponent), zero);
    auto loop = scf::WhileOp::create(
        b, TypeRange{integer, integer}, ValueRange{arith::RemUIOp::create(b, x.whole, divisor), above},
        [&](OpBuilder &nested, Location loc, ValueRange state) {
          Value goesOn = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::sgt, state[1], zero);
          scf::ConditionOp::create(nested, loc, goesOn, state);
        },
        [&](OpBuilder &nested, Location loc, ValueRange state) {
          Value some = arith::MinSIOp::create(nested, loc, state[1], room);
          Value higher = arith::ShLIOp::create(nested, loc, state[0], some);
          Value left = arith::SubIOp::create(nested, loc, state[1], some);
          scf::YieldOp::create(nested, loc,
                               ValueRange{arith::RemUIOp::create(nested, loc, higher, divisor), left});
        });

    // The highest digit goes as far up as the exponent lets it.
    Value rest = loop.getResult(0), lowest = arith::SubIOp::create(b, y.exponent, one);
    Value converted = arith::BitcastOp::create(b, integer, arith::UIToFPOp::create(b, type, rest));
    Value up = arith::SubIOp::create(b, constant(digits + bias), arith::ShRUIOp::create(b, converted, shift));
    up = arith::MinUIOp::create(b, arith::MinUIOp::create(b, up, shift), lowest);
    Value bits =
        arith::AddIOp::create(b, arith::ShLIOp::create(b, arith::SubIOp::create(b, lowest, up), shift),
                              arith::ShLIOp::create(b, rest, up));
    bits = arith::SelectOp::create(b, compare(arith::CmpIPredicate::eq, rest, zero), zero, bits);
    Value sign =
        arith::AndIOp::create(b, arith::BitcastOp::create(b, integer, op.getLhs()), constant(signBit));
    Value signedRest = arith::BitcastOp::create(b, type, arith::OrIOp::create(b, bits, sign));
    Value product = arith::MulFOp::create(b, op.getLhs(), op.getRhs());
    Value none = arith::DivFOp::create(b, product, product);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(
        op, isNumber, arith::SelectOp::create(b, isLess, op.getLhs(), signedRest).getResult(), none);
    return success();
  }
};

struct ApproximateMath : impl::ApproximateMathBase<ApproximateMath> {
  using ApproximateMathBase::ApproximateMathBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr(graph::kIterateAttr))
      return;
    auto chosen = [&](StringRef name) {
      return (all && name != math::AsinhOp::getOperationName()) || name == math::ExpOp::getOperationName() ||
             name == math::LogOp::getOperationName() || name == math::TanhOp::getOperationName() ||
             name == math::ErfOp::getOperationName();
    };
    RewritePatternSet patterns(&getContext());
    patterns.add<WidenRemainder>(&getContext());
    if (all) {
      patterns.add<ExpandAsinh, ExpandRemainder>(&getContext());
      math::populateExpansionPatterns(patterns, {"sinh", "cosh", "tan", "acosh", "atanh", "powf"});
    }
    populateMathF32ExpansionPatterns(patterns, chosen);
    populateMathPolynomialApproximationPatterns(patterns, chosen);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace dsopt
