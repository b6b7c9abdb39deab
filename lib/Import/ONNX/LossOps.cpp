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
  function.setArgAttr(argument.getArgNumber(), graph::kLabelAttr, builder.getUnitAttr());
  function.setArgAttr(argument.getArgNumber(), graph::kIgnoreIndexAttr,
                      builder.getI64IntegerAttr(ignoreIndex));
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

Value softCrossEntropy(Emitter &e, Value logarithms, Value probabilities, Value weights,
                       StringRef reduction) {
  if (!logarithms || !probabilities)
    return {};
  int64_t rank = Emitter::rankOf(logarithms), classes = Emitter::shapeOf(logarithms)[1];
  Value shares = e.convert(probabilities, Emitter::elementOf(logarithms));
  if (weights) {
    SmallVector<int64_t> along(rank, 1);
    along[1] = classes;
    shares = e.mul(shares, e.reshape(weights, along));
  }
  Value losses = e.make<graph::NegOp>(e.sum(e.mul(logarithms, shares), 1, /*keepdims=*/false));
  if (!losses || reduction == "none")
    return losses;
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  return reduction == "sum" ? e.sum(losses, all, /*keepdims=*/false)
                            : e.mean(losses, all, /*keepdims=*/false);
}

namespace {
/// A loss's operands with classes last, and what else it says.
struct LossNode {
  Value scores, labels, weights;
  SmallVector<int64_t> rows;
  int64_t classes;
  std::optional<int64_t> ignored;
  StringRef reduction;
};
} // namespace

static FailureOr<LossNode> lossNode(NodeBuilder &n) {
  LossNode loss{n.input(0), n.input(1), n.has(2) ? n.input(2) : Value(),  {},
                0,          {},         n.stringAttr("reduction", "mean")};
  if (!loss.scores || !loss.labels || (n.has(2) && !loss.weights))
    return failure();
  if (Emitter::rankOf(loss.scores) < 2)
    return n.error() << "has scores of type " << Emitter::typeOf(loss.scores) << ", expected rank 2 or more";
  if (!llvm::is_contained({"mean", "sum", "none"}, loss.reduction))
    return n.error() << "has reduction '" << loss.reduction << "', expected mean, sum or none";
  if (n.attribute("ignore_index"))
    loss.ignored = n.integerAttr("ignore_index", 0);
  loss.rows.assign(Emitter::shapeOf(loss.scores).begin(), Emitter::shapeOf(loss.scores).end());
  loss.classes = loss.rows[1];
  loss.rows.erase(loss.rows.begin() + 1);
  if (loss.weights && (Emitter::shapeOf(loss.weights) != ArrayRef(loss.classes) ||
                       Emitter::elementOf(loss.weights) != Emitter::elementOf(loss.scores)))
    return n.error() << "has weights of type " << Emitter::typeOf(loss.weights)
                     << ", expected one for each of " << loss.classes << " classes";
  // PyTorch's exporters write probabilities in the place of labels.
  if (n.op() == "SoftmaxCrossEntropyLoss" && Emitter::typeOf(loss.labels) == Emitter::typeOf(loss.scores))
    return loss;
  if (Emitter::shapeOf(loss.labels) != ArrayRef(loss.rows) ||
      !isa<IntegerType>(Emitter::elementOf(loss.labels)) || !isa<FloatType>(Emitter::elementOf(loss.scores)))
    return n.error() << "has scores of type " << Emitter::typeOf(loss.scores) << " and labels of type "
                     << Emitter::typeOf(loss.labels)
                     << ", expected float scores and integer labels of shape [" << loss.rows << "]";
  return loss;
}

/// The loss of log-probabilities, each row's times its class's weight; a mean is relative to the
/// sum of the weights.
static Value weightedLoss(NodeBuilder &n, const LossNode &loss, Value logarithms) {
  Emitter &e = n.e;
  int64_t count = ShapedType::getNumElements(loss.rows);
  Value rows = e.reshape(e.moveAxis(logarithms, 1, Emitter::rankOf(logarithms) - 1), {count, loss.classes});
  Value labels = e.reshape(e.convert(loss.labels, e.builder.getI64Type()), count);
  if (!rows || !labels)
    return {};
  int64_t ignored = loss.ignored.value_or(kNothingIgnored);
  markLabels(labels, ignored);
  Value isIgnored = e.equal(
      labels, e.constant(DenseElementsAttr::get(RankedTensorType::get({}, e.builder.getI64Type()), ignored)));
  Value readable = e.where(isIgnored, e.scalar(0, labels), labels);
  Value picked = e.make<graph::GatherElementsOp>({rows, e.reshape(readable, {count, 1})}, e.attr("axis", 1));
  Value one = e.scalar(1, rows), zero = e.scalar(0, rows);
  Value factors = loss.weights ? e.gather(loss.weights, readable, 0) : e.expand(e.reshape(one, 1), count);
  factors = e.where(isIgnored, zero, factors);
  Value losses = e.make<graph::NegOp>(e.mul(e.reshape(picked, count), factors));
  if (loss.reduction == "none")
    return e.reshape(losses, loss.rows);
  Value sum = e.sum(losses, 0, /*keepdims=*/false);
  return loss.reduction == "sum" ? sum : e.div(sum, e.sum(factors, 0, /*keepdims=*/false));
}

