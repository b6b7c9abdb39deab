//===- NormalizationOps.cpp - softmax, layer normalization, reductions -----===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// The axes are an input from opset `Since` on.
template <typename Op, int64_t Since> static LogicalResult reduce(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  auto axes = n.axes(1, Since, Emitter::rankOf(value));
  if (failed(axes))
    return failure();
  SmallVector<int64_t> reduced;
  if (*axes)
    reduced = **axes;
  if (reduced.empty()) {
    if (n.opset >= Since && n.integerAttr("noop_with_empty_axes", 0))
      return n.alias(0);
    for (int64_t i = 0; i < Emitter::rankOf(value); ++i)
      reduced.push_back(i);
  }
  SmallVector<NamedAttribute> attributes{n.e.attr("axes", reduced)};
  if (n.integerAttr("keepdims", 1))
    attributes.push_back(n.e.flag("keepdims"));
  return n.set(0, n.e.make<Op>(value, attributes));
}

static LogicalResult softmax(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", -1), Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  return n.set(0, n.e.make<graph::SoftmaxOp>(value, n.e.attr("axis", *axis)));
}

static LogicalResult layerNormalization(NodeBuilder &n) {
  Value value = n.input(0), scale = n.input(1);
  Value bias = n.has(2) ? n.input(2) : Value();
  if (!value || !scale || (n.has(2) && !bias))
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", -1), Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  // Scale and bias may be smaller: they broadcast.
  SmallVector<int64_t> shape(Emitter::shapeOf(value).drop_front(*axis));
  auto fit = [&](Value operand) {
    ArrayRef<int64_t> own = Emitter::shapeOf(operand);
    while (own.size() > shape.size() && own.front() == 1)
      own = own.drop_front();
    return n.e.expand(n.e.reshape(operand, own), shape);
  };
  SmallVector<Value> operands{value, fit(scale)};
  if (bias)
    operands.push_back(fit(bias));
  SmallVector<Value> results = n.e.makeAll<graph::LayerNormOp>(
      operands, {n.e.attr("axis", *axis),
                 n.e.attr("epsilon", n.e.builder.getF64FloatAttr(n.floatAttr("epsilon", 1e-5f)))});
  if (results.empty())
    return failure();
  for (int i = 0; i < 3; ++i)
    if (failed(n.set(i, results[i])))
      return failure();
  return success();
}

ArrayRef<OpRow> normalizationOps() {
  static const OpRow rows[] = {
      {"LayerNormalization", 17, kMaxOpset, layerNormalization},
      {"ReduceMax", 13, kMaxOpset, reduce<graph::ReduceMaxOp, 18>},
      {"ReduceMean", 13, kMaxOpset, reduce<graph::ReduceMeanOp, 18>},
      {"ReduceMin", 13, kMaxOpset, reduce<graph::ReduceMinOp, 18>},
      {"ReduceSum", 13, kMaxOpset, reduce<graph::ReduceSumOp, 13>},
      {"Softmax", 13, kMaxOpset, softmax},
  };
  return rows;
}

} // namespace dsopt::onnx_import
