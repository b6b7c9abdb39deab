//===- GraphProbabilities.cpp - scores behind probabilities ---------------===//

#include "dsopt/Dialect/Graph/Probabilities.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

namespace {
/// What one operation, or a few, make of scores.
struct Match {
  Probabilities::Kind kind;
  Value scores;
  int64_t axis = 0; ///< of a softmax
};
} // namespace

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static bool isOne(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  return elements && elements.isSplat() && elements.getSplatValue<APFloat>().isExactlyValue(1);
}

/// What a value shows by reshapes and broadcasts.
static Value withoutShapes(Value value) {
  while (isa_and_nonnull<ReshapeOp, ExpandOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// The axis of a sum of exponentials that a value is; `u` becomes their argument.
static std::optional<int64_t> sumOfExp(Value value, Value &u) {
  auto sum = withoutShapes(value).getDefiningOp<ReduceSumOp>();
  auto exponential = sum ? sum.getInput().getDefiningOp<ExpOp>() : ExpOp();
  if (!exponential || sum.getAxes().size() != 1)
    return std::nullopt;
  u = exponential.getInput();
  return sum.getAxes().front();
}

/// Whether a value is one number for all of `like` along the axis, as what is reduced over it.
static bool isAlong(Value value, int64_t axis, Value like) {
  if (auto expand = value.getDefiningOp<ExpandOp>(); expand && shapeOf(value) == shapeOf(like))
    value = expand.getInput();
  SmallVector<int64_t> kept(shapeOf(like));
  return std::exchange(kept[axis], 1) > 1 && shapeOf(value) == ArrayRef(kept);
}

/// Without what is taken from all scores along the axis (the largest of them), which changes no softmax.
static Value withoutShift(Value scores, int64_t axis) {
  auto shifted = scores.getDefiningOp<SubOp>();
  return shifted && shapeOf(shifted.getLhs()) == shapeOf(scores) && isAlong(shifted.getRhs(), axis, scores)
             ? shifted.getLhs()
             : scores;
}

/// e^u / sum(e^u)
static std::optional<Match> softmaxOf(Value numerator, Value denominator) {
  Value u;
  std::optional<int64_t> axis = sumOfExp(denominator, u);
  auto exponential = numerator.getDefiningOp<ExpOp>();
  if (!axis || !exponential || exponential.getInput() != u || !isAlong(denominator, *axis, numerator))
    return std::nullopt;
  return Match{Probabilities::Softmax, withoutShift(u, *axis), *axis};
}

/// x - log(sum(e^x)), or x - (log(sum(e^(x - shift))) + shift)
static std::optional<Match> logSoftmaxOf(SubOp op) {
  Value x = op.getLhs(), total = withoutShapes(op.getRhs()), shift, u;
  auto sum = total.getDefiningOp<AddOp>();
  for (unsigned i = 0; sum && i < 2; ++i)
    if (withoutShapes(sum->getOperand(i)).getDefiningOp<LogOp>()) {
      shift = sum->getOperand(1 - i);
      total = withoutShapes(sum->getOperand(i));
      break;
    }
  auto log = total.getDefiningOp<LogOp>();
  std::optional<int64_t> axis = log ? sumOfExp(log.getInput(), u) : std::nullopt;
  if (!axis || shapeOf(x) != shapeOf(u) || !isAlong(op.getRhs(), *axis, x))
    return std::nullopt;
  if (!shift && x == u)
    return Match{Probabilities::LogSoftmax, withoutShift(x, *axis), *axis};
  auto shifted = u.getDefiningOp<SubOp>();
  if (!shift || !shifted || shifted.getLhs() != x || shifted.getRhs() != shift || !isAlong(shift, *axis, x))
    return std::nullopt;
  return Match{Probabilities::LogSoftmax, x, *axis};
}

Value dsopt::graph::logitOf(Value value) {
  if (auto sigmoid = value.getDefiningOp<SigmoidOp>())
    return sigmoid.getInput();
  Value denominator;
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    denominator = reciprocal.getInput();
  else if (auto div = value.getDefiningOp<DivOp>(); div && isOne(div.getLhs()))
    denominator = div.getRhs();
  auto sum = denominator ? denominator.getDefiningOp<AddOp>() : AddOp();
  for (unsigned i = 0; sum && i < 2; ++i) {
    auto exponential = sum->getOperand(i).getDefiningOp<ExpOp>();
    auto negated = exponential ? exponential.getInput().getDefiningOp<NegOp>() : NegOp();
    if (negated && isOne(sum->getOperand(1 - i)))
      return negated.getInput();
  }
  return {};
}

static std::optional<Match> match(Operation *op) {
  if (Value scores = op->getNumResults() == 1 ? logitOf(op->getResult(0)) : Value())
    return Match{Probabilities::Sigmoid, scores};
  return TypeSwitch<Operation *, std::optional<Match>>(op)
      .Case<SoftmaxOp>([](SoftmaxOp op) {
        return Match{Probabilities::Softmax, op.getInput(), static_cast<int64_t>(op.getAxis())};
      })
      .Case<SubOp>([](SubOp op) { return logSoftmaxOf(op); })
      .Case<DivOp>([](DivOp op) { return softmaxOf(op.getLhs(), op.getRhs()); })
      .Case<MulOp>([](MulOp op) -> std::optional<Match> {
        for (unsigned i = 0; i < 2; ++i)
          if (auto reciprocal = op->getOperand(i).getDefiningOp<ReciprocalOp>())
            if (auto found = softmaxOf(op->getOperand(1 - i), reciprocal.getInput()))
              return found;
        return std::nullopt;
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// The result's axis that is the first operand's; none where that is cut, or mixed with others.
static std::optional<int64_t> axisBehind(Operation *op, int64_t axis) {
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  auto ifWhole = [&](int64_t found) {
    return from[axis] > 1 && found >= 0 && found < (int64_t)to.size() && to[found] == from[axis]
               ? std::optional(found)
               : std::nullopt;
  };
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return llvm::find(transpose.getPerm(), axis) - transpose.getPerm().begin();
  if (auto slice = dyn_cast<SliceOp>(op))
    return slice.getSteps()[axis] == 1 ? ifWhole(axis) : std::nullopt;
  if (auto gather = dyn_cast<GatherOp>(op)) {
    int64_t along = gather.getAxis(), added = shapeOf(gather.getIndices()).size();
    return along == axis ? std::nullopt : ifWhole(axis < along ? axis : axis + added - 1);
  }
  if (isa<ExpandOp>(op))
    return ifWhole(axis + to.size() - from.size());
  if (!isa<ReshapeOp>(op))
    return axis;
  auto behind = [](ArrayRef<int64_t> shape, int64_t axis) {
    int64_t count = 1;
    for (int64_t size : shape.drop_front(axis + 1))
      count *= size;
    return count;
  };
  for (int64_t i = 0, rank = to.size(); i < rank; ++i)
    if (to[i] == from[axis] && behind(to, i) == behind(from, axis))
      return ifWhole(i);
  return std::nullopt;
}

/// What shows elements as they are, and may show other ones instead.
static bool isView(Operation *op) {
  return isa<CastOp, RoundToOp, ReshapeOp, TransposeOp, SliceOp, ExpandOp, GatherOp>(op);
}

/// What computes each element of one, or of a few, of its operands.
static bool isArithmetic(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, NegOp, AbsOp, ExpOp, LogOp, SqrtOp, ReciprocalOp, PowOp, MinOp,
             MaxOp, WhereOp, ReluOp, FloorOp, CeilOp, RoundOp, ConcatOp, PadOp, ReduceSumOp, ReduceMeanOp,
             ReduceMaxOp, ReduceMinOp, ReduceProdOp>(op);
}

/// Whether training leaves a value as it is, whatever the data.
static bool isConstant(Operation *op) {
  auto read = dyn_cast<ReadOp>(op);
  auto parameter =
      read ? SymbolTable::lookupNearestSymbolFrom<ParameterOp>(op, read.getStateAttr()) : nullptr;
  return isa<ConstantOp>(op) || (parameter && parameter.getFrozen());
}

/// Follows views and logarithms; `between` is set where the probabilities are not these.
static std::optional<Probabilities> follow(Value value) {
  Probabilities found;
  int logs = 0;
  while (Operation *op = value.getDefiningOp()) {
    if (std::optional<Match> made = match(op)) {
      found.kind = made->kind;
      found.scores = made->scores;
      found.op = op;
      std::reverse(found.views.begin(), found.views.end());
      if (logs != 0) {
        bool isSoftmax = made->kind == Probabilities::Softmax;
        if (made->kind == Probabilities::Sigmoid || logs != (isSoftmax ? 1 : -1))
          return std::nullopt;
        found.kind = isSoftmax ? Probabilities::LogSoftmax : Probabilities::Softmax;
      }
      if (found.kind == Probabilities::Sigmoid)
        return found;
      found.axis = made->axis;
      for (Operation *view : found.views)
        if (found.axis)
          found.axis = axisBehind(view, *found.axis);
      return found;
    }
    if (isView(op))
      found.views.push_back(op);
    else if (isa<LogOp>(op))
      ++logs;
    else if (isa<ExpOp>(op))
      --logs;
    else
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

/// The first probabilities that a value is computed of, if it is computed of these and of constants alone.
static std::optional<Probabilities> mixed(Value value) {
  std::optional<Probabilities> found;
  llvm::SetVector<Operation *> open;
  auto add = [&](Value from) {
    if (Operation *op = from.getDefiningOp())
      return open.insert(op), true;
    return false;
  };
  if (!add(value))
    return std::nullopt;
  for (size_t i = 0; i < open.size(); ++i) {
    Operation *op = open[i];
    std::optional<Match> made = match(op);
    if (made && !found)
      found = Probabilities{made->kind, made->scores, op, {}, {}, {}};
    if (made || isConstant(op))
      continue;
    if (!isView(op) && !isArithmetic(op))
      return std::nullopt;
    // What a condition or an index chooses by is no part of what is chosen.
    OperandRange read = isView(op) ? op->getOperands().take_front() : op->getOperands();
    for (Value operand : read.drop_front(isa<WhereOp>(op)))
      if (!add(operand))
        return std::nullopt;
  }
  while (found && isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  if (found)
    found->between = value.getDefiningOp();
  return found;
}

StringRef Probabilities::what() const {
  return kind == Softmax ? "a softmax" : kind == LogSoftmax ? "a log-softmax" : "a sigmoid";
}

std::optional<Probabilities> graph::probabilitiesOf(Value value) {
  std::optional<Probabilities> found = follow(value);
  return found ? found : mixed(value);
}

Value graph::scoresOf(const Probabilities &probabilities, OpBuilder &builder) {
  Value scores = probabilities.scores;
  for (Operation *view : probabilities.views) {
    IRMapping operands;
    operands.map(view->getOperand(0), scores);
    scores = builder.clone(*view, operands)->getResult(0);
  }
  return scores;
}
