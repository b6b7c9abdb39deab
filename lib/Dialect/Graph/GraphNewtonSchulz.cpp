//===- GraphNewtonSchulz.cpp - singular values to near 1 ------------------===//
//
// Five steps of X := a X + (b A + c A A) X with A = X X^T, from X = U / |U|. Of a
// matrix with more rows than columns the products are those of its transpose, with
// the factors on the other side: A is the smaller one.
//
//===----------------------------------------------------------------------===//

#include "GraphNewtonSchulz.h"
#include "dsopt/Dialect/Graph/Constants.h"

#include <cmath>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

/// Of the Muon paper's code, and PyTorch's and DeepSpeed's.
static constexpr double kX = 3.4445, kGram = -4.775, kGramSquared = 2.0315;
static constexpr double kLeastNorm = 1e-7;
static constexpr int kSteps = 5;

Value dsopt::graph::buildNewtonSchulz(OpBuilder &builder, Location loc, Value direction, bool matchRms,
                                      bool rowsAreInputs) {
  auto type = cast<RankedTensorType>(direction.getType());
  Type element = type.getElementType();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  auto constant = [&](double value) { return scalarConstant(builder, loc, element, value); };
  auto scaled = [&](Value value, double factor) -> Value {
    return MulOp::create(builder, loc, value, constant(factor));
  };
  auto sum = [&](Value value, ArrayRef<int64_t> axes) -> Value {
    return ReduceSumOp::create(builder, loc, value, axes, /*keepdims=*/true);
  };
  auto product = [&](Value lhs, Value rhs, bool transposeLhs = false, bool transposeRhs = false) -> Value {
    return MatMulOp::create(builder, loc, lhs, rhs, transposeLhs, transposeRhs);
  };
  Value squares = sum(sum(MulOp::create(builder, loc, direction, direction), {1}), {0, 1});
  Value norm = MaxOp::create(builder, loc, SqrtOp::create(builder, loc, squares), constant(kLeastNorm));
  Value x = DivOp::create(builder, loc, direction, norm);
  bool isTall = rows > columns;
  for (int step = 0; step < kSteps; ++step) {
    Value gram = product(x, x, /*transposeLhs=*/isTall, /*transposeRhs=*/!isTall);
    Value factor =
        AddOp::create(builder, loc, scaled(gram, kGram), scaled(product(gram, gram), kGramSquared));
    Value moved = isTall ? product(x, factor) : product(factor, x);
    x = AddOp::create(builder, loc, scaled(x, kX), moved);
  }
  double outputs = rowsAreInputs ? columns : rows, inputs = rowsAreInputs ? rows : columns;
  double length =
      matchRms ? 0.2 * std::sqrt(std::max(outputs, inputs)) : std::sqrt(std::max(1.0, outputs / inputs));
  return length == 1 ? x : scaled(x, length);
}
