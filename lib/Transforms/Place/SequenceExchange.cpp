//===- SequenceExchange.cpp - attention whose rows and columns are shards -===//
//
// Ulysses (Jacobs et al., 2023): before attention ranks exchange positions for heads, and back behind it:
// each shard has some heads of all positions. Or keys and values go along a ring. Either way rows of one
// shard meet the columns of another, and each row meets them in one order (dist.attention): the bits are the
// same.
//
//===----------------------------------------------------------------------===//

#include "SequenceWriter.h"
#include "dsopt/Dialect/Graph/Constants.h"
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

/// Keys or values, each head of them once where several of `heads` share it. Where heads are exchanged each
/// shard needs one: those of fewer are repeated, by either method.
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

/// Of each shard some heads of all sequence shards: batch entries of these lie one behind the other,
/// `[shards * batch, heads / shards, positions / shards, size]`.
SequenceWriter::Shards SequenceWriter::exchangeToHeads(const Shards &each) {
  Value own = joined(each, 2);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0], heads = shape[1] / ranks, positions = shape[2], size = shape[3];
  own = reshaped(own, {batch, ranks, heads, positions, size});
  own = graph::TransposeOp::create(builder, loc, own, ArrayRef<int64_t>{1, 3, 0, 2, 4});
  own = reshaped(own, {ranks * positions, batch, heads, size});
  Value all = dist::AllToAllOp::create(builder, loc, own, axes);
  all = reshaped(all, {shards, positions / mine, batch, heads, size});
  all = graph::TransposeOp::create(builder, loc, all, ArrayRef<int64_t>{0, 2, 3, 1, 4});
  all = reshaped(all, {shards * batch, heads, positions / mine, size});
  Shards groups;
  for (int64_t shard = 0; shard < mine; ++shard)
    groups.push_back(sliced(all, 1, shard * (heads / mine), heads / mine));
  return groups;
}

/// The way back: `[batch, heads, positions / shards, size]` of each shard.
SequenceWriter::Shards SequenceWriter::toPositions(const Shards &each) {
  Value own = joined(each, 1);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0] / shards, heads = shape[1], positions = shape[2], size = shape[3];
  own = reshaped(own, {shards, batch, heads, positions, size});
  own = graph::TransposeOp::create(builder, loc, own, ArrayRef<int64_t>{0, 3, 1, 2, 4});
  own = reshaped(own, {shards * positions, batch, heads, size});
  Value all = dist::AllToAllOp::create(builder, loc, own, axes);
  all = reshaped(all, {ranks, mine * positions, batch, heads, size});
  all = graph::TransposeOp::create(builder, loc, all, ArrayRef<int64_t>{2, 0, 3, 1, 4});
  all = reshaped(all, {batch, ranks * heads, mine * positions, size});
  Shards back;
  for (int64_t shard = 0; shard < mine; ++shard)
    back.push_back(sliced(all, 2, shard * positions, positions));
  return back;
}

