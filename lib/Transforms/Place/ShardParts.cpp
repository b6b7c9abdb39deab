//===- ShardParts.cpp - what all shards are written with ------------------===//

#include "ShardParts.h"

#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Context.h"

using namespace mlir;
using namespace dsopt;

FailureOr<func::FuncOp> dsopt::forwardOf(ModuleOp module, StringRef pass, StringRef of, int64_t shards,
                                         int64_t ranks) {
  if (shards % ranks)
    return module.emitError("has ") << shards << " " << of << " shards for " << ranks
                                    << " ranks, expected a multiple";
  auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  if (!forward || !forward.getBody().hasOneBlock())
    return module.emitError() << pass << " expects a function @forward with one body";
  return forward;
}

Value dsopt::addPieces(OpBuilder &builder, Location loc, ValueRange pieces, dist::AxesAttr axes, bool exact) {
  SmallVector<Value> level(pieces);
  while (level.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < level.size(); i += 2)
      next.push_back(i + 1 < level.size()
                         ? graph::TreeAddOp::create(builder, loc, level[i], level[i + 1], exact).getResult()
                         : level[i]);
    level = std::move(next);
  }
  return axes.getParts().empty() ? level[0] : dist::AllReduceOp::create(builder, loc, level[0], axes);
}

void dsopt::setBlocks(Operation *before, Operation *end, Attribute block) {
  if (!block)
    return;
  for (Operation *made = before ? before->getNextNode() : &end->getBlock()->front(); made != end;
       made = made->getNextNode())
    made->setAttr(graph::kBlockAttr, block);
}

Value dsopt::numberOfShard(OpBuilder &builder, Location loc, Axis axis, Value context, Type integer,
                           int64_t mine, int64_t shard) {
  Value rank = graph::rankAlong(axis, builder, loc, context, integer);
  Value first = graph::MulOp::create(builder, loc, rank, graph::scalarConstant(builder, loc, integer, mine));
  Value number =
      graph::AddOp::create(builder, loc, first, graph::scalarConstant(builder, loc, integer, shard));
  auto alone = dist::AxesAttr::get(builder.getContext(), {});
  return dist::SharedOp::create(builder, loc, number.getType(), number, alone).getShards()[0];
}

Value dsopt::placesOfShard(OpBuilder &builder, Location loc, Value number, ArrayRef<int32_t> first,
                           int64_t step) {
  Type i32 = builder.getI32Type();
  auto type = RankedTensorType::get({static_cast<int64_t>(first.size())}, i32);
  Value begin = graph::MulOp::create(builder, loc, number, graph::scalarConstant(builder, loc, i32, step));
  Value offsets =
      graph::ConstantOp::create(builder, loc, cast<ElementsAttr>(DenseElementsAttr::get(type, first)));
  return graph::AddOp::create(builder, loc, offsets, begin);
}

SmallVector<int32_t> dsopt::firstPlaces(int64_t parts, int64_t part, int64_t own) {
  SmallVector<int32_t> first;
  for (int64_t i = 0; i < parts * own; ++i)
    first.push_back(i / own * part + i % own);
  return first;
}
