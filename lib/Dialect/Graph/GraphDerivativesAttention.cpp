//===- GraphDerivativesAttention.cpp - attention's gradient ---------------===//
//
// One routine that reads what forward kept: the result and the rows' lse.
//
//===----------------------------------------------------------------------===//

#include "GraphDerivatives.h"

using namespace mlir;

namespace dsopt::graph {

static LogicalResult gradient(AttentionOp op, GradientBuilder &g) {
  if (g.grad(1))
    return op.emitOpError("has no gradient through its lse");
  if (op.getMask() && g.needs(3))
    return op.emitOpError("has no gradient of its mask");
  Value q =
      g.make<AttentionGradOp>(op.getQ().getType(), op.getK().getType(), op.getV().getType(), op.getQ(),
                              op.getK(), op.getV(), op.getMask(), op.getResult(), op.getLse(), g.grad(),
                              op.getScaleAttr(), op.getCausalAttr(), op.getBeginAttr(), op.getStepAttr());
  for (unsigned operand : {0, 1, 2})
    if (g.needs(operand))
      g.set(operand, q.getDefiningOp()->getResult(operand));
  return success();
}

void attachAttentionDerivative(MLIRContext *context) { attachDerivative<AttentionOp, gradient>(context); }

} // namespace dsopt::graph
