//===- SequenceExchange.cpp - attention of heads, positions exchanged -----===//
//
// Ulysses (Jacobs et al., 2023): before attention ranks exchange positions for heads, and back behind it.
// Each shard has some heads of all positions, and attends for the rows of one sequence shard after the other:
// as many rows at once, and sums of as many pieces, as where keys and values are gathered, so that either way
// gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "CutRegion.h"
#include "SequenceWriter.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether heads can be divided, and rows are those of whole sequences.
bool SequenceWriter::canExchange(graph::AttentionOp op) const {
  if (typeOf(op.getQ()).getDimSize(1) % shards || !op.getLse().use_empty())
    return false;
  for (Value value : {op.getQ(), op.getK(), op.getV()}) {
    std::optional<TimeCut> cut = region.cutOf(value);
    if (!cut || cut->dim != 2 || cut->parts != 1 || cut->begin || cut->length != typeOf(value).getDimSize(2))
      return false;
  }
  return !op.getMask() || region.isFree(op.getMask());
}

static Value reshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
  return value.getType() == type ? value : graph::ReshapeOp::create(builder, loc, type, value).getResult();
}

static Value transpose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> perm) {
  return graph::TransposeOp::create(builder, loc, value, perm);
}

static Value slice(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> sizes(typeOf(value).getShape()), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (sizes[dim] == size)
    return value;
  starts[dim] = start;
  sizes[dim] = size;
  return graph::SliceOp::create(builder, loc, value, starts, sizes, steps);
}

static Value join(OpBuilder &builder, Location loc, ArrayRef<Value> values, int64_t dim) {
  return values.size() == 1 ? values[0] : graph::ConcatOp::create(builder, loc, values, dim).getResult();
}

/// All positions of the heads that this rank's shards have, `[batch, heads / Q, positions, size]` each, once
/// for the rows of each sequence shard.
SmallVector<SequenceWriter::Shards> SequenceWriter::keysOf(Value value) {
  auto share = [&](Value own) {
    auto all = dist::SharedOp::create(builder, loc, SmallVector<Type>(shards, own.getType()), own, none);
    return Shards(all.getShards());
  };
  auto repeat = value.getDefiningOp<graph::ReshapeOp>();
  std::optional<SharedHeads> heads = repeat ? headsOf(repeat) : std::nullopt;
  if (!heads || heads->dim != 1 || heads->count % shards || !region.cutOf(heads->heads))
    return llvm::map_to_vector(exchangeToHeads(values.lookup(value)), share);
  // Heads that others share travel once, and are repeated where they are read.
  Shards narrow;
  for (Value shard : values.lookup(heads->heads)) {
    SmallVector<int64_t> shape(typeOf(shard).getShape());
    shape.erase(shape.begin() + 2);
    narrow.push_back(reshape(builder, loc, shard, shape));
  }
  auto repeated = [&](Value own) {
    SmallVector<int64_t> shape(typeOf(own).getShape());
    shape.insert(shape.begin() + 2, 1);
    Value apart = reshape(builder, loc, own, shape);
    shape[2] = heads->readers;
    apart = graph::ExpandOp::create(builder, loc, RankedTensorType::get(shape, typeOf(own).getElementType()),
                                    apart);
    shape[1] *= shape[2];
    shape.erase(shape.begin() + 2);
    return reshape(builder, loc, apart, shape);
  };
  return llvm::map_to_vector(exchangeToHeads(narrow),
                             [&](Value own) { return Shards(llvm::map_range(share(own), repeated)); });
}

SequenceWriter::Shards SequenceWriter::exchangeToHeads(const Shards &each) {
  Value own = join(builder, loc, each, 2);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0], heads = shape[1] / ranks, positions = shape[2], size = shape[3];
  own = reshape(builder, loc, own, {batch, ranks, heads, positions, size});
  own = transpose(builder, loc, own, {1, 3, 0, 2, 4});
  own = reshape(builder, loc, own, {ranks * positions, batch, heads, size});
  Value all = dist::AllToAllOp::create(builder, loc, own, axes);
  all = transpose(builder, loc, all, {1, 2, 0, 3});
  Shards groups;
  for (int64_t shard = 0; shard < mine; ++shard)
    groups.push_back(slice(builder, loc, all, 1, shard * (heads / mine), heads / mine));
  return groups;
}

