//===- AttentionRoutines.cpp - attention and its gradients as routines ----===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;

/// Whether an operand is one of the rows of each head: neither the mask nor statistics of rows.
static bool isOfHeads(graph::AttentionOp op, Value value) { return value != op.getMask(); }
static bool isOfHeads(graph::AttentionGradOp op, Value value) {
  return value != op.getMask() && value != op.getLse();
}

namespace {
/// What both have in common; `results` are of heads but the statistics of rows.
template <typename Model, typename Op>
struct AttentionRoutineBase : RoutineOpInterface::ExternalModel<Model, Op> {
  Strides getOperandStrides(Operation *op, unsigned operand) const {
    return isOfHeads(cast<Op>(op), op->getOperand(operand)) ? Strides::Rows : Strides::Contiguous;
  }
  /// The mask is read as it is; statistics of rows are f32.
  Storage getOperandStorage(Operation *op, unsigned operand) const {
    Value value = op->getOperand(operand);
    if (value == cast<Op>(op).getMask())
      return Storage::Any;
    return isOfHeads(cast<Op>(op), value) ? Storage::Narrow : Storage::Wide;
  }
  bool canAccumulate(Operation *, unsigned) const { return false; }

  LogicalResult verifyRoutine(Operation *op) const {
    auto attention = cast<Op>(op);
    for (Value value : {attention.getQ(), attention.getMask()})
      if (Type type = value ? getElementTypeOrSelf(value.getType()) : Type();
          type && !type.isF32() && !graph::isNarrowFloat(type))
        return op->emitOpError("works on ") << type << ", expected f32, bf16 or f16";
    Type type = getElementTypeOrSelf(attention.getQ().getType());
    for (Value value : {attention.getK(), attention.getV()})
      if (Type other = getElementTypeOrSelf(value.getType()); other != type)
        return op->emitOpError("works on ") << type << " and " << other << ", expected one type";
    return success();
  }

  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type>) const {
    auto attention = cast<Op>(op);
    dsopt_attention sizes =
        attentionSizes(tensorType(attention.getQ()), tensorType(attention.getV()), attention.getWholeHeads());
    sizes.threads = target.threads;
    return attentionWorkspace(sizes, isa<graph::AttentionGradOp>(op), target.isDevice);
  }
};

struct AttentionRoutine : AttentionRoutineBase<AttentionRoutine, graph::AttentionOp> {
  Strides getResultStrides(Operation *op, unsigned result) const {
    return op->getResult(result) == cast<graph::AttentionOp>(op).getResult() ? Strides::Rows
                                                                             : Strides::Contiguous;
  }
  Storage getResultStorage(Operation *op, unsigned result) const {
    return op->getResult(result) == cast<graph::AttentionOp>(op).getResult() ? Storage::Narrow
                                                                             : Storage::Wide;
  }
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto attention = cast<graph::AttentionOp>(op);
    return exec::AttentionOp::create(
        builder, op->getLoc(), buffers.of(attention.getQ()), buffers.of(attention.getK()),
        buffers.of(attention.getV()), buffers.of(attention.getMask()), buffers.of(attention.getResult()),
        buffers.of(attention.getLse()), buffers.workspace, attention.getScaleAttr(),
        attention.getCausalAttr(), attention.getBeginAttr(), attention.getStepAttr(),
        attention.getWholeHeadsAttr(), builder.getI64IntegerAttr(target.threads));
  }
};

struct AttentionGradRoutine : AttentionRoutineBase<AttentionGradRoutine, graph::AttentionGradOp> {
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Rows; }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Narrow; }
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto gradient = cast<graph::AttentionGradOp>(op);
    return exec::AttentionGradOp::create(
        builder, op->getLoc(), buffers.of(gradient.getQ()), buffers.of(gradient.getK()),
        buffers.of(gradient.getV()), buffers.of(gradient.getMask()), buffers.of(gradient.getResult()),
        buffers.of(gradient.getLse()), buffers.of(gradient.getGrad()), buffers.of(gradient.getQGrad()),
        buffers.of(gradient.getKGrad()), buffers.of(gradient.getVGrad()), buffers.workspace,
        gradient.getScaleAttr(), gradient.getCausalAttr(), gradient.getBeginAttr(), gradient.getStepAttr(),
        gradient.getWholeHeadsAttr(), builder.getI64IntegerAttr(target.threads));
  }
};
} // namespace

void dsopt::registerAttentionRoutines(MLIRContext *context) {
  graph::AttentionOp::attachInterface<AttentionRoutine>(*context);
  graph::AttentionGradOp::attachInterface<AttentionGradRoutine>(*context);
}
