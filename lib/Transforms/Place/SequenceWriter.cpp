//===- SequenceWriter.cpp - a region as its sequence shards ---------------===//

#include "SequenceWriter.h"

#include "CutRegion.h"
#include "ShardParts.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Interfaces/SequenceOps.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

RankedTensorType SequenceWriter::local(Type type, TimeCut cut) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[cut.dim] = cut.parts * (cut.length / shards);
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// A value that follows from this rank's place, and is not computed alike at every degree: no kernel's but
/// its own.
Value SequenceWriter::alone(Value value) {
  return dist::SharedOp::create(builder, loc, value.getType(), value, none).getShards()[0];
}

Value SequenceWriter::places(int64_t shard, ArrayRef<int32_t> first, int64_t step) {
  Value number = numberOfShard(builder, loc, axis, alone(graph::getOrAddContext(forward)),
                               builder.getI32Type(), mine, shard);
  return placesOfShard(builder, loc, number, first, step);
}

Value SequenceWriter::reshaped(Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
  return value.getType() == type ? value : graph::ReshapeOp::create(builder, loc, type, value).getResult();
}

Value SequenceWriter::sliced(Value value, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> sizes(typeOf(value).getShape()), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (sizes[dim] == size)
    return value;
  starts[dim] = start;
  sizes[dim] = size;
  return graph::SliceOp::create(builder, loc, value, starts, sizes, steps);
}

Value SequenceWriter::joined(ArrayRef<Value> values, int64_t dim) {
  return values.size() == 1 ? values[0] : graph::ConcatOp::create(builder, loc, values, dim).getResult();
}

/// Whether a row of a shard is one of those that the whole has, as it broadcasts to `rank` dimensions.
Value SequenceWriter::validRows(int64_t shard, TimeCut cut, int64_t size, int64_t rank) {
  int64_t own = cut.length / shards, part = size / cut.parts;
  SmallVector<int32_t> first = firstPlaces(cut.parts, /*part=*/0, own);
  Value positions = places(shard, first, own);
  Type i32 = builder.getI32Type();
  Value begins = graph::LessEqualOp::create(builder, loc, graph::scalarConstant(builder, loc, i32, cut.begin),
                                            positions);
  Value ends = graph::LessOp::create(builder, loc, positions,
                                     graph::scalarConstant(builder, loc, i32, cut.begin + part));
  Value valid = graph::AndOp::create(builder, loc, begins, ends);
  SmallVector<int64_t> shape(rank, 1);
  shape[cut.dim] = first.size();
  return graph::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, builder.getI1Type()), valid);
}

SequenceWriter::Shards SequenceWriter::shareWhole(Value value, dist::AxesAttr over) {
  Shards &each = shared[{value, block}];
  if (each.empty()) {
    auto all = dist::SharedOp::create(builder, loc, SmallVector<Type>(mine, value.getType()), value, over,
                                      /*exact=*/axis == Axis::sp && region.isWeight(value));
    each.assign(all.getShards().begin(), all.getShards().end());
  }
  return each;
}

/// Where a shard has rows of a range, `part` of them in each part: those at its ends stand for those behind
/// them.
Value SequenceWriter::rangePlaces(int64_t shard, TimeCut cut, int64_t part) {
  int64_t own = cut.length / shards;
  Type i32 = builder.getI32Type();
  SmallVector<int32_t> first, begins;
  for (int64_t i = 0; i < own; ++i)
    first.push_back(i - cut.begin);
  for (int64_t i = 0; i < cut.parts * own; ++i)
    begins.push_back(i / own * part);
  auto scalar = [&](int64_t value) { return graph::scalarConstant(builder, loc, i32, value); };
  Value within = places(shard, first, own);
  within = graph::MinOp::create(builder, loc, within, scalar(part - 1));
  within = graph::MaxOp::create(builder, loc, within, scalar(0));
  Value row = reshaped(within, {1, own});
  Value offsets = graph::ConstantOp::create(
      builder, loc,
      cast<ElementsAttr>(
          DenseElementsAttr::get(RankedTensorType::get({cut.parts, own}, i32), ArrayRef<int32_t>(begins))));
  return reshaped(graph::AddOp::create(builder, loc, offsets, row), {cut.parts * own});
}

