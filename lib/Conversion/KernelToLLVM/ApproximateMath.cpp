//===- ApproximateMath.cpp - polynomials for exp, log, tanh, erf ----------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
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
    if (all) {
      patterns.add<ExpandAsinh>(&getContext());
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