/// The way back: `[batch, heads, positions / Q, size]` of each shard, of what it had of all positions.
SequenceWriter::Shards SequenceWriter::toPositions(const Shards &each) {
  Value own = join(builder, loc, each, 1);
  ArrayRef<int64_t> shape = typeOf(own).getShape();
  int64_t batch = shape[0], heads = shape[1], positions = shape[2] / ranks, size = shape[3];
  own = transpose(builder, loc, own, {2, 0, 1, 3});
  Value all = dist::AllToAllOp::create(builder, loc, own, axes);
  all = reshape(builder, loc, all, {ranks, positions, batch, heads, size});
  all = transpose(builder, loc, all, {2, 0, 3, 1, 4});
  all = reshape(builder, loc, all, {batch, ranks * heads, positions, size});
  Shards shards;
  for (int64_t shard = 0; shard < mine; ++shard)
    shards.push_back(slice(builder, loc, all, 2, shard * (positions / mine), positions / mine));
  return shards;
}

/// What the heads of a shard and the rows of a sequence shard have of a mask, which this rank has whole.
Value SequenceWriter::maskOf(Value mask, int64_t shard, int64_t rows, int64_t heads, int64_t first,
                             int64_t own) {
  if (!mask)
    return mask;
  int64_t rank = typeOf(mask).getRank();
  if (rank >= 3 && typeOf(mask).getDimSize(rank - 3) == heads && heads > 1) {
    SmallVector<int32_t> places;
    for (int64_t head = 0; head < heads / shards; ++head)
      places.push_back(head);
    mask = graph::GatherOp::create(builder, loc, mask, this->places(shard, places, heads / shards, 0, -1),
                                   rank - 3, IntegerAttr());
  }
  if (rank >= 2 && typeOf(mask).getDimSize(rank - 2) == rows && rows > 1)
    mask = slice(builder, loc, mask, rank - 2, first, own);
  return mask;
}

void SequenceWriter::writeExchanged(graph::AttentionOp op) {
  Shards q = exchangeToHeads(values.lookup(op.getQ())), results;
  SmallVector<Shards> keys = keysOf(op.getK()), columns = keysOf(op.getV());
  RankedTensorType whole = typeOf(op.getQ());
  int64_t heads = whole.getDimSize(1), rows = whole.getDimSize(2), own = rows / shards,
          begin = op.getBegin().value_or(typeOf(op.getK()).getDimSize(2) - rows);
  for (int64_t shard = 0; shard < mine; ++shard) {
    Shards parts;
    for (int64_t part = 0; part < shards; ++part) {
      Value own_q = slice(builder, loc, q[shard], 2, part * own, own);
      auto copy = cast<graph::AttentionOp>(builder.clone(*op));
      copy.getQMutable().assign(own_q);
      copy.getKMutable().assign(keys[shard][part]);
      copy.getVMutable().assign(columns[shard][part]);
      if (op.getMask())
        copy.getMaskMutable().assign(maskOf(wholeOf(op.getMask()), shard, rows, heads, part * own, own));
      SmallVector<int64_t> shape(typeOf(own_q).getShape());
      copy.getLse().setType(RankedTensorType::get(ArrayRef(shape).drop_back(), builder.getF32Type()));
      shape[3] = typeOf(op.getResult()).getDimSize(3);
      copy.getResult().setType(RankedTensorType::get(shape, typeOf(op.getResult()).getElementType()));
      copy.setWholeHeads(op.getWholeHeads().value_or(heads));
      if (op.getCausal())
        copy.setBegin(begin + part * own);
      parts.push_back(copy.getResult());
    }
    results.push_back(join(builder, loc, parts, 2));
  }
  values[op.getResult()] = toPositions(results);
}
