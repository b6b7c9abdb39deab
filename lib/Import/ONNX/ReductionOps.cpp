//===- ReductionOps.cpp - sums, products, extrema, running sums ------------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
/// Reduces the first input over axes.
using Reduction = Value (*)(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims);
} // namespace

/// The axes are an input from opset `Since` on.
template <Reduction build, int64_t Since> static LogicalResult reduce(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  auto axes = n.axes(1, Since, Emitter::rankOf(value));
  if (failed(axes))
    return failure();
  SmallVector<int64_t> reduced;
  if (*axes)
    reduced = **axes;
  // An empty list is all axes, or none where asked for: then only what is done to each element is left.
  bool isNothing = n.opset >= Since && n.integerAttr("noop_with_empty_axes", 0);
  if (reduced.empty() && !isNothing)
    for (int64_t i = 0; i < Emitter::rankOf(value); ++i)
      reduced.push_back(i);
  return n.set(0, build(n, value, reduced, n.integerAttr("keepdims", 1) != 0));
}

template <typename Op>
static Value primitive(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  return n.e.reduce<Op>(x, axes, keepdims);
}
/// Of bools: as integers meanwhile. PyTorch's max along a dimension gives the gradient to the element whose
/// index it returns.
template <typename Op> static Value extreme(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  Type element = Emitter::elementOf(x);
  StringRef source = n.torchOperator();
  bool isIndexed = ((source == "max" || source == "min") && (int64_t)axes.size() < Emitter::rankOf(x)) ||
                   source.starts_with("adaptive_max_pool");
  if (!element.isInteger(1)) {
    SmallVector<NamedAttribute> attributes{n.e.attr("axes", axes)};
    if (keepdims)
      attributes.push_back(n.e.flag("keepdims"));
    if (isIndexed)
      attributes.push_back(n.e.flag("first"));
    return n.e.make<Op>(x, attributes);
  }
  Value best = n.e.reduce<Op>(n.e.convert(x, n.e.builder.getI32Type()), axes, keepdims);
  if (std::is_same_v<Op, graph::ReduceMaxOp>) // of nothing it is false
    best = n.e.maximum(best, n.e.scalar(0, best));
  return n.e.convert(best, element);
}
static Value l1(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  return n.e.sum(n.e.make<graph::AbsOp>(x), axes, keepdims);
}
static Value sumSquare(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  return n.e.sum(n.e.mul(x, x), axes, keepdims);
}
/// The gradient of zeros is zero, as PyTorch has it: a root of zero would have none.
static Value l2(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  Emitter &e = n.e;
  Value squares = sumSquare(n, x, axes, keepdims), isZero = e.equal(squares, e.scalar(0, squares));
  Value root = e.make<graph::SqrtOp>(e.where(isZero, e.scalar(1, squares), squares));
  return e.where(isZero, e.scalar(0, squares), root);
}
static Value logSum(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  return n.e.make<graph::LogOp>(n.e.sum(x, axes, keepdims));
}
/// Relative to the largest element, so that no exponential overflows. What that adds to the gradient is what
/// it takes away again.
static Value logSumExp(NodeBuilder &n, Value x, ArrayRef<int64_t> axes, bool keepdims) {
  Emitter &e = n.e;
  Value largest = e.reduce<graph::ReduceMaxOp>(x, axes, /*keepdims=*/true);
  if (!largest)
    return {};
  // Infinite ones are left to the exponential.
  Value finite = e.less(e.make<graph::AbsOp>(largest), e.scalar(std::numeric_limits<double>::infinity(), x));
  Value shift = e.make<graph::StopGradientOp>(e.where(finite, largest, e.scalar(0, x)));
  Value total = e.sum(e.make<graph::ExpOp>(e.sub(x, shift)), axes, /*keepdims=*/true);
  Value result = e.add(e.make<graph::LogOp>(total), shift);
  if (!result || keepdims)
    return result;
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(Emitter::shapeOf(result)))
    if (!llvm::is_contained(axes, (int64_t)dim))
      shape.push_back(size);
  return e.reshape(result, shape);
}

