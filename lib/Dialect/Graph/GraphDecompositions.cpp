//===- GraphDecompositions.cpp - composites in terms of primitives --------===//
//
// Numbers that a row has one of (a sum's reciprocal, a standard deviation) are
// computed once a row, with the reduced dimensions kept.
//
//===----------------------------------------------------------------------===//

#include "GraphParts.h"
#include "dsopt/Dialect/Graph/Lowerings.h"
#include "dsopt/Interfaces/Interfaces.h"
#include <cmath>

using namespace mlir;

namespace dsopt::graph {
namespace {
using Values = SmallVector<Value>;

Values decompose(ReduceMeanOp op, Parts &p) {
  return {p.mean(op.getInput(), op.getAxes(), op.getKeepdims())};
}

Values decompose(SoftmaxOp op, Parts &p) {
  int64_t axis = op.getAxis();
  Value x = op.getInput();
  Value e = p.make<ExpOp>(p.sub(x, p.max(x, axis)));
  return {p.mul(e, p.make<ReciprocalOp>(p.sum(e, axis)))};
}

Values decompose(GeluOp op, Parts &p) {
  Value x = op.getInput(), one = p.scalar(1, x);
  Value twice; // 2 Phi(x)
  if (op.getApproximateTanh()) {
    Value cubic = p.add(p.mul(p.mul(x, x), p.scalar(0.044715, x)), one);
    Value inner = p.mul(p.mul(x, p.scalar(M_2_SQRTPI * M_SQRT1_2, x)), cubic);
    twice = p.add(one, p.make<TanhOp>(inner));
  } else {
    twice = p.add(one, p.make<ErfOp>(p.mul(x, p.scalar(M_SQRT1_2, x))));
  }
  return {p.mul(p.mul(x, p.scalar(0.5, x)), twice)};
}

Values decompose(SiluOp op, Parts &p) { return {p.mul(op.getInput(), p.make<SigmoidOp>(op.getInput()))}; }

/// The dimensions that a normalization goes over.
template <typename Op> SmallVector<int64_t> axesOf(Op op) {
  int64_t rank = cast<RankedTensorType>(op.getInput().getType()).getRank();
  return llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), rank));
}

/// 1 / sqrt(mean(x * x) + epsilon)
template <typename Op> Value rstdOf(Op op, Value x, Parts &p) {
  Value square = p.mean(p.mul(x, x), axesOf(op));
  Value root = p.make<SqrtOp>(p.add(square, p.scalar(op.getEpsilon().convertToDouble(), x)));
  return p.make<ReciprocalOp>(root);
}

Values decompose(RmsNormOp op, Parts &p) {
  Value x = op.getInput(), rstd = rstdOf(op, x, p);
  return {p.mul(p.mul(x, rstd), op.getScale()), rstd};
}

Values decompose(LayerNormOp op, Parts &p) {
  Value x = op.getInput();
  Value mean = p.mean(x, axesOf(op));
  Value centered = p.sub(x, mean);
  Value rstd = rstdOf(op, centered, p);
  Value result = p.mul(p.mul(centered, rstd), op.getScale());
  if (Value bias = op.getBias())
    result = p.add(result, bias);
  return {result, mean, rstd};
}

/// Elements of a running sum that are added as one sum each.
constexpr int64_t kDirectSum = 64;

/// The running sums of rows of `[rows, size]`.
Value runningSum(Parts &p, Value x, bool exclusive, bool reverse) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t rows = type.getDimSize(0), size = type.getDimSize(1), block = std::min(size, kDirectSum);
  int64_t blocks = llvm::divideCeil(size, std::max<int64_t>(block, 1));
  if (size <= 1 && !exclusive)
    return x;
  Type element = type.getElementType();
  if (blocks * block != size)
    x = p.make<PadOp>(x, ArrayRef<int64_t>{0, 0}, ArrayRef<int64_t>{0, blocks * block - size},
                      cast<TypedAttr>(p.b.getZeroAttr(element)));
  // Sum i of a block takes its element j where the mask holds.
  SmallVector<bool> mask;
  for (int64_t i = 0; i < block; ++i)
    for (int64_t j = 0; j < block; ++j)
      mask.push_back((reverse ? j > i : j < i) || (j == i && !exclusive));
  Value takes = p.make<ConstantOp>(cast<ElementsAttr>(
      DenseElementsAttr::get(RankedTensorType::get({1, 1, block, block}, p.b.getI1Type()), mask)));
  Value spread = p.make<WhereOp>(takes, p.reshape(x, {rows, blocks, 1, block}), p.scalar(0, x));
  Value sums = p.make<ReduceSumOp>(spread, 3, /*keepdims=*/false);
  if (blocks > 1) {
    Value totals = p.make<ReduceSumOp>(p.reshape(x, {rows, blocks, block}), 2, /*keepdims=*/false);
    sums = p.add(sums, p.reshape(runningSum(p, totals, /*exclusive=*/true, reverse), {rows, blocks, 1}));
  }
  sums = p.reshape(sums, {rows, blocks * block});
  if (blocks * block != size)
    sums = p.make<SliceOp>(sums, ArrayRef<int64_t>{0, 0}, ArrayRef<int64_t>{rows, size},
                           ArrayRef<int64_t>{1, 1});
  return sums;
}

