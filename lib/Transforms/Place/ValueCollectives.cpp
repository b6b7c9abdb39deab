//===- ValueCollectives.cpp - what passes ask of collectives on values ----===//

#include "ShardWriter.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Place/Passes.h"

using namespace mlir;
using namespace dsopt;

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
    if (llvm::is_contained(resultGrads, Value()))
      return op->emitOpError("has a gradient of some shards only, expected all of them to be alike");
    operandGrads[0] = addPieces(builder, op->getLoc(), resultGrads, cast<dist::SharedOp>(op).getAxes());
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
  });
}
