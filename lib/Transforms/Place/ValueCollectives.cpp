//===- ValueCollectives.cpp - what passes ask of collectives on values ----===//

#include "ShardParts.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Place/Passes.h"

using namespace mlir;
using namespace dsopt;

/// The rows that this rank has of what all have, by its place along an axis.
static Value takeOwnRows(OpBuilder &builder, Location loc, Value whole, int64_t rows, Axis axis) {
  auto function = builder.getInsertionBlock()->getParent()->getParentOfType<func::FuncOp>();
  Type i32 = builder.getI32Type();
  Value rank = graph::rankAlong(axis, builder, loc, graph::getOrAddContext(function), i32);
  Value first = graph::MulOp::create(builder, loc, rank, graph::scalarConstant(builder, loc, i32, rows));
  Value offsets = graph::IotaOp::create(builder, loc, RankedTensorType::get({rows}, i32), /*axis=*/0);
  Value places = graph::AddOp::create(builder, loc, offsets, first);
  return graph::GatherOp::create(builder, loc, whole, places, /*axis=*/0, IntegerAttr());
}

/// A rank's slice of a gradient that all have. No kernel is longer or shorter where one rank has all of it.
static Value takeOwnSlice(OpBuilder &builder, Location loc, Value whole, RankedTensorType slice,
                          dist::AxesAttr axes) {
  auto alone = dist::AxesAttr::get(builder.getContext(), {});
  auto share = [&](Value value) {
    return dist::SharedOp::create(builder, loc, value.getType(), value, alone).getShards()[0];
  };
  Value own = share(whole);
  if (!axes.getParts().empty())
    own = takeOwnRows(builder, loc, own, slice.getDimSize(0), axes.getParts().back().axis);
  return share(own);
}

namespace {
/// Each rank has the sum, and what it does with it all do alike: so has the gradient, which all pieces share.
template <typename Op> struct SumGradient : DifferentiableOpInterface::ExternalModel<SumGradient<Op>, Op> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                              ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) const {
    auto shared = dist::SharedOp::create(builder, op->getLoc(),
                                         SmallVector<Type>(op->getNumOperands(), resultGrads[0].getType()),
                                         resultGrads[0], dist::AxesAttr::get(op->getContext(), {}));
    for (auto [isNeeded, grad, shard] : llvm::zip_equal(needed, operandGrads, shared.getShards()))
      if (isNeeded)
        grad = shard;
    return success();
  }
};

/// What shards have of the gradient of a whole value are pieces of it.
struct SharedGradient : DifferentiableOpInterface::ExternalModel<SharedGradient, dist::SharedOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                              ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) const {
    if (!needed[0])
      return success();
    auto shared = cast<dist::SharedOp>(op);
    if (llvm::is_contained(resultGrads, Value()))
      return op->emitOpError("has a gradient of some shards only, expected all of them to be alike");
    operandGrads[0] = addPieces(builder, op->getLoc(), resultGrads, shared.getAxes(), shared.getExact());
    return success();
  }
};

/// Shards read other rows of what is gathered: what ranks have of its gradient is added, a slice on each.
/// Slices that are no granules are taken from the whole sum.
struct GatherGradient : DifferentiableOpInterface::ExternalModel<GatherGradient, dist::AllGatherOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                              ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) const {
    auto gather = cast<dist::AllGatherOp>(op);
    auto slice = cast<RankedTensorType>(gather.getValue().getType());
    if (!needed[0])
      return success();
    if (gather.getAlike()) {
      operandGrads[0] = takeOwnSlice(builder, op->getLoc(), resultGrads[0], slice, gather.getAxes());
      // Nobody asks again: it is what another gather of the value is.
      gather.setAlike(false);
      return success();
    }
    if (slice.getNumElements() % dist::kGranule == 0 || gather.getAxes().getParts().empty()) {
      operandGrads[0] =
          dist::ReduceScatterOp::create(builder, op->getLoc(), slice, resultGrads[0], gather.getAxes());
      return success();
    }
    Value sum = dist::AllReduceOp::create(builder, op->getLoc(), resultGrads[0], gather.getAxes());
    operandGrads[0] =
        takeOwnRows(builder, op->getLoc(), sum, slice.getDimSize(0), gather.getAxes().getParts().back().axis);
    return success();
  }
};

/// All pieces have the gradients of all slices of their sum.
struct ScatterGradient : DifferentiableOpInterface::ExternalModel<ScatterGradient, dist::ReduceScatterOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                              ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) const {
    if (needed[0])
      operandGrads[0] = dist::AllGatherOp::create(builder, op->getLoc(), op->getOperand(0).getType(),
                                                  resultGrads[0], cast<dist::ReduceScatterOp>(op).getAxes());
    return success();
  }
};

struct ExchangeGradient : DifferentiableOpInterface::ExternalModel<ExchangeGradient, dist::AllToAllOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                              ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) const {
    if (needed[0])
      operandGrads[0] = dist::AllToAllOp::create(builder, op->getLoc(), resultGrads[0],
                                                 cast<dist::AllToAllOp>(op).getAxes());
    return success();
  }
};

/// Additions are counted where they are made: by the executor.
template <typename Op> struct NoCost : CostedOpInterface::ExternalModel<NoCost<Op>, Op> {
  int64_t getFlops(Operation *) const { return 0; }
};
} // namespace

void dsopt::registerValueCollectives(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, dist::DistDialect *, graph::GraphDialect *) {
    graph::TreeAddOp::attachInterface<SumGradient<graph::TreeAddOp>>(*context);
    dist::AllReduceOp::attachInterface<SumGradient<dist::AllReduceOp>, NoCost<dist::AllReduceOp>>(*context);
    dist::SharedOp::attachInterface<SharedGradient, NoCost<dist::SharedOp>>(*context);
    dist::AllGatherOp::attachInterface<GatherGradient, NoCost<dist::AllGatherOp>>(*context);
    dist::ReduceScatterOp::attachInterface<ScatterGradient, NoCost<dist::ReduceScatterOp>>(*context);
    dist::AllToAllOp::attachInterface<ExchangeGradient, NoCost<dist::AllToAllOp>>(*context);
    dist::ShiftOp::attachInterface<NoCost<dist::ShiftOp>>(*context);
  });
}