/// The rows of each shard of a whole value; rows that it does not have are others of it.
SequenceWriter::Shards SequenceWriter::sliceWhole(Value value, TimeCut cut, bool isTrained,
                                                  dist::AxesAttr over) {
  auto &known = slices[{value.getAsOpaquePointer(), {cut.dim, cut.parts, cut.begin, cut.length}}];
  for (auto &[where, each] : known)
    if (where == block)
      return each;
  RankedTensorType type = typeOf(value);
  Shards each;
  if (auto constant = value.getDefiningOp<graph::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue())) {
      Value same =
          graph::ConstantOp::create(builder, loc, cast<ElementsAttr>(splat.resizeSplat(local(type, cut))));
      each.assign(mine, same);
    }
  if (each.empty()) {
    Shards whole = isTrained ? shareWhole(value, over) : Shards(mine, value);
    int64_t part = type.getDimSize(cut.dim) / cut.parts, own = cut.length / shards;
    bool isRange = part != cut.length;
    for (int64_t shard = 0; shard < mine; ++shard) {
      Value rows =
          isRange ? rangePlaces(shard, cut, part) : places(shard, firstPlaces(cut.parts, part, own), own);
      each.push_back(graph::GatherOp::create(builder, loc, whole[shard], rows, cut.dim, IntegerAttr()));
    }
  }
  known.push_back({block, each});
  return each;
}

/// The whole of a value that is cut.
Value SequenceWriter::gather(Value value) {
  if (axis == Axis::tp)
    return gatherRows(value, /*alike=*/false);
  if (Value known = gathered.lookup({value, block}))
    return known;
  TimeCut cut = *region.cutOf(value);
  RankedTensorType type = typeOf(value);
  ArrayRef<int64_t> shape = type.getShape();
  int64_t own = cut.length / shards, dim = cut.dim;
  // Shards lie one behind the other.
  Shards rows;
  for (Value shard : values.lookup(value))
    rows.push_back(rowsFirst(shard, cut, own));
  Value ours = joined(rows, 0);
  SmallVector<int64_t> all(typeOf(ours).getShape()), apart(shape.take_front(dim));
  all[0] = cut.length;
  Value positions =
      dist::AllGatherOp::create(builder, loc, RankedTensorType::get(all, type.getElementType()), ours, axes);
  apart.append({cut.parts, cut.length});
  llvm::append_range(apart, shape.drop_front(dim + 1));
  Value placed = rowsBack(positions, cut, apart);
  // The rows that the value has of them.
  placed = sliced(placed, dim + 1, cut.begin, shape[dim] / cut.parts);
  return gathered[{value, block}] = reshaped(placed, shape);
}

/// The heads whose shards a value repeats; none where it is not made of such.
std::optional<SharedHeads> SequenceWriter::repeatedHeads(Value value) const {
  auto reshape = value.getDefiningOp<graph::ReshapeOp>();
  std::optional<SharedHeads> heads = reshape ? headsOf(reshape) : std::nullopt;
  return heads && region.cutOf(heads->heads) ? heads : std::nullopt;
}

/// The same for each shard. Heads that others share travel once, and are repeated where they are read.
SequenceWriter::Shards SequenceWriter::shareGathered(Value value) {
  std::optional<SharedHeads> heads = repeatedHeads(value);
  if (!heads)
    return shareWhole(gather(value), none);
  auto reshape = value.getDefiningOp<graph::ReshapeOp>();
  Shards each = shareWhole(gather(heads->heads), none);
  for (Value &shard : each) {
    IRMapping mapping;
    mapping.map(heads->heads, shard);
    builder.clone(*reshape.getInput().getDefiningOp(), mapping);
    shard = builder.clone(*reshape, mapping)->getResult(0);
  }
  return each;
}

/// The value, whose gradient counts on the first rank alone.
Value SequenceWriter::once(Value value) {
  // Also where one rank has all shards: programs of all degrees have the same kernels.
  Value &result = counted[{value, block}];
  if (result)
    return result;
  Type i32 = builder.getI32Type();
  Value rank = graph::rankAlong(Axis::sp, builder, loc, graph::getOrAddContext(forward), i32);
  Value isFirst = graph::EqualOp::create(builder, loc, rank, graph::scalarConstant(builder, loc, i32, 0));
  SmallVector<int64_t> ones(typeOf(value).getRank(), 1);
  isFirst = graph::ReshapeOp::create(builder, loc, RankedTensorType::get(ones, builder.getI1Type()), isFirst);
  return result = graph::WhereOp::create(builder, loc, isFirst, value,
                                         graph::StopGradientOp::create(builder, loc, value).getResult());
}