/// Sums in blocks, to which the running sum of the blocks' sums is added: the order of additions
/// depends on the length alone.
Values decompose(CumSumOp op, Parts &p) {
  Value x = op.getInput();
  auto type = cast<RankedTensorType>(x.getType());
  int64_t axis = op.getAxis(), size = type.getDimSize(axis), rank = type.getRank();
  bool exclusive = op.getExclusive(), reverse = op.getReverse();
  // The dimension comes last.
  SmallVector<int64_t> perm, back(rank);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != axis)
      perm.push_back(dim);
  perm.push_back(axis);
  for (auto [to, from] : llvm::enumerate(perm))
    back[from] = to;
  int64_t rows = size ? type.getNumElements() / size : 0;
  Value moved = p.reshape(axis == rank - 1 ? x : p.make<TransposeOp>(x, perm), {rows, size});
  Value sums = runningSum(p, moved, exclusive, reverse);
  SmallVector<int64_t> shape;
  for (int64_t dim : perm)
    shape.push_back(type.getDimSize(dim));
  sums = p.reshape(sums, shape);
  return {axis == rank - 1 ? sums : p.make<TransposeOp>(sums, back)};
}

Values decompose(WindowsSumOp op, Parts &p) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  size_t axis = op.getAxis(), count = op.getStrides().size();
  SmallVector<int64_t> shape(op.getResult().getType().getShape());
  int64_t rank = shape.size();
  llvm::append_range(shape, type.getShape().slice(axis + count, count));
  Value placed = p.make<WindowsPlaceOp>(RankedTensorType::get(shape, type.getElementType()), op.getInput(),
                                        op.getAxis(), op.getStrides(), op.getDilations(), op.getLows());
  return {p.make<ReduceSumOp>(placed, llvm::to_vector(llvm::seq<int64_t>(rank, rank + count)),
                              /*keepdims=*/false)};
}

/// In columns of one element, so that all of it is one row of a kernel.
Values decompose(NllOp op, Parts &p) {
  Value x = op.getLogits();
  int64_t rows = cast<RankedTensorType>(x.getType()).getDimSize(0);
  Value labels = p.reshape(op.getLabels(), {rows, 1});
  Value ignored = p.make<EqualOp>(labels, p.scalar(static_cast<int64_t>(op.getIgnoreIndex()), labels));
  Value largest = p.max(x, 1);
  Value total = p.sum(p.make<ExpOp>(p.sub(x, largest)), 1);
  Value lse = p.add(p.make<LogOp>(total), largest);
  Value readable = p.make<WhereOp>(ignored, p.scalar(0, labels), labels);
  Value picked = p.make<GatherElementsOp>(x, readable, 1);
  Value loss = p.make<WhereOp>(ignored, p.scalar(0, x), p.sub(lse, picked));
  return {p.reshape(loss, rows), p.reshape(lse, rows)};
}

/// What has no gradient, or one that is not merged with it.
Values decompose(LinearNllOp op, Parts &p) {
  Value logits = p.make<MatMulOp>(op.getX(), op.getWeight(), false, op.getTransposeB());
  if (op.getBias())
    logits = p.add(logits, op.getBias());
  return {p.make<NllOp>(logits, op.getLabels(), op.getIgnoreIndex())};
}

Values decompose(StopGradientOp op, Parts &) { return {op.getInput()}; }
Values decompose(CustomGradientOp op, Parts &) { return Values(op.getValues()); }

template <typename Op>
struct CompositeModel : DecomposableOpInterface::ExternalModel<CompositeModel<Op>, Op> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    Parts parts(builder, op);
    return graph::decompose(cast<Op>(op), parts);
  }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<CompositeModel<Ops>>(*context), ...);
}
} // namespace

void registerDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    attach<ReduceMeanOp, CumSumOp, WindowsSumOp, SoftmaxOp, GeluOp, SiluOp, RmsNormOp, LayerNormOp, NllOp,
           LinearNllOp, StopGradientOp, CustomGradientOp>(context);
  });
}
} // namespace dsopt::graph
