//===- RowsWriter.cpp - a function of other rows ---------------------------===//

#include "RowsWriter.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }

RankedTensorType RowsWriter::withRows(Type type, RowPlace place, int64_t count) {
  auto whole = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(whole.getShape());
  shape[place.dim] = place.before * count * place.inner;
  return RankedTensorType::get(shape, whole.getElementType());
}

void RowsWriter::writeBefore(Operation *user) {
  builder.setInsertionPoint(user);
  loc = user->getLoc();
  block = user->getAttr(graph::kBlockAttr);
}

/// What is written is of the block, and the phase, of what it is written for.
void RowsWriter::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  if (!block)
    return;
  op->setAttr(graph::kBlockAttr, block);
  op->setAttr(graph::kPhaseAttr, graph::PhaseAttr::get(function.getContext(), Phase::E));
}

Value RowsWriter::reshaped(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return graph::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, typeOf(value).getElementType()),
                                  value);
}

/// So many of a value's rows, by their numbers.
Value RowsWriter::gatherRows(Value value, RowPlace place, Value index, int64_t taken) {
  if (place.isPlain())
    return graph::GatherOp::create(builder, loc, value, index, place.dim, IntegerAttr());
  SmallVector<int64_t> shape(shapeOf(value)), apart(ArrayRef(shape).take_front(place.dim));
  apart.append({place.before, shape[place.dim] / (place.before * place.inner), place.inner});
  apart.append(shape.begin() + place.dim + 1, shape.end());
  Value some =
      graph::GatherOp::create(builder, loc, reshaped(value, apart), index, place.dim + 1, IntegerAttr());
  return reshaped(some, withRows(value.getType(), place, taken).getShape());
}

/// The rows' own part of a value that is made of constants and parameters alone.
Value RowsWriter::rowsOf(Value value, RowPlace place, int64_t offset) {
  auto key = std::make_tuple(static_cast<const void *>(value.getAsOpaquePointer()), place.dim, place.before,
                             place.inner, offset, block.getAsOpaquePointer());
  auto found = known.find(key);
  if (found != known.end())
    return found->second;
  Value made = computeRows(value, place, offset);
  return known[key] = made;
}

/// Computed of the rows of what it is made of, where these are by themselves; else taken of the whole.
Value RowsWriter::computeRows(Value value, RowPlace place, int64_t offset) {
  Operation *op = value.getDefiningOp();
  RankedTensorType type = withRows(value.getType(), place, count);
  if (auto constant = dyn_cast_or_null<graph::ConstantOp>(op))
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return graph::ConstantOp::create(builder, loc, cast<ElementsAttr>(splat.resizeSplat(type)));
  if (auto reshape = dyn_cast_or_null<graph::ReshapeOp>(op))
    if (auto before = throughReshape(shapeOf(value), shapeOf(reshape.getInput()), place))
      return reshaped(rowsOf(reshape.getInput(), *before, offset), type.getShape());
  auto slice = dyn_cast_or_null<graph::SliceOp>(op);
  bool isMade = op && isPure(op) && op->getNumOperands() > 0 && op->getNumResults() == 1 && place.isPlain();
  if (slice && isMade && slice.getSteps()[place.dim] == 1) {
    // Only other dimensions are sliced.
    SmallVector<int64_t> starts(slice.getStarts()), steps(slice.getSteps());
    int64_t start = std::exchange(starts[place.dim], 0);
    Value rows = rowsOf(slice.getInput(), place, offset + start);
    return graph::SliceOp::create(builder, loc, rows, starts, type.getShape(), steps);
  }
  auto dims = isMade && !slice ? rowLoop(op, op->getNumOperands(), place.dim) : std::nullopt;
  if (!dims) {
    if (!isFailed)
      isFailed = failed(checkTaken(value, place));
    return gatherRows(value, place, numbers(offset), count);
  }
  SmallVector<Value> operands;
  for (auto [operand, dim] : llvm::zip(op->getOperands(), *dims)) {
    RowPlace own = place;
    own.dim = dim.value_or(0);
    operands.push_back(dim ? rowsOf(operand, own, offset) : operand);
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(type);
  return copy->getResult(0);
}

void RowsWriter::rewrite(Operation *op, const RowPlaces::Wanted &wanted) {
  writeBefore(op);
  if (writeMixer(op))
    return;
  for (auto [operand, place] : llvm::zip_equal(op->getOpOperands(), wanted))
    if (place)
      operand.set(rowsOf(operand.get(), *place));
  for (OpResult result : op->getResults())
    if (std::optional<RowPlace> place = places.of(result))
      result.setType(withRows(result.getType(), *place, count));
  if (auto slice = dyn_cast<graph::SliceOp>(op))
    slice.setSizes(shapeOf(slice.getResult()));
}

LogicalResult RowsWriter::write() {
  for (BlockArgument argument : function.getArguments())
    if (std::optional<RowPlace> place = places.of(argument))
      argument.setType(withRows(argument.getType(), *place, count));
  for (auto &[op, wanted] : places.operations())
    rewrite(op, wanted);
  return failure(isFailed);
}