/// What each shard takes for an operand.
SequenceWriter::Shards SequenceWriter::operandOf(OpOperand &operand) {
  Value value = operand.get();
  std::optional<TimeCut> wanted = region.takenAs(operand), known = region.cutOf(value);
  if (wanted && known && *wanted == *known)
    return values.lookup(value);
  if (known && !wanted && isTrained(value))
    return shareGathered(value);
  Value whole = known ? gather(value) : wholeOf(value);
  // Gradients of parameters are added over all that buckets are cut over, which tp is not, those of what was
  // gathered as that says.
  dist::AxesAttr over = known || (axis == Axis::sp && region.isWeight(value)) ? none : axes;
  if (wanted)
    return sliceWhole(whole, *wanted, isTrained(value), over);
  return isTrained(value) ? shareWhole(whole, over) : Shards(mine, whole);
}

void SequenceWriter::setPositions(Operation *copy, Operation *whole, int64_t shard) {
  if (auto slice = dyn_cast<graph::SliceOp>(copy)) {
    TimeCut cut = *region.takenAs(whole->getOpOperand(0));
    SmallVector<int64_t> starts(slice.getStarts());
    starts[cut.dim] = 0;
    slice.setStarts(starts);
    slice.setSizes(typeOf(slice.getResult()).getShape());
  } else if (auto sequence = dyn_cast<SequenceOpInterface>(copy)) {
    TimeCut cut = *region.takenAs(whole->getOpOperand(0));
    int64_t own = cut.length / shards;
    sequence.placeRows(whole, shard * own - cut.begin, mine * own);
  } else if (auto dropout = dyn_cast<graph::DropoutOp>(copy)) {
    TimeCut cut = *region.madeAs(whole->getResult(0));
    RankedTensorType type = typeOf(whole->getResult(0));
    int64_t inner = 1, own = cut.length / shards;
    for (int64_t size : type.getShape().drop_front(cut.dim + 1))
      inner *= size;
    if (axis == Axis::tp) {
      dropout.setRunsAttr(
          graph::RunsAttr::get(builder.getContext(), own * inner, cut.length * inner, mine * own * inner));
      dropout.setBegin(shard * own * inner);
      return;
    }
    if (std::optional<graph::RunsAttr> runs = dropout.getRuns()) {
      if (runs->getLength() >= cut.length * inner) {
        // Runs of positions.
        dropout.setBegin(dropout.getBegin() / shards);
        dropout.setRunsAttr(graph::RunsAttr::get(builder.getContext(), runs->getLength() / shards,
                                                 runs->getStride() / shards, runs->getStep() / shards));
      } else {
        inner = inner / runs->getLength() * runs->getStride();
      }
    }
    dropout.setTimeRunsAttr(
        graph::RunsAttr::get(builder.getContext(), own * inner, cut.length * inner, mine * own * inner));
    dropout.setTimeBegin(shard * own * inner);
  }
}

void SequenceWriter::writeCut(Operation *op) {
  if (isa<SequenceOpInterface>(op) && canMeet(op))
    return writeMet(op);
  if (auto windows = dyn_cast<graph::WindowsOp>(op);
      windows && region.haloOf(windows, *region.takenAs(op->getOpOperand(0))))
    return writeWindows(windows);
  SmallVector<Shards> operands =
      llvm::map_to_vector(op->getOpOperands(), [&](OpOperand &operand) { return operandOf(operand); });
  if (region.sums(op))
    return writeSum(op, operands);
  for (int64_t shard = 0; shard < mine; ++shard) {
    Operation *copy = builder.clone(*op);
    for (auto [operand, each] : llvm::zip_equal(copy->getOpOperands(), operands))
      operand.set(each[shard]);
    for (auto [result, own] : llvm::zip_equal(op->getResults(), copy->getResults())) {
      own.setType(local(result.getType(), *region.madeAs(result)));
      values[result].push_back(own);
    }
    setPositions(copy, op, shard);
  }
}

