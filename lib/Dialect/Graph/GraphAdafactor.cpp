//===- GraphAdafactor.cpp - factored second moments -----------------------===//
//
// Of a parameter with rows and columns the mean squares of its rows R and of its
// columns C estimate those of its elements: V = R C / mean(R). The update is
// G / sqrt(V), made shorter where the root of its mean square is above 1. A batch
// of matrices has such factors for each.
//
//===----------------------------------------------------------------------===//

#include "GraphAdafactor.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Runtime/Scalars.h"

#include <limits>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

/// PyTorch's eps[0] for fp32, and d.
static constexpr double kLeastRoot = std::numeric_limits<float>::epsilon(), kLongest = 1;

SmallVector<WholeState> dsopt::graph::adafactorStates(RankedTensorType parameter) {
  int64_t rank = parameter.getRank();
  auto reduced = [&](int64_t axis) {
    SmallVector<int64_t> shape(parameter.getShape());
    shape[axis] = 1;
    return RankedTensorType::get(shape, parameter.getElementType());
  };
  if (rank < 2)
    return {{"variance", parameter}};
  return {{"row_var", reduced(rank - 1)}, {"col_var", reduced(rank - 2)}};
}

SmallVector<Value> dsopt::graph::buildAdafactor(OpBuilder &builder, Location loc, ValueRange operands) {
  Value gradient = operands[0], scalars = operands[1];
  ValueRange states = operands.drop_front(2);
  auto type = cast<RankedTensorType>(gradient.getType());
  int64_t rank = type.getRank();
  auto scalar = RankedTensorType::get({}, type.getElementType());
  auto constant = [&](double value) { return scalarConstant(builder, loc, type.getElementType(), value); };
  auto entry = [&](int64_t index) -> Value {
    int64_t one = 1;
    return ReshapeOp::create(builder, loc, scalar, SliceOp::create(builder, loc, scalars, index, one, one));
  };
  auto mul = [&](Value x, Value y) -> Value { return MulOp::create(builder, loc, x, y); };
  auto mean = [&](Value value, int64_t axis) -> Value {
    return ReduceMeanOp::create(builder, loc, value, axis, /*keepdims=*/true);
  };
  Value applies = GreaterOp::create(builder, loc, entry(DSOPT_APPLY), constant(0));
  Value keeps = entry(DSOPT_BETA2), takes = entry(DSOPT_ONE_MINUS_BETA2);
  auto moved = [&](Value old, Value next) -> Value {
    Value mixed = AddOp::create(builder, loc, mul(keeps, old), mul(takes, next));
    return WhereOp::create(builder, loc, applies, mixed, old);
  };
  SmallVector<Value> results{Value()};
  Value squares = mul(gradient, gradient), variance;
  if (rank < 2) {
    variance = results.emplace_back(moved(states[0], squares));
  } else {
    Value rows = results.emplace_back(moved(states[0], mean(squares, rank - 1)));
    Value columns = results.emplace_back(moved(states[1], mean(squares, rank - 2)));
    Value scale = MaxOp::create(builder, loc, mean(rows, rank - 2), constant(kLeastRoot));
    variance = DivOp::create(builder, loc, mul(rows, columns), scale);
  }
  Value bounded = MaxOp::create(builder, loc, variance, constant(kLeastRoot * kLeastRoot));
  Value update = DivOp::create(builder, loc, gradient, SqrtOp::create(builder, loc, bounded));
  // Rows first, then what is left, as other norms of whole matrices.
  Value sum = mul(update, update);
  if (rank > 0)
    sum = ReduceSumOp::create(builder, loc, sum, rank - 1, /*keepdims=*/true);
  if (rank > 1)
    sum =
        ReduceSumOp::create(builder, loc, sum, llvm::to_vector(llvm::seq<int64_t>(rank)), /*keepdims=*/true);
  Value root = SqrtOp::create(builder, loc, mul(sum, constant(1.0 / type.getNumElements())));
  Value length = MaxOp::create(builder, loc, mul(root, constant(1 / kLongest)), constant(1));
  results[0] = DivOp::create(builder, loc, update, length);
  return results;
}
