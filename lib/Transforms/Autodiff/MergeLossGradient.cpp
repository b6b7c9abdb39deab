//===- MergeLossGradient.cpp - the loss and its gradient in one go --------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dsopt {
#define GEN_PASS_DEF_MERGELOSSGRADIENT
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct MergeLossGradient : public dsopt::impl::MergeLossGradientBase<MergeLossGradient> {
  using MergeLossGradientBase::MergeLossGradientBase;

  void runOnOperation() override {
    auto microBatch = getOperation().lookupSymbol<func::FuncOp>(graph::kMicroBatchFunction);
    if (!microBatch || !microBatch.getBody().hasOneBlock())
      return;
    SmallVector<graph::LinearNllGradOp> gradients(microBatch.front().getOps<graph::LinearNllGradOp>());
    for (graph::LinearNllGradOp gradient : gradients)
      for (Operation *user : gradient.getX().getUsers())
        if (auto loss = dyn_cast<graph::LinearNllOp>(user); loss && areOne(loss, gradient)) {
          merge(loss, gradient);
          break;
        }
  }

private:
  /// Whether two values are made alike from the same values: what floats is made anew in F and in B.
  static bool areEqual(Value a, Value b) {
    if (a == b)
      return true;
    Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
    return left && right && (isPure(left) || isa<graph::ReadOp>(left)) &&
           cast<OpResult>(a).getResultNumber() == cast<OpResult>(b).getResultNumber() &&
           OperationEquivalence::isEquivalentTo(
               left, right, [](Value a, Value b) { return success(areEqual(a, b)); }, nullptr,
               OperationEquivalence::IgnoreLocations | OperationEquivalence::IgnoreDiscardableAttrs);
  }

  static bool areOne(graph::LinearNllOp loss, graph::LinearNllGradOp gradient) {
    auto areBoth = [](Value a, Value b) { return a && b ? areEqual(a, b) : !a && !b; };
    return areBoth(loss.getWeight(), gradient.getWeight()) && areBoth(loss.getBias(), gradient.getBias()) &&
           areEqual(loss.getLabels(), gradient.getLabels()) &&
           loss.getTransposeB() == gradient.getTransposeB() &&
           loss.getIgnoreIndex() == gradient.getIgnoreIndex() &&
           loss->getAttr(graph::kBlockAttr) == gradient->getAttr(graph::kBlockAttr);
  }

  /// Copies of what a value is made from, in front of the loss; null where the loss itself or an effect is
  /// among it.
  static Value copyBefore(Value value, Operation *loss, OpBuilder &builder, IRMapping &copies) {
    if (Value known = copies.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op ||
        (op->isBeforeInBlock(loss) && op->getAttr(graph::kPhaseAttr) == loss->getAttr(graph::kPhaseAttr)))
      return value;
    if (op == loss || !isPure(op))
      return {};
    for (Value operand : op->getOperands()) {
      Value copy = copyBefore(operand, loss, builder, copies);
      if (!copy)
        return {};
      copies.map(operand, copy);
    }
    Operation *clone = builder.clone(*op, copies);
    clone->setAttr(graph::kBlockAttr, loss->getAttr(graph::kBlockAttr));
    clone->setAttr(graph::kPhaseAttr, loss->getAttr(graph::kPhaseAttr));
    return copies.lookup(value);
  }

  static void merge(graph::LinearNllOp loss, graph::LinearNllGradOp gradient) {
    OpBuilder builder(loss);
    IRMapping copies;
    Value seed = copyBefore(gradient.getGrad(), loss, builder, copies);
    if (!seed)
      return;
    auto typeOf = [](Value value) { return value ? value.getType() : Type(); };
    auto merged = graph::LinearNllGradOp::create(
        builder, loss.getLoc(), loss.getLoss().getType(), typeOf(gradient.getXGrad()),
        typeOf(gradient.getWeightGrad()), typeOf(gradient.getBiasGrad()), loss.getX(), loss.getWeight(),
        loss.getBias(), loss.getLabels(), seed, loss.getIgnoreIndexAttr(), loss.getTransposeBAttr());
    for (StringRef name : {graph::kBlockAttr, graph::kPhaseAttr})
      merged->setAttr(name, loss->getAttr(name));
    loss.getLoss().replaceAllUsesWith(merged.getLoss());
    if (gradient.getXGrad())
      gradient.getXGrad().replaceAllUsesWith(merged.getXGrad());
    // A sum that goes into its accumulator as it is goes there at once, not through a value.
    for (auto [from, to] : {std::pair<Value, Value>(gradient.getWeightGrad(), merged.getWeightGrad()),
                            {gradient.getBiasGrad(), merged.getBiasGrad()}}) {
      if (!from)
        continue;
      auto accumulate =
          from.hasOneUse() ? dyn_cast<graph::AccumulateOp>(*from.user_begin()) : graph::AccumulateOp();
      if (accumulate)
        accumulate->setAttr(graph::kPhaseAttr, loss->getAttr(graph::kPhaseAttr));
      from.replaceAllUsesWith(to);
    }
    Block *body = loss->getBlock();
    loss.erase();
    gradient.erase();
    // What led to the gradient has no use any more.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
      if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty() &&
          (isMemoryEffectFree(&op) || isa<graph::ReadOp>(op)))
        op.erase();
  }
};
} // namespace
