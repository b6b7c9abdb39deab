//===- ProductRoutines.cpp - matrix products as routines; registration ----===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/Routines.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;

namespace {
struct MatMulRoutine : RoutineOpInterface::ExternalModel<MatMulRoutine, graph::MatMulOp> {
  Strides getOperandStrides(Operation *, unsigned) const { return Strides::Matrix; }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Matrix; }
  Storage getOperandStorage(Operation *, unsigned) const { return Storage::Narrow; }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Any; }
  bool canAccumulate(Operation *, unsigned) const { return true; }

  LogicalResult verifyRoutine(Operation *op) const {
    Type type = getElementTypeOrSelf(op->getResult(0).getType());
    if (!type.isF32() && !graph::isNarrowFloat(type) && !type.isF64())
      return op->emitOpError("is a product of ") << type << ", expected f32, bf16, f16 or f64";
    return success();
  }

  int64_t getWorkspaceBytes(Operation *, const RoutineTarget &, ArrayRef<Type>) const { return 0; }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto matmul = cast<graph::MatMulOp>(op);
    Value result = buffers.of(matmul.getResult()), lhs = buffers.of(matmul.getLhs()),
          rhs = buffers.of(matmul.getRhs());
    return exec::GemmOp::create(builder, op->getLoc(), lhs, rhs, result, matmul.getTransposeA(),
                                matmul.getTransposeB(), buffers.accumulates(matmul.getResult()),
                                /*addend=*/Value(), /*whole=*/DenseI64ArrayAttr());
  }
};

struct MatMulPartRoutine : RoutineOpInterface::ExternalModel<MatMulPartRoutine, graph::MatMulPartOp> {
  Strides getOperandStrides(Operation *op, unsigned operand) const {
    return operand < 2 ? Strides::Matrix : Strides::Contiguous;
  }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Storage getOperandStorage(Operation *, unsigned operand) const {
    return operand < 2 ? Storage::Narrow : Storage::Wide;
  }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Any; }
  bool canAccumulate(Operation *op, unsigned) const { return !cast<graph::MatMulPartOp>(op).getAddend(); }

  LogicalResult verifyRoutine(Operation *op) const {
    Type type = getElementTypeOrSelf(op->getResult(0).getType());
    if (!type.isF32() && !graph::isNarrowFloat(type))
      return op->emitOpError("is a part of a product of ") << type << ", expected f32, bf16 or f16";
    return success();
  }

  int64_t getWorkspaceBytes(Operation *, const RoutineTarget &, ArrayRef<Type>) const { return 0; }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto part = cast<graph::MatMulPartOp>(op);
    Location loc = op->getLoc();
    Value result = buffers.of(part.getResult());
    auto type = cast<MemRefType>(result.getType());
    // Rows may be longer than what is computed of them.
    if (int64_t columns = part.getExtents()[1], padded = type.getDimSize(1); columns < padded)
      result =
          exec::ViewOp::create(builder, loc,
                               MemRefType::get({type.getDimSize(0), columns}, type.getElementType(),
                                               StridedLayoutAttr::get(type.getContext(), 0, {padded, 1})),
                               result);
    return exec::GemmOp::create(builder, loc, buffers.of(part.getLhs()), buffers.of(part.getRhs()), result,
                                part.getTransposeA(), part.getTransposeB(),
                                buffers.accumulates(part.getResult()), buffers.of(part.getAddend()),
                                part.getWholeAttr());
  }
};
} // namespace

void dsopt::registerProductRoutines(MLIRContext *context) {
  graph::MatMulOp::attachInterface<MatMulRoutine>(*context);
  graph::MatMulPartOp::attachInterface<MatMulPartRoutine>(*context);
}

void dsopt::registerRoutines(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, graph::GraphDialect *) {
    registerProductRoutines(context);
    registerConvolutionRoutines(context);
    registerAttentionRoutines(context);
    registerLossRoutines(context);
    registerScatterRoutines(context);
  });
}
