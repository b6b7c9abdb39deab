//===- BuildEvaluation.cpp - the forward pass that evaluates --------------===//

#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/Scalars.h"
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

/// Makes what depends on whether the function trains what it is.
void decideTraining(func::FuncOp function, bool trains) {
  auto isTraining = [](graph::SliceOp slice) {
    auto argument = dyn_cast<BlockArgument>(slice.getInput());
    return argument && graph::isContext(argument) && slice.getStarts() == ArrayRef<int64_t>{DSOPT_TRAINING} &&
           slice.getSizes() == ArrayRef<int64_t>{1};
  };
  for (auto slice : function.getOps<graph::SliceOp>())
    if (isTraining(slice))
      for (Operation *cast : slice->getUsers())
        if (isa<graph::CastOp>(cast))
          for (Operation *user : llvm::make_early_inc_range(cast->getUsers()))
            if (auto where = dyn_cast<graph::WhereOp>(user);
                where && where.getCondition() == cast->getResult(0)) {
              Value chosen = trains ? where.getLhs() : where.getRhs();
              if (chosen.getType() == where.getType())
                where.getResult().replaceAllUsesWith(chosen);
            }
}

/// Without what training alone needs: dropout, statistics.
void leaveOutTraining(func::FuncOp function) {
  for (auto dropout : llvm::make_early_inc_range(function.getOps<graph::DropoutOp>())) {
    dropout.getResult().replaceAllUsesWith(dropout.getInput());
    dropout.erase();
  }
  llvm::BitVector erased(function.getNumResults());
  for (const graph::Statistic &statistic : graph::statisticsOf(function))
    erased.set(statistic.result);
  function.front().getTerminator()->eraseOperands(erased);
  (void)function.eraseResults(erased);
}

void removeUnused(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct BuildEvaluation : public dsopt::impl::BuildEvaluationBase<BuildEvaluation> {
  using BuildEvaluationBase::BuildEvaluationBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock()) {
      module.emitError("build-evaluation expects a function @forward with one body");
      return signalPassFailure();
    }
    func::FuncOp evaluate = forward;
    if (getOption(module, "train", 1) != 0) {
      evaluate = forward.clone();
      module.insert(std::next(forward->getIterator()), evaluate);
    }
    SymbolTable symbols(module);
    graph::makeWay(symbols, graph::kEvaluateFunction);
    evaluate.setName(graph::kEvaluateFunction);
    for (auto loss : llvm::make_early_inc_range(evaluate.getOps<graph::LinearNllOp>()))
      keepNoLogits(loss);
    if (evaluate != forward) {
      decideTraining(forward, /*trains=*/true);
      removeUnused(forward);
    }
    decideTraining(evaluate, /*trains=*/false);
    leaveOutTraining(evaluate);
    removeUnused(evaluate);
    auto phase = graph::PhaseAttr::get(&getContext(), Phase::E);
    for (Operation &op : evaluate.front().without_terminator())
      op.setAttr(graph::kPhaseAttr, phase);
  }
};
} // namespace
