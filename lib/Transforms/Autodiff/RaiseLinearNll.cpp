//===- RaiseLinearNll.cpp - logits that are never a value -----------------===//

#include "Origins.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_RAISELINEARNLL
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct RaiseLinearNll : public dsopt::impl::RaiseLinearNllBase<RaiseLinearNll> {
  using RaiseLinearNllBase::RaiseLinearNllBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(graph::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock())
      return;
    Origins origins(forward);
    for (auto nll : llvm::make_early_inc_range(forward.front().getOps<graph::NllOp>()))
      raise(nll, origins);
  }

private:
  /// Whether the loss is linear in a value, with factors that are made from inputs alone: its
  /// gradient is then known before any of the loss is.
  static bool isLinear(Value value, const Origins &origins) {
    return llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *op = use.getOwner();
      if (isa<func::ReturnOp>(op))
        return true;
      bool passes = isa<graph::ReduceSumOp, graph::ReduceMeanOp, graph::ReshapeOp, graph::NegOp, graph::AddOp,
                        graph::SubOp>(op);
      auto isFixed = [&](unsigned operand) { return origins.of(op->getOperand(operand)) == Origin::Input; };
      if (isa<graph::MulOp>(op))
        passes = isFixed(1 - use.getOperandNumber());
      if (isa<graph::DivOp>(op))
        passes = use.getOperandNumber() == 0 && isFixed(1);
      return passes && isLinear(op->getResult(0), origins);
    });
  }

  /// The only use's view: through reshapes that other values do not share.
  static Value withoutReshapes(Value value) {
    while (auto reshape = value.getDefiningOp<graph::ReshapeOp>()) {
      if (!value.hasOneUse())
        break;
      value = reshape.getInput();
    }
    return value;
  }

  void raise(graph::NllOp nll, const Origins &origins) {
    if (!nll.getLse().use_empty() || !isLinear(nll.getLoss(), origins))
      return;
    Value logits = withoutReshapes(nll.getLogits()), bias;
    if (auto add = logits.getDefiningOp<graph::AddOp>(); add && logits.hasOneUse())
      for (unsigned operand : {0, 1})
        if (Value value = add->getOperand(operand);
            value.getDefiningOp<graph::ReadOp>() && cast<RankedTensorType>(value.getType()).getRank() == 1) {
          bias = value;
          logits = withoutReshapes(add->getOperand(1 - operand));
          break;
        }
    auto product = logits.getDefiningOp<graph::MatMulOp>();
    if (!product || !logits.hasOneUse() || product.getTransposeA() ||
        !product.getResult().getType().getElementType().isF32())
      return;
    auto x = cast<RankedTensorType>(product.getLhs().getType());
    int64_t classes = nll.getLogits().getType().getDimSize(1);
    // The weight has to be a matrix, and what is in between no more than another shape of the rows.
    if (x.getRank() != 2 || !product.getRhs().getDefiningOp<graph::ReadOp>() ||
        product.getResult().getType().getDimSize(1) != classes ||
        (bias && graph::numElements(bias.getType()) != classes))
      return;
    OpBuilder builder(nll);
    auto raised = graph::LinearNllOp::create(builder, nll.getLoc(), nll.getLoss().getType(), product.getLhs(),
                                             product.getRhs(), bias, nll.getLabels(),
                                             nll.getIgnoreIndexAttr(), product.getTransposeBAttr());
    nll.getLoss().replaceAllUsesWith(raised.getLoss());
    nll.erase();
  }
};
} // namespace
