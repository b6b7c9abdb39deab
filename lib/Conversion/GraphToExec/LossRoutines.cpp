//===- LossRoutines.cpp - losses as routines ------------------------------===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;

namespace {
struct LinearNllGradRoutine
    : RoutineOpInterface::ExternalModel<LinearNllGradRoutine, graph::LinearNllGradOp> {
  Strides getOperandStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Storage getOperandStorage(Operation *op, unsigned operand) const {
    return op->getOperand(operand) == cast<graph::LinearNllGradOp>(op).getGrad() ? Storage::Wide
                                                                                 : Storage::Narrow;
  }
  Storage getResultStorage(Operation *op, unsigned result) const {
    return op->getResult(result) == cast<graph::LinearNllGradOp>(op).getXGrad() ? Storage::Narrow
                                                                                : Storage::Wide;
  }
  bool canAccumulate(Operation *op, unsigned result) const {
    auto loss = cast<graph::LinearNllGradOp>(op);
    Value value = op->getResult(result);
    return value == loss.getWeightGrad() || value == loss.getBiasGrad();
  }

  LogicalResult verifyRoutine(Operation *op) const {
    auto loss = cast<graph::LinearNllGradOp>(op);
    for (Value value : {loss.getX(), loss.getWeight()})
      if (Type type = getElementTypeOrSelf(value.getType()); !type.isF32() && !graph::isNarrowFloat(type))
        return op->emitOpError("works on ") << type << ", expected f32, bf16 or f16";
    return success();
  }

  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type> gradients) const {
    auto loss = cast<graph::LinearNllGradOp>(op);
    auto typeOf = [](Type type) { return type.isBF16() ? DSOPT_BF16 : type.isF16() ? DSOPT_F16 : DSOPT_F32; };
    dsopt_linear_nll sizes{};
    sizes.rows = tensorType(loss.getX()).getDimSize(0);
    sizes.depth = tensorType(loss.getX()).getDimSize(1);
    sizes.classes = tensorType(loss.getWeight()).getDimSize(loss.getTransposeB() ? 0 : 1);
    sizes.transpose_b = loss.getTransposeB();
    sizes.type = typeOf(tensorType(loss.getX()).getElementType());
    if (auto weight = cast_or_null<OpResult>(loss.getWeightGrad())) {
      Type gradient = gradients[weight.getResultNumber()];
      sizes.type_weight_grad = typeOf(gradient ? gradient : tensorType(weight).getElementType());
    }
    return linearNllWorkspace(sizes, target.isDevice);
  }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto loss = cast<graph::LinearNllGradOp>(op);
    auto flag = [&](Value value) {
      return value && buffers.accumulates(value) ? builder.getUnitAttr() : UnitAttr();
    };
    return exec::LinearNllOp::create(
        builder, op->getLoc(), buffers.of(loss.getX()), buffers.of(loss.getWeight()),
        buffers.of(loss.getBias()), buffers.of(loss.getLabels()), buffers.of(loss.getGrad()),
        buffers.of(loss.getLoss()), buffers.of(loss.getXGrad()), buffers.of(loss.getWeightGrad()),
        buffers.of(loss.getBiasGrad()), buffers.workspace, loss.getIgnoreIndexAttr(),
        loss.getTransposeBAttr(), flag(loss.getWeightGrad()), flag(loss.getBiasGrad()),
        /*kernels=*/ArrayAttr());
  }
};

template <typename Model, typename Op> struct CtcRoutineBase : PlainRoutine<Model, Op> {
  LogicalResult verifyRoutine(Operation *op) const {
    if (Type type = getElementTypeOrSelf(cast<Op>(op).getLogs().getType()); !type.isF32())
      return op->emitOpError("works on ") << type << ", expected f32";
    return success();
  }
  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type>) const {
    auto ctc = cast<Op>(op);
    RankedTensorType logs = tensorType(ctc.getLogs());
    dsopt_ctc sizes{};
    sizes.frames = logs.getDimSize(0);
    sizes.batch = logs.getDimSize(1);
    sizes.targets = tensorType(ctc.getTargets()).getShape().back();
    return ctcWorkspace(sizes, isa<graph::CtcGradOp>(op), target.isDevice);
  }
};

struct CtcRoutine : CtcRoutineBase<CtcRoutine, graph::CtcOp> {
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto ctc = cast<graph::CtcOp>(op);
    return exec::CtcOp::create(builder, op->getLoc(), buffers.of(ctc.getLogs()), buffers.of(ctc.getTargets()),
                               buffers.of(ctc.getInputLengths()), buffers.of(ctc.getTargetLengths()),
                               buffers.workspace, buffers.of(ctc.getLoss()), ctc.getBlankAttr(),
                               ctc.getZeroInfinityAttr());
  }
};

struct CtcGradRoutine : CtcRoutineBase<CtcGradRoutine, graph::CtcGradOp> {
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto ctc = cast<graph::CtcGradOp>(op);
    return exec::CtcGradOp::create(
        builder, op->getLoc(), buffers.of(ctc.getLogs()), buffers.of(ctc.getTargets()),
        buffers.of(ctc.getInputLengths()), buffers.of(ctc.getTargetLengths()), buffers.of(ctc.getGrad()),
        buffers.workspace, buffers.of(ctc.getLogsGrad()), ctc.getBlankAttr(), ctc.getZeroInfinityAttr());
  }
};
} // namespace

void dsopt::registerLossRoutines(MLIRContext *context) {
  graph::LinearNllGradOp::attachInterface<LinearNllGradRoutine>(*context);
  graph::CtcOp::attachInterface<CtcRoutine>(*context);
  graph::CtcGradOp::attachInterface<CtcGradRoutine>(*context);
}
