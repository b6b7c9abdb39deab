//===- BuildEvaluation.cpp - the forward pass that evaluates --------------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_BUILDEVALUATION
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// The loss of a linear layer in the form that keeps no logits, without a gradient.
void keepNoLogits(graph::LinearNllOp loss) {
  OpBuilder builder(loss);
  auto losses = cast<RankedTensorType>(loss.getLoss().getType());
  auto none = graph::ConstantOp::create(
      builder, loss.getLoc(), losses,
      cast<ElementsAttr>(DenseElementsAttr::get(losses, builder.getZeroAttr(losses.getElementType()))));
  auto computed = graph::LinearNllGradOp::create(
      builder, loss.getLoc(), losses, Type(), Type(), Type(), loss.getX(), loss.getWeight(), loss.getBias(),
      loss.getLabels(), none, loss.getIgnoreIndexAttr(), loss.getTransposeBAttr());
  for (Operation *op : {none.getOperation(), computed.getOperation()})
    op->setAttr(graph::kBlockAttr, loss->getAttr(graph::kBlockAttr));
  loss.getLoss().replaceAllUsesWith(computed.getLoss());
  loss.erase();
}

struct BuildEvaluation : public dsopt::impl::BuildEvaluationBase<BuildEvaluation> {
  using BuildEvaluationBase::BuildEvaluationBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock()) {
      module.emitError("build-evaluation expects a function @forward with one body");
      return signalPassFailure();
    }
    func::FuncOp evaluate = forward;
    if (getOption(module, "train", 1) != 0) {
      evaluate = forward.clone();
      module.insert(std::next(forward->getIterator()), evaluate);
    }
    evaluate.setName(kEvaluateFunction);
    for (auto loss : llvm::make_early_inc_range(evaluate.getOps<graph::LinearNllOp>()))
      keepNoLogits(loss);
    for (auto dropout : llvm::make_early_inc_range(evaluate.getOps<graph::DropoutOp>())) {
      dropout.getResult().replaceAllUsesWith(dropout.getInput());
      dropout.erase();
    }
    auto phase = StringAttr::get(&getContext(), "E");
    for (Operation &op : evaluate.front().without_terminator())
      op.setAttr(graph::kPhaseAttr, phase);
  }
};
} // namespace