/// Of a mean shards have sums, too: it is divided once.
void SequenceWriter::writeSum(Operation *op, ArrayRef<Shards> operands) {
  auto mean = dyn_cast<graph::ReduceMeanOp>(op);
  Shards pieces;
  for (int64_t shard = 0; shard < mine; ++shard) {
    SmallVector<Value> own;
    for (auto [operand, each] : llvm::zip_equal(op->getOpOperands(), operands)) {
      own.push_back(each[shard]);
      std::optional<TimeCut> cut = region.takenAs(operand);
      RankedTensorType type = typeOf(operand.get());
      // Rows that mean nothing count nothing.
      if (cut && type.getDimSize(cut->dim) != cut->parts * cut->length)
        own.back() = graph::WhereOp::create(
            builder, loc, validRows(shard, *cut, type.getDimSize(cut->dim), type.getRank()), own.back(),
            graph::scalarConstant(builder, loc, type.getElementType(), 0));
    }
    if (mean) {
      pieces.push_back(graph::ReduceSumOp::create(builder, loc, own[0], mean.getAxes(), mean.getKeepdims()));
      continue;
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands(own);
    pieces.push_back(copy->getResult(0));
  }
  Value sum = addPieces(builder, loc, pieces, axes);
  if (mean) {
    double count = double(typeOf(mean.getInput()).getNumElements()) / typeOf(sum).getNumElements();
    sum = graph::DivOp::create(builder, loc, sum,
                               graph::scalarConstant(builder, loc, typeOf(sum).getElementType(), count));
  }
  sums[op->getResult(0)] = sum;
}

/// Each row is of one shard: the others have zeros of it.
void SequenceWriter::writeTaken(graph::SliceOp op) {
  TimeCut cut = *region.cutOf(op.getInput());
  RankedTensorType type = op.getType();
  int64_t own = cut.length / shards, taken = type.getDimSize(cut.dim);
  SmallVector<int32_t> first;
  for (int64_t i = 0; i < taken; ++i)
    first.push_back(op.getStarts()[cut.dim] + cut.begin + i);
  Type i32 = builder.getI32Type();
  SmallVector<int64_t> starts(op.getStarts()), sizes(type.getShape()), steps(op.getSteps()),
      spread(type.getRank(), 1);
  starts[cut.dim] = 0;
  sizes[cut.dim] = own;
  spread[cut.dim] = taken;
  Shards pieces;
  for (auto [shard, rows] : llvm::enumerate(values.lookup(op.getInput()))) {
    Value local = places(shard, first, -own);
    Value zero = graph::scalarConstant(builder, loc, i32, 0);
    Value has = graph::AndOp::create(
        builder, loc, graph::LessEqualOp::create(builder, loc, zero, local),
        graph::LessOp::create(builder, loc, local, graph::scalarConstant(builder, loc, i32, own)));
    Value index = graph::WhereOp::create(builder, loc, has, local, zero);
    Value all = graph::SliceOp::create(builder, loc, rows, starts, sizes, steps);
    Value some = graph::GatherOp::create(builder, loc, all, index, cut.dim, IntegerAttr());
    Value mask =
        graph::ReshapeOp::create(builder, loc, RankedTensorType::get(spread, builder.getI1Type()), has);
    pieces.push_back(graph::WhereOp::create(builder, loc, mask, some,
                                            graph::scalarConstant(builder, loc, type.getElementType(), 0)));
  }
  sums[op.getResult()] = addPieces(builder, loc, pieces, axes);
}

/// What every rank computes alike counts on one of them.
void SequenceWriter::writeWhole(Operation *op) {
  if (isa<graph::ReadOp>(op) ||
      llvm::any_of(op->getResults(), [&](Value result) { return region.isWeight(result); }))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    bool isCut = region.cutOf(value).has_value();
    value = isCut ? gather(value) : wholeOf(value);
    bool isEnd = op->hasTrait<OpTrait::IsTerminator>();
    if (!isEnd && isTrained(operand.get()) && (isCut || region.isWeight(operand.get())))
      value = once(value);
    operand.set(value);
  }
}

void SequenceWriter::write() {
  SmallVector<Operation *> ops, gone;
  for (Operation &op : forward.front())
    ops.push_back(&op);
  for (Operation *op : ops) {
    Operation *before = op->getPrevNode();
    builder.setInsertionPoint(op);
    loc = op->getLoc();
    // What outputs are gathered by is of the last block.
    if (Attribute own = op->getAttr(graph::kBlockAttr))
      block = own;
    if (region.isCut(op)) {
      writeCut(op);
      gone.push_back(op);
    } else if (region.takesRows(op)) {
      writeTaken(cast<graph::SliceOp>(op));
      gone.push_back(op);
    } else {
      writeWhole(op);
    }
    setBlocks(before, op, block);
  }
  keepChoices();
  for (Operation *op : llvm::reverse(gone))
    op->erase();
}
