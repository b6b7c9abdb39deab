//===- SequenceAttention.cpp - what dist.attention is made of -------------===//
//
// Rows of a shard meet the columns of all shards, its own first and then those before it, and keep their
// result with its sums of exponentials from meeting to meeting (Liu et al., "Ring Attention with Blockwise
// Transformers", 2023). Keys and values travel along the ring; in backward the sums of their gradients do,
// too. Whoever computes a meeting, and when, its result is added in the same order.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Constants.h"
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
/// Rows of a rank's shard `row` and columns that are shard `column` of what has come `step` places along the
/// ring. Shards of this rank that lie behind the rows' come last, when all the others' have been.
struct Meeting {
  int64_t row, column, step;
  bool isLast;
};

/// The meetings on a rank with so many shards, in order.
SmallVector<Meeting> meetingsOf(int64_t own, int64_t ranks) {
  SmallVector<Meeting> all;
  for (int64_t step = 0; step < ranks; ++step)
    for (int64_t row = 0; row < own; ++row)
      for (int64_t column = step ? own - 1 : row; column >= 0; --column)
        all.push_back({row, column, step, false});
  for (int64_t row = 0; row < own; ++row)
    for (int64_t column = own - 1; column > row; --column)
      all.push_back({row, column, 0, true});
  return all;
}

/// Writes the parts of attention, or of its gradient.
template <typename Op> class PartWriter {
public:
  PartWriter(Op op, OpBuilder &builder)
      : op(op), builder(builder), loc(op.getLoc()), own(op.getQ().size()),
        ranks(op.getEntries() ? 1 : op.getShards() / own), rows(typeOf(op.getQ()[0]).getDimSize(2)),
        columns(typeOf(op.getK()[0]).getDimSize(2)), keys(op.getK()), values(op.getV()) {}

protected:
  using Values = SmallVector<Value>;

  /// What is sent is what is computed, not the same under another shape: both may be kept for backward.
  Values shifted(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) -> Value {
      Value made = value;
      while (auto reshape = made.getDefiningOp<graph::ReshapeOp>())
        made = reshape.getInput();
      Value there = dist::ShiftOp::create(builder, loc, made, op.getAxes());
      return made == value ? there
                           : graph::ReshapeOp::create(builder, loc, value.getType(), there).getResult();
    });
  }
  Value maskOf(const Meeting &meeting) {
    int64_t at = (meeting.row * ranks + meeting.step) * own + meeting.column;
    return op.getMasks().empty() ? Value() : op.getMasks()[op.getEntries() ? meeting.step : at];
  }
  /// All meetings: of a ring, or of entries, where those of one distance are one.
  SmallVector<Meeting> meetings() {
    if (!op.getEntries())
      return meetingsOf(own, ranks);
    SmallVector<Meeting> all;
    for (int64_t distance = 0; distance < int64_t(op.getShards()); ++distance)
      all.push_back({0, 0, distance, false});
    return all;
  }
  /// Where rows and columns of a meeting are, as parts are told.
  auto placeOf(const Meeting &meeting) {
    auto integer = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
    return std::make_tuple(op.getScaleAttr(), op.getCausalAttr(),
                           op.getEntries() ? op.getShardsAttr() : integer(ranks), integer(meeting.step),
                           op.getEntriesAttr(),
                           integer(op.getBegin() + meeting.row * rows - meeting.column * columns),
                           integer(own * rows), integer(own * columns), op.getPairsAttr());
  }
  /// Has `keys` and `values` be those of a meeting. What the next step reads travels while this one is
  /// computed; `onHop` is called where what goes with them has to go on, home in the end.
  void arriveAt(const Meeting &meeting, llvm::function_ref<void()> onHop) {
    if (op.getEntries() || (!meeting.isLast && meeting.step == step))
      return;
    if (meeting.isLast) {
      if (step + 1 == ranks && ranks > 1)
        onHop();
      step = ranks;
      keys = op.getK();
      values = op.getV();
      return;
    }
    step = meeting.step;
    if (step) {
      keys = nextKeys;
      values = nextValues;
      onHop();
    }
    if (step + 1 < ranks) {
      nextKeys = shifted(keys);
      nextValues = shifted(values);
    }
  }
  UnitAttr flag(bool isSet) { return isSet ? builder.getUnitAttr() : UnitAttr(); }

  Op op;
  OpBuilder &builder;
  Location loc;
  int64_t own, ranks, rows, columns;
  int64_t step = -1; ///< of the meetings that keys and values are there for
  Values keys, values, nextKeys, nextValues;
};

