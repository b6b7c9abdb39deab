//===- ShardWriter.cpp - a region as its tensor shards --------------------===//

#include "ShardWriter.h"

#include "ShardParts.h"
#include "WindowMoves.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Interfaces.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dsopt;

ShardWriter::ShardWriter(ModuleOp module, int64_t shards, int64_t ranks)
    : module(module), symbols(module), builder(module.getContext()), shards(shards), mine(shards / ranks) {
  SmallVector<AxisPart> parts;
  if (ranks > 1)
    parts.push_back({Axis::tp});
  axes = dist::AxesAttr::get(module.getContext(), parts);
}

RankedTensorType ShardWriter::local(Type type, ShardCut cut) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[cut.dim] = elementsOfShard(shape[cut.dim], cut, shards);
  return RankedTensorType::get(shape, tensor.getElementType());
}

void ShardWriter::write(const CutRegion &cutRegion) {
  region = &cutRegion;
  SmallVector<Operation *> ops(region->operations().begin(), region->operations().end());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ops)
    if (auto read = dyn_cast<graph::ReadOp>(op))
      writeRead(read);
    else
      writeOp(op);
  writeStatistics(ops.front()->getParentOfType<func::FuncOp>());
  for (Operation *op : llvm::reverse(ops))
    eraseOp(op);
  for (Operation *op : llvm::reverse(copied))
    if (op->use_empty())
      eraseOp(op);
  copied.clear();
  values.clear();
}

/// Nothing made later is taken for its results.
void ShardWriter::eraseOp(Operation *op) {
  SmallVector<std::pair<Value, Attribute>> stale;
  for (const auto &[key, each] : shared)
    if (key.first.getDefiningOp() == op)
      stale.push_back(key);
  for (const auto &key : stale)
    shared.erase(key);
  op->erase();
}

graph::RunsAttr ShardWriter::runsOf(RankedTensorType whole, ShardCut cut) const {
  int64_t inner = 1;
  for (int64_t size : whole.getShape().drop_front(cut.dim + 1))
    inner *= size;
  int64_t length = elementsOfShard(whole.getDimSize(cut.dim), cut, shards) / cut.parts * inner;
  return graph::RunsAttr::get(builder.getContext(), length, shards * length, mine * length);
}

/// The shards of a parameter, each a parameter: which elements of the whole a rank's have follows from the
/// cut.
ArrayRef<graph::ParameterOp> ShardWriter::parametersOf(FlatSymbolRefAttr name, ShardCut cut) {
  auto &list = parameters[name];
  if (!list.empty())
    return list;
  auto whole = symbols.lookup<graph::ParameterOp>(name.getAttr());
  auto type = cast<RankedTensorType>(whole.getType());
  graph::RunsAttr runs = runsOf(type, cut);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(whole);
  for (int64_t shard = 0; shard < mine; ++shard) {
    auto op = cast<graph::ParameterOp>(builder.clone(*whole));
    op.setSymName(graph::freeSymbol(symbols, whole.getSymName() + ".shard." + Twine(shard)));
    op.setType(local(type, cut));
    op.setBytes(graph::numElements(op.getType()) * graph::elementBytes(whole.getSourceType()));
    op.setName(whole.getModelName());
    // Hashes are of the whole's chunks.
    op.removeFileBytesAttr();
    op.removeChunksAttr();
    op.setPartOf(whole.getSymName());
    op.setPartBegin(shard * runs.getLength());
    op.setPartRunsAttr(runs);
    symbols.insert(op);
    list.push_back(op);
  }
  return list;
}

void ShardWriter::writeRead(graph::ReadOp read) {
  builder.setInsertionPoint(read);
  ShardCut cut = *region->cutOf(read);
  for (graph::ParameterOp parameter : parametersOf(read.getStateAttr(), cut)) {
    auto shard = cast<graph::ReadOp>(builder.clone(*read));
    shard.setState(parameter.getSymName());
    shard.getResult().setType(local(read.getType(), cut));
    values[read].push_back(shard);
  }
}

Value ShardWriter::numberOf(Operation *op, int64_t shard, Type integer) {
  // Also where one rank has all shards: programs of all degrees have the same kernels.
  Value context = operandOf(op, graph::getOrAddContext(op->getParentOfType<func::FuncOp>()))[shard];
  return numberOfShard(builder, op->getLoc(), Axis::tp, context, integer, mine, shard);
}

