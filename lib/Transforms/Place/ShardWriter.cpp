//===- ShardWriter.cpp - a region as its tensor shards --------------------===//

#include "ShardWriter.h"

#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Runtime/Scalars.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dsopt;

Value dsopt::addPieces(OpBuilder &builder, Location loc, ValueRange pieces, dist::AxesAttr axes) {
  SmallVector<Value> level(pieces);
  while (level.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < level.size(); i += 2)
      next.push_back(i + 1 < level.size()
                         ? graph::TreeAddOp::create(builder, loc, level[i], level[i + 1]).getResult()
                         : level[i]);
    level = std::move(next);
  }
  return axes.getParts().empty() ? level[0] : dist::AllReduceOp::create(builder, loc, level[0], axes);
}

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
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  values.clear();
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
ArrayRef<graph::ParameterOp> ShardWriter::parametersOf(graph::ReadOp read, ShardCut cut) {
  auto &list = parameters[read.getStateAttr()];
  if (!list.empty())
    return list;
  auto whole = symbols.lookup<graph::ParameterOp>(read.getStateAttr().getAttr());
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
  for (graph::ParameterOp parameter : parametersOf(read, cut)) {
    auto shard = cast<graph::ReadOp>(builder.clone(*read));
    shard.setState(parameter.getSymName());
    shard.getResult().setType(local(read.getType(), cut));
    values[read].push_back(shard);
  }
}

/// What each shard takes for an operand: its own of what is cut, the value itself of what is whole.
ShardWriter::Shards ShardWriter::operandOf(Operation *op, Value value) {
  if (region->cutOf(value))
    return values.lookup(value);
  if (!isa<FloatType>(getElementTypeOrSelf(value.getType())) || value.getDefiningOp<graph::ConstantOp>())
    return Shards(mine, value);
  Attribute block = op->getAttr(graph::kBlockAttr);
  Shards &each = shared[{value, block}];
  if (!each.empty()) {
    // Another region may have read it further down.
    if (Operation *all = each[0].getDefiningOp(); op->isBeforeInBlock(all))
      all->moveBefore(op);
  } else {
    auto all =
        dist::SharedOp::create(builder, op->getLoc(), SmallVector<Type>(mine, value.getType()), value, axes);
    if (block)
      all->setAttr(graph::kBlockAttr, block);
    each.assign(all.getShards().begin(), all.getShards().end());
  }
  return each;
}

/// A slice of what is cut takes the same parts of each shard.
static void sliceShard(graph::SliceOp slice, int64_t dim, int64_t shards) {
  SmallVector<int64_t> starts(slice.getStarts());
  starts[dim] /= shards;
  slice.setStarts(starts);
  slice.setSizes(cast<RankedTensorType>(slice.getType()).getShape());
}

/// Operations behind `before` are of the block that `op` is of.
static void setBlocks(Operation *before, Operation *op) {
  if (Attribute block = op->getAttr(graph::kBlockAttr))
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op;
         made = made->getNextNode())
      made->setAttr(graph::kBlockAttr, block);
}

Value ShardWriter::numberOf(Operation *op, int64_t shard, Type integer) {
  // Also where one rank has all shards: programs of all degrees have the same kernels.
  Value context = graph::getOrAddContext(op->getParentOfType<func::FuncOp>());
  Location loc = op->getLoc();
  Value rank = graph::SliceOp::create(builder, loc, context, ArrayRef<int64_t>{DSOPT_TENSOR_RANK},
                                      ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1});
  if (!integer.isInteger(32))
    rank = graph::CastOp::create(builder, loc, RankedTensorType::get({1}, integer), rank);
  Value first = graph::MulOp::create(builder, loc, rank, graph::scalarConstant(builder, loc, integer, mine));
  return graph::AddOp::create(builder, loc, first, graph::scalarConstant(builder, loc, integer, shard));
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
  all.add = [&](ValueRange pieces) { return addPieces(builder, op->getLoc(), pieces, axes); };
  SmallVector<Value> results = cast<ShardedReductionOpInterface>(op).reduceShards(builder, all);
  setBlocks(before, op);
  op->replaceAllUsesWith(results);
}

void ShardWriter::writeOp(Operation *op) {
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

void ShardWriter::writeSum(Operation *op, const Shards &pieces) {
  Operation *before = op->getPrevNode();
  Value sum = addPieces(builder, op->getLoc(), pieces, axes);
  setBlocks(before, op);
  op->getResult(0).replaceAllUsesWith(sum);
}
