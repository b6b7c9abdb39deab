//===- ApproximateMath.cpp - polynomials for exp, log, tanh, erf ----------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "dsopt/Conversion/Passes.h.inc"

namespace {
struct ApproximateMath : impl::ApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(graph::kIterateAttr))
      return;
    auto chosen = [](StringRef name) {
      return name == math::ExpOp::getOperationName() || name == math::LogOp::getOperationName() ||
             name == math::TanhOp::getOperationName() || name == math::ErfOp::getOperationName();
    };
    RewritePatternSet patterns(&getContext());
    populateMathF32ExpansionPatterns(patterns, chosen);
    populateMathPolynomialApproximationPatterns(patterns, chosen);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace dsopt
