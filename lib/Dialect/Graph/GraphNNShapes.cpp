//===- GraphNNShapes.cpp - shape rules of the composite operations --------===//

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

#define INFER(Op)                                                                                            \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location,                 \
                                     Adaptor adaptor, SmallVectorImpl<Type> &types)

INFER(SoftmaxOp) {
  RankedTensorType type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= type.getRank())
    return shapeError(location, getOperationName(), "has axis ", axis, " of ", type, ", expected 0 to ",
                      type.getRank() - 1);
  types.push_back(type);
  return success();
}

INFER(GeluOp) {
  types.push_back(tensorType(adaptor.getInput()));
  return success();
}

INFER(SiluOp) {
  types.push_back(tensorType(adaptor.getInput()));
  return success();
}

/// Checks a normalization over the dimensions from `axis` on; the type of a number a row.
static FailureOr<RankedTensorType> normalizationRows(std::optional<Location> location, StringRef name,
                                                     int64_t axis, Value input, Value scale, Value bias) {
  RankedTensorType type = tensorType(input);
  if (axis < 0 || axis >= type.getRank())
    return shapeError(location, name, "has axis ", axis, " of ", type, ", expected 0 to ",
                      type.getRank() - 1);
  auto expected = RankedTensorType::get(type.getShape().drop_front(axis), type.getElementType());
  if (tensorType(scale) != expected)
    return shapeError(location, name, "has a scale of type ", tensorType(scale), ", expected ", expected);
  if (bias && tensorType(bias) != expected)
    return shapeError(location, name, "has a bias of type ", tensorType(bias), ", expected ", expected);
  SmallVector<int64_t> rows(type.getShape());
  std::fill(rows.begin() + axis, rows.end(), 1);
  return RankedTensorType::get(rows, type.getElementType());
}

INFER(RmsNormOp) {
  FailureOr<RankedTensorType> rows =
      normalizationRows(location, getOperationName(), adaptor.getAxis(), adaptor.getInput(),
                        adaptor.getScale(), /*bias=*/nullptr);
  if (failed(rows))
    return failure();
  types.append({tensorType(adaptor.getInput()), *rows});
  return success();
}

INFER(LayerNormOp) {
  FailureOr<RankedTensorType> rows =
      normalizationRows(location, getOperationName(), adaptor.getAxis(), adaptor.getInput(),
                        adaptor.getScale(), adaptor.getBias());
  if (failed(rows))
    return failure();
  types.append({tensorType(adaptor.getInput()), *rows, *rows});
  return success();
}

INFER(NllOp) {
  RankedTensorType logits = tensorType(adaptor.getLogits()), labels = tensorType(adaptor.getLabels());
  if (logits.getRank() != 2 || labels.getRank() != 1 || logits.getDimSize(0) != labels.getDimSize(0))
    return shapeError(location, getOperationName(), "has logits of type ", logits, " and labels of type ",
                      labels, ", expected [N, C] and [N]");
  types.append(2, RankedTensorType::get(labels.getShape(), logits.getElementType()));
  return success();
}
