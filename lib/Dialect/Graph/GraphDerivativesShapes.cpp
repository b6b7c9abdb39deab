//===- GraphDerivativesShapes.cpp - products, reductions, data movement ---===//

#include "GraphDerivatives.h"

#include "dsopt/Dialect/Graph/Derivatives.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

LogicalResult gradient(MatMulOp op, GradientBuilder &g) {
  Value a = op.getLhs(), b = op.getRhs(), dy = g.grad();
  bool ta = op.getTransposeA(), tb = op.getTransposeB();
  // y = op(a) op(b). d op(a) = dy op(b)^T, d op(b) = op(a)^T dy; a transposed
  // operand takes the transpose of that product.
  if (g.needs(0))
    g.set(0, ta ? g.make<MatMulOp>(b, dy, tb, true) : g.make<MatMulOp>(dy, b, false, !tb));
  if (g.needs(1))
    g.set(1, tb ? g.make<MatMulOp>(dy, a, true, ta) : g.make<MatMulOp>(a, dy, !ta, false));
  return success();
}

/// The reduced dimensions back as ones.
RankedTensorType keptType(RankedTensorType input, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape(input.getShape());
  for (int64_t axis : axes)
    shape[axis] = 1;
  return RankedTensorType::get(shape, input.getElementType());
}
LogicalResult gradient(ReduceSumOp op, GradientBuilder &g) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  g.set(0, g.expand(g.reshape(g.grad(), keptType(type, op.getAxes())), type));
  return success();
}
LogicalResult gradient(ReduceMeanOp op, GradientBuilder &g) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  double count = 1;
  for (int64_t axis : op.getAxes())
    count *= type.getDimSize(axis);
  Value part = g.div(g.grad(), g.scalar(count, g.grad()));
  g.set(0, g.expand(g.reshape(part, keptType(type, op.getAxes())), type));
  return success();
}
/// Where the first of the chosen elements is.
Value firstOf(Value chosen, RankedTensorType type, ArrayRef<int64_t> axes, GradientBuilder &g) {
  SmallVector<int64_t> shape(type.getRank(), 1);
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= shape[axis] = type.getDimSize(axis);
  auto i32 = IntegerType::get(type.getContext(), 32);
  auto order = llvm::to_vector(llvm::seq<int32_t>(0, count));
  Value place = g.make<ConstantOp>(
      cast<ElementsAttr>(DenseElementsAttr::get(RankedTensorType::get(shape, i32), ArrayRef(order))));
  Value places = g.make<WhereOp>(chosen, place, g.scalar(count, place));
  return g.make<EqualOp>(place, g.make<ReduceMinOp>(places, axes, /*keepdims=*/true));
}

/// The extremum is taken anew from the very value that is compared with it: the one that forward has may be
/// rounded, where it is stored, or this one.
template <typename OpTy> LogicalResult extremumGradient(OpTy op, GradientBuilder &g) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  RankedTensorType kept = keptType(type, op.getAxes());
  Value zero = g.scalar(0, g.grad()), one = g.scalar(1, g.grad());
  Value extremum = g.template make<OpTy>(op.getInput(), op.getAxes(), /*keepdims=*/true);
  Value chosen = g.template make<EqualOp>(op.getInput(), extremum);
  if (op.getFirst()) {
    Value first = firstOf(chosen, type, op.getAxes(), g);
    g.set(0, g.template make<WhereOp>(first, g.reshape(g.grad(), kept), zero));
    return success();
  }
  Value count = g.sum(g.template make<WhereOp>(chosen, g.expand(one, type), zero), op.getAxes(), true);
  Value part = g.div(g.reshape(g.grad(), kept), count);
  g.set(0, g.template make<WhereOp>(chosen, part, zero));
  return success();
}
LogicalResult gradient(ReduceMaxOp op, GradientBuilder &g) { return extremumGradient(op, g); }
LogicalResult gradient(ReduceMinOp op, GradientBuilder &g) { return extremumGradient(op, g); }