class ForwardWriter : PartWriter<dist::AttentionOp> {
public:
  using PartWriter::PartWriter;

  SmallVector<Value> write() {
    Values results(own), lses(own);
    SmallVector<int64_t> left(own, op.getShards());
    for (const Meeting &meeting : meetings()) {
      arriveAt(meeting, [] {});
      Value q = op.getQ()[meeting.row], mask = maskOf(meeting), &result = results[meeting.row],
            &lse = lses[meeting.row];
      bool isPartial = --left[meeting.row] > 0;
      auto type = typeOf(op.getResult()[meeting.row]);
      auto made = std::apply(
          [&](auto... place) {
            return graph::AttentionPartOp::create(
                builder, loc, isPartial ? wide(type) : type, op.getLse()[meeting.row].getType(), q,
                keys[meeting.column], values[meeting.column], mask, result, lse, place..., flag(isPartial));
          },
          placeOf(meeting));
      result = made.getResult();
      lse = made.getLse();
    }
    results.append(lses);
    return results;
  }
};

class BackwardWriter : PartWriter<dist::AttentionGradOp> {
public:
  using PartWriter::PartWriter;

  SmallVector<Value> write() {
    Values qGrads(own), kGrads(own), vGrads(own);
    SmallVector<int64_t> rowsLeft(own, op.getShards()), columnsLeft(own, op.getShards());
    auto goOn = [&] {
      kGrads = shifted(kGrads);
      vGrads = shifted(vGrads);
    };
    for (const Meeting &meeting : meetings()) {
      arriveAt(meeting, goOn);
      int64_t row = meeting.row, column = meeting.column;
      Value mask = maskOf(meeting), &q = qGrads[row], &k = kGrads[column], &v = vGrads[column];
      bool isRowPartial = --rowsLeft[row] > 0, isColumnPartial = --columnsLeft[column] > 0;
      auto typeFor = [](Value like, bool isPartial) { return isPartial ? wide(typeOf(like)) : typeOf(like); };
      auto made = std::apply(
          [&](auto... place) {
            return graph::AttentionPartGradOp::create(
                builder, loc, typeFor(op.getQ()[row], isRowPartial),
                typeFor(op.getK()[column], isColumnPartial), typeFor(op.getV()[column], isColumnPartial),
                op.getQ()[row], keys[column], values[column], mask, op.getResult()[row], op.getLse()[row],
                op.getGrad()[row], q, k, v, place..., flag(isRowPartial), flag(isColumnPartial));
          },
          placeOf(meeting));
      q = made.getQGrad();
      k = made.getKGrad();
      v = made.getVGrad();
    }
    // No shard of this rank had to wait for the end.
    if (own == 1 && ranks > 1)
      goOn();
    qGrads.append(kGrads);
    qGrads.append(vGrads);
    return qGrads;
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
    size_t own = attention.getQ().size();
    if (llvm::any_of(resultGrads.drop_front(own), [](Value grad) { return grad; }))
      return op->emitOpError("has no gradient through its lse");
    if (llvm::is_contained(needed.drop_front(3 * own), true))
      return op->emitOpError("has no gradient of its masks");
    SmallVector<Value> grads;
    for (auto [grad, result] : llvm::zip(resultGrads, attention.getResult()))
      grads.push_back(
          grad ? grad
               : Value(graph::ConstantOp::create(
                     builder, op->getLoc(),
                     cast<ElementsAttr>(DenseElementsAttr::get(
                         typeOf(result), builder.getFloatAttr(typeOf(result).getElementType(), 0))))));
    SmallVector<Type> types(op->getOperandTypes());
    types.truncate(3 * own);
    auto gradient = dist::AttentionGradOp::create(
        builder, op->getLoc(), TypeRange(types).take_front(own), TypeRange(types).slice(own, own),
        TypeRange(types).drop_front(2 * own), attention.getQ(), attention.getK(), attention.getV(),
        attention.getMasks(), attention.getResult(), attention.getLse(), grads, attention.getScaleAttr(),
        attention.getCausalAttr(), attention.getEntriesAttr(), attention.getBeginAttr(),
        attention.getShardsAttr(), attention.getPairsAttr(), attention.getAxesAttr());
    for (size_t i = 0; i < 3 * own; ++i)
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
