//===- RowPlaces.cpp - where rows of inputs are in values -----------------===//

#include "RowPlaces.h"

#include "CausalColumns.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/SequenceOps.h"

#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"

using namespace mlir;
using namespace dsopt;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static int64_t product(ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); }

std::optional<RowPlace> dsopt::throughReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to, RowPlace place) {
  int64_t outer = product(from.take_front(place.dim)) * place.before,
          inner = product(from.drop_front(place.dim + 1)) * place.inner;
  for (auto [dim, size] : llvm::enumerate(to)) {
    int64_t before = product(to.take_front(dim)), behind = product(to.drop_front(dim + 1));
    if (outer % before || inner % behind || outer / before * place.length * (inner / behind) != size)
      continue;
    return RowPlace{int64_t(dim), outer / before, place.length, inner / behind};
  }
  return std::nullopt;
}

/// Dimensions of operands and results that are equal share a loop.
static bool isPointwise(Operation *op) {
  return isa<dist::SharedOp, dist::AllReduceOp, graph::TreeAddOp>(op);
}

std::optional<SmallVector<std::optional<int64_t>>> dsopt::rowLoop(Operation *op, unsigned number,
                                                                  int64_t dim) {
  SmallVector<std::optional<int64_t>> dims(op->getNumOperands() + op->getNumResults());
  if (isPointwise(op)) {
    dims.assign(dims.size(), dim);
    return dims;
  }
  auto loops = dyn_cast<shard::ShardingInterface>(op);
  if (!loops)
    return std::nullopt;
  SmallVector<AffineMap> maps = loops.getIndexingMaps();
  unsigned loop = maps[number].getDimPosition(dim);
  if (loops.getLoopIteratorTypes()[loop] != utils::IteratorType::parallel)
    return std::nullopt;
  for (auto [map, found] : llvm::zip_equal(maps, dims))
    for (auto [at, expr] : llvm::enumerate(map.getResults()))
      if (cast<AffineDimExpr>(expr).getPosition() == loop)
        found = at;
  return dims;
}

LogicalResult RowPlaces::find(func::FuncOp function) {
  StringRef tokens;
  bool hasLabels = false;
  for (BlockArgument argument : function.getArguments()) {
    if (graph::isContext(argument))
      continue;
    unsigned number = argument.getArgNumber();
    auto given = function.getArgAttrOfType<StringAttr>(number, graph::kNameAttr);
    StringRef name = given ? given.getValue() : StringRef("an input");
    ArrayRef<int64_t> shape = shapeOf(argument);
    // One input that is both is tokens: the loss compares each position with a later one.
    bool isLabel = function.getArgAttr(number, graph::kLabelAttr) != Attribute();
    if (rows && (isLabel || hasLabels))
      return function.emitError("makes logits of ")
             << (isLabel ? name : tokens) << ", the labels that they are compared with";
    hasLabels = isLabel;
    if (shape.size() != 2)
      return function.emitError("takes ")
             << name << " of type " << argument.getType()
             << ", expected a token for each position, [sequences, T]; what is a "
                "setting is bound by -input=NAME=VALUE";
    if (rows)
      return function.emitError("takes ")
             << name << " beside " << tokens
             << ", expected one input of tokens; others are bound by -input=NAME=VALUE";
    tokens = name;
    rows = shape[axis];
    places[argument] = {axis, 1, rows, 1};
  }
  if (!rows)
    return function.emitError("takes no tokens: nothing could be generated");
  for (Operation &op : function.front())
    if (llvm::any_of(op.getOperands(), [&](Value value) { return places.contains(value); }) &&
        failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult RowPlaces::visit(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>()) {
    for (Value value : op->getOperands())
      if (std::optional<RowPlace> place = of(value); !place || !place->isPlain())
        return op->emitError("returns logits that do not have a row for each of the ") << word();
    return success();
  }
  if (axis == Positions && isa<SequenceOpInterface>(op))
    return visitMixer(op);
  if (auto slice = dyn_cast<graph::SliceOp>(op))
    return visitSlice(slice);
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op)) {
    auto place = throughReshape(shapeOf(reshape.getInput()), shapeOf(reshape), *of(reshape.getInput()));
    if (!place)
      return op->emitOpError("merges ") << word() << " with what lies around them: none is by itself then";
    places[reshape] = *place;
    wanted[op] = {std::nullopt};
    return success();
  }
  return visitRows(op);
}

/// All that has rows has them along one loop, whose rows are by themselves.
LogicalResult RowPlaces::visitRows(Operation *op) {
  std::optional<SmallVector<std::optional<int64_t>>> dims;
  std::optional<RowPlace> place;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<RowPlace> own = of(operand.get());
    if (!own)
      continue;
    auto found = rowLoop(op, operand.getOperandNumber(), own->dim);
    if (!found)
      return op->emitOpError("mixes ") << word()
                                       << ", or says nothing of how it treats them: expected each "
                                          "by itself, or a rule by which none sees a later one";
    if (dims && (*dims != *found || place->before != own->before || place->length != own->length ||
                 place->inner != own->inner))
      return op->emitOpError("meets ")
             << word() << " with other " << word() << " by no rule: expected each by itself";
    dims = found;
    place = own;
  }
  Wanted &operands = wanted[op];
  for (auto [number, dim] : llvm::enumerate(*dims)) {
    place->dim = dim.value_or(0);
    if (number < op->getNumOperands())
      operands.push_back(dim && !of(op->getOperand(number)) ? place : std::nullopt);
    else if (dim)
      places[op->getResult(number - op->getNumOperands())] = *place;
  }
  return success();
}

/// The first rows stay what they are.
LogicalResult RowPlaces::visitSlice(graph::SliceOp op) {
  RowPlace place = *of(op.getInput());
  int64_t start = op.getStarts()[place.dim], step = op.getSteps()[place.dim], taken = shapeOf(op)[place.dim];
  bool isWhole = start == 0 && step == 1 && taken == shapeOf(op.getInput())[place.dim];
  if (!isWhole && (start != 0 || step != 1 || !place.isPlain()))
    return op.emitOpError("takes ") << word() << " from " << start << " on by " << step
                                    << ": rows would be others then";
  wanted[op] = {std::nullopt};
  if (!isWhole)
    place.length = taken;
  places[op.getResult()] = place;
  return success();
}

/// Rows, columns and what is added to their scores.
LogicalResult RowPlaces::visitMixer(Operation *op) {
  auto mixer = cast<SequenceOpInterface>(op);
  std::optional<SequenceSoftmax> softmax = mixer.getSoftmax();
  SmallVector<unsigned> columns = mixer.getColumnOperands();
  RowPlace own{mixer.getRowDim(), 1, rows, 1};
  wanted[op].resize(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    bool isAdded = number > 0 && !llvm::is_contained(columns, number);
    std::optional<RowPlace> place = of(operand.get());
    if (isAdded && place)
      return op->emitOpError("has a mask that is computed of tokens: what a row reads has to follow from "
                             "positions alone");
    if (!isAdded && (!place || !(*place == own)))
      return op->emitOpError("reads rows and columns that are not both the positions of the sequence");
  }
  if (!softmax || (softmax->causal && softmax->begin != 0))
    return op->emitOpError("reads positions behind its own");
  if (!softmax->causal && failed(proveCausal(op, columns)))
    return failure();
  places[op->getResult(0)] = own;
  return success();
}