static LogicalResult softmaxCrossEntropyLoss(NodeBuilder &n) {
  FailureOr<LossNode> loss = lossNode(n);
  if (failed(loss))
    return failure();
  if (isa<FloatType>(Emitter::elementOf(loss->labels))) {
    Value logarithms = logSoftmax(n.e, loss->scores, 1);
    Value result = softCrossEntropy(n.e, logarithms, loss->labels, loss->weights, loss->reduction);
    return failure(failed(n.set(0, result)) || failed(n.set(1, logarithms)));
  }
  if (!loss->weights && !n.wants(1))
    return n.set(0, crossEntropy(n.e, loss->scores, loss->labels, 1, loss->ignored, loss->reduction));
  Value logarithms = logSoftmax(n.e, loss->scores, 1);
  return failure(failed(n.set(0, weightedLoss(n, *loss, logarithms))) || failed(n.set(1, logarithms)));
}

static LogicalResult negativeLogLikelihoodLoss(NodeBuilder &n) {
  FailureOr<LossNode> loss = lossNode(n);
  return failed(loss) ? failure() : n.set(0, weightedLoss(n, *loss, loss->scores));
}

LogicalResult ctcLoss(NodeBuilder &n) {
  Emitter &e = n.e;
  Value logs = n.input(0), targets = n.input(1), inputs = n.input(2), lengths = n.input(3);
  if (!logs || !targets || !inputs || !lengths)
    return failure();
  StringRef reduction = n.stringAttr("reduction", "mean");
  if (!llvm::is_contained({"mean", "sum", "none"}, reduction))
    return n.error() << "has reduction '" << reduction << "', expected mean, sum or none";
  Type element = Emitter::elementOf(logs), index = e.builder.getI64Type();
  if (!isa<FloatType>(element))
    return n.error() << "has log_probs of type " << Emitter::typeOf(logs) << ", expected floating point";
  // One sample may come without its dimension.
  bool isSingle = Emitter::rankOf(logs) == 2;
  if (isSingle) {
    logs = e.reshape(logs, {Emitter::shapeOf(logs)[0], 1, Emitter::shapeOf(logs)[1]});
    inputs = e.reshape(inputs, 1);
    lengths = e.reshape(lengths, 1);
  }
  if (!logs || Emitter::rankOf(logs) != 3 || !inputs || !lengths)
    return logs ? n.error() << "has log_probs of type " << Emitter::typeOf(logs)
                            << ", expected [T, N, C] or [T, C]"
                : failure();
  logs = e.convert(logs, e.builder.getF32Type());
  lengths = e.convert(lengths, index);
  SmallVector<NamedAttribute> attributes{e.attr("blank", n.integerAttr("blank", 0))};
  if (n.integerAttr("zero_infinity", 0))
    attributes.push_back(e.flag("zero_infinity"));
  Value losses =
      e.shapedWith<graph::CtcOp>({logs, e.convert(targets, index), e.convert(inputs, index), lengths},
                                 Emitter::shapeOf(logs)[1], attributes);
  if (!losses)
    return failure();
  if (reduction == "mean")
    losses = e.div(losses, e.convert(e.maximum(lengths, e.scalar(1, lengths)), Emitter::elementOf(losses)));
  if (reduction == "none")
    losses = isSingle ? e.reshape(losses, {}) : losses;
  else
    losses =
        reduction == "mean" ? e.mean(losses, 0, /*keepdims=*/false) : e.sum(losses, 0, /*keepdims=*/false);
  return n.set(0, e.convert(losses, element));
}

ArrayRef<OpRow> lossOps() {
  static const OpRow rows[] = {
      {"NegativeLogLikelihoodLoss", 12, kMaxOpset, negativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", 12, kMaxOpset, softmaxCrossEntropyLoss},
  };
  return rows;
}

} // namespace dsopt::onnx_import
