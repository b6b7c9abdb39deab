//===- GraphSequence.cpp - attention and dropout of parts of a sequence ---===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Sharding.h"
#include "dsopt/Interfaces/SequenceOps.h"

using namespace mlir;

namespace dsopt::graph {
namespace {
int64_t sizeOf(Value value, int64_t dim) { return cast<RankedTensorType>(value.getType()).getDimSize(dim); }

struct AttentionSequence : SequenceOpInterface::ExternalModel<AttentionSequence, AttentionOp> {
  int64_t getRowDim(Operation *) const { return 2; }
  int64_t getHeadDim(Operation *) const { return 1; }
  SmallVector<unsigned> getColumnOperands(Operation *) const { return {1, 2}; }
  void placeRows(Operation *op, Operation *whole, int64_t first, int64_t step) const {
    auto own = cast<AttentionOp>(op), all = cast<AttentionOp>(whole);
    if (!all.getCausal())
      return;
    own.setBegin(getSoftmax(whole)->begin + first);
    if (step)
      own.setStep(step);
  }
  std::optional<SequenceSoftmax> getSoftmax(Operation *op) const {
    auto attention = cast<AttentionOp>(op);
    int64_t begin = attention.getBegin().value_or(sizeOf(attention.getK(), 2) - sizeOf(attention.getQ(), 2));
    return SequenceSoftmax{attention.getScaleAttr(), attention.getCausal(), begin};
  }
  Value buildPlaced(Operation *op, OpBuilder &builder, const PlacedRows &rows) const {
    auto attention = cast<AttentionOp>(op);
    auto q = cast<RankedTensorType>(rows.operands[0].getType()),
         v = cast<RankedTensorType>(rows.operands[2].getType());
    auto type =
        RankedTensorType::get({1, q.getDimSize(1), q.getDimSize(2), v.getDimSize(3)}, v.getElementType());
    return CachedAttentionOp::create(builder, op->getLoc(), type, rows.operands[0], rows.operands[1],
                                     rows.operands[2], rows.slots, rows.positions,
                                     rows.operands.size() > 3 ? rows.operands[3] : Value(), rows.caches[0],
                                     rows.caches[1], attention.getScaleAttr());
  }
};

/// Rows and columns are of shards that follow from the rank's place.
template <typename Op> struct PlacedPart : RankDependentOpInterface::ExternalModel<PlacedPart<Op>, Op> {
  bool differsBetweenRanks(Operation *op, bool time) const {
    auto part = cast<Op>(op);
    return time && part.getCausal() && part.getGroup();
  }
};

template <typename Op>
struct PlacedAttention : RankDependentOpInterface::ExternalModel<PlacedAttention<Op>, Op> {
  bool differsBetweenRanks(Operation *op, bool time) const { return time && cast<Op>(op).getStep(); }
};

struct PlacedDropout : RankDependentOpInterface::ExternalModel<PlacedDropout, DropoutOp> {
  bool differsBetweenRanks(Operation *op, bool time) const {
    auto dropout = cast<DropoutOp>(op);
    return (time ? dropout.getTimeRuns() : dropout.getRuns()).has_value();
  }
};
} // namespace

void registerSequences(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    AttentionOp::attachInterface<AttentionSequence, PlacedAttention<AttentionOp>>(*context);
    AttentionGradOp::attachInterface<PlacedAttention<AttentionGradOp>>(*context);
    AttentionPartOp::attachInterface<PlacedPart<AttentionPartOp>>(*context);
    AttentionPartGradOp::attachInterface<PlacedPart<AttentionPartGradOp>>(*context);
    DropoutOp::attachInterface<PlacedDropout>(*context);
  });
}
} // namespace dsopt::graph