/// The place of the largest (or smallest) element along an axis: of equal ones the first or the last.
template <typename Best> static LogicalResult arg(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x)
    return failure();
  int64_t rank = Emitter::rankOf(x);
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), rank);
  if (failed(axis))
    return failure();
  int64_t size = Emitter::shapeOf(x)[*axis];
  Value best = e.reduce<Best>(x, *axis);
  Value isBest = e.equal(x, best);
  if (isa<FloatType>(Emitter::elementOf(x)))
    isBest = e.make<graph::OrOp>({isBest, e.make<graph::IsNaNOp>(x)});
  Value places = e.counting(e.builder.getI64Type(), size, *axis, rank);
  bool last = n.integerAttr("select_last_index", 0) != 0, keepdims = n.integerAttr("keepdims", 1) != 0;
  Value candidates = e.where(isBest, places, e.scalar(last ? -1 : size, places));
  return n.set(0, last ? e.reduce<graph::ReduceMaxOp>(candidates, *axis, keepdims)
                       : e.reduce<graph::ReduceMinOp>(candidates, *axis, keepdims));
}

static LogicalResult cumSum(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<int64_t> given = value ? n.integer(1, "axis") : FailureOr<int64_t>();
  FailureOr<int64_t> axis = failed(given) ? given : n.axis(*given, Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  SmallVector<NamedAttribute> attributes{n.e.attr("axis", *axis)};
  if (n.integerAttr("exclusive", 0))
    attributes.push_back(n.e.flag("exclusive"));
  if (n.integerAttr("reverse", 0))
    attributes.push_back(n.e.flag("reverse"));
  return n.set(0, n.e.make<graph::CumSumOp>(value, attributes));
}

/// Running products: each element times the one before, times those two before, four and so on.
static LogicalResult cumProd(NodeBuilder &n) {
  Emitter &e = n.e;
  Value value = n.input(0);
  FailureOr<int64_t> given = value ? n.integer(1, "axis") : FailureOr<int64_t>();
  FailureOr<int64_t> axis = failed(given) ? given : n.axis(*given, Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  Type element = Emitter::elementOf(value);
  TypedAttr one = isa<FloatType>(element) ? TypedAttr(e.builder.getFloatAttr(element, 1))
                                          : TypedAttr(e.builder.getIntegerAttr(element, 1));
  bool reverse = n.integerAttr("reverse", 0);
  int64_t size = Emitter::shapeOf(value)[*axis];
  auto shifted = [&](Value x, int64_t by) {
    SmallVector<int64_t> lows(Emitter::rankOf(x), 0), highs(lows);
    (reverse ? highs : lows)[*axis] = by;
    (reverse ? lows : highs)[*axis] = -by;
    return e.make<graph::PadOp>(x, {e.attr("lows", lows), e.attr("highs", highs), e.attr("value", one)});
  };
  if (n.integerAttr("exclusive", 0) && size > 0)
    value = shifted(value, 1);
  for (int64_t by = 1; by < size && value; by *= 2)
    value = e.mul(value, shifted(value, by));
  return n.set(0, value);
}

ArrayRef<OpRow> reductionOps() {
  static const OpRow rows[] = {
      {"ArgMax", 1, kMaxOpset, arg<graph::ReduceMaxOp>},
      {"ArgMin", 1, kMaxOpset, arg<graph::ReduceMinOp>},
      {"CumProd", 26, kMaxOpset, cumProd},
      {"CumSum", 11, kMaxOpset, cumSum},
      {"ReduceL1", 1, kMaxOpset, reduce<l1, 18>},
      {"ReduceL2", 1, kMaxOpset, reduce<l2, 18>},
      {"ReduceLogSum", 1, kMaxOpset, reduce<logSum, 18>},
      {"ReduceLogSumExp", 1, kMaxOpset, reduce<logSumExp, 18>},
      {"ReduceMax", 1, kMaxOpset, reduce<extreme<graph::ReduceMaxOp>, 18>},
      {"ReduceMean", 1, kMaxOpset, reduce<primitive<graph::ReduceMeanOp>, 18>},
      {"ReduceMin", 1, kMaxOpset, reduce<extreme<graph::ReduceMinOp>, 18>},
      {"ReduceProd", 1, kMaxOpset, reduce<primitive<graph::ReduceProdOp>, 18>},
      {"ReduceSum", 1, kMaxOpset, reduce<primitive<graph::ReduceSumOp>, 13>},
      {"ReduceSumSquare", 1, kMaxOpset, reduce<sumSquare, 18>},
  };
  return rows;
}

} // namespace dsopt::onnx_import