/// What a shard has of a value that this rank has whole: the places `first` of the first shard along a
/// dimension, those of the next `step` further on, divided.
Value ShardWriter::takePlaces(Operation *op, int64_t shard, Value whole, int64_t dim, ArrayRef<int32_t> first,
                              int64_t step, int64_t divisor) {
  Operation *before = op->getPrevNode();
  Location loc = op->getLoc();
  Type i32 = builder.getI32Type();
  Value places = placesOfShard(builder, loc, numberOf(op, shard, i32), first, step);
  if (divisor > 1)
    places = graph::DivOp::create(builder, loc, places, graph::scalarConstant(builder, loc, i32, divisor));
  Value taken = graph::GatherOp::create(builder, loc, whole, places, dim, IntegerAttr());
  setBlocks(before, op, op->getAttr(graph::kBlockAttr));
  return taken;
}

void ShardWriter::writeConstant(graph::ConstantOp op) {
  builder.setInsertionPoint(op);
  ShardCut cut = *region->cutOf(op);
  Value whole = builder.clone(*op)->getResult(0);
  int64_t part = op.getType().getShape()[cut.dim] / cut.parts, own = part / shards;
  SmallVector<int32_t> first = firstPlaces(cut.parts, part, own);
  for (int64_t shard = 0; shard < mine; ++shard)
    values[op].push_back(takePlaces(op, shard, whole, cut.dim, first, own));
}

/// The heads that each shard's readers share: one for all of them, or one for each.
void ShardWriter::writeTaken(graph::ReshapeOp op) {
  builder.setInsertionPoint(op);
  SharedHeads heads = *headsOf(op);
  RankedTensorType type = local(op.getType(), *region->cutOf(op));
  int64_t own = type.getDimSize(heads.dim), taken = heads.readers % own ? own : 1;
  auto first = llvm::to_vector(llvm::seq(static_cast<int32_t>(taken)));
  for (auto [shard, whole] : llvm::enumerate(shareWhole(op, heads.heads))) {
    Value value = takePlaces(op, shard, whole, heads.dim, first, own, heads.readers);
    Operation *before = op->getPrevNode();
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    shape[heads.dim + 1] = own / taken;
    auto expanded = RankedTensorType::get(shape, type.getElementType());
    if (expanded != value.getType())
      value = graph::ExpandOp::create(builder, op->getLoc(), expanded, value);
    values[op].push_back(graph::ReshapeOp::create(builder, op->getLoc(), type, value));
    setBlocks(before, op, op->getAttr(graph::kBlockAttr));
  }
  copied.insert(op.getInput().getDefiningOp());
}

/// What each shard takes for an operand: its own of what is cut, the value itself of what is whole.
ShardWriter::Shards ShardWriter::operandOf(Operation *op, Value value) {
  if (region->cutOf(value))
    return values.lookup(value);
  if (value.getDefiningOp<graph::ConstantOp>())
    return Shards(mine, value);
  return shareWhole(op, value);
}

/// A whole value for each shard. The windows of an image are each shard's own: the image is shared, as its
/// gradient is smaller than theirs, and a convolution stays one.
ShardWriter::Shards ShardWriter::shareWhole(Operation *op, Value value) {
  Attribute block = op->getAttr(graph::kBlockAttr);
  if (Shards known = shared.lookup({value, block}); !known.empty()) {
    // Another region may have read it further down.
    if (op->isBeforeInBlock(known[0].getDefiningOp())) {
      if (hasWindows(value))
        shareWhole(op, value.getDefiningOp()->getOperand(0));
      for (Value shard : known)
        shard.getDefiningOp()->moveBefore(op);
    }
    return known;
  }
  Shards each;
  if (hasWindows(value)) {
    Operation *source = value.getDefiningOp();
    for (Value shard : shareWhole(op, source->getOperand(0))) {
      Operation *copy = builder.clone(*source);
      copy->setOperand(0, shard);
      if (block)
        copy->setAttr(graph::kBlockAttr, block);
      each.push_back(copy->getResult(0));
    }
    copied.insert(source);
  } else {
    auto all =
        dist::SharedOp::create(builder, op->getLoc(), SmallVector<Type>(mine, value.getType()), value, axes);
    if (block)
      all->setAttr(graph::kBlockAttr, block);
    all->setAttr(dist::kTensorAttr, builder.getUnitAttr());
    each.assign(all.getShards().begin(), all.getShards().end());
  }
  shared[{value, block}] = each;
  return each;
}

/// A slice of what is cut takes the same parts of each shard.
static void sliceShard(graph::SliceOp slice, int64_t dim, int64_t shards) {
  SmallVector<int64_t> starts(slice.getStarts());
  starts[dim] /= shards;
  slice.setStarts(starts);
  slice.setSizes(cast<RankedTensorType>(slice.getType()).getShape());
}

