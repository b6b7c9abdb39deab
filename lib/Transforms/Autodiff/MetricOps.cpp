//===- MetricOps.cpp - what a micro-batch gives of a metric ---------------===//

#include "MetricOps.h"
#include "dsopt/Dialect/Graph/Constants.h"

#include <limits>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

Value MetricOps::scalar(Value like, double value) {
  return scalarConstant(b, b.getLoc(), getElementTypeOrSelf(like), value);
}

Value MetricOps::reshape(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getShape() == shape
             ? value
             : make<ReshapeOp>(RankedTensorType::get(shape, type.getElementType()), value);
}

Value MetricOps::convert(Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getElementType() == element
             ? value
             : make<CastOp>(RankedTensorType::get(type.getShape(), element), value);
}

Value MetricOps::beside(Value column) {
  Value classes = make<IotaOp>(RankedTensorType::get({1, 2}, b.getI64Type()), 1);
  return make<WhereOp>(make<EqualOp>(classes, scalar(classes, 1)), column, scalar(column, 0));
}

Value MetricOps::numbers(Value labels) {
  if (!isa<FloatType>(getElementTypeOrSelf(labels.getType())))
    return convert(labels, b.getI64Type());
  return convert(make<LessOp>(scalar(labels, 0.5), labels), b.getI64Type());
}

Value MetricOps::count(Value conditions, ArrayRef<int64_t> axes, bool keeps) {
  auto f32 = RankedTensorType::get({}, b.getF32Type());
  auto number = [&](float value) {
    return make<ConstantOp>(cast<ElementsAttr>(DenseElementsAttr::get(f32, value)));
  };
  return make<ReduceSumOp>(make<WhereOp>(conditions, number(1), number(0)), axes, keeps);
}

Value MetricOps::counted(Value labels, int64_t ignored) {
  Value none = make<ConstantOp>(
      cast<ElementsAttr>(DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()), ignored)));
  return make<NotOp>(make<EqualOp>(labels, none));
}

MetricOps::Rows MetricOps::rowsOf(const ClassPair &pair) {
  auto scores = cast<RankedTensorType>(pair.scores.getType());
  Rows rows;
  rows.labels = reshape(pair.labels, {scores.getDimSize(0), 1});
  rows.counts = counted(rows.labels, pair.ignored);
  rows.classes = make<IotaOp>(RankedTensorType::get({1, scores.getDimSize(1)}, b.getI64Type()), 1);
  return rows;
}

Value MetricOps::picked(const ClassPair &pair, const Rows &rows) {
  // Nothing is read by a label, so that one which is no class does no harm.
  Value lowest = scalar(pair.scores, -std::numeric_limits<double>::infinity());
  return make<ReduceMaxOp>(make<WhereOp>(make<EqualOp>(rows.classes, rows.labels), pair.scores, lowest),
                           ArrayRef<int64_t>{1},
                           /*keepdims=*/true, /*first=*/false);
}

SmallVector<Value> MetricOps::hits(const ClassPair &pair, int64_t most) {
  Rows rows = rowsOf(pair);
  Value score = picked(pair, rows);
  // What is no number is larger than all: it is no hit then.
  Value larger = make<NotOp>(make<LessEqualOp>(pair.scores, score));
  Value before = make<AndOp>(make<EqualOp>(pair.scores, score), make<LessOp>(rows.classes, rows.labels));
  Value place = count(make<OrOp>(larger, before), {1}, /*keeps=*/true);
  Value hit = make<AndOp>(make<LessOp>(place, scalar(place, static_cast<double>(most))), rows.counts);
  return {count(hit, {0, 1}), count(rows.counts, {0, 1})};
}

SmallVector<Value> MetricOps::logLikelihood(const ClassPair &pair) {
  Rows rows = rowsOf(pair);
  Value largest = make<ReduceMaxOp>(pair.scores, ArrayRef<int64_t>{1}, true, false);
  Value total = make<ReduceSumOp>(make<ExpOp>(make<SubOp>(pair.scores, largest)), ArrayRef<int64_t>{1}, true);
  Value loss = make<SubOp>(make<AddOp>(make<LogOp>(total), largest), picked(pair, rows));
  Value counted = make<WhereOp>(rows.counts, loss, scalar(loss, 0));
  return {make<ReduceSumOp>(counted, ArrayRef<int64_t>{0, 1}, false), count(rows.counts, {0, 1})};
}

SmallVector<Value> MetricOps::logLikelihood(Value losses, Value labels, int64_t ignored) {
  return {make<ReduceSumOp>(losses, ArrayRef<int64_t>{0}, false), count(counted(labels, ignored), {0})};
}

SmallVector<Value> MetricOps::confusion(const ClassPair &pair) {
  Rows rows = rowsOf(pair);
  auto scores = cast<RankedTensorType>(pair.scores.getType());
  Value largest = make<ReduceMaxOp>(pair.scores, ArrayRef<int64_t>{1}, true, false);
  // The first of equal ones.
  Value classes = convert(rows.classes, b.getF32Type());
  Value none = scalar(classes, static_cast<double>(scores.getDimSize(1)));
  Value predicted = make<ReduceMinOp>(make<WhereOp>(make<EqualOp>(pair.scores, largest), classes, none),
                                      ArrayRef<int64_t>{1}, /*keepdims=*/true, /*first=*/false);
  Value predictions = make<AndOp>(make<EqualOp>(classes, predicted), rows.counts);
  Value labels = make<AndOp>(make<EqualOp>(rows.classes, rows.labels), rows.counts);
  return {count(make<AndOp>(predictions, labels), {0}), count(predictions, {0}), count(labels, {0})};
}

Value MetricOps::distance(Value output, Value target, bool isSquare) {
  Value difference = make<SubOp>(output, target);
  Value size = isSquare ? make<MulOp>(difference, difference) : make<AbsOp>(difference);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(size.getType()).getRank()));
  return make<ReduceMeanOp>(size, axes, /*keepdims=*/false);
}
