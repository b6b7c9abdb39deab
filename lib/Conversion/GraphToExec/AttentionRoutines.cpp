//===- AttentionRoutines.cpp - attention and its gradients as routines ----===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;

/// Whether an operand is one of the rows of each head, in the model's type: neither the mask nor statistics
/// of rows, nor what is summed behind other columns.
static bool isOfHeads(graph::AttentionOp op, Value value) { return value != op.getMask(); }
static bool isOfHeads(graph::AttentionGradOp op, Value value) {
  return value != op.getMask() && value != op.getLse();
}
static bool isOfHeads(graph::AttentionPartOp op, Value value) {
  return value != op.getMask() && value != op.getPrevious() && value != op.getPreviousLse();
}
static bool isOfHeads(graph::AttentionPartGradOp op, Value value) {
  return value != op.getMask() && value != op.getLse() && value != op.getQPrevious() &&
         value != op.getKPrevious() && value != op.getVPrevious();
}

/// Whether a result is rounded to the model's type.
static bool isRounded(graph::AttentionOp op, unsigned result) { return result == 0; }
static bool isRounded(graph::AttentionGradOp, unsigned) { return true; }
static bool isRounded(graph::AttentionPartOp op, unsigned result) { return result == 0 && !op.getPartial(); }
static bool isRounded(graph::AttentionPartGradOp op, unsigned result) {
  return result == 0 ? !op.getQPartial() : !op.getColumnPartial();
}

template <typename Op> static dsopt_attention sizesOf(Op op) {
  std::optional<int64_t> pairs;
  if constexpr (std::is_same_v<Op, graph::AttentionPartOp> || std::is_same_v<Op, graph::AttentionPartGradOp>)
    pairs = op.getPairs();
  return attentionSizes(cast<RankedTensorType>(op.getQ().getType()),
                        cast<RankedTensorType>(op.getV().getType()), pairs);
}

namespace {
/// What all have in common.
template <typename Model, typename Op>
struct AttentionRoutineBase : RoutineOpInterface::ExternalModel<Model, Op> {
  static constexpr bool isGradient =
      std::is_same_v<Op, graph::AttentionGradOp> || std::is_same_v<Op, graph::AttentionPartGradOp>;

  Strides getOperandStrides(Operation *op, unsigned operand) const {
    return isOfHeads(cast<Op>(op), op->getOperand(operand)) ? Strides::Rows : Strides::Contiguous;
  }
  /// The mask is read as it is; statistics of rows and sums are f32.
  Storage getOperandStorage(Operation *op, unsigned operand) const {
    Value value = op->getOperand(operand);
    if (value == cast<Op>(op).getMask())
      return Storage::Any;
    return isOfHeads(cast<Op>(op), value) ? Storage::Narrow : Storage::Wide;
  }
  Strides getResultStrides(Operation *op, unsigned result) const {
    return isRounded(cast<Op>(op), result) ? Strides::Rows : Strides::Contiguous;
  }
  Storage getResultStorage(Operation *op, unsigned result) const {
    return isRounded(cast<Op>(op), result) ? Storage::Narrow : Storage::Wide;
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
    dsopt_attention sizes = sizesOf(cast<Op>(op));
    sizes.threads = target.threads;
    return attentionWorkspace(sizes, isGradient, target.isDevice);
  }
};

struct AttentionRoutine : AttentionRoutineBase<AttentionRoutine, graph::AttentionOp> {
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto attention = cast<graph::AttentionOp>(op);
    return exec::AttentionOp::create(
        builder, op->getLoc(), buffers.of(attention.getQ()), buffers.of(attention.getK()),
        buffers.of(attention.getV()), buffers.of(attention.getMask()), buffers.of(attention.getResult()),
        buffers.of(attention.getLse()), buffers.workspace, attention.getScaleAttr(),
        attention.getCausalAttr(), attention.getBeginAttr(), attention.getStepAttr(),
        builder.getI64IntegerAttr(target.threads));
  }
};

struct AttentionGradRoutine : AttentionRoutineBase<AttentionGradRoutine, graph::AttentionGradOp> {
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto gradient = cast<graph::AttentionGradOp>(op);
    return exec::AttentionGradOp::create(
        builder, op->getLoc(), buffers.of(gradient.getQ()), buffers.of(gradient.getK()),
        buffers.of(gradient.getV()), buffers.of(gradient.getMask()), buffers.of(gradient.getResult()),
        buffers.of(gradient.getLse()), buffers.of(gradient.getGrad()), buffers.of(gradient.getQGrad()),
        buffers.of(gradient.getKGrad()), buffers.of(gradient.getVGrad()), buffers.workspace,
        gradient.getScaleAttr(), gradient.getCausalAttr(), gradient.getBeginAttr(), gradient.getStepAttr(),
        builder.getI64IntegerAttr(target.threads));
  }
};

