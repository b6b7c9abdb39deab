//===- SequenceWindows.cpp - windows over positions that are cut ----------===//
//
// A convolution along time reads rows of the shards beside its own: what shards have at their ends is
// gathered, a few rows of each, and every shard takes those of its neighbours. Outside of the sequence is
// what windows have there.
//
//===----------------------------------------------------------------------===//

#include "SequenceWriter.h"
#include "ShardParts.h"
#include "dsopt/Dialect/Graph/Constants.h"

using namespace mlir;
using namespace dsopt;

/// A window at each position: those that are fewer end before the sequence does, and what there is behind it
/// has to be left out (`exceeds`).
std::optional<SequenceHalo> SequenceRegion::haloOf(graph::WindowsOp op, TimeCut cut) const {
  int64_t at = cut.dim - int64_t(op.getAxis());
  if (axis != Axis::sp || at < 0 || at >= int64_t(op.getCounts().size()))
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getInput().getType()).getShape();
  int64_t before = op.getLows()[at], after = (op.getKernel()[at] - 1) * op.getDilations()[at] - before;
  if (cut.parts != 1 || cut.begin || cut.length != shape[cut.dim] || op.getStrides()[at] != 1 || before < 0 ||
      after < 0 || std::max(before, after) > cut.length / shards)
    return std::nullopt;
  return SequenceHalo{before, after};
}

/// Rows at the ends of all shards, those that a next one reads before those that one before reads.
SequenceWriter::Shards SequenceWriter::gatherEnds(Value value, TimeCut cut, SequenceHalo halo) {
  int64_t own = cut.length / shards, ends = halo.before + halo.after;
  TimeCut few{cut.dim, 1, 0, shards * ends};
  Shards rows;
  for (Value shard : values.lookup(value)) {
    Shards both;
    if (halo.before)
      both.push_back(sliced(shard, cut.dim, own - halo.before, halo.before));
    if (halo.after)
      both.push_back(sliced(shard, cut.dim, 0, halo.after));
    rows.push_back(rowsFirst(joined(both, cut.dim), few, ends));
  }
  Value ours = joined(rows, 0);
  auto type = cast<RankedTensorType>(ours.getType());
  SmallVector<int64_t> all(type.getShape());
  all[0] *= ranks;
  Value gathered =
      dist::AllGatherOp::create(builder, loc, RankedTensorType::get(all, type.getElementType()), ours, axes);
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape[cut.dim] = few.length;
  gathered = rowsBack(gathered, few, shape);
  return isTrained(value) ? shareWhole(gathered, none) : Shards(mine, gathered);
}

void SequenceWriter::writeWindows(graph::WindowsOp op) {
  TimeCut cut = *region.takenAs(op->getOpOperand(0));
  SequenceHalo halo = *region.haloOf(op, cut);
  int64_t own = cut.length / shards, ends = halo.before + halo.after, at = cut.dim - int64_t(op.getAxis());
  Type i32 = builder.getI32Type();
  auto scalar = [&](int64_t value) { return graph::scalarConstant(builder, loc, i32, value); };
  // The last rows of the shard before, and the first of the one behind.
  SmallVector<int32_t> first;
  for (int64_t i = 0; i < ends; ++i)
    first.push_back(i < halo.before ? i - ends : i + ends);
  Shards all = ends ? gatherEnds(op.getInput(), cut, halo) : Shards(mine);
  for (auto [number, rows] : llvm::enumerate(values.lookup(op.getInput()))) {
    Value read = rows;
    if (ends) {
      Value places = this->places(number, first, ends);
      Value isThere =
          graph::AndOp::create(builder, loc, graph::LessEqualOp::create(builder, loc, scalar(0), places),
                               graph::LessOp::create(builder, loc, places, scalar(shards * ends)));
      Value index = graph::WhereOp::create(builder, loc, isThere, places, scalar(0));
      Value beside = graph::GatherOp::create(builder, loc, all[number], index, cut.dim, IntegerAttr());
      auto type = cast<RankedTensorType>(beside.getType());
      SmallVector<int64_t> spread(type.getRank(), 1);
      spread[cut.dim] = ends;
      auto scalarType = RankedTensorType::get({}, type.getElementType());
      Value outside = graph::ConstantOp::create(
          builder, loc,
          cast<ElementsAttr>(DenseElementsAttr::get(scalarType, ArrayRef<Attribute>(op.getValue()))));
      beside = graph::WhereOp::create(builder, loc, reshaped(isThere, spread), beside, outside);
      Shards joint;
      if (halo.before)
        joint.push_back(sliced(beside, cut.dim, 0, halo.before));
      joint.push_back(rows);
      if (halo.after)
        joint.push_back(sliced(beside, cut.dim, halo.before, halo.after));
      read = joined(joint, cut.dim);
    }
    SmallVector<int64_t> counts(op.getCounts()), lows(op.getLows());
    counts[at] = own;
    lows[at] = 0;
    auto copy = cast<graph::WindowsOp>(builder.clone(*op));
    copy.getInputMutable().assign(read);
    copy.setCounts(counts);
    copy.setLows(lows);
    copy.getResult().setType(local(op.getType(), *region.madeAs(op->getResult(0))));
    values[op.getResult()].push_back(copy);
  }
}
