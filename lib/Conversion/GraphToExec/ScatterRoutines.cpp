//===- ScatterRoutines.cpp - scatters as routines -------------------------===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;

static LogicalResult verifyIndices(Operation *op, Value indices) {
  Type type = getElementTypeOrSelf(indices.getType());
  if (!type.isInteger(32) && !type.isInteger(64))
    return op->emitOpError("has indices of ") << type << ", expected i32 or i64";
  return success();
}

namespace {
struct ScatterRoutine : PlainRoutine<ScatterRoutine, graph::ScatterOp> {
  LogicalResult verifyRoutine(Operation *op) const {
    auto scatter = cast<graph::ScatterOp>(op);
    Type type = getElementTypeOrSelf(scatter.getType());
    if (!type.isF32() && !type.isInteger(1) && !type.isInteger(32) && !type.isInteger(64))
      return op->emitOpError("scatters ") << type << ", expected f32, i1, i32 or i64";
    return verifyIndices(op, scatter.getIndices());
  }
  int64_t getWorkspaceBytes(Operation *, const RoutineTarget &, ArrayRef<Type>) const { return 0; }
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto scatter = cast<graph::ScatterOp>(op);
    return exec::ScatterOp::create(builder, op->getLoc(), buffers.of(scatter.getData()),
                                   buffers.of(scatter.getIndices()), buffers.of(scatter.getUpdates()),
                                   buffers.of(scatter.getResult()), scatter.getMode());
  }
};

struct GatherGradRoutine : RoutineOpInterface::ExternalModel<GatherGradRoutine, graph::GatherGradOp> {
  Strides getOperandStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Storage getOperandStorage(Operation *, unsigned) const { return Storage::Any; }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Wide; }
  bool canAccumulate(Operation *, unsigned) const { return true; }

  LogicalResult verifyRoutine(Operation *op) const {
    auto scatter = cast<graph::GatherGradOp>(op);
    if (scatter.getAxis() != 0)
      return op->emitOpError("scatters along axis ") << scatter.getAxis() << ", expected axis 0";
    if (Type type = getElementTypeOrSelf(scatter.getType()); !type.isF32())
      return op->emitOpError("scatters ") << type << ", expected f32";
    return verifyIndices(op, scatter.getIndices());
  }

  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type> gradients) const {
    return scatterAddWorkspace(graph::numElements(cast<graph::GatherGradOp>(op).getIndices().getType()),
                               gradients[0] && graph::isNarrowFloat(gradients[0]), /*sums=*/false,
                               target.isDevice);
  }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto scatter = cast<graph::GatherGradOp>(op);
    Location loc = op->getLoc();
    Value result = buffers.of(scatter.getResult());
    auto type = cast<MemRefType>(result.getType());
    RankedTensorType indexType = tensorType(scatter.getIndices());
    int64_t count = indexType.getNumElements(), size = type.getDimSize(0);
    int64_t width = size ? type.getNumElements() / size : 0;
    auto matrix = [&](int64_t rows, Type element) { return MemRefType::get({rows, width}, element); };
    Value rows = viewAs(builder, loc, buffers.of(scatter.getGrad()),
                        matrix(count, tensorType(scatter.getGrad()).getElementType()));
    Value indices = viewAs(builder, loc, buffers.of(scatter.getIndices()),
                           MemRefType::get({count}, indexType.getElementType()));
    result = viewAs(builder, loc, result, matrix(size, type.getElementType()));
    return exec::ScatterAddOp::create(builder, loc, rows, indices, result, buffers.workspace,
                                      buffers.accumulates(scatter.getResult()), /*sums=*/false);
  }
};
} // namespace

void dsopt::registerScatterRoutines(MLIRContext *context) {
  graph::ScatterOp::attachInterface<ScatterRoutine>(*context);
  graph::GatherGradOp::attachInterface<GatherGradRoutine>(*context);
}