struct AttentionPartRoutine : AttentionRoutineBase<AttentionPartRoutine, graph::AttentionPartOp> {
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto part = cast<graph::AttentionPartOp>(op);
    return exec::AttentionPartOp::create(
        builder, op->getLoc(), buffers.of(part.getQ()), buffers.of(part.getK()), buffers.of(part.getV()),
        buffers.of(part.getMask()), buffers.of(part.getPrevious()), buffers.of(part.getPreviousLse()),
        buffers.of(part.getResult()), buffers.of(part.getLse()), buffers.workspace, part.getScaleAttr(),
        part.getCausalAttr(), part.getShardsAttr(), part.getDistanceAttr(), part.getEntriesAttr(),
        part.getGroupAttr(), part.getBeginAttr(), part.getPairsAttr(),
        builder.getI64IntegerAttr(target.threads));
  }
};

struct AttentionPartGradRoutine : AttentionRoutineBase<AttentionPartGradRoutine, graph::AttentionPartGradOp> {
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto part = cast<graph::AttentionPartGradOp>(op);
    return exec::AttentionPartGradOp::create(
        builder, op->getLoc(), buffers.of(part.getQ()), buffers.of(part.getK()), buffers.of(part.getV()),
        buffers.of(part.getMask()), buffers.of(part.getResult()), buffers.of(part.getLse()),
        buffers.of(part.getGrad()), buffers.of(part.getQPrevious()), buffers.of(part.getKPrevious()),
        buffers.of(part.getVPrevious()), buffers.of(part.getQGrad()), buffers.of(part.getKGrad()),
        buffers.of(part.getVGrad()), buffers.workspace, part.getScaleAttr(), part.getCausalAttr(),
        part.getShardsAttr(), part.getDistanceAttr(), part.getEntriesAttr(), part.getGroupAttr(),
        part.getBeginAttr(), part.getPairsAttr(), builder.getI64IntegerAttr(target.threads));
  }
};

struct CachedAttentionRoutine
    : RoutineOpInterface::ExternalModel<CachedAttentionRoutine, graph::CachedAttentionOp> {
  static bool isOfHeads(graph::CachedAttentionOp op, unsigned operand) { return operand < 3; }
  Strides getOperandStrides(Operation *op, unsigned operand) const {
    return isOfHeads(cast<graph::CachedAttentionOp>(op), operand) ? Strides::Rows : Strides::Contiguous;
  }
  /// The mask is read as it is.
  Storage getOperandStorage(Operation *op, unsigned operand) const {
    return isOfHeads(cast<graph::CachedAttentionOp>(op), operand) ? Storage::Narrow : Storage::Any;
  }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Rows; }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Narrow; }
  bool canAccumulate(Operation *, unsigned) const { return false; }

  LogicalResult verifyRoutine(Operation *op) const {
    auto attention = cast<graph::CachedAttentionOp>(op);
    Type type = getElementTypeOrSelf(attention.getQ().getType());
    for (Value value : {attention.getQ(), attention.getK(), attention.getV(), attention.getMask()})
      if (Type other = value ? getElementTypeOrSelf(value.getType()) : Type();
          other && ((!other.isF32() && !graph::isNarrowFloat(other)) ||
                    (value != attention.getMask() && other != type)))
        return op->emitOpError("works on ")
               << type << " and " << other << ", expected one of f32, bf16 and f16";
    return success();
  }
  static dsopt_attention sizesOf(graph::CachedAttentionOp op) {
    return attentionSizes(cast<RankedTensorType>(op.getQ().getType()),
                          cast<RankedTensorType>(op.getV().getType()));
  }
  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type>) const {
    dsopt_attention sizes = sizesOf(cast<graph::CachedAttentionOp>(op));
    sizes.threads = target.threads;
    return attentionWorkspace(sizes, /*isGradient=*/false, target.isDevice);
  }
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &target) const {
    auto attention = cast<graph::CachedAttentionOp>(op);
    return exec::CachedAttentionOp::create(
        builder, op->getLoc(), buffers.of(attention.getQ()), buffers.of(attention.getK()),
        buffers.of(attention.getV()), buffers.of(attention.getSlots()), buffers.of(attention.getPositions()),
        buffers.of(attention.getMask()), buffers.cache(attention.getKeysAttr()),
        buffers.cache(attention.getValuesAttr()), buffers.of(attention.getResult()), buffers.workspace,
        attention.getScaleAttr(), builder.getI64IntegerAttr(target.threads));
  }
};
} // namespace

void dsopt::registerAttentionRoutines(MLIRContext *context) {
  graph::CachedAttentionOp::attachInterface<CachedAttentionRoutine>(*context);
  graph::AttentionOp::attachInterface<AttentionRoutine>(*context);
  graph::AttentionGradOp::attachInterface<AttentionGradRoutine>(*context);
  graph::AttentionPartOp::attachInterface<AttentionPartRoutine>(*context);
  graph::AttentionPartGradOp::attachInterface<AttentionPartGradRoutine>(*context);
}
