//===- GraphDecompositions.cpp - composites in terms of primitives --------===//
//
// Numbers that a row has one of (a sum's reciprocal, a standard deviation) are
// computed once a row, with the reduced dimensions kept.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Lowerings.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <cmath>

using namespace mlir;

namespace dsopt::graph {
namespace {

/// Builds primitive operations.
struct Parts {
  ImplicitLocOpBuilder b;

  Parts(OpBuilder &builder, Operation *op) : b(op->getLoc(), builder) {}

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, std::forward<Args>(args)...)->getResult(0);
  }
  /// A constant of the element type of `like`.
  Value scalar(double value, Value like) {
    Type element = cast<RankedTensorType>(like.getType()).getElementType();
    Attribute attr = isa<FloatType>(element)
                         ? Attribute(b.getFloatAttr(element, value))
                         : Attribute(b.getIntegerAttr(element, static_cast<int64_t>(value)));
    ElementsAttr elements = DenseElementsAttr::get(RankedTensorType::get({}, element), attr);
    return make<ConstantOp>(elements);
  }
  Value add(Value x, Value y) { return make<AddOp>(x, y); }
  Value sub(Value x, Value y) { return make<SubOp>(x, y); }
  Value mul(Value x, Value y) { return make<MulOp>(x, y); }
  Value sum(Value x, ArrayRef<int64_t> axes) { return make<ReduceSumOp>(x, axes, /*keepdims=*/true); }
  Value max(Value x, ArrayRef<int64_t> axes) { return make<ReduceMaxOp>(x, axes, /*keepdims=*/true); }
  Value mean(Value x, ArrayRef<int64_t> axes, bool keepdims = true) {
    int64_t count = 1;
    for (int64_t axis : axes)
      count *= cast<RankedTensorType>(x.getType()).getDimSize(axis);
    return make<DivOp>(make<ReduceSumOp>(x, axes, keepdims), scalar(count, x));
  }
  Value reshape(Value x, ArrayRef<int64_t> shape) {
    return make<ReshapeOp>(RankedTensorType::get(shape, cast<RankedTensorType>(x.getType()).getElementType()),
                           x);
  }
};

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

Values decompose(LayerNormOp op, Parts &p) {
  Value x = op.getInput();
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), rank));
  Value mean = p.mean(x, axes);
  Value centered = p.sub(x, mean);
  Value variance = p.mean(p.mul(centered, centered), axes);
  Value deviation = p.make<SqrtOp>(p.add(variance, p.scalar(op.getEpsilon().convertToDouble(), x)));
  Value rstd = p.make<ReciprocalOp>(deviation);
  Value result = p.mul(p.mul(centered, rstd), op.getScale());
  if (Value bias = op.getBias())
    result = p.add(result, bias);
  return {result, mean, rstd};
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
    attach<ReduceMeanOp, SoftmaxOp, GeluOp, LayerNormOp, NllOp, LinearNllOp>(context);
  });
}
} // namespace dsopt::graph
