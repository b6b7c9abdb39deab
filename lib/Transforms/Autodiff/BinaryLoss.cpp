//===- BinaryLoss.cpp - what a binary cross entropy compares --------------===//

#include "BinaryLoss.h"
#include "Idioms.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dsopt;
using idioms::withoutReshapes;

static int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

static bool isOne(Value value) { return idioms::splatOf(value) == 1.0; }

/// Whether the logarithm of a probability, or of what lacks to 1, is taken.
static bool reachesLog(Value probability) {
  return llvm::any_of(probability.getUsers(), [](Operation *user) {
    return isa<graph::LogOp>(user) ||
           (isa<graph::ReshapeOp, graph::SubOp, graph::NegOp, graph::AddOp>(user) &&
            reachesLog(user->getResult(0)));
  });
}

/// A product's other operand.
static Value timesWhat(Operation *op, llvm::function_ref<bool(Value)> is) {
  if (!isa<graph::MulOp>(op))
    return {};
  return is(op->getOperand(0)) ? op->getOperand(1) : is(op->getOperand(1)) ? op->getOperand(0) : Value();
}

/// The labels y of rows: (1 - y) times the scores, or (1 - y) and y times something each, in whichever
/// spelling.
static llvm::SetVector<Value> labelsOf(ArrayRef<Operation *> ops, const Origins &origins, Value scores) {
  llvm::SetVector<Value> found;
  for (Operation *op : ops) {
    auto difference = dyn_cast<graph::SubOp>(op);
    if (!difference)
      continue;
    Value other = isOne(difference.getLhs()) ? difference.getRhs() : difference.getLhs();
    if ((!isOne(difference.getLhs()) && !isOne(difference.getRhs())) || origins.of(other) != Origin::Input ||
        elementsOf(other) != elementsOf(scores))
      continue;
    Value labels = withoutReshapes(other);
    bool weighsScores = false, weighs = false, isWeight = false;
    for (Operation *user : ops) {
      Value by = timesWhat(user, [&](Value value) { return value == difference.getResult(); });
      weighs |= bool(by);
      weighsScores |= by && withoutReshapes(by) == withoutReshapes(scores);
      isWeight |= bool(timesWhat(user, [&](Value value) { return withoutReshapes(value) == labels; }));
    }
    if (weighsScores || (weighs && isWeight))
      found.insert(labels);
  }
  return found;
}

/// Whether all that rows become until they are added up is made of scores, labels and constants.
static bool countsAllRows(ArrayRef<Operation *> ops, Value scores, Value labels) {
  llvm::DenseSet<Value> made;
  auto isOfRows = [&](Value value) {
    Value root = withoutReshapes(value);
    return root == scores || root == labels || made.contains(value);
  };
  for (Operation *op : ops) {
    // What makes the scores of the model, or the labels of an input, is before them.
    if (llvm::none_of(op->getOperands(), isOfRows))
      continue;
    if (isa<graph::ReduceMeanOp, graph::ReduceSumOp>(op) && elementsOf(op->getResult(0)) == 1)
      continue;
    bool isPlain = isa<graph::AddOp, graph::SubOp, graph::MulOp, graph::DivOp, graph::NegOp, graph::MaxOp,
                       graph::MinOp, graph::LogOp, graph::SigmoidOp, graph::ReshapeOp>(op);
    auto isKnown = [&](Value operand) {
      return isOfRows(operand) || operand.getDefiningOp<graph::ConstantOp>() ||
             operand.getDefiningOp<graph::ReadOp>();
    };
    if (!isPlain || !llvm::all_of(op->getOperands(), isKnown))
      return false;
    made.insert(op->getResult(0));
  }
  return true;
}

SmallVector<BinaryLoss> dsopt::findBinaryLosses(ArrayRef<Operation *> ops, const Origins &origins) {
  SmallVector<BinaryLoss> found;
  for (Operation *op : ops) {
    auto sigmoid = dyn_cast<graph::SigmoidOp>(op);
    if (!sigmoid || !reachesLog(sigmoid->getResult(0)))
      continue;
    Value scores = sigmoid->getOperand(0);
    llvm::SetVector<Value> labels = labelsOf(ops, origins, scores);
    if (labels.size() == 1 && countsAllRows(ops, withoutReshapes(scores), labels.front()))
      found.push_back({scores, labels.front()});
  }
  return found;
}