void ShardWriter::writeReduction(Operation *op) {
  Operation *before = op->getPrevNode();
  OperandShards all;
  all.count = shards;
  for (Value operand : op->getOperands()) {
    all.operands.push_back(operandOf(op, operand));
    if (std::optional<ShardCut> cut = region->cutOf(operand)) {
      auto type = cast<RankedTensorType>(operand.getType());
      all.whole = type.getDimSize(cut->dim);
      all.each = local(type, *cut).getDimSize(cut->dim);
    }
  }
  all.number = [&](int64_t shard, Type integer) { return numberOf(op, shard, integer); };
  all.share = [&](Value value, int64_t shard) { return operandOf(op, value)[shard]; };
  all.add = [&](ValueRange pieces) { return addShards(op, pieces); };
  SmallVector<Value> results = cast<ShardedReductionOpInterface>(op).reduceShards(builder, all);
  setBlocks(before, op, op->getAttr(graph::kBlockAttr));
  op->replaceAllUsesWith(results);
}

void ShardWriter::writeOp(Operation *op) {
  if (auto constant = dyn_cast<graph::ConstantOp>(op);
      constant && !isa<SplatElementsAttr>(constant.getValue()))
    return writeConstant(constant);
  if (region->takes(op))
    return writeTaken(cast<graph::ReshapeOp>(op));
  builder.setInsertionPoint(op);
  if (region->reduces(op))
    return writeReduction(op);
  SmallVector<Shards> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return operandOf(op, operand); });
  Shards pieces;
  for (int64_t shard = 0; shard < mine; ++shard) {
    IRMapping mapping;
    Operation *copy = builder.clone(*op, mapping);
    for (auto [operand, each] : llvm::zip_equal(copy->getOpOperands(), operands))
      operand.set(each[shard]);
    for (auto [result, own] : llvm::zip_equal(op->getResults(), copy->getResults()))
      if (std::optional<ShardCut> cut = region->cutOf(result)) {
        own.setType(local(own.getType(), *cut));
        values[result].push_back(own);
      }
    if (auto constant = dyn_cast<graph::ConstantOp>(copy)) {
      auto splat = cast<SplatElementsAttr>(constant.getValue());
      constant.setValueAttr(splat.resizeSplat(cast<ShapedType>(constant.getType())));
    } else if (auto slice = dyn_cast<graph::SliceOp>(copy)) {
      sliceShard(slice, region->cutOf(op->getOperand(0))->dim, shards);
    } else if (auto dropout = dyn_cast<graph::DropoutOp>(copy)) {
      Value whole = op->getResult(0);
      dropout.setRunsAttr(runsOf(cast<RankedTensorType>(whole.getType()), *region->cutOf(whole)));
      dropout.setBegin(shard * dropout.getRuns()->getLength());
    }
    if (region->sums(op))
      pieces.push_back(copy->getResult(0));
  }
  if (!pieces.empty())
    writeSum(op, pieces);
}

/// The sum of what shards have, which says that it is one.
Value ShardWriter::addShards(Operation *op, ValueRange pieces) {
  Value sum = addPieces(builder, op->getLoc(), pieces, axes);
  sum.getDefiningOp()->setAttr(dist::kTensorAttr, builder.getUnitAttr());
  return sum;
}

void ShardWriter::writeSum(Operation *op, Shards pieces) {
  // Fewer elements are added behind the sums of windows, and a convolution's gradient stays one.
  SmallVector<Operation *> behind = windowsSumBehind(op);
  for (Operation *next : behind) {
    builder.setInsertionPoint(next);
    for (Value &piece : pieces) {
      Operation *copy = builder.clone(*next);
      copy->setOperand(0, piece);
      piece = copy->getResult(0);
    }
    op = next;
  }
  Operation *before = op->getPrevNode();
  Value sum = addShards(op, pieces);
  setBlocks(before, op, op->getAttr(graph::kBlockAttr));
  op->getResult(0).replaceAllUsesWith(sum);
  for (Operation *next : llvm::reverse(behind))
    eraseOp(next);
}

/// What is contributed to running statistics that are cut goes to those of the shards.
void ShardWriter::writeStatistics(func::FuncOp function) {
  Operation *end = function.front().getTerminator();
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> attributes;
  for (OpOperand &operand : end->getOpOperands()) {
    DictionaryAttr own = function.getResultAttrDict(operand.getOperandNumber());
    std::optional<ShardCut> cut = region->cutOf(operand.get());
    if (!cut) {
      results.push_back(operand.get());
      attributes.push_back(own);
      continue;
    }
    auto parameter = own.getAs<FlatSymbolRefAttr>(graph::kStatisticAttr);
    llvm::append_range(results, values.lookup(operand.get()));
    for (graph::ParameterOp shard : parametersOf(parameter, *cut)) {
      NamedAttrList list(own);
      list.set(graph::kStatisticAttr, FlatSymbolRefAttr::get(shard.getSymNameAttr()));
      attributes.push_back(list.getDictionary(builder.getContext()));
    }
  }
  end->setOperands(results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllResultAttrs(attributes);
}
