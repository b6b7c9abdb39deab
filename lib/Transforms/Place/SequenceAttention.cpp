//===- SequenceAttention.cpp - what dist.attention is made of -------------===//
//
// Rows of a shard meet the columns of all shards, its own first and then those before it, and keep their
// result with its sums of exponentials from meeting to meeting (Liu et al., "Ring Attention with Blockwise
// Transformers", 2023). Keys and values travel along the ring; in backward the sums of their gradients do,
// too. Whoever computes a meeting, and when, its result is added in the same order.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Place/Passes.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static RankedTensorType wide(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), Float32Type::get(type.getContext()));
}

namespace {
/// Writes the parts of attention, or of its gradient: meeting t is of rows and of columns that are t shards
/// before them.
template <typename Op> class PartWriter {
public:
  PartWriter(Op op, OpBuilder &builder)
      : op(op), builder(builder), loc(op.getLoc()), own(op.getEntries()), meetings(op.getShards()),
        ranks(meetings / own), keys{op.getK()}, values{op.getV()} {}

protected:
  /// What is sent is what is computed, not the same under another shape: both may be kept for backward.
  Value shifted(Value value) {
    Value made = value;
    while (auto reshape = made.getDefiningOp<graph::ReshapeOp>())
      made = reshape.getInput();
    Value there = dist::ShiftOp::create(builder, loc, made, op.getAxes());
    return made == value ? there : graph::ReshapeOp::create(builder, loc, value.getType(), there).getResult();
  }
  /// What a value has of some of this rank's shards.
  Value sliced(Value value, int64_t first, int64_t count) {
    if (count == own)
      return value;
    SmallVector<int64_t> sizes(typeOf(value).getShape()), starts(sizes.size(), 0), steps(sizes.size(), 1);
    int64_t each = sizes[0] / own;
    starts[0] = first * each;
    sizes[0] = count * each;
    return graph::SliceOp::create(builder, loc, value, starts, sizes, steps);
  }
  Value joined(ArrayRef<Value> values) {
    return values.size() == 1 ? values[0]
                              : graph::ConcatOp::create(builder, loc, values, /*axis=*/0).getResult();
  }
  /// Where, among this rank's, the shard lies that a meeting has and the one before it had not.
  int64_t arrivalOf(int64_t meeting) const { return (own - meeting % own) % own; }
  /// The columns of a meeting, of all that have come so far: those of the shards behind the last arrival are
  /// of the next step of the ring. In the end a rank's own are there again.
  Value columnsOf(ArrayRef<Value> steps, int64_t meeting) {
    int64_t step = meeting / own, arrival = arrivalOf(meeting);
    if (ranks == 1 || arrival == 0)
      return steps[step];
    Value next = steps[(step + 1) % ranks];
    return joined({sliced(steps[step], 0, arrival), sliced(next, arrival, own - arrival)});
  }
  /// What the next step reads travels while this one is computed.
  void arriveAt(int64_t meeting) {
    if (meeting % own || meeting / own + 1 >= ranks)
      return;
    keys.push_back(shifted(keys.back()));
    values.push_back(shifted(values.back()));
  }
  Value maskOf(int64_t meeting) { return op.getMasks().empty() ? Value() : op.getMasks()[meeting]; }
  /// Where rows and columns of a meeting are, as parts are told.
  auto placeOf(int64_t meeting) {
    ArrayRef<AxisPart> ring = op.getAxes().getParts();
    int64_t group = ring.empty() ? 0 : ring[0].part == AxisPart::Whole ? 1 : ring[0].count;
    return std::make_tuple(op.getScaleAttr(), op.getCausalAttr(), op.getShardsAttr(),
                           builder.getI64IntegerAttr(meeting), op.getEntriesAttr(),
                           builder.getI64IntegerAttr(group), op.getBeginAttr(), op.getPairsAttr());
  }
  bool isLast(int64_t meeting) const { return meeting + 1 == meetings; }
  UnitAttr partial(int64_t meeting) { return isLast(meeting) ? UnitAttr() : builder.getUnitAttr(); }
  RankedTensorType typeFor(Value like, int64_t meeting) {
    return isLast(meeting) ? typeOf(like) : wide(typeOf(like));
  }

  Op op;
  OpBuilder &builder;
  Location loc;
  int64_t own, meetings, ranks;
  SmallVector<Value> keys, values; ///< by the step of the ring that they are there for
};

class ForwardWriter : PartWriter<dist::AttentionOp> {
public:
  using PartWriter::PartWriter;