/// The masks of all meetings, in the order of dist.attention's; none where there is no mask.
SequenceWriter::Shards SequenceWriter::masksOf(Operation *op, std::optional<int64_t> group) {
  SmallVector<unsigned> columns = cast<SequenceOpInterface>(op).getColumnOperands();
  auto *operand = llvm::find_if(op->getOpOperands(), [&](OpOperand &each) {
    return each.getOperandNumber() && !llvm::is_contained(columns, each.getOperandNumber());
  });
  if (operand == op->getOpOperands().end())
    return {};
  RankedTensorType q = typeOf(op->getOperand(0));
  int64_t allRows = q.getDimSize(2), allColumns = typeOf(op->getOperand(columns[0])).getDimSize(2);
  int64_t heads = q.getDimSize(1) / shards;
  SmallVector<int64_t> shape(4 - typeOf(operand->get()).getRank(), 1);
  llvm::append_range(shape, typeOf(operand->get()).getShape());
  Value whole = reshaped(operand->get(), shape);
  auto take = [&](Value from, int64_t dim, Value places) -> Value {
    return shape[dim] == 1
               ? from
               : graph::GatherOp::create(builder, loc, from, places, dim, IntegerAttr()).getResult();
  };
  auto first = [](int64_t count) { return llvm::to_vector(llvm::seq(static_cast<int32_t>(count))); };
  Shards masks;
  if (group) {
    Value own = shape[1] == 1 ? whole : take(whole, 1, places(*group, first(heads), heads));
    for (int64_t distance = 0; distance < shards; ++distance) {
      Shards each;
      for (int64_t row = 0; row < shards; ++row) {
        int64_t column = (row + shards - distance) % shards;
        Value some = shape[2] == 1 ? own : sliced(own, 2, row * (allRows / shards), allRows / shards);
        each.push_back(shape[3] == 1 ? some
                                     : sliced(some, 3, column * (allColumns / shards), allColumns / shards));
      }
      bool isAlike = shape[0] == 1 && shape[2] == 1 && shape[3] == 1;
      masks.push_back(isAlike ? each[0] : joined(each, 0));
    }
    return masks;
  }
  int64_t ownRows = allRows / shards, ownColumns = allColumns / shards;
  for (int64_t row = 0; row < mine; ++row) {
    Value rows = shape[2] == 1 ? whole : take(whole, 2, places(row, first(ownRows), ownRows));
    for (int64_t step = 0; step < ranks; ++step)
      for (int64_t column = 0; column < mine; ++column) {
        if (shape[3] == 1) {
          masks.push_back(rows);
          continue;
        }
        // Those of the rank that is `step` places before this one.
        Value there = places((ranks - step) * mine + column, first(ownColumns), ownColumns);
        there = graph::RemOp::create(builder, loc, there,
                                     graph::scalarConstant(builder, loc, builder.getI32Type(), allColumns));
        masks.push_back(take(rows, 3, there));
      }
  }
  return masks;
}

void SequenceWriter::writeMet(Operation *op) {
  auto sequence = cast<SequenceOpInterface>(op);
  SequenceSoftmax softmax = *sequence.getSoftmax();
  SmallVector<unsigned> columns = sequence.getColumnOperands();
  RankedTensorType first = typeOf(op->getOperand(0));
  int64_t pairs = first.getDimSize(0) * first.getDimSize(1);
  bool byHeads = exchanges && first.getDimSize(1) % shards == 0;
  if (mustExchange && !byHeads)
    op->emitWarning("has ") << first.getDimSize(1) << " heads, which " << shards
                            << " sequence shards do not divide: keys and values go along a ring, whatever "
                               "-sp-method=ulysses asks for";
  mustExchange &= byHeads;
  SmallVector<Shards> operands{values.lookup(op->getOperand(0))};
  for (unsigned number : columns)
    operands.push_back(columnsOf(op->getOperand(number), first.getDimSize(1)));
  if (byHeads)
    for (Shards &each : operands)
      each = exchangeToHeads(each);
  auto attend = [&](ValueRange q, ValueRange k, ValueRange v, ValueRange masks) {
    SmallVector<Type> types, lses;
    for (auto [rows, some] : llvm::zip_equal(q, v)) {
      SmallVector<int64_t> shape(typeOf(rows).getShape());
      lses.push_back(RankedTensorType::get(ArrayRef(shape).drop_back(), builder.getF32Type()));
      shape[3] = typeOf(some).getDimSize(3);
      types.push_back(RankedTensorType::get(shape, typeOf(some).getElementType()));
    }
    return dist::AttentionOp::create(
               builder, loc, types, lses, q, k, v, masks, softmax.scale,
               softmax.causal ? builder.getUnitAttr() : UnitAttr(),
               byHeads ? builder.getUnitAttr() : UnitAttr(), builder.getI64IntegerAttr(softmax.begin),
               builder.getI64IntegerAttr(shards), builder.getI64IntegerAttr(pairs), byHeads ? none : axes)
        .getResult();
  };
  if (!byHeads) {
    values[op->getResult(0)] =
        Shards(attend(operands[0], operands[1], operands[2], masksOf(op, std::nullopt)));
    return;
  }
  Shards results;
  for (int64_t shard = 0; shard < mine; ++shard)
    results.push_back(
        attend(operands[0][shard], operands[1][shard], operands[2][shard], masksOf(op, shard)).front());
  values[op->getResult(0)] = toPositions(results);
}
