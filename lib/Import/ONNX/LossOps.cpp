//===- LossOps.cpp - cross-entropy -----------------------------------------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Stands for "no label is ignored": no class has this number.
static constexpr int64_t kNothingIgnored = std::numeric_limits<int64_t>::min();

/// Marks the function's argument that the labels come from, if nothing but data
/// movement lies between.
static void markLabels(Value labels, int64_t ignoreIndex) {
  while (Operation *op = labels.getDefiningOp()) {
    if (!isa<graph::ReshapeOp, graph::SliceOp, graph::PadOp, graph::ExpandOp, graph::TransposeOp,
             graph::CastOp>(op) ||
        !isa<IntegerType>(Emitter::elementOf(op->getOperand(0))))
      return;
    labels = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(labels);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function)
    return;
  Builder builder(function.getContext());
  function.setArgAttr(argument.getArgNumber(), "graph.label", builder.getUnitAttr());
  function.setArgAttr(argument.getArgNumber(), "graph.ignore_index", builder.getI64IntegerAttr(ignoreIndex));
}

Value crossEntropy(Emitter &e, Value logits, Value labels, int64_t classAxis,
                   std::optional<int64_t> ignoreIndex, StringRef reduction) {
  if (!logits || !labels)
    return {};
  int64_t rank = Emitter::rankOf(logits);
  SmallVector<int64_t> rows(Emitter::shapeOf(logits));
  int64_t classes = rows[classAxis];
  rows.erase(rows.begin() + classAxis);
  if (ArrayRef<int64_t>(rows) != Emitter::shapeOf(labels) || !isa<IntegerType>(Emitter::elementOf(labels)) ||
      !isa<FloatType>(Emitter::elementOf(logits))) {
    e.error() << "has scores of type " << Emitter::typeOf(logits) << " and labels of type "
              << Emitter::typeOf(labels) << ", expected float scores with classes along axis " << classAxis
              << " and integer labels of shape [" << rows << "]";
    return {};
  }
  if (classAxis != rank - 1) {
    SmallVector<int64_t> perm;
    for (int64_t i = 0; i < rank; ++i)
      if (i != classAxis)
        perm.push_back(i);
    perm.push_back(classAxis);
    logits = e.transpose(logits, perm);
  }
  int64_t count = ShapedType::getNumElements(rows);
  logits = e.reshape(logits, {count, classes});
  labels = e.reshape(e.convert(labels, e.builder.getI64Type()), {count});
  if (!labels)
    return {};
  int64_t ignored = ignoreIndex.value_or(kNothingIgnored);
  Value losses = e.make<graph::NllOp>({logits, labels}, e.attr("ignore_index", ignored));
  if (!losses)
    return {};
  markLabels(labels, ignored);
  if (reduction == "none")
    return e.reshape(losses, rows);
  Value sum = e.make<graph::ReduceSumOp>(losses, e.attr("axes", ArrayRef<int64_t>{0}));
  if (reduction == "sum")
    return sum;
  Type element = Emitter::elementOf(logits);
  if (!ignoreIndex)
    return e.make<graph::DivOp>({sum, e.splat(element, count)});
  Value skipped = e.make<graph::EqualOp>(
      {labels,
       e.constant(DenseElementsAttr::get(RankedTensorType::get({}, e.builder.getI64Type()), ignored))});
  Value counted = e.make<graph::WhereOp>({skipped, e.splat(element, 0), e.splat(element, 1)});
  Value valid = e.make<graph::ReduceSumOp>(counted, e.attr("axes", ArrayRef<int64_t>{0}));
  return e.make<graph::DivOp>({sum, valid});
}

static LogicalResult softmaxCrossEntropyLoss(NodeBuilder &n) {
  Value scores = n.input(0), labels = n.input(1);
  if (!scores || !labels)
    return failure();
  if (n.has(2))
    return n.error() << "has weights of classes, which are not available yet";
  if (Emitter::rankOf(scores) < 2)
    return n.error() << "has scores of type " << Emitter::typeOf(scores) << ", expected rank 2 or more";
  StringRef reduction = n.stringAttr("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return n.error() << "has reduction '" << reduction << "', expected mean, sum or none";
  std::optional<int64_t> ignored;
  if (n.attribute("ignore_index"))
    ignored = n.integerAttr("ignore_index", 0);
  return n.set(0, crossEntropy(n.e, scores, labels, 1, ignored, reduction));
}

ArrayRef<OpRow> lossOps() {
  static const OpRow rows[] = {{"SoftmaxCrossEntropyLoss", 13, kMaxOpset, softmaxCrossEntropyLoss}};
  return rows;
}

} // namespace dsopt::onnx_import
