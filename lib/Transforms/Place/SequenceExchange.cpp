//===- SequenceExchange.cpp - attention whose rows and columns are shards -===//
//
// Ulysses (Jacobs et al., 2023): before attention neighbouring ranks exchange positions for heads, and back
// behind it: each has some heads of all their positions. Keys and values go along a ring of such groups.
// However large these are, rows of one shard meet the columns of another, and each row meets them in one
// order (dist.attention): the bits are the same.
//
//===----------------------------------------------------------------------===//

#include "SequenceWriter.h"
#include "ShardParts.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Interfaces/SequenceOps.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether rows and columns are those of whole sequences, and can meet shard by shard.
bool SequenceWriter::canMeet(Operation *op) const {
  auto sequence = cast<SequenceOpInterface>(op);
  if (!sequence.getSoftmax() || typeOf(op->getOperand(0)).getRank() != 4 || sequence.getHeadDim() != 1 ||
      sequence.getRowDim() != 2 ||
      llvm::any_of(op->getResults().drop_front(), [](Value result) { return !result.use_empty(); }))
    return false;
  SmallVector<unsigned> columns = sequence.getColumnOperands();
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    unsigned number = operand.getOperandNumber();
    if (number && !llvm::is_contained(columns, number))
      return region.isFree(operand.get());
    std::optional<TimeCut> cut = region.cutOf(operand.get());
    return cut && cut->dim == 2 && cut->parts == 1 && !cut->begin &&
           cut->length == typeOf(operand.get()).getDimSize(2);
  });
}

/// Keys or values, each head of them once where several of `heads` share it. Where shards could have heads of
/// their own each needs one: those of fewer are repeated, whatever is exchanged.
SequenceWriter::Shards SequenceWriter::columnsOf(Value value, int64_t heads) {
  std::optional<SharedHeads> shared = repeatedHeads(value);
  bool isRepeated = shared && heads % shards == 0 && shared->count % shards;
  if (!shared || shared->dim != 1 || (isRepeated && shards % shared->count))
    return values.lookup(value);
  Shards narrow;
  for (Value shard : values.lookup(shared->heads)) {
    SmallVector<int64_t> shape(typeOf(shard).getShape());
    if (isRepeated) {
      shape[2] = shards / shared->count;
      shard = graph::ExpandOp::create(builder, loc,
                                      RankedTensorType::get(shape, typeOf(shard).getElementType()), shard);
    }
    shape[1] *= shape[2];
    shape.erase(shape.begin() + 2);
    narrow.push_back(reshaped(shard, shape));
  }
  return narrow;
}

/// This rank's place along a part of sp: [1].
Value SequenceWriter::placeAlong(const AxisPart &part) {
  Type i32 = builder.getI32Type();
  Value rank = numberOfShard(builder, loc, axis, alone(graph::getOrAddContext(forward)), i32, 1, 0);
  if (part.part == AxisPart::Whole)
    return rank;
  Value count = graph::scalarConstant(builder, loc, i32, part.count);
  return alone(part.part == AxisPart::Outer ? graph::DivOp::create(builder, loc, rank, count).getResult()
                                            : graph::RemOp::create(builder, loc, rank, count).getResult());
}

/// Of this rank's heads the rows of all shards that its group has: batch entries of these lie one behind the
/// other, `[entries * batch, heads / group, positions / shards, size]`.
Value SequenceWriter::exchangeToHeads(const Shards &each, const HeadGroups &groups) {
  if (groups.group == 1)
    return joined(each, 0);
  Value own = joined(each, 2);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0], heads = shape[1] / groups.group, rows = shape[2] / mine, size = shape[3];
  own = reshaped(own, {batch, groups.group, heads, mine * rows, size});
  own = graph::TransposeOp::create(builder, loc, own, ArrayRef<int64_t>{1, 3, 0, 2, 4});
  own = reshaped(own, {groups.entries * rows, batch, heads, size});
  Value all = dist::AllToAllOp::create(builder, loc, own, groups.inner);
  all = reshaped(all, {groups.entries, rows, batch, heads, size});
  all = graph::TransposeOp::create(builder, loc, all, ArrayRef<int64_t>{0, 2, 3, 1, 4});
  return reshaped(all, {groups.entries * batch, heads, rows, size});
}

/// The way back: `[batch, heads, positions / shards, size]` of each shard.
SequenceWriter::Shards SequenceWriter::toPositions(Value own, const HeadGroups &groups) {
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0] / groups.entries, heads = shape[1], rows = shape[2], size = shape[3];
  Shards back;
  if (groups.group == 1) {
    for (int64_t shard = 0; shard < mine; ++shard)
      back.push_back(sliced(own, 0, shard * batch, batch));
    return back;
  }
  own = reshaped(own, {groups.entries, batch, heads, rows, size});
  own = graph::TransposeOp::create(builder, loc, own, ArrayRef<int64_t>{0, 3, 1, 2, 4});
  own = reshaped(own, {groups.entries * rows, batch, heads, size});
  Value all = dist::AllToAllOp::create(builder, loc, own, groups.inner);
  all = reshaped(all, {groups.group, mine * rows, batch, heads, size});
  all = graph::TransposeOp::create(builder, loc, all, ArrayRef<int64_t>{2, 0, 3, 1, 4});
  all = reshaped(all, {batch, groups.group * heads, mine * rows, size});
  for (int64_t shard = 0; shard < mine; ++shard)
    back.push_back(sliced(all, 2, shard * rows, rows));
  return back;
}