/// The product of the others: by division, but where an element is zero of those that are not.
LogicalResult gradient(ReduceProdOp op, GradientBuilder &g) {
  Value x = op.getInput();
  auto type = cast<RankedTensorType>(x.getType());
  Value zero = g.scalar(0, x), one = g.scalar(1, x);
  Value isZero = g.make<EqualOp>(x, zero);
  Value safe = g.make<WhereOp>(isZero, g.expand(one, type), x);
  Value count = g.sum(g.make<WhereOp>(isZero, g.expand(one, type), zero), op.getAxes(), true);
  Value rest = g.make<ReduceProdOp>(safe, op.getAxes(), true);
  Value ofZero = g.make<WhereOp>(g.make<EqualOp>(count, one), rest, zero);
  Value ofOthers = g.div(g.make<WhereOp>(g.make<EqualOp>(count, zero), rest, zero), safe);
  Value slope = g.make<WhereOp>(isZero, ofZero, ofOthers);
  g.set(0, g.mul(g.reshape(g.grad(), keptType(type, op.getAxes())), slope));
  return success();
}
/// A running sum from the other end.
LogicalResult gradient(CumSumOp op, GradientBuilder &g) {
  g.set(0, g.make<CumSumOp>(g.grad(), op.getAxis(), op.getExclusive(), !op.getReverse()));
  return success();
}

LogicalResult gradient(ReshapeOp op, GradientBuilder &g) {
  g.set(0, g.reshape(g.grad(), op.getInput().getType()));
  return success();
}
LogicalResult gradient(ExpandOp op, GradientBuilder &g) {
  g.set(0, g.grad());
  return success();
}
LogicalResult gradient(TransposeOp op, GradientBuilder &g) {
  SmallVector<int64_t> inverse(op.getPerm().size());
  for (auto [to, from] : llvm::enumerate(op.getPerm()))
    inverse[from] = to;
  g.set(0, g.make<TransposeOp>(g.grad(), inverse));
  return success();
}
LogicalResult gradient(ConcatOp op, GradientBuilder &g) {
  int64_t axis = op.getAxis();
  SmallVector<int64_t> starts(cast<ShapedType>(op.getResult().getType()).getRank(), 0);
  SmallVector<int64_t> steps(starts.size(), 1);
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    ArrayRef<int64_t> sizes = cast<ShapedType>(input.getType()).getShape();
    if (g.needs(i))
      g.set(i, g.make<SliceOp>(g.grad(), starts, sizes, steps));
    starts[axis] += sizes[axis];
  }
  return success();
}
LogicalResult gradient(SliceOp op, GradientBuilder &g) {
  // What only changes the order of elements is its own adjoint.
  if (op.getType() == op.getInput().getType()) {
    g.set(0, g.make<SliceOp>(g.grad(), op.getStarts(), op.getSizes(), op.getSteps()));
    return success();
  }
  g.set(0, g.make<SliceGradOp>(op.getInput().getType(), g.grad(), op.getStarts(), op.getSteps()));
  return success();
}
LogicalResult gradient(SliceGradOp op, GradientBuilder &g) {
  ArrayRef<int64_t> sizes = cast<ShapedType>(op.getInput().getType()).getShape();
  g.set(0, g.make<SliceOp>(g.grad(), op.getStarts(), sizes, op.getSteps()));
  return success();
}
LogicalResult gradient(PadOp op, GradientBuilder &g) {
  auto negated = [](ArrayRef<int64_t> counts) {
    return llvm::map_to_vector(counts, [](int64_t count) { return -count; });
  };
  auto zero = FloatAttr::get(getElementTypeOrSelf(op.getInput().getType()), 0.0);
  g.set(0, g.make<PadOp>(g.grad(), negated(op.getLows()), negated(op.getHighs()), zero));
  return success();
}
/// Slices along an inner axis are scattered as rows: the axis comes first meanwhile.
Value scatterSlices(GatherOp op, Value grad, GradientBuilder &g) {
  auto type = cast<RankedTensorType>(op.getData().getType());
  int64_t axis = op.getAxis(), rank = type.getRank();
  if (axis == 0)
    return g.make<GatherGradOp>(type, grad, op.getIndices(), 0);
  int64_t indexRank = cast<RankedTensorType>(op.getIndices().getType()).getRank();
  SmallVector<int64_t> toFront, back(rank), shape{type.getDimSize(axis)};
  for (int64_t i = 0; i < indexRank; ++i)
    toFront.push_back(axis + i);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != axis) {
      toFront.push_back(dim < axis ? dim : dim + indexRank - 1);
      shape.push_back(type.getDimSize(dim));
      back[dim] = dim < axis ? dim + 1 : dim;
    }
  auto rows = RankedTensorType::get(shape, type.getElementType());
  Value moved = g.make<TransposeOp>(grad, toFront);
  return g.make<TransposeOp>(g.make<GatherGradOp>(rows, moved, op.getIndices(), 0), back);
}
LogicalResult gradient(GatherOp op, GradientBuilder &g) {
  Value grad = g.grad();
  if (IntegerAttr row = op.getPaddingIndexAttr()) {
    // One condition for each slice that is looked up.
    auto indices = cast<RankedTensorType>(op.getIndices().getType());
    SmallVector<int64_t> shape(cast<RankedTensorType>(grad.getType()).getRank(), 1);
    llvm::copy(indices.getShape(), shape.begin() + op.getAxis());
    auto scalar = RankedTensorType::get({}, indices.getElementType());
    Value index = g.make<ConstantOp>(
        DenseElementsAttr::get(scalar, IntegerAttr::get(indices.getElementType(), row.getInt()).getValue()));
    Value isPadding = g.make<EqualOp>(op.getIndices(), index);
    isPadding = g.reshape(
        isPadding, RankedTensorType::get(shape, cast<ShapedType>(isPadding.getType()).getElementType()));
    grad = g.make<WhereOp>(isPadding, g.scalar(0, grad), grad);
  }
  g.set(0, scatterSlices(op, grad, g));
  return success();
}

