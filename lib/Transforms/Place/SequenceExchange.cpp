//===- SequenceExchange.cpp - attention of heads, positions exchanged -----===//
//
// Ulysses (Jacobs et al., 2023): before attention ranks exchange positions for heads, and back behind it.
// Each shard has some heads of all positions, and attends for the rows of one sequence shard after the other:
// as many rows at once, and sums of as many pieces, as where keys and values are gathered, so that either way
// gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "SequenceWriter.h"
#include "dsopt/Interfaces/SequenceOps.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether heads can be divided, and rows and columns are those of whole sequences.
bool SequenceWriter::canExchange(Operation *op) const {
  auto sequence = cast<SequenceOpInterface>(op);
  RankedTensorType first = typeOf(op->getOperand(0));
  if (first.getRank() != 4 || sequence.getHeadDim() != 1 || sequence.getRowDim() != 2 ||
      first.getDimSize(1) % shards ||
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

/// All positions of the heads that this rank's shards have, `[batch, heads / Q, positions, size]` each, once
/// for the rows of each sequence shard.
SmallVector<SequenceWriter::Shards> SequenceWriter::keysOf(Value value) {
  auto share = [&](Value own) {
    auto all = dist::SharedOp::create(builder, loc, SmallVector<Type>(shards, own.getType()), own, none);
    return Shards(all.getShards());
  };
  std::optional<SharedHeads> heads = repeatedHeads(value);
  if (!heads || heads->dim != 1 || heads->count % shards)
    return llvm::map_to_vector(exchangeToHeads(values.lookup(value)), share);
  // Heads that others share travel once, and are repeated where they are read.
  Shards narrow;
  for (Value shard : values.lookup(heads->heads)) {
    SmallVector<int64_t> shape(typeOf(shard).getShape());
    shape.erase(shape.begin() + 2);
    narrow.push_back(reshaped(shard, shape));
  }
  auto repeated = [&](Value own) {
    SmallVector<int64_t> shape(typeOf(own).getShape());
    shape.insert(shape.begin() + 2, 1);
    Value apart = reshaped(own, shape);
    shape[2] = heads->readers;
    apart = graph::ExpandOp::create(builder, loc, RankedTensorType::get(shape, typeOf(own).getElementType()),
                                    apart);
    shape[1] *= shape[2];
    shape.erase(shape.begin() + 2);
    return reshaped(apart, shape);
  };
  return llvm::map_to_vector(exchangeToHeads(narrow),
                             [&](Value own) { return Shards(llvm::map_range(share(own), repeated)); });
}

SequenceWriter::Shards SequenceWriter::exchangeToHeads(const Shards &each) {
  Value own = joined(each, 2);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0], heads = shape[1] / ranks, positions = shape[2], size = shape[3];
  own = reshaped(own, {batch, ranks, heads, positions, size});
  own = graph::TransposeOp::create(builder, loc, own, ArrayRef<int64_t>{1, 3, 0, 2, 4});
  own = reshaped(own, {ranks * positions, batch, heads, size});
  Value all = dist::AllToAllOp::create(builder, loc, own, axes);
  all = graph::TransposeOp::create(builder, loc, all, ArrayRef<int64_t>{1, 2, 0, 3});
  Shards groups;
  for (int64_t shard = 0; shard < mine; ++shard)
    groups.push_back(sliced(all, 1, shard * (heads / mine), heads / mine));
  return groups;
}

/// The way back: `[batch, heads, positions / Q, size]` of each shard, of what it had of all positions.
SequenceWriter::Shards SequenceWriter::toPositions(const Shards &each) {
  Value own = joined(each, 1);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0], heads = shape[1], positions = shape[2] / ranks, size = shape[3];
  own = graph::TransposeOp::create(builder, loc, own, ArrayRef<int64_t>{2, 0, 1, 3});
  Value all = dist::AllToAllOp::create(builder, loc, own, axes);
  all = reshaped(all, {ranks, positions, batch, heads, size});
  all = graph::TransposeOp::create(builder, loc, all, ArrayRef<int64_t>{2, 0, 3, 1, 4});
  all = reshaped(all, {batch, ranks * heads, positions, size});
  Shards shards;
  for (int64_t shard = 0; shard < mine; ++shard)
    shards.push_back(sliced(all, 2, shard * (positions / mine), positions / mine));
  return shards;
}

/// What the heads of a shard and the rows of a sequence shard have of an operand that this rank has whole.
Value SequenceWriter::partOf(OpOperand &operand, int64_t shard, int64_t part) {
  Operation *op = operand.getOwner();
  Value value = operand.get();
  RankedTensorType first = typeOf(op->getOperand(0));
  int64_t heads = first.getDimSize(1) / shards, own = first.getDimSize(2) / shards;
  auto along = [&](int64_t dim) {
    std::optional<int64_t> found = SequenceRegion::alongFirst(op, operand.getOperandNumber(), dim);
    return found && typeOf(value).getDimSize(*found) == first.getDimSize(dim) ? found : std::nullopt;
  };
  if (std::optional<int64_t> dim = along(1); dim && first.getDimSize(1) > 1)
    value = graph::GatherOp::create(
        builder, loc, value, places(shard, llvm::to_vector(llvm::seq(static_cast<int32_t>(heads))), heads),
        *dim, IntegerAttr());
  if (std::optional<int64_t> dim = along(2); dim && first.getDimSize(2) > 1)
    value = sliced(value, *dim, part * own, own);
  return value;
}

void SequenceWriter::writeExchanged(Operation *op) {
  auto sequence = cast<SequenceOpInterface>(op);
  RankedTensorType first = typeOf(op->getOperand(0));
  int64_t heads = first.getDimSize(1) / shards, own = first.getDimSize(2) / shards;
  Shards rows = exchangeToHeads(values.lookup(op->getOperand(0))), results;
  llvm::SmallDenseMap<unsigned, SmallVector<Shards>> columns;
  for (unsigned number : sequence.getColumnOperands())
    columns[number] = keysOf(op->getOperand(number));
  for (int64_t shard = 0; shard < mine; ++shard) {
    Shards parts;
    for (int64_t part = 0; part < shards; ++part) {
      SmallVector<Value> operands;
      for (OpOperand &operand : op->getOpOperands()) {
        unsigned number = operand.getOperandNumber();
        auto known = columns.find(number);
        operands.push_back(number == 0              ? sliced(rows[shard], 2, part * own, own)
                           : known != columns.end() ? known->second[shard][part]
                                                    : partOf(operand, shard, part));
      }
      Operation *copy = builder.clone(*op);
      copy->setOperands(operands);
      for (OpResult result : copy->getResults()) {
        SmallVector<int64_t> shape(typeOf(result).getShape());
        unsigned number = op->getNumOperands() + result.getResultNumber();
        shape[*SequenceRegion::alongFirst(op, number, 1)] = heads;
        shape[*SequenceRegion::alongFirst(op, number, 2)] = own;
        result.setType(RankedTensorType::get(shape, typeOf(result).getElementType()));
      }
      auto placed = cast<SequenceOpInterface>(copy);
      placed.placeHeads(op);
      placed.placeRows(op, part * own, /*step=*/0);
      parts.push_back(copy->getResult(0));
    }
    results.push_back(joined(parts, 2));
  }
  values[op->getResult(0)] = toPositions(results);
}
