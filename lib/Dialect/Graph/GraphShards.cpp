//===- GraphShards.cpp - reductions over what tensor shards cut -----------===//
//
// Each shard computes what its part decides and zeros elsewhere, in a place of its own: adding such pieces
// is exact, so that they are only brought together.
//
//===----------------------------------------------------------------------===//

#include "GraphParts.h"
#include "dsopt/Dialect/Graph/Sharding.h"
#include "dsopt/Interfaces/Interfaces.h"

using namespace mlir;

namespace dsopt::graph {
namespace {
using Values = SmallVector<Value>;

/// Where whole indices lie in one shard.
struct LocalIndices {
  Value own;     ///< whether the shard has the element
  Value indices; ///< the element's number in the shard, where it has it
};

LocalIndices localIndices(Parts &p, Value indices, int64_t shard, const OperandShards &shards) {
  Value number = shards.number(shard, getElementTypeOrSelf(indices));
  Value local = p.sub(indices, p.mul(number, p.scalar(shards.each, indices)));
  Value own = p.make<AndOp>(p.make<LessEqualOp>(p.scalar(0, indices), local),
                            p.make<LessOp>(local, p.scalar(shards.each, indices)));
  return {own, local};
}

/// Rows of a table: of those that a shard does not have it gives zeros.
Values reduceShards(GatherOp op, Parts &p, const OperandShards &shards) {
  Value given = op.getIndices();
  Value fromEnd = p.add(given, p.scalar(shards.whole, given));
  Value indices = p.make<WhereOp>(p.make<LessOp>(given, p.scalar(0, given)), fromEnd, given);
  auto result = cast<RankedTensorType>(op.getType());
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(given.getType()).getShape();
  // Indices as dimensions of the result.
  SmallVector<int64_t> spread(op.getAxis(), 1);
  llvm::append_range(spread, sizes);
  spread.append(result.getRank() - spread.size(), 1);
  Values pieces;
  for (auto [shard, table] : llvm::enumerate(shards.operands[0])) {
    LocalIndices local = localIndices(p, indices, shard, shards);
    Value readable = p.make<WhereOp>(local.own, local.indices, p.scalar(0, indices));
    Value rows = p.make<GatherOp>(table, readable, op.getAxisAttr(), IntegerAttr());
    if (std::optional<uint64_t> padding = op.getPaddingIndex()) {
      Value fixed = p.make<EqualOp>(given, p.scalar(int64_t(*padding), given));
      rows = p.make<WhereOp>(p.reshape(fixed, spread), p.make<StopGradientOp>(rows), rows);
    }
    pieces.push_back(p.make<WhereOp>(p.reshape(local.own, spread), rows, p.scalar(0, rows)));
  }
  return {shards.add(pieces)};
}

/// The logits of shards beyond the last class are zeros of no meaning: they take no part.
Value withoutPadding(Parts &p, Value logits, Value number, const OperandShards &shards) {
  if (shards.each * shards.count == shards.whole)
    return logits;
  auto type = RankedTensorType::get({1, shards.each}, getElementTypeOrSelf(number));
  Value place = p.make<IotaOp>(type, /*axis=*/1);
  Value classes = p.add(place, p.mul(number, p.scalar(shards.each, number)));
  return p.make<WhereOp>(p.make<LessOp>(classes, p.scalar(shards.whole, number)), logits,
                         p.scalar(-INFINITY, logits));
}

/// A piece has a row of each shard's lse, and one of the label's own term. The whole lse is that of the
/// shards' ones; the loss is what it exceeds the label's logit by.
Values reduceShards(NllOp op, Parts &p, const OperandShards &shards) {
  Value labels = op.getLabels();
  Type integer = getElementTypeOrSelf(labels);
  int64_t rows = cast<RankedTensorType>(labels.getType()).getDimSize(0), count = shards.count;
  Value place = p.make<IotaOp>(RankedTensorType::get({1, count + 1}, integer), /*axis=*/1);
  Value isTarget = p.make<EqualOp>(place, p.scalar(count, place));
  Values pieces;
  for (auto [shard, part] : llvm::enumerate(shards.operands[0])) {
    LocalIndices local = localIndices(p, labels, shard, shards);
    Value number = shards.number(shard, integer);
    Value target = p.make<WhereOp>(local.own, local.indices, p.scalar(-1, labels));
    auto nll = NllOp::create(p.b, withoutPadding(p, part, number, shards), target, /*ignore_index=*/-1);
    Value excess = p.make<WhereOp>(local.own, p.sub(nll.getLoss(), nll.getLse()), p.scalar(0, nll.getLoss()));
    Value lse = p.reshape(nll.getLse(), {rows, 1});
    Value others = p.make<WhereOp>(isTarget, p.reshape(excess, {rows, 1}), p.scalar(0, lse));
    pieces.push_back(p.make<WhereOp>(p.make<EqualOp>(place, number), lse, others));
  }
  Value all = shards.add(pieces);
  SmallVector<int64_t> steps{1, 1};
  Value each = p.make<SliceOp>(all, ArrayRef<int64_t>{0, 0}, ArrayRef<int64_t>{rows, count}, steps);
  Value excess = p.make<SliceOp>(all, ArrayRef<int64_t>{0, count}, ArrayRef<int64_t>{rows, 1}, steps);
  Value largest = p.make<StopGradientOp>(p.max(each, 1));
  Value sum = p.sum(p.make<ExpOp>(p.sub(each, largest)), 1);
  Value lse = p.add(p.make<LogOp>(sum), largest);
  Value ignored = p.make<EqualOp>(labels, p.scalar(int64_t(op.getIgnoreIndex()), labels));
  Value loss = p.reshape(p.add(lse, excess), {rows});
  return {p.make<WhereOp>(ignored, p.scalar(0, loss), loss), p.reshape(lse, {rows})};
}

struct GatherShards : ShardedReductionOpInterface::ExternalModel<GatherShards, GatherOp> {
  bool canReduceShards(Operation *op, unsigned operand, int64_t dim) const {
    auto gather = cast<GatherOp>(op);
    return operand == 0 && dim == int64_t(gather.getAxis()) &&
           isa<FloatType>(getElementTypeOrSelf(gather.getType()));
  }
  Values reduceShards(Operation *op, OpBuilder &builder, const OperandShards &shards) const {
    Parts parts(builder, op);
    return graph::reduceShards(cast<GatherOp>(op), parts, shards);
  }
};

struct NllShards : ShardedReductionOpInterface::ExternalModel<NllShards, NllOp> {
  bool canReduceShards(Operation *, unsigned operand, int64_t dim) const { return operand == 0 && dim == 1; }
  Values reduceShards(Operation *op, OpBuilder &builder, const OperandShards &shards) const {
    Parts parts(builder, op);
    return graph::reduceShards(cast<NllOp>(op), parts, shards);
  }
};
} // namespace

void registerShardedReductions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    GatherOp::attachInterface<GatherShards>(*context);
    NllOp::attachInterface<NllShards>(*context);
  });
}
} // namespace dsopt::graph