/// Elements of the flattened data, at places that are computed from the indices.
LogicalResult gradient(GatherElementsOp op, GradientBuilder &g) {
  auto data = cast<RankedTensorType>(op.getData().getType()),
       indices = cast<RankedTensorType>(op.getIndices().getType());
  int64_t axis = op.getAxis(), count = indices.getNumElements(), stride = 1;
  // Where each element would be taken from if its index were 0.
  SmallVector<int64_t> strides(data.getRank(), 1), bases(count);
  for (int64_t dim = data.getRank() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * data.getDimSize(dim);
  stride = strides[axis];
  for (int64_t at = 0; at < count; ++at)
    for (int64_t rest = at, dim = data.getRank() - 1; dim >= 0; rest /= indices.getDimSize(dim--))
      bases[at] += dim == axis ? 0 : rest % indices.getDimSize(dim) * strides[dim];
  Type i64 = IntegerType::get(op.getContext(), 64);
  auto wide = RankedTensorType::get(indices.getShape(), i64);
  Value index = op.getIndices();
  if (index.getType() != wide)
    index = g.make<CastOp>(wide, index);
  Value zero = g.scalar(0, index);
  Value size = g.scalar(data.getDimSize(axis), index);
  index = g.make<WhereOp>(g.make<LessOp>(index, zero), g.add(index, size), index);
  Value base = g.make<ConstantOp>(DenseElementsAttr::get(wide, ArrayRef<int64_t>(bases)));
  Value flat =
      g.reshape(g.add(g.mul(index, g.scalar(stride, index)), base), RankedTensorType::get({count}, i64));
  Type element = data.getElementType();
  Value rows = g.reshape(g.grad(), RankedTensorType::get({count, 1}, element));
  Value sum = g.make<GatherGradOp>(RankedTensorType::get({data.getNumElements(), 1}, element), rows, flat, 0);
  g.set(0, g.reshape(sum, data));
  return success();
}
LogicalResult gradient(GatherGradOp op, GradientBuilder &g) {
  g.set(0, g.make<GatherOp>(g.grad(), op.getIndices(), op.getAxis(), IntegerAttr()));
  return success();
}

} // namespace

void attachShapeDerivatives(MLIRContext *context) {
  attachDerivative<MatMulOp, gradient>(context);
  attachDerivative<ReduceSumOp, gradient>(context);
  attachDerivative<ReduceMeanOp, gradient>(context);
  attachDerivative<ReduceMaxOp, gradient>(context);
  attachDerivative<ReduceMinOp, gradient>(context);
  attachDerivative<ReduceProdOp, gradient>(context);
  attachDerivative<CumSumOp, gradient>(context);
  attachDerivative<GatherElementsOp, gradient>(context);
  attachDerivative<ReshapeOp, gradient>(context);
  attachDerivative<ExpandOp, gradient>(context);
  attachDerivative<TransposeOp, gradient>(context);
  attachDerivative<ConcatOp, gradient>(context);
  attachDerivative<SliceOp, gradient>(context);
  attachDerivative<SliceGradOp, gradient>(context);
  attachDerivative<PadOp, gradient>(context);
  attachDerivative<GatherOp, gradient>(context);
  attachDerivative<GatherGradOp, gradient>(context);
}

} // namespace dsopt::graph
