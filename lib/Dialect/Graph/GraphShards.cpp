//===- GraphShards.cpp - reductions over what tensor shards cut -----------===//
//
// Each shard computes what its part decides and zeros elsewhere, in a place of its own: adding such pieces
// is exact, so that they are only brought together. Nothing is computed for several shards at once, so that
// their number on a rank decides no kernel.
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

LocalIndices localIndices(Parts &p, Value indices, Value number, const OperandShards &shards) {
  Value local = p.sub(indices, p.mul(number, p.scalar(shards.each, indices)));
  Value own = p.make<AndOp>(p.make<LessEqualOp>(p.scalar(0, indices), local),
                            p.make<LessOp>(local, p.scalar(shards.each, indices)));
  return {own, local};
}

/// Rows of a table: of those that a shard does not have it gives zeros.
Values reduceShards(GatherOp op, Parts &p, const OperandShards &shards) {
  auto result = cast<RankedTensorType>(op.getType());
  // Indices as dimensions of the result.
  SmallVector<int64_t> spread(op.getAxis(), 1);
  llvm::append_range(spread, cast<RankedTensorType>(op.getIndices().getType()).getShape());
  spread.append(result.getRank() - spread.size(), 1);
  Values pieces;
  for (auto [shard, table] : llvm::enumerate(shards.operands[0])) {
    Value given = shards.operands[1][shard], fromEnd = p.add(given, p.scalar(shards.whole, given));
    Value indices = p.make<WhereOp>(p.make<LessOp>(given, p.scalar(0, given)), fromEnd, given);
    Value number = shards.number(shard, getElementTypeOrSelf(indices));
    LocalIndices local = localIndices(p, indices, number, shards);
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
Value withoutPadding(Parts &p, Value logits, Value place, Value number, const OperandShards &shards) {
  if (!place)
    return logits;
  Value classes = p.add(place, p.mul(number, p.scalar(shards.each, number)));
  return p.make<WhereOp>(p.make<LessOp>(classes, p.scalar(shards.whole, number)), logits,
                         p.scalar(-INFINITY, logits));
}

/// Of each shard's lse a column is added, and the term of the label that one of them has. The whole lse is
/// that of the shards' ones; the loss is what it exceeds the label's logit by.
Values reduceShards(NllOp op, Parts &p, const OperandShards &shards) {
  Value labels = op.getLabels();
  Type integer = getElementTypeOrSelf(labels);
  int64_t rows = cast<RankedTensorType>(labels.getType()).getDimSize(0);
  auto places = [&](int64_t size) -> Value {
    return p.make<IotaOp>(RankedTensorType::get({1, size}, integer), /*axis=*/1);
  };
  Value columns = places(shards.count);
  Value classes = shards.each * shards.count == shards.whole ? Value() : places(shards.each);
  Values sums, terms;
  for (auto [shard, part] : llvm::enumerate(shards.operands[0])) {
    Value own = shards.operands[1][shard], number = shards.number(shard, integer);
    LocalIndices local = localIndices(p, own, number, shards);
    Value target = p.make<WhereOp>(local.own, local.indices, p.scalar(-1, own));
    Value logits = withoutPadding(p, part, classes ? shards.share(classes, shard) : Value(), number, shards);
    auto nll = NllOp::create(p.b, logits, target, /*ignore_index=*/-1);
    Value lse = p.reshape(nll.getLse(), {rows, 1});
    Value isOwn = p.make<EqualOp>(shards.share(columns, shard), number);
    sums.push_back(p.make<WhereOp>(isOwn, lse, p.scalar(0, lse)));
    Value term = p.sub(nll.getLoss(), nll.getLse());
    terms.push_back(p.make<WhereOp>(local.own, term, p.scalar(0, term)));
  }
  Value each = shards.add(sums), term = shards.add(terms);
  Value largest = p.make<StopGradientOp>(p.max(each, 1));
  Value sum = p.sum(p.make<ExpOp>(p.sub(each, largest)), 1);
  Value lse = p.reshape(p.add(p.make<LogOp>(sum), largest), {rows});
  Value ignored = p.make<EqualOp>(labels, p.scalar(int64_t(op.getIgnoreIndex()), labels));
  return {p.make<WhereOp>(ignored, p.scalar(0, lse), p.add(lse, term)), lse};
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