/// The masks of all meetings, each of what its entries meet; none where there is no mask.
SequenceWriter::Shards SequenceWriter::masksOf(Operation *op, const HeadGroups &groups) {
  SmallVector<unsigned> columns = cast<SequenceOpInterface>(op).getColumnOperands();
  auto *operand = llvm::find_if(op->getOpOperands(), [&](OpOperand &each) {
    return each.getOperandNumber() && !llvm::is_contained(columns, each.getOperandNumber());
  });
  if (operand == op->getOpOperands().end())
    return {};
  RankedTensorType q = typeOf(op->getOperand(0));
  int64_t rows = q.getDimSize(2) / shards, width = typeOf(op->getOperand(columns[0])).getDimSize(2) / shards,
          heads = q.getDimSize(1);
  SmallVector<int64_t> shape(4 - typeOf(operand->get()).getRank(), 1);
  llvm::append_range(shape, typeOf(operand->get()).getShape());
  Value whole = reshaped(operand->get(), shape);
  auto range = [](int64_t begin, int64_t count) {
    return llvm::to_vector(llvm::seq(static_cast<int32_t>(begin), static_cast<int32_t>(begin + count)));
  };
  auto take = [&](Value from, int64_t dim, Value places) -> Value {
    return graph::GatherOp::create(builder, loc, from, places, dim, IntegerAttr());
  };
  if (shape[1] > 1 && groups.group > 1) {
    heads /= groups.group;
    whole = take(whole, 1,
                 placesOfShard(builder, loc, placeAlong(groups.inner.getParts()[0]), range(0, heads), heads));
  }
  bool isAlone = groups.entries == shards;
  Value place = isAlone ? Value() : placeAlong(groups.outer.getParts()[0]);
  // What a shard `number` behind the first one here has along a dimension.
  auto ofShard = [&](Value from, int64_t dim, int64_t number, int64_t size) -> Value {
    if (shape[dim] == 1)
      return from;
    if (isAlone)
      return sliced(from, dim, number % shards * size, size);
    Value places = placesOfShard(builder, loc, place, range(number * size, size), groups.entries * size);
    if (number >= groups.entries)
      places = graph::RemOp::create(builder, loc, places,
                                    graph::scalarConstant(builder, loc, builder.getI32Type(), shards * size));
    return take(from, dim, places);
  };
  Shards ofRows, masks;
  for (int64_t entry = 0; entry < groups.entries; ++entry)
    ofRows.push_back(ofShard(whole, 2, entry, rows));
  bool isAlike = shape[0] == 1 && shape[2] == 1 && shape[3] == 1;
  for (int64_t meeting = 0; meeting < shards; ++meeting) {
    Shards each;
    for (int64_t entry = 0; entry < groups.entries; ++entry)
      each.push_back(ofShard(ofRows[entry], 3, entry + shards - meeting, width));
    masks.push_back(isAlike ? each[0] : joined(each, 0));
  }
  return masks;
}

void SequenceWriter::writeMet(Operation *op) {
  auto sequence = cast<SequenceOpInterface>(op);
  SequenceSoftmax softmax = *sequence.getSoftmax();
  RankedTensorType first = typeOf(op->getOperand(0));
  Shards columns[2];
  for (auto [each, number] : llvm::zip_equal(columns, sequence.getColumnOperands()))
    each = columnsOf(op->getOperand(number), first.getDimSize(1));
  HeadGroups groups = groupsFor(op, columns[0], columns[1]);
  Value q = exchangeToHeads(values.lookup(op->getOperand(0)), groups),
        k = exchangeToHeads(columns[0], groups), v = exchangeToHeads(columns[1], groups);
  SmallVector<int64_t> shape(typeOf(q).getShape());
  auto lse = RankedTensorType::get(ArrayRef(shape).drop_back(), builder.getF32Type());
  shape[3] = typeOf(v).getDimSize(3);
  auto attention = dist::AttentionOp::create(
      builder, loc, RankedTensorType::get(shape, typeOf(v).getElementType()), lse, q, k, v,
      masksOf(op, groups), softmax.scale, softmax.causal ? builder.getUnitAttr() : UnitAttr(),
      builder.getI64IntegerAttr(groups.entries), builder.getI64IntegerAttr(softmax.begin),
      builder.getI64IntegerAttr(shards), builder.getI64IntegerAttr(first.getDimSize(0) * first.getDimSize(1)),
      groups.outer);
  values[op->getResult(0)] = toPositions(attention.getResult(), groups);
}
