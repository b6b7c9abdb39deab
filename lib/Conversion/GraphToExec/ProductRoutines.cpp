//===- ProductRoutines.cpp - matrix products as routines; registration ----===//

#include "GraphRoutines.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Conversion/Routines.h"
#include "dsopt/Dialect/Graph/Layouts.h"
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

  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type> gradients) const {
    auto matmul = cast<graph::MatMulOp>(op);
    RankedTensorType type = tensorType(matmul.getResult()), lhs = tensorType(matmul.getLhs());
    // In a gradient it is contiguous.
    std::optional<graph::Layout> layout =
        gradients[0] ? std::nullopt : graph::locate(matmul.getResult()).layout;
    if (!layout)
      layout = graph::Layout::contiguous(type.getShape());
    auto matrix = productMatrix(layout->shape, layout->strides);
    if (failed(matrix))
      return 0;
    int64_t rank = type.getRank(), lines = type.getDimSize(rank - (matrix->transposed ? 1 : 2));
    return productWorkspace(lines, matrix->leading, lhs.getDimSize(rank - (matmul.getTransposeA() ? 2 : 1)),
                            gradients[0] ? gradients[0] : type.getElementType(), target.isDevice);
  }

  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    auto matmul = cast<graph::MatMulOp>(op);
    Value result = buffers.of(matmul.getResult()), lhs = buffers.of(matmul.getLhs()),
          rhs = buffers.of(matmul.getRhs());
    return exec::GemmOp::create(builder, op->getLoc(), lhs, rhs, result, matmul.getTransposeA(),
                                matmul.getTransposeB(), buffers.accumulates(matmul.getResult()),
                                /*addend=*/Value(), buffers.workspace, /*packed=*/Value(),
                                /*whole=*/DenseI64ArrayAttr(),
                                /*kernel=*/exec::ProductKernelAttr());
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

  int64_t getWorkspaceBytes(Operation *op, const RoutineTarget &target, ArrayRef<Type> gradients) const {
    auto part = cast<graph::MatMulPartOp>(op);
    RankedTensorType type = tensorType(part.getResult());
    return productWorkspace(type.getDimSize(0), type.getDimSize(1), part.getWhole()[2],
                            gradients[0] ? gradients[0] : type.getElementType(), target.isDevice);
  }

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
    return exec::GemmOp::create(
        builder, loc, buffers.of(part.getLhs()), buffers.of(part.getRhs()), result, part.getTransposeA(),
        part.getTransposeB(), buffers.accumulates(part.getResult()), buffers.of(part.getAddend()),
        buffers.workspace, /*packed=*/Value(), part.getWholeAttr(), /*kernel=*/exec::ProductKernelAttr());
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
    registerEpilogueRoutines(context);
    registerAttentionRoutines(context);
    registerLossRoutines(context);
    registerScatterRoutines(context);
  });
}