  SmallVector<Value> write() {
    Value result, lse;
    for (int64_t meeting = 0; meeting < meetings; ++meeting) {
      arriveAt(meeting);
      Value k = columnsOf(keys, meeting), v = columnsOf(values, meeting);
      auto made = std::apply(
          [&](auto... place) {
            return graph::AttentionPartOp::create(builder, loc, typeFor(op.getResult(), meeting),
                                                  op.getLse().getType(), op.getQ(), k, v, maskOf(meeting),
                                                  result, lse, place..., partial(meeting));
          },
          placeOf(meeting));
      result = made.getResult();
      lse = made.getLse();
    }
    return {result, lse};
  }
};

class BackwardWriter : PartWriter<dist::AttentionGradOp> {
public:
  using PartWriter::PartWriter;

  SmallVector<Value> write() {
    Value qGrad, kGrad, vGrad;
    // Sums go on with the columns that they are of, and home in the end.
    auto goOn = [&](int64_t meeting) {
      if (ranks > 1)
        for (Value *sum : {&kGrad, &vGrad})
          *sum = moved(*sum, arrivalOf(meeting));
    };
    for (int64_t meeting = 0; meeting < meetings; ++meeting) {
      if (meeting)
        goOn(meeting);
      arriveAt(meeting);
      Value k = columnsOf(keys, meeting), v = columnsOf(values, meeting);
      auto made = std::apply(
          [&](auto... place) {
            return graph::AttentionPartGradOp::create(
                builder, loc, typeFor(op.getQ(), meeting), typeFor(op.getK(), meeting),
                typeFor(op.getV(), meeting), op.getQ(), k, v, maskOf(meeting), op.getResult(), op.getLse(),
                op.getGrad(), qGrad, kGrad, vGrad, place..., partial(meeting), partial(meeting));
          },
          placeOf(meeting));
      qGrad = made.getQGrad();
      kGrad = made.getKGrad();
      vGrad = made.getVGrad();
    }
    goOn(meetings);
    return {qGrad, kGrad, vGrad};
  }

private:
  /// What a value has of one shard is another rank's.
  Value moved(Value value, int64_t shard) {
    SmallVector<Value> all;
    if (shard)
      all.push_back(sliced(value, 0, shard));
    all.push_back(shifted(sliced(value, shard, 1)));
    if (shard + 1 < own)
      all.push_back(sliced(value, shard + 1, own - shard - 1));
    return joined(all);
  }
};

template <typename Op, typename Writer>
struct Decomposition : DecomposableOpInterface::ExternalModel<Decomposition<Op, Writer>, Op> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    return Writer(cast<Op>(op), builder).write();
  }
};

struct AttentionGradient : DifferentiableOpInterface::ExternalModel<AttentionGradient, dist::AttentionOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder, ValueRange resultGrads,
                              ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) const {
    auto attention = cast<dist::AttentionOp>(op);
    if (resultGrads[1])
      return op->emitOpError("has no gradient through its lse");
    if (llvm::is_contained(needed.drop_front(3), true))
      return op->emitOpError("has no gradient of its masks");
    auto gradient = dist::AttentionGradOp::create(
        builder, op->getLoc(), attention.getQ().getType(), attention.getK().getType(),
        attention.getV().getType(), attention.getQ(), attention.getK(), attention.getV(),
        attention.getResult(), attention.getLse(), resultGrads[0], attention.getMasks(),
        attention.getScaleAttr(), attention.getCausalAttr(), attention.getEntriesAttr(),
        attention.getBeginAttr(), attention.getShardsAttr(), attention.getPairsAttr(),
        attention.getAxesAttr());
    for (size_t i = 0; i < 3; ++i)
      if (needed[i])
        operandGrads[i] = gradient->getResult(i);
    return success();
  }
};
} // namespace

void dsopt::registerSequenceAttention(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, dist::DistDialect *, graph::GraphDialect *) {
    dist::AttentionOp::attachInterface<AttentionGradient, Decomposition<dist::AttentionOp, ForwardWriter>>(
        *context);
    dist::AttentionGradOp::attachInterface<Decomposition<dist::AttentionGradOp, BackwardWriter>>(*context);
  });
}
