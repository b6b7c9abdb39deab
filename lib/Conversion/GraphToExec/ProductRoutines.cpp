//===- ProductRoutines.cpp - matrix products as routines; registration ----===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/Routines.h"

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
    if (!type.isF32() && !type.isBF16() && !type.isF64())
      return op->emitOpError("is a product of ") << type << ", expected f32, bf16 or f64";
    return success();
  }

  int64_t getWorkspaceBytes(Operation *, const RoutineTarget &, ArrayRef<Type>) const { return 0; }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto matmul = cast<graph::MatMulOp>(op);
    Value result = buffers.of(matmul.getResult()), lhs = buffers.of(matmul.getLhs()),
          rhs = buffers.of(matmul.getRhs());
    return exec::GemmOp::create(builder, op->getLoc(), lhs, rhs, result, matmul.getTransposeA(),
                                matmul.getTransposeB(), buffers.accumulates(matmul.getResult()));
  }
};
} // namespace

void dsopt::registerProductRoutines(MLIRContext *context) {
  graph::MatMulOp::attachInterface<MatMulRoutine>(*context);
}

void dsopt::registerRoutines(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, graph::GraphDialect *) {
    registerProductRoutines(context);
    registerAttentionRoutines(context);
    registerLossRoutines(context);
    registerScatterRoutines(context);
  });
}
