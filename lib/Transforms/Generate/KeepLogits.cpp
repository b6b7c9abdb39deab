//===- KeepLogits.cpp - what the loss compares with labels ----------------===//

#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Transforms/Generate/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_KEEPLOGITS
#include "dsopt/Transforms/Generate/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// What a loss's rows were before some were left out, or all merged.
static Value beforeViews(Value rows) {
  while (Operation *op = rows.getDefiningOp()) {
    if (!isa<graph::ReshapeOp, graph::SliceOp>(op) ||
        shapeOf(op->getOperand(0)).back() != shapeOf(rows).back())
      break;
    rows = op->getOperand(0);
  }
  return rows;
}

/// The logits of the loss of the most classes, null where there is none.
static Value findLogits(func::FuncOp forward) {
  Value logits;
  for (auto nll : forward.getOps<graph::NllOp>())
    if (!logits || shapeOf(nll.getLogits()).back() > shapeOf(logits).back())
      logits = beforeViews(nll.getLogits());
  return logits;
}

/// Sequences of the batch that the function is given.
static int64_t sequencesOf(func::FuncOp forward) {
  for (BlockArgument argument : forward.getArguments())
    if (ArrayRef<int64_t> shape = shapeOf(argument); shape.size() == 2)
      return shape[0];
  return 1;
}

namespace {
struct KeepLogits : public dsopt::impl::KeepLogitsBase<KeepLogits> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(graph::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock()) {
      getOperation().emitError("keep-logits expects a function @forward with one body");
      return signalPassFailure();
    }
    Operation *end = forward.front().getTerminator();
    Value logits = graph::predicts(forward) ? end->getOperand(0) : findLogits(forward);
    if (!logits) {
      forward.emitError("compares no classes with labels by a cross-entropy: there are no logits that tokens "
                        "would be chosen by");
      return signalPassFailure();
    }
    OpBuilder builder(end);
    int64_t sequences = sequencesOf(forward);
    ArrayRef<int64_t> shape = shapeOf(logits);
    if (shape.size() == 2 && shape[0] % sequences == 0)
      logits = graph::ReshapeOp::create(builder, logits.getLoc(),
                                        RankedTensorType::get({sequences, shape[0] / sequences, shape[1]},
                                                              getElementTypeOrSelf(logits.getType())),
                                        logits);
    shape = shapeOf(logits);
    if (shape.size() != 3 || shape[0] != sequences) {
      forward.emitError("has logits of type ")
          << logits.getType() << ", expected [" << sequences << ", positions, classes]";
      return signalPassFailure();
    }
    end->setOperands(logits);
    removeUnused(forward);
    forward.setType(FunctionType::get(&getContext(), forward.front().getArgumentTypes(), logits.getType()));
    DictionaryAttr attributes = builder.getDictionaryAttr(
        {builder.getNamedAttr(graph::kPredictionAttr, builder.getStringAttr("logits")),
         builder.getNamedAttr(graph::kShapeAttr, builder.getDenseI64ArrayAttr(shape))});
    forward.setAllResultAttrs(ArrayRef(attributes));
  }

private:
  static void removeUnused(func::FuncOp forward) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward.front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    llvm::BitVector unused(forward.getNumArguments());
    for (BlockArgument argument : forward.getArguments())
      if (argument.use_empty())
        unused.set(argument.getArgNumber());
    (void)forward.eraseArguments(unused);
  }
};
} // namespace
